//go:build cgo

package opencl

import (
	"fmt"
	"time"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

var _ backend.Timestamper = (*device)(nil)

// Timestamps reports that launches can be timed: every OpenCL device can.
func (d *device) Timestamps() bool { return true }

// asksForTimes reports whether a launch of the batch is to be timed.
func asksForTimes(batch []backend.Launch) bool {
	for i := range batch {
		if batch[i].Timing != nil {
			return true
		}
	}
	return false
}

// submitTimed is Submit where each launch has an event of its own, from which its times are read. The lock is held.
func (d *device) submitTimed(batch []backend.Launch) (backend.Fence, error) {
	if err := d.timeQueue(); err != nil {
		return nil, err
	}
	f := &fence{device: d}
	for i := range batch {
		l := &batch[i]
		d.batch.Reset()
		if err := d.add(l); err != nil {
			return nil, fmt.Errorf("%s: launch %d of %d: %w", d.info, i, len(batch), err)
		}
		if d.batch.Len() == 0 {
			continue
		}
		enqueued := time.Now()
		event, _, code := d.batch.Submit(d.qh)
		d.batch.Reset()
		if event != nil {
			f.work = d.track(event, "execution")
			f.work.timing, f.work.enqueued = l.Timing, enqueued
			markUsed(l, d.seq)
		}
		if code = d.check("submission", code); code != 0 {
			return nil, fmt.Errorf("kernel %s: %w", l.Program.(*program).name, d.fail("submission", code))
		}
	}
	if n := len(d.pending); f.work == nil && n > 0 {
		f.work = d.pending[n-1] // done when all before it is done
	}
	return f, nil
}

// timeQueue makes the device's queue one whose commands are timed, at the first call. Whatever was enqueued is waited for, because two
// queues have no order between them. The lock is held.
func (d *device) timeQueue() error {
	if d.untimed != nil {
		return nil
	}
	if code := d.check("waiting", clload.Finish(d.qh)); code != 0 {
		return d.fail("waiting", code)
	}
	q, err := d.context.CreateCommandQueue(d.id, cl.CommandQueueProfilingEnable)
	if err != nil {
		return fmt.Errorf("%s: cannot make a command queue for profiling: %w", d.info, err)
	}
	d.untimed = d.queue // kept until Close: another goroutine may wait for it
	d.queue, d.qh = q, clload.HandleOf(q)
	return nil
}
