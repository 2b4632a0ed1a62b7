package null

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

func init() { backend.Register("null", driver{}) }

type driver struct{}

func (driver) Devices() ([]backend.Info, error) { return []backend.Info{New(Config{}).Info()}, nil }

func (driver) Open(index int) (backend.Device, error) {
	if index != 0 {
		return nil, fmt.Errorf("null: there is one device, null:0; device %d was asked for", index)
	}
	return New(Config{}), nil
}

// Config says what a null device pretends to be. Zero values are defaults.
type Config struct {
	API    string // "null" by default; another driver's name makes kernel generators choose as for that driver
	Name   string
	Vendor string
	Type   backend.DeviceType // OtherDevice by default: kernels are generated as for a GPU
	Memory int64              // bytes that can be allocated; 0 is no bound
	Limits backend.Limits     // BufferOffsetAlign is 256 by default
	Caps   *ir.Caps           // ir.InterpCaps by default

	// NoRecord leaves out the record of launches ([Device.Launches]), which grows without bound.
	NoRecord bool
}

// Counts are what a device was asked to do.
type Counts struct {
	Allocs, Frees   int64 // buffers
	LiveBytes       int64 // of buffers that were not freed
	Compiles        int64
	LivePrograms    int64
	Submissions     int64
	Launches        int64 // without empty ones
	Writes, Reads   int64 // transfers
	WriteBytes      int64
	ReadBytes       int64
	Synchronization int64 // waits for a fence or the device
}

// Launch is a recorded launch.
type Launch struct {
	Kernel     *ir.Kernel // as given to Compile
	Submission int        // number of the submission, from 0
	backend.Launch
}

// Device is a device that runs nothing. All methods may be called from several goroutines.
type Device struct {
	info   backend.Info
	record bool

	mu         sync.Mutex
	closed     bool
	lost       error
	loseAfter  int64 // submissions left until the device is lost; negative: never
	allocsLeft int64 // allocations left until there is no memory; negative: no bound
	counts     Counts
	launches   []Launch
}

var (
	_ backend.Device       = (*Device)(nil)
	_ backend.Syncer       = (*Device)(nil)
	_ backend.LostReporter = (*Device)(nil)
)

// New returns a device.
func New(cfg Config) *Device {
	if cfg.API == "" {
		cfg.API = "null"
	}
	if cfg.Name == "" {
		cfg.Name = "null device"
	}
	if cfg.Vendor == "" {
		cfg.Vendor = "anygpu"
	}
	if cfg.Limits.BufferOffsetAlign == 0 {
		cfg.Limits.BufferOffsetAlign = 256
	}
	caps := ir.InterpCaps()
	if cfg.Caps != nil {
		caps = *cfg.Caps
	}
	return &Device{record: !cfg.NoRecord, loseAfter: -1, allocsLeft: -1, info: backend.Info{
		API: cfg.API, Name: cfg.Name, Vendor: cfg.Vendor, Driver: "null", DriverVersion: "1", APIVersion: "1", Type: cfg.Type,
		Memory: cfg.Memory, Limits: cfg.Limits, Caps: caps, Notes: []string{"runs nothing: for tests"},
	}}
}

// Info describes the device.
func (d *Device) Info() backend.Info {
	i := d.info
	i.Notes = slices.Clone(i.Notes)
	return i
}

// Lose makes the device lost: every later call returns a [*backend.LostError].
func (d *Device) Lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose("a test")
}

// LoseAfter makes the device lost at the wait for the submission after n more ones.
func (d *Device) LoseAfter(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loseAfter = int64(n)
}

// FailAllocAfter makes allocations fail for want of memory after n more ones; a negative n takes that back.
func (d *Device) FailAllocAfter(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.allocsLeft = int64(n)
}

// Lost reports whether the device was lost.
func (d *Device) Lost() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost != nil
}

// Counts returns what the device was asked to do so far.
func (d *Device) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// Launches returns the launches recorded so far, in order.
func (d *Device) Launches() []Launch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.launches)
}

// ResetLaunches forgets the recorded launches.
func (d *Device) ResetLaunches() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.launches = nil
}

func (d *Device) lose(during string) {
	if d.lost == nil {
		d.lost = &backend.LostError{Device: d.info.String(), During: during, Err: fmt.Errorf("told to be lost")}
	}
}

// check returns why nothing can be done. d.mu is held.
func (d *Device) check() error {
	if d.closed {
		return fmt.Errorf("%s: %w", d.info, backend.ErrClosed)
	}
	return d.lost
}

// Alloc returns a buffer without memory.
func (d *Device) Alloc(size int64) (backend.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, err
	}
	if size <= 0 || size%4 != 0 {
		return nil, fmt.Errorf("%s: cannot allocate %d bytes: the size must be a positive multiple of 4", d.info, size)
	}
	l := d.info.Limits
	if l.MaxAllocBytes > 0 && size > l.MaxAllocBytes {
		return nil, &backend.LimitError{Device: d.info.String(), Limit: "MaxAllocBytes", Requested: size, Allowed: l.MaxAllocBytes}
	}
	if live := d.counts.Allocs - d.counts.Frees; l.MaxAllocs > 0 && live >= int64(l.MaxAllocs) {
		return nil, &backend.LimitError{Device: d.info.String(), Limit: "MaxAllocs", Requested: live + 1, Allowed: int64(l.MaxAllocs)}
	}
	if d.allocsLeft == 0 || d.info.Memory > 0 && d.counts.LiveBytes+size > d.info.Memory {
		return nil, &backend.OutOfMemoryError{Device: d.info.String(), Requested: size, Allocated: d.counts.LiveBytes,
			Reserved: d.counts.LiveBytes, Total: d.info.Memory}
	}
	if d.allocsLeft > 0 {
		d.allocsLeft--
	}
	d.counts.Allocs++
	d.counts.LiveBytes += size
	return &buffer{d: d, size: size}, nil
}

// Compile verifies the kernel and lowers it to the device's capabilities.
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
	low, err := ir.Lower(k, d.info.Caps)
	if err == nil {
		err = ir.Verify(low)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.info, backend.FromIR(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Compiles++
	d.counts.LivePrograms++
	return &program{d: d, kernel: k, lowered: low, globals: k.Globals()}, nil
}

// Submit checks and records the launches.
func (d *Device) Submit(batch []backend.Launch) (backend.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, err
	}
	var recs []Launch
	for i, l := range batch {
		p, err := d.checkLaunch(l)
		if err != nil {
			return nil, fmt.Errorf("%s: launch %d: %w", d.info, i, err)
		}
		if l.Groups[0] == 0 || l.Groups[1] == 0 || l.Groups[2] == 0 {
			continue
		}
		d.counts.Launches++
		if d.record {
			l.Buffers, l.Params = slices.Clone(l.Buffers), slices.Clone(l.Params)
			recs = append(recs, Launch{Kernel: p.kernel, Submission: int(d.counts.Submissions), Launch: l})
		}
	}
	d.counts.Submissions++
	d.launches = append(d.launches, recs...)
	if d.loseAfter == 0 {
		d.lose("a submission")
	} else if d.loseAfter > 0 {
		d.loseAfter--
	}
	return &fence{d: d}, nil
}

// Synchronize waits for all work, of which there is none.
func (d *Device) Synchronize(ctx context.Context) error { return (&fence{d: d}).Wait(ctx) }

// Close closes the device. A second call does nothing.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}
