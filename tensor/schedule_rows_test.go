package tensor

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

type rowsCase struct {
	name string
	most uint64 // kernels forward
	f    func(x, y, w, b *Tensor) *Tensor
}

func (c rowsCase) product() bool { return strings.HasPrefix(c.name, "product") }

// TestFusedRowsAndTails holds kernels of whole rows, and what is computed in a product's kernel, bit-equal to the operators one by one, forward
// and backward, and counts the kernels.
func TestFusedRowsAndTails(t *testing.T) {
	defer func(n int) { keptElements = n }(keptElements)
	keptElements = 0
	cases := []rowsCase{
		{"softmax of scaled and masked", 1, func(x, y, w, b *Tensor) *Tensor { return x.MulScalar(0.3).Add(y).Softmax(-1).MulScalar(2) }},
		{"log_softmax", 1, func(x, y, w, b *Tensor) *Tensor { return x.LogSoftmax(-1) }},
		{"layer_norm of a sum", 1, func(x, y, w, b *Tensor) *Tensor { return LayerNorm(x.Add(y), 1, w, b, 1e-5) }},
		{"rms_norm", 1, func(x, y, w, b *Tensor) *Tensor { return RMSNorm(x, 1, w, 1e-6).GELUTanh() }},
		{"two sums", 1, func(x, y, w, b *Tensor) *Tensor { return x.Mul(y.SumKeep(-1)).Sub(x.AmaxKeep(-1)).Mul(y) }},
		{"row by row", 1, func(x, y, w, b *Tensor) *Tensor { return x.Sum(-1).Mul(y.Mul(x).Mean(-1)).AddScalar(1) }},
		{"product, activation and residual", 1, func(x, y, w, b *Tensor) *Tensor { return Linear(x, w.Mul(w.Reshape(-1, 1)), b).GELUTanh().Add(y) }},
		{"product and cast", 1, func(x, y, w, b *Tensor) *Tensor { return x.MatMul(y.Transpose(-1, -2)).ReLU().Cast(Float16) }},
		{"product and norm", 2, func(x, y, w, b *Tensor) *Tensor {
			return LayerNorm(x.Add(Linear(y, w.Mul(w.Reshape(-1, 1)), nil)), 1, w, nil, 1e-5)
		}},
	}
	devices := []backend.Device{CPU(), newChecked("vulkan"), newCheckedCPU("vulkan"), newCheckedCPU("opencl")}
	for i, dev := range devices {
		defer func() { _ = SetFusion(dev, true) }()
		for _, d := range []DType{Float32, Float16} {
			for _, shape := range [][]int{{3, 16}, {2, 3, 20}, {2, 7}, {70, 33}} {
				if i > 0 && shape[0] == 70 {
					continue
				}
				for _, tc := range cases {
					t.Run(fmt.Sprintf("%d %s/%s%v/%s", i, dev.Info().API, d, shape, tc.name), func(t *testing.T) {
						run := func(fuse bool) (out [][]byte, launches uint64) {
							if err := SetFusion(dev, fuse); err != nil {
								t.Fatal(err)
							}
							gen := NewGenerator(5)
							leaf := func(shape ...int) *Tensor {
								return Uniform(dev, gen, Float32, -1, 2, shape...).Cast(d).Clone().Detach().SetRequiresGrad(true)
							}
							n := shape[len(shape)-1]
							in := []*Tensor{leaf(shape...), leaf(shape...), leaf(n), leaf(n)}
							s := NewScope(dev)
							if err := Synchronize(dev); err != nil {
								t.Fatal(err)
							}
							before := Launches(dev).Launches
							y := tc.f(s.To(in[0]), s.To(in[1]), in[2], in[3])
							read := func(x *Tensor) {
								b, err := x.Detach().bytes()
								if err != nil {
									t.Fatal(err)
								}
								out = append(out, b[:Numel(x.shape)*x.dtype.Size()])
							}
							read(y)
							launches = Launches(dev).Launches - before
							if err := y.Mul(y).Sum().Backward(); err != nil {
								t.Fatal(err)
							}
							for _, x := range in {
								if g := x.Grad(); g != nil {
									read(g)
								}
							}
							if err := s.Close(); err != nil {
								t.Fatal(err)
							}
							return out, launches
						}
						want, plain := run(false)
						got, n := run(true)
						if len(got) != len(want) || len(got) < 2 {
							t.Fatalf("%d results fused, %d unfused", len(got), len(want))
						}
						for i := range got {
							if !bytes.Equal(got[i], want[i]) {
								t.Errorf("result %d is %x fused, but %x unfused", i, got[i], want[i])
							}
						}
						// One more for the weight of a product, and on OpenCL's CPU devices, which pack operands, more.
						if packs := dev.Info().API == "opencl"; n > plain || n > tc.most+1 && !(packs && tc.product()) {
							t.Errorf("%d kernels fused, %d unfused, want %d", n, plain, tc.most)
						}
					})
				}
			}
		}
	}
}
