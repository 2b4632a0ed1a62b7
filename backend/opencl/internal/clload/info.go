//go:build cgo

package clload

/*
#include <stdlib.h>
#include "queue.h"
*/
import "C"

import (
	"strings"
	"unsafe"
)

// The binding's queries of strings fail where a value is longer than 1,024 bytes, as lists of extensions are, and panic on
// other failures; these do neither.

// DeviceString returns a device property that is a string, without its terminating zero.
func DeviceString(device Handle, param uint32) (string, Code) {
	return infoString(func(size C.size_t, value unsafe.Pointer, actual *C.size_t) C.int {
		return C.clload_device_info(device, C.uint32_t(param), size, value, actual)
	})
}

// PlatformString returns a platform property that is a string.
func PlatformString(platform Handle, param uint32) (string, Code) {
	return infoString(func(size C.size_t, value unsafe.Pointer, actual *C.size_t) C.int {
		return C.clload_platform_info(platform, C.uint32_t(param), size, value, actual)
	})
}

func infoString(query func(C.size_t, unsafe.Pointer, *C.size_t) C.int) (string, Code) {
	var n C.size_t
	if c := query(0, nil, &n); c != 0 {
		return "", Code(c)
	}
	if n == 0 {
		return "", 0
	}
	buf := make([]byte, n)
	if c := query(n, unsafe.Pointer(&buf[0]), nil); c != 0 {
		return "", Code(c)
	}
	return cString(buf), 0
}

// cString returns the text before the first zero.
func cString(buf []byte) string {
	s := string(buf)
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

// DeviceValue reads a device property of fixed size into *value: a cl_uint or cl_bool (uint32), cl_ulong (uint64),
// size_t (uintptr) or an array.
func DeviceValue[T any](device Handle, param uint32) (value T, code Code) {
	c := C.clload_device_info(device, C.uint32_t(param), C.size_t(unsafe.Sizeof(value)), unsafe.Pointer(&value), nil)
	return value, Code(c)
}

// QueueValue returns a property of a queue that is an object: its context or device.
func QueueValue(queue Handle, param uint32) (value Handle, code Code) {
	c := C.clload_queue_info(queue, C.uint32_t(param), C.size_t(unsafe.Sizeof(value)), unsafe.Pointer(&value))
	return value, Code(c)
}

// Build compiles a program for a device. The log is what the compiler said, also where it succeeded.
func Build(program, device Handle, options string) (log string, code Code) {
	o := C.CString(options)
	defer C.free(unsafe.Pointer(o))
	c := C.clload_build(program, device, o)
	log, _ = infoString(func(size C.size_t, value unsafe.Pointer, actual *C.size_t) C.int {
		return C.clload_build_log(program, device, size, (*C.char)(value), actual)
	})
	return log, Code(c)
}
