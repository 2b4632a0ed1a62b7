package tensor

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// discardedGradients returns the gradients of an operator's operands, with all values discarded between the passes if discard is set.
func discardedGradients(t *testing.T, op *OpInfo, sm Sample, discard bool) [][]float64 {
	t.Helper()
	s := NewScope(CPU())
	defer s.Close()
	var leaves, in []*Tensor
	for i, a := range sm.In {
		x := a.Tensor()
		if op.flows(i) && x.dtype.IsFloat() {
			leaves = append(leaves, x.SetRequiresGrad(true))
		}
		in = append(in, s.To(x))
	}
	var results []*Tensor
	for _, out := range op.Call(in, sm.Attrs) {
		if err := out.Err(); err != nil {
			t.Fatal(err)
		}
		if out.RequiresGrad() {
			results = append(results, out.AddScalar(0)) // whose gradient needs no value
		}
		if discard {
			out.Discard()
		}
	}
	if discard {
		for _, x := range in {
			x.Discard()
		}
	}
	if err := Flush(CPU()); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		up := make([]float64, r.Numel())
		for i := range up {
			up[i] = 1 + float64(i%7)/4
		}
		if err := r.BackwardWith(FromFloat64s(up, r.Shape()...)); err != nil {
			t.Fatalf("discard %t: %v", discard, err)
		}
	}
	var out [][]float64
	for _, x := range leaves {
		if x.Grad() == nil {
			out = append(out, nil)
			continue
		}
		v, err := x.Grad().Float64s()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// TestGradientReads: the operators that are said not to need some values for their gradients give the same gradients without them.
func TestGradientReads(t *testing.T) {
	tried := 0
	for name := range gradientReads {
		op := LookupOp(name)
		if op == nil {
			t.Errorf("%s is no operator", name)
			continue
		}
		samples := op.Samples
		if op.elementwise != nil {
			samples = []Sample{{In: make([]Array, len(op.Inputs))}}
			for i := range op.Inputs {
				samples[0].In[i] = positiveArray(3, 4)
				if slices.Contains(op.elementwise.Bools, i) {
					samples[0].In[i] = boolArray([]int{3, 4}, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1)
				}
			}
		}
		for _, sm := range samples {
			if sm.Err != "" || len(sm.In) == 0 {
				continue
			}
			tried++
			want := discardedGradients(t, op, sm, false)
			got := discardedGradients(t, op, sm, true)
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%s %s: the gradient of operand %d is %v after the values were discarded, and %v before", name, sm.Name, i, got[i], want[i])
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d samples", tried)
	}
}

func TestDiscard(t *testing.T) {
	s := NewScope(CPU())
	defer s.Close()
	leaf := FromFloat32s([]float32{1, 2}, 2).SetRequiresGrad(true)
	leaf.Discard()
	x := s.To(leaf)
	kept := x.MulScalar(2).Keep()
	gone, needed := x.MulScalar(3), x.MulScalar(4)
	view := gone.Reshape(1, 2)
	y := gone.Add(needed.Square())
	for _, v := range []*Tensor{kept, gone, needed, nil} {
		v.Discard()
		v.Discard()
	}
	if err := gone.Err(); err == nil || !strings.Contains(err.Error(), "discarded after its last use") {
		t.Errorf("a discarded value: %v", err)
	}
	for name, v := range map[string]*Tensor{"a leaf": leaf, "kept": kept, "needed by a gradient": needed, "a view": view} {
		if _, err := v.Detach().Float32s(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	loss := y.Sum()
	if err := errors.Join(loss.BackwardRetain(nil), loss.Backward()); err != nil {
		t.Fatal(err)
	}
	if g, err := leaf.Grad().Float32s(); err != nil || g[0] != 2*(3+2*4*4) || g[1] != 2*(3+2*8*4) {
		t.Errorf("gradient %v, %v", g, err)
	}
	if _, err := needed.Detach().Float32s(); err == nil {
		t.Error("a discarded value is still there after the backward pass that used it")
	}
	if err := loss.Backward(); err == nil || !strings.Contains(err.Error(), "a second time") {
		t.Errorf("a second backward pass: %v", err)
	}
	if z := gone.AddScalar(1); z.Err() == nil {
		t.Error("an operator took a discarded value")
	}
}

// TestDiscardFreesMemory: the memory of a discarded value is used again within the scope.
func TestDiscardFreesMemory(t *testing.T) {
	e, err := cpuEngine()
	if err != nil {
		t.Fatal(err)
	}
	peak := func(discard bool) int64 {
		s := NewScope(CPU())
		defer s.Close()
		x := s.To(Ones(CPU(), Float32, 256, 256))
		if err := Flush(CPU()); err != nil {
			t.Fatal(err)
		}
		ResetPeakMemory(CPU())
		before := e.alloc.Stats().AllocatedBytes.Current
		for range 8 {
			y := x.MatMul(x)
			if discard {
				x.Discard()
			}
			x = y
		}
		if _, err := x.Float32s(); err != nil {
			t.Fatal(err)
		}
		return e.alloc.Stats().AllocatedBytes.Peak - before
	}
	const size = 256 * 256 * 4
	if kept, gone := peak(false), peak(true); kept < 8*size || gone > 2*size {
		t.Errorf("eight products take %d bytes, and %d where the operands are discarded; one is %d", kept, gone, size)
	}
}
