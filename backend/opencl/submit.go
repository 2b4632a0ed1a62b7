//go:build cgo

package opencl

import (
	"context"
	"fmt"
	"math"

	"github.com/anygpu/anygpu/backend"
)

// maxPending is the number of commands that may be pending before Submit waits for half of them: a program that never
// waits would otherwise fill the host's memory with commands.
const maxPending = 2048

// Submit enqueues the launches and starts them. If a launch is refused, those before it run; the error names the launch.
func (d *device) Submit(batch []backend.Launch) (backend.Fence, error) {
	d.mu.Lock()
	if n := len(d.pending); n >= maxPending {
		w := d.pending[n/2]
		d.mu.Unlock()
		if err := d.wait(context.Background(), w, "submission"); err != nil {
			return nil, err
		}
		d.mu.Lock()
	}
	defer d.mu.Unlock()
	d.poll()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if asksForTimes(batch) {
		return d.submitTimed(batch)
	}
	d.batch.Reset()
	for i := range batch {
		if err := d.add(&batch[i]); err != nil {
			return nil, fmt.Errorf("%s: launch %d of %d: %w", d.info, i, len(batch), err)
		}
	}
	if d.batch.Len() == 0 {
		if n := len(d.pending); n > 0 {
			return &fence{d, d.pending[n-1]}, nil // done when all before it is done
		}
		return &fence{device: d}, nil
	}
	event, failed, code := d.batch.Submit(d.qh)
	d.batch.Reset()
	f := &fence{device: d}
	if event != nil {
		f.work = d.track(event, "execution")
		for i := range batch {
			markUsed(&batch[i], d.seq)
		}
	}
	if code = d.check("submission", code); code != 0 {
		return nil, fmt.Errorf("kernel %s: %w", nthName(batch, failed), d.fail("submission", code))
	}
	return f, nil
}

// add checks a launch and appends it to the batch. The lock is held.
func (d *device) add(l *backend.Launch) error {
	if isEmpty(l) {
		return nil
	}
	p, ok := l.Program.(*program)
	if !ok || p.device != d {
		return fmt.Errorf("the program was not compiled on this device")
	}
	if p.freed {
		return fmt.Errorf("kernel %s: the program was freed", p.name)
	}
	if len(l.Buffers) != p.buffers || len(l.Params) != p.params {
		return fmt.Errorf("kernel %s takes %d buffers and %d parameters, got %d and %d", p.name, p.buffers, p.params, len(l.Buffers), len(l.Params))
	}
	for i, g := range l.Groups {
		if g < 0 || g > d.info.Caps.MaxGroups[i] {
			return fmt.Errorf("kernel %s: %w", p.name, &backend.LimitError{
				Device: d.info.String(), Limit: fmt.Sprintf("number of workgroups in dimension %d", i), Requested: int64(g), Allowed: int64(d.info.Caps.MaxGroups[i]),
			})
		}
		if int64(g)*int64(p.local[i]) > math.MaxUint32 {
			return fmt.Errorf("kernel %s: %d workgroups of %d invocations are more than 32-bit positions can count", p.name, g, p.local[i])
		}
	}
	for i, r := range l.Buffers {
		if err := d.checkRegion(r); err != nil {
			return fmt.Errorf("kernel %s: buffer %d: %w", p.name, i, err)
		}
	}
	d.batch.Launch(p.handle, l.Groups, p.local, l.Params)
	for _, r := range l.Buffers {
		d.batch.Buffer(r.Buffer.(*buffer).handle, r.Offset)
	}
	return nil
}

func (d *device) checkRegion(r backend.Region) error {
	b, ok := r.Buffer.(*buffer)
	switch {
	case !ok || b == nil || b.device != d:
		return fmt.Errorf("not a buffer of this device")
	case b.freed:
		return fmt.Errorf("the buffer was freed")
	case r.Offset < 0 || r.Size < 0 || r.Size > b.size-r.Offset:
		return fmt.Errorf("region of %d bytes at offset %d of a buffer of %d bytes", r.Size, r.Offset, b.size)
	case r.Offset%d.info.Limits.BufferOffsetAlign != 0:
		return fmt.Errorf("offset %d is not a multiple of %d", r.Offset, d.info.Limits.BufferOffsetAlign)
	}
	return nil
}

// isEmpty reports whether a launch has nothing to do.
func isEmpty(l *backend.Launch) bool { return l.Groups[0] == 0 || l.Groups[1] == 0 || l.Groups[2] == 0 }

// markUsed notes that command seq uses the launch's program and buffers.
func markUsed(l *backend.Launch, seq uint64) {
	if isEmpty(l) {
		return
	}
	l.Program.(*program).used = seq
	for _, r := range l.Buffers {
		r.Buffer.(*buffer).used = seq
	}
}

// nthName returns the kernel's name of the n-th launch of a batch that is not empty, or of the last.
func nthName(batch []backend.Launch, n int) (name string) {
	for i := range batch {
		if isEmpty(&batch[i]) {
			continue
		}
		name = batch[i].Program.(*program).name
		if n == 0 {
			break
		}
		n--
	}
	return name
}
