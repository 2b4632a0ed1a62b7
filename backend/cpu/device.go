package cpu

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// maxPending bounds the submissions that wait: their buffers stay in memory.
const maxPending = 64

// Device is the host's processor. Its methods may be called from several goroutines.
type Device struct {
	info backend.Info
	pool *interp.Pool
	code bool // kernels are compiled to machine code

	mu        sync.Mutex
	idle      *sync.Cond // broadcast whenever a submission is done
	queue     []*submission
	rooms     []*room // of submissions that are done
	running   bool    // whether a goroutine works on the queue
	closed    bool
	last      *submission // the latest
	allocated int64

	interpreted map[string]error // kernels that have no machine code
	submitted   int
	failed      error // of a launch, until a synchronisation reports it
	failedSeq   int   // the submission that failed
}

var (
	_ backend.Device    = (*Device)(nil)
	_ backend.Overrider = (*Device)(nil)
	_ backend.Syncer    = (*Device)(nil)

	_ backend.Timestamper = (*Device)(nil)
)

// New returns the device. Most programs use backend.Open("cpu").
func New() *Device {
	d := &Device{info: describe(), pool: interp.DefaultPool(), interpreted: map[string]error{}}
	d.code, _ = machineCode()
	d.idle = sync.NewCond(&d.mu)
	return d
}

// Info describes the device.
func (d *Device) Info() backend.Info {
	i := d.info
	i.Notes = slices.Clone(i.Notes)
	return i
}

// check returns why nothing can be done. d.mu is held.
func (d *Device) check() error {
	if d.closed {
		return fmt.Errorf("%s: %w", d.info, backend.ErrClosed)
	}
	return nil
}

// Compile makes a program: machine code where there is some for the kernel, else one for the block executor.
func (d *Device) Compile(k *ir.Kernel) (backend.Program, error) {
	d.mu.Lock()
	err := d.check()
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := ir.Verify(k); err != nil {
		return nil, fmt.Errorf("%s: %w", d.info, err)
	}
	if err := d.checkLimits(k); err != nil {
		return nil, fmt.Errorf("%s: kernel %s: %w", d.info, k.Name, err)
	}
	run, err := d.compile(k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.info, err)
	}
	return &program{d: d, kernel: k, globals: k.Globals(), run: run}, nil
}

func (d *Device) checkLimits(k *ir.Kernel) error {
	c := d.info.Caps
	for _, l := range []struct {
		name         string
		want, allows int
	}{
		{"the number of buffers of a kernel", len(k.Globals()), c.MaxBuffers},
		{"the invocations of a workgroup", k.Invocations(), c.MaxInvocations},
		{"the bytes of workgroup memory", k.SharedBytes(), c.SharedBytes},
	} {
		if l.want > l.allows {
			return &backend.LimitError{Device: d.info.String(), Limit: l.name, Requested: int64(l.want), Allowed: int64(l.allows)}
		}
	}
	return nil
}

// Close waits for the work submitted and closes the device. A second call does nothing.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for d.running {
		d.idle.Wait()
	}
	return nil
}

// Timestamps reports that launches are timed.
func (d *Device) Timestamps() bool { return true }

// Synchronize waits for all work.
func (d *Device) Synchronize(ctx context.Context) error {
	d.mu.Lock()
	last, err := d.last, d.check()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if last == nil {
		return ctx.Err()
	}
	return last.Wait(ctx)
}

// takeFailure returns the error of a failed launch up to submission seq that nobody was told of.
func (d *Device) takeFailure(seq int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failedSeq > seq {
		return nil
	}
	err := d.failed
	d.failed = nil
	return err
}
