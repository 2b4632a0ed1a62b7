//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

// Submit records the launches after the staged writes and submits them as one. The fence of an empty batch is that of
// everything before it.
func (d *device) Submit(batch []backend.Launch) (backend.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.takeSlot()
	if err != nil {
		return nil, err
	}
	run := false
	d.work.views = d.work.views[:0]
	for i := range batch {
		if err := d.checkLaunch(&batch[i]); err != nil {
			d.work.free = append(d.work.free, s)
			return nil, fmt.Errorf("%s: launch %d of %d: %w", d.info, i+1, len(batch), err)
		}
		run = run || !empty(&batch[i])
	}
	w := &d.work
	if !run && len(w.copies) == 0 {
		w.free = append(w.free, s)
		return fence{d, w.next - 1}, nil
	}
	w.begin()
	for i := range batch {
		if !empty(&batch[i]) {
			w.dispatch(&batch[i])
		}
	}
	serial, err := d.commit(s, false)
	if err != nil {
		return nil, err
	}
	for i := range batch {
		if l := &batch[i]; !empty(l) {
			use(l, serial)
		}
	}
	return fence{d, serial}, nil
}

// empty reports whether the launch has no workgroups.
func empty(l *backend.Launch) bool { return l.Groups[0] == 0 || l.Groups[1] == 0 || l.Groups[2] == 0 }

// checkLaunch finds mistakes of the caller, which the API would answer with undefined behaviour, and makes the views that the launch
// needs. d.mu is held.
func (d *device) checkLaunch(l *backend.Launch) error {
	p, ok := l.Program.(*program)
	if !ok || p == nil || p.d != d {
		return fmt.Errorf("its program (%T) is not of this device", l.Program)
	}
	if p.freed {
		return fmt.Errorf("kernel %s: the program was freed", p.name)
	}
	if len(l.Buffers) != len(p.access) || len(l.Params) != p.params {
		return fmt.Errorf("kernel %s takes %d buffers and %d parameters, got %d and %d", p.name, len(p.access), p.params, len(l.Buffers), len(l.Params))
	}
	for i, n := range l.Groups {
		if n < 0 || n > d.info.Caps.MaxGroups[i] {
			return fmt.Errorf("kernel %s: %w", p.name, &backend.LimitError{Device: d.info.String(),
				Limit: fmt.Sprintf("maxComputeWorkGroupCount[%d]", i), Requested: int64(n), Allowed: int64(d.info.Caps.MaxGroups[i])})
		}
	}
	if empty(l) {
		return nil
	}
	for i, r := range l.Buffers {
		if err := d.checkRegion(r); err != nil {
			return fmt.Errorf("kernel %s, buffer %d: %w", p.name, i, err)
		}
	}
	for _, t := range p.texels {
		v, err := d.view(l.Buffers[t.Buffer], t)
		if err != nil {
			return fmt.Errorf("kernel %s, buffer %d: %w", p.name, t.Buffer, err)
		}
		d.work.views = append(d.work.views, v)
	}
	return nil
}

func (d *device) checkRegion(r backend.Region) error {
	b, ok := r.Buffer.(*buffer)
	switch {
	case !ok || b == nil || b.d != d:
		return fmt.Errorf("the buffer (%T) is not of this device", r.Buffer)
	case b.freed:
		return fmt.Errorf("the buffer of %d bytes was freed", b.size)
	case r.Offset < 0 || r.Size <= 0 || r.Size > b.size-r.Offset:
		return fmt.Errorf("the region of %d bytes at offset %d is outside the buffer of %d bytes", r.Size, r.Offset, b.size)
	case r.Size%4 != 0:
		return fmt.Errorf("the region's size of %d bytes is not a multiple of 4", r.Size)
	case r.Offset%d.info.Limits.BufferOffsetAlign != 0:
		return fmt.Errorf("the region's offset %d is not a multiple of %d", r.Offset, d.info.Limits.BufferOffsetAlign)
	case r.Size > d.info.Caps.MaxBufferBytes:
		return &backend.LimitError{Device: d.info.String(), Limit: "maxStorageBufferRange", Requested: r.Size, Allowed: d.info.Caps.MaxBufferBytes}
	}
	return nil
}

// dispatch appends a launch that was checked.
func (w *workQueue) dispatch(l *backend.Launch) {
	p := l.Program.(*program)
	op := C.agpu_op{
		kind:    C.AGPU_DISPATCH,
		program: p.c,
		groups:  [3]C.uint32_t{C.uint32_t(l.Groups[0]), C.uint32_t(l.Groups[1]), C.uint32_t(l.Groups[2])},
		regions: C.uint32_t(len(l.Buffers)),
		texels:  C.uint32_t(len(p.texels)),
		params:  C.uint32_t(len(l.Params)),
	}
	w.touches = w.touches[:0]
	for i, r := range l.Buffers {
		b := r.Buffer.(*buffer)
		w.regions = append(w.regions, C.VkDescriptorBufferInfo{buffer: b.c(), offset: C.VkDeviceSize(r.Offset), _range: C.VkDeviceSize(r.Size)})
		w.touches = append(w.touches, touch{b, r.Offset, r.Offset + r.Size, p.access[i]&ir.Write != 0})
	}
	if w.conflict(w.touches...) {
		op.barrier = 1
	}
	if l.Timing != nil {
		op.timed = 1
		w.timings = append(w.timings, l.Timing)
	}
	w.params = append(w.params, unsafe.Slice((*C.uint32_t)(unsafe.SliceData(l.Params)), len(l.Params))...)
	w.ops = append(w.ops, op)
}

// use notes that the submission of the given serial uses the launch's objects.
func use(l *backend.Launch, serial uint64) {
	p := l.Program.(*program)
	p.lastUse = serial
	for i, r := range l.Buffers {
		b := r.Buffer.(*buffer)
		b.lastUse = serial
		if p.access[i]&ir.Write != 0 {
			b.lastWrite = serial
		}
	}
}
