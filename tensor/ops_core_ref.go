package tensor

import (
	"math"
	"slices"
)

// This file has the references and samples of reductions, products, views and losses. They stand apart from the
// operators that they check, and are written as plainly as can be.

// rowRef is what a row of the table gets.
type rowRef struct {
	ref     func(in []Array, a Attrs) ([]Array, error)
	samples []Sample
}

func init() {
	for name, r := range coreRefs() {
		op := LookupOp(name)
		op.Ref, op.Samples = r.ref, r.samples
	}
}

func coreRefs() map[string]rowRef {
	return map[string]rowRef{
		"sum":  {reduceRef(totalOf), append(foldedSamples(), valid("integers", nil, ints64([]int{2, 2}, 1, 2, -3, 4)), valid("bool", Attrs{"dims": []int{0}}, boolArray([]int{3, 1}, 1, 0, 1)))},
		"mean": {reduceRef(func(x []float64) float64 { return totalOf(x) / float64(len(x)) }), append(foldedSamples(), invalid("floating point", nil, ints64([]int{2}, 1, 2)))},
		"prod": {reduceRef(func(x []float64) float64 {
			p := 1.0
			for _, v := range x {
				p *= v
			}
			return p
		}), []Sample{valid("rows", Attrs{"dims": []int{1}}, positiveArray(3, 5)), valid("all", nil, positiveArray(2, 3)), valid("zeros", Attrs{"dims": []int{1}}, Array{Shape: []int{3, 3}, Data: []float64{1, 2, 3, 0, 5, 6, 0, 0, 7}}), invalid("out of range", Attrs{"dims": []int{2}}, sampleArray(2, 3))}},
		"amax": {reduceRef(maxOf), append(foldedSamples(), valid("equal", Attrs{"dims": []int{0}}, Array{Shape: []int{3, 1}, Data: []float64{2, 1, 2}}), invalid("0 elements has no value", Attrs{"dims": []int{0}}, Array{Shape: []int{0, 2}}))},
		"amin": {reduceRef(func(x []float64) float64 {
			m := make([]float64, len(x))
			for i, v := range x {
				m[i] = -v
			}
			return -maxOf(m)
		}), append(foldedSamples(), invalid("0 elements has no value", Attrs{"dims": []int{0}}, Array{Shape: []int{0, 2}}))},
		"any": {reduceRef(func(x []float64) float64 {
			return truth(slices.ContainsFunc(x, func(v float64) bool { return v != 0 }))
		}), truthSamples()},
		"all":    {reduceRef(func(x []float64) float64 { return truth(!slices.Contains(x, 0)) }), truthSamples()},
		"argmax": {argRef(1), argSamples()},
		"argmin": {argRef(-1), argSamples()},
		"sum_mul": {func(in []Array, a Attrs) ([]Array, error) {
			return reduceRef(totalOf)([]Array{zip(in, func(x, y float64) float64 { return x * y })}, a)
		}, []Sample{valid("rows", Attrs{"dims": []int{1}, "keepdim": true}, sampleArray(3, 5), sampleArray(3, 5)), invalid("same shape", nil, sampleArray(3), sampleArray(4))}},
		"nll": {func(in []Array, a Attrs) ([]Array, error) {
			return reduceRef(totalOf)([]Array{zip(in, func(logp, q float64) float64 {
				if q == 0 {
					return 0
				}
				return -q * logp
			})}, a)
		}, []Sample{valid("rows", Attrs{"dims": []int{1}}, sampleArray(3, 5), sampleArray(3, 5)),
			valid("unlikely class that does not count", nil, Array{Shape: []int{2}, Data: []float64{math.Inf(-1), -1}}, Array{Shape: []int{2}, Data: []float64{0, 1}}),
			invalid("same shape", nil, sampleArray(3, 5), sampleArray(5))}},
		"softmax":       {refOne(func(in []Array, a Attrs) Array { return softmaxRef(in[0], a.Int("dim", -1), false) }), softmaxSamples()},
		"log_softmax":   {refOne(func(in []Array, a Attrs) Array { return softmaxRef(in[0], a.Int("dim", -1), true) }), softmaxSamples()},
		"matmul":        {refOne(func(in []Array, _ Attrs) Array { return matmulRef(in[0], in[1]) }), matmulSamples()},
		"linear":        {refOne(linearRef), linearSamples()},
		"cross_entropy": {crossEntropyRef, crossEntropySamples()},
		"mse_loss":      {pairLossRef(func(d float64) float64 { return d * d }), pairLossSamples()},
		"l1_loss":       {pairLossRef(math.Abs), pairLossSamples()},
		"gelu": {refOne(func(in []Array, a Attrs) Array {
			row := LookupOp("gelu_erf")
			if a.String("approximate", "none") == "tanh" {
				row = LookupOp("gelu_tanh")
			}
			return makeArray(in[0].Shape, func(idx []int) float64 { return row.elementwise.Ref(in[0].at(idx...)) })
		}), []Sample{valid("exact", nil, sampleArray(3, 7)), valid("tanh", Attrs{"approximate": "tanh"}, sampleArray(3, 7)), invalid("either none or tanh", Attrs{"approximate": "sigmoid"}, sampleArray(3))}},

		"reshape":    {refOne(func(in []Array, a Attrs) Array { return reshapeRef(in[0], a.Ints("shape")) }), []Sample{valid("inferred", Attrs{"shape": []int{-1, 2}}, sampleArray(3, 4)), valid("to 0 dimensions", Attrs{"shape": []int{}}, sampleArray(1, 1)), invalid("invalid for input of size 12", Attrs{"shape": []int{5, -1}}, sampleArray(3, 4)), invalid("only one dimension can be inferred", Attrs{"shape": []int{-1, -1}}, sampleArray(4))}},
		"flatten":    {refOne(flattenRef), []Sample{valid("all", nil, sampleArray(2, 3, 4)), valid("from 1", Attrs{"start_dim": 1}, sampleArray(2, 3, 4)), valid("middle", Attrs{"start_dim": 1, "end_dim": 2}, sampleArray(2, 3, 4, 2)), invalid("comes after", Attrs{"start_dim": 1, "end_dim": 0}, sampleArray(2, 3))}},
		"permute":    {refOne(func(in []Array, a Attrs) Array { return permuteRef(in[0], a.Ints("dims")) }), []Sample{valid("rotated", Attrs{"dims": []int{2, 0, 1}}, sampleArray(2, 3, 4)), valid("from the end", Attrs{"dims": []int{-1, 0}}, sampleArray(2, 3)), invalid("appears twice", Attrs{"dims": []int{0, 0}}, sampleArray(2, 3)), invalid("2 is not equal to 1", Attrs{"dims": []int{0}}, sampleArray(2, 3))}},
		"transpose":  {refOne(transposeRef), []Sample{valid("ends", Attrs{"dim0": 0, "dim1": -1}, sampleArray(2, 3, 4)), invalid("out of range", Attrs{"dim0": 0, "dim1": 2}, sampleArray(2, 3))}},
		"expand":     {refOne(expandRef), []Sample{valid("new dimension", Attrs{"shape": []int{2, 3, 4}}, sampleArray(3, 1)), valid("kept size", Attrs{"shape": []int{2, -1}}, sampleArray(1, 3)), invalid("must match the existing size", Attrs{"shape": []int{4}}, sampleArray(3)), invalid("greater or equal", Attrs{"shape": []int{3}}, sampleArray(1, 3))}},
		"slice":      {refOne(sliceRef), []Sample{valid("steps", Attrs{"dim": 1, "start": 1, "stop": 6, "step": 2}, sampleArray(2, 7)), valid("from the end", Attrs{"dim": 0, "start": -2}, sampleArray(4, 2)), valid("nothing", Attrs{"dim": 0, "start": 3, "stop": 1}, sampleArray(4)), invalid("positive", Attrs{"dim": 0, "step": 0}, sampleArray(4))}},
		"select":     {refOne(selectRef), []Sample{valid("row", Attrs{"dim": 0, "index": 1}, sampleArray(3, 4)), valid("last column", Attrs{"dim": 1, "index": -1}, sampleArray(3, 4)), invalid("index 3 out of range", Attrs{"dim": 0, "index": 3}, sampleArray(3, 4))}},
		"squeeze":    {refOne(func(in []Array, a Attrs) Array { return squeezeRef(in[0], firstInts(a, "dim", "dims")) }), []Sample{valid("all", nil, sampleArray(1, 3, 1)), valid("one", Attrs{"dim": 0}, sampleArray(1, 3, 1)), valid("none to drop", Attrs{"dim": 1}, sampleArray(1, 3, 1)), invalid("out of range", Attrs{"dim": 3}, sampleArray(1, 3, 1))}},
		"unsqueeze":  {refOne(func(in []Array, a Attrs) Array { return unsqueezeRef(in[0], a.Int("dim", 0)) }), []Sample{valid("front", Attrs{"dim": 0}, sampleArray(2, 3)), valid("end", Attrs{"dim": -1}, sampleArray(2, 3)), invalid("out of range", Attrs{"dim": 4}, sampleArray(2, 3))}},
		"embed":      {refOne(embedRef), []Sample{valid("steps", Attrs{"shape": []int{2, 7}, "dim": 1, "start": 1, "step": 2}, sampleArray(2, 3)), invalid("does not fit", Attrs{"shape": []int{2, 3}, "dim": 1, "start": 1, "step": 1}, sampleArray(2, 3))}},
		"contiguous": {sameRef, []Sample{valid("matrix", nil, sampleArray(3, 4))}},
		"clone":      {sameRef, []Sample{valid("matrix", nil, sampleArray(3, 4)), valid("bool", nil, boolArray([]int{3}, 1, 0, 1))}},
		"cat":        {refOne(func(in []Array, a Attrs) Array { return catRef(in, a.Int("dim", 0)) }), []Sample{valid("columns", Attrs{"dim": 1}, sampleArray(2, 3), sampleArray(2, 1), sampleArray(2, 2)), valid("with an empty one", Attrs{"dim": -1}, sampleArray(2, 0), sampleArray(2, 3)), invalid("sizes of tensors must match", Attrs{"dim": 0}, sampleArray(2, 3), sampleArray(2, 4)), invalid("non-empty list", nil)}},
		"stack": {refOne(func(in []Array, a Attrs) Array {
			us := make([]Array, len(in))
			for i, x := range in {
				us[i] = unsqueezeRef(x, a.Int("dim", 0))
			}
			return catRef(us, a.Int("dim", 0))
		}), []Sample{valid("front", nil, sampleArray(2, 3), sampleArray(2, 3)), valid("end", Attrs{"dim": -1}, sampleArray(2, 3), sampleArray(2, 3)), invalid("equal size", nil, sampleArray(2), sampleArray(3))}},
	}
}

func sameRef(in []Array, _ Attrs) ([]Array, error) { return in[:1], nil }

func totalOf(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

// maxOf is the largest element, or NaN if there is one.
func maxOf(x []float64) float64 {
	m := math.Inf(-1)
	for _, v := range x {
		m = math.Max(m, v)
	}
	return m
}

func zip(in []Array, f func(x, y float64) float64) Array {
	return makeArray(in[0].Shape, func(idx []int) float64 { return f(in[0].at(idx...), in[1].at(idx...)) })
}

// reduceRef reduces dims (none: all) by a function of the elements.
func reduceRef(f func(x []float64) float64) func(in []Array, a Attrs) ([]Array, error) {
	return refOne(func(in []Array, a Attrs) Array {
		x, dims := in[0], a.Ints("dims")
		if len(dims) == 0 {
			dims = a.Ints("dim")
		}
		var reduced []int
		for i := range x.Shape {
			if len(dims) == 0 || slices.Contains(dims, i) || slices.Contains(dims, i-len(x.Shape)) {
				reduced = append(reduced, i)
			}
		}
		shape := reducedShape(x.Shape, reduced, true)
		parts := make([][]float64, Numel(shape))
		eachIndex(x.Shape, func(i int, idx []int) {
			k := 0
			for d, v := range idx {
				if k *= shape[d]; shape[d] > 1 || !slices.Contains(reduced, d) {
					k += v
				}
			}
			parts[k] = append(parts[k], x.Data[i])
		})
		out := Array{Shape: reducedShape(x.Shape, reduced, a.Bool("keepdim")), Data: make([]float64, len(parts))}
		for i, p := range parts {
			out.Data[i] = f(p)
		}
		return out
	})
}

func foldedSamples() []Sample {
	return []Sample{valid("all", nil, sampleArray(3, 5)), valid("rows", Attrs{"dims": []int{1}}, sampleArray(4, 9)), valid("columns kept", Attrs{"dims": []int{0}, "keepdim": true}, sampleArray(7, 3)),
		valid("outer and inner", Attrs{"dims": []int{0, -1}}, sampleArray(2, 3, 4)), valid("scalar", nil, sampleArray()),
		invalid("out of range", Attrs{"dims": []int{2}}, sampleArray(2, 3)), invalid("appears multiple times", Attrs{"dims": []int{0, -2}}, sampleArray(2, 3))}
}

func truthSamples() []Sample {
	return []Sample{valid("rows", Attrs{"dim": 1}, boolArray([]int{3, 2}, 0, 0, 1, 0, 1, 1)), valid("all", nil, boolArray([]int{3}, 0, 1, 1)), valid("integers", Attrs{"dim": 0, "keepdim": true}, ints64([]int{2, 2}, 0, 3, 0, -1)),
		invalid("out of range", Attrs{"dim": -3}, boolArray([]int{3, 2}, 0, 0, 1, 0, 1, 1))}
}

// argRef is the index of the largest element (of the smallest, for sign -1), the first of several.
func argRef(sign float64) func(in []Array, a Attrs) ([]Array, error) {
	return refOne(func(in []Array, a Attrs) Array {
		x, keep := in[0], a.Bool("keepdim")
		if !a.Has("dim") {
			x, keep = reshapeRef(x, []int{-1}), false
		}
		dim := x.dim(a.Int("dim", 0))
		out := x.lines(dim, func(line []float64) []float64 {
			best := 0
			for i, v := range line {
				if b := line[best]; !math.IsNaN(b) && (math.IsNaN(v) || sign*v > sign*b) {
					best = i
				}
			}
			return []float64{float64(best)}
		})
		out.DType = Int64
		if !keep && len(x.Shape) > 0 {
			out.Shape = slices.Delete(slices.Clone(out.Shape), dim, dim+1)
		}
		return out
	})
}

func argSamples() []Sample {
	return []Sample{valid("rows", Attrs{"dim": 1}, sampleArray(3, 8)), valid("columns kept", Attrs{"dim": -2, "keepdim": true}, sampleArray(5, 3)), valid("flattened", nil, sampleArray(3, 4)),
		valid("first of several", Attrs{"dim": 0}, Array{Shape: []int{5}, Data: []float64{1, 2, 1, 2, 1}}), valid("NaN", Attrs{"dim": 0}, Array{Shape: []int{4}, Data: []float64{1, math.NaN(), 9, math.NaN()}}),
		invalid("non-zero size", Attrs{"dim": 0}, Array{Shape: []int{0, 2}}), invalid("out of range", Attrs{"dim": 2}, sampleArray(2, 3))}
}

func softmaxRef(x Array, dim int, log bool) Array {
	return x.lines(dim, func(line []float64) []float64 {
		m, s := maxOf(line), 0.0
		for _, v := range line {
			s += math.Exp(v - m)
		}
		for i, v := range line {
			if log {
				line[i] = v - m - math.Log(s)
			} else {
				line[i] = math.Exp(v-m) / s
			}
		}
		return line
	})
}

func softmaxSamples() []Sample {
	return []Sample{valid("rows", Attrs{"dim": 1}, sampleArray(3, 9)), valid("columns", Attrs{"dim": 0}, sampleArray(5, 2, 3)), valid("large", Attrs{"dim": -1}, Array{Shape: []int{1, 3}, Data: []float64{1000, 999, -1000}}),
		valid("scalar", nil, sampleArray()), invalid("not implemented for int64", Attrs{"dim": 0}, ints64([]int{2}, 1, 2)), invalid("out of range", Attrs{"dim": 2}, sampleArray(2, 3))}
}

// matmulRef is torch.matmul by its definition.
func matmulRef(a, b Array) Array {
	row, col := len(a.Shape) == 1, len(b.Shape) == 1
	if row {
		a = unsqueezeRef(a, 0)
	}
	if col {
		b = unsqueezeRef(b, -1)
	}
	ra, rb := len(a.Shape), len(b.Shape)
	batch, _ := BroadcastShapes(a.Shape[:ra-2], b.Shape[:rb-2])
	k := a.Shape[ra-1]
	pick := func(x Array, idx []int, i, j int) float64 {
		lead := len(x.Shape) - 2
		at := make([]int, 0, lead+2)
		for d := range lead {
			v := idx[len(batch)-lead+d]
			if x.Shape[d] == 1 {
				v = 0
			}
			at = append(at, v)
		}
		return x.at(append(at, i, j)...)
	}
	out := makeArray(append(slices.Clone(batch), a.Shape[ra-2], b.Shape[rb-1]), func(idx []int) float64 {
		n, s := len(batch), 0.0
		for l := range k {
			s += pick(a, idx, idx[n], l) * pick(b, idx, l, idx[n+1])
		}
		return s
	})
	if n := len(out.Shape); col {
		out.Shape = out.Shape[:n-1]
	}
	if n := len(out.Shape); row {
		at := n - 2
		if col {
			at = n - 1
		}
		out.Shape = slices.Delete(slices.Clone(out.Shape), at, at+1)
	}
	return out
}

func matmulSamples() []Sample {
	return []Sample{valid("matrices", nil, sampleArray(5, 7), sampleArray(7, 3)), valid("batch", nil, sampleArray(2, 3, 4), sampleArray(2, 4, 5)), valid("broadcast batch", nil, sampleArray(2, 1, 3, 4), sampleArray(3, 4, 2)),
		valid("batch and matrix", nil, sampleArray(2, 3, 4), sampleArray(4, 5)), valid("matrix and batch", nil, sampleArray(3, 4), sampleArray(2, 4, 5)), valid("vectors", nil, sampleArray(6), sampleArray(6)),
		valid("matrix and vector", nil, sampleArray(3, 6), sampleArray(6)), valid("vector and batch", nil, sampleArray(4), sampleArray(2, 4, 3)), valid("nothing to sum", nil, Array{Shape: []int{2, 0}}, Array{Shape: []int{0, 3}}),
		valid("integers", nil, ints64([]int{2, 2}, 1, 2, 3, 4), ints64([]int{2, 1}, 5, -6)),
		invalid("mat1 and mat2 shapes cannot be multiplied", nil, sampleArray(2, 3), sampleArray(2, 3)), invalid("cannot be broadcast", nil, sampleArray(2, 3, 4), sampleArray(3, 4, 5)), invalid("at least 1D", nil, sampleArray(), sampleArray(2)),
		invalid("same dtype", nil, sampleArray(2, 2), ints64([]int{2, 1}, 5, -6))}
}

func linearRef(in []Array, _ Attrs) Array {
	out := matmulRef(in[0], permuteRef(in[1], []int{1, 0}))
	if len(in) < 3 {
		return out
	}
	return makeArray(out.Shape, func(idx []int) float64 { return out.at(idx...) + in[2].at(idx[len(idx)-1]) })
}

func linearSamples() []Sample {
	return []Sample{valid("bias", nil, sampleArray(4, 6), sampleArray(3, 6), sampleArray(3)), valid("no bias", nil, sampleArray(4, 6), sampleArray(3, 6)), valid("vector", nil, sampleArray(6), sampleArray(3, 6), sampleArray(3)),
		valid("batch", nil, sampleArray(2, 2, 6), sampleArray(3, 6), sampleArray(3)), invalid("cannot be multiplied", nil, sampleArray(4, 5), sampleArray(3, 6)), invalid("the bias must have shape [3]", nil, sampleArray(4, 6), sampleArray(3, 6), sampleArray(4))}
}

// crossEntropyRef follows PyTorch's documentation of CrossEntropyLoss, for classes and for class probabilities.
func crossEntropyRef(in []Array, a Attrs) ([]Array, error) {
	x, target := in[0], in[1]
	dim := min(1, len(x.Shape)-1)
	logp := softmaxRef(x, dim, true)
	classes := x.Shape[dim]
	smooth, ignore := a.Float("label_smoothing", 0), a.Float("ignore_index", -100)
	probs := !target.DType.IsInt()
	weight := func(c int) float64 {
		if len(in) > 2 {
			return in[2].Data[c]
		}
		return 1
	}
	norm := 0.0
	terms := makeArray(slices.Delete(slices.Clone(x.Shape), dim, dim+1), func(idx []int) float64 {
		loss, full := 0.0, slices.Insert(slices.Clone(idx), dim, 0)
		if !probs && target.at(idx...) == ignore {
			return 0
		}
		for c := range classes {
			full[dim] = c
			q := truth(!probs && target.at(idx...) == float64(c))
			if probs {
				q = target.at(full...)
			}
			if !probs {
				norm += q * weight(c)
			}
			if q = (1-smooth)*q + smooth/float64(classes); q != 0 {
				loss -= weight(c) * q * logp.at(full...)
			}
		}
		if probs {
			norm++
		}
		return loss
	})
	switch a.String("reduction", "mean") {
	case "none":
		return []Array{terms}, nil
	case "sum":
		return []Array{{Data: []float64{totalOf(terms.Data)}}}, nil
	}
	return []Array{{Data: []float64{totalOf(terms.Data) / norm}}}, nil
}

func crossEntropySamples() []Sample {
	labels := ints64([]int{4}, 0, 2, -100, 1)
	return []Sample{valid("mean", nil, sampleArray(4, 3), labels), valid("sum", Attrs{"reduction": "sum"}, sampleArray(4, 3), labels), valid("none", Attrs{"reduction": "none"}, sampleArray(4, 3), labels),
		valid("weights and smoothing", Attrs{"label_smoothing": 0.1, "ignore_index": 0}, sampleArray(4, 3), ints64([]int{4}, 0, 2, 1, 1), positiveArray(3)),
		valid("pixels", nil, sampleArray(2, 3, 2, 2), ints64([]int{2, 2, 2}, 0, 1, 2, 0, 1, 2, 0, 1)), valid("one row", nil, sampleArray(3), ints64([]int{}, 1)),
		valid("probabilities", Attrs{"label_smoothing": 0.2}, sampleArray(2, 3), Array{Shape: []int{2, 3}, Data: []float64{0.2, 0.3, 0.5, 1, 0, 0}}),
		invalid("target 3 is out of bounds", nil, sampleArray(4, 3), ints64([]int{4}, 0, 3, 1, 1)), invalid("expected target of integers with shape [4]", nil, sampleArray(4, 3), ints64([]int{3}, 0, 1, 1)),
		invalid("label_smoothing must be between 0.0 and 1.0", Attrs{"label_smoothing": 1.5}, sampleArray(4, 3), labels)}
}

func pairLossRef(f func(d float64) float64) func(in []Array, a Attrs) ([]Array, error) {
	return func(in []Array, a Attrs) ([]Array, error) {
		terms := zip(in, func(x, y float64) float64 { return f(x - y) })
		switch a.String("reduction", "mean") {
		case "none":
			return []Array{terms}, nil
		case "sum":
			return []Array{{Data: []float64{totalOf(terms.Data)}}}, nil
		}
		return []Array{{Data: []float64{totalOf(terms.Data) / float64(len(terms.Data))}}}, nil
	}
}

func pairLossSamples() []Sample {
	return []Sample{valid("mean", nil, sampleArray(3, 4), positiveArray(3, 4)), valid("sum", Attrs{"reduction": "sum"}, sampleArray(3, 4), positiveArray(3, 4)),
		valid("none", Attrs{"reduction": "none"}, sampleArray(3, 4), positiveArray(3, 4)), invalid("different from the input's", nil, sampleArray(3, 4), sampleArray(4))}
}

// --- shapes ---

func reshapeRef(x Array, shape []int) Array {
	to, _ := inferShape(shape, len(x.Data))
	return Array{Shape: to, Data: x.Data, DType: x.DType}
}

func flattenRef(in []Array, a Attrs) Array {
	x := in[0]
	from, to := x.dim(a.Int("start_dim", 0)), x.dim(a.Int("end_dim", -1))
	return reshapeRef(x, slices.Concat(x.Shape[:from], []int{-1}, x.Shape[to+1:]))
}

func permuteRef(x Array, dims []int) Array {
	shape := make([]int, len(dims))
	for i, d := range dims {
		shape[i] = x.size(d)
	}
	return makeArray(shape, func(idx []int) float64 {
		from := make([]int, len(idx))
		for i, d := range dims {
			from[x.dim(d)] = idx[i]
		}
		return x.at(from...)
	})
}

func transposeRef(in []Array, a Attrs) Array {
	dims := make([]int, len(in[0].Shape))
	for i := range dims {
		dims[i] = i
	}
	i, j := in[0].dim(a.Int("dim0", 0)), in[0].dim(a.Int("dim1", 1))
	dims[i], dims[j] = j, i
	return permuteRef(in[0], dims)
}

func expandRef(in []Array, a Attrs) Array {
	x, shape := in[0], slices.Clone(firstInts(a, "shape", "size"))
	lead := len(shape) - len(x.Shape)
	for i, d := range shape {
		if d == -1 {
			shape[i] = x.Shape[i-lead]
		}
	}
	return makeArray(shape, func(idx []int) float64 {
		from := slices.Clone(idx[lead:])
		for i := range from {
			from[i] = min(from[i], x.Shape[i]-1)
		}
		return x.at(from...)
	})
}

func sliceRef(in []Array, a Attrs) Array {
	x := in[0]
	d := x.dim(a.Int("dim", 0))
	n := x.Shape[d]
	bound := func(v int) int {
		if v < 0 {
			v += n
		}
		return min(max(v, 0), n)
	}
	from, to, by := bound(a.Int("start", 0)), bound(a.Int("stop", n)), a.Int("step", 1)
	size := 0
	for i := from; i < to; i += by {
		size++
	}
	return makeArray(withSize(x.Shape, d, size), func(idx []int) float64 { return x.at(with(idx, d, from+idx[d]*by)...) })
}

func selectRef(in []Array, a Attrs) Array {
	x := in[0]
	d, i := x.dim(a.Int("dim", 0)), a.Int("index", 0)
	if i < 0 {
		i += x.Shape[d]
	}
	return makeArray(slices.Delete(slices.Clone(x.Shape), d, d+1), func(idx []int) float64 { return x.at(slices.Insert(slices.Clone(idx), d, i)...) })
}

func squeezeRef(x Array, dims []int) Array {
	shape := []int{}
	for i, n := range x.Shape {
		if n != 1 || len(dims) > 0 && !slices.Contains(dims, i) && !slices.Contains(dims, i-len(x.Shape)) {
			shape = append(shape, n)
		}
	}
	return reshapeRef(x, shape)
}

func unsqueezeRef(x Array, dim int) Array {
	if dim < 0 {
		dim += len(x.Shape) + 1
	}
	return reshapeRef(x, slices.Insert(slices.Clone(x.Shape), dim, 1))
}

func embedRef(in []Array, a Attrs) Array {
	x, d := in[0], a.Int("dim", 0)
	start, step := a.Int("start", 0), a.Int("step", 1)
	return makeArray(a.Ints("shape"), func(idx []int) float64 {
		k := idx[d] - start
		if k < 0 || k%step != 0 || k/step >= x.Shape[d] {
			return 0
		}
		return x.at(with(idx, d, k/step)...)
	})
}

func catRef(in []Array, dim int) Array {
	d := in[0].dim(dim)
	total := 0
	for _, x := range in {
		total += x.Shape[d]
	}
	return makeArray(withSize(in[0].Shape, d, total), func(idx []int) float64 {
		k := idx[d]
		for _, x := range in {
			if k < x.Shape[d] {
				return x.at(with(idx, d, k)...)
			}
			k -= x.Shape[d]
		}
		return math.NaN()
	})
}
