package tensor

import (
	"fmt"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// This file has the shape operators that copy, or are made of others.

var _ = defineOp(OpInfo{Name: "view", Doc: "the same memory in another shape; one size may be -1; an error where that needs a copy", Kind: KindView, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].View(firstInts(a, "shape", "size")...)) },
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		shape, err := inferShape(firstInts(a, "shape", "size"), len(in[0].Data))
		return []Array{{Shape: shape, Data: in[0].Data}}, err
	},
	Samples: []Sample{
		valid("with -1", Attrs{"shape": []int{-1, 2}}, sampleArray(3, 4)),
		invalid("is invalid for input of size 12", Attrs{"shape": []int{5}}, sampleArray(3, 4)),
	}})

// View is [Tensor.Reshape] that never copies: it is an error where t is not contiguous.
func (t *Tensor) View(shape ...int) *Tensor {
	c := begin(LookupOp("view"), t)
	if c.err != nil {
		return c.failed()
	}
	to, err := inferShape(shape, Numel(t.shape))
	if err != nil {
		return c.fail("", err)
	}
	if !t.isDense() {
		return c.shapeFail("view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use Reshape instead")
	}
	return t.Reshape(to...)
}

var _ = defineOp(OpInfo{Name: "repeat", Doc: "x repeated along each dimension; new dimensions come in front", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].Repeat(a.Ints("repeats")...)) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		times := a.Ints("repeats")
		lead := len(times) - len(in[0].Shape)
		shape := slices.Clone(times)
		for i, n := range in[0].Shape {
			shape[lead+i] *= n
		}
		return makeArray(shape, func(idx []int) float64 {
			own := slices.Clone(idx[lead:])
			for i, n := range in[0].Shape {
				own[i] %= n
			}
			return in[0].at(own...)
		})
	}),
	Samples: []Sample{
		valid("both", Attrs{"repeats": []int{2, 3}}, sampleArray(2, 3)),
		valid("new dimension", Attrs{"repeats": []int{2, 1, 2}}, sampleArray(2, 3)),
		invalid("can not be smaller than number of dimensions", Attrs{"repeats": []int{2}}, sampleArray(2, 3)),
		invalid("negative", Attrs{"repeats": []int{2, -1}}, sampleArray(2, 3)),
	}})

// Repeat returns t repeated along each dimension; more numbers than dimensions add dimensions in front.
func (t *Tensor) Repeat(times ...int) *Tensor {
	c := begin(LookupOp("repeat"), t)
	if c.err != nil {
		return c.failed()
	}
	lead := len(times) - len(t.shape)
	if lead < 0 {
		return c.shapeFail("number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: %d and %d", len(times), len(t.shape))
	}
	var wide, whole, apart []int
	for i, n := range times {
		if n < 0 {
			return c.shapeFail("repeat of %v: a negative number", times)
		}
		size := 1
		if i >= lead {
			size = t.shape[i-lead]
		}
		apart, wide, whole = append(apart, 1, size), append(wide, n, size), append(whole, n*size)
	}
	return t.Reshape(apart...).Expand(wide...).Reshape(whole...)
}

var _ = defineOp(OpInfo{Name: "repeat_interleave", Doc: "each element repeated along dim (without dim: of the flattened tensor)", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		x := in[0]
		if !a.Has("dim") {
			x = x.Reshape(-1)
		}
		return one(x.RepeatInterleave(a.Int("repeats", 1), a.Int("dim", 0)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		x := in[0]
		if !a.Has("dim") {
			x = Array{Shape: []int{len(x.Data)}, Data: x.Data}
		}
		k := a.Int("repeats", 1)
		return x.lines(a.Int("dim", 0), func(line []float64) []float64 {
			var out []float64
			for _, v := range line {
				for range k {
					out = append(out, v)
				}
			}
			return out
		})
	}),
	Samples: []Sample{
		valid("columns", Attrs{"repeats": 3, "dim": 1}, sampleArray(2, 3)),
		valid("flat", Attrs{"repeats": 2}, sampleArray(2, 2)),
		invalid("must be non-negative", Attrs{"repeats": -1, "dim": 0}, sampleArray(2, 2)),
	}})

// RepeatInterleave returns t with each slice along dim repeated.
func (t *Tensor) RepeatInterleave(times, dim int) *Tensor {
	c := begin(LookupOp("repeat_interleave"), t)
	if c.err != nil {
		return c.failed()
	}
	d, err := normDim(dim, len(t.shape))
	switch {
	case err != nil:
		return c.shapeFail("%v", err)
	case times < 0:
		return c.shapeFail("repeats must be non-negative, got %d", times)
	case len(t.shape) == 0:
		return t.Reshape(1).RepeatInterleave(times, 0)
	}
	wide := slices.Insert(slices.Clone(t.shape), d+1, times)
	return t.Unsqueeze(d + 1).Expand(wide...).Reshape(withSize(t.shape, d, times*t.shape[d])...)
}

var _ = defineOp(OpInfo{Name: "split", Doc: "x cut along dim into pieces of the given sizes, or of one size", Kind: KindView, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		if a.Has("sizes") {
			return in[0].Split(a.Ints("sizes"), a.Int("dim", 0))
		}
		return in[0].SplitSize(a.Int("size", 1), a.Int("dim", 0))
	},
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		d := a.Int("dim", 0)
		sizes := a.Ints("sizes")
		if !a.Has("sizes") {
			for rest := in[0].size(d); rest > 0; rest -= a.Int("size", 1) {
				sizes = append(sizes, min(rest, a.Int("size", 1)))
			}
		}
		return refSplit(in[0], sizes, d), nil
	},
	Samples: []Sample{
		valid("sizes", Attrs{"sizes": []int{1, 3}, "dim": 1}, sampleArray(3, 4)),
		valid("one size", Attrs{"size": 2, "dim": 0}, sampleArray(5, 2)),
		invalid("to sum exactly to 4", Attrs{"sizes": []int{1, 2}, "dim": 1}, sampleArray(3, 4)),
	}})

func refSplit(x Array, sizes []int, dim int) []Array {
	var out []Array
	at := 0
	for _, n := range sizes {
		from := at
		out = append(out, x.lines(dim, func(line []float64) []float64 { return line[from : from+n] }))
		at += n
	}
	return out
}

// Split returns views of t cut along dim into pieces of the given sizes.
func (t *Tensor) Split(sizes []int, dim int) []*Tensor {
	c := begin(LookupOp("split"), t)
	if c.err != nil {
		return one(c.failed())
	}
	d, err := normDim(dim, len(t.shape))
	if err != nil || len(t.shape) == 0 {
		return one(c.shapeFail("split expects at least a 1-dimensional tensor and a dimension of it: %v has no dimension %d", t.shape, dim))
	}
	total := 0
	for _, n := range sizes {
		if n < 0 {
			return one(c.shapeFail("split expects non-negative sizes, got %v", sizes))
		}
		total += n
	}
	if total != t.shape[d] {
		return one(c.shapeFail("split expects split sizes to sum exactly to %d (input tensor's size at dimension %d), but got sizes %v", t.shape[d], d, sizes))
	}
	var out []*Tensor
	at := 0
	for _, n := range sizes {
		shape := slices.Clone(t.shape)
		shape[d] = n
		out = append(out, t.view(shape, t.strides, t.offset+at*t.strides[d], c.scope))
		at += n
	}
	c.record(out, func(dys []*Tensor, _ []bool) []*Tensor {
		for i, dy := range dys {
			if dy == nil {
				dys[i] = zerosLike(out[i])
			}
		}
		return one(joined(d, dys))
	})
	return out
}

// joined is Cat, as a view of the memory that the tensors share where they are neighbours in it.
func joined(dim int, ts []*Tensor) *Tensor {
	first := ts[0]
	if first.err != nil {
		return first
	}
	shape, at := slices.Clone(first.shape), first.offset
	shape[dim] = 0
	for _, t := range ts {
		if t.err != nil || t.ref.st != first.ref.st || t.offset != at || !slices.Equal(t.strides, first.strides) {
			return Cat(dim, ts...)
		}
		shape[dim] += t.shape[dim]
		at += t.shape[dim] * t.strides[dim]
	}
	c := begin(LookupOp("cat"), ts...)
	if c.err != nil {
		return c.failed()
	}
	out := first.view(shape, first.strides, first.offset, c.scope)
	c.record(one(out), catGrad(c.in, dim))
	return out
}

// SplitSize returns views of t cut along dim into pieces of one size; the last may be smaller.
func (t *Tensor) SplitSize(size, dim int) []*Tensor {
	c := begin(LookupOp("split"), t)
	if c.err != nil {
		return one(c.failed())
	}
	if size < 1 {
		return one(c.shapeFail("split expects a positive size, got %d", size))
	}
	n := t.Size(dim)
	var sizes []int
	for rest := n; rest > 0; rest -= size {
		sizes = append(sizes, min(rest, size))
	}
	if len(sizes) == 0 {
		sizes = []int{0}
	}
	return t.Split(sizes, dim)
}

var _ = defineOp(OpInfo{Name: "chunk", Doc: "x cut along dim into at most that many pieces of one size; the last may be smaller", Kind: KindView, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return in[0].Chunk(a.Int("chunks", 1), a.Int("dim", 0)) },
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		n := in[0].size(a.Int("dim", 0))
		k := a.Int("chunks", 1)
		var sizes []int
		for rest := n; rest > 0; rest -= (n + k - 1) / k {
			sizes = append(sizes, min(rest, (n+k-1)/k))
		}
		return refSplit(in[0], sizes, a.Int("dim", 0)), nil
	},
	Samples: []Sample{
		valid("even", Attrs{"chunks": 3, "dim": 1}, sampleArray(2, 6)),
		valid("fewer", Attrs{"chunks": 4, "dim": 0}, sampleArray(6, 2)),
		invalid("greater than 0", Attrs{"chunks": 0, "dim": 0}, sampleArray(6, 2)),
	}})

// Chunk returns views of t cut along dim into at most that many pieces of one size; the last may be smaller.
func (t *Tensor) Chunk(chunks, dim int) []*Tensor {
	c := begin(LookupOp("chunk"), t)
	if c.err != nil {
		return one(c.failed())
	}
	if chunks < 1 {
		return one(c.shapeFail("chunk expects chunks to be greater than 0, got: %d", chunks))
	}
	return t.SplitSize(max(1, (t.Size(dim)+chunks-1)/chunks), dim)
}

var _ = defineOp(OpInfo{Name: "flip", Doc: "the order reversed along dims", Kind: KindMove, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].Flip(firstInts(a, "dims", "dim")...)) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		return makeArray(in[0].Shape, func(idx []int) float64 {
			own := slices.Clone(idx)
			for _, d := range firstInts(a, "dims", "dim") {
				own[in[0].dim(d)] = in[0].size(d) - 1 - idx[in[0].dim(d)]
			}
			return in[0].at(own...)
		})
	}),
	Samples: []Sample{
		valid("columns", Attrs{"dims": []int{1}}, sampleArray(2, 3, 4)),
		valid("two", Attrs{"dims": []int{0, -1}}, sampleArray(2, 3, 4)),
		invalid("appears multiple times", Attrs{"dims": []int{0, 0}}, sampleArray(2, 3)),
	}})

// Flip returns a copy of t with the order reversed along dims.
func (t *Tensor) Flip(dims ...int) *Tensor {
	c := begin(LookupOp("flip"), t)
	if c.err != nil {
		return c.failed()
	}
	if len(dims) == 0 {
		return t
	}
	ds, err := normDims(dims, len(t.shape))
	if err != nil {
		return c.shapeFail("%v", err)
	}
	out := c.output(t.shape, t.dtype)
	if out.err != nil {
		return out
	}
	from := operandOf(t, t.shape)
	for _, d := range ds {
		if t.shape[d] > 0 {
			from.Offset += (t.shape[d] - 1) * from.Strides[d]
			from.Strides[d] = -from.Strides[d]
		}
	}
	kind := t.dtype.operand().ValueKind()
	c.run(&lib.Elementwise{Name: "copy", Ops: []string{"flip"}, BodyKey: "copy", Shape: t.shape, In: []lib.Operand{from}, Out: []lib.Operand{t.dtype.operand()},
		Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return []ir.Value{b.Convert(in[0], kind)} }}, []binding{{st: t.ref.st}}, out)
	c.differentiable(one(out), nil, func(_ *Call, dy *Tensor) []*Tensor { return one(dy.Flip(ds...)) })
	return out
}

var _ = defineOp(OpInfo{Name: "roll", Doc: "elements moved along dims, coming in again at the other end; without dims of the flattened tensor", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].Roll(a.Ints("shifts"), a.Ints("dims"))) },
	Ref: refOne(func(in []Array, a Attrs) Array {
		x, shape := in[0], in[0].Shape
		dims := a.Ints("dims")
		if len(dims) == 0 {
			x, dims = Array{Shape: []int{len(x.Data)}, Data: x.Data}, []int{0}
		}
		for i, d := range dims {
			shift := a.Ints("shifts")[i]
			x = x.lines(d, func(line []float64) []float64 {
				out := make([]float64, len(line))
				for j, v := range line {
					out[((j+shift)%len(line)+len(line))%len(line)] = v
				}
				return out
			})
		}
		return Array{Shape: shape, Data: x.Data}
	}),
	Samples: []Sample{
		valid("forward", Attrs{"shifts": []int{2}, "dims": []int{1}}, sampleArray(3, 5)),
		valid("back, twice", Attrs{"shifts": []int{-1, 7}, "dims": []int{0, 1}}, sampleArray(3, 5)),
		valid("flat", Attrs{"shifts": []int{2}}, sampleArray(2, 3)),
		invalid("shifts and dimensions must align", Attrs{"shifts": []int{2, 1}, "dims": []int{1}}, sampleArray(3, 5)),
	}})

// Roll returns t with its elements moved along dims by shifts, coming in again at the other end. Without dims the flattened tensor is
// rolled by its one shift.
func (t *Tensor) Roll(shifts, dims []int) *Tensor {
	c := begin(LookupOp("roll"), t)
	if c.err != nil {
		return c.failed()
	}
	if len(dims) == 0 && len(shifts) == 1 {
		return t.Reshape(-1).Roll(shifts, []int{0}).Reshape(t.shape...)
	}
	if len(dims) != len(shifts) {
		return c.shapeFail("shifts and dimensions must align. shifts: %d, dims: %d", len(shifts), len(dims))
	}
	out := t
	for i, dim := range dims {
		d, err := normDim(dim, len(t.shape))
		if err != nil {
			return c.shapeFail("%v", err)
		}
		n := sizeAt(t.shape, d)
		if n < 2 {
			continue
		}
		k := ((shifts[i] % n) + n) % n
		if k != 0 {
			out = Cat(d, out.Slice(d, n-k, n, 1), out.Slice(d, 0, n-k, 1))
		}
	}
	return out
}

// iota returns 0, 1, … n-1 as int32, on an engine and in a scope.
func iota32(e *engine, s *Scope, n int) *Tensor {
	c := &call{op: opFull, site: here(1), eng: e, scope: s}
	out := c.output([]int{n}, Int32)
	if out.err != nil {
		return out
	}
	c.run(&lib.Elementwise{Name: "iota", Ops: []string{"iota"}, BodyKey: "iota", Shape: []int{n}, Out: []lib.Operand{Int32.operand()}, Index: true,
		Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return []ir.Value{b.Convert(in[0], ir.I32)} }}, nil, out)
	return out
}

// triangle returns a mask [m, n] of where column - row <= diagonal.
func triangle(e *engine, s *Scope, m, n, diagonal int) *Tensor {
	rows := iota32(e, s, m).Unsqueeze(1).AddScalar(float64(diagonal))
	return rows.Ge(iota32(e, s, n))
}

func defineTri(name, doc string, keep func(below bool) bool, extra int) *OpInfo {
	return defineOp(OpInfo{Name: name, Doc: doc, Kind: KindComposite, Inputs: []string{"x"},
		Call: func(in []*Tensor, a Attrs) []*Tensor { return one(tri(name, in[0], a.Int("diagonal", 0))) },
		Ref: refOne(func(in []Array, a Attrs) Array {
			k := len(in[0].Shape)
			return makeArray(in[0].Shape, func(idx []int) float64 {
				if keep(idx[k-1]-idx[k-2] <= a.Int("diagonal", 0)+extra) {
					return in[0].at(idx...)
				}
				return 0
			})
		}),
		Samples: []Sample{
			valid("below", Attrs{"diagonal": -1}, sampleArray(4, 5)),
			valid("batch", Attrs{"diagonal": 1}, sampleArray(2, 5, 3)),
			valid("integers", nil, ints64([]int{2, 2}, 1, 2, 3, 4)),
			invalid("at least 2 dimensions", nil, sampleArray(4)),
		}})
}

var (
	_ = defineTri("tril", "the lower triangle of matrices, zeros above the diagonal", func(below bool) bool { return below }, 0)
	_ = defineTri("triu", "the upper triangle of matrices, zeros below the diagonal", func(below bool) bool { return !below }, -1)
)

// Tril returns the lower triangle of the matrices in the last two dimensions, with zeros above the diagonal, which 1 moves up by one.
func (t *Tensor) Tril(diagonal int) *Tensor { return tri("tril", t, diagonal) }

// Triu returns the upper triangle, with zeros below the diagonal.
func (t *Tensor) Triu(diagonal int) *Tensor { return tri("triu", t, diagonal) }

func tri(name string, t *Tensor, diagonal int) *Tensor {
	c := begin(LookupOp(name), t)
	if c.err != nil {
		return c.failed()
	}
	if len(t.shape) < 2 {
		return c.shapeFail("%s: input tensor must have at least 2 dimensions, got shape %v", name, t.shape)
	}
	m, n := t.Size(-2), t.Size(-1)
	if name == "triu" {
		return masked(triangle(c.eng, c.scope, m, n, diagonal-1).LogicalNot(), t)
	}
	return masked(triangle(c.eng, c.scope, m, n, diagonal), t)
}

// checkPairs reports padding that is not pairs of numbers for at most the tensor's dimensions.
func checkPairs(pad []int, rank int) error {
	if len(pad)%2 != 0 || len(pad) > 2*rank {
		return fmt.Errorf("padding length must be divisible by 2 and at most twice the number of dimensions of the input (%d), got %v", rank, pad)
	}
	return nil
}
