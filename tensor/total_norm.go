package tensor

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/lib"
)

var opTotalNorm = register(&OpInfo{Name: "total_norm", Doc: "the p-norm of many tensors, taken as one vector, as float32; float64 if one of them is", Kind: KindReduction, Differentiable: []bool{false}})

// TotalNorm returns the p-norm of the elements of all tensors, taken as one vector: a tensor of no dimensions on their
// device, float64 if one of them is and float32 otherwise, in the innermost of their scopes. p is positive; math.Inf(1) gives the largest absolute value. The tensors
// have floating-point dtypes and are on one device. The number of kernels depends neither on the number of tensors nor
// on their sizes, unless they are in more allocations than a kernel can bind. No gradient flows through it.
func TotalNorm(p float64, ts ...*Tensor) *Tensor {
	c := begin(opTotalNorm, ts...)
	switch {
	case c.err != nil:
		return c.failed()
	case len(ts) == 0:
		return c.fail("", fmt.Errorf("expected a non-empty list of tensors"))
	case !(p > 0):
		return c.fail("", fmt.Errorf("the order of the norm must be positive, got %v", p))
	}
	byDType := map[DType][]*Tensor{}
	for i, t := range c.in {
		if !t.dtype.IsFloat() {
			return c.fail("", errorOf(ErrDType, "tensor %d is %s; norms need floating-point dtypes", i, t.dtype))
		}
		byDType[t.dtype] = append(byDType[t.dtype], t)
	}
	order, op := lib.NormPower, lib.ReduceSum
	switch {
	case p == 2:
		order = lib.NormSquares
	case p == 1:
		order = lib.NormAbs
	case math.IsInf(p, 1):
		order, op = lib.NormMax, lib.ReduceMax
	}
	dtype := Float32
	if len(byDType[Float64]) > 0 {
		dtype = Float64
	}
	// All kernels write parts of one array, whose length is known when they are.
	var kernels []*lib.MultiNorm
	var operands [][]binding
	partials := 0
	for d := Float16; d < numDTypes; d++ {
		ts := byDType[d]
		if len(ts) == 0 {
			continue
		}
		k := &lib.MultiNorm{Name: "total_norm", Ops: []string{"total_norm"}, Kind: d.Kind(), Order: order, Power: float32(p), Double: dtype == Float64, First: partials}
		var bufs []binding
		for _, t := range ts {
			k.Sizes = append(k.Sizes, Numel(t.shape))
			bufs = append(bufs, c.dense(t))
		}
		partials += k.Partials(c.eng.target)
		kernels, operands = append(kernels, k), append(operands, bufs)
	}
	if c.err != nil {
		return c.failed()
	}
	if partials == 0 {
		return fill(c.eng, c.scope, dtype, 0, nil)
	}
	parts := c.output([]int{partials}, dtype)
	out := c.output([]int{}, dtype)
	if out.err != nil || parts.err != nil {
		return c.failed()
	}
	var steps []step
	for i, k := range kernels {
		k.Length = partials
		steps = append(steps, step{k, append(operands[i], binding{st: parts.ref.st, write: true})})
	}
	total := &lib.Reduce{Name: "total_norm", Ops: []string{"total_norm"}, Op: op, Outer: 1, N: partials, Inner: 1, In: []lib.Operand{dtype.operand()}, Out: dtype.operand()}
	steps = append(steps, step{total, []binding{{st: parts.ref.st}, {st: out.ref.st, write: true}}})
	c.runSteps(steps, parts, out)
	parts.Free()
	var norm *Tensor
	switch order {
	case lib.NormSquares:
		norm = out.Sqrt()
	case lib.NormPower:
		norm = out.PowScalar(1 / p)
	default:
		return out
	}
	return replace(out, norm)
}
