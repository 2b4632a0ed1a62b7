package tensor

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// TestFusedReductions holds reductions with a prologue bit-equal to those without, for shapes that take every kind of kernel.
func TestFusedReductions(t *testing.T) {
	defer func(n int) { keptElements = n }(keptElements)
	keptElements = 0
	reductions := []struct {
		name string
		f    func(x *Tensor) *Tensor
	}{
		{"sum", func(x *Tensor) *Tensor { return x.Sum(-1) }}, {"sum of columns", func(x *Tensor) *Tensor { return x.Sum(0) }},
		{"sum of all", func(x *Tensor) *Tensor { return x.Sum() }}, {"mean", func(x *Tensor) *Tensor { return x.MeanKeep(-1) }},
		{"amax", func(x *Tensor) *Tensor { return x.Amax(0) }}, {"amin", func(x *Tensor) *Tensor { return x.Amin(-1) }},
		{"argmax", func(x *Tensor) *Tensor { return x.Argmax(-1, false) }}, {"any", func(x *Tensor) *Tensor { return x.GtScalar(1.5).Any(-1) }},
		{"norm", func(x *Tensor) *Tensor { return x.Norm(2, false, -1) }},
	}
	run := func(t *testing.T, dev backend.Device, fuse bool, d DType, shape []int) (out [][]byte, launches uint64) {
		if err := SetFusion(dev, fuse); err != nil {
			t.Fatal(err)
		}
		gen := NewGenerator(5)
		x, y := Uniform(dev, gen, Float32, -3, 3, shape...).Cast(d), Uniform(dev, gen, Float32, 0, 3, shape...).Cast(d)
		s := NewScope(dev)
		if err := Synchronize(dev); err != nil {
			t.Fatal(err)
		}
		before := Launches(dev).Launches
		for _, r := range reductions {
			if !d.IsFloat() && (r.name == "mean" || r.name == "norm") {
				continue
			}
			z := r.f(s.To(x).Mul(y).AddScalar(1))
			b, err := z.bytes()
			if err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			out = append(out, b[:Numel(z.shape)*z.dtype.Size()])
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return out, Launches(dev).Launches - before
	}
	devices := []backend.Device{CPU(), newChecked("vulkan"), newChecked("opencl")}
	if dev, err := backend.Open("vulkan"); err == nil {
		defer dev.Close()
		devices = append(devices, dev)
	}
	for i, dev := range devices {
		defer func() { _ = SetFusion(dev, true) }()
		for _, d := range []DType{Float32, Float16, BFloat16, Int32} {
			for _, shape := range [][]int{{3, 5}, {64, 40}, {2, 3000}, {300, 7}} {
				if i > 0 && d != Float32 && d != Float16 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s%v", dev.Info().API, d, shape), func(t *testing.T) {
					want, plain := run(t, dev, false, d, shape)
					got, n := run(t, dev, true, d, shape)
					if len(got) != len(want) || len(got) < 5 {
						t.Fatalf("%d results fused, %d unfused", len(got), len(want))
					}
					for i := range got {
						if !bytes.Equal(got[i], want[i]) {
							t.Errorf("result %d is %x fused, but %x unfused", i, got[i], want[i])
						}
					}
					if n+uint64(2*len(got)) > plain {
						t.Errorf("%d kernels fused, %d unfused, for %d reductions of two operators", n, plain, len(got))
					}
				})
			}
		}
	}
}
