package tensor

import (
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// reduction describes a reduction over some dimensions.
type reduction struct {
	name  string
	doc   string
	op    lib.ReduceOp
	mean  bool
	class Class
	// pair combines the elements of two operands of one shape before they are reduced; nil: there is one operand.
	pair  func(b *ir.Builder, x, y ir.Value) ir.Value
	dtype func(d DType) (DType, error)
	grad  func(c *Call, dy *Tensor, dims []int) []*Tensor // dy and c.Out have the reduced dimensions with size 1
}

var reductions = map[string]*reduction{}

func defineReduction(r reduction) int {
	inputs := []string{"x"}
	if r.pair != nil {
		inputs = []string{"a", "b"}
	}
	reductions[r.name] = &r
	diff := make([]bool, len(inputs))
	for i := range diff {
		diff[i] = r.grad != nil
	}
	register(&OpInfo{Name: r.name, Doc: r.doc, Kind: KindReduction, Class: r.class, Inputs: inputs, Differentiable: diff,
		Call: func(in []*Tensor, attrs Attrs) []*Tensor {
			dims := attrs.Ints("dims")
			if len(dims) == 0 {
				dims = attrs.Ints("dim")
			}
			return []*Tensor{reduce(r.name, in, dims, attrs.Bool("keepdim"))}
		}})
	return 0
}

// sameFloat keeps floating-point dtypes and rejects others, as torch.mean.
func sameFloat(d DType) (DType, error) {
	if !d.IsFloat() {
		return d, errorOf(ErrDType, "could not infer output dtype: the input must be of a floating point dtype, got %s", d)
	}
	return d, nil
}

func same(d DType) (DType, error) { return d, nil }
func toBool(DType) (DType, error) { return Bool, nil }

// sumDType is int64 for integers and bool.
func sumDType(d DType) (DType, error) {
	if !d.IsFloat() {
		return Int64, nil
	}
	return d, nil
}

// spread gives each element the gradient of its sum.
func spread(c *Call, dy *Tensor, _ []int) []*Tensor {
	return []*Tensor{dy.Expand(c.In[0].shape...)}
}

// extremeGrad shares a gradient evenly among the elements that are the extreme, as PyTorch does.
func extremeGrad(c *Call, dy *Tensor, dims []int) []*Tensor {
	mask := c.In[0].Eq(c.Out)
	n := mask.Cast(dy.dtype).SumKeep(dims...)
	return []*Tensor{masked(mask, dy.Div(n))}
}

// prodGrad is the product of the other elements, right also where elements are 0.
func prodGrad(c *Call, dy *Tensor, dims []int) []*Tensor {
	x := c.In[0]
	zero := x.EqScalar(0)
	others := Where(zero, Scalar(1), x)
	p := reduce("prod", []*Tensor{others}, dims, true)
	zeros := zero.SumKeep(dims...)
	// With no zero every element gets p/x; with one zero only that gets p; with more nobody gets any.
	g := Where(zero, masked(zeros.EqScalar(1), p), masked(zeros.EqScalar(0), p.Div(others)))
	return []*Tensor{dy.Mul(g)}
}

var (
	_ = defineReduction(reduction{name: "sum", doc: "sum over dims; integers sum as int64", op: lib.ReduceSum, class: F32, dtype: sumDType, grad: spread})
	_ = defineReduction(reduction{name: "mean", doc: "mean over dims", op: lib.ReduceSum, mean: true, dtype: sameFloat,
		grad: func(c *Call, dy *Tensor, _ []int) []*Tensor {
			n := float64(Numel(c.In[0].shape)) / float64(max(1, Numel(dy.shape)))
			return []*Tensor{dy.DivScalar(n).Expand(c.In[0].shape...)}
		}})
	_ = defineReduction(reduction{name: "prod", doc: "product over dims", op: lib.ReduceProd, class: F32, dtype: sumDType, grad: prodGrad})
	_ = defineReduction(reduction{name: "amax", doc: "largest element over dims; NaN if there is one", op: lib.ReduceMax, dtype: same, grad: extremeGrad})
	_ = defineReduction(reduction{name: "amin", doc: "smallest element over dims; NaN if there is one", op: lib.ReduceMin, dtype: same, grad: extremeGrad})
	_ = defineReduction(reduction{name: "any", doc: "whether any element over dims is not zero", op: lib.ReduceAny, dtype: toBool})
	_ = defineReduction(reduction{name: "all", doc: "whether all elements over dims are not zero", op: lib.ReduceAll, dtype: toBool})
	_ = defineReduction(reduction{name: "sum_mul", doc: "sum over dims of a*b, of equal shapes", op: lib.ReduceSum, pair: (*ir.Builder).Mul, class: F32, dtype: sameFloat,
		grad: func(c *Call, dy *Tensor, _ []int) []*Tensor {
			return c.pick(func() *Tensor { return dy.Mul(c.In[1]) }, func() *Tensor { return dy.Mul(c.In[0]) })
		}})
	_ = defineReduction(reduction{name: "nll", doc: "sum over dims of -q*logp, where q is not 0: an unlikely class (logp = -inf) that does not count costs nothing",
		op: lib.ReduceSum, class: F32, dtype: sameFloat,
		pair: func(b *ir.Builder, logp, q ir.Value) ir.Value {
			zero := b.ConstLike(q, 0)
			return b.Select(b.Eq(q, zero), zero, b.Neg(b.Mul(q, logp)))
		},
		grad: func(c *Call, dy *Tensor, _ []int) []*Tensor {
			return c.pick(func() *Tensor { return dy.Mul(c.In[1]).Neg() }, func() *Tensor { return dy.Mul(c.In[0]).Neg() })
		}})
)

// reduce applies a reduction of the table; no dims means all.
func reduce(name string, in []*Tensor, dims []int, keepdim bool) *Tensor {
	r := reductions[name]
	c := begin(LookupOp(name), in...)
	if c.err != nil {
		return c.failed()
	}
	x := c.in[0]
	norm, err := normDims(dims, len(x.shape))
	if err != nil {
		return c.fail("", &kindError{ErrShape, err.Error()})
	}
	if r.pair != nil && (!sameShape(x, c.in[1]) || x.dtype.computeKind() != c.in[1].dtype.computeKind()) {
		return c.fail("", errorOf(ErrShape, "operands must have the same shape and kind"))
	}
	dtype, err := r.dtype(x.dtype)
	if err != nil {
		return c.fail("cast it", err)
	}
	kept := reducedShape(x.shape, norm, true)
	if extreme := r.op == lib.ReduceMax || r.op == lib.ReduceMin; extreme && Numel(x.shape) == 0 && Numel(kept) > 0 {
		return c.fail("", errorOf(ErrShape, "expected reduction dim to have a non-zero size: %s of 0 elements has no value", name))
	}
	shape := reducedShape(x.shape, norm, keepdim)
	out := c.output(shape, dtype)
	if out.err != nil {
		return out
	}
	r.record(c, out, norm)
	if r.grad != nil {
		c.differentiable([]*Tensor{out}, nil, func(cc *Call, dy *Tensor) []*Tensor {
			if !keepdim {
				dy = dy.Reshape(kept...)
				now := *cc
				now.Out = cc.Out.Reshape(kept...)
				cc = &now
			}
			return r.grad(cc, dy, norm)
		})
	}
	return out
}

// group is a run of reduced dimensions with what is around it.
type group struct{ outer, n, inner int }

// groups splits a reduction over dims into runs of neighbouring dimensions, the last first. Dimensions of size 1 do not part
// neighbours. Without dimensions to reduce there is one group of 1.
func groups(shape, dims []int) []group {
	type run struct {
		size    int
		reduced bool
	}
	var runs []run
	for i, d := range shape {
		if d == 1 {
			continue
		}
		red := slices.Contains(dims, i)
		if n := len(runs); n > 0 && runs[n-1].reduced == red {
			runs[n-1].size *= d
		} else {
			runs = append(runs, run{d, red})
		}
	}
	var gs []group
	for i := len(runs) - 1; i >= 0; i-- {
		if !runs[i].reduced {
			continue
		}
		g := group{1, runs[i].size, 1}
		for _, r := range runs[:i] {
			g.outer *= r.size
		}
		for _, r := range runs[i+1:] {
			if !r.reduced { // the reduced ones are done by then
				g.inner *= r.size
			}
		}
		gs = append(gs, g)
	}
	if len(gs) == 0 {
		gs = []group{{Numel(shape), 1, 1}}
	}
	return gs
}

// record adds the kernels: one for each run of neighbouring dimensions.
func (r *reduction) record(c *call, out *Tensor, dims []int) {
	x := c.in[0]
	gs := groups(x.shape, dims)
	var bufs []binding
	var ops []lib.Operand
	for _, t := range c.in {
		bufs = append(bufs, c.dense(t))
		ops = append(ops, t.dtype.operand())
	}
	total := 1
	for i, g := range gs {
		total *= g.n
		k := &lib.Reduce{Name: r.name, Ops: []string{r.name}, BodyKey: r.name, Op: r.op, Outer: g.outer, N: g.n, Inner: g.inner, In: ops, Out: out.dtype.operand()}
		if r.op == lib.ReduceAny || r.op == lib.ReduceAll {
			k.Prologue = func(b *ir.Builder, in, _ []ir.Value) ir.Value { return b.Convert(in[0], ir.Bool) }
		}
		if r.pair != nil && i == 0 {
			k.BodyKey += "_first"
			k.Prologue = func(b *ir.Builder, in, _ []ir.Value) ir.Value { return r.pair(b, in[0], in[1]) }
		}
		if x.dtype == Bool && (r.op == lib.ReduceMax || r.op == lib.ReduceMin) {
			k.Op = map[lib.ReduceOp]lib.ReduceOp{lib.ReduceMax: lib.ReduceAny, lib.ReduceMin: lib.ReduceAll}[r.op]
		}
		if i == len(gs)-1 {
			if r.mean {
				k.BodyKey += "_last"
				kind := out.dtype.computeKind()
				k.Scalars, k.ScalarBits = scalarParam(kind, float64(total))
				k.Epilogue = func(b *ir.Builder, acc, _ ir.Value, scalars []ir.Value) ir.Value {
					n, _ := scalarValue(b, kind, scalars)
					return b.Div(acc, n)
				}
			}
			c.run(k, bufs, out)
			return
		}
		// Between runs, sums of short floats stay in float32.
		mid := out.dtype
		if mid == Float16 || mid == BFloat16 {
			mid = Float32
		}
		k.Out = mid.operand()
		st := c.eng.newStorage(mid, g.outer*g.inner)
		n := &node{op: c.op.Name, site: c.site, outs: []*storage{st}, steps: []step{{k, append(bufs, binding{st: st, write: true})}}}
		if err := c.eng.add(n); err != nil {
			c.stop("", err)
		}
		for _, t := range c.temps {
			t.release()
		}
		c.temps = []*storage{st}
		bufs, ops = []binding{{st: st}}, []lib.Operand{mid.operand()}
	}
}

// Sum returns the sum over dims (none: all); integers and bool sum as int64.
func (t *Tensor) Sum(dims ...int) *Tensor { return reduce("sum", []*Tensor{t}, dims, false) }

// SumKeep is Sum with the reduced dimensions kept with size 1.
func (t *Tensor) SumKeep(dims ...int) *Tensor { return reduce("sum", []*Tensor{t}, dims, true) }

// Mean returns the mean over dims (none: all) of a floating-point tensor.
func (t *Tensor) Mean(dims ...int) *Tensor { return reduce("mean", []*Tensor{t}, dims, false) }

// MeanKeep is Mean with the reduced dimensions kept with size 1.
func (t *Tensor) MeanKeep(dims ...int) *Tensor { return reduce("mean", []*Tensor{t}, dims, true) }

// Prod returns the product over dims (none: all).
func (t *Tensor) Prod(dims ...int) *Tensor { return reduce("prod", []*Tensor{t}, dims, false) }

// Amax returns the largest element over dims (none: all), NaN if there is one. Equal elements share the gradient.
func (t *Tensor) Amax(dims ...int) *Tensor { return reduce("amax", []*Tensor{t}, dims, false) }

// AmaxKeep is Amax with the reduced dimensions kept with size 1.
func (t *Tensor) AmaxKeep(dims ...int) *Tensor { return reduce("amax", []*Tensor{t}, dims, true) }

// Amin returns the smallest element over dims (none: all), NaN if there is one. Equal elements share the gradient.
func (t *Tensor) Amin(dims ...int) *Tensor { return reduce("amin", []*Tensor{t}, dims, false) }

// AminKeep is Amin with the reduced dimensions kept with size 1.
func (t *Tensor) AminKeep(dims ...int) *Tensor { return reduce("amin", []*Tensor{t}, dims, true) }

// Any returns whether any element over dims (none: all) is not zero.
func (t *Tensor) Any(dims ...int) *Tensor { return reduce("any", []*Tensor{t}, dims, false) }

// All returns whether all elements over dims (none: all) are not zero.
func (t *Tensor) All(dims ...int) *Tensor { return reduce("all", []*Tensor{t}, dims, false) }

// defineArg defines argmax or argmin.
func defineArg(name, doc string) int {
	register(&OpInfo{Name: name, Doc: doc, Kind: KindReduction, Inputs: []string{"x"}, Differentiable: []bool{false},
		Call: func(in []*Tensor, attrs Attrs) []*Tensor {
			if !attrs.Has("dim") {
				return []*Tensor{argReduce(name, in[0].Reshape(-1), 0, false)}
			}
			return []*Tensor{argReduce(name, in[0], attrs.Int("dim", 0), attrs.Bool("keepdim"))}
		}})
	return 0
}

var (
	_ = defineArg("argmax", "index along dim of the largest element, the first of several; NaN counts as largest")
	_ = defineArg("argmin", "index along dim of the smallest element, the first of several; NaN counts as smallest")
)

func argReduce(name string, x *Tensor, dim int, keepdim bool) *Tensor {
	c := begin(LookupOp(name), x)
	if c.err != nil {
		return c.failed()
	}
	x = c.in[0]
	d, err := normDim(dim, len(x.shape))
	if err != nil {
		return c.fail("", &kindError{ErrShape, err.Error()})
	}
	outer, n, inner := around(x.shape, d)
	if n == 0 && outer*inner > 0 {
		return c.fail("", errorOf(ErrShape, "expected reduction dim %d to have non-zero size", d))
	}
	out := c.output(reducedShape(x.shape, []int{d}, keepdim), Int64)
	if out.err != nil {
		return out
	}
	k := &lib.Reduce{Name: name, Ops: []string{name}, BodyKey: name, Op: lib.ReduceArgMax, Outer: outer, N: n, Inner: inner,
		In: []lib.Operand{x.dtype.operand()}, Out: Int64.operand()}
	if name == "argmin" {
		k.Op = lib.ReduceArgMin
	}
	if x.dtype == Bool {
		k.BodyKey = name + "_bool"
		k.Prologue = func(b *ir.Builder, in, _ []ir.Value) ir.Value { return b.Convert(in[0], ir.I32) }
	}
	c.run(k, []binding{c.dense(x)}, out)
	return out
}

// around returns the sizes before, at and after dimension d; a 0-dimensional tensor has 1, 1, 1.
func around(shape []int, d int) (outer, n, inner int) {
	if len(shape) == 0 {
		return 1, 1, 1
	}
	return Numel(shape[:d]), shape[d], Numel(shape[d+1:])
}

// Argmax returns the index along dim of the largest element (int64), the first of several.
func (t *Tensor) Argmax(dim int, keepdim bool) *Tensor { return argReduce("argmax", t, dim, keepdim) }

// Argmin returns the index along dim of the smallest element (int64), the first of several.
func (t *Tensor) Argmin(dim int, keepdim bool) *Tensor { return argReduce("argmin", t, dim, keepdim) }

// --- softmax ---

func defineSoftmax(name, doc string, log bool) int {
	register(&OpInfo{Name: name, Doc: doc, Kind: KindReduction, Class: F32, Inputs: []string{"x"},
		Call: func(in []*Tensor, attrs Attrs) []*Tensor {
			return []*Tensor{softmax(name, in[0], attrs.Int("dim", -1))}
		}})
	return 0
}

var (
	_ = defineSoftmax("softmax", "e^x / sum of e^x along dim", false)
	_ = defineSoftmax("log_softmax", "x - log(sum of e^x) along dim", true)

	_ = DefineElementwise(Elementwise{Name: "softmax_grad", Doc: "y*(dy - s) with s the sum of dy*y: the gradient of softmax", Inputs: []string{"dy", "y", "s"},
		Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Mul(in[1], b.Sub(in[0], in[2])) },
		Ref:  func(in ...float64) float64 { return in[1] * (in[0] - in[2]) },
		Grad: func(d *Tensor, in ...*Tensor) []*Tensor {
			dm := d.Mul(in[1])
			return []*Tensor{dm, d.Mul(in[0].Sub(in[2])), dm.Neg()}
		}})
	_ = DefineElementwise(Elementwise{Name: "log_softmax_grad", Doc: "dy - e^y*s with s the sum of dy: the gradient of log_softmax", Inputs: []string{"dy", "y", "s"},
		Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Sub(in[0], b.Mul(b.Exp(in[1]), in[2])) },
		Ref:  func(in ...float64) float64 { return in[0] - math.Exp(in[1])*in[2] },
		Grad: func(d *Tensor, in ...*Tensor) []*Tensor {
			de := d.Mul(in[1].Exp()).Neg()
			return []*Tensor{d, de.Mul(in[2]), de}
		}})
)

func softmax(name string, x *Tensor, dim int) *Tensor {
	c := begin(LookupOp(name), x)
	if c.err != nil {
		return c.failed()
	}
	x = c.in[0]
	d, err := normDim(dim, len(x.shape))
	if err != nil {
		return c.fail("", &kindError{ErrShape, err.Error()})
	}
	if !x.dtype.IsFloat() {
		return c.fail("cast it to float32", errorOf(ErrDType, "not implemented for %s", x.dtype))
	}
	out := c.output(x.shape, x.dtype)
	if out.err != nil {
		return out
	}
	outer, n, inner := around(x.shape, d)
	c.run(&lib.Softmax{Log: name == "log_softmax", Outer: outer, N: n, Inner: inner, In: x.dtype.Kind(), Out: x.dtype.Kind()}, []binding{c.dense(x)}, out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dy *Tensor) []*Tensor {
		if name == "log_softmax" {
			return []*Tensor{apply("log_softmax_grad", dy, cc.Out, dy.SumKeep(d))}
		}
		return []*Tensor{apply("softmax_grad", dy, cc.Out, reduce("sum_mul", []*Tensor{dy, cc.Out}, []int{d}, true))}
	})
	return out
}

// Softmax returns e^t divided by its sum along dim.
func (t *Tensor) Softmax(dim int) *Tensor { return softmax("softmax", t, dim) }

// LogSoftmax returns the logarithm of Softmax, computed without overflow.
func (t *Tensor) LogSoftmax(dim int) *Tensor { return softmax("log_softmax", t, dim) }
