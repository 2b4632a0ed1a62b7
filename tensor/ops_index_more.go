package tensor

import (
	"fmt"
	"slices"
)

var _ = defineOp(OpInfo{Name: "index_add", Doc: "x with the slices of src added at a list of indices along dim, times alpha", Kind: KindMove, Inputs: []string{"x", "index", "src"},
	Differentiable: []bool{true, false, true},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(in[0].IndexAdd(a.Int("dim", 0), in[1], in[2], a.Float("alpha", 1)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		alpha := a.Float("alpha", 1)
		return refScatter(false, func(old, src float64) float64 { return old + alpha*src })(in[0], in[1], in[2], in[0].dim(a.Int("dim", 0)))
	}),
	Samples: []Sample{
		valid("rows", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{3}, 1, 1, 4), sampleArray(3, 3)),
		valid("alpha", Attrs{"dim": 1, "alpha": 2.0}, sampleArray(2, 4), ints64([]int{2}, 3, 0), sampleArray(2, 2)),
		invalid("index 5 is out of bounds for dimension 0 with size 5", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{1}, 5), sampleArray(1, 3)),
		invalid("source shape", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{2}, 0, 1), sampleArray(1, 3)),
	}})

// IndexAdd returns t with alpha times the slices of src added at a list of indices along dim, in a fixed order.
func (t *Tensor) IndexAdd(dim int, index, src *Tensor, alpha float64) *Tensor {
	if alpha != 1 {
		src = src.MulScalar(alpha)
	}
	return indexInto("index_add", t, index, src, dim)
}

var _ = defineOp(OpInfo{Name: "index_copy", Doc: "x with the slices of src put at a list of indices along dim; of several for one place the last", Kind: KindMove, Class: Widest,
	Inputs: []string{"x", "index", "src"}, Differentiable: []bool{true, false, true},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].IndexCopy(a.Int("dim", 0), in[1], in[2])) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		return refScatter(false, lastOf)(in[0], in[1], in[2], in[0].dim(a.Int("dim", 0)))
	}),
	Samples: []Sample{
		valid("rows", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{2}, 4, 1), positiveArray(2, 3)),
		invalid("index 7 is out of bounds", Attrs{"dim": 0}, sampleArray(5, 3), ints64([]int{1}, 7), sampleArray(1, 3)),
	}})

// IndexCopy returns t with the slices of src put at a list of indices along dim.
func (t *Tensor) IndexCopy(dim int, index, src *Tensor) *Tensor {
	return indexInto("index_copy", t, index, src, dim)
}

func indexInto(op string, t, index, src *Tensor, dim int) *Tensor {
	c := begin(LookupOp(op), t, index, src)
	if c.err != nil {
		return c.failed()
	}
	x, src := c.in[0], c.in[2]
	d, err := normDim(dim, len(x.shape))
	if err == nil {
		err = indexDType(index)
	}
	switch {
	case err != nil:
		return c.shapeFail("%v", err)
	case len(x.shape) == 0 || len(index.shape) != 1:
		return c.shapeFail("needs a tensor with dimensions and a list of indices, got shapes %v and %v", x.shape, index.shape)
	case !slices.Equal(src.shape, withSize(x.shape, d, index.shape[0])):
		return c.shapeFail("source shape %v must be %v: that of the tensor with the number of indices in dimension %d", src.shape, withSize(x.shape, d, index.shape[0]), d)
	case x.dtype != src.dtype:
		return c.fail("cast one", errorOf(ErrDType, "self (%s) and source (%s) must have the same scalar type", x.dtype, src.dtype))
	case x.dtype == Bool:
		return c.fail("cast to uint8", errorOf(ErrDType, "not implemented for bool"))
	}
	set := op == "index_copy"
	out := c.indexed(x, src, d, set)
	c.checkIndex(out, index, x.shape[d], false, fmt.Sprintf("dimension %d", d))
	return out
}

// indexed is index_add or index_copy of checked operands.
func (c *call) indexed(x, src *Tensor, d int, set bool) *Tensor {
	index := c.in[1]
	out := c.scattered(x, src, index, d, x.shape[d], false, set)
	c.differentiable(one(out), nil, func(k *Call, dy *Tensor) []*Tensor {
		gs := make([]*Tensor, 3)
		if gs[0] = dy; set && k.Needs(0) {
			gs[0] = indexInto("index_copy", dy, index, zerosLike(src), d)
		}
		if k.Needs(2) {
			gs[2] = dy.takeList(d, index)
		}
		return gs
	})
	return out
}

// flatIndex combines indices of the first dimensions of a shape, broadcast, into indices of these dimensions as one. Negative ones
// count from the end. A wrong one becomes -1, which no place has.
func flatIndex(shape []int, index []*Tensor) *Tensor {
	var flat, bad *Tensor
	for i, t := range index {
		n := float64(shape[i])
		v := t.Cast(Int64)
		v = Where(v.LtScalar(0), v.AddScalar(n), v)
		wrong := v.LtScalar(0).LogicalOr(v.GeScalar(n))
		if flat == nil {
			flat, bad = v, wrong
			continue
		}
		flat, bad = flat.MulScalar(n).Add(v), bad.LogicalOr(wrong)
	}
	return applyParams("masked_fill", []float64{-1}, flat, bad)
}

var _ = defineOp(OpInfo{Name: "index_put", Doc: "x with values put (or with accumulate added) at places given by one index for each of its first dimensions", Kind: KindComposite, Class: Widest,
	Inputs: []string{"x", "values", "index"},
	Call:   func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].IndexPut(in[2:], in[1], a.Bool("accumulate"))) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		x, values, index := in[0], in[1], in[2:]
		k := len(index)
		out := makeArray(x.Shape, func(idx []int) float64 { return x.at(idx...) })
		eachIndex(values.Shape, func(i int, idx []int) {
			at := 0
			m := len(index[0].Shape)
			for d, n := range x.Shape {
				var v int
				if d < k {
					if v = int(index[d].at(idx[:m]...)); v < 0 {
						v += n
					}
				} else {
					v = idx[m+d-k]
				}
				at = at*n + v
			}
			if a.Bool("accumulate") {
				out.Data[at] += values.Data[i]
			} else {
				out.Data[at] = values.Data[i]
			}
		})
		return out
	}),
	Samples: []Sample{
		valid("elements", nil, sampleArray(3, 4), positiveArray(2), ints64([]int{2}, 2, 0), ints64([]int{2}, 3, -1)),
		valid("rows, accumulated", Attrs{"accumulate": true}, sampleArray(3, 4), positiveArray(3, 4), ints64([]int{3}, 1, 1, -3)),
		invalid("is out of bounds", nil, sampleArray(3, 4), positiveArray(1), ints64([]int{1}, 2), ints64([]int{1}, 4)),
		invalid("too many indices", nil, sampleArray(3), positiveArray(1), ints64([]int{1}, 2), ints64([]int{1}, 0)),
	}})

// IndexPut returns t with values put (accumulate: added) at index, one tensor for each of the first dimensions of t, which
// are broadcast to one shape. values are broadcast to that shape and the rest of t's. Of several values for one place
// the last counts.
func (t *Tensor) IndexPut(index []*Tensor, values *Tensor, accumulate bool) *Tensor {
	c := begin(LookupOp("index_put"), append([]*Tensor{t, values}, index...)...)
	if c.err != nil {
		return c.failed()
	}
	if len(index) == 0 || len(index) > len(t.shape) {
		return c.shapeFail("too many indices for tensor of dimension %d, or none: %d", len(t.shape), len(index))
	}
	shapes := make([][]int, len(index))
	for i, x := range index {
		if err := indexDType(x); err != nil {
			return c.fail("", err)
		}
		shapes[i] = x.shape
	}
	shape, err := BroadcastShapes(shapes...)
	if err != nil {
		return c.shapeFail("%v", err)
	}
	x, rest := c.in[0], t.shape[len(index):]
	full := slices.Concat(shape, rest)
	v := c.in[1]
	if bs, err := BroadcastShapes(v.shape, full); err != nil || !slices.Equal(bs, full) {
		return c.shapeFail("values of shape %v cannot be broadcast to indexing result of shape %v", v.shape, full)
	}
	if v.dtype != x.dtype {
		return c.fail("cast one", errorOf(ErrDType, "index put requires the source and destination dtypes match, got %s for the destination and %s for the source", x.dtype, v.dtype))
	}
	n := Numel(shape)
	v = v.Expand(full...).Reshape(append([]int{n}, rest...)...)
	lead := Numel(t.shape[:len(index)])
	flat := flatIndex(t.shape, c.in[2:]).Expand(shape...).Reshape(n)
	x = x.Reshape(append([]int{lead}, rest...)...)
	op := "index_copy"
	if accumulate {
		op = "index_add"
	}
	cc := begin(LookupOp(op), x, flat, v)
	if cc.err != nil {
		return cc.failed()
	}
	out := cc.indexed(x, v, 0, !accumulate)
	for i, x := range index {
		c.checkIndex(out, x, t.shape[i], true, fmt.Sprintf("dimension %d", i))
	}
	return out.Reshape(t.shape...)
}

var _ = defineOp(OpInfo{Name: "masked_select", Doc: "the elements where mask holds, in row-major order, as a list; it waits for the mask", Kind: KindComposite, Inputs: []string{"x", "mask"},
	Differentiable: []bool{true, false},
	Call:           func(in []*Tensor, _ Attrs) []*Tensor { return one(in[0].MaskedSelect(in[1])) },
	Ref: refOne(func(in []Array, _ Attrs) Array {
		shape, _ := BroadcastShapes(in[0].Shape, in[1].Shape)
		var data []float64
		eachIndex(shape, func(_ int, idx []int) {
			pick := func(a Array) float64 {
				own := slices.Clone(idx[len(idx)-len(a.Shape):])
				for i, n := range a.Shape {
					own[i] = min(own[i], n-1)
				}
				return a.at(own...)
			}
			if pick(in[1]) != 0 {
				data = append(data, pick(in[0]))
			}
		})
		return Array{Shape: []int{len(data)}, Data: data}
	}),
	Samples: []Sample{
		valid("some", nil, sampleArray(2, 3), boolArray([]int{2, 3}, 1, 0, 0, 1, 1, 0)),
		valid("broadcast", nil, sampleArray(2, 3), boolArray([]int{3}, 0, 1, 1)),
		valid("none", nil, sampleArray(3), boolArray([]int{3}, 0, 0, 0)),
		invalid("expected BoolTensor", nil, sampleArray(3), sampleArray(3)),
	}})

// MaskedSelect returns the elements of t where mask (bool, broadcast with t) holds, in row-major order, as a list. It waits
// for the mask, whose number of true elements is the result's size.
func (t *Tensor) MaskedSelect(mask *Tensor) *Tensor {
	c := begin(LookupOp("masked_select"), t, mask)
	if c.err != nil {
		return c.failed()
	}
	if mask.dtype != Bool {
		return c.fail("compare to get one", errorOf(ErrDType, "masked_select: expected BoolTensor for mask, got %s", mask.dtype))
	}
	shape, err := BroadcastShapes(t.shape, mask.shape)
	if err != nil {
		return c.shapeFail("%v", err)
	}
	flat := mask.Expand(shape...).Reshape(-1)
	n, err := flat.Sum().Item()
	if err != nil {
		return c.fail("", err)
	}
	// A stable sort brings the true ones to the front.
	places := flat.Argsort(0, true).Slice(0, 0, int(n), 1)
	return c.in[0].Expand(shape...).Reshape(Numel(shape)).takeList(0, places)
}

var _ = defineOp(OpInfo{Name: "one_hot", Doc: "1 at the class and 0 elsewhere, along a new last dimension, as int64", Kind: KindComposite, Inputs: []string{"index"}, Differentiable: []bool{false},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].OneHot(a.Int("num_classes", -1))) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		n := a.Int("num_classes", -1)
		for _, v := range in[0].Data {
			if !a.Has("num_classes") {
				n = max(n, int(v)+1)
			}
		}
		return makeArray(append(slices.Clone(in[0].Shape), n), func(idx []int) float64 {
			return truth(int(in[0].at(idx[:len(idx)-1]...)) == idx[len(idx)-1])
		})
	}),
	Samples: []Sample{
		valid("seven", Attrs{"num_classes": 7}, ints64([]int{2, 2}, 0, 6, 3, 3)),
		valid("as many as needed", nil, ints64([]int{3}, 0, 4, 2)),
		invalid("index 7 is out of bounds for the classes with size 7", Attrs{"num_classes": 7}, ints64([]int{2}, 0, 7)),
		invalid("only applicable to index tensor", Attrs{"num_classes": 7}, sampleArray(2)),
	}})

// OneHot returns int64 with 1 at the class and 0 elsewhere, along a new last dimension of size classes; -1 is the largest
// class plus 1, which waits for the value.
func (t *Tensor) OneHot(classes int) *Tensor {
	c := begin(LookupOp("one_hot"), t)
	if c.err != nil {
		return c.failed()
	}
	if err := indexDType(t); err != nil {
		return c.fail("", errorOf(ErrDType, "one_hot is only applicable to index tensor: %v", err))
	}
	if classes == -1 {
		if Numel(t.shape) == 0 {
			return c.shapeFail("can not infer total number of classes from empty tensor")
		}
		m, err := t.Amax().Item()
		if err != nil {
			return c.fail("", err)
		}
		classes = int(m) + 1
	}
	if classes < 1 {
		return c.shapeFail("num_classes should be positive, got %d", classes)
	}
	list := iota32(c.eng, c.scope, classes).Cast(t.dtype)
	out := t.Unsqueeze(-1).Eq(list).Cast(Int64)
	c.checkIndex(out, t, classes, false, "the classes")
	return out
}
