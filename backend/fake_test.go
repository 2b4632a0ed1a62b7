package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/anygpu/anygpu/shaders/ir"
)

// fakeDriver is a driver of fake devices.
type fakeDriver struct {
	infos     []Info
	err       error
	panicking bool
	openErr   map[int]error
	lines     []string

	enumerations atomic.Int64
	mu           sync.Mutex
	opened       []*fakeDevice
}

func (d *fakeDriver) Devices() ([]Info, error) {
	d.enumerations.Add(1)
	if d.panicking {
		panic("no such function: vkEnumerate")
	}
	return d.infos, d.err
}

func (d *fakeDriver) Open(i int) (Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.openErr[i]; err != nil {
		return nil, err
	}
	dev := &fakeDevice{info: d.infos[i]}
	d.opened = append(d.opened, dev)
	return dev, nil
}

// diagnosingDriver is one that implements Diagnoser.
type diagnosingDriver struct{ *fakeDriver }

func (d diagnosingDriver) Diagnose() []string {
	if d.panicking {
		panic("again")
	}
	return d.lines
}

// fakeDevice is a device with the required methods only.
type fakeDevice struct {
	info   Info
	closes atomic.Int64

	mu        sync.Mutex
	allocErr  func(size int64) error
	submitErr error
	compile   func(*ir.Kernel) (Program, error)
	live      map[*fakeBuffer]bool
	batches   []int // lengths of the submissions
	costs     []float64
	fence     func() Fence
	log       []string
}

func (d *fakeDevice) Info() Info { return d.info }

func (d *fakeDevice) Alloc(size int64) (Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size <= 0 || size%4 != 0 {
		return nil, fmt.Errorf("bad size %d", size)
	}
	if d.allocErr != nil {
		if err := d.allocErr(size); err != nil {
			return nil, err
		}
	}
	b := &fakeBuffer{d: d, size: size}
	if d.live == nil {
		d.live = map[*fakeBuffer]bool{}
	}
	d.live[b] = true
	return b, nil
}

func (d *fakeDevice) Compile(k *ir.Kernel) (Program, error) {
	if d.compile != nil {
		return d.compile(k)
	}
	return nil, nil
}

func (d *fakeDevice) Submit(batch []Launch) (Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.submitErr != nil {
		return nil, d.submitErr
	}
	d.batches = append(d.batches, len(batch))
	cost := 0.0
	for _, l := range batch {
		cost += l.Cost
	}
	d.costs = append(d.costs, cost)
	if d.fence != nil {
		return d.fence(), nil
	}
	return doneFence{}, nil
}

func (d *fakeDevice) Close() error {
	d.closes.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, "close")
	return nil
}

func (d *fakeDevice) reserved() (bytes int64, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for b := range d.live {
		bytes += b.size
	}
	return bytes, len(d.live)
}

type fakeBuffer struct {
	d    *fakeDevice
	size int64
}

func (b *fakeBuffer) Size() int64               { return b.size }
func (b *fakeBuffer) Write(int64, []byte) error { return nil }
func (b *fakeBuffer) Read(int64, []byte) error  { return nil }
func (b *fakeBuffer) Free() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if !b.d.live[b] {
		panic("buffer freed twice")
	}
	delete(b.d.live, b)
}

// chanFence is done when its channel is closed.
type chanFence struct {
	done chan struct{}
	err  error
}

func (f *chanFence) Wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *chanFence) Done() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

var errLost = &LostError{Device: "fake:0", During: "a submission", Err: errors.New("VK_ERROR_DEVICE_LOST")}

// newRegistry returns a registry with the given drivers and environment.
func newRegistry(env string, drivers map[string]Driver) *registry {
	r := &registry{getenv: func(k string) string {
		if k == EnvDevice {
			return env
		}
		return ""
	}}
	for n, d := range drivers {
		r.register(n, d)
	}
	return r
}

func gpu(name string, t DeviceType, gib int64) Info {
	return Info{Name: name, Type: t, Memory: gib << 30}
}
