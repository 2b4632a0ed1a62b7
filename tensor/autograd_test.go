package tensor

import (
	"fmt"
	"math"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

func values(t *testing.T, x *Tensor) []float64 {
	t.Helper()
	vs, err := x.Detach().CPU().Float64s()
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func TestBackwardAccumulates(t *testing.T) {
	w := FromFloat32s([]float32{1, 2, 3}, 3).SetRequiresGrad(true)
	for step := 1; step <= 3; step++ {
		s := NewScope(CPU())
		if err := s.To(FromFloat32s([]float32{1, 10, 100}, 3)).Mul(w).Sum().Backward(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		k := float64(step)
		checkClose(t, "gradient", values(t, w.Grad()), []float64{k, 10 * k, 100 * k}, 0, 0)
	}
	if w.Grad().Scope() != nil || w.Grad().DType() != Float32 {
		t.Errorf("the gradient is %s in %v", w.Grad(), w.Grad().Scope())
	}
	old := w.Grad()
	w.ZeroGrad()
	if w.Grad() != nil || old.Err() == nil {
		t.Error("ZeroGrad leaves the gradient or its memory")
	}
	// The graph stays, so that Backward may run again.
	loss := w.Square().Sum()
	for range 2 {
		if err := loss.Backward(); err != nil {
			t.Fatal(err)
		}
	}
	checkClose(t, "gradient of two passes", values(t, w.Grad()), []float64{4, 8, 12}, 0, 0)
}

// Gradients are updated in place by optimizers and scalers, so no two leaves may share one.
func TestGradientsHaveMemoryOfTheirOwn(t *testing.T) {
	a := FromFloat32s([]float32{1, 2, 3, 4}, 2, 2).SetRequiresGrad(true)
	b := FromFloat32s([]float32{1, 2, 3, 4}, 2, 2).SetRequiresGrad(true)
	up := FromFloat32s([]float32{1, 1, 1, 1}, 2, 2)
	if err := a.Add(b.T()).BackwardWith(up); err != nil {
		t.Fatal(err)
	}
	if a.Grad().ref.st == b.Grad().ref.st || a.Grad().ref.st == up.ref.st || !b.Grad().isDense() {
		t.Error("gradients share memory with each other or with the upstream gradient")
	}
	if err := a.Grad().CopyFrom(Scalar(7)); err != nil {
		t.Fatal(err)
	}
	checkClose(t, "b's gradient", values(t, b.Grad()), []float64{1, 1, 1, 1}, 0, 0)
	a.ZeroGrad()
	if err := a.Sum().Backward(); err != nil { // an expanded scalar
		t.Fatal(err)
	}
	if _, ok := a.Grad().denseBinding(); !ok || a.Grad().ref.st.n != 4 {
		t.Error("the gradient of a sum is not stored densely")
	}
}

func TestGradientOfFloat32LeafThroughFloat16(t *testing.T) {
	w := FromFloat32s([]float32{1, 2}, 2).SetRequiresGrad(true)
	y := w.Cast(Float16).MulScalar(3).Sum()
	if y.DType() != Float16 {
		t.Errorf("result is %s", y.DType())
	}
	if err := y.Backward(); err != nil {
		t.Fatal(err)
	}
	if w.Grad().DType() != Float32 {
		t.Errorf("gradient is %s", w.Grad().DType())
	}
	checkClose(t, "gradient", values(t, w.Grad()), []float64{3, 3}, 0, 0)
}

func TestHigherDerivatives(t *testing.T) {
	x := FromFloat64s([]float64{0.7}, 1).SetRequiresGrad(true)
	for _, tc := range []struct {
		name string
		f    func(x *Tensor) *Tensor
		want []float64 // first, second, third derivative
	}{
		{"x^3 by products", func(x *Tensor) *Tensor { return x.Mul(x).Mul(x) }, []float64{3 * 0.49, 6 * 0.7, 6}},
		{"sin", (*Tensor).Sin, []float64{math.Cos(0.7), -math.Sin(0.7), -math.Cos(0.7)}},
		{"exp", (*Tensor).Exp, []float64{math.Exp(0.7), math.Exp(0.7), math.Exp(0.7)}},
		{"tanh", (*Tensor).Tanh, func() []float64 {
			y := math.Tanh(0.7)
			d := 1 - y*y
			return []float64{d, -2 * y * d, -2*d*d + 4*y*y*d}
		}()},
		{"matmul", func(x *Tensor) *Tensor { return x.Reshape(1, 1).MatMul(x.Reshape(1, 1)).MatMul(x.Reshape(1, 1)) }, []float64{3 * 0.49, 6 * 0.7, 6}},
	} {
		y := tc.f(x).Sum()
		for i, want := range tc.want {
			gs, err := Grad([]*Tensor{y}, []*Tensor{x})
			if err != nil {
				t.Fatalf("%s: derivative %d: %v", tc.name, i+1, err)
			}
			checkClose(t, fmt.Sprintf("%s: derivative %d", tc.name, i+1), values(t, gs[0]), []float64{want}, 1e-9, 0)
			y = gs[0].Sum()
		}
	}
	// Softmax and cross entropy twice.
	z := FromFloat64s([]float64{0.3, -0.2, 0.9}, 1, 3).SetRequiresGrad(true)
	loss := CrossEntropy(z, FromInt64s([]int64{2}, 1), CrossEntropyOptions{})
	g, err := Grad([]*Tensor{loss}, []*Tensor{z})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Grad([]*Tensor{g[0].Select(1, 0).Sum()}, []*Tensor{z})
	if err != nil {
		t.Fatal(err)
	}
	p := values(t, z.Softmax(1))
	checkClose(t, "row of cross entropy's second derivative", values(t, h[0]), []float64{p[0] * (1 - p[0]), -p[0] * p[1], -p[0] * p[2]}, 1e-7, 1e-9)
}

func TestGradOfIntermediateAndSharedUse(t *testing.T) {
	x := FromFloat32s([]float32{2}, 1).SetRequiresGrad(true)
	h := x.Square()
	y := h.Mul(h).Add(h)
	gs, err := Grad([]*Tensor{y}, []*Tensor{h, x})
	if err != nil {
		t.Fatal(err)
	}
	checkClose(t, "dy/dh", values(t, gs[0]), []float64{9}, 0, 0)
	checkClose(t, "dy/dx", values(t, gs[1]), []float64{36}, 0, 0)
}

func TestInPlaceChangeIsNoticed(t *testing.T) {
	w := FromFloat32s([]float32{1, 2}, 2).SetRequiresGrad(true)
	loss := w.Square().Sum()
	if err := w.CopyFrom(Scalar(5)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, loss.Backward(), ErrGrad, "has been modified by an inplace operation", "square", "is at version 1; expected version 0")
	// The forward pass used the old values all the same, though it had not run yet.
	if v, err := loss.Item(); err != nil || v != 5 {
		t.Errorf("loss %v, %v; expected that of the old values", v, err)
	}
	if v, err := w.Square().Sum().Item(); err != nil || v != 50 {
		t.Errorf("loss %v, %v; expected that of the new values", v, err)
	}
	gpu := gpuLike(t)
	loss = w.Square().Sum()
	if err := w.MoveTo(gpu); err != nil {
		t.Fatal(err)
	}
	wantErr(t, loss.Backward(), ErrGrad, "was moved to another device")
}

func TestMoveToKeepsIdentity(t *testing.T) {
	gpu := gpuLike(t)
	w := FromFloat32s([]float32{1, 2}, 2).SetRequiresGrad(true)
	if err := w.Square().Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	if err := w.MoveTo(gpu); err != nil {
		t.Fatal(err)
	}
	if w.Device() != gpu || w.Grad().Device() != gpu || !w.RequiresGrad() || !w.IsLeaf() {
		t.Errorf("after MoveTo: %s, gradient %s", w, w.Grad())
	}
	if err := w.Square().Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	checkClose(t, "gradient", values(t, w.Grad()), []float64{4, 8}, 0, 0)
	wantErr(t, w.Square().MoveTo(CPU()), ErrGrad, "only a leaf")
	if err := w.MoveTo(gpu); err != nil {
		t.Error(err)
	}
}

func TestFreedOperandOfGraph(t *testing.T) {
	w := FromFloat32s([]float32{1, 2}, 2).SetRequiresGrad(true)
	h := w.Square()
	y := h.Sin().Sum()
	h.Free()
	wantErr(t, y.Backward(), ErrFreed, "gradient of sin at autograd_test.go", "was freed")
}

func TestUpdateInPlace(t *testing.T) {
	for _, dev := range []string{"cpu", "checked"} {
		d := CPU()
		if dev == "checked" {
			d = gpuLike(t)
		}
		var rows [][]*Tensor
		for i := range 40 { // more than one kernel takes
			p := Full(d, Float32, float64(i), 3, 2)
			g := Full(d, map[bool]DType{false: Float32, true: Float16}[i%2 == 1], 1, 3, 2)
			rows = append(rows, []*Tensor{p, g})
		}
		scale, flag := Full(d, Float32, 0.5, 1), Zeros(d, Int32, 1)
		before := rows[7][0].AddScalar(0) // pending, reads the old value
		update := func(lr, bad float64) error {
			return UpdateInPlace(InPlaceUpdate{Name: "test_step", BodyKey: "test_step", Tensors: rows, Access: []ir.Access{ir.ReadWrite, ir.Read},
				Shared: []*Tensor{scale}, Flag: flag, Scalars: []float64{lr, bad},
				Body: func(b *ir.Builder, v, shared, s []ir.Value) ([]ir.Value, ir.Value) {
					out := b.Sub(v[0], b.Mul(s[0], b.Mul(shared[0], v[1])))
					return []ir.Value{out}, b.Gt(out, s[1])
				}})
		}
		if err := update(2, 100); err != nil {
			t.Fatal(err)
		}
		checkClose(t, dev+": read before the update", values(t, before), []float64{7, 7, 7, 7, 7, 7}, 0, 0)
		for i, r := range rows {
			if got := values(t, r[0]); got[0] != float64(i)-1 || got[5] != float64(i)-1 {
				t.Errorf("%s: row %d is %v after the update", dev, i, got)
			}
		}
		if v := values(t, flag); v[0] != 0 {
			t.Errorf("%s: flag is %v", dev, v)
		}
		if err := update(2, 30); err != nil {
			t.Fatal(err)
		}
		if v := values(t, flag); v[0] != 1 {
			t.Errorf("%s: the flag was not raised: %v", dev, v)
		}
		rows[3][1] = Ones(d, Float32, 4)
		wantErr(t, update(1, 1), ErrShape, "test_step: arrays 0 and 1 of row 3 have shapes [3 2] and [4]")
		rows[3][1] = rows[3][0].Expand(2, 3, 2).Select(0, 1).T()
		rows[3][0] = rows[3][1]
		wantErr(t, update(1, 1), ErrShape, "not contiguous")
	}
}

func TestCopyFrom(t *testing.T) {
	x := FromFloat32s(make([]float32, 6), 2, 3)
	if err := x.Select(0, 1).CopyFrom(FromInt64s([]int64{1, 2, 3}, 3)); err != nil { // into a view, cast
		t.Fatal(err)
	}
	checkClose(t, "copy into a view", values(t, x), []float64{0, 0, 0, 1, 2, 3}, 0, 0)
	if err := x.Slice(1, 0, 2, 1).CopyFrom(x.Slice(1, 1, 3, 1)); err != nil { // overlapping
		t.Fatal(err)
	}
	checkClose(t, "overlapping copy", values(t, x), []float64{0, 0, 0, 2, 3, 3}, 0, 0)
	wantErr(t, x.CopyFrom(FromFloat32s(make([]float32, 4), 4)), ErrShape, "cannot copy shape [4] to shape [2 3]")
}
