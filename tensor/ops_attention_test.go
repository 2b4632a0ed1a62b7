package tensor

import (
	"fmt"
	"math"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// composedAttention is attention made of products and a softmax.
func composedAttention(q, k, v *Tensor, causal bool) *Tensor {
	scores := q.MatMul(k.Transpose(-1, -2)).MulScalar(1 / math.Sqrt(float64(q.Size(-1))))
	if causal {
		scores = scores.MaskedFill(triangle(q.eng, q.scope, q.Size(-2), k.Size(-2), 0).LogicalNot(), math.Inf(-1))
	}
	return scores.Softmax(-1).MatMul(v)
}

// TestAttentionKernel holds the kernels of attention against products and a softmax in float64, forward and backward, for operands of
// several layouts, on the CPU device and with the kernels of the other classes of devices in the checking executor.
func TestAttentionKernel(t *testing.T) {
	devices := []backend.Device{CPU(), newChecked("vulkan"), newCheckedCPU("opencl"), newCheckedCPU("vulkan")}
	cases := []struct {
		n, h, rows, keys, d, e int
		packed, causal         bool
	}{
		{2, 2, 5, 5, 4, 4, true, true}, {1, 3, 7, 5, 3, 6, false, false}, {2, 1, 32, 32, 16, 16, true, true}, {1, 2, 130, 33, 8, 4, false, true}, {1, 1, 4, 48, 16, 32, false, false},
	}
	for i, dev := range devices {
		for _, tc := range cases {
			for _, d := range []DType{Float32, Float16, BFloat16} {
				if i > 0 && (d == BFloat16 || tc.rows > 100) {
					continue
				}
				t.Run(fmt.Sprintf("%d %s/%s%v", i, dev.Info().API, d, tc), func(t *testing.T) {
					gen := NewGenerator(3)
					var q, k, v *Tensor
					if tc.packed {
						x := Uniform(dev, gen, Float32, -2, 2, tc.n, tc.rows, 3, tc.h, tc.d).Cast(d)
						part := func(i int) *Tensor { return x.Select(2, i).Transpose(1, 2) }
						q, k, v = part(0), part(1), part(2)
					} else {
						q = Uniform(dev, gen, Float32, -2, 2, tc.n, tc.h, tc.rows, tc.d).Cast(d)
						k = Uniform(dev, gen, Float32, -2, 2, tc.n, tc.h, tc.keys, tc.d).Cast(d)
						v = Uniform(dev, gen, Float32, -2, 2, tc.n, tc.keys, tc.h, tc.e).Cast(d).Transpose(1, 2)
					}
					dy := Uniform(dev, gen, Float32, -2, 2, tc.n, tc.rows, tc.h, tc.e).Cast(d).Transpose(1, 2)
					run := func(dtype DType, f func(q, k, v *Tensor) *Tensor, on backend.Device) [][]float64 {
						in := []*Tensor{q, k, v}
						for i := range in {
							in[i] = in[i].Detach()
							if dtype != d {
								in[i] = in[i].To(on).Cast(dtype)
							}
							in[i] = in[i].SetRequiresGrad(true)
						}
						g := dy
						if dtype != d {
							g = g.To(on).Cast(dtype)
						}
						s := NewScope(on)
						defer s.Close()
						a, b, c := s.To(in[0]), s.To(in[1]), s.To(in[2])
						_ = Synchronize(on)
						before := Launches(on).Launches
						y := f(a, b, c)
						_ = Synchronize(on)
						if n := Launches(on).Launches - before; dtype == d && n != 1 {
							t.Errorf("%d kernels, want the one of attention", n)
						}
						if err := y.BackwardWith(g); err != nil {
							t.Fatal(err)
						}
						var out [][]float64
						for _, x := range []*Tensor{y, in[0].Grad(), in[1].Grad(), in[2].Grad()} {
							vals, err := x.Detach().To(CPU()).Cast(Float64).Float64s()
							if err != nil {
								t.Fatal(err)
							}
							out = append(out, vals)
						}
						return out
					}
					got := run(d, func(q, k, v *Tensor) *Tensor {
						return ScaledDotProductAttention(q, k, v, AttentionOptions{Causal: tc.causal})
					}, dev)
					want := run(Float64, func(q, k, v *Tensor) *Tensor { return composedAttention(q, k, v, tc.causal) }, CPU())
					eps := map[DType]float64{Float32: 2e-5, Float16: 6e-3, BFloat16: 5e-2}[d]
					for i, name := range []string{"result", "gradient of q", "gradient of k", "gradient of v"} {
						scale := 1e-3
						for _, v := range want[i] {
							scale = max(scale, math.Abs(v))
						}
						for j := range want[i] {
							if !(math.Abs(got[i][j]-want[i][j]) <= eps*scale) {
								t.Fatalf("%s: element %d is %v, want %v", name, j, got[i][j], want[i][j])
							}
						}
					}
				})
			}
		}
	}
}

// TestAttentionSecondDerivative: the gradient can be differentiated again.
func TestAttentionSecondDerivative(t *testing.T) {
	gen := NewGenerator(7)
	leaf := func(shape ...int) *Tensor { return Uniform(CPU(), gen, Float32, -1, 1, shape...).SetRequiresGrad(true) }
	q, k, v := leaf(1, 2, 3, 4), leaf(1, 2, 3, 4), leaf(1, 2, 3, 4)
	second := func(f func() *Tensor) []float32 {
		gs, err := Grad([]*Tensor{f().Square().Sum()}, []*Tensor{q})
		if err != nil {
			t.Fatal(err)
		}
		hs, err := Grad([]*Tensor{gs[0].Square().Sum()}, []*Tensor{k})
		if err != nil {
			t.Fatal(err)
		}
		return Must(hs[0].Detach()).mustFloats(t)
	}
	got := second(func() *Tensor { return ScaledDotProductAttention(q, k, v, AttentionOptions{Causal: true}) })
	want := second(func() *Tensor { return composedAttention(q, k, v, true) })
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) < 1e-4) {
			t.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func (t *Tensor) mustFloats(tb testing.TB) []float32 {
	tb.Helper()
	v, err := t.Float32s()
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
