//go:build cgo

package opencl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
	"github.com/anygpu/anygpu/shaders/clc"
	"github.com/anygpu/anygpu/shaders/ir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eachDevice runs f on every OpenCL device that can be opened. A machine without any fails in CI.
func eachDevice(t *testing.T, f func(t *testing.T, d *device)) {
	t.Helper()
	drv := Driver()
	infos, err := drv.Devices()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ran := 0
	for i, info := range infos {
		if info.Problem != "" {
			continue
		}
		ran++
		t.Run(info.String()+" "+info.Driver, func(t *testing.T) {
			dev, err := drv.Open(i)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := dev.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			f(t, dev.(*device))
		})
	}
	if ran == 0 && os.Getenv("CI") != "" {
		t.Fatal("no OpenCL device can be opened")
	}
}

func kernel(t testing.TB, name string, local int, f func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	b := ir.NewBuilder(name, local, 1, 1)
	f(b)
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func compile(t testing.TB, d backend.Device, k *ir.Kernel) backend.Program {
	t.Helper()
	p, err := d.Compile(k)
	if err != nil {
		var be *BuildError
		if errors.As(err, &be) {
			t.Logf("%s", be.Source)
		}
		t.Fatal(err)
	}
	return p
}

func alloc(t testing.TB, d backend.Device, size int64) backend.Buffer {
	t.Helper()
	b, err := d.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// addKernel is x[i] += c for i < n.
func addKernel(t testing.TB) *ir.Kernel {
	return kernel(t, "add_scalar", 64, func(b *ir.Builder) {
		x := b.Buffer("x", ir.U32, ir.ReadWrite)
		n, c := b.Param("n", ir.U32), b.Param("c", ir.U32)
		i := b.LinearID()
		b.If(b.Lt(i, n), func() { b.Store(x, i, b.Add(b.Load(x, i, 1), c)) }, nil)
	})
}

func launch(p backend.Program, b backend.Buffer, n int, params ...uint32) backend.Launch {
	return backend.Launch{Program: p, Groups: [3]int{(n + 63) / 64, 1, 1}, Buffers: []backend.Region{{Buffer: b, Size: b.Size()}}, Params: params}
}

func words(data []byte) []uint32 {
	out := make([]uint32, len(data)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}

func wait(t testing.TB, f backend.Fence) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if !f.Done() {
		t.Fatal("a fence that was waited for is not done")
	}
}

func TestInfo(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		i := d.Info()
		if i.API != "opencl" || i.Name == "" || i.Driver == "" || i.DriverVersion == "" || !strings.HasPrefix(i.APIVersion, "OpenCL ") {
			t.Errorf("incomplete: %+v", i)
		}
		if i.Memory <= 0 || i.Limits.MaxAllocBytes <= 0 || i.Limits.MaxAllocBytes > i.Memory || i.Limits.BufferOffsetAlign != clc.Align {
			t.Errorf("limits: %+v", i)
		}
		c := i.Caps
		if c.MaxInvocations < 1 || c.MaxLocal[2] < 1 || c.MaxGroups[0] < 1<<16 || c.SharedBytes < 1<<14 || c.MaxBuffers < 16 || c.MaxLanes != 16 {
			t.Errorf("capabilities: %+v", c)
		}
		t.Logf("%s, %s %s, %s, %v, %d MiB, %+v, notes %q", i.Name, i.Driver, i.DriverVersion, i.APIVersion, i.Type, i.Memory>>20, c, i.Notes)
	})
}

func TestTransfer(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const size = stageLimit + 4096 // larger transfers take the path without a copy
		b := alloc(t, d, size)
		defer b.Free()
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 7)
		}
		if err := b.Write(0, want); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ offset, n int }{{0, 4}, {4, 8}, {1024, 3}, {size - 4, 4}, {100, 70000}, {8, 0}} {
			part := bytes.Repeat([]byte{byte(c.n)}, c.n)
			if err := b.Write(int64(c.offset), part); err != nil {
				t.Fatal(err)
			}
			copy(want[c.offset:], part)
			clear(part) // data may be reused when Write returns
			got := make([]byte, c.n)
			if err := b.Read(int64(c.offset), got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want[c.offset:c.offset+c.n]) {
				t.Errorf("%d bytes at %d read back different", c.n, c.offset)
			}
		}
		got := make([]byte, size)
		if err := b.Read(0, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Error("the whole buffer reads back different")
		}
		for _, c := range []struct{ offset, n int }{{-4, 4}, {size, 4}, {size - 4, 8}, {0, size + 4}} {
			if err := b.Write(int64(c.offset), make([]byte, c.n)); err == nil {
				t.Errorf("write of %d bytes at %d: no error", c.n, c.offset)
			}
			if err := b.Read(int64(c.offset), make([]byte, c.n)); err == nil {
				t.Errorf("read of %d bytes at %d: no error", c.n, c.offset)
			}
		}
	})
}

func TestAllocErrors(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		for _, size := range []int64{0, -4, 6} {
			if _, err := d.Alloc(size); err == nil {
				t.Errorf("Alloc(%d): no error", size)
			}
		}
		limit := d.Info().Limits.MaxAllocBytes
		_, err := d.Alloc(limit/4*4 + 4)
		var le *backend.LimitError
		if !errors.As(err, &le) || le.Allowed != limit {
			t.Errorf("over the limit: %v, want a LimitError with %d", err, limit)
		}
		// The device's memory is counted, also where the system hands out more than there is.
		d.mu.Lock()
		d.allocated += d.info.Memory
		d.mu.Unlock()
		_, err = d.Alloc(4)
		var oom *backend.OutOfMemoryError
		if !errors.As(err, &oom) || oom.Requested != 4 || oom.Total != d.info.Memory {
			t.Errorf("more than the memory: %v, want an OutOfMemoryError", err)
		}
		d.mu.Lock()
		d.allocated -= d.info.Memory
		d.mu.Unlock()
		for _, during := range []string{"allocation", "first use"} {
			for _, code := range []clload.Code{clload.AllocationFailure, clload.OutOfResources, clload.OutOfHostMemory} {
				d.injectOnce(during, code)
				if _, err := d.Alloc(64); !errors.Is(err, backend.ErrOutOfMemory) || !errors.Is(err, code) {
					t.Errorf("%s fails with %v: %v, want out of memory", during, code, err)
				}
			}
		}
		d.injectOnce("allocation", clload.InvalidBufferSize)
		if _, err := d.Alloc(64); !errors.Is(err, backend.ErrLimit) {
			t.Errorf("invalid buffer size: %v, want a limit error", err)
		}
		alloc(t, d, 64).Free() // the device is still good
	})
}

// injectOnce makes the next call of the API during something give code.
func (d *device) injectOnce(during string, code clload.Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inject = func(what string, real clload.Code) clload.Code {
		if what == during && code != 0 {
			real, code = code, 0
		}
		return real
	}
}

func TestLaunch(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		p := compile(t, d, addKernel(t))
		defer p.Free()
		const n = 1000
		b := alloc(t, d, 4*n+1024)
		defer b.Free()
		if err := b.Write(0, make([]byte, b.Size())); err != nil {
			t.Fatal(err)
		}
		// Dependent launches over several submissions, some of them empty, one at an offset.
		var fences []backend.Fence
		for round := range 20 {
			var batch []backend.Launch
			for range 10 {
				batch = append(batch, launch(p, b, n, n, uint32(round)))
			}
			batch = append(batch, backend.Launch{Program: p, Groups: [3]int{0, 1, 1}})
			f, err := d.Submit(batch)
			if err != nil {
				t.Fatal(err)
			}
			fences = append(fences, f)
		}
		off := launch(p, b, 1, 1, 5)
		off.Buffers[0] = backend.Region{Buffer: b, Offset: 256, Size: 4}
		f, err := d.Submit([]backend.Launch{off})
		if err != nil {
			t.Fatal(err)
		}
		wait(t, f)
		for _, f := range fences {
			if !f.Done() {
				t.Error("an earlier fence is not done")
			}
		}
		got := make([]byte, 4*n)
		if err := b.Read(0, got); err != nil {
			t.Fatal(err)
		}
		for i, v := range words(got) {
			want := uint32(1900)
			if i == 64 {
				want += 5
			}
			if v != want {
				t.Fatalf("element %d is %d, want %d", i, v, want)
			}
		}
		f, err = d.Submit(nil)
		if err != nil {
			t.Fatal(err)
		}
		wait(t, f)
	})
}

func TestLaunchErrors(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		p, freed := compile(t, d, addKernel(t)), compile(t, d, addKernel(t))
		defer p.Free()
		freed.Free()
		freed.Free() // a second call does nothing
		b, gone := alloc(t, d, 512), alloc(t, d, 512)
		defer b.Free()
		gone.Free()
		gone.Free()
		other, err := Driver().Open(d.info.Index)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		foreign := alloc(t, other, 512)
		region := func(b backend.Buffer, offset, size int64) []backend.Region {
			return []backend.Region{{Buffer: b, Offset: offset, Size: size}}
		}
		one := [3]int{1, 1, 1}
		two := []uint32{1, 1}
		cases := map[string]struct {
			l    backend.Launch
			want string
		}{
			"no program":    {backend.Launch{Groups: one}, "not compiled on this device"},
			"freed program": {backend.Launch{Program: freed, Groups: one}, "program was freed"},
			"no buffers":    {backend.Launch{Program: p, Groups: one, Params: two}, "takes 1 buffers and 2 parameters, got 0 and 2"},
			"params":        {backend.Launch{Program: p, Groups: one, Buffers: region(b, 0, 512), Params: two[:1]}, "takes 1 buffers and 2 parameters, got 1 and 1"},
			"nil buffer":    {backend.Launch{Program: p, Groups: one, Buffers: region(nil, 0, 0), Params: two}, "not a buffer of this device"},
			"foreign":       {backend.Launch{Program: p, Groups: one, Buffers: region(foreign, 0, 512), Params: two}, "not a buffer of this device"},
			"freed buffer":  {backend.Launch{Program: p, Groups: one, Buffers: region(gone, 0, 512), Params: two}, "buffer was freed"},
			"past the end":  {backend.Launch{Program: p, Groups: one, Buffers: region(b, 256, 512), Params: two}, "512 bytes at offset 256 of a buffer of 512"},
			"offset":        {backend.Launch{Program: p, Groups: one, Buffers: region(b, 4, 4), Params: two}, "multiple of"},
			"negative":      {backend.Launch{Program: p, Groups: [3]int{-1, 1, 1}, Buffers: region(b, 0, 512), Params: two}, "number of workgroups"},
			"groups":        {backend.Launch{Program: p, Groups: [3]int{1, math.MaxInt32, 1}, Buffers: region(b, 0, 512), Params: two}, "number of workgroups in dimension 1"},
		}
		for name, c := range cases {
			_, err := d.Submit([]backend.Launch{launch(p, b, 1, 1, 1), c.l})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "launch 1 of 2") {
				t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
			}
		}
		if err := gone.Write(0, make([]byte, 4)); err == nil || !strings.Contains(err.Error(), "freed") {
			t.Errorf("write to a freed buffer: %v", err)
		}
		d.injectOnce("submission", clload.OutOfResources)
		if _, err := d.Submit([]backend.Launch{launch(p, b, 1, 1, 1)}); !errors.Is(err, backend.ErrOutOfMemory) || !strings.Contains(err.Error(), "add_scalar") {
			t.Errorf("a launch for which there is no memory: %v", err)
		}
		f, err := d.Submit([]backend.Launch{launch(p, b, 1, 1, 1)})
		if err != nil {
			t.Fatal(err)
		}
		wait(t, f)
	})
}

// TestFreePending frees and drops everything right after Submit, with the collector running.
func TestFreePending(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					runtime.GC()
				}
			}
		}()
		defer func() { close(stop); <-stopped }()

		sum := alloc(t, d, 4)
		if err := sum.Write(0, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		k := kernel(t, "accumulate", 64, func(b *ir.Builder) {
			x, s := b.Buffer("x", ir.U32, ir.Read), b.Buffer("s", ir.U32, ir.ReadWrite)
			b.Atomic(ir.OpAtomicAdd, s, b.U32(0), b.Load(x, b.LinearID(), 1))
		})
		const rounds, n = 20, 1 << 14
		ones := bytes.Repeat([]byte{1, 0, 0, 0}, n)
		var last backend.Fence
		for range rounds {
			p := compile(t, d, k)
			b := alloc(t, d, 4*n)
			if err := b.Write(0, ones); err != nil {
				t.Fatal(err)
			}
			l := launch(p, b, n)
			l.Buffers = append(l.Buffers, backend.Region{Buffer: sum, Size: 4})
			var err error
			if last, err = d.Submit([]backend.Launch{l}); err != nil {
				t.Fatal(err)
			}
			b.Free()
			p.Free()
		}
		wait(t, last)
		got := make([]byte, 4)
		if err := sum.Read(0, got); err != nil {
			t.Fatal(err)
		}
		if v := words(got)[0]; v != rounds*n {
			t.Errorf("sum is %d, want %d", v, rounds*n)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.poll()
		if len(d.pending) != 0 || len(d.retired) != 0 || d.staged != 0 || d.allocated != 4 || len(d.buffers) != 1 || len(d.programs) != 0 {
			t.Errorf("left over: %d commands, %d freed objects, %d bytes of copies, %d bytes in %d buffers, %d programs",
				len(d.pending), len(d.retired), d.staged, d.allocated, len(d.buffers), len(d.programs))
		}
	})
}

func TestConcurrent(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		shared := compile(t, d, addKernel(t))
		defer shared.Free()
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				own := compile(t, d, addKernel(t))
				defer own.Free()
				const n = 300
				b := alloc(t, d, 4*n)
				defer b.Free()
				if err := b.Write(0, make([]byte, 4*n)); err != nil {
					t.Error(err)
				}
				for i := range 30 {
					p := shared
					if i%2 == 1 {
						p = own
					}
					f, err := d.Submit([]backend.Launch{launch(p, b, n, n, uint32(g)), launch(p, b, n, n, 1)})
					if err != nil {
						t.Error(err)
						return
					}
					if i%7 == 0 {
						wait(t, f)
					}
				}
				got := make([]byte, 4*n)
				if err := b.Read(0, got); err != nil {
					t.Error(err)
				}
				for i, v := range words(got) {
					if v != uint32(30*(g+1)) {
						t.Errorf("goroutine %d: element %d is %d, want %d", g, i, v, 30*(g+1))
						return
					}
				}
			})
		}
		wg.Wait()
		if err := d.Synchronize(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// spinKernel runs for about n rounds of a loop in each of 64 invocations.
func spinKernel(t testing.TB) *ir.Kernel {
	return kernel(t, "spin", 64, func(b *ir.Builder) {
		x := b.Buffer("x", ir.U32, ir.ReadWrite)
		n := b.Param("n", ir.U32)
		v := b.Var(b.LocalID(0))
		b.Range(n, func(i ir.Value) { b.Set(v, b.Add(b.Mul(b.Get(v), b.U32(1664525)), b.Xor(i, b.U32(1013904223)))) })
		b.Store(x, b.LocalID(0), b.Get(v))
	})
}

func TestContext(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		p := compile(t, d, spinKernel(t))
		defer p.Free()
		b := alloc(t, d, 256)
		defer b.Free()
		var slow []backend.Launch
		for range 8 {
			slow = append(slow, launch(p, b, 64, 1<<20))
		}
		f, err := d.Submit(slow)
		if err != nil {
			t.Fatal(err)
		}
		if f.Done() {
			t.Error("done at once")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := f.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := f.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends meanwhile: %v", err)
		}
		if f.Done() {
			t.Error("a wait that ended by its context lasted as long as the work")
		}
		wait(t, f)
	})
}

func TestCompileErrors(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		if _, err := d.Compile(nil); err == nil {
			t.Error("a nil kernel: no error")
		}
		c := d.Info().Caps
		big := kernel(t, "big", c.MaxInvocations*2, func(b *ir.Builder) {})
		if _, err := d.Compile(big); !errors.Is(err, backend.ErrLimit) || !strings.Contains(err.Error(), "big") {
			t.Errorf("too many invocations: %v, want a limit error", err)
		}
		shared := kernel(t, "shared", 1, func(b *ir.Builder) {
			m := b.SharedArray("m", ir.F32, c.SharedBytes/4+1)
			b.Store(m, b.U32(0), b.F32(0))
		})
		if _, err := d.Compile(shared); !errors.Is(err, backend.ErrLimit) {
			t.Errorf("too much workgroup memory: %v, want a limit error", err)
		}
		many := kernel(t, "many", 1, func(b *ir.Builder) {
			for i := range c.MaxBuffers + 1 {
				b.Buffer(strings.Repeat("b", i+1), ir.F32, ir.Read)
			}
		})
		if _, err := d.Compile(many); !errors.Is(err, backend.ErrLimit) {
			t.Errorf("too many buffers: %v, want a limit error", err)
		}
		_, err := d.build("broken", "__kernel void k(__global int* x) { x[0] = undeclared; }")
		var be *BuildError
		if !errors.As(err, &be) || be.Source == "" || !strings.Contains(err.Error(), "broken") || !strings.Contains(err.Error(), "undeclared") {
			t.Errorf("broken text: %v, want the kernel's name and the compiler's log", err)
		}
	})
}
