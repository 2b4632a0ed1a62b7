package tensor

import (
	"fmt"
	"slices"
)

// This file has the operators that take elements by index. Indices are int32 or int64 and count from 0; one out of range is an error
// that names it, which comes with the value of the result or when the scope closes.

func defineOp(o OpInfo) *OpInfo { return register(&o) }

func one(t *Tensor) []*Tensor { return []*Tensor{t} }

var _ = defineOp(OpInfo{Name: "gather", Doc: "elements along dim by an index of the result's shape: out[i][j] = x[i][index[i][j]] for dim 1", Kind: KindMove,
	Inputs: []string{"x", "index"}, Differentiable: []bool{true, false},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].Gather(a.Int("dim", 0), in[1])) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		d := in[0].dim(a.Int("dim", 0))
		return makeArray(in[1].Shape, func(idx []int) float64 { return in[0].at(with(idx, d, int(in[1].at(idx...)))...) })
	}),
	Samples: []Sample{
		valid("columns", Attrs{"dim": 1}, sampleArray(3, 4), ints64([]int{3, 2}, 0, 3, 1, 1, 2, 0)),
		valid("smaller index", Attrs{"dim": -2}, sampleArray(3, 4), ints64([]int{1, 2}, 2, 0)),
		invalid("index 4 is out of bounds for dimension 1 with size 4", Attrs{"dim": 1}, sampleArray(3, 4), ints64([]int{1, 2}, 4, 0)),
		invalid("index -1 is out of bounds", Attrs{"dim": 1}, sampleArray(3, 4), ints64([]int{1, 2}, -1, 0)),
		invalid("same number of dimensions", Attrs{"dim": 1}, sampleArray(3, 4), ints64([]int{2}, 0, 0)),
	}})

// Gather returns elements along dim: out[i][j] = t[i][index[i][j]] for dim 1 of a matrix. The result has index's shape, which in
// the other dimensions may be smaller than t's.
func (t *Tensor) Gather(dim int, index *Tensor) *Tensor {
	c := begin(LookupOp("gather"), t, index)
	if c.err != nil {
		return c.failed()
	}
	d, err := c.checkEach(t, index, dim, true)
	if err != nil {
		return c.fail("", err)
	}
	c.in[0] = c.in[0].fit(index.shape, d)
	out := c.gatherEach(c.in[0], c.in[1], d)
	c.checkIndex(out, index, sizeAt(t.shape, d), false, fmt.Sprintf("dimension %d", d))
	return out
}

func sizeAt(shape []int, d int) int {
	if len(shape) == 0 {
		return 1
	}
	return shape[d]
}

// checkEach checks an index of the result's shape: its rank, and that it is not larger than t but, with along, in dim.
func (c *call) checkEach(t, index *Tensor, dim int, along bool) (int, error) {
	if err := indexDType(index); err != nil {
		return 0, err
	}
	d, err := normDim(dim, len(t.shape))
	if err != nil {
		return 0, errorOf(ErrShape, "%v", err)
	}
	if len(index.shape) != len(t.shape) {
		return 0, errorOf(ErrShape, "index tensor must have the same number of dimensions as input tensor: %v and %v", index.shape, t.shape)
	}
	for i, n := range index.shape {
		if n > t.shape[i] && !(along && i == d) {
			return 0, errorOf(ErrShape, "size does not match at dimension %d: expected index %v to be no larger than %v apart from dimension %d", i, index.shape, t.shape, d)
		}
	}
	return d, nil
}

// fit cuts the dimensions of t but d to shape; d < 0 cuts all.
func (t *Tensor) fit(shape []int, d int) *Tensor {
	for i, n := range shape {
		if i != d && t.err == nil && t.shape[i] != n {
			t = t.Slice(i, 0, n, 1)
		}
	}
	return t
}

// gatherEach is gather without checks, for an x that differs from the index only along d.
func (c *call) gatherEach(x, index *Tensor, d int) *Tensor {
	if x.err != nil {
		return x
	}
	out := c.gathered(x, index, d, true)
	c.differentiable(one(out), nil, func(cc *Call, dy *Tensor) []*Tensor {
		return one(scatterZeros("gather_grad", dy, index, d, sizeAt(x.shape, d)))
	})
	return out
}

// takeEach is gather for an index that is known to be right.
func (t *Tensor) takeEach(d int, index *Tensor) *Tensor {
	c := begin(LookupOp("gather"), t, index)
	if c.err != nil {
		return c.failed()
	}
	return c.gatherEach(c.in[0], c.in[1], d)
}

func refScatter(each bool, f func(old, src float64) float64) func(base Array, index, src Array, d int) Array {
	return func(base Array, index, src Array, d int) Array {
		out := makeArray(base.Shape, func(idx []int) float64 { return base.at(idx...) })
		shape := index.Shape
		if !each {
			shape = src.Shape
		}
		eachIndex(shape, func(_ int, idx []int) {
			var to int
			if each {
				to = int(index.at(idx...))
			} else {
				to = int(index.Data[idx[d]])
			}
			if to < 0 || to >= base.Shape[d] {
				return
			}
			k := 0
			for i, v := range with(idx, d, to) {
				k = k*base.Shape[i] + v
			}
			out.Data[k] = f(out.Data[k], src.at(idx...))
		})
		return out
	}
}

func sumOf(old, src float64) float64 { return old + src }
func lastOf(_, src float64) float64  { return src }

var _ = defineOp(OpInfo{Name: "gather_grad", Doc: "src summed at index along dim into zeros of size n there: the gradient of gather", Kind: KindMove,
	Inputs: []string{"src", "index"}, Differentiable: []bool{true, false},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(scatterZeros("gather_grad", in[0], in[1], a.Int("dim", 0), a.Int("n", 0)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		d := a.Int("dim", 0)
		zeros := makeArray(withSize(in[0].Shape, d, a.Int("n", 0)), func([]int) float64 { return 0 })
		return refScatter(true, sumOf)(zeros, in[1], in[0], d)
	}),
	Samples: []Sample{
		valid("columns", Attrs{"dim": 1, "n": 4}, sampleArray(2, 3), ints64([]int{2, 3}, 0, 3, 3, 1, -1, 2)),
		invalid("must have the shape of src", Attrs{"dim": 1, "n": 4}, sampleArray(2, 3), ints64([]int{2, 2}, 0, 3, 3, 1)),
		invalid("dimension 2 of 2", Attrs{"dim": 2, "n": 4}, sampleArray(2, 3), ints64([]int{2, 3}, 0, 3, 3, 1, -1, 2)),
	}})

var _ = defineOp(OpInfo{Name: "index_select_grad", Doc: "src summed at a list of indices along dim into zeros of size n there: the gradient of index_select", Kind: KindMove,
	Inputs: []string{"src", "index"}, Differentiable: []bool{true, false},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(scatterZeros("index_select_grad", in[0], in[1], a.Int("dim", 0), a.Int("n", 0)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		d := a.Int("dim", 0)
		zeros := makeArray(withSize(in[0].Shape, d, a.Int("n", 0)), func([]int) float64 { return 0 })
		return refScatter(false, sumOf)(zeros, in[1], in[0], d)
	}),
	Samples: []Sample{
		valid("rows", Attrs{"dim": 0, "n": 3}, sampleArray(4, 2), ints64([]int{4}, 0, 2, 2, -1)),
		invalid("must have the shape of src", Attrs{"dim": 0, "n": 3}, sampleArray(4, 2), ints64([]int{3}, 0, 2, 2)),
		invalid("n must be non-negative, got -1", Attrs{"dim": 0, "n": -1}, sampleArray(4, 2), ints64([]int{4}, 0, 2, 2, -1)),
	}})

// scatterZeros sums src at index into zeros; indices out of range do not count.
func scatterZeros(op string, src, index *Tensor, d, n int) *Tensor {
	c := begin(LookupOp(op), src, index)
	if c.err != nil {
		return c.failed()
	}
	src, index = c.in[0], c.in[1]
	each := op == "gather_grad"
	if err := checkScatterZeros(src, index, d, n, each); err != nil {
		return c.fail("", err)
	}
	out := c.scattered(nil, src, index, d, n, each, false)
	c.differentiable(one(out), nil, func(_ *Call, dy *Tensor) []*Tensor {
		if each {
			return one(dy.takeEach(d, index))
		}
		return one(dy.takeList(d, index))
	})
	return out
}

// checkScatterZeros checks that the index has src's shape, or without each that of its dimensions from d on.
func checkScatterZeros(src, index *Tensor, d, n int, each bool) error {
	if err := indexDType(index); err != nil {
		return err
	}
	first, last := d, d+len(index.shape)
	if each {
		first, last = 0, len(src.shape)
	}
	switch {
	case d < 0 || d > len(src.shape) || each && d >= max(1, len(src.shape)):
		return errorOf(ErrShape, "dimension %d of %d", d, len(src.shape))
	case n < 0:
		return errorOf(ErrShape, "n must be non-negative, got %d", n)
	case last > len(src.shape) || !slices.Equal(src.shape[first:last], index.shape):
		return errorOf(ErrShape, "index of shape %v must have the shape of src %v from dimension %d on", index.shape, src.shape, first)
	}
	return nil
}

// takeList is index_select for an index of any shape that is known to be right, or is to give 0.
func (t *Tensor) takeList(d int, index *Tensor) *Tensor {
	c := begin(LookupOp("index_select"), t, index)
	if c.err != nil {
		return c.failed()
	}
	return c.takeList(d)
}

func (c *call) takeList(d int) *Tensor {
	x, index := c.in[0], c.in[1]
	out := c.gathered(x, index, d, false)
	c.differentiable(one(out), nil, func(_ *Call, dy *Tensor) []*Tensor {
		return one(scatterZeros("index_select_grad", dy, index, d, x.shape[d]))
	})
	return out
}

var _ = defineOp(OpInfo{Name: "index_select", Doc: "slices along dim by a list of indices", Kind: KindMove, Inputs: []string{"x", "index"}, Differentiable: []bool{true, false},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].IndexSelect(a.Int("dim", 0), in[1])) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		d := in[0].dim(a.Int("dim", 0))
		return makeArray(withSize(in[0].Shape, d, len(in[1].Data)), func(idx []int) float64 { return in[0].at(with(idx, d, int(in[1].Data[idx[d]]))...) })
	}),
	Samples: []Sample{
		valid("rows", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{4}, 4, 0, 0, 2)),
		valid("columns", Attrs{"dim": -1}, sampleArray(2, 5, 4), ints64([]int{3}, 3, 1, 1)),
		valid("nothing", Attrs{"dim": 1}, sampleArray(2, 3), ints64([]int{0})),
		invalid("index 5 is out of bounds for dimension 0 with size 5", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{1}, 5)),
		invalid("index is supposed to be a vector", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{1, 1}, 0)),
	}})

// IndexSelect returns slices of t along dim, by a list of indices.
func (t *Tensor) IndexSelect(dim int, index *Tensor) *Tensor {
	c := begin(LookupOp("index_select"), t, index)
	if c.err != nil {
		return c.failed()
	}
	d, err := normDim(dim, len(t.shape))
	switch {
	case err != nil:
		return c.shapeFail("%v", err)
	case len(t.shape) == 0:
		return c.shapeFail("index_select needs at least one dimension")
	case len(index.shape) != 1:
		return c.shapeFail("index_select(): index is supposed to be a vector, but got shape %v", index.shape)
	}
	if err := indexDType(index); err != nil {
		return c.fail("cast it", err)
	}
	out := c.takeList(d)
	c.checkIndex(out, index, t.shape[d], false, fmt.Sprintf("dimension %d", d))
	return out
}

var _ = defineOp(OpInfo{Name: "embedding", Doc: "rows of weight by index; the row padding_idx gets no gradient", Kind: KindMove, Inputs: []string{"weight", "index"}, Differentiable: []bool{true, false},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(embeddingWith(in[0], in[1], a.Int("padding_idx", -1), a.Has("padding_idx")))
	},
	Ref: refOne(func(in []Array, _ Attrs) Array {
		return makeArray(append(slices.Clone(in[1].Shape), in[0].Shape[1]), func(idx []int) float64 {
			return in[0].at(int(in[1].at(idx[:len(idx)-1]...)), idx[len(idx)-1])
		})
	}),
	Samples: []Sample{
		valid("two dimensions", nil, sampleArray(5, 4), ints64([]int{2, 3}, 4, 0, 0, 1, 2, 4)),
		valid("padding", Attrs{"padding_idx": 1}, sampleArray(3, 2), ints64([]int{4}, 1, 0, 1, 2)),
		invalid("index 5 is out of bounds for the embedding with size 5", nil, sampleArray(5, 4), ints64([]int{2}, 0, 5)),
		invalid("'weight' must be 2-D", nil, sampleArray(5), ints64([]int{2}, 0, 1)),
	}})

// Embedding returns the rows of weight [n, d] at index, of shape index's + [d].
func Embedding(weight, index *Tensor) *Tensor { return embeddingWith(weight, index, 0, false) }

// EmbeddingPadding is Embedding where row padding, which may count from the end, gets no gradient.
func EmbeddingPadding(weight, index *Tensor, padding int) *Tensor {
	return embeddingWith(weight, index, padding, true)
}

func embeddingWith(weight, index *Tensor, padding int, padded bool) *Tensor {
	c := begin(LookupOp("embedding"), weight, index)
	if c.err != nil {
		return c.failed()
	}
	if len(weight.shape) != 2 {
		return c.shapeFail("'weight' must be 2-D, got shape %v", weight.shape)
	}
	if err := indexDType(index); err != nil {
		return c.fail("cast it", err)
	}
	n := weight.shape[0]
	if padded && (padding < -n || padding >= n) {
		return c.shapeFail("padding_idx %d must be within num_embeddings %d", padding, n)
	}
	weight = c.in[0]
	out := c.gathered(weight, index, 0, false)
	c.checkIndex(out, index, n, false, "the embedding")
	c.differentiable(one(out), nil, func(_ *Call, dy *Tensor) []*Tensor {
		counted := index
		if padded {
			// An index out of range does not count.
			counted = applyParams("masked_fill", []float64{-1}, index, index.EqScalar(float64((padding+n)%n)))
		}
		return one(scatterZeros("index_select_grad", dy, counted, 0, n))
	})
	return out
}

// scatterOp defines scatter_add, or scatter with set.
func scatterOp(name, doc string, class Class, f func(old, src float64) float64) *OpInfo {
	return defineOp(OpInfo{Name: name, Doc: doc, Kind: KindMove, Class: class, Inputs: []string{"x", "index", "src"}, Differentiable: []bool{true, false, true},
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			return one(scatterInto(name, in[0], in[1], in[2], a.Int("dim", 0)))
		},
		Ref: refOne(func(in []Array, a Attrs) Array {
			return refScatter(true, f)(in[0], in[1], in[2], in[0].dim(a.Int("dim", 0)))
		}),
		Samples: []Sample{
			valid("columns", Attrs{"dim": 1}, sampleArray(3, 5), ints64([]int{3, 2}, 0, 4, 1, 2, 3, 0), sampleArray(3, 2)),
			valid("smaller index", Attrs{"dim": 0}, sampleArray(3, 5), ints64([]int{2, 3}, 0, 2, 1, 1, 0, 2), sampleArray(4, 3)),
			invalid("index 5 is out of bounds for dimension 1 with size 5", Attrs{"dim": 1}, sampleArray(3, 5), ints64([]int{1, 1}, 5), sampleArray(3, 2)),
			invalid("to be no larger than", Attrs{"dim": 1}, sampleArray(3, 5), ints64([]int{1, 3}, 0, 1, 2), sampleArray(3, 2)),
		}})
}

var (
	_ = scatterOp("scatter_add", "x with src added at index along dim: out[i][index[i][j]] += src[i][j] for dim 1", Widest, sumOf)
	_ = scatterOp("scatter", "x with src put at index along dim; of several for one place the last", AsIs, lastOf)
)

// ScatterAdd returns t with src added at index along dim: out[i][index[i][j]] += src[i][j] for dim 1 of a matrix. Sums are in a fixed order.
func (t *Tensor) ScatterAdd(dim int, index, src *Tensor) *Tensor {
	return scatterInto("scatter_add", t, index, src, dim)
}

// Scatter returns t with src put at index along dim; of several elements for one place the last counts.
func (t *Tensor) Scatter(dim int, index, src *Tensor) *Tensor {
	return scatterInto("scatter", t, index, src, dim)
}

func scatterInto(op string, t, index, src *Tensor, dim int) *Tensor {
	c := begin(LookupOp(op), t, index, src)
	if c.err != nil {
		return c.failed()
	}
	x, src := c.in[0], c.in[2]
	d, err := c.checkEach(x, index, dim, true)
	if err == nil {
		_, err = c.checkEach(src, index, dim, false)
	}
	switch {
	case err != nil:
		return c.fail("", err)
	case x.dtype != src.dtype:
		return c.fail("cast one", errorOf(ErrDType, "expected self.dtype to be equal to src.dtype, but got %s and %s", x.dtype, src.dtype))
	case x.dtype == Bool:
		return c.fail("cast to uint8", errorOf(ErrDType, "not implemented for bool"))
	}
	set := op == "scatter"
	src = src.fit(index.shape, -1)
	base := x.fit(index.shape, d)
	cc := &call{op: c.op, in: []*Tensor{base, index, src}, scope: c.scope, eng: c.eng, site: c.site}
	for _, in := range cc.in {
		if in.err != nil {
			return in
		}
	}
	out := cc.scattered(base, src, index, d, sizeAt(x.shape, d), true, set)
	cc.checkIndex(out, index, sizeAt(x.shape, d), false, fmt.Sprintf("dimension %d", d))
	cc.differentiable(one(out), nil, func(k *Call, dy *Tensor) []*Tensor {
		gs := make([]*Tensor, 3)
		if gs[0] = dy; set && k.Needs(0) {
			gs[0] = scatterInto("scatter", dy, index, fill(dy.eng, dy.scope, dy.dtype, 0, index.shape), d)
		}
		if k.Needs(2) {
			gs[2] = dy.takeEach(d, index)
		}
		return gs
	})
	return x.replaceCorner(out, index.shape, d)
}

// replaceCorner returns t with its elements below shape (apart from d) replaced by those of part.
func (t *Tensor) replaceCorner(part *Tensor, shape []int, d int) *Tensor {
	for i, n := range t.shape {
		if i == d || n == shape[i] {
			continue
		}
		// From the outside in: the rest of t along i, where the dimensions after i are already whole.
		inner := t.Slice(i, 0, shape[i], 1)
		return Cat(i, inner.replaceCorner(part, shape, d), t.Slice(i, shape[i], n, 1))
	}
	return part
}
