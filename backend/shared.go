package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Wrapper is a Device that stands for another. Devices from [Open] are wrappers; [As] looks through them.
type Wrapper interface {
	Unwrap() Device
}

// CloseHooker is a device that runs functions before it closes. Devices from [Open] do. The functions run once, when the
// last user closes the device, the latest first, while the device still works. On a closed device f runs at once.
type CloseHooker interface {
	OnClose(f func())
}

// LostReporter is a device that knows without being used that it was lost. [Open] opens a lost device anew.
type LostReporter interface {
	Lost() bool
}

// As returns dev as a T, where dev or a device it stands for implements it: the way to an optional interface of a
// device.
func As[T any](dev Device) (T, bool) {
	for dev != nil {
		if t, ok := dev.(T); ok {
			return t, true
		}
		w, ok := dev.(Wrapper)
		if !ok {
			break
		}
		dev = w.Unwrap()
	}
	var zero T
	return zero, false
}

// Open opens a device by its string: "cpu", "vulkan:1", "opencl" (the first OpenCL device that can be opened), "gpu" (the
// best GPU of any API), "gpu:1" (the second best). Opening a device that is open gives the same Device value again,
// comparable with ==; each Open needs its Close, and the device closes with the last. A device that was lost is opened
// anew: the value differs from the lost one, which its users still have to close.
//
// The Device stands for the driver's: it is a [Wrapper], a [CloseHooker], an [Overrider] and a [Syncer]. Other optional
// interfaces are found with [As].
//
// The error is a [*NameError] or an [*UnknownDeviceError], both matching [ErrUnknownDevice], or an [*UnavailableError].
func Open(name string) (Device, error) { return std.open(name) }

func (r *registry) open(name string) (Device, error) {
	info, err := r.find(name)
	if err != nil {
		return nil, err
	}
	return r.entry(info.API).openDevice(info.Index)
}

func (e *entry) openDevice(index int) (Device, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enumerate()
	if index >= len(e.infos) { // a rescan came between
		return nil, &UnknownDeviceError{Device: Name{e.name, index}.String(), Drivers: []string{e.name}, Devices: describe(e.infos), Err: e.err}
	}
	if s := e.open[index]; s != nil && !s.isLost() {
		s.refs++
		return s, nil
	}
	info := e.infos[index]
	if info.Problem != "" {
		return nil, &UnavailableError{Device: info.String(), Name: info.Name, Problem: info.Problem}
	}
	dev, err := e.openDriver(index)
	if err == nil {
		if err = e.selfTest(dev, index); err != nil {
			_ = dev.Close() // it is lost
		}
	}
	if err != nil {
		if e.openErr == nil {
			e.openErr = map[int]error{}
		}
		e.openErr[index] = err
		return nil, &UnavailableError{Device: info.String(), Name: info.Name, Err: err}
	}
	delete(e.openErr, index)
	s := &shared{Device: dev, entry: e, index: index, refs: 1}
	if e.open == nil {
		e.open = map[int]*shared{}
	}
	e.open[index] = s
	return s, nil
}

func (e *entry) openDriver(index int) (dev Device, err error) {
	defer func() {
		if p := recover(); p != nil {
			dev, err = nil, fmt.Errorf("the driver panicked: %v", p)
		}
	}()
	dev, err = e.driver.Open(index)
	if err == nil && dev == nil {
		err = errors.New("the driver returned no device")
	}
	return dev, err
}

// selfTest tests the optional paths of an opened device; what fails is also missing in lists of devices from then on. e.mu is held.
func (e *entry) selfTest(dev Device, index int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the driver panicked in its self-test: %v", p)
		}
	}()
	return selfTest(dev, &e.infos[index])
}

// shared is an opened device that counts its users.
type shared struct {
	Device
	entry *entry
	index int
	refs  int // guarded by entry.mu

	lost   atomic.Bool
	closed atomic.Bool

	mu    sync.Mutex
	hooks []func()
}

// Unwrap returns the driver's device.
func (s *shared) Unwrap() Device { return s.Device }

// isLost reports whether the device is known to be of no more use.
func (s *shared) isLost() bool {
	if s.lost.Load() {
		return true
	}
	l, ok := s.Device.(LostReporter)
	return ok && l.Lost()
}

// note remembers that the device was lost.
func (s *shared) note(err error) {
	if err != nil && errors.Is(err, ErrDeviceLost) {
		s.lost.Store(true)
	}
}

func (s *shared) check() error {
	if s.closed.Load() {
		return fmt.Errorf("%s: %w", Name{s.entry.name, s.index}, ErrClosed)
	}
	return nil
}

func (s *shared) Alloc(size int64) (Buffer, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	b, err := s.Device.Alloc(size)
	s.note(err)
	return b, err
}

func (s *shared) Compile(k *ir.Kernel) (p Program, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	// A kernel is a program's input to a compiler: a fault in an emitter must not end the process.
	defer func() {
		if v := recover(); v != nil {
			name := "<nil>"
			if k != nil {
				name = k.Name
			}
			p, err = nil, fmt.Errorf("%s: compiling kernel %s panicked: %v", Name{s.entry.name, s.index}, name, v)
		}
	}()
	p, err = s.Device.Compile(k)
	s.note(err)
	return p, FromIR(err)
}

func (s *shared) Submit(batch []Launch) (Fence, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	f, err := s.Device.Submit(batch)
	s.note(err)
	return f, err
}

// Override forwards to the device, or returns nil, nil where it is no Overrider.
func (s *shared) Override(k *ir.Kernel) (Program, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	o, ok := As[Overrider](s.Device)
	if !ok {
		return nil, nil
	}
	p, err := o.Override(k)
	s.note(err)
	return p, err
}

// Synchronize waits for all work of the device, by an empty submission where it is no Syncer.
func (s *shared) Synchronize(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	if y, ok := As[Syncer](s.Device); ok {
		err := y.Synchronize(ctx)
		s.note(err)
		return err
	}
	f, err := s.Submit(nil)
	if err != nil {
		return err
	}
	err = f.Wait(ctx)
	s.note(err)
	return err
}

// OnClose implements CloseHooker.
func (s *shared) OnClose(f func()) {
	s.mu.Lock()
	if !s.closed.Load() {
		s.hooks = append(s.hooks, f)
		f = nil
	}
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// Close gives up one use of the device; the last runs the hooks and closes it. More calls than opens do nothing.
func (s *shared) Close() error {
	e := s.entry
	e.mu.Lock()
	s.refs--
	last := s.refs == 0
	if s.refs < 0 {
		s.refs = 0
	}
	if last && e.open[s.index] == s {
		delete(e.open, s.index)
	}
	e.mu.Unlock()
	if !last {
		return nil
	}
	var errs []error
	for {
		s.mu.Lock()
		hooks := s.hooks
		s.hooks = nil
		if len(hooks) == 0 {
			s.closed.Store(true)
		}
		s.mu.Unlock()
		if len(hooks) == 0 {
			break
		}
		for _, h := range slices.Backward(hooks) {
			errs = append(errs, s.runHook(h))
		}
	}
	return errors.Join(append(errs, s.Device.Close())...)
}

func (s *shared) runHook(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: a function given to OnClose panicked: %v", Name{s.entry.name, s.index}, p)
		}
	}()
	f()
	return nil
}
