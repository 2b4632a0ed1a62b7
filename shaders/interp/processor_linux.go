package interp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// processorNumber returns the number of the processor that the caller runs on, which may be another one soon.
func processorNumber() int {
	var cpu uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); err != 0 {
		return 0
	}
	return int(cpu)
}
