//go:build cgo

package clload

/*
#cgo CFLAGS: -std=gnu11 -Wall
#cgo linux LDFLAGS: -Wl,--as-needed -ldl -lpthread
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	// The functions are defined for the binding: whoever links them links it too, and its -lOpenCL comes after --as-needed.
	_ "github.com/jgillich/go-opencl/cl"
)

// Library loads the OpenCL library if that has not happened yet. It returns the library's name, or an error that
// lists what was tried.
func Library() (string, error) {
	var text *C.char
	ok := C.clload_status(&text)
	if ok == 0 {
		return "", errors.New(C.GoString(text))
	}
	return C.GoString(text), nil
}

// Use makes path the only library that is tried. It reports whether it came before the first use of OpenCL.
func Use(path string) bool {
	s := C.CString(path)
	defer C.free(unsafe.Pointer(s))
	return C.clload_use(s) != 0
}
