package tensor

import (
	"fmt"
	"slices"
)

// This file has the operators that change a tensor's shape. Views share memory with their operand and cost nothing.

func defineShape(name, doc string, kind OpKind, call func(t *Tensor, a Attrs) *Tensor) int {
	register(&OpInfo{Name: name, Doc: doc, Kind: kind, Inputs: []string{"x"},
		Call: func(in []*Tensor, a Attrs) []*Tensor { return []*Tensor{call(in[0], a)} }})
	return 0
}

var (
	_ = defineShape("reshape", "the same elements in another shape; one size may be -1", KindView, func(t *Tensor, a Attrs) *Tensor { return t.Reshape(a.Ints("shape")...) })
	_ = defineShape("permute", "dimensions in another order", KindView, func(t *Tensor, a Attrs) *Tensor { return t.Permute(a.Ints("dims")...) })
	_ = defineShape("transpose", "two dimensions swapped", KindView, func(t *Tensor, a Attrs) *Tensor { return t.Transpose(a.Int("dim0", 0), a.Int("dim1", 1)) })
	_ = defineShape("expand", "dimensions of size 1 repeated", KindView, func(t *Tensor, a Attrs) *Tensor { return t.Expand(firstInts(a, "shape", "size")...) })
	_ = defineShape("slice", "elements start, start+step, … before end along dim", KindView, func(t *Tensor, a Attrs) *Tensor {
		dim := a.Int("dim", 0)
		return t.Slice(dim, a.Int("start", 0), a.Int("stop", a.Int("end", t.Size(dim))), a.Int("step", 1))
	})
	_ = defineShape("select", "one index along dim, which goes away", KindView, func(t *Tensor, a Attrs) *Tensor { return t.Select(a.Int("dim", 0), a.Int("index", 0)) })
	_ = defineShape("squeeze", "without dimensions of size 1", KindView, func(t *Tensor, a Attrs) *Tensor { return t.Squeeze(firstInts(a, "dim", "dims")...) })
	_ = defineShape("unsqueeze", "with a dimension of size 1", KindView, func(t *Tensor, a Attrs) *Tensor { return t.Unsqueeze(a.Int("dim", 0)) })
	_ = defineShape("flatten", "dimensions start_dim to end_dim as one", KindView, func(t *Tensor, a Attrs) *Tensor {
		return t.Flatten(a.Int("start_dim", 0), a.Int("end_dim", -1))
	})
	_ = defineShape("embed", "x in zeros of a larger shape: the gradient of slice", KindMove, func(t *Tensor, a Attrs) *Tensor {
		return t.embed(a.Ints("shape"), a.Int("dim", 0), a.Int("start", 0), a.Int("step", 1))
	})
	_ = defineShape("contiguous", "with its elements contiguous in memory", KindMove, func(t *Tensor, a Attrs) *Tensor { return t.Contiguous() })
	_ = defineShape("clone", "a copy with memory of its own", KindMove, func(t *Tensor, a Attrs) *Tensor { return t.Clone() })
)

func firstInts(a Attrs, names ...string) []int {
	for _, n := range names {
		if a.Has(n) {
			return a.Ints(n)
		}
	}
	return nil
}

// viewOf finishes a view: a tensor of the same storage, with its gradient.
func (c *call) viewOf(shape, strides []int, offset int, back func(dy *Tensor) *Tensor) *Tensor {
	out := c.in[0].view(shape, strides, offset, c.scope)
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor { return []*Tensor{back(dy)} })
	return out
}

func (c *call) shapeFail(format string, args ...any) *Tensor {
	return c.fail("", errorOf(ErrShape, format, args...))
}

// Reshape returns t's elements, in row-major order, in another shape; one size may be -1 and follows from the others. It
// is a view where t is contiguous, else a copy.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	c := begin(LookupOp("reshape"), t)
	if c.err != nil {
		return c.failed()
	}
	to, err := inferShape(shape, Numel(t.shape))
	if err != nil {
		return c.fail("", err)
	}
	strides, ok := reshapedStrides(t.shape, t.strides, to)
	if !ok {
		return t.Contiguous().Reshape(to...)
	}
	return c.viewOf(to, strides, t.offset, func(dy *Tensor) *Tensor { return dy.Reshape(t.shape...) })
}

// reshapedStrides returns the strides by which the elements of a tensor are seen, in row-major order, in another shape of as many
// elements, if there are such strides: dimensions that are joined must be contiguous in one another.
func reshapedStrides(shape, strides, to []int) ([]int, bool) {
	if isContiguous(shape, strides) {
		return contiguousStrides(to), true
	}
	out := make([]int, len(to))
	j := len(to) - 1
	for i := len(shape) - 1; i >= 0; {
		if shape[i] == 1 {
			i--
			continue
		}
		size, stride := shape[i], strides[i] // a run of dimensions that are contiguous in one another
		for i--; i >= 0 && (shape[i] == 1 || strides[i] == size*stride); i-- {
			size *= shape[i]
		}
		for size > 1 {
			if j < 0 || to[j] == 0 || size%to[j] != 0 {
				return nil, false
			}
			out[j] = stride
			stride *= to[j]
			size /= to[j]
			j--
		}
	}
	for ; j >= 0; j-- { // dimensions of size 1
		if to[j] != 1 {
			return nil, false
		}
		out[j] = 1
	}
	return out, true
}

// inferShape checks a shape against a number of elements and fills in a -1.
func inferShape(shape []int, n int) ([]int, error) {
	out := append([]int{}, shape...)
	known, hole := 1, -1
	for i, d := range out {
		switch {
		case d >= 0:
			known *= d
		case d != -1:
			return nil, errorOf(ErrShape, "invalid shape dimension %d", d)
		case hole >= 0:
			return nil, errorOf(ErrShape, "only one dimension can be inferred, got %v", shape)
		default:
			hole = i
		}
	}
	if hole >= 0 {
		if known == 0 {
			return nil, errorOf(ErrShape, "cannot reshape tensor of %d elements into shape %v because the unspecified dimension size -1 can be any value", n, shape)
		}
		out[hole] = n / known
		known *= out[hole]
	}
	if known != n {
		return nil, errorOf(ErrShape, "shape '%v' is invalid for input of size %d", shape, n)
	}
	return out, nil
}

// Flatten returns t with dimensions start to end (inclusive; negative count from the end) as one.
func (t *Tensor) Flatten(start, end int) *Tensor {
	c := begin(LookupOp("flatten"), t)
	if c.err != nil {
		return c.failed()
	}
	a, err := normDim(start, len(t.shape))
	b, err2 := normDim(end, len(t.shape))
	switch {
	case err != nil || err2 != nil:
		return c.shapeFail("dimensions %d to %d are out of range for %d dimensions", start, end, len(t.shape))
	case a > b:
		return c.shapeFail("flatten() has invalid args: start_dim %d comes after end_dim %d", start, end)
	case len(t.shape) == 0:
		return t.Reshape(1)
	}
	shape := append([]int{}, t.shape[:a]...)
	shape = append(shape, Numel(t.shape[a:b+1]))
	return t.Reshape(append(shape, t.shape[b+1:]...)...)
}

// Permute returns t with its dimensions in the order dims.
func (t *Tensor) Permute(dims ...int) *Tensor {
	c := begin(LookupOp("permute"), t)
	if c.err != nil {
		return c.failed()
	}
	if len(dims) != len(t.shape) {
		return c.shapeFail("number of dimensions in the tensor input does not match the length of the desired ordering of dimensions: %d is not equal to %d", len(t.shape), len(dims))
	}
	shape, strides, inverse := make([]int, len(dims)), make([]int, len(dims)), make([]int, len(dims))
	seen := make([]bool, len(dims))
	for i, d := range dims {
		n, err := normDim(d, len(dims))
		if err != nil {
			return c.shapeFail("%v", err)
		}
		if seen[n] {
			return c.shapeFail("dims %v: dimension %d appears twice", dims, d)
		}
		seen[n] = true
		shape[i], strides[i], inverse[n] = t.shape[n], t.strides[n], i
	}
	return c.viewOf(shape, strides, t.offset, func(dy *Tensor) *Tensor { return dy.Permute(inverse...) })
}

// Transpose returns t with dimensions a and b swapped.
func (t *Tensor) Transpose(a, b int) *Tensor {
	c := begin(LookupOp("transpose"), t)
	if c.err != nil {
		return c.failed()
	}
	i, err := normDim(a, len(t.shape))
	j, err2 := normDim(b, len(t.shape))
	switch {
	case err != nil:
		return c.shapeFail("%v", err)
	case err2 != nil:
		return c.shapeFail("%v", err2)
	case len(t.shape) == 0:
		return c.viewOf(t.shape, t.strides, t.offset, func(dy *Tensor) *Tensor { return dy })
	}
	shape, strides := slices.Clone(t.shape), slices.Clone(t.strides)
	shape[i], shape[j] = shape[j], shape[i]
	strides[i], strides[j] = strides[j], strides[i]
	return c.viewOf(shape, strides, t.offset, func(dy *Tensor) *Tensor { return dy.Transpose(i, j) })
}

// T returns a matrix transposed.
func (t *Tensor) T() *Tensor {
	if t != nil && t.err == nil && len(t.shape) != 2 {
		c := begin(LookupOp("transpose"), t)
		return c.shapeFail("T is for matrices, got shape %v; use Transpose or Permute", t.shape)
	}
	return t.Transpose(0, 1)
}

// Expand returns t with dimensions of size 1 repeated to the sizes of shape, and new dimensions in front; -1 leaves a size
// as it is. It is a view: no memory is used.
func (t *Tensor) Expand(shape ...int) *Tensor {
	c := begin(LookupOp("expand"), t)
	if c.err != nil {
		return c.failed()
	}
	lead := len(shape) - len(t.shape)
	if lead < 0 {
		return c.shapeFail("the number of sizes provided (%d) must be greater or equal to the number of dimensions in the tensor (%d)", len(shape), len(t.shape))
	}
	to := append([]int{}, shape...)
	for i, d := range to {
		old := -1
		if i >= lead {
			old = t.shape[i-lead]
		}
		switch {
		case d == -1 && old >= 0:
			to[i] = old
		case d < 0:
			return c.shapeFail("the expanded size of the tensor (%d) isn't allowed in dimension %d", d, i)
		case old >= 0 && old != 1 && old != d:
			return c.shapeFail("the expanded size of the tensor (%d) must match the existing size (%d) at non-singleton dimension %d. Target sizes: %v. Tensor sizes: %v", d, old, i, shape, t.shape)
		}
	}
	if _, err := checkShape(to); err != nil {
		return c.fail("", err)
	}
	return c.viewOf(to, broadcastStrides(t.shape, t.strides, to), t.offset, func(dy *Tensor) *Tensor { return sumTo(dy, t.shape) })
}

// Slice returns the elements start, start+step, … before end along dim. Negative start and end count from the end;
// both are clamped to the dimension, as in Python. step is at least 1.
func (t *Tensor) Slice(dim, start, end, step int) *Tensor {
	c := begin(LookupOp("slice"), t)
	if c.err != nil {
		return c.failed()
	}
	d, err := normDim(dim, len(t.shape))
	switch {
	case len(t.shape) == 0:
		return c.shapeFail("slice() cannot be applied to a 0-dim tensor")
	case err != nil:
		return c.shapeFail("%v", err)
	case step < 1:
		return c.shapeFail("slice step must be positive, got %d", step)
	}
	n := t.shape[d]
	from, to := clampIndex(start, n), clampIndex(end, n)
	to = max(to, from)
	shape, strides := slices.Clone(t.shape), slices.Clone(t.strides)
	shape[d] = (to - from + step - 1) / step
	strides[d] *= step
	return c.viewOf(shape, strides, t.offset+from*t.strides[d], func(dy *Tensor) *Tensor { return dy.embed(t.shape, d, from, step) })
}

func clampIndex(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

// Narrow returns length elements from start on along dim.
func (t *Tensor) Narrow(dim, start, length int) *Tensor {
	if n := t.Size(dim); t != nil && t.err == nil && (start < 0 || length < 0 || start > n-length) {
		c := begin(LookupOp("slice"), t)
		return c.shapeFail("start (%d) + length (%d) exceeds dimension size (%d)", start, length, n)
	}
	return t.Slice(dim, start, start+length, 1)
}

// Select returns index along dim, which goes away.
func (t *Tensor) Select(dim, index int) *Tensor {
	c := begin(LookupOp("select"), t)
	if c.err != nil {
		return c.failed()
	}
	d, err := normDim(dim, len(t.shape))
	switch {
	case len(t.shape) == 0:
		return c.shapeFail("select() cannot be applied to a 0-dim tensor")
	case err != nil:
		return c.shapeFail("%v", err)
	case index < -t.shape[d] || index >= t.shape[d]:
		return c.shapeFail("index %d out of range for tensor of size %v at dimension %d", index, t.shape, d)
	}
	if index < 0 {
		index += t.shape[d]
	}
	shape, strides := slices.Delete(slices.Clone(t.shape), d, d+1), slices.Delete(slices.Clone(t.strides), d, d+1)
	return c.viewOf(shape, strides, t.offset+index*t.strides[d], func(dy *Tensor) *Tensor { return dy.Unsqueeze(d).embed(t.shape, d, index, 1) })
}

// Squeeze returns t without the given dimensions, as far as they have size 1; without arguments, without all such.
func (t *Tensor) Squeeze(dims ...int) *Tensor {
	c := begin(LookupOp("squeeze"), t)
	if c.err != nil {
		return c.failed()
	}
	drop, err := normDims(dims, len(t.shape))
	if err != nil {
		return c.shapeFail("%v", err)
	}
	var shape, strides []int
	for i, n := range t.shape {
		if n != 1 || !slices.Contains(drop, i) {
			shape, strides = append(shape, n), append(strides, t.strides[i])
		}
	}
	return c.viewOf(shape, strides, t.offset, func(dy *Tensor) *Tensor { return dy.Reshape(t.shape...) })
}

// Unsqueeze returns t with a new dimension of size 1 at position dim, which may be -1 for the end.
func (t *Tensor) Unsqueeze(dim int) *Tensor {
	c := begin(LookupOp("unsqueeze"), t)
	if c.err != nil {
		return c.failed()
	}
	d, err := normDim(dim, len(t.shape)+1)
	if err != nil {
		return c.shapeFail("%v", err)
	}
	return c.viewOf(slices.Insert(slices.Clone(t.shape), d, 1), slices.Insert(slices.Clone(t.strides), d, 1), t.offset,
		func(dy *Tensor) *Tensor { return dy.Reshape(t.shape...) })
}

// Contiguous returns t with its elements contiguous in memory: t itself if they are.
func (t *Tensor) Contiguous() *Tensor {
	if t == nil || t.err != nil || t.isDense() {
		return t
	}
	return t.copyAs("contiguous", t.dtype)
}

// Clone returns a copy with memory of its own. It is differentiable.
func (t *Tensor) Clone() *Tensor { return t.copyAs("clone", InvalidDType) }

// copyAs copies t to a new contiguous tensor of a dtype (invalid: t's own).
func (t *Tensor) copyAs(op string, dtype DType) *Tensor {
	c := begin(LookupOp(op), t)
	if c.err != nil {
		return c.failed()
	}
	if dtype == InvalidDType {
		dtype = t.dtype
	}
	out := c.output(t.shape, dtype)
	if out.err != nil {
		return out
	}
	c.run(copyKernel(t, t.shape, dtype.operand()), []binding{{st: t.ref.st}}, out)
	if dtype.IsFloat() {
		c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.Cast(t.dtype)} })
	}
	return out
}

// embed returns zeros of a shape with t at start, start+step, … along dim.
func (t *Tensor) embed(shape []int, dim, start, stride int) *Tensor {
	c := begin(LookupOp("embed"), t)
	if c.err != nil {
		return c.failed()
	}
	if len(shape) != len(t.shape) || dim < 0 || dim >= len(shape) || t.shape[dim] > 0 && start+(t.shape[dim]-1)*stride >= shape[dim] {
		return c.shapeFail("shape %v does not fit into %v from %d in steps of %d along dimension %d", t.shape, shape, start, stride, dim)
	}
	out := c.output(slices.Clone(shape), t.dtype)
	if out.err != nil {
		return out
	}
	o := t.dtype.operand()
	o.Strides = slices.Clone(out.strides)
	o.Offset = start * o.Strides[dim]
	o.Strides[dim] *= stride
	dst := binding{st: out.ref.st, write: true}
	c.runSteps([]step{{fillKernel(out.dtype, out.shape, 0), []binding{dst}}, {copyKernel(t, t.shape, o), []binding{{st: t.ref.st}, dst}}}, out)
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor {
		return []*Tensor{dy.Slice(dim, start, min(start+t.shape[dim]*stride, shape[dim]), stride)}
	})
	return out
}

var _ = register(&OpInfo{Name: "cat", Doc: "tensors joined along dim", Kind: KindMove, Class: Widest,
	Call: func(in []*Tensor, a Attrs) []*Tensor { return []*Tensor{Cat(a.Int("dim", 0), in...)} }})

var _ = register(&OpInfo{Name: "stack", Doc: "tensors of one shape joined along a new dimension", Kind: KindComposite, Class: Widest,
	Call: func(in []*Tensor, a Attrs) []*Tensor { return []*Tensor{Stack(a.Int("dim", 0), in...)} }})

// Cat joins tensors along dim; their other sizes are equal. The result has their promoted dtype.
func Cat(dim int, ts ...*Tensor) *Tensor {
	c := begin(LookupOp("cat"), ts...)
	if c.err != nil {
		return c.failed()
	}
	if len(c.in) == 0 {
		return c.fail("", fmt.Errorf("expected a non-empty list of tensors"))
	}
	first := c.in[0]
	d, err := normDim(dim, len(first.shape))
	switch {
	case len(first.shape) == 0:
		return c.shapeFail("zero-dimensional tensors cannot be concatenated; use Stack")
	case err != nil:
		return c.shapeFail("%v", err)
	}
	shape, total := slices.Clone(first.shape), 0
	for i, t := range c.in {
		if len(t.shape) != len(shape) {
			return c.shapeFail("tensors must have the same number of dimensions: got %d and %d", len(shape), len(t.shape))
		}
		for j := range shape {
			if j != d && t.shape[j] != shape[j] {
				return c.shapeFail("sizes of tensors must match except in dimension %d. Expected size %d but got size %d for tensor number %d in the list", d, shape[j], t.shape[j], i)
			}
		}
		total += t.shape[d]
	}
	shape[d] = total
	out := c.output(shape, ResultType(c.in...))
	if out.err != nil {
		return out
	}
	var steps []step
	at := 0
	for _, t := range c.in {
		o := out.dtype.operand()
		o.Strides, o.Offset = out.strides, at*out.strides[d]
		at += t.shape[d]
		steps = append(steps, step{copyKernel(t, t.shape, o), []binding{{st: t.ref.st}, {st: out.ref.st, write: true}}})
	}
	c.runSteps(steps, out)
	c.record([]*Tensor{out}, catGrad(c.in, d))
	return out
}

// catGrad cuts the gradient of tensors that were joined.
func catGrad(in []*Tensor, dim int) func(dys []*Tensor, needs []bool) []*Tensor {
	return func(dys []*Tensor, needs []bool) []*Tensor {
		gs := make([]*Tensor, len(in))
		at := 0
		for i, t := range in {
			if needs[i] {
				gs[i] = dys[0].Slice(dim, at, at+t.shape[dim], 1)
			}
			at += t.shape[dim]
		}
		return gs
	}
}

// Stack joins tensors of one shape along a new dimension dim.
func Stack(dim int, ts ...*Tensor) *Tensor {
	us := make([]*Tensor, len(ts))
	for i, t := range ts {
		us[i] = t.Unsqueeze(dim)
		if t != nil && t.err == nil && ts[0].err == nil && !sameShape(t, ts[0]) {
			c := begin(LookupOp("stack"), ts...)
			return c.shapeFail("stack expects each tensor to be equal size, but got %v at entry 0 and %v at entry %d", ts[0].shape, t.shape, i)
		}
	}
	return Cat(dim, us...)
}
