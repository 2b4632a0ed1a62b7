package tensor

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// checked is a device that runs every kernel with the checking executor: out-of-bounds access, races, and reads of memory
// that nobody wrote are errors. It is slow, and meant for small tensors.
type checked struct {
	mu   sync.Mutex
	api  string
	caps ir.Caps
	room int64 // bytes that may be allocated; negative: any number
	lost bool
	kind backend.DeviceType
}

func newChecked(api string) *checked {
	caps := ir.InterpCaps()
	caps.MaxInvocations = 64
	return &checked{api: api, caps: caps, room: -1, kind: backend.OtherDevice}
}

// newCheckedCPU has the kernels of a driver that runs on the CPU.
func newCheckedCPU(api string) *checked {
	d := newChecked(api)
	d.kind = backend.CPUDevice
	return d
}

func (d *checked) Info() backend.Info {
	return backend.Info{API: d.api, Name: "checking executor", Type: d.kind, Caps: d.caps,
		Limits: backend.Limits{MaxAllocBytes: 1 << 30, BufferOffsetAlign: 16}}
}

type checkedBuffer struct {
	d    *checked
	data []byte
}

func (d *checked) Alloc(size int64) (backend.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive("allocation"); err != nil {
		return nil, err
	}
	if d.room >= 0 && size > d.room {
		return nil, &backend.OutOfMemoryError{Device: d.Info().String(), Requested: size}
	}
	if d.room >= 0 {
		d.room -= size
	}
	b := &checkedBuffer{d, make([]byte, size)}
	for i := range b.data {
		b.data[i] = 0xfb // a NaN, should anybody read it
	}
	return b, nil
}

func (b *checkedBuffer) Size() int64 { return int64(len(b.data)) }
func (b *checkedBuffer) Free()       {}
func (b *checkedBuffer) Write(off int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	copy(b.data[off:], data)
	return b.d.alive("write")
}
func (b *checkedBuffer) Read(off int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	copy(data, b.data[off:])
	return b.d.alive("read")
}

type checkedProgram struct{ k *ir.Kernel }

func (checkedProgram) Free() {}

func (d *checked) Compile(k *ir.Kernel) (backend.Program, error) {
	l, err := ir.Lower(k, d.caps)
	if err != nil {
		return nil, err
	}
	return checkedProgram{l}, nil
}

func (d *checked) Submit(batch []backend.Launch) (backend.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive("submission"); err != nil {
		return nil, err
	}
	for _, l := range batch {
		var bufs [][]byte
		for _, r := range l.Buffers {
			bufs = append(bufs, slices.Clip(r.Buffer.(*checkedBuffer).data[r.Offset:r.Offset+r.Size]))
		}
		if err := interp.Check(l.Program.(checkedProgram).k, l.Groups, bufs, l.Params, interp.CheckOptions{}); err != nil {
			return nil, err
		}
	}
	return fence{}, nil
}

func (d *checked) Close() error { return nil }

// alive returns the error of a lost device; d.mu is held.
func (d *checked) alive(during string) error {
	if d.lost {
		return &backend.LostError{Device: d.Info().String(), During: during, Err: errors.New("injected")}
	}
	return nil
}

type fence struct{}

func (fence) Wait(context.Context) error { return nil }
func (fence) Done() bool                 { return true }
