//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

// Kernels whose types the device may lack are lowered to what it has; what cannot be lowered is an error.
func TestNarrowTypes(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const n = 256
		p := compile(t, d, narrow(t))
		x, h, u, l := alloc(t, d, 4*n), alloc(t, d, 2*n), alloc(t, d, n), alloc(t, d, 8*n)
		xs := make([]uint32, n)
		for i := range xs {
			xs[i] = math.Float32bits(float32(i) + 0.37*float32(i%7))
		}
		write(t, x, xs)
		write(t, h, make([]uint32, n/2))
		write(t, u, make([]uint32, n/4))
		write(t, l, slices.Repeat([]uint32{0xffffffff, 0}, n))
		submit(t, d, launch(p, n, []uint32{n}, x, h, u, l))
		hs, us, ls := make([]byte, 2*n), make([]byte, n), read(t, l)
		if err := errors.Join(h.Read(0, hs), u.Read(0, us)); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			v := math.Float32frombits(xs[i])
			if got, want := binary.LittleEndian.Uint16(hs[2*i:]), float16.Fromfloat32(v).Bits(); got != want {
				t.Errorf("f16 of %v: got %04x, want %04x", v, got, want)
			}
			if got, want := us[i], byte(int32(v)); got != want {
				t.Errorf("u8 of %v: got %d, want %d", v, got, want)
			}
			if ls[2*i] != 0 || ls[2*i+1] != 2 {
				t.Errorf("i64 sum %d: got %08x %08x, want carry", i, ls[2*i+1], ls[2*i])
			}
		}

		b := ir.NewBuilder("double", 1, 1, 1)
		y := b.Buffer("y", ir.F64, ir.ReadWrite)
		b.Store(y, b.U32(0), b.Mul(b.Load(y, b.U32(0), 1), b.Const(ir.Scalar(ir.F64), 1.5)))
		_, err := d.Compile(build(t, b))
		if d.info.Caps.F64 && err != nil || !d.info.Caps.F64 && (!errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "double precision")) {
			t.Errorf("a kernel of f64 on a device with F64 %v: %v", d.info.Caps.F64, err)
		}
	})
}

func TestKernelLimits(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		c := d.info.Caps
		kernel := func(x, y, z, shared, buffers int) *ir.Kernel {
			b := ir.NewBuilder("large", x, y, z)
			y0 := b.Buffer("y0", ir.U32, ir.ReadWrite)
			for i := 1; i < buffers; i++ {
				b.Buffer(fmt.Sprintf("y%d", i), ir.U32, ir.ReadWrite)
			}
			if shared > 0 {
				s := b.SharedArray("s", ir.U32, shared/4)
				b.Store(s, b.LocalID(0), b.U32(1))
			}
			b.Store(y0, b.GlobalID(0), b.U32(1))
			return build(t, b)
		}
		for _, k := range []struct {
			limit string
			k     *ir.Kernel
		}{
			{"maxComputeWorkGroupSize[2]", kernel(1, 1, c.MaxLocal[2]+1, 0, 1)},
			{"maxComputeWorkGroupInvocations", kernel(c.MaxInvocations, 2, 1, 0, 1)},
			{"maxComputeSharedMemorySize", kernel(1, 1, 1, c.SharedBytes+4, 1)},
			{"maxPerStageDescriptorStorageBuffers", kernel(1, 1, 1, 0, c.MaxBuffers+1)},
		} {
			_, err := d.Compile(k.k)
			if !errors.Is(err, backend.ErrLimit) && (err == nil || !strings.Contains(err.Error(), "large")) {
				t.Errorf("%s: got %v", k.limit, err)
			}
		}
		// At the limits it works.
		p := compile(t, d, kernel(1, 1, 1, c.SharedBytes, c.MaxBuffers))
		bufs := make([]*buffer, c.MaxBuffers)
		for i := range bufs {
			bufs[i] = alloc(t, d, 64)
		}
		submit(t, d, launch(p, 1, nil, bufs...))
		if got := read(t, bufs[0]); got[0] != 1 {
			t.Errorf("got %v", got)
		}
	})
}
