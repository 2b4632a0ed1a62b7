package null_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/shaders/ir"
)

// double returns a kernel with two buffers and a parameter.
func double(t *testing.T) *ir.Kernel {
	t.Helper()
	b := ir.NewBuilder("double", 64, 1, 1)
	in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	i := b.GlobalID(0)
	b.If(b.Lt(i, b.Param("n", ir.U32)), func() { b.Store(out, i, b.Mul(b.Load(in, i, 1), b.F32(2))) }, nil)
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func compile(t *testing.T, d *null.Device) backend.Program {
	t.Helper()
	p, err := d.Compile(double(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func alloc(t *testing.T, d *null.Device, n int64) backend.Buffer {
	t.Helper()
	b, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRegistered(t *testing.T) {
	if !backend.IsAvailable("null") || backend.IsAvailable("null:1") || backend.IsAvailable("gpu") {
		t.Error("want null, no null:1, and that it is no GPU")
	}
	t.Setenv(backend.EnvDevice, "")
	if got := backend.DefaultName(); got != "" { // no cpu is registered here
		t.Errorf("the default is %q", got)
	}
	for _, i := range backend.List() {
		if i.API == "null" && backend.Why(i) != "no GPU: used only by name" {
			t.Errorf("why: %q", backend.Why(i))
		}
	}
}

func TestLaunchesAreRecorded(t *testing.T) {
	d := null.New(null.Config{})
	p := compile(t, d)
	buf := alloc(t, d, 4096)
	l := backend.Launch{Program: p, Groups: [3]int{4, 1, 1}, Params: []uint32{200}, Cost: 1600,
		Buffers: []backend.Region{{Buffer: buf, Size: 800}, {Buffer: buf, Offset: 1024, Size: 800}}}
	empty := l
	empty.Groups[1] = 0
	for range 2 {
		f, err := d.Submit([]backend.Launch{l, empty, l})
		if err != nil || !f.Done() || f.Wait(t.Context()) != nil {
			t.Fatalf("Submit: %v", err)
		}
	}
	l.Buffers[0].Offset = 99 // no longer the device's
	rec := d.Launches()
	if len(rec) != 4 || rec[0].Submission != 0 || rec[3].Submission != 1 || rec[3].Kernel.Name != "double" || rec[3].Groups != [3]int{4, 1, 1} ||
		rec[3].Params[0] != 200 || rec[3].Buffers[0].Offset != 0 || rec[3].Buffers[1].Offset != 1024 || rec[3].Cost != 1600 {
		t.Errorf("recorded %+v", rec)
	}
	d.ResetLaunches()
	if len(d.Launches()) != 0 {
		t.Error("launches are left after ResetLaunches")
	}
	data := []byte{1, 2, 3, 4, 5}
	if err := errors.Join(buf.Write(4, data), buf.Read(8, data), d.Synchronize(t.Context())); err != nil {
		t.Error(err)
	}
	if string(data) != "\x00\x00\x00\x00\x00" {
		t.Errorf("Read gave %v, want zeros", data)
	}
	buf.Free()
	buf.Free()
	p.Free()
	p.Free()
	want := null.Counts{Allocs: 1, Frees: 1, Compiles: 1, Submissions: 2, Launches: 4, Writes: 1, Reads: 1, WriteBytes: 5, ReadBytes: 5, Synchronization: 3}
	if got := d.Counts(); got != want {
		t.Errorf("counts\n got %+v\nwant %+v", got, want)
	}
	quiet := null.New(null.Config{NoRecord: true})
	l = backend.Launch{Program: compile(t, quiet), Groups: [3]int{1, 1, 1}, Params: []uint32{1}}
	for range 2 {
		l.Buffers = append(l.Buffers, backend.Region{Buffer: alloc(t, quiet, 4), Size: 4})
	}
	if _, err := quiet.Submit([]backend.Launch{l}); err != nil || len(quiet.Launches()) != 0 || quiet.Counts().Launches != 1 {
		t.Errorf("NoRecord: %v, %d recorded, counts %+v", err, len(quiet.Launches()), quiet.Counts())
	}
}

func TestFaultyLaunches(t *testing.T) {
	d, other := null.New(null.Config{}), null.New(null.Config{})
	p, gone := compile(t, d), compile(t, d)
	gone.Free()
	buf, freed, foreign := alloc(t, d, 4096), alloc(t, d, 4096), alloc(t, other, 4096)
	freed.Free()
	whole := backend.Region{Buffer: buf, Size: 4096}
	for _, c := range []struct {
		change func(l *backend.Launch)
		want   string
	}{
		{func(l *backend.Launch) { l.Program = nil }, "null:0: launch 1: a <nil> is no program of this device"},
		{func(l *backend.Launch) { l.Program = compile(t, other) }, "null:0: launch 1: a *null.program is no program of this device"},
		{func(l *backend.Launch) { l.Program = gone }, "null:0: launch 1: kernel double: its program was freed"},
		{func(l *backend.Launch) { l.Groups[2] = -1 }, "null:0: launch 1: kernel double: -1 groups in dimension 2, where 0 to 1073741824 are possible"},
		{func(l *backend.Launch) { l.Groups[0] = 1<<30 + 1 }, "null:0: launch 1: kernel double: 1073741825 groups in dimension 0, where 0 to 1073741824 are possible"},
		{func(l *backend.Launch) { l.Params = nil }, "null:0: launch 1: kernel double: 0 parameters were given, it has 1"},
		{func(l *backend.Launch) { l.Buffers = l.Buffers[:1] }, "null:0: launch 1: kernel double: 1 buffers were given, it has 2"},
		{func(l *backend.Launch) { l.Buffers[1].Buffer = nil }, "null:0: launch 1: kernel double: buffer 1 (out): a <nil> is no buffer of this device"},
		{func(l *backend.Launch) { l.Buffers[1].Buffer = foreign }, "null:0: launch 1: kernel double: buffer 1 (out): a *null.buffer is no buffer of this device"},
		{func(l *backend.Launch) { l.Buffers[1].Buffer = freed }, "null:0: launch 1: kernel double: buffer 1 (out) was freed"},
		{func(l *backend.Launch) { l.Buffers[1].Offset = 4 }, "null:0: launch 1: kernel double: buffer 1 (out): offset 4 is no multiple of 256"},
		{func(l *backend.Launch) { l.Buffers[1].Size = 0 }, "null:0: launch 1: kernel double: buffer 1 (out): size 0 is no positive multiple of 4"},
		{func(l *backend.Launch) { l.Buffers[1].Size = 6 }, "null:0: launch 1: kernel double: buffer 1 (out): size 6 is no positive multiple of 4"},
		{func(l *backend.Launch) { l.Buffers[1].Offset = 256 }, "null:0: launch 1: kernel double: buffer 1 (out): bytes 256 to 4352 are beyond its 4096 bytes"},
	} {
		good := backend.Launch{Program: p, Groups: [3]int{1, 1, 1}, Params: []uint32{1}, Buffers: []backend.Region{whole, whole}}
		bad := good
		bad.Buffers = []backend.Region{whole, whole}
		c.change(&bad)
		if _, err := d.Submit([]backend.Launch{good, bad}); err == nil || err.Error() != c.want {
			t.Errorf("Submit: %v, want %s", err, c.want)
		}
	}
	if n := len(d.Launches()); n != 0 {
		t.Errorf("%d launches of refused batches were recorded", n)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{buf.Write(2, nil), "null:0: write at byte 2: the offset must be a multiple of 4"},
		{buf.Read(-4, nil), "null:0: read at byte -4: the offset must be a multiple of 4"},
		{buf.Write(4092, make([]byte, 5)), "null:0: write of 5 bytes at byte 4092 reaches beyond the buffer's 4096 bytes"},
		{freed.Read(0, nil), "null:0: read of a buffer that was freed"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
}

func TestCompileChecks(t *testing.T) {
	d := null.New(null.Config{})
	if _, err := d.Compile(nil); err == nil {
		t.Error("a nil kernel was compiled")
	}
	limited := func(change func(*ir.Caps)) *null.Device {
		c := ir.InterpCaps()
		change(&c)
		return null.New(null.Config{Caps: &c})
	}
	b := ir.NewBuilder("shared", 64, 1, 1)
	b.SharedArray("tile", ir.F32, 256)
	shared, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	b = ir.NewBuilder("f64", 64, 1, 1)
	out := b.Buffer("out", ir.F64, ir.Write)
	b.Store(out, b.GlobalID(0), b.Const(ir.Scalar(ir.F64), 1))
	f64, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d  *null.Device
		k  *ir.Kernel
		is error
	}{
		{limited(func(c *ir.Caps) { c.MaxBuffers = 1 }), double(t), backend.ErrLimit},
		{limited(func(c *ir.Caps) { c.MaxInvocations = 32 }), double(t), backend.ErrLimit},
		{limited(func(c *ir.Caps) { c.SharedBytes = 1000 }), shared, backend.ErrLimit},
		{limited(func(c *ir.Caps) { c.F64 = false }), f64, backend.ErrUnsupported},
	} {
		p, err := c.d.Compile(c.k)
		if p != nil || !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), "null:0: ") || !strings.Contains(err.Error(), c.k.Name) {
			t.Errorf("Compile: %v, want an error that names the kernel %s and matches %v", err, c.k.Name, c.is)
		}
		if _, err := d.Compile(c.k); err != nil {
			t.Errorf("Compile where nothing is missing: %v", err)
		}
	}
	k := double(t)
	p, err := d.Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	if orig, low := null.Kernels(p); orig != k || low == nil || low.Name != "double" {
		t.Errorf("Kernels = %v, %v", orig, low)
	}
	if k, low := null.Kernels(nil); k != nil || low != nil {
		t.Error("Kernels of no program")
	}
}

func TestOutOfMemory(t *testing.T) {
	d := null.New(null.Config{Memory: 8192, Limits: backend.Limits{MaxAllocBytes: 6000, MaxAllocs: 2}})
	a := alloc(t, d, 4096)
	for _, c := range []struct {
		size int64
		is   error
		want string
	}{
		{0, nil, "null:0: cannot allocate 0 bytes: the size must be a positive multiple of 4"},
		{6, nil, "null:0: cannot allocate 6 bytes: the size must be a positive multiple of 4"},
		{6004, backend.ErrLimit, "null:0: MaxAllocBytes is 6000, but 6004 was requested"},
		{4100, backend.ErrOutOfMemory, "null:0: out of memory: tried to allocate 4100 bytes; 4096 bytes are in use by tensors, 4096 bytes are reserved, the device has 8192 bytes"},
	} {
		if _, err := d.Alloc(c.size); err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("Alloc(%d): %v, want %s", c.size, err, c.want)
		}
	}
	b := alloc(t, d, 4)
	if _, err := d.Alloc(4); !errors.Is(err, backend.ErrLimit) || err.Error() != "null:0: MaxAllocs is 2, but 3 was requested" {
		t.Errorf("a third allocation: %v", err)
	}
	a.Free()
	b.Free()
	d.FailAllocAfter(1)
	alloc(t, d, 4).Free()
	if _, err := d.Alloc(4); !errors.Is(err, backend.ErrOutOfMemory) {
		t.Errorf("FailAllocAfter(1): %v", err)
	}
	d.FailAllocAfter(-1)
	alloc(t, d, 4)
}

func TestLostAndClosed(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*null.Device)
		is   error
		want string
	}{
		{"lost", func(d *null.Device) { d.Lose() }, backend.ErrDeviceLost,
			"null:0: device lost during a test: told to be lost; close it and open it again, its contents are gone"},
		{"closed", func(d *null.Device) { d.Close() }, backend.ErrClosed, "null:0: device is closed"},
	} {
		d := null.New(null.Config{})
		buf := alloc(t, d, 64)
		f, err := d.Submit(nil)
		if err != nil {
			t.Fatal(err)
		}
		c.end(d)
		_, allocErr := d.Alloc(4)
		_, compileErr := d.Compile(nil)
		_, submitErr := d.Submit(nil)
		for call, err := range map[string]error{"Alloc": allocErr, "Compile": compileErr, "Submit": submitErr, "Write": buf.Write(0, nil),
			"Read": buf.Read(0, nil), "Wait": f.Wait(t.Context()), "Synchronize": d.Synchronize(t.Context())} {
			if !errors.Is(err, c.is) || err.Error() != c.want {
				t.Errorf("%s of a %s device: %v, want %s", call, c.name, err, c.want)
			}
		}
		buf.Free()
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestLoseAfter(t *testing.T) {
	d := null.New(null.Config{})
	d.LoseAfter(1)
	f, err := d.Submit(nil)
	if err != nil || f.Wait(t.Context()) != nil || d.Lost() {
		t.Fatalf("the first submission: %v", err)
	}
	f, err = d.Submit(nil)
	if err != nil {
		t.Fatalf("the second submission: %v", err)
	}
	if err := f.Wait(t.Context()); !errors.Is(err, backend.ErrDeviceLost) || !d.Lost() {
		t.Errorf("the wait for it: %v", err)
	}
}

// A lost device is opened anew, and other devices go on.
func TestLostDeviceThroughRegistry(t *testing.T) {
	a, err := backend.Open("null")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := backend.As[*null.Device](a)
	n.Lose()
	b, err := backend.Open("null")
	if err != nil || b == a {
		t.Fatalf("Open gave the lost device again: %v", err)
	}
	if _, err := b.Alloc(4); err != nil {
		t.Errorf("the new device: %v", err)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	d := null.New(null.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Synchronize(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Synchronize: %v", err)
	}
}

func TestConcurrently(t *testing.T) {
	d := null.New(null.Config{})
	p := compile(t, d)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				b, err := d.Alloc(256)
				if err != nil {
					t.Error(err)
					return
				}
				r := backend.Region{Buffer: b, Size: 256}
				f, err := d.Submit([]backend.Launch{{Program: p, Groups: [3]int{1, 1, 1}, Params: []uint32{1}, Buffers: []backend.Region{r, r}}})
				if err != nil || f.Wait(context.Background()) != nil {
					t.Error(err)
				}
				d.Counts()
				b.Free()
			}
		})
	}
	wg.Wait()
	if c := d.Counts(); c.Launches != 800 || c.LiveBytes != 0 {
		t.Errorf("counts %+v", c)
	}
}
