package cpu

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/anygpu/anygpu/backend"
)

// buffer is memory of the Go heap.
type buffer struct {
	d    *Device
	size int64
	mem  []byte      // nil once freed; guarded by d.mu
	last *submission // the last that uses it; guarded by d.mu
}

// largeAlloc is the size from which an allocation is first compared with the memory that the system has left: a failed
// allocation of the Go heap ends the program.
const largeAlloc = 64 << 20

// Alloc returns size bytes of memory, which happen to be zero.
func (d *Device) Alloc(size int64) (backend.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, err
	}
	if size <= 0 || size%4 != 0 {
		return nil, fmt.Errorf("%s: cannot allocate %d bytes: the size must be a positive multiple of 4", d.info, size)
	}
	if most := d.info.Limits.MaxAllocBytes; size > most {
		return nil, d.outOfMemory(size, fmt.Errorf("one allocation may have %d bytes", most))
	}
	if size >= largeAlloc {
		if free := memInfo("MemAvailable"); free > 0 && size > free {
			return nil, d.outOfMemory(size, fmt.Errorf("the system has %d bytes left", free))
		}
	}
	mem, err := allocate(size)
	if err != nil {
		return nil, d.outOfMemory(size, err)
	}
	d.allocated += size
	return &buffer{d: d, size: size, mem: mem}, nil
}

func (d *Device) outOfMemory(size int64, err error) error {
	return &backend.OutOfMemoryError{Device: d.info.String(), Requested: size, Allocated: d.allocated, Reserved: d.allocated, Total: d.info.Memory, Err: err}
}

// allocate returns memory aligned to 64 bytes; the runtime panics at a size that cannot be.
func allocate(size int64) (mem []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			mem, err = nil, fmt.Errorf("%v", p)
		}
	}()
	if size > math.MaxInt-2*offsetAlign {
		return nil, fmt.Errorf("%d bytes are more than the address space", size)
	}
	words := make([]uint64, (size+7)/8+offsetAlign/8)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	adviseHuge(all)
	skip := -uintptr(unsafe.Pointer(&words[0])) % offsetAlign
	return all[skip : int64(skip)+size : int64(skip)+size], nil
}

// Size returns the size in bytes.
func (b *buffer) Size() int64 { return b.size }

// access waits for the submissions that use the buffer and returns the memory of a transfer.
func (b *buffer) access(what string, offset int64, n int) ([]byte, error) {
	d := b.d
	d.mu.Lock()
	mem, last, err := b.mem, b.last, d.check()
	d.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case mem == nil:
		return nil, fmt.Errorf("%s: %s of a buffer that was freed", d.info, what)
	case offset < 0 || offset%4 != 0:
		return nil, fmt.Errorf("%s: %s at byte %d: the offset must be a multiple of 4", d.info, what, offset)
	case int64(n) > b.size || offset > b.size-int64(n):
		return nil, fmt.Errorf("%s: %s of %d bytes at byte %d reaches beyond the buffer's %d bytes", d.info, what, n, offset, b.size)
	}
	if last != nil {
		<-last.done
	}
	return mem[offset : offset+int64(n)], nil
}

// Write copies data to the buffer.
func (b *buffer) Write(offset int64, data []byte) error {
	mem, err := b.access("write", offset, len(data))
	if err != nil {
		return err
	}
	copy(mem, data)
	return nil
}

// Read copies from the buffer. It reports the failure of an earlier launch.
func (b *buffer) Read(offset int64, data []byte) error {
	mem, err := b.access("read", offset, len(data))
	if err != nil {
		return err
	}
	if err := b.d.takeFailure(math.MaxInt); err != nil {
		return err
	}
	copy(data, mem)
	return nil
}

// Free gives the memory back to the collector; pending submissions keep what they use.
func (b *buffer) Free() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.mem != nil {
		b.mem, b.last = nil, nil
		b.d.allocated -= b.size
	}
}

// wait waits for a submission or the end of ctx.
func wait(ctx context.Context, s *submission) error {
	select {
	case <-s.done:
		return nil
	default:
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
