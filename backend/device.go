package backend

import (
	"context"
	"time"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// Driver finds and opens the devices of one API. Drivers register themselves with [Register] in init.
type Driver interface {
	// Devices lists what is there, in a stable order. It never panics; an error says why there is nothing at all
	// (no loader, no platform), with what was looked for. A device that can be listed but not opened is listed with
	// Info.Problem set.
	Devices() ([]Info, error)

	// Open opens device index of the last enumeration.
	Open(index int) (Device, error)
}

// Device is an opened device. Its methods may be called from several goroutines. After Close, and after the device
// was lost, every method returns an error ([ErrClosed], [ErrDeviceLost]); Close itself is then quiet.
type Device interface {
	Info() Info

	// Alloc returns size bytes of device memory, uninitialised; size is a positive multiple of 4. An [*OutOfMemoryError]
	// or a [*LimitError] says what was asked for and what was possible. The caching allocator [Allocator] sits above it:
	// a driver makes one allocation of the API for each call.
	Alloc(size int64) (Buffer, error)

	// Compile makes a kernel ready to run: it lowers the kernel to Info().Caps, emits and compiles it. The error
	// contains the compiler's log and the kernel's name.
	Compile(k *ir.Kernel) (Program, error)

	// Submit runs the launches in order, after everything submitted before. A launch sees the writes of the launches and
	// transfers before it. Submit may return before the work is done; the launches' buffers and programs may be
	// freed by the caller right after Submit returns (the device defers it). The device does not keep batch, nor the slices of
	// buffers in it.
	Submit(batch []Launch) (Fence, error)

	Close() error
}

// Buffer is device memory. Transfers are ordered with the work submitted before and after them.
type Buffer interface {
	Size() int64

	// Write copies data to the buffer from byte offset on; both are multiples of 4, or data reaches to the end of a
	// tensor whose padding to 4 bytes is part of the buffer. When it returns, data may be reused.
	Write(offset int64, data []byte) error

	// Read waits for the work submitted so far that may write the buffer, and copies from it.
	Read(offset int64, data []byte) error

	// Free gives the memory back, after the work submitted so far is done. A second call does nothing.
	Free()
}

// Program is a compiled kernel.
type Program interface {
	Free()
}

// Fence is the completion of a submission.
type Fence interface {
	// Wait returns when the submission and all before it are done, with the error that a lost device or a failed
	// launch left, or when ctx ends.
	Wait(ctx context.Context) error
	// Done reports without waiting whether the work has finished (also when it failed).
	Done() bool
}

// Region is a part of a buffer, as a kernel binding. Offset is a multiple of Info.Limits.BufferOffsetAlign; Size is a
// multiple of 4.
type Region struct {
	Buffer Buffer
	Offset int64
	Size   int64
}

// Launch is one run of a program.
type Launch struct {
	Program Program
	Groups  [3]int   // number of workgroups; a zero makes the launch empty
	Buffers []Region // one for each global buffer of the kernel, in order of binding
	Params  []uint32 // one for each scalar parameter, in order
	Cost    float64  // estimated floating-point operations or bytes, whichever is more; 0 if unknown. Bounds a submission's length
	Timing  *Timing  // where a Timestamper writes when the launch ran; nil if nobody asks
}

// Timing is when a launch ran, in the host's clock as near as the driver can tell.
type Timing struct {
	Start, End time.Time
}

// DeviceType is what kind of hardware a device is.
type DeviceType int

// The device types.
const (
	OtherDevice DeviceType = iota
	CPUDevice              // a CPU, including software rasterisers and CPU OpenCL devices
	IntegratedGPU
	DiscreteGPU
	VirtualGPU
	Accelerator
)

// String returns a word for people and JSON.
func (t DeviceType) String() string {
	names := [...]string{"other", "cpu", "integrated gpu", "discrete gpu", "virtual gpu", "accelerator"}
	if t < 0 || int(t) >= len(names) {
		return names[OtherDevice] // a driver's mistake, not worth a panic
	}
	return names[t]
}

// IsGPU reports whether t is a GPU (and so may be the default device).
func (t DeviceType) IsGPU() bool { return t == IntegratedGPU || t == DiscreteGPU || t == VirtualGPU }

// Limits are a device's limits on memory.
type Limits struct {
	MaxAllocBytes     int64 // one allocation
	MaxAllocs         int   // allocations alive at once; 0 if unlimited
	BufferOffsetAlign int64 // alignment of Region.Offset, a power of two
}

// Info describes a device.
type Info struct {
	API           string // the driver's registered name: "cpu", "vulkan", "opencl"
	Index         int
	Name          string // as the API reports it
	Vendor        string
	Driver        string // name of the driver or platform
	DriverVersion string
	APIVersion    string
	Type          DeviceType
	UUID          [16]byte // zero if the API has none; equal for one GPU seen through two drivers
	Memory        int64    // bytes of the device's main memory, 0 if unknown
	Limits        Limits
	Caps          ir.Caps
	Problem       string   // why the device cannot be opened, or empty
	Notes         []string // what a person should know, such as a feature that was switched off
}

// String returns the device string, such as "vulkan:0"; the CPU is "cpu".
func (i Info) String() string {
	return Name{i.API, i.Index}.String()
}

// Target returns what kernel generators need to know of the device.
func (i Info) Target() lib.Target {
	return lib.Target{API: i.API, GPU: i.Type != CPUDevice, Vendor: i.Vendor, Caps: i.Caps}
}

// --- optional interfaces of a Device, found by type assertion ---

// Overrider is a device with native programs for whole kernel templates (Kernel.Template); the CPU's matrix product
// uses it. Override returns nil, nil if it has none for this kernel.
type Overrider interface {
	Override(k *ir.Kernel) (Program, error)
}

// Timestamper is a device that measures when its kernels run: if Timestamps reports true, it fills Launch.Timing before
// the submission's fence is done.
type Timestamper interface {
	Timestamps() bool
}

// Preparer is a device whose compiler takes long to start. Prepare compiles kernels, which [Device.Compile] will be asked
// for, in one go. It is a hint: Compile gives the same programs and errors without it. What nobody asks for is kept until the
// device closes.
type Preparer interface {
	Prepare(kernels []*ir.Kernel)
}

// Syncer is a device that can wait for all its work without a fence.
type Syncer interface {
	Synchronize(ctx context.Context) error
}
