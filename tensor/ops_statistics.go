package tensor

import (
	"math"
	"slices"
)

// This file has reductions that are made of others: variance, norms, logsumexp.

// dimsOf returns the attribute dims, or dim.
func dimsOf(a Attrs) []int { return firstInts(a, "dims", "dim") }

// overDims applies f to the elements over dims of each result; none means all.
func (a Array) overDims(dims []int, keepdim bool, f func(vs []float64) float64) Array {
	norm, _ := normDims(dims, len(a.Shape))
	kept := reducedShape(a.Shape, norm, true)
	groups := make([][]float64, Numel(kept))
	eachIndex(a.Shape, func(i int, idx []int) {
		k := 0
		for d, n := range kept {
			k = k*n + min(idx[d], n-1)
		}
		groups[k] = append(groups[k], a.Data[i])
	})
	out := Array{Shape: reducedShape(a.Shape, norm, keepdim)}
	for _, g := range groups {
		out.Data = append(out.Data, f(g))
	}
	return out
}

func refOver(f func(vs []float64, a Attrs) float64) func(in []Array, a Attrs) ([]Array, error) {
	return refOne(func(in []Array, a Attrs) Array {
		return in[0].overDims(dimsOf(a), a.Bool("keepdim"), func(vs []float64) float64 { return f(vs, a) })
	})
}

var reduceSamples = []Sample{
	valid("all", nil, sampleArray(3, 4)),
	valid("middle", Attrs{"dims": []int{1}}, sampleArray(2, 3, 4)),
	valid("two, kept", Attrs{"dims": []int{0, -1}, "keepdim": true}, sampleArray(2, 3, 4)),
	valid("no dimension", Attrs{"correction": 0}, Array{Data: []float64{2.5}}),
	invalid("out of range", Attrs{"dims": []int{2}}, sampleArray(3, 4)),
}

// wide returns a float16 or bfloat16 tensor as float32, for computations in several steps, and a function that casts back.
func wide(t *Tensor) (*Tensor, func(*Tensor) *Tensor) {
	if d := t.dtype; t.err == nil && (d == Float16 || d == BFloat16) {
		return t.Cast(Float32), func(u *Tensor) *Tensor { return u.Cast(d) }
	}
	return t, func(u *Tensor) *Tensor { return u }
}

// correctionOf is the attribute correction, or unbiased (default true) as 1 or 0.
func correctionOf(a Attrs) float64 {
	if a.Has("correction") {
		return a.Float("correction", 1)
	}
	if a.Has("unbiased") && !a.Bool("unbiased") {
		return 0
	}
	return 1
}

func refVar(vs []float64, a Attrs) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range vs {
		mean += v / float64(len(vs))
	}
	for _, v := range vs {
		sum += (v - mean) * (v - mean)
	}
	return sum / math.Max(0, float64(len(vs))-correctionOf(a))
}

var _ = defineOp(OpInfo{Name: "var", Doc: "variance over dims, divided by the number of elements less correction (default 1)", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(variance("var", in[0], dimsOf(a), correctionOf(a), a.Bool("keepdim")))
	},
	Ref: refOver(refVar), Samples: append(slices.Clone(reduceSamples), valid("biased", Attrs{"dims": []int{1}, "unbiased": false}, sampleArray(3, 4)),
		invalid("only supports floating point", nil, ints64([]int{2}, 1, 2)))})

var _ = defineOp(OpInfo{Name: "std", Doc: "standard deviation over dims; see var", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(variance("std", in[0], dimsOf(a), correctionOf(a), a.Bool("keepdim")))
	},
	Ref: refOver(func(vs []float64, a Attrs) float64 { return math.Sqrt(refVar(vs, a)) }), Samples: reduceSamples})

// Var returns the variance over dims (none: all), divided by the number of elements less correction: 1 for an estimate from a
// sample, PyTorch's default, or 0.
func (t *Tensor) Var(correction float64, keepdim bool, dims ...int) *Tensor {
	return variance("var", t, dims, correction, keepdim)
}

// Std returns the standard deviation over dims; see [Tensor.Var]. Where it is 0, so is its gradient.
func (t *Tensor) Std(correction float64, keepdim bool, dims ...int) *Tensor {
	return variance("std", t, dims, correction, keepdim)
}

func variance(op string, t *Tensor, dims []int, correction float64, keepdim bool) *Tensor {
	c := begin(LookupOp(op), t)
	if c.err != nil {
		return c.failed()
	}
	norm, err := normDims(dims, len(t.shape))
	switch {
	case err != nil:
		return c.shapeFail("%v", err)
	case !t.dtype.IsFloat():
		return c.fail("cast it", errorOf(ErrDType, "std and var only supports floating point dtypes, got %s", t.dtype))
	}
	x, back := wide(t)
	n := float64(Numel(t.shape)) / float64(max(1, Numel(reducedShape(t.shape, norm, true))))
	centred := x
	if len(norm) > 0 {
		centred = x.Sub(x.MeanKeep(norm...))
	} else {
		centred = x.Sub(x)
	}
	v := reduce("sum_mul", []*Tensor{centred, centred}, norm, keepdim).DivScalar(math.Max(0, n-correction))
	if op == "std" {
		v = apply("sqrt_or_zero", v)
	}
	return back(v)
}

var _ = defineOp(OpInfo{Name: "logsumexp", Doc: "log of the sum of e^x over dims, without overflow", Kind: KindComposite, Class: F32, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(in[0].LogSumExp(a.Bool("keepdim"), dimsOf(a)...))
	},
	Ref: refOver(func(vs []float64, _ Attrs) float64 {
		top, sum := math.Inf(-1), 0.0
		for _, v := range vs {
			top = math.Max(top, v)
		}
		if math.IsInf(top, 0) {
			return top
		}
		for _, v := range vs {
			sum += math.Exp(v - top)
		}
		return top + math.Log(sum)
	}),
	Samples: append(slices.Clone(reduceSamples), valid("large", Attrs{"dims": []int{1}}, Array{Shape: []int{2, 2}, Data: []float64{1e4, 1e4 + 1, math.Inf(-1), math.Inf(-1)}}))})

// LogSumExp returns the logarithm of the sum of e^t over dims (none: all), computed without overflow.
func (t *Tensor) LogSumExp(keepdim bool, dims ...int) *Tensor {
	c := begin(LookupOp("logsumexp"), t)
	if c.err != nil {
		return c.failed()
	}
	x := c.in[0]
	norm, err := normDims(dims, len(x.shape))
	switch {
	case err != nil:
		return c.shapeFail("%v", err)
	case !x.dtype.IsFloat():
		x = x.Cast(Float32)
	}
	v := x.Detach()
	w, back := wide(v)
	kept := reducedShape(x.shape, norm, true)
	var out *Tensor
	switch {
	case Numel(x.shape) == 0:
		out = back(w.SumKeep(dims...).Log())
	case len(norm) == 0:
		out = v
	default:
		top := w.AmaxKeep(norm...)
		top = masked(callOp("isfinite", top), top)
		out = back(w.Sub(top).Exp().SumKeep(norm...).Log().Add(top))
	}
	if out.err != nil {
		return out
	}
	if len(norm) == 0 {
		return x.Reshape() // of one element: log e^x; a tensor of its own, because the operand may be discarded
	}
	if !keepdim {
		out = out.Reshape(reducedShape(x.shape, norm, false)...)
	}
	c.in = one(x)
	c.differentiable(one(out), nil, func(cc *Call, dy *Tensor) []*Tensor {
		y := cc.Out.Reshape(kept...)
		// Of a row of -inf nothing counts.
		y = y.MaskedFill(y.EqScalar(math.Inf(-1)), 0)
		return one(dy.Reshape(kept...).Mul(x.Sub(y).Exp()))
	})
	return out
}

var _ = defineOp(OpInfo{Name: "norm", Doc: "p-norm over dims: the p-th root of the sum of |x|^p; p may be infinite or 0 (the number of elements that are not 0)", Kind: KindComposite, Class: F32, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		p := a.Float("p", 2)
		switch a.String("p", "") {
		case "inf":
			p = math.Inf(1)
		case "-inf":
			p = math.Inf(-1)
		}
		return one(in[0].Norm(p, a.Bool("keepdim"), dimsOf(a)...))
	},
	Ref: refOver(func(vs []float64, a Attrs) float64 {
		p := a.Float("p", 2)
		low, high, sum := math.Inf(1), 0.0, 0.0
		for _, v := range vs {
			low, high = math.Min(low, math.Abs(v)), math.Max(high, math.Abs(v))
			switch p {
			case 0:
				sum += truth(v != 0)
			default:
				sum += math.Pow(math.Abs(v), p)
			}
		}
		switch {
		case math.IsInf(p, 1):
			return high
		case math.IsInf(p, -1):
			return low
		case p == 0:
			return sum
		}
		return math.Pow(sum, 1/p)
	}),
	Samples: append(slices.Clone(reduceSamples),
		valid("1", Attrs{"p": 1, "dims": []int{1}}, sampleArray(3, 4)), valid("3", Attrs{"p": 3, "dims": []int{0}}, sampleArray(3, 4)),
		valid("0", Attrs{"p": 0}, sampleArray(3, 4)), valid("infinite", Attrs{"p": math.Inf(1), "dims": []int{1}}, sampleArray(3, 4)),
		valid("least", Attrs{"p": math.Inf(-1)}, sampleArray(3, 4)),
		invalid("floating point", nil, ints64([]int{2}, 1, 2)))})

// Norm returns the p-norm over dims (none: all). Where a norm of p = 2 is 0, so is its gradient.
func (t *Tensor) Norm(p float64, keepdim bool, dims ...int) *Tensor {
	c := begin(LookupOp("norm"), t)
	if c.err != nil {
		return c.failed()
	}
	norm, err := normDims(dims, len(t.shape))
	switch {
	case err != nil:
		return c.shapeFail("%v", err)
	case !t.dtype.IsFloat():
		return c.fail("cast it", errorOf(ErrDType, "norm: expected a floating point tensor as input, got %s", t.dtype))
	}
	x, back := wide(c.in[0])
	switch {
	case len(norm) == 0 && len(t.shape) > 0:
		return back(x.Abs())
	case p == 2:
		return back(apply("sqrt_or_zero", reduce("sum_mul", []*Tensor{x, x}, norm, keepdim)))
	case p == 1:
		return back(reduce("sum", one(x.Abs()), norm, keepdim))
	case p == 0:
		return back(reduce("sum", one(x.NeScalar(0).Cast(x.dtype)), norm, keepdim))
	case math.IsInf(p, 1):
		return back(reduce("amax", one(x.Abs()), norm, keepdim))
	case math.IsInf(p, -1):
		return back(reduce("amin", one(x.Abs()), norm, keepdim))
	}
	return back(reduce("sum", one(x.Abs().PowScalar(p)), norm, keepdim).PowScalar(1 / p))
}

// --- similarity ---

var _ = defineOp(OpInfo{Name: "normalize", Doc: "x divided by its p-norm along dim, at least eps", Kind: KindComposite, Class: F32, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(in[0].Normalize(a.Float("p", 2), a.Int("dim", 1), a.Float("eps", 1e-12)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		p := a.Float("p", 2)
		return in[0].lines(a.Int("dim", 1), func(line []float64) []float64 {
			sum := 0.0
			for _, v := range line {
				sum += math.Pow(math.Abs(v), p)
			}
			n := math.Max(math.Pow(sum, 1/p), a.Float("eps", 1e-12))
			for i := range line {
				line[i] /= n
			}
			return line
		})
	}),
	Samples: []Sample{
		valid("rows", nil, sampleArray(3, 4)),
		valid("p = 1 of columns", Attrs{"p": 1, "dim": 0}, sampleArray(3, 4)),
		valid("a row of 0", nil, Array{Shape: []int{2, 2}, Data: []float64{0, 0, 3, 4}}),
		invalid("out of range", Attrs{"dim": 2}, sampleArray(3, 4)),
	}})

// Normalize returns t divided by its p-norm along dim, or by eps where the norm is smaller.
func (t *Tensor) Normalize(p float64, dim int, eps float64) *Tensor {
	c := begin(LookupOp("normalize"), t)
	if c.err != nil {
		return c.failed()
	}
	if _, err := normDim(dim, len(t.shape)); err != nil {
		return c.shapeFail("%v", err)
	}
	x, back := wide(c.in[0])
	return back(x.Div(x.Norm(p, true, dim).MaximumScalar(eps)))
}

var _ = defineOp(OpInfo{Name: "cosine_similarity", Doc: "a.b/(|a||b|) along dim, each norm at least eps", Kind: KindComposite, Class: F32, Inputs: []string{"a", "b"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(CosineSimilarity(in[0], in[1], a.Int("dim", 1), a.Float("eps", 1e-8)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		d := in[0].dim(a.Int("dim", 1))
		shape := slices.Delete(slices.Clone(in[0].Shape), d, d+1)
		return makeArray(shape, func(idx []int) float64 {
			ab, aa, bb := 0.0, 0.0, 0.0
			for k := range in[0].Shape[d] {
				own := slices.Insert(slices.Clone(idx), d, k)
				x, y := in[0].at(own...), in[1].at(own...)
				ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
			}
			eps := a.Float("eps", 1e-8)
			return ab / (math.Max(math.Sqrt(aa), eps) * math.Max(math.Sqrt(bb), eps))
		})
	}),
	Samples: []Sample{
		valid("rows", nil, sampleArray(3, 4), positiveArray(3, 4)),
		valid("columns", Attrs{"dim": 0}, sampleArray(3, 4), positiveArray(3, 4)),
		invalid("cannot be broadcast", nil, sampleArray(3, 4), sampleArray(3, 5)),
	}})

// CosineSimilarity returns the cosine of the angle between a and b, broadcast, along dim; each norm counts as at least eps.
func CosineSimilarity(a, b *Tensor, dim int, eps float64) *Tensor {
	c := begin(LookupOp("cosine_similarity"), a, b)
	if c.err != nil {
		return c.failed()
	}
	shape, err := BroadcastShapes(a.shape, b.shape)
	if err != nil {
		return c.shapeFail("%v", err)
	}
	d, err := normDim(dim, len(shape))
	if err != nil {
		return c.shapeFail("%v", err)
	}
	x, back := wide(c.in[0].Expand(shape...))
	y, _ := wide(c.in[1].Expand(shape...))
	if len(shape) == 0 {
		x, y = x.Reshape(1), y.Reshape(1)
	}
	norms := x.Norm(2, true, d).MaximumScalar(eps)
	other := y.Norm(2, true, d).MaximumScalar(eps)
	return back(reduce("sum_mul", []*Tensor{x.Div(norms), y.Div(other)}, []int{d}, false))
}
