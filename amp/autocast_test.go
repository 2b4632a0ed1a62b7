package amp_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
)

func onEachDevice(t *testing.T, f func(t *testing.T, s *tensor.Scope)) {
	t.Helper()
	for _, info := range backend.List() {
		if info.Problem != "" || info.API == "null" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		t.Run(info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			s := tensor.NewScope(dev)
			f(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func matrix(s *tensor.Scope, n int) *tensor.Tensor {
	v := make([]float32, n*n)
	for i := range v {
		v[i] = float32(i%7) - 3
	}
	return s.To(tensor.FromFloat32s(v, n, n))
}

func TestAutocastClasses(t *testing.T) {
	onEachDevice(t, func(t *testing.T, s *tensor.Scope) {
		x := matrix(s, 4)
		long := s.To(tensor.FromInt64s([]int64{1, 2, 3, 4}, 2, 2))
		half := x.Cast(tensor.Float16)
		lower := amp.DefaultDType(s)
		if cpu := s.Device().Info().API == "cpu"; cpu != (lower == tensor.BFloat16) {
			t.Errorf("default dtype %s", lower)
		}
		check := func(what string, got *tensor.Tensor, want tensor.DType) {
			t.Helper()
			if err := got.Err(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if got.DType() != want {
				t.Errorf("%s: %s, want %s", what, got.DType(), want)
			}
		}
		amp.Autocast(s, func() {
			check("matmul of float32", x.MatMul(x), lower)
			check("linear", tensor.Linear(x, x, nil), lower)
			check("relu of float16", half.ReLU(), tensor.Float16)
			check("relu of float32", x.ReLU(), tensor.Float32)
			check("exp of float16", half.Exp(), tensor.Float32)
			check("softmax of float16", half.Softmax(-1), tensor.Float32)
			check("sum of float16", half.Sum(), tensor.Float32)
			check("add of float16 and float32", half.Add(x), tensor.Float32)
			check("add of integers", long.Add(long), tensor.Int64)
			amp.Autocast(s, func() { check("nested, disabled", x.MatMul(x), tensor.Float32) }, amp.Enabled(false))
			amp.Autocast(s, func() { check("nested, bfloat16", x.MatMul(x), tensor.BFloat16) }, amp.DType(tensor.BFloat16))
			check("after nesting", x.MatMul(x), lower)
			inner := s.NewScope()
			check("in a scope inside", inner.To(x).MatMul(x), lower)
		})
		check("outside", x.MatMul(x), tensor.Float32)
		if s.Device().Info().Caps.F64 {
			d := x.Cast(tensor.Float64)
			amp.Autocast(s, func() { check("matmul of float64", d.MatMul(d), tensor.Float64) })
		}
	})
}

func TestAutocastRestoresAfterPanic(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	defer s.Close()
	x := matrix(s, 2)
	func() {
		defer func() { _ = recover() }()
		amp.Autocast(s, func() { panic("in the forward pass") })
	}()
	if got := x.MatMul(x).DType(); got != tensor.Float32 {
		t.Errorf("after a panic matmul gives %s: autocast is still on", got)
	}
}

func TestAutocastBadDType(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	x := matrix(s, 2)
	amp.Autocast(s, func() { x.MatMul(x) }, amp.DType(tensor.Float64))
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "must be float16 or bfloat16, not float64") {
		t.Errorf("error %v", err)
	}
}

// TestAutocastGradients: the gradient of a float32 parameter arrives in float32, from products in the lower precision.
func TestAutocastGradients(t *testing.T) {
	onEachDevice(t, func(t *testing.T, s *tensor.Scope) {
		w := tensor.FromFloat32s([]float32{1, 2, 3, 4}, 2, 2).To(s.Device()).SetRequiresGrad(true)
		x := s.To(tensor.FromFloat32s([]float32{1, 1, 2, 0}, 2, 2))
		var loss *tensor.Tensor
		amp.Autocast(s, func() { loss = x.MatMul(w).MatMul(w).Sum() })
		if err := loss.Backward(); err != nil {
			t.Fatal(err)
		}
		if d := w.Grad().DType(); d != tensor.Float32 {
			t.Errorf("gradient is %s", d)
		}
		got, err := w.Grad().CPU().Float32s()
		if err != nil {
			t.Fatal(err)
		}
		// d/dw sum(x w w) = x^T (1 w^T) + (x w)^T 1, exact in float16: w^T row sums (3, 7), column sums of x (3, 1), of x w (6, 10).
		for i, want := range []float32{3*3 + 6, 3*7 + 6, 1*3 + 10, 1*7 + 10} {
			if got[i] != want {
				t.Errorf("gradient %v, element %d should be %v", got, i, want)
			}
		}
		w.ZeroGrad()
		w.Free()
	})
}

// TestWeightCacheUnderNoGrad is the trap of torch issue 65766: a cast cached under no_grad must not cut later graphs.
func TestWeightCacheUnderNoGrad(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	w := tensor.FromFloat32s([]float32{1, 2, 3, 4}, 2, 2).SetRequiresGrad(true)
	x := matrix(s, 2)
	var loss *tensor.Tensor
	amp.Autocast(s, func() {
		tensor.NoGrad(s, func() *tensor.Tensor { return x.MatMul(w) })
		loss = x.MatMul(w).Sum()
	})
	if err := errors.Join(loss.Backward(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if w.Grad() == nil {
		t.Error("the weight got no gradient")
	}
}

// TestAccumulation16 is field report 18969: products accumulate in float32 and round once at the end.
func TestAccumulation16(t *testing.T) {
	onEachDevice(t, func(t *testing.T, s *tensor.Scope) {
		const k = 4096
		a := tensor.Full(s.Device(), tensor.Float16, 8, 1, k)
		b := tensor.Full(s.Device(), tensor.Float16, 0.125, k, 1)
		v, err := a.MatMul(b).Item()
		if err != nil || v != k {
			t.Errorf("sum of %d products of 8 and 1/8 is %v, %v", k, v, err)
		}
		big := tensor.Full(s.Device(), tensor.Float16, 8, k, 1)
		v, err = a.MatMul(big).Item()
		if err != nil || !math.IsInf(v, 1) { // 262144 is past float16's range: infinite in the final cast only
			t.Errorf("sum of %d products of 8 and 8 is %v in float16, %v", k, v, err)
		}
		v, err = a.Cast(tensor.Float32).MatMul(big.Cast(tensor.Float32)).Item()
		if err != nil || v != 64*k {
			t.Errorf("sum of %d products of 8 and 8 is %v in float32, %v", k, v, err)
		}
		for _, x := range []*tensor.Tensor{a, b, big} {
			x.Free()
		}
	})
}

// TestBackwardInsideAutocast: gradients run in the dtypes of the forward operators, also where Backward or Grad is called inside
// Autocast and the forward pass was not, and whichever scopes the operands are in.
func TestBackwardInsideAutocast(t *testing.T) {
	const fine = 1 + 1.0/4096 // 1 in float16 and bfloat16
	for name, backward := range map[string]func(loss, w *tensor.Tensor) (*tensor.Tensor, error){
		"Backward": func(loss, w *tensor.Tensor) (*tensor.Tensor, error) { err := loss.Backward(); return w.Grad(), err },
		"Grad": func(loss, w *tensor.Tensor) (*tensor.Tensor, error) {
			g, err := tensor.Grad([]*tensor.Tensor{loss}, []*tensor.Tensor{w})
			if err != nil {
				return nil, err
			}
			return g[0], nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			outer := tensor.NewScope(tensor.CPU())
			inner := outer.NewScope()
			w := tensor.FromFloat32s([]float32{1}, 1, 1).SetRequiresGrad(true)
			a := outer.To(tensor.FromFloat32s([]float32{fine}, 1, 1))
			b := inner.To(tensor.FromFloat32s([]float32{fine}, 1, 1))
			var g *tensor.Tensor
			amp.Autocast(outer, func() {
				var loss *tensor.Tensor
				amp.Autocast(outer, func() { loss = w.MatMul(a.MatMul(a)).MatMul(b).Sum() }, amp.Enabled(false))
				var err error
				if g, err = backward(loss, w); err != nil {
					t.Fatal(err)
				}
			})
			got, err := g.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			square := float32(float64(fine) * fine)
			if want := square * fine; got[0] != want {
				t.Errorf("gradient %v, want %v: it was computed in a lower precision", got[0], want)
			}
			if err := outer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWeightCacheFollowsUpdates: a weight that is updated in place within the region is cast again.
func TestWeightCacheFollowsUpdates(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	w := tensor.FromFloat32s([]float32{2}, 1, 1).SetRequiresGrad(true)
	x := s.To(tensor.FromFloat32s([]float32{1}, 1, 1))
	amp.Autocast(s, func() {
		for i, want := range []float64{2, 3} {
			if got, err := x.MatMul(w).Item(); err != nil || got != want {
				t.Errorf("use %d of the weight gives %v, %v, want %v", i, got, err, want)
			}
			if err := w.CopyFrom(tensor.FromFloat32s([]float32{3}, 1, 1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestWeightCacheCounts counts casts: one for each mode of gradients, however often a weight is used, and none for what the
// leaf rule leaves out.
func TestWeightCacheCounts(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	w := matrix(s, 2).Detach().SetRequiresGrad(true)
	frozen := matrix(s, 2)
	view := w.T()
	x := matrix(s, 2).Cast(tensor.Float16)
	noGrad := func(f func()) { tensor.NoGrad(s, func() *tensor.Tensor { f(); return nil }) }
	for name, c := range map[string]struct {
		f    func()
		want uint64 // operators
	}{
		"leaf":                {func() { x.MatMul(w); x.MatMul(w); x.MatMul(w) }, 3 + 1},
		"under NoGrad":        {func() { noGrad(func() { x.MatMul(w); x.MatMul(w) }) }, 2 + 1},
		"NoGrad after grad":   {func() { x.MatMul(w); noGrad(func() { x.MatMul(w) }) }, 2 + 1},
		"grad after NoGrad":   {func() { noGrad(func() { x.MatMul(w) }); x.MatMul(w); x.MatMul(w) }, 3 + 2},
		"requires no grad":    {func() { x.MatMul(frozen); x.MatMul(frozen) }, 2 + 2},
		"view of a leaf":      {func() { x.MatMul(view); x.MatMul(view) }, 2 + 2},
		"nested calls share":  {func() { x.MatMul(w); amp.Autocast(s, func() { x.MatMul(w) }, amp.DType(tensor.Float16)) }, 2 + 1},
		"two dtypes":          {func() { x.MatMul(w); amp.Autocast(s, func() { x.MatMul(w) }, amp.DType(tensor.BFloat16)) }, 2 + 2 + 1},
		"island in between":   {func() { x.MatMul(w); amp.Autocast(s, func() { w.MatMul(w) }, amp.Enabled(false)); x.MatMul(w) }, 3 + 1},
		"child scope's share": {func() { x.MatMul(w); s.NewScope().To(x).MatMul(w) }, 2 + 1},
	} {
		before := tensor.Launches(tensor.CPU()).Nodes
		amp.Autocast(s, c.f, amp.DType(tensor.Float16))
		if got := tensor.Launches(tensor.CPU()).Nodes - before; got != c.want {
			t.Errorf("%s: %d operators, want %d", name, got, c.want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
