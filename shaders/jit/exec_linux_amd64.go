package jit

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// call runs machine code on a frame, whose memory and the buffers it refers to must be kept alive by the caller.
//
//go:noescape
func call(code, frame uintptr)

// executable is memory with machine code in it. It is given back when nobody refers to it any more.
type executable struct{ mem []byte }

func (e *executable) entry() uintptr { return uintptr(unsafe.Pointer(&e.mem[0])) }

// available returns why there can be no machine code here, or nil.
var available = sync.OnceValue(func() error {
	x := &cpu.X86
	if !x.HasAVX512F || !x.HasAVX512DQ || !x.HasAVX512BW || !x.HasAVX512VL || !x.HasBMI1 || !x.HasBMI2 || !x.HasFMA {
		return fmt.Errorf("the processor has no AVX-512 (F, DQ, BW, VL)")
	}
	if _, err := newExecutable([]byte{0xc3}); err != nil {
		return err
	}
	return nil
})

// newExecutable copies code to memory that can be executed, and not written any more.
func newExecutable(code []byte) (*executable, error) {
	mem, err := syscall.Mmap(-1, 0, len(code), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("no memory for machine code: %w", err)
	}
	copy(mem, code)
	if err := syscall.Mprotect(mem, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		syscall.Munmap(mem)
		return nil, fmt.Errorf("the system does not let memory be executed: %w", err)
	}
	e := &executable{mem}
	runtime.AddCleanup(e, func(mem []byte) { syscall.Munmap(mem) }, mem)
	return e, nil
}
