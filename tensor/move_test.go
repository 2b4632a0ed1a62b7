package tensor

import (
	"slices"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
)

// TestCastTo casts leaves in place: identity, gradient and values stay, memory follows the dtype.
func TestCastTo(t *testing.T) {
	for _, name := range []string{"cpu", "opencl:0"} {
		dev, err := backend.Open(name)
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		defer dev.Close()
		w := FromFloat32s([]float32{1, 1.0009765625 + 1.0/4096, -3, 70000}, 2, 2).To(dev).SetRequiresGrad(true)
		w.SetGrad(Ones(dev, Float32, 2, 2))
		if err := Synchronize(dev); err != nil {
			t.Fatal(err)
		}
		before, grad := MemoryStats(dev).AllocatedBytes.Current, w.Grad()
		for _, c := range []struct {
			to   DType
			want []float64
		}{{BFloat16, []float64{1, 1, -3, 70144}}, {Float32, []float64{1, 1, -3, 70144}}} {
			if err := w.CastTo(c.to); err != nil {
				t.Fatal(err)
			}
			if w.DType() != c.to || !w.RequiresGrad() || !w.IsLeaf() || w.Grad() != grad || grad.DType() != c.to {
				t.Errorf("%s: %s, gradient %s, want %s", name, w, w.Grad(), c.to)
			}
			v := w.Detach() // it shares w's memory
			got, err := v.CPU().Cast(Float64).Float64s()
			v.Free()
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: as %s %v %v, want %v", name, c.to, got, err, c.want)
			}
		}
		if now := MemoryStats(dev).AllocatedBytes.Current; name != "cpu" && now != before {
			t.Errorf("%s: %d bytes after casting there and back, %d before", name, now, before)
		}
		if err := w.Mul(w).Sum().Backward(); err != nil { // it trains on
			t.Error(err)
		}
	}
	w := FromFloat32s([]float32{1}, 1).SetRequiresGrad(true)
	wantErr(t, w.CastTo(Int64), ErrDType, "only tensors of floating-point dtype")
	wantErr(t, w.CastTo(InvalidDType), ErrDType, "no such dtype")
	wantErr(t, w.Square().CastTo(Float16), ErrGrad, "only a leaf")
	if err := w.CastTo(Float32); err != nil {
		t.Error(err)
	}
}

// TestCopyFromHoldsNothing: a source without a scope can give its memory back right after it was copied, without the collector.
func TestCopyFromHoldsNothing(t *testing.T) {
	dev := gpuLike(t)
	dst := Zeros(dev, Float32, 1000)
	if err := Synchronize(dev); err != nil {
		t.Fatal(err)
	}
	before := MemoryStats(dev).AllocatedBytes.Current
	for _, from := range []backend.Device{dev, CPU()} {
		src := Full(from, Float32, 3, 1000)
		if err := dst.CopyFrom(src); err != nil {
			t.Fatal(err)
		}
		src.Free()
		if err := dst.CopyFrom(dst); err != nil { // of its own memory, too
			t.Fatal(err)
		}
		v, err := dst.CPU().Float32s()
		if err != nil || v[999] != 3 {
			t.Errorf("%v %v, want 3", v[999], err)
		}
		if now := MemoryStats(dev).AllocatedBytes.Current; now != before {
			t.Errorf("from %s: %d bytes after the copy, %d before", from.Info(), now, before)
		}
	}
}
