//go:build cgo

package opencl

import (
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
	"github.com/anygpu/anygpu/shaders/ir"
)

// countBuilds counts the programs that the driver compiles, and makes those of fail fail.
func (d *device) countBuilds(fail ...int) *int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := new(int)
	d.inject = func(what string, real clload.Code) clload.Code {
		if what == "compilation" {
			for _, f := range fail {
				if f == *n {
					real = clload.OutOfResources
				}
			}
			*n++
		}
		return real
	}
	return n
}

// storeKernel is x[i] = c; all have one name.
func storeKernel(t *testing.T, c uint32) *ir.Kernel {
	return kernel(t, "store", 64, func(b *ir.Builder) {
		x := b.Buffer("x", ir.U32, ir.Write)
		i := b.LinearID()
		b.If(b.Lt(i, b.Param("n", ir.U32)), func() { b.Store(x, i, b.U32(c)) }, nil)
	})
}

// wantStored runs a storeKernel.
func wantStored(t *testing.T, d *device, p backend.Program, want uint32) {
	t.Helper()
	b := alloc(t, d, 64*4)
	defer b.Free()
	if _, err := d.Submit([]backend.Launch{launch(p, b, 64, 64)}); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64*4)
	if err := b.Read(0, data); err != nil {
		t.Fatal(err)
	}
	if got := words(data); got[0] != want || got[63] != want {
		t.Errorf("the kernel stored %d and %d, want %d", got[0], got[63], want)
	}
}

func TestPrepare(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		builds := d.countBuilds()
		want := func(n int) {
			t.Helper()
			if *builds != n {
				t.Errorf("%d programs were built, want %d", *builds, n)
			}
		}
		double := kernel(t, "double", 64, func(b *ir.Builder) { // an extension beside kernels without it
			x := b.Buffer("x", ir.U32, ir.Write)
			b.Store(x, b.LinearID(), b.Convert(b.Mul(b.Convert(b.LinearID(), ir.F64), b.ConstLike(b.Const(ir.Scalar(ir.F64), 0), 2)), ir.U32))
		})
		ks := []*ir.Kernel{storeKernel(t, 1), nil, storeKernel(t, 2), storeKernel(t, 1), storeKernel(t, 3)}
		if d.info.Caps.F64 {
			ks = append(ks, double)
		}
		d.Prepare(ks)
		want(1)
		var ps []backend.Program
		for _, c := range []uint32{1, 2, 3, 3} {
			p := compile(t, d, storeKernel(t, c))
			wantStored(t, d, p, c)
			ps = append(ps, p)
		}
		want(1)
		other := compile(t, d, storeKernel(t, 4)) // not prepared
		want(2)
		wantStored(t, d, other, 4)
		d.Prepare(ks) // all known
		want(2)
		ps[2].Free() // another program has the same kernel
		wantStored(t, d, ps[3], 3)
		for _, p := range append(ps, other) {
			p.Free()
		}
		wantStored(t, d, compile(t, d, storeKernel(t, 1)), 1) // prepared once and for all
		want(2)
		wantStored(t, d, compile(t, d, storeKernel(t, 4)), 4) // its program was freed
		want(3)
	})
}

// A failure of the whole is none of its parts: they are compiled one by one, and the one at fault says so.
func TestPrepareFails(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		d.countBuilds(0, 2)
		d.Prepare([]*ir.Kernel{storeKernel(t, 1), storeKernel(t, 2)})
		wantStored(t, d, compile(t, d, storeKernel(t, 1)), 1)
		if _, err := d.Compile(storeKernel(t, 2)); err == nil {
			t.Error("the kernel at fault compiles")
		}
		wantStored(t, d, compile(t, d, storeKernel(t, 2)), 2)
	})
	t.Run("closed", func(t *testing.T) {
		eachDevice(t, func(t *testing.T, first *device) {
			dev, err := Driver().Open(first.info.Index)
			if err != nil {
				t.Fatal(err)
			}
			d := dev.(*device)
			d.Prepare([]*ir.Kernel{storeKernel(t, 1), storeKernel(t, 2)})
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d.Prepare([]*ir.Kernel{storeKernel(t, 1), storeKernel(t, 2)})
			if _, err := d.Compile(storeKernel(t, 1)); err == nil {
				t.Error("a closed device compiles")
			}
		})
	})
}
