package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// halfEvery: a quick run takes the recorded case of one operator in that many in float16 too, gradients included.
const halfEvery = 6

// goldenCases are the recorded results of PyTorch, in float32 and in float16; in a quick run one of each operator. The whole of
// them is run on the CPU at each commit (TestGoldenOps).
func goldenCases(e *env) []testCase {
	var out []testCase
	for _, c := range e.golden.ops {
		if e.opts.Quick && !e.golden.first(c) {
			continue
		}
		out = append(out, testCase{name: "golden/" + c.Name + "/float32", op: c.Op, dtype: "float32", run: func(x *run) error {
			x.bound = fmt.Sprintf("rtol %g, atol %g", c.RTol, c.ATol)
			return c.Run(x.dev)
		}})
		if c.hasFloats() && (!e.opts.Quick || e.opts.samples(c.Op, halfEvery)) {
			out = append(out, testCase{name: "golden/" + c.Name + "/float16", op: c.Op, dtype: "float16", run: func(x *run) error {
				x.bound = fmt.Sprintf("rtol %g, atol %g", halfTolerance, halfTolerance)
				return c.RunHalf(x.dev)
			}})
		}
	}
	return out
}

// first reports whether the case is the first of its operator.
func (g *goldenSet) first(c *GoldenCase) bool {
	for _, o := range g.ops {
		if o.Op == c.Op {
			return o == c
		}
	}
	return false
}

func (c *GoldenCase) hasFloats() bool {
	return len(c.Inputs) > 0 && c.arrays["in_"+c.Inputs[0]] != nil && c.arrays["in_"+c.Inputs[0]].DType() == tensor.Float32
}

// halfTolerance is FORMAT.md's bound for float16, relative and absolute.
const halfTolerance = 1e-2

// RunHalf repeats the case with its float32 inputs rounded to float16, and compares results and gradients with the
// library's own in float64 on the CPU for the same inputs: those are held against PyTorch by [GoldenCase.Run]. A case
// whose results overflow float16 passes without a comparison.
func (c *GoldenCase) RunHalf(dev backend.Device) error {
	call := c.call()
	if call == nil {
		return &NotSupportedError{"operator " + c.Op}
	}
	want, wantGrads, err := c.evaluate(tensor.CPU(), tensor.Float64, call)
	if err == nil {
		for _, w := range append(slices.Clone(want), wantGrads...) {
			for _, v := range w {
				if math.Abs(v) > formats[tensor.Float16].max && !math.IsInf(v, 0) {
					return nil
				}
			}
		}
		var got, gotGrads [][]float64
		got, gotGrads, err = c.evaluate(dev, tensor.Float16, call)
		for i := range want {
			if err == nil {
				err = Close(fmt.Sprintf("out_%d", i), got[i], want[i], halfTolerance, halfTolerance)
			}
		}
		for i := range wantGrads {
			if err == nil {
				err = Close("grad_"+c.Grads[i], gotGrads[i], wantGrads[i], halfTolerance, halfTolerance)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("golden case %s (%s) in float16: %w", c.Name, c.Op, err)
	}
	return nil
}

// evaluate runs the case on a device with inputs rounded to float16 and then cast to a dtype; it returns results and the
// gradients of Grads.
func (c *GoldenCase) evaluate(dev backend.Device, d tensor.DType, call func([]*tensor.Tensor, tensor.Attrs) []*tensor.Tensor) (outs, grads [][]float64, err error) {
	s := tensor.NewScope(dev)
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	cast := func(a *tensor.Tensor) *tensor.Tensor {
		if a.DType() == tensor.Float32 {
			return s.To(a.Cast(tensor.Float16).Cast(d))
		}
		return s.To(a)
	}
	in := make([]*tensor.Tensor, len(c.Inputs))
	wrt := make([]*tensor.Tensor, len(c.Grads))
	for i, name := range c.Inputs {
		a := c.arrays["in_"+name]
		if a == nil {
			return nil, nil, fmt.Errorf("array in_%s is missing", name)
		}
		if c.isMask(i) {
			a = a.Cast(tensor.Bool)
		}
		in[i] = cast(a)
		if k := slices.Index(c.Grads, name); k >= 0 {
			in[i].SetRequiresGrad(true)
			wrt[k] = in[i]
		}
	}
	results := call(in, c.Attrs)
	if len(results) < c.Outputs {
		return nil, nil, fmt.Errorf("%d outputs, expected %d", len(results), c.Outputs)
	}
	var from, upstream []*tensor.Tensor
	for i := range c.Outputs {
		v, err := results[i].Detach().CPU().Float64s()
		if err != nil {
			return nil, nil, err
		}
		outs = append(outs, v)
		if u := c.arrays[fmt.Sprintf("dout_%d", i)]; u != nil && len(c.Grads) > 0 {
			from, upstream = append(from, results[i]), append(upstream, cast(u).Cast(results[i].DType()))
		}
	}
	if len(c.Grads) == 0 {
		return outs, nil, nil
	}
	gs, err := tensor.Grad(from, wrt, upstream...)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range gs {
		v, err := g.Detach().CPU().Float64s()
		if err != nil {
			return nil, nil, err
		}
		grads = append(grads, v)
	}
	return outs, grads, nil
}
