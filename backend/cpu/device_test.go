package cpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) backend.Device {
	t.Helper()
	d, err := backend.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// addKernel computes out[i] = x[i] + p.
func addKernel(t *testing.T) *ir.Kernel {
	b := ir.NewBuilder("add", 64, 1, 1)
	x, out := b.Buffer("x", ir.U32, ir.Read), b.Buffer("out", ir.U32, ir.Write)
	n, p := b.Param("n", ir.U32), b.Param("p", ir.U32)
	i := b.LinearID()
	b.If(b.Lt(i, n), func() { b.Store(out, i, b.Add(b.Load(x, i, 1), p)) }, nil)
	return must(b.Build())(t)
}

func words(vals ...uint32) []byte {
	out := make([]byte, 4*len(vals))
	for i, v := range vals {
		binary.NativeEndian.PutUint32(out[4*i:], v)
	}
	return out
}

func upload(t *testing.T, d backend.Device, data []byte) backend.Buffer {
	t.Helper()
	b := must(d.Alloc(int64(len(data)+3) / 4 * 4))(t)
	if err := b.Write(0, data); err != nil {
		t.Fatal(err)
	}
	return b
}

func whole(b backend.Buffer) backend.Region { return backend.Region{Buffer: b, Size: b.Size()} }

func TestInfo(t *testing.T) {
	i := open(t).Info()
	if i.String() != "cpu" || i.Type != backend.CPUDevice || i.Name == "" || i.Limits.MaxAllocBytes <= 0 || !backend.IsAvailable("cpu") {
		t.Errorf("info %+v", i)
	}
}

func TestLaunchesRunInOrder(t *testing.T) {
	d := open(t)
	p := must(d.Compile(addKernel(t)))(t)
	data := make([]byte, 4*1000)
	x, y := upload(t, d, data), upload(t, d, data)
	const rounds = 200
	var fence backend.Fence
	for range rounds {
		fence = must(d.Submit([]backend.Launch{
			{Program: p, Groups: [3]int{16, 1, 1}, Buffers: []backend.Region{whole(x), whole(y)}, Params: []uint32{1000, 1}},
			{Program: p, Groups: [3]int{16, 1, 1}, Buffers: []backend.Region{whole(y), whole(x)}, Params: []uint32{1000, 2}},
		}))(t)
	}
	y.Free() // pending work keeps it
	p.Free()
	if err := fence.Wait(context.Background()); err != nil || !fence.Done() {
		t.Fatal(err)
	}
	if err := x.Read(0, data); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if v := binary.NativeEndian.Uint32(data[4*i:]); v != 3*rounds {
			t.Fatalf("element %d is %d, want %d", i, v, 3*rounds)
		}
	}
	x.Free()
	x.Free()
}

func TestRegionsAndTransfers(t *testing.T) {
	d := open(t)
	p := must(d.Compile(addKernel(t)))(t)
	b := upload(t, d, make([]byte, 256))
	if err := b.Write(64, words(1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	must(d.Submit([]backend.Launch{{Program: p, Groups: [3]int{1, 1, 1}, Params: []uint32{3, 10},
		Buffers: []backend.Region{{Buffer: b, Offset: 64, Size: 12}, {Buffer: b, Offset: 128, Size: 12}}}}))(t)
	got := make([]byte, 12)
	if err := b.Read(128, got); err != nil || !bytes.Equal(got, words(11, 12, 13)) {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestMistakes(t *testing.T) {
	d := open(t)
	p := must(d.Compile(addKernel(t)))(t)
	x, freed := upload(t, d, make([]byte, 256)), upload(t, d, make([]byte, 256))
	freed.Free()
	good := func() backend.Launch {
		return backend.Launch{Program: p, Groups: [3]int{1, 1, 1}, Params: []uint32{4, 1}, Buffers: []backend.Region{whole(x), whole(x)}}
	}
	cases := []struct {
		name string
		edit func(l *backend.Launch)
		text string
	}{
		{"parameters", func(l *backend.Launch) { l.Params = nil }, "0 parameters were given, it has 2"},
		{"buffers", func(l *backend.Launch) { l.Buffers = l.Buffers[:1] }, "1 buffers were given, it has 2"},
		{"freed buffer", func(l *backend.Launch) { l.Buffers[1].Buffer = freed }, "buffer 1 (out) was freed"},
		{"offset", func(l *backend.Launch) { l.Buffers[0].Offset = 4 }, "no multiple of 64"},
		{"size", func(l *backend.Launch) { l.Buffers[0].Size = 260 }, "beyond its 256 bytes"},
		{"groups", func(l *backend.Launch) { l.Groups[1] = -1 }, "-1 groups in dimension 1"},
		{"program", func(l *backend.Launch) { l.Program = nil }, "no program"},
	}
	for _, tc := range cases {
		l := good()
		tc.edit(&l)
		if _, err := d.Submit([]backend.Launch{l}); err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.text)
		}
	}
	for name, err := range map[string]error{
		"read past the end":  x.Read(252, make([]byte, 8)),
		"odd offset":         x.Write(2, make([]byte, 4)),
		"read after free":    freed.Read(0, make([]byte, 4)),
		"negative offset":    x.Read(-4, make([]byte, 4)),
		"allocation of -4":   second(d.Alloc(-4)),
		"allocation of 6":    second(d.Alloc(6)),
		"kernel without end": second(d.Compile(nil)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestOutOfMemory(t *testing.T) {
	d := open(t)
	for _, size := range []int64{math.MaxInt64 &^ 3, 1 << 50} {
		_, err := d.Alloc(size)
		var oom *backend.OutOfMemoryError
		if !errors.As(err, &oom) || !errors.Is(err, backend.ErrOutOfMemory) || oom.Requested != size {
			t.Errorf("%d bytes: got %v, want out of memory", size, err)
		}
	}
}

func TestFailedLaunch(t *testing.T) {
	d := open(t)
	b := ir.NewBuilder("divide", 1, 1, 1)
	x := b.Buffer("x", ir.I32, ir.ReadWrite)
	b.Store(x, b.U32(0), b.Div(b.I32(1), b.Load(x, b.U32(0), 1)))
	p := must(d.Compile(must(b.Build())(t)))(t)
	mem := upload(t, d, words(0))
	launch := []backend.Launch{{Program: p, Groups: [3]int{1, 1, 1}, Buffers: []backend.Region{whole(mem)}}}
	for _, wait := range []struct {
		name string
		f    func(backend.Fence) error
	}{
		{"fence", func(f backend.Fence) error { return f.Wait(context.Background()) }},
		{"read", func(backend.Fence) error { return mem.Read(0, make([]byte, 4)) }},
		{"later fence", func(backend.Fence) error { return must(d.Submit(nil))(t).Wait(context.Background()) }},
	} {
		f := must(d.Submit(launch))(t)
		if err := wait.f(f); err == nil || !strings.Contains(err.Error(), "kernel divide: integer division by zero") {
			t.Errorf("%s: got %v", wait.name, err)
		}
		if err := mem.Read(0, make([]byte, 4)); err != nil {
			t.Errorf("%s: the device does not go on: %v", wait.name, err)
		}
	}
}

func TestClose(t *testing.T) {
	d := New()
	p := must(d.Compile(addKernel(t)))(t)
	b := upload(t, d, make([]byte, 64))
	must(d.Submit([]backend.Launch{{Program: p, Groups: [3]int{1, 1, 1}, Params: []uint32{4, 1}, Buffers: []backend.Region{whole(b), whole(b)}}}))(t)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{
		"alloc": second(d.Alloc(4)), "compile": second(d.Compile(addKernel(t))), "submit": second(d.Submit(nil)), "read": b.Read(0, make([]byte, 4)),
		"write": b.Write(0, make([]byte, 4)), "override": second(d.Override(addKernel(t))), "synchronize": d.Synchronize(context.Background()),
	} {
		if !errors.Is(err, backend.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	b.Free()
}

// TestConcurrentUse runs several users of one device at once; the race detector looks on.
func TestConcurrentUse(t *testing.T) {
	d := open(t)
	shared := must(d.Compile(addKernel(t)))(t)
	var wg sync.WaitGroup
	for user := range 6 {
		wg.Go(func() {
			p := shared
			if user%2 == 0 {
				p, _ = d.Compile(addKernel(t))
			}
			data := make([]byte, 4*5000)
			b, err := d.Alloc(int64(len(data)))
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Free()
			for round := range 20 {
				f, err := d.Submit([]backend.Launch{{Program: p, Groups: [3]int{79, 1, 1}, Params: []uint32{5000, uint32(user)}, Buffers: []backend.Region{whole(b), whole(b)}}})
				if err == nil && round%5 == 0 {
					err = f.Wait(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
			if err := b.Read(0, data); err != nil {
				t.Error(err)
			}
			if v := binary.NativeEndian.Uint32(data[4*4999:]); v != uint32(20*user) {
				t.Errorf("user %d: last element is %d, want %d", user, v, 20*user)
			}
		})
	}
	wg.Wait()
}
