//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"fmt"

	"github.com/anygpu/anygpu/backend"
)

const (
	uploadBytes   = 16 << 20 // the ring of staged writes
	uploadChunk   = 4 << 20  // a staged write is cut into chunks, so that copying on the host and on the device overlap
	readbackBytes = 8 << 20  // two halves, likewise
)

// buffer is device memory, or the driver's staging memory.
type buffer struct {
	d      *device
	memory *memory
	size   int64

	// Guarded by d.mu.
	freed     bool
	pins      int    // host copies under way; the memory stays
	lastUse   uint64 // serial of the last submission that uses it
	lastWrite uint64 // of the last one that may write it
}

func (b *buffer) c() C.VkBuffer { return convert[C.VkBuffer](b.memory.buffer) }

// Size returns the size that Alloc was given.
func (b *buffer) Size() int64 { return b.size }

// Alloc allocates device memory.
func (d *device) Alloc(size int64) (backend.Buffer, error) {
	if size <= 0 || size%4 != 0 {
		return nil, fmt.Errorf("%s: alloc of %d bytes: the size must be a positive multiple of 4", d.info, size)
	}
	if size > d.info.Limits.MaxAllocBytes {
		return nil, &backend.LimitError{Device: d.info.String(), Limit: "maxMemoryAllocationSize", Requested: size, Allowed: d.info.Limits.MaxAllocBytes}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.newBuffer(size, d.choice.buffers)
	if outOfMemory(err) {
		// Memory that was freed while it was in use comes back when the device is done.
		if d.drain() == nil {
			b, err = d.newBuffer(size, d.choice.buffers)
		}
	}
	if outOfMemory(err) {
		return nil, &backend.OutOfMemoryError{Device: d.info.String(), Requested: size, Allocated: d.bytes, Reserved: d.bytes, Total: d.info.Memory, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// newBuffer allocates a buffer. d.mu is held, and may be released meanwhile.
func (d *device) newBuffer(size int64, order []int) (*buffer, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if err := d.poll(); err != nil {
		return nil, err
	}
	if limit := d.info.Limits.MaxAllocs; limit > 0 && d.allocs >= limit {
		if err := d.drain(); err != nil {
			return nil, err
		}
		if d.allocs >= limit {
			return nil, &backend.LimitError{Device: d.info.String(), Limit: "maxMemoryAllocationCount", Requested: int64(d.allocs) + 1, Allowed: int64(limit)}
		}
	}
	m, err := d.newMemory(size, order)
	if err != nil {
		return nil, err
	}
	b := &buffer{d: d, memory: m, size: size}
	d.buffers[b] = true
	d.allocs++
	d.bytes += size
	return b, nil
}

// drain waits for all work, so that deferred destructions happen. It may release and take d.mu again.
func (d *device) drain() error {
	if err := d.flush(len(d.work.garbage) > 0); err != nil {
		return err
	}
	return d.waitFor(context.Background(), d.work.next-1)
}

// Free gives the memory back once no submission uses it.
func (b *buffer) Free() {
	d := b.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.freed || d.closed {
		return
	}
	b.freed = true
	b.release()
	_ = d.poll() // a lost device is reported by the next call that can
}

// release destroys a freed buffer as soon as possible. d.mu is held.
func (b *buffer) release() {
	if !b.freed || b.pins > 0 {
		return
	}
	b.d.after(b.lastUse, func() {
		b.memory.destroy(b.d)
		delete(b.d.buffers, b)
		b.d.allocs--
		b.d.bytes -= b.size
	})
}

// transfer checks the arguments of Write and Read. d.mu is held.
func (b *buffer) transfer(op string, offset int64, n int) error {
	if err := b.d.usable(); err != nil {
		return err
	}
	if b.freed {
		return fmt.Errorf("%s: %s of a buffer that was freed", b.d.info, op)
	}
	if offset < 0 || int64(n) > b.size-offset {
		return fmt.Errorf("%s: %s of %d bytes at offset %d is outside the buffer of %d bytes", b.d.info, op, n, offset, b.size)
	}
	return nil
}

// unlocked runs a host copy from or to b's mapped memory with d.mu released.
func (b *buffer) unlocked(f func()) {
	d := b.d
	b.pins++
	d.busy++
	d.mu.Unlock()
	f()
	d.mu.Lock()
	b.pins--
	d.busy--
	d.idle.Broadcast()
	b.release()
}

// Write copies data to the buffer, after the work submitted so far: directly if no work uses the buffer, else through
// staging memory.
func (b *buffer) Write(offset int64, data []byte) error {
	d := b.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := b.transfer("write", offset, len(data)); err != nil {
		return err
	}
	if err := d.poll(); err != nil {
		return err
	}
	if b.memory.ptr != nil && b.lastUse <= d.work.done {
		b.unlocked(func() { copy(b.memory.bytes(offset, int64(len(data))), data) })
		return nil
	}
	for len(data) > 0 {
		n := min(len(data), uploadChunk)
		at, err := d.stage(int64(n))
		if err != nil {
			return err
		}
		if err := b.transfer("write", offset, n); err != nil { // freed meanwhile
			return err
		}
		copy(d.up.buf.memory.bytes(at, int64(n)), data[:n])
		d.work.copies = append(d.work.copies, copyOp{src: d.up.buf, dst: b, srcOff: at, dstOff: offset, size: int64(n)})
		b.lastUse, b.lastWrite = d.work.next, d.work.next
		data, offset = data[n:], offset+int64(n)
		if len(d.work.copies) >= maxCopies || n == uploadChunk {
			if err := d.flush(false); err != nil {
				return err
			}
		}
	}
	return nil
}

// uploadRing hands out staging memory in order; a submission's fence gives back what it used. Positions count bytes
// from the start and never wrap.
type uploadRing struct {
	buf        *buffer // nil until the first use
	head, tail uint64
}

// take returns the offset of n free bytes, or false if the submissions under way must end first.
func (r *uploadRing) take(n, size uint64) (int64, bool) {
	head := (r.head + 63) &^ 63
	if at := head % size; at+n > size {
		head += size - at // no chunk wraps
	}
	if head+n-r.tail > size {
		return 0, false
	}
	r.head = head + n
	return int64(head % size), true
}

// stage returns the place of n bytes in the upload ring. It may release and take d.mu again.
func (d *device) stage(n int64) (int64, error) {
	for {
		if err := d.usable(); err != nil {
			return 0, err
		}
		if d.up.buf == nil {
			buf, err := d.newBuffer(uploadBytes, d.choice.upload)
			if err != nil {
				return 0, d.stagingError(uploadBytes, err)
			}
			d.up.buf = buf
		}
		if at, ok := d.up.take(uint64(n), uploadBytes); ok {
			return at, nil
		}
		if err := d.flush(false); err != nil {
			return 0, err
		}
		if len(d.work.inflight) == 0 {
			d.up.tail = d.up.head
			continue
		}
		if err := d.waitSlot(context.Background(), d.work.inflight[0]); err != nil {
			return 0, err
		}
	}
}

func (d *device) stagingError(n int64, err error) error {
	if !outOfMemory(err) {
		return err
	}
	return &backend.OutOfMemoryError{Device: d.info.String(), Requested: n, Allocated: d.bytes, Reserved: d.bytes, Total: d.info.Memory, Err: fmt.Errorf("staging memory for a transfer: %w", err)}
}

// Read waits for the work that may write the buffer, and copies from it.
func (b *buffer) Read(offset int64, data []byte) error {
	d := b.d
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if !directRead(b.memory.flags) {
		d.readM.Lock()
		defer d.readM.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := b.transfer("read", offset, len(data)); err != nil || len(data) == 0 {
		return err
	}
	if !directRead(b.memory.flags) {
		return b.readStaged(offset, data)
	}
	serial := b.lastWrite
	if serial >= d.work.next {
		if err := d.flush(false); err != nil {
			return err
		}
	}
	if err := d.waitFor(context.Background(), serial); err != nil {
		return err
	}
	if l := d.lost.Load(); l != nil {
		return l
	}
	b.unlocked(func() { copy(data, b.memory.bytes(offset, int64(len(data)))) })
	return nil
}

// readStaged reads through staging memory, half of which the device fills while the host empties the other. d.readM and
// d.mu are held.
func (b *buffer) readStaged(offset int64, data []byte) error {
	d := b.d
	if d.down == nil {
		buf, err := d.newBuffer(readbackBytes, d.choice.readback)
		if err != nil {
			return d.stagingError(readbackBytes, err)
		}
		d.down = buf
	}
	type part struct {
		serial uint64
		dst    []byte
		at     int64
	}
	var parts []part
	half := int64(0)
	for len(data) > 0 || len(parts) > 0 {
		if len(data) > 0 && len(parts) < 2 {
			n := min(len(data), readbackBytes/2)
			s, err := d.takeSlot()
			if err != nil {
				return err
			}
			if err := b.transfer("read", offset, n); err != nil { // freed meanwhile
				d.work.free = append(d.work.free, s)
				return err
			}
			at := half * (readbackBytes / 2)
			d.work.begin()
			d.work.copy(copyOp{src: b, dst: d.down, srcOff: offset, dstOff: at, size: int64(n)})
			serial, err := d.commit(s, true)
			if err != nil {
				return err
			}
			b.lastUse, d.down.lastUse = serial, serial
			parts = append(parts, part{serial, data[:n], at})
			data, offset, half = data[n:], offset+int64(n), 1-half
			continue
		}
		p := parts[0]
		if err := d.waitFor(context.Background(), p.serial); err != nil {
			return err
		}
		d.down.unlocked(func() { copy(p.dst, d.down.memory.bytes(p.at, int64(len(p.dst)))) })
		parts = parts[1:]
	}
	return nil
}

var _ backend.Buffer = (*buffer)(nil)
