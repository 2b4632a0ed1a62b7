package conformance

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// GoldenCase is an operator applied to recorded operands, with PyTorch's results and gradients in float64. The format is
// described beside the cases. A case belongs to the operator of that name in the operator table, or is one of a few
// compositions, so that a new operator is tested by existing.
type GoldenCase struct {
	Name    string
	Op      string
	Attrs   map[string]any
	Inputs  []string
	Outputs int
	Grads   []string
	RTol    float64
	ATol    float64
	File    string

	arrays map[string]*tensor.Tensor
}

// LoadGolden reads the cases of a directory (cases.json and one .npz a case).
func LoadGolden(fsys fs.FS) ([]*GoldenCase, error) {
	b, err := fs.ReadFile(fsys, "cases.json")
	if err != nil {
		return nil, err
	}
	var list struct{ Cases []*GoldenCase }
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("cases.json: %w", err)
	}
	for _, c := range list.Cases {
		if c.arrays, err = readNPZ(fsys, path.Base(c.File)); err != nil {
			return nil, err
		}
	}
	return list.Cases, nil
}

// compositions are cases that are built from several operators.
var compositions = map[string]func(in []*tensor.Tensor, a tensor.Attrs) []*tensor.Tensor{
	"matmul_nt": func(in []*tensor.Tensor, _ tensor.Attrs) []*tensor.Tensor {
		return []*tensor.Tensor{in[0].MatMul(in[1].Transpose(-1, -2))}
	},
	"matmul_tn": func(in []*tensor.Tensor, _ tensor.Attrs) []*tensor.Tensor {
		return []*tensor.Tensor{in[0].Transpose(-1, -2).MatMul(in[1])}
	},
	"permute_reshape": func(in []*tensor.Tensor, a tensor.Attrs) []*tensor.Tensor {
		return []*tensor.Tensor{in[0].Permute(a.Ints("dims")...).Reshape(a.Ints("shape")...)}
	},
	"mul_self": func(in []*tensor.Tensor, _ tensor.Attrs) []*tensor.Tensor { return []*tensor.Tensor{in[0].Mul(in[0])} },
	"fanout": func(in []*tensor.Tensor, _ tensor.Attrs) []*tensor.Tensor {
		return []*tensor.Tensor{in[0].Tanh().Add(in[0].Mul(in[0].SumKeep(1)))}
	},
	"cross_entropy_prob": func(in []*tensor.Tensor, a tensor.Attrs) []*tensor.Tensor {
		return tensor.LookupOp("cross_entropy").Call(in, a)
	},
}

// call returns the case's operator, or nil if it is not built.
func (c *GoldenCase) call() func(in []*tensor.Tensor, a tensor.Attrs) []*tensor.Tensor {
	if f := compositions[c.Op]; f != nil {
		return f
	}
	if op := tensor.LookupOp(c.Op); op != nil {
		return op.Call
	}
	return nil
}

// Supported reports whether the case's operator exists.
func (c *GoldenCase) Supported() bool { return c.call() != nil }

// Run repeats the case on a device and compares results and gradients. An operator that is not built gives a
// *NotSupportedError; a difference, an error that names the array, the worst element and both values.
func (c *GoldenCase) Run(dev backend.Device) error {
	call := c.call()
	if call == nil {
		return &NotSupportedError{"operator " + c.Op}
	}
	s := tensor.NewScope(dev)
	err := c.run(s, call)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("golden case %s (%s): %w", c.Name, c.Op, err)
	}
	return nil
}

func (c *GoldenCase) run(s *tensor.Scope, call func(in []*tensor.Tensor, a tensor.Attrs) []*tensor.Tensor) error {
	in := make([]*tensor.Tensor, len(c.Inputs))
	for i, name := range c.Inputs {
		a := c.arrays["in_"+name]
		if a == nil {
			return fmt.Errorf("array in_%s is missing", name)
		}
		if c.isMask(i) {
			a = a.Cast(tensor.Bool)
		}
		in[i] = s.To(a)
		if slices.Contains(c.Grads, name) {
			in[i].SetRequiresGrad(true)
		}
	}
	outs := call(in, c.Attrs)
	if len(outs) < c.Outputs {
		return fmt.Errorf("%d outputs, expected %d", len(outs), c.Outputs)
	}
	for i := range c.Outputs {
		if err := c.compare(fmt.Sprintf("out_%d", i), outs[i]); err != nil {
			return err
		}
	}
	if len(c.Grads) == 0 {
		return nil
	}
	var from, upstream, wrt []*tensor.Tensor
	for i := range c.Outputs {
		if d := c.arrays[fmt.Sprintf("dout_%d", i)]; d != nil {
			from, upstream = append(from, outs[i]), append(upstream, s.To(d))
		}
	}
	for i, name := range c.Inputs {
		if slices.Contains(c.Grads, name) {
			wrt = append(wrt, in[i])
		}
	}
	// Both ways to a gradient: as tensors, and into the leaves.
	gs, err := tensor.Grad(from, wrt, upstream...)
	if err != nil {
		return err
	}
	for i, o := range from {
		if err := o.BackwardWith(upstream[i]); err != nil {
			return err
		}
	}
	at := 0
	for i, name := range c.Inputs {
		if !slices.Contains(c.Grads, name) {
			continue
		}
		if err := c.compare("grad_"+name, gs[at]); err != nil {
			return err
		}
		g := in[i].Grad()
		if g == nil {
			return fmt.Errorf("Backward left no gradient for %s", name)
		}
		if err := c.compare("grad_"+name, g); err != nil {
			return fmt.Errorf("Backward: %w", err)
		}
		in[i].ZeroGrad()
		at++
	}
	return nil
}

// isMask reports whether input i is a condition, which the cases keep as integers.
func (c *GoldenCase) isMask(i int) bool {
	if name := c.Inputs[i]; name == "mask" || name == "cond" || name == "attn_mask" {
		return true
	}
	op := tensor.LookupOp(c.Op)
	return op != nil && op.Elementwise() != nil && slices.Contains(op.Elementwise().Bools, i)
}

// compare holds a result against an array of the case.
func (c *GoldenCase) compare(name string, got *tensor.Tensor) error {
	want := c.arrays[name]
	if want == nil {
		return fmt.Errorf("array %s is missing", name)
	}
	if err := got.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("%s: shape %v, expected %v", name, got.Shape(), want.Shape())
	}
	g, err := got.Detach().CPU().Float64s()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w, err := want.Float64s()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return Close(name, g, w, c.RTol, c.ATol)
}

// Close compares two lists: abs(got - want) <= atol + rtol*abs(want), NaN equal to NaN, infinities by sign. The error
// names the worst element.
func Close(name string, got, want []float64, rtol, atol float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, expected %d", name, len(got), len(want))
	}
	worst, at, bad := 0.0, -1, 0
	for i, w := range want {
		g := got[i]
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		over := math.Abs(g-w) / (atol + rtol*math.Abs(w))
		if over <= 1 {
			continue
		}
		bad++
		if at < 0 || over > worst || math.IsNaN(over) {
			worst, at = over, i
		}
	}
	if at < 0 {
		return nil
	}
	return fmt.Errorf("%s: %d of %d elements are off, the worst at %d: %v, expected %v (%.3g times the bound of rtol %g, atol %g)", name, bad, len(want), at, got[at], want[at], worst, rtol, atol)
}
