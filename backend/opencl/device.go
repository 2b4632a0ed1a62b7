//go:build cgo

package opencl

import (
	"context"
	"fmt"
	"sync"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// device is an opened device: a context with one in-order queue.
type device struct {
	info    backend.Info
	config  fpConfig
	id      *cl.Device
	context *cl.Context
	queue   *cl.CommandQueue
	qh      clload.Handle // of queue

	untimed *cl.CommandQueue // the queue before the one that was made for profiling, or nil

	mu     sync.Mutex
	closed bool
	lost   *backend.LostError // the first; later uses return it

	seq      uint64 // of the last command tracked
	done     uint64 // commands up to this one are complete
	pending  []*work
	retired  []retiree // freed objects that pending commands use, in order
	buffers  map[*buffer]struct{}
	programs map[*program]struct{}
	modules  map[textKey]moduleKernel
	prepared []*module // made by Prepare

	allocated int64 // bytes of all buffers that are not released yet
	staged    int64 // bytes of copies for pending writes
	batch     clload.Batch

	// busy counts the calls that use the context or the queue without the lock. They begin under the lock, on a device that is not
	// closed; Close waits for them.
	busy sync.WaitGroup

	// inject, in tests, replaces the outcome of a call of the API.
	inject func(during string, code clload.Code) clload.Code
}

func newDevice(c candidate, ctx *cl.Context, queue *cl.CommandQueue) *device {
	return &device{
		info: c.info, config: c.config, id: c.device, context: ctx, queue: queue, qh: clload.HandleOf(queue),
		buffers: map[*buffer]struct{}{}, programs: map[*program]struct{}{}, modules: map[textKey]moduleKernel{},
	}
}

// Info describes the device.
func (d *device) Info() backend.Info { return d.info }

// Restrict takes capabilities out of the description before kernels are compiled for it; see [backend.Restricter].
func (d *device) Restrict(change func(*backend.Info)) { change(&d.info) }

// Lost reports whether the device was lost.
func (d *device) Lost() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost != nil
}

// usable returns why the device cannot be used any more, or nil. The lock is held.
func (d *device) usable() error {
	switch {
	case d.closed:
		return fmt.Errorf("%s: %w", d.info, backend.ErrClosed)
	case d.lost != nil:
		return d.lost
	}
	return nil
}

// Synchronize waits until everything submitted so far is done.
func (d *device) Synchronize(ctx context.Context) error {
	d.mu.Lock()
	if err := d.usable(); err != nil {
		d.mu.Unlock()
		return err
	}
	var last *work
	if n := len(d.pending); n > 0 {
		last = d.pending[n-1]
	}
	d.mu.Unlock()
	if last == nil {
		return nil
	}
	return d.wait(ctx, last, "synchronization")
}

// Close waits for the work submitted so far, and releases the device with all its buffers and programs. A second call
// does nothing.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	lost := d.lost != nil
	d.mu.Unlock()
	d.busy.Wait()

	var err error
	if !lost {
		// The lock is free meanwhile: other goroutines' waits end, and new work is refused.
		if code := clload.Finish(d.qh); code != 0 {
			err = fmt.Errorf("%s: close: %w", d.info, code)
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	d.poll()
	for _, w := range d.pending {
		// A lost device may never finish these. The copies of pending writes stay: the driver may yet read them.
		w.finish(d.closedOrLost())
		clload.Release(w.event)
	}
	d.pending = nil
	for _, r := range d.retired {
		r.release()
	}
	d.retired = nil
	for b := range d.buffers {
		b.release()
	}
	for p := range d.programs {
		p.release()
	}
	for _, m := range d.prepared {
		d.drop(m)
	}
	d.buffers, d.programs, d.prepared = nil, nil, nil
	d.queue.Release()
	if d.untimed != nil {
		d.untimed.Release()
	}
	d.context.Release()
	if d.lost != nil {
		return nil // whoever used the device has been told
	}
	return err
}

func (d *device) closedOrLost() error {
	if d.lost != nil {
		return d.lost
	}
	return fmt.Errorf("%s: %w", d.info, backend.ErrClosed)
}
