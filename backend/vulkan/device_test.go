//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
)

func TestInfo(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		i := d.Info()
		t.Logf("%s %s (%s), %s %s, Vulkan %s, %s, %d MiB, %+v, %+v, float controls %+v", i, i.Name, i.Vendor, i.Driver, i.DriverVersion, i.APIVersion, i.Type, i.Memory>>20, i.Limits, i.Caps, d.opts)
		if i.API != "vulkan" || i.Name == "" || i.Vendor == "" || i.Driver == "" || i.DriverVersion == "" || i.Memory <= 0 || i.UUID == [16]byte{} {
			t.Errorf("incomplete: %+v", i)
		}
		c := i.Caps
		// The least that Vulkan 1.1 allows.
		if c.MaxInvocations < 128 || c.SharedBytes < 16384 || c.MaxGroups[2] < 65535 || c.MaxBuffers < 4 || c.MaxBufferBytes < 1<<27 || c.SubgroupSize < 1 || c.MaxLanes != 4 {
			t.Errorf("implausible caps: %+v", c)
		}
		if i.Limits.MaxAllocBytes < 1<<30 || i.Limits.BufferOffsetAlign&(i.Limits.BufferOffsetAlign-1) != 0 {
			t.Errorf("implausible limits: %+v", i.Limits)
		}
		switch {
		case strings.Contains(i.Driver, "llvmpipe"):
			if i.Type != backend.CPUDevice || !c.F16Storage || !c.F16Arith || !c.I64 {
				t.Errorf("llvmpipe is a CPU with f16 and i64: %v %+v", i.Type, c)
			}
		case strings.Contains(i.Driver, "SwiftShader"):
			if i.Type != backend.CPUDevice || c.F16Storage || c.F16Arith {
				t.Errorf("SwiftShader is a CPU without f16: %v %+v", i.Type, c)
			}
		}
	})
}

func TestTransfers(t *testing.T) {
	for _, staged := range []bool{false, true} {
		t.Run(fmt.Sprintf("staged=%v", staged), func(t *testing.T) {
			eachDevice(t, func(t *testing.T, d *device) {
				rng := rand.New(rand.NewPCG(1, 2))
				// Larger than the upload ring and both halves of the readback memory, and no multiple of either.
				const size = uploadBytes + readbackBytes + 4*1001
				b := alloc(t, d, size)
				if staged {
					hide(b)
				}
				want := make([]byte, size)
				for i := range want {
					want[i] = byte(rng.Uint32())
				}
				if err := b.Write(0, want); err != nil {
					t.Fatal(err)
				}
				for range 50 {
					at, n := rng.IntN(size), rng.IntN(300)
					n = min(n, size-at)
					part := want[at : at+n]
					for i := range part {
						part[i] = byte(rng.Uint32())
					}
					if err := b.Write(int64(at), part); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]byte, size)
				if err := b.Read(0, got); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("first difference at byte %d", firstDifference(got, want))
				}
				for range 20 {
					at := rng.IntN(size)
					got := make([]byte, min(rng.IntN(1<<16), size-at))
					if err := b.Read(int64(at), got); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, want[at:at+len(got)]) {
						t.Fatalf("read of %d bytes at %d differs", len(got), at)
					}
				}
			})
		})
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// Each launch depends on the one before, over several submissions, with writes and reads in between.
func TestOrder(t *testing.T) {
	for _, staged := range []bool{false, true} {
		t.Run(fmt.Sprintf("staged=%v", staged), func(t *testing.T) {
			eachDevice(t, func(t *testing.T, d *device) {
				const n = 300
				p := compile(t, d, affine(t))
				b := alloc(t, d, 4*n)
				if staged {
					hide(b)
				}
				want := iota(n)
				write(t, b, want)
				for round := range 60 {
					var batch []backend.Launch
					for i := range round {
						mul, add := uint32(2*i+3), uint32(round+7*i)
						batch = append(batch, launch(p, n, []uint32{n, mul, add}, b))
						for j := range want {
							want[j] = want[j]*mul + add
						}
					}
					submit(t, d, batch...)
					switch round % 4 {
					case 1: // a write while the work is pending
						at := round % n
						want[at] = 12345
						if err := b.Write(int64(4*at), words(12345)); err != nil {
							t.Fatal(err)
						}
					case 3:
						if got := read(t, b); !slices.Equal(got, want) {
							t.Fatalf("round %d: got %v, want %v", round, got[:8], want[:8])
						}
					}
				}
				if got := read(t, b); !slices.Equal(got, want) {
					t.Fatalf("got %v, want %v", got[:8], want[:8])
				}
			})
		})
	}
}

// Regions of one buffer: neighbours do not disturb one another, overlapping ones are ordered.
func TestRegions(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		align := int(d.info.Limits.BufferOffsetAlign)
		n := max(64, align/4) // elements of a region
		const regions = 20
		p, q := compile(t, d, affine(t)), compile(t, d, mix(t))
		b := alloc(t, d, int64(4*n*regions))
		want := iota(n * regions)
		write(t, b, want)
		region := func(i int) backend.Region {
			return backend.Region{Buffer: b, Offset: int64(4 * n * i), Size: int64(4 * n)}
		}
		rng := rand.New(rand.NewPCG(3, 4))
		groups := [3]int{(n + 63) / 64, 1, 1}
		var batch []backend.Launch
		for range 500 {
			i, j := rng.IntN(regions), rng.IntN(regions)
			if i == j {
				batch = append(batch, backend.Launch{Program: p, Groups: groups, Buffers: []backend.Region{region(i)}, Params: []uint32{uint32(n), 5, 11}})
				for e := range n {
					want[n*i+e] = want[n*i+e]*5 + 11
				}
				continue
			}
			batch = append(batch, backend.Launch{Program: q, Groups: groups, Buffers: []backend.Region{region(i), region(j)}, Params: []uint32{uint32(n)}})
			for e := range n {
				want[n*j+e] += 3 * want[n*i+e]
			}
		}
		submit(t, d, batch[:200]...)
		submit(t, d, batch[200:]...)
		if got := read(t, b); !slices.Equal(got, want) {
			t.Fatal("regions differ")
		}
	})
}

func TestErrors(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const n = 64
		p := compile(t, d, affine(t))
		b, freed := alloc(t, d, 4*n), alloc(t, d, 4*n)
		freed.Free()
		freed.Free() // no effect
		params := []uint32{n, 1, 1}
		whole := backend.Region{Buffer: b, Size: 4 * n}
		with := func(change func(l *backend.Launch)) func() error {
			l := backend.Launch{Program: p, Groups: [3]int{1, 1, 1}, Buffers: []backend.Region{whole}, Params: params}
			change(&l)
			return func() error { _, err := d.Submit([]backend.Launch{l}); return err }
		}
		region := func(offset, size int64) func() error {
			return with(func(l *backend.Launch) { l.Buffers = []backend.Region{{Buffer: b, Offset: offset, Size: size}} })
		}
		allocOf := func(size int64) func() error { return func() error { _, err := d.Alloc(size); return err } }
		for _, c := range []struct {
			name string
			do   func() error
			want string
			is   error
		}{
			{"alloc 0", allocOf(0), "positive multiple of 4", nil},
			{"alloc -4", allocOf(-4), "positive multiple of 4", nil},
			{"alloc 6", allocOf(6), "positive multiple of 4", nil},
			{"alloc over the limit", allocOf(d.info.Limits.MaxAllocBytes&^3 + 4), "maxMemoryAllocationSize", backend.ErrLimit},
			{"write past the end", func() error { return b.Write(4*n-4, make([]byte, 8)) }, "outside the buffer of 256 bytes", nil},
			{"write before the start", func() error { return b.Write(-4, make([]byte, 4)) }, "outside the buffer", nil},
			{"read past the end", func() error { return b.Read(1<<62, make([]byte, 8)) }, "outside the buffer", nil},
			{"write freed", func() error { return freed.Write(0, make([]byte, 4)) }, "was freed", nil},
			{"read freed", func() error { return freed.Read(0, make([]byte, 4)) }, "was freed", nil},
			{"nil program", with(func(l *backend.Launch) { l.Program = nil }), "not of this device", nil},
			{"too few buffers", with(func(l *backend.Launch) { l.Buffers = nil }), "kernel affine takes 1 buffers and 3 parameters, got 0 and 3", nil},
			{"too many parameters", with(func(l *backend.Launch) { l.Params = make([]uint32, 4) }), "got 1 and 4", nil},
			{"nil buffer", with(func(l *backend.Launch) { l.Buffers = []backend.Region{{Size: 4}} }), "kernel affine, buffer 0: the buffer (<nil>) is not of this device", nil},
			{"freed buffer", with(func(l *backend.Launch) { l.Buffers = []backend.Region{{Buffer: freed, Size: 4}} }), "was freed", nil},
			{"empty region", region(0, 0), "outside the buffer", nil},
			{"long region", region(0, 4*n+4), "outside the buffer", nil},
			{"odd region", region(0, 6), "multiple of 4", nil},
			{"misaligned region", region(2, 8), "not a multiple", nil},
			{"too many groups", with(func(l *backend.Launch) { l.Groups[1] = d.info.Caps.MaxGroups[1] + 1 }), "maxComputeWorkGroupCount[1]", backend.ErrLimit},
			{"negative groups", with(func(l *backend.Launch) { l.Groups[2] = -1 }), "maxComputeWorkGroupCount[2]", backend.ErrLimit},
			{"nil kernel", func() error { _, err := d.Compile(nil); return err }, "kernel is nil", nil},
		} {
			err := c.do()
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s: got %v, want %q (%v)", c.name, err, c.want, c.is)
			}
		}
		// Launches without groups are left out, and an empty batch has a fence that comes true.
		write(t, b, iota(n))
		for _, l := range []backend.Launch{{Program: p, Buffers: []backend.Region{whole}, Params: params}, {Program: p, Groups: [3]int{1, 0, 1}, Buffers: make([]backend.Region, 1), Params: params}} {
			if err := submit(t, d, l).Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := submit(t, d).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if got := read(t, b); !slices.Equal(got, iota(n)) {
			t.Errorf("a failed or empty launch ran: %v", got)
		}
	})
}

func TestAllocationCount(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		d.info.Limits.MaxAllocs = 3
		bufs := []*buffer{alloc(t, d, 64), alloc(t, d, 64), alloc(t, d, 64)}
		var limit *backend.LimitError
		if _, err := d.Alloc(64); !errors.As(err, &limit) || limit.Allowed != 3 || limit.Requested != 4 {
			t.Fatalf("fourth allocation: %v", err)
		}
		bufs[1].Free()
		alloc(t, d, 64)

		// The API's own lack of memory becomes a typed error.
		d.info.Limits.MaxAllocs = 0
		hook := func(call string) vk.Result {
			if call == "vkAllocateMemory" {
				return vk.ErrorOutOfDeviceMemory
			}
			return vk.Success
		}
		d.hook.Store(&hook)
		defer d.hook.Store(nil)
		var oom *backend.OutOfMemoryError
		if _, err := d.Alloc(1024); !errors.As(err, &oom) || oom.Requested != 1024 || oom.Allocated != 3*64 || !strings.Contains(err.Error(), "VK_ERROR_OUT_OF_DEVICE_MEMORY") {
			t.Fatalf("out of memory: %v", err)
		}
	})
}

// Buffers and programs freed right after Submit, while the work runs, with the collector busy.
func TestFreeWhilePending(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const n = 1000
		kernel := affine(t)
		sum := alloc(t, d, 4*n)
		write(t, sum, make([]uint32, n))
		adder := compile(t, d, mix(t))
		want := make([]uint32, n)
		for round := range 40 {
			p, tmp := compile(t, d, kernel), alloc(t, d, 4*n)
			if round%2 == 1 {
				hide(tmp)
			}
			write(t, tmp, iota(n))
			submit(t, d, launch(p, n, []uint32{n, 3, uint32(round)}, tmp), launch(adder, n, []uint32{n}, tmp, sum))
			p.Free()
			tmp.Free()
			for i := range want {
				want[i] += 3 * (3*uint32(i) + uint32(round))
			}
		}
		if got := read(t, sum); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got[:4], want[:4])
		}
		if err := d.Synchronize(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		staging := 0
		if d.up.buf != nil {
			staging = 1
		}
		if len(d.buffers) != 1+staging || d.allocs != 1+staging || len(d.programs) != 1 {
			t.Errorf("after all work: %d buffers, %d allocations, %d programs alive; want %d, %d, 1", len(d.buffers), d.allocs, len(d.programs), 1+staging, 1+staging)
		}
	})
}

func TestCollectorDuringRecording(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.GC()
				}
			}
		})
		defer wg.Wait()
		defer close(stop)
		const n = 64
		p := compile(t, d, affine(t))
		b := alloc(t, d, 4*n)
		want := iota(n)
		write(t, b, want)
		for range 40 {
			var batch []backend.Launch
			for i := range 50 {
				batch = append(batch, launch(p, n, []uint32{n, 3, uint32(i)}, b))
				for j := range want {
					want[j] = want[j]*3 + uint32(i)
				}
			}
			submit(t, d, batch...)
		}
		if got := read(t, b); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got[:4], want[:4])
		}
	})
}

func TestContext(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		b := alloc(t, d, 8)
		write(t, b, []uint32{0, 0})
		long := longWork(t, d, b, 400)
		f := submit(t, d, long...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := f.Wait(ctx)
		took := time.Since(start)
		if err == nil && took < 10*time.Millisecond {
			t.Skipf("the device was done within %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v after %v", err, took)
		}
		if err := f.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !f.Done() {
			t.Error("not done after Wait")
		}
		if got := read(t, b); got[0] != uint32(len(long)) {
			t.Errorf("%d of %d launches ran", got[0], len(long))
		}
		// A fence that is done does not care about the context.
		if err := f.Wait(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 9))
				const n = 500
				p, err := d.Compile(affine(t))
				if err != nil {
					t.Error(err)
					return
				}
				b := alloc(t, d, 4*n)
				if g%2 == 1 {
					hide(b)
				}
				want := iota(n)
				write(t, b, want)
				for range 40 {
					mul := rng.Uint32()
					f, err := d.Submit([]backend.Launch{launch(p, n, []uint32{n, mul, 1}, b), launch(p, n, []uint32{n, 3, 1}, b)})
					if err != nil {
						t.Error(err)
						return
					}
					for i := range want {
						want[i] = (want[i]*mul+1)*3 + 1
					}
					switch rng.IntN(4) {
					case 0:
						if err := f.Wait(context.Background()); err != nil {
							t.Error(err)
						}
					case 1:
						f.Done()
					case 2:
						if got := read(t, b); !slices.Equal(got, want) {
							t.Errorf("goroutine %d: wrong result", g)
							return
						}
					}
				}
				if got := read(t, b); !slices.Equal(got, want) {
					t.Errorf("goroutine %d: wrong result", g)
				}
				b.Free()
				p.Free()
			})
		}
		wg.Wait()
	})
}
