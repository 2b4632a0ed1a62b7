package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of the pages that adviseHuge asks for: those of most processors.
const hugePage = 2 << 20

// adviseHuge asks the system for large pages, which spares the processor misses of its table of pages: with small ones a
// kernel that goes down columns waits for them most of the time. Failure changes nothing.
func adviseHuge(mem []byte) {
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % hugePage
	if uintptr(len(mem)) < skip+hugePage {
		return
	}
	mem = mem[skip:]
	_ = unix.Madvise(mem[:len(mem)&^(hugePage-1)], unix.MADV_HUGEPAGE)
}
