package tensor

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// This file has random integers, permutations and draws from weights.

var (
	opRandint  = random("randint", "random integers, uniform from low to high-1")
	opRandperm = random("randperm", "the integers 0 to n-1 in random order")
)

// bits returns n random words as int32, which only the kernels of this file read.
func (c *call) randomBits(g *Generator, n int) *Tensor {
	out := c.output([]int{n}, Int32)
	if out.err != nil {
		return out
	}
	r := &lib.Random{Dist: lib.RandomBits, N: n, Out: ir.U32}
	r.Seed, r.Offset = g.take(n)
	c.run(r, nil, out)
	return out
}

// Randint returns random integers from low to high-1 as int64 on dev, in no scope. A range of n has a bias of at most n/2^32.
func Randint(dev backend.Device, g *Generator, low, high int64, shape ...int) *Tensor {
	c := beginOn(opRandint, dev)
	span := uint64(high - low)
	n, err := checkShape(shape)
	switch {
	case c.err != nil:
		return c.failed()
	case g == nil:
		return c.fail("", fmt.Errorf("a generator is needed; make one with NewGenerator"))
	case high <= low:
		return c.fail("", fmt.Errorf("random_ expects 'from' to be less than 'to', but got from=%d >= to=%d", low, high))
	case span > math.MaxUint32:
		return c.fail("", fmt.Errorf("a range of %d integers; at most %d are possible", span, uint32(math.MaxUint32)))
	case err != nil:
		return c.fail("", err)
	}
	words := c.randomBits(g, n)
	out := c.output(append([]int{}, shape...), Int64)
	if words.err != nil || out.err != nil {
		return c.failed()
	}
	defer words.Free()
	kinds, bits := scalarParam(ir.I64, 0)
	bits[0], bits[1] = uint32(uint64(low)), uint32(uint64(low)>>32)
	c.run(&lib.Elementwise{Name: "randint", Ops: []string{"randint"}, BodyKey: "randint", Shape: []int{n}, In: []lib.Operand{{Kind: ir.U32}}, Out: []lib.Operand{Int64.operand()},
		Scalars: append(kinds, ir.U32), ScalarBits: append(bits, uint32(span)),
		Body: func(b *ir.Builder, in, s []ir.Value) []ir.Value {
			from, rest := scalarValue(b, ir.I64, s)
			return []ir.Value{b.Add(b.Convert(b.MulHi(in[0], b.Splat(rest[0], in[0].Type.Lanes)), ir.I64), from)}
		}}, []binding{{st: words.ref.st}}, out)
	return out
}

// Randperm returns the integers 0 to n-1 in random order as int64 on dev, in no scope.
func Randperm(dev backend.Device, g *Generator, n int) *Tensor {
	c := beginOn(opRandperm, dev)
	switch {
	case c.err != nil:
		return c.failed()
	case g == nil:
		return c.fail("", fmt.Errorf("a generator is needed; make one with NewGenerator"))
	case n < 0:
		return c.fail("", fmt.Errorf("n must be non-negative, got %d", n))
	}
	words := c.randomBits(g, n)
	if words.err != nil {
		return words
	}
	return replace(words, words.Argsort(0, false))
}

var _ = defineOp(OpInfo{Name: "multinomial", Doc: "indices drawn with the probabilities of each row's weights", Kind: KindRandom, Inputs: []string{"weights"}, Differentiable: []bool{false},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(in[0].Multinomial(NewGenerator(uint64(a.Int("seed", 0))), a.Int("num_samples", 1), a.Bool("replacement")))
	},
	Samples: []Sample{
		invalid("cannot sample n_sample > prob_dist.size(-1) samples without replacement", Attrs{"num_samples": 4}, positiveArray(3)),
		invalid("probability tensor contains either `inf`, `nan` or element < 0", nil, list(1, -1, 2)),
		invalid("invalid multinomial distribution (sum of probabilities <= 0)", nil, list(0, 0)),
		invalid("1 or 2 dim", nil, positiveArray(2, 2, 2)),
	}})

// Multinomial returns n indices (int64) for each row of weights [classes] or [rows, classes], drawn with probabilities proportional to the
// weights, which need not sum to 1. Without replacement the indices of a row are distinct, in the order of drawing (Efraimidis and Spirakis,
// "Weighted random sampling with a reservoir", 2006). A negative or infinite weight is an error, which comes with the value.
func (t *Tensor) Multinomial(g *Generator, n int, replacement bool) *Tensor {
	c := begin(LookupOp("multinomial"), t)
	if c.err != nil {
		return c.failed()
	}
	rank := len(t.shape)
	switch {
	case g == nil:
		return c.fail("", fmt.Errorf("a generator is needed; make one with NewGenerator"))
	case rank < 1 || rank > 2:
		return c.shapeFail("prob_dist must be 1 or 2 dim, got shape %v", t.shape)
	case !t.dtype.IsFloat():
		return c.fail("cast it", errorOf(ErrDType, "multinomial only supports floating-point dtypes for input, got %s", t.dtype))
	case n < 1:
		return c.shapeFail("cannot sample n_sample <= 0 samples, got %d", n)
	case !replacement && n > t.Size(-1):
		return c.shapeFail("cannot sample n_sample > prob_dist.size(-1) samples without replacement: %d of %d", n, t.Size(-1))
	}
	w, _ := wide(t.Detach())
	if w.dtype == Float64 {
		w = w.Cast(Float32)
	}
	w = w.Reshape(Numel(t.shape[:rank-1]), t.Size(-1))
	rows, classes := w.shape[0], w.shape[1]
	var out *Tensor
	if replacement {
		// The class is the number of running sums that a uniform number has reached.
		sums := w.Cumsum(1)
		u := c.random(g, lib.Random{Dist: lib.RandomUniform}, Float32, []int{rows, n})
		u = u.Mul(sums.Slice(1, max(0, classes-1), classes, 1))
		out = sums.Unsqueeze(1).Le(u.Unsqueeze(-1)).Sum(-1)
		// Rounding may take the number to the last sum: then the last class with a weight is meant.
		last := w.GtScalar(0).Cast(Int32).Mul(iota32(c.eng, c.scope, classes)).AmaxKeep(1)
		out = out.Minimum(last)
	} else {
		// Exponential variates divided by the weights: the smallest come first.
		u := c.random(g, lib.Random{Dist: lib.RandomUniform}, Float32, w.shape)
		_, out = u.Neg().Log1p().Neg().Div(w).TopK(n, 1, false)
	}
	if out.err == nil && rows > 0 {
		c.checkWeights(out, w)
	}
	if rank == 1 {
		out = out.Reshape(n)
	}
	return out
}

// checkWeights asserts that weights are finite and not negative, and that each row has a positive one.
func (c *call) checkWeights(out, w *Tensor) {
	bad := w.GeScalar(0).LogicalAnd(w.LtScalar(math.Inf(1))).LogicalNot().Sum()
	empty := w.AmaxKeep(1).LeScalar(0).Sum()
	// One number for both: bad weights count as 2^32.
	val := bad.MulScalar(1 << 32).Add(empty).Cast(Int64)
	if val.err != nil {
		return
	}
	op, operands, where := c.op, describeOperands(c.op.Inputs, c.in), c.site
	c.assert(out, val.Keep(), func(v int64) error {
		if v == 0 {
			return nil
		}
		err := fmt.Errorf("invalid multinomial distribution (sum of probabilities <= 0)")
		if v >= 1<<32 {
			err = fmt.Errorf("probability tensor contains either `inf`, `nan` or element < 0")
		}
		e := &Error{Op: op.Name, Operands: operands, Err: err}
		e.File, e.Line = where.resolve()
		return trap(e)
	})
}
