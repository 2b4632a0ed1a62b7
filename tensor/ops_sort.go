package tensor

import (
	"cmp"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// This file has sorting. All of it is stable: equal elements keep their order, so the lower index comes first. NaN counts as largest.

// refOrder returns the places of a line in sorted order.
func refOrder(line []float64, descending bool) []int {
	order := make([]int, len(line))
	for i := range order {
		order[i] = i
	}
	compare := func(x, y float64) int {
		switch {
		case math.IsNaN(x) && math.IsNaN(y):
			return 0
		case math.IsNaN(x):
			return 1
		case math.IsNaN(y):
			return -1
		}
		return cmp.Compare(x, y)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if descending {
			return compare(line[j], line[i])
		}
		return compare(line[i], line[j])
	})
	return order
}

func refSort(k func(n int, a Attrs) int, descending func(a Attrs) bool) func(in []Array, a Attrs) ([]Array, error) {
	return func(in []Array, a Attrs) ([]Array, error) {
		pick := func(f func(line []float64, i int) float64) Array {
			return in[0].lines(a.Int("dim", -1), func(line []float64) []float64 {
				order := refOrder(line, descending(a))
				out := make([]float64, k(len(line), a))
				for i := range out {
					out[i] = f(line, order[i])
				}
				return out
			})
		}
		return []Array{pick(func(line []float64, i int) float64 { return line[i] }), pick(func(_ []float64, i int) float64 { return float64(i) })}, nil
	}
}

var nan = math.NaN()

var sortSamples = []Sample{
	valid("rows", Attrs{"dim": 1}, sampleArray(3, 7)),
	valid("columns, descending", Attrs{"dim": 0, "descending": true}, sampleArray(7, 3)),
	valid("longer than a run", Attrs{"dim": -1}, sampleArray(2, 150)),
	valid("ties and NaN", Attrs{"dim": 0}, Array{Shape: []int{9}, Data: []float64{2, nan, 1, 2, math.Inf(-1), nan, 1, math.Inf(1), 0}}),
	valid("ties and NaN, descending", Attrs{"dim": 0, "descending": true}, Array{Shape: []int{9}, Data: []float64{2, nan, 1, 2, math.Inf(-1), nan, 1, math.Inf(1), 0}}),
	valid("no dimension", nil, Array{Data: []float64{3}}),
	valid("empty", Attrs{"dim": 1}, sampleArray(2, 0)),
	invalid("out of range", Attrs{"dim": 2}, sampleArray(2, 2)),
}

var _ = defineOp(OpInfo{Name: "sort", Doc: "the elements along dim in order, and their indices; stable, NaN largest", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		v, i := in[0].Sort(a.Int("dim", -1), a.Bool("descending"))
		return []*Tensor{v, i}
	},
	Ref:     refSort(func(n int, _ Attrs) int { return n }, func(a Attrs) bool { return a.Bool("descending") }),
	Samples: sortSamples})

// Sort returns t's elements along dim in ascending or descending order, and their indices (int64). Equal elements keep their
// order; NaN counts as largest.
func (t *Tensor) Sort(dim int, descending bool) (values, indices *Tensor) {
	c := begin(LookupOp("sort"), t)
	if c.err != nil {
		return c.failed(), c.failed()
	}
	return c.top(dim, -1, descending)
}

// top sorts along dim and keeps the first k (-1: all).
func (c *call) top(dim, k int, descending bool) (values, indices *Tensor) {
	t := c.in[0]
	d, err := normDim(dim, len(t.shape))
	if err != nil {
		bad := c.shapeFail("%v", err)
		return bad, bad
	}
	n := sizeAt(t.shape, d)
	if k > n || k < -1 {
		bad := c.shapeFail("selected index k out of range: %d of the %d elements along dimension %d", k, n, d)
		return bad, bad
	}
	order := t.Detach().order(d, descending)
	if k >= 0 && len(t.shape) > 0 {
		order = order.Slice(d, 0, k, 1)
	}
	if order.err != nil {
		return order, order
	}
	return t.takeEach(d, order), order.Cast(Int64).Contiguous()
}

// order returns the indices that sort t along d, as int32 (a view where d is not the last dimension).
func (t *Tensor) order(d int, descending bool) *Tensor {
	moved := t
	if len(t.shape) > 1 {
		moved = t.Transpose(d, -1)
	}
	c := begin(LookupOp("argsort"), moved)
	if c.err != nil {
		return c.failed()
	}
	n := sizeAt(t.shape, d)
	rows := Numel(t.shape)
	if n > 0 {
		rows /= n
	}
	keys, order := c.sorted(c.dense(moved), t.dtype.Kind(), rows, n, descending, 0)
	keys.release()
	out := newTensor(order, slices.Clone(moved.shape), contiguousStrides(moved.shape), 0, Int32, c.scope)
	if len(t.shape) > 1 {
		out = out.Transpose(d, -1)
	}
	return out
}

var _ = defineOp(OpInfo{Name: "argsort", Doc: "the indices that sort x along dim; stable, NaN largest", Kind: KindMove, Inputs: []string{"x"}, Differentiable: []bool{false},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(in[0].Argsort(a.Int("dim", -1), a.Bool("descending")))
	},
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		out, err := LookupOp("sort").Ref(in, a)
		return out[1:], err
	},
	Samples: sortSamples})

// Argsort returns the indices (int64) that sort t along dim; see [Tensor.Sort].
func (t *Tensor) Argsort(dim int, descending bool) *Tensor {
	c := begin(LookupOp("argsort"), t)
	if c.err != nil {
		return c.failed()
	}
	d, err := normDim(dim, len(t.shape))
	if err != nil {
		return c.shapeFail("%v", err)
	}
	return t.Detach().order(d, descending).Cast(Int64).Contiguous()
}

var _ = defineOp(OpInfo{Name: "topk", Doc: "the k largest (or with largest false smallest) elements along dim in order, and their indices", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		v, i := in[0].TopK(a.Int("k", 1), a.Int("dim", -1), !a.Has("largest") || a.Bool("largest"))
		return []*Tensor{v, i}
	},
	Ref: refSort(func(_ int, a Attrs) int { return a.Int("k", 1) }, func(a Attrs) bool { return !a.Has("largest") || a.Bool("largest") }),
	Samples: []Sample{
		valid("two", Attrs{"k": 2, "dim": 1}, sampleArray(3, 7)),
		valid("smallest of columns", Attrs{"k": 3, "dim": 0, "largest": false}, sampleArray(5, 2)),
		valid("none", Attrs{"k": 0, "dim": 0}, sampleArray(5)),
		valid("NaN is largest", Attrs{"k": 2, "dim": 0}, Array{Shape: []int{4}, Data: []float64{1, 5, nan, 5}}),
		invalid("selected index k out of range", Attrs{"k": 8, "dim": 1}, sampleArray(3, 7)),
	}})

// TopK returns the k largest (or smallest) elements of t along dim, in order, and their indices (int64). Of equal elements
// the lower index comes first; NaN counts as largest.
func (t *Tensor) TopK(k, dim int, largest bool) (values, indices *Tensor) {
	c := begin(LookupOp("topk"), t)
	if c.err != nil {
		return c.failed(), c.failed()
	}
	if k < 0 {
		bad := c.shapeFail("selected index k out of range: %d", k)
		return bad, bad
	}
	return c.top(dim, k, largest)
}

// --- running sums and products ---

// scan records the kernels of a running sum or product along the middle of dense [outer, n, inner].
func (c *call) scan(in binding, op lib.Operand, out *Tensor, product bool, outer, n, inner int) {
	mid := out.dtype
	if mid == Float16 || mid == BFloat16 {
		mid = Float32
	}
	names := []string{c.op.Name}
	var steps []step
	var temps []*storage
	temp := func(n int) *storage {
		st := c.eng.newStorage(mid, n)
		temps = append(temps, st)
		return st
	}
	// scan2 writes the scan of in to out, of dtype to.
	var scan2 func(in binding, op lib.Operand, out *storage, to DType, n int)
	scan2 = func(in binding, op lib.Operand, out *storage, to DType, n int) {
		s := &lib.Scan{Ops: names, Product: product, Outer: outer, N: n, Inner: inner, In: op, Out: mid.operand()}
		totals := temp(outer * s.Pieces() * inner)
		if s.Pieces() <= 1 && to == mid {
			steps = append(steps, step{s, []binding{in, {st: out, write: true}, {st: totals, write: true}}})
			return
		}
		part := temp(outer * n * inner)
		steps = append(steps, step{s, []binding{in, {st: part, write: true}, {st: totals, write: true}}})
		carry := totals
		if s.Pieces() > 1 {
			carry = temp(outer * s.Pieces() * inner)
			scan2(binding{st: totals}, mid.operand(), carry, mid, s.Pieces())
		}
		steps = append(steps, step{&lib.ScanCarry{Ops: names, Product: product, Outer: outer, N: n, Inner: inner, In: mid.operand(), Out: to.operand()},
			[]binding{{st: part}, {st: carry}, {st: out, write: true}}})
	}
	scan2(in, op, out.ref.st, out.dtype, n)
	c.runWith(steps, temps, out)
}

func defineScan(name, doc string, f func(acc, x float64) float64, start float64) *OpInfo {
	return defineOp(OpInfo{Name: name, Doc: doc, Kind: KindReduction, Class: F32, Inputs: []string{"x"},
		Call: func(in []*Tensor, a Attrs) []*Tensor { return one(scanned(name, in[0], a.Int("dim", 0))) },
		Ref: refOne(func(in []Array, a Attrs) Array {
			return in[0].lines(a.Int("dim", 0), func(line []float64) []float64 {
				acc := start
				for i, v := range line {
					acc = f(acc, v)
					line[i] = acc
				}
				return line
			})
		}),
		Samples: []Sample{
			valid("rows", Attrs{"dim": 1}, sampleArray(3, 5)),
			valid("columns", Attrs{"dim": 0}, sampleArray(4, 3)),
			valid("several pieces", Attrs{"dim": 1}, makeArray([]int{2, 600}, func(idx []int) float64 { return 1 + float64(idx[1]%3-1)/64 })),
			valid("integers", Attrs{"dim": 0}, ints64([]int{4}, 3, -2, 5, 1)),
			valid("no dimension", Attrs{"dim": 0}, Array{Data: []float64{2.5}}),
			invalid("out of range", Attrs{"dim": 1}, sampleArray(3)),
		}})
}

var (
	_ = defineScan("cumsum", "running sum along dim; integers sum as int64", func(acc, x float64) float64 { return acc + x }, 0)
	_ = defineScan("cumprod", "running product along dim; integers multiply as int64", func(acc, x float64) float64 { return acc * x }, 1)
)

// Cumsum returns the running sum along dim; integers and bool sum as int64.
func (t *Tensor) Cumsum(dim int) *Tensor { return scanned("cumsum", t, dim) }

// Cumprod returns the running product along dim; integers and bool multiply as int64.
func (t *Tensor) Cumprod(dim int) *Tensor { return scanned("cumprod", t, dim) }

func scanned(name string, t *Tensor, dim int) *Tensor {
	c := begin(LookupOp(name), t)
	if c.err != nil {
		return c.failed()
	}
	t = c.in[0]
	d, err := normDim(dim, len(t.shape))
	if err != nil {
		return c.shapeFail("%v", err)
	}
	dtype, _ := sumDType(t.dtype)
	out := c.output(t.shape, dtype)
	if out.err != nil {
		return out
	}
	outer, n, inner := around(t.shape, d)
	c.scan(c.dense(t), t.dtype.operand(), out, name == "cumprod", outer, n, inner)
	c.differentiable(one(out), nil, func(cc *Call, dy *Tensor) []*Tensor {
		if name == "cumsum" {
			return one(reverseSum(dy, d))
		}
		return one(cumprodGrad(cc, dy, d))
	})
	return out
}

// reverseSum is the running sum from the end.
func reverseSum(x *Tensor, d int) *Tensor {
	if len(x.shape) == 0 {
		return x
	}
	return x.Flip(d).Cumsum(d).Flip(d)
}

// cumprodGrad is right also where elements are 0: before the first zero of a line the gradient is the sum of the later
// dy*y divided by the element; at it, the same with that element left out of the products; after it, 0.
func cumprodGrad(c *Call, dy *Tensor, d int) *Tensor {
	x := c.In[0]
	zero := x.EqScalar(0)
	zeros := zero.Cumsum(d)
	before, first := zeros.EqScalar(0), zero.LogicalAnd(zeros.EqScalar(1))
	safe := Where(zero, Scalar(1), x)
	without := Where(first, Scalar(1), x).Cumprod(d)
	g := masked(before, reverseSum(dy.Mul(c.Out), d).Div(safe))
	return g.Add(masked(first, reverseSum(dy.Mul(without), d)))
}
