package tensor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/anygpu/anygpu/backend"
)

// DeviceProfile is what a device did while Profile ran: its kernels with the operators that they compute, and what the host did for
// them.
type DeviceProfile struct {
	Device  string // such as "vulkan:0"
	Start   time.Time
	Wall    time.Duration
	Kernels []KernelRun // in the order of their launches
	Host    []HostSpan

	// Serial reports that the device has no clock: each kernel was launched by itself and waited for, so that its time has the cost
	// of a launch and nothing overlaps.
	Serial bool
}

// KernelRun is one run of a kernel.
type KernelRun struct {
	Operators []string      // that it computes, in order
	Start     time.Duration // after the profile's start
	Duration  time.Duration
	File      string // the caller of the last operator: the first file outside the library, without its folder
	Line      int

	site *site // of the last operator
}

// Name returns the operators joined by "+".
func (k *KernelRun) Name() string { return strings.Join(k.Operators, "+") }

// HostSpan is work of the host: "submit" is scheduling and handing over of what is pending, "wait" is waiting for the device.
type HostSpan struct {
	Name     string
	Start    time.Duration // after the profile's start
	Duration time.Duration
}

// recorder collects a profile.
type recorder struct {
	serial bool
	start  time.Time

	names []string // operators of the next launch; guarded by the engine's mutex, as is all but hosts
	at    *site
	runs  []recorded

	mu    sync.Mutex
	hosts []HostSpan
}

type recorded struct {
	names  []string
	at     *site
	timing *backend.Timing
}

// Profile runs f and records what dev does meanwhile. Work that f leaves pending is run and belongs to it; what was pending before
// does not. One Profile may be at work for a device at a time. The error is f's, or that of the device; the profile is then of what
// ran.
//
// Kernels are timed by the device where it can, and keep their order and overlap; elsewhere see DeviceProfile.Serial.
func Profile(dev backend.Device, f func() error) (*DeviceProfile, error) {
	e, err := engineFor(dev)
	if err != nil {
		return nil, err
	}
	if err := Synchronize(dev); err != nil {
		return nil, err
	}
	ts, ok := backend.As[backend.Timestamper](dev)
	r := &recorder{serial: !ok || !ts.Timestamps(), start: time.Now()}
	e.mu.Lock()
	if e.prof != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("profile: one is at work on %s: wait for its end", e.name)
	}
	e.prof = r
	e.mu.Unlock()
	defer func() { // also when f panics
		e.mu.Lock()
		e.prof = nil
		e.mu.Unlock()
	}()
	err = f()
	err = errors.Join(err, Synchronize(dev))
	return r.profile(e.name), err
}

// operators says what the next launches compute; eng.mu is held.
func (r *recorder) operators(ns ...*node) {
	r.names = nil // launches keep the old slice
	for _, n := range ns {
		if n != nil {
			r.names = append(r.names, n.op)
			r.at = n.site
		}
	}
}

// launch queues a launch and has it timed; eng.mu is held.
func (r *recorder) launch(e *engine, l backend.Launch) error {
	t := &backend.Timing{}
	r.runs = append(r.runs, recorded{r.names, r.at, t})
	if !r.serial {
		l.Timing = t
		return e.queue.Add(l)
	}
	if err := e.queue.Wait(context.Background()); err != nil {
		return err
	}
	t.Start = time.Now()
	err := e.queue.Add(l)
	if err == nil {
		err = e.queue.Wait(context.Background())
	}
	t.End = time.Now()
	return err
}

// host notes the begin of a span and returns what notes its end. A nil recorder notes nothing.
func (r *recorder) host(name string) func() {
	if r == nil {
		return func() {}
	}
	begin := time.Now()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hosts = append(r.hosts, HostSpan{name, begin.Sub(r.start), time.Since(begin)})
	}
}

// profile returns what was recorded, after the device is done.
func (r *recorder) profile(device string) *DeviceProfile {
	p := &DeviceProfile{Device: device, Start: r.start, Wall: time.Since(r.start), Serial: r.serial, Host: r.hosts}
	for _, run := range r.runs {
		if run.timing.End.IsZero() {
			continue // its submission failed
		}
		k := KernelRun{Operators: run.names, Start: run.timing.Start.Sub(r.start), Duration: run.timing.End.Sub(run.timing.Start), site: run.at}
		k.File, k.Line = run.at.resolve()
		p.Kernels = append(p.Kernels, k)
	}
	return p
}
