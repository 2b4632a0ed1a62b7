//go:build cgo

package opencl

import (
	"context"
	"fmt"
	"runtime"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// Writes up to stageLimit bytes are copied and return at once; larger ones wait, as the copy would cost as much as the
// overlap gains. At most stageTotal bytes of copies are pending.
const (
	stageLimit = 4 << 20
	stageTotal = 64 << 20
)

// buffer is a memory object. Its fields below mem are guarded by the device's lock.
type buffer struct {
	device *device
	size   int64
	mem    *cl.MemObject
	handle clload.Handle
	used   uint64 // the last command that uses it
	freed  bool
}

// Alloc makes a memory object of size bytes, a positive multiple of 4.
func (d *device) Alloc(size int64) (backend.Buffer, error) {
	if size <= 0 || size%4 != 0 {
		return nil, fmt.Errorf("%s: cannot allocate %d bytes: the size must be a positive multiple of 4", d.info, size)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if limit := d.info.Limits.MaxAllocBytes; size > limit {
		return nil, &backend.LimitError{Device: d.info.String(), Limit: "CL_DEVICE_MAX_MEM_ALLOC_SIZE", Requested: size, Allowed: limit}
	}
	b, err := d.tryAlloc(size)
	if err == nil || len(d.retired) == 0 {
		return b, err
	}
	// Memory that was freed is still held for pending work.
	d.busy.Add(1)
	d.mu.Unlock()
	code := clload.Finish(d.qh)
	d.mu.Lock()
	d.busy.Done()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if code = d.check("allocation", code); code != 0 {
		return nil, d.failWork("allocation", code)
	}
	d.poll()
	return d.tryAlloc(size)
}

// tryAlloc makes a memory object. The lock is held. Drivers hand out more than there is, and some allocate only at the first use: so
// what is reported as the device's memory is a limit, and the object is used once.
func (d *device) tryAlloc(size int64) (backend.Buffer, error) {
	if total := d.info.Memory; total > 0 && d.allocated+size > total {
		return nil, d.outOfMemory(size, nil)
	}
	mem, err := d.context.CreateEmptyBuffer(cl.MemReadWrite, int(size))
	code := d.check("allocation", clload.CodeOf(err))
	if code == 0 {
		if code = d.check("first use", clload.Touch(d.qh, clload.HandleOf(mem))); code != 0 {
			mem.Release()
		}
	}
	switch {
	case isOutOfMemory(code):
		return nil, d.outOfMemory(size, code)
	case code == clload.InvalidBufferSize:
		return nil, &backend.LimitError{Device: d.info.String(), Limit: "the driver's largest buffer size", Requested: size, Allowed: size - 1}
	case code != 0:
		return nil, d.fail("allocation", code)
	}
	b := &buffer{device: d, size: size, mem: mem, handle: clload.HandleOf(mem)}
	d.buffers[b] = struct{}{} // keeps the object from the binding's finalizer until it is freed
	d.allocated += size
	return b, nil
}

// Size returns the buffer's size in bytes.
func (b *buffer) Size() int64 { return b.size }

// Free gives the memory back after the work submitted so far.
func (b *buffer) Free() {
	d := b.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.freed || d.closed {
		return
	}
	b.freed = true
	delete(d.buffers, b)
	d.retire(b.used, b.release)
}

// release gives the memory back now. The lock is held.
func (b *buffer) release() {
	b.mem.Release()
	b.handle = nil
	b.freed = true
	b.device.allocated -= b.size
}

// ready checks a transfer. The lock is held.
func (b *buffer) ready(what string, offset int64, n int) error {
	b.device.poll()
	if err := b.device.usable(); err != nil {
		return err
	}
	if b.freed {
		return fmt.Errorf("%s: %s of a buffer that was freed", b.device.info, what)
	}
	if offset < 0 || int64(n) > b.size-offset {
		return fmt.Errorf("%s: %s of %d bytes at offset %d of a buffer of %d bytes", b.device.info, what, n, offset, b.size)
	}
	return nil
}

// Write copies data to the buffer from byte offset on.
func (b *buffer) Write(offset int64, data []byte) error {
	d := b.device
	d.mu.Lock()
	if err := b.ready("write", offset, len(data)); err != nil {
		d.mu.Unlock()
		return err
	}
	if len(data) == 0 {
		d.mu.Unlock()
		return nil
	}
	if n := int64(len(data)); n <= stageLimit && d.staged+n <= stageTotal {
		defer d.mu.Unlock()
		copied, event, code := clload.WriteCopy(d.qh, b.handle, offset, data)
		if event != nil {
			w := d.track(event, "write")
			w.copied, w.size = copied, n
			d.staged += n
			b.used = w.seq
		}
		if code = d.check("write", code); code != 0 {
			return d.fail("write", code)
		}
		return nil
	}
	return d.transfer(b, "write", data, func() (clload.Handle, clload.Code) { return clload.Write(d.qh, b.handle, offset, data) })
}

// Read waits for the work submitted so far and copies from the buffer.
func (b *buffer) Read(offset int64, data []byte) error {
	d := b.device
	d.mu.Lock()
	if err := b.ready("read", offset, len(data)); err != nil {
		d.mu.Unlock()
		return err
	}
	if len(data) == 0 {
		d.mu.Unlock()
		return nil
	}
	return d.transfer(b, "read", data, func() (clload.Handle, clload.Code) { return clload.Read(d.qh, b.handle, offset, data) })
}

// transfer enqueues a transfer of pinned Go memory and waits for it. The lock is held, and free when it returns.
func (d *device) transfer(b *buffer, what string, data []byte, enqueue func() (clload.Handle, clload.Code)) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&data[0])
	event, code := enqueue()
	if event == nil {
		defer d.mu.Unlock()
		if code = d.check(what, code); code == 0 {
			code = clload.InvalidValue
		}
		return d.fail(what, code)
	}
	w := d.track(event, what)
	b.used = w.seq
	var err error
	if code = d.check(what, code); code != 0 {
		err = d.fail(what, code)
	}
	clload.Retain(event)
	d.mu.Unlock()
	// The device may write to data until the command ends: waiting is not cut short, not even if the device is lost meanwhile.
	clload.Wait(event)
	clload.Release(event)
	if err != nil {
		return err
	}
	return d.wait(context.Background(), w, what)
}
