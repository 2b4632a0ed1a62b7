//go:build cgo

package opencl

import (
	"context"
	"time"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// work is a command whose completion is tracked. As the queue is in order, everything before it is complete when it is.
type work struct {
	seq    uint64
	event  clload.Handle // released when the work is taken from the pending list
	during string        // for errors
	copied clload.Handle // the copy that a write transfers from, or nil
	size   int64         // of copied

	timing   *backend.Timing // to be filled when the command is complete, or nil
	enqueued time.Time       // when, if timing is set

	finished bool
	err      error
}

// readTimes fills the timing of a complete command. The clocks meet where the command was enqueued.
func (w *work) readTimes() {
	queued, start, end, code := clload.EventTimes(w.event)
	if code != 0 || start < queued || end < start {
		return // the launch then has no times
	}
	w.timing.Start = w.enqueued.Add(time.Duration(start - queued))
	w.timing.End = w.enqueued.Add(time.Duration(end - queued))
}

func (w *work) finish(err error) { w.finished, w.err = true, err }

// retiree is a freed object that the commands up to seq use.
type retiree struct {
	seq     uint64
	release func()
}

// track adds a command to the pending list. The lock is held.
func (d *device) track(event clload.Handle, during string) *work {
	d.seq++
	w := &work{seq: d.seq, event: event, during: during}
	d.pending = append(d.pending, w)
	return w
}

// poll takes complete commands off the pending list, and releases what was freed while they ran. The lock is held. It does not block.
func (d *device) poll() { d.pollKnowing(0) }

// pollKnowing is poll where the commands up to seq are known to have ended, because one of them was waited for.
func (d *device) pollKnowing(seq uint64) {
	n := 0
	for _, w := range d.pending {
		status, code := clload.EventStatus(w.event)
		if code = d.check("status of "+w.during, code); code != 0 {
			d.failWork(w.during, code)
			break
		}
		if status > 0 && w.seq > seq {
			break
		}
		var err error
		if status < 0 {
			err = d.failWork(w.during, clload.Code(status))
		}
		if w.timing != nil && status == 0 {
			w.readTimes()
		}
		w.finish(err)
		clload.Release(w.event)
		if w.copied != nil {
			clload.FreeCopy(w.copied)
			d.staged -= w.size
		}
		d.done = w.seq
		n++
	}
	if n > 0 {
		clear(d.pending[:n])
		d.pending = d.pending[n:]
	}
	n = 0
	for _, r := range d.retired {
		if r.seq > d.done {
			break
		}
		r.release()
		n++
	}
	if n > 0 {
		clear(d.retired[:n])
		d.retired = d.retired[n:]
	}
}

// retire releases an object once the commands up to seq are complete. The lock is held.
func (d *device) retire(seq uint64, release func()) {
	d.poll()
	if seq <= d.done {
		release()
		return
	}
	// A later entry may have to wait for an earlier command than its neighbours: it is kept as long as they are.
	if n := len(d.retired); n > 0 {
		seq = max(seq, d.retired[n-1].seq)
	}
	d.retired = append(d.retired, retiree{seq, release})
}

// wait waits for a command, or for the end of ctx. The lock is free.
func (d *device) wait(ctx context.Context, w *work, during string) error {
	d.mu.Lock()
	d.poll()
	if w.finished || d.lost != nil {
		err := d.outcome(w)
		d.mu.Unlock()
		return err
	}
	if err := ctx.Err(); err != nil {
		d.mu.Unlock()
		return err
	}
	event := w.event
	clload.Retain(event) // poll, in another goroutine, may release the work's own reference
	d.mu.Unlock()

	var code clload.Code
	if ctx.Done() == nil {
		code = clload.Wait(event)
		clload.Release(event)
	} else {
		// The API cannot stop waiting. The goroutine that does ends with the command, at the latest when the device is closed.
		ended := make(chan clload.Code, 1)
		go func() {
			c := clload.Wait(event)
			clload.Release(event)
			ended <- c
		}()
		select {
		case code = <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if code = d.check(during, code); code != 0 {
		d.poll() // the command's status says more than that waiting failed
		d.failWork(during, code)
		return d.outcome(w)
	}
	d.pollKnowing(w.seq)
	return d.outcome(w)
}

// outcome returns how a command ended, or why it never will. The lock is held.
func (d *device) outcome(w *work) error {
	if w.finished {
		return w.err
	}
	if d.lost != nil {
		return d.lost
	}
	return nil
}

// fence is the completion of a submission.
type fence struct {
	device *device
	work   *work // nil if there was nothing to do
}

// Wait returns when the submission is done, with the error that it ended with, or when ctx ends.
func (f *fence) Wait(ctx context.Context) error {
	if f.work == nil {
		return nil
	}
	return f.device.wait(ctx, f.work, "waiting")
}

// Done reports without waiting whether the submission has finished, also when it failed.
func (f *fence) Done() bool {
	if f.work == nil {
		return true
	}
	f.device.mu.Lock()
	defer f.device.mu.Unlock()
	if !f.work.finished {
		f.device.poll()
	}
	return f.work.finished || f.device.lost != nil
}
