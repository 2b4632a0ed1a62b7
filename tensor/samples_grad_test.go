package tensor

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// gradCase is a sample whose float operands are float64 and require gradients.
type gradCase struct {
	op     *OpInfo
	s      Sample
	wrt    []int // operands that gradients flow to
	weight []float64
}

// run returns sum(results * weights) and its gradients, for operands in.
func (c *gradCase) run(in []Array) (*Tensor, []*Tensor, []*Tensor, error) {
	ts := make([]*Tensor, len(in))
	var wrt []*Tensor
	for i, a := range in {
		if a.DType != InvalidDType {
			ts[i] = a.Tensor()
			continue
		}
		ts[i] = FromFloat64s(a.Data, a.Shape...)
		if slices.Contains(c.wrt, i) {
			ts[i].SetRequiresGrad(true)
			wrt = append(wrt, ts[i])
		}
	}
	var total *Tensor
	for _, o := range c.op.Call(ts, c.s.Attrs) {
		if err := o.Err(); err != nil {
			return nil, nil, nil, err
		}
		if !o.RequiresGrad() {
			continue
		}
		w := FromFloat64s(c.weights(o.Numel()), o.Shape()...)
		if part := o.Mul(w).Sum(); total == nil {
			total = part
		} else {
			total = total.Add(part)
		}
	}
	if total == nil {
		return nil, nil, nil, nil
	}
	var on []*Tensor
	for _, x := range wrt {
		if _, err := Grad([]*Tensor{total}, []*Tensor{x}); err == nil {
			on = append(on, x)
		}
	}
	gs, err := Grad([]*Tensor{total}, on)
	return total, on, gs, err
}

func (c *gradCase) weights(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 0.5 + 0.25*float64(i%5) - float64(i%3)
	}
	return w
}

// refTotal is sum(results * weights) by the reference. Results that are not floats do not count.
func (c *gradCase) refTotal(t *testing.T, in []Array, floats []bool) float64 {
	outs, err := c.op.Ref(in, c.s.Attrs)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, o := range outs {
		if i < len(floats) && floats[i] {
			for k, w := range c.weights(len(o.Data)) {
				sum += o.Data[k] * w
			}
		}
	}
	return sum
}

func moved(in []Array, operand, element int, by float64) []Array {
	out := slices.Clone(in)
	out[operand].Data = slices.Clone(in[operand].Data)
	out[operand].Data[element] += by
	return out
}

// TestSampleGradients holds first derivatives against differences of the reference, and second ones against differences
// of the first, for all rows that are not elementwise.
func TestSampleGradients(t *testing.T) {
	const h = 1e-5
	for _, op := range Ops() {
		if op.elementwise != nil || op.Ref == nil || op.Kind == KindRandom {
			continue
		}
		for _, s := range op.Samples {
			c := &gradCase{op: op, s: s}
			finite := s.Err == ""
			for i, a := range s.In {
				for _, v := range a.Data {
					finite = finite && !math.IsNaN(v) && !math.IsInf(v, 0)
				}
				if a.DType == InvalidDType && op.flows(i) && len(a.Data) > 0 {
					c.wrt = append(c.wrt, i)
				}
			}
			if !finite || len(c.wrt) == 0 || kinks[op.Name+"/"+s.Name] {
				continue
			}
			t.Run(op.Name+"/"+s.Name, func(t *testing.T) {
				total, on, gs, err := c.run(s.In)
				if err != nil {
					t.Fatal(err)
				}
				if total == nil {
					return
				}
				var floats []bool
				for _, o := range op.Call(c.plain(), s.Attrs) {
					floats = append(floats, o.DType().IsFloat())
				}
				at := 0
				second := 0
				for _, i := range c.wrt {
					if at >= len(on) || !slices.Equal(on[at].Shape(), append([]int{}, s.In[i].Shape...)) {
						continue // no gradient for it
					}
					got, err := gs[at].Detach().Float64s()
					if err != nil {
						t.Fatal(err)
					}
					n := len(got)
					step := max(1, n/12)
					for k := 0; k < n; k += step {
						want := (c.refTotal(t, moved(s.In, i, k, h), floats) - c.refTotal(t, moved(s.In, i, k, -h), floats)) / (2 * h)
						checkClose(t, fmt.Sprintf("gradient for operand %d at %d", i, k), got[k:k+1], []float64{want}, 2e-5, 2e-6)
					}
					if second < 2 && gs[at].RequiresGrad() && n <= 64 {
						second++
						c.second(t, i, at, gs[at], on[at], h)
					}
					at++
				}
			})
		}
	}
}

// plain returns the operands without gradients.
func (c *gradCase) plain() []*Tensor {
	ts := make([]*Tensor, len(c.s.In))
	for i, a := range c.s.In {
		ts[i] = a.Tensor()
	}
	return ts
}

// second checks the derivative of sum(g*w) for the gradient g of an operand by that operand.
func (c *gradCase) second(t *testing.T, operand, at int, g, x *Tensor, h float64) {
	w := FromFloat64s(c.weights(g.Numel()), g.Shape()...)
	gs, err := Grad([]*Tensor{g.Mul(w).Sum()}, []*Tensor{x})
	if err != nil {
		return // linear
	}
	got, err := gs[0].Detach().Float64s()
	if err != nil {
		t.Fatal(err)
	}
	for k := 0; k < len(got); k += max(1, len(got)/4) {
		want := 0.0
		for _, sgn := range []float64{1, -1} {
			_, _, first, err := c.run(moved(c.s.In, operand, k, sgn*h))
			if err != nil {
				t.Fatal(err)
			}
			vs, err := first[at].Detach().Mul(w).Sum().Float64s()
			if err != nil {
				t.Fatal(err)
			}
			want += sgn * vs[0] / (2 * h)
		}
		checkClose(t, fmt.Sprintf("second derivative for operand %d at %d", operand, k), got[k:k+1], []float64{want}, 1e-4, 1e-5)
	}
}

// kinks are samples at points without a derivative.
var kinks = map[string]bool{
	"sort/longer than a run": true, // it has ties
	"bce/certain":            true, // the logarithm is bounded there
	"normalize/a row of 0":   true,
	"kl_div/nothing there":   true, // 0*log(0)
	"embedding/padding":      true, // the padding row gets no gradient, by design
	"scatter/columns":        true, // of several values for one place PyTorch's gradient counts each
	"scatter/smaller index":  true,
}
