package tensor

import (
	"fmt"
	"slices"
	"strings"
)

// This file has products that are made of matmul.

var _ = defineOp(OpInfo{Name: "einsum", Doc: "sums of products by Einstein's convention, of one or two operands", Kind: KindComposite, Class: Lower, Inputs: []string{"a", "b"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return one(Einsum(a.String("equation", ""), in...)) },
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		shapes := make([][]int, len(in))
		for i, x := range in {
			shapes[i] = x.Shape
		}
		e, err := parseEinsum(a.String("equation", ""), shapes)
		if err != nil {
			return nil, err
		}
		all := slices.Clone(e.out)
		for l := range e.sizes {
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
		rest := all[len(e.out):]
		slices.Sort(rest)
		shape := func(labels []int) []int {
			s := make([]int, len(labels))
			for i, l := range labels {
				s[i] = e.sizes[l]
			}
			return s
		}
		value := map[int]int{}
		out := makeArray(shape(e.out), func(idx []int) float64 {
			for i, l := range e.out {
				value[l] = idx[i]
			}
			sum := 0.0
			eachIndex(shape(rest), func(_ int, inner []int) {
				for i, l := range rest {
					value[l] = inner[i]
				}
				p := 1.0
				for k, x := range in {
					at := make([]int, len(x.Shape))
					for d, l := range e.in[k] {
						at[d] = min(value[l], x.Shape[d]-1)
					}
					p *= x.at(at...)
				}
				sum += p
			})
			return sum
		})
		return []Array{out}, nil
	},
	Samples: []Sample{
		valid("matrix product", Attrs{"equation": "ij,jk->ik"}, sampleArray(3, 4), sampleArray(4, 5)),
		valid("implicit, with spaces", Attrs{"equation": " ij , jk "}, sampleArray(3, 4), sampleArray(4, 5)),
		valid("attention", Attrs{"equation": "bqhd,bkhd->bhqk"}, sampleArray(2, 3, 2, 4), sampleArray(2, 5, 2, 4)),
		valid("transposed", Attrs{"equation": "ij->ji"}, sampleArray(3, 4)),
		valid("trace", Attrs{"equation": "ii"}, sampleArray(4, 4)),
		valid("diagonal", Attrs{"equation": "...ii->...i"}, sampleArray(2, 3, 3)),
		valid("ellipsis", Attrs{"equation": "...ij,...jk->...ik"}, sampleArray(2, 1, 3, 4), sampleArray(5, 4, 2)),
		valid("outer", Attrs{"equation": "i,j->ij"}, sampleArray(3), sampleArray(4)),
		valid("summed alone", Attrs{"equation": "ij,kl->il"}, sampleArray(2, 3), sampleArray(4, 2)),
		valid("elementwise", Attrs{"equation": "ij,ij->ij"}, sampleArray(2, 3), positiveArray(2, 3)),
		invalid("does not match the number of dimensions", Attrs{"equation": "ijk->ij"}, sampleArray(2, 3)),
		invalid("size 3 does not broadcast with previously seen size 4", Attrs{"equation": "i,i->i"}, sampleArray(4), sampleArray(3)),
		invalid("does not appear in any input", Attrs{"equation": "i->k"}, sampleArray(4)),
		invalid("operands", Attrs{"equation": "i->i"}, sampleArray(4), sampleArray(4)),
	}})

// einsumPlan is an equation with its labels: letters, and for the dimensions of an ellipsis numbers from 256 on.
type einsumPlan struct {
	in    [][]int
	out   []int
	sizes map[int]int
}

const ellipsisLabel = 256

// parseEinsum reads an equation for operands of the given shapes.
func parseEinsum(equation string, shapes [][]int) (*einsumPlan, error) {
	eq := strings.ReplaceAll(equation, " ", "")
	left, right, explicit := strings.Cut(eq, "->")
	parts := strings.Split(left, ",")
	if len(parts) != len(shapes) || len(shapes) < 1 || len(shapes) > 2 {
		return nil, fmt.Errorf("einsum(): the equation %q has %d operands, but %d were given; one or two are possible", equation, len(parts), len(shapes))
	}
	p := &einsumPlan{sizes: map[int]int{}}
	count := map[int]int{}
	dots := 0 // dimensions of the longest ellipsis
	for i, s := range parts {
		letters := len(strings.ReplaceAll(s, "...", ""))
		if strings.Contains(s, "...") {
			dots = max(dots, len(shapes[i])-letters)
		}
	}
	for i, s := range parts {
		labels, err := einsumLabels(s, len(shapes[i]), dots)
		if err != nil {
			return nil, fmt.Errorf("einsum(): operand %d: %w", i, err)
		}
		if len(labels) != len(shapes[i]) {
			return nil, fmt.Errorf("einsum(): the number of subscripts in the equation (%d) does not match the number of dimensions (%d) for operand %d", len(labels), len(shapes[i]), i)
		}
		for d, l := range labels {
			n, seen := shapes[i][d], p.sizes[l]
			if _, ok := p.sizes[l]; ok && n != seen && n != 1 && seen != 1 {
				return nil, fmt.Errorf("einsum(): operands do not broadcast with remapped shapes: subscript %s of operand %d has size %d, size %d does not broadcast with previously seen size %d", labelName(l), i, n, n, seen)
			} else if !ok || seen == 1 {
				p.sizes[l] = n
			}
			count[l]++
		}
		p.in = append(p.in, labels)
	}
	if explicit {
		labels, err := einsumLabels(right, -1, dots)
		if err != nil {
			return nil, fmt.Errorf("einsum(): result: %w", err)
		}
		for i, l := range labels {
			switch {
			case count[l] == 0:
				return nil, fmt.Errorf("einsum(): output subscript %s does not appear in any input", labelName(l))
			case slices.Contains(labels[:i], l):
				return nil, fmt.Errorf("einsum(): output subscript %s appears more than once in the output", labelName(l))
			}
		}
		p.out = labels
		return p, nil
	}
	for k := range dots {
		p.out = append(p.out, ellipsisLabel+k)
	}
	var once []int
	for l, n := range count {
		if n == 1 && l < ellipsisLabel {
			once = append(once, l)
		}
	}
	slices.Sort(once)
	p.out = append(p.out, once...)
	return p, nil
}

func labelName(l int) string {
	if l >= ellipsisLabel {
		return "..."
	}
	return string(rune(l))
}

// einsumLabels reads the labels of an operand of rank dimensions (-1: the result). The dimensions of an ellipsis are aligned at the last.
func einsumLabels(s string, rank, dots int) ([]int, error) {
	var out []int
	before, after, ellipsis := strings.Cut(s, "...")
	for _, r := range before + after {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return nil, fmt.Errorf("invalid subscript given: %q; subscripts must be in [a-zA-Z]", string(r))
		}
	}
	letters := func(s string) {
		for _, r := range s {
			out = append(out, int(r))
		}
	}
	letters(before)
	if ellipsis {
		own := dots
		if rank >= 0 {
			own = max(0, rank-len(before)-len(after))
		}
		for k := range own {
			out = append(out, ellipsisLabel+dots-own+k)
		}
	}
	letters(after)
	return out, nil
}

// Einsum returns sums of products of one or two operands by Einstein's convention, such as "bij,bjk->bik": labels that the result
// lacks are summed over. "..." stands for any dimensions, which are broadcast; a label that one operand has twice takes its diagonal; spaces
// do not count; without "->" the result has the labels that appear once, in alphabetic order.
func Einsum(equation string, in ...*Tensor) *Tensor {
	c := begin(LookupOp("einsum"), in...)
	if c.err != nil {
		return c.failed()
	}
	shapes := make([][]int, len(in))
	for i, t := range in {
		shapes[i] = t.shape
	}
	p, err := parseEinsum(equation, shapes)
	if err != nil {
		return c.fail("", &kindError{ErrShape, err.Error()})
	}
	if len(in) == 2 && c.in[0].dtype != c.in[1].dtype {
		return c.fail("cast one", errorOf(ErrDType, "expected both operands to have the same dtype, but got: %s != %s", c.in[0].dtype, c.in[1].dtype))
	}
	ts := make([]*Tensor, len(in))
	for i, t := range c.in {
		ts[i], p.in[i] = diagonals(t, p.in[i])
	}
	if len(ts) == 1 {
		t, labels := sumLabels(ts[0], p.in[0], func(l int) bool { return slices.Contains(p.out, l) })
		return permuteLabels(t, labels, p.out)
	}
	return p.product(ts[0], ts[1])
}

// product multiplies two operands: labels that both have and the result has are a batch, those the result lacks are summed.
func (p *einsumPlan) product(a, b *Tensor) *Tensor {
	inOut := func(l int) bool { return slices.Contains(p.out, l) }
	la, lb := p.in[0], p.in[1]
	a, la = sumLabels(a, la, func(l int) bool { return inOut(l) || slices.Contains(lb, l) })
	b, lb = sumLabels(b, lb, func(l int) bool { return inOut(l) || slices.Contains(la, l) })
	var batch, summed, onlyA, onlyB []int
	for _, l := range la {
		switch {
		case !slices.Contains(lb, l):
			onlyA = append(onlyA, l)
		case inOut(l):
			batch = append(batch, l)
		default:
			summed = append(summed, l)
		}
	}
	for _, l := range lb {
		if !slices.Contains(la, l) {
			onlyB = append(onlyB, l)
		}
	}
	sizes := func(labels []int) []int {
		out := make([]int, len(labels))
		for i, l := range labels {
			out[i] = p.sizes[l]
		}
		return out
	}
	// Broadcast dimensions take their full size.
	full := func(t *Tensor, labels []int) *Tensor { return t.Expand(sizes(labels)...) }
	a = permuteLabels(full(a, la), la, slices.Concat(batch, onlyA, summed))
	b = permuteLabels(full(b, lb), lb, slices.Concat(batch, summed, onlyB))
	m, k, n := Numel(sizes(onlyA)), Numel(sizes(summed)), Numel(sizes(onlyB))
	a = a.Reshape(append(sizes(batch), m, k)...)
	b = b.Reshape(append(sizes(batch), k, n)...)
	var out *Tensor
	if len(summed) == 0 {
		out = a.Mul(b)
	} else {
		out = a.MatMul(b)
	}
	out = out.Reshape(slices.Concat(sizes(batch), sizes(onlyA), sizes(onlyB))...)
	return permuteLabels(out, slices.Concat(batch, onlyA, onlyB), p.out)
}

// sumLabels sums over the dimensions whose labels are not to be kept.
func sumLabels(t *Tensor, labels []int, keep func(l int) bool) (*Tensor, []int) {
	var dims, left []int
	for d, l := range labels {
		if keep(l) {
			left = append(left, l)
		} else {
			dims = append(dims, d)
		}
	}
	if len(dims) == 0 {
		return t, labels
	}
	d := t.dtype
	return t.Sum(dims...).Cast(d), left
}

// permuteLabels puts the dimensions in the order of to, which has the same labels.
func permuteLabels(t *Tensor, labels, to []int) *Tensor {
	if slices.Equal(labels, to) {
		return t
	}
	dims := make([]int, len(to))
	for i, l := range to {
		dims[i] = slices.Index(labels, l)
	}
	return t.Permute(dims...)
}

// diagonals replaces dimensions with one label by their diagonal.
func diagonals(t *Tensor, labels []int) (*Tensor, []int) {
	labels = slices.Clone(labels)
	for i := 0; i < len(labels); i++ {
		j := slices.Index(labels[i+1:], labels[i])
		if j < 0 || t.err != nil {
			continue
		}
		j += i + 1
		t = t.Diagonal(0, i, j).Permute(moveLast(len(labels)-1, i)...)
		labels = slices.Delete(labels, j, j+1)
		i--
	}
	return t, labels
}

// moveLast is the order of rank dimensions that puts the last one at position to.
func moveLast(rank, to int) []int {
	var dims []int
	for i := range rank - 1 {
		dims = append(dims, i)
	}
	return slices.Insert(dims, to, rank-1)
}

var _ = defineOp(OpInfo{Name: "diagonal", Doc: "the diagonal of two dimensions, as a new last dimension; offset moves it to the right", Kind: KindView, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(in[0].Diagonal(a.Int("offset", 0), a.Int("dim1", 0), a.Int("dim2", 1)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		x, k := in[0], a.Int("offset", 0)
		d1, d2 := x.dim(a.Int("dim1", 0)), x.dim(a.Int("dim2", 1))
		var shape []int
		for d, n := range x.Shape {
			if d != d1 && d != d2 {
				shape = append(shape, n)
			}
		}
		shape = append(shape, max(0, min(x.Shape[d1]-max(-k, 0), x.Shape[d2]-max(k, 0))))
		return makeArray(shape, func(idx []int) float64 {
			at := make([]int, len(x.Shape))
			next := 0
			for d := range at {
				switch d {
				case d1:
					at[d] = idx[len(idx)-1] + max(-k, 0)
				case d2:
					at[d] = idx[len(idx)-1] + max(k, 0)
				default:
					at[d] = idx[next]
					next++
				}
			}
			return x.at(at...)
		})
	}),
	Samples: []Sample{
		valid("matrix", nil, sampleArray(3, 4)),
		valid("moved", Attrs{"offset": -1, "dim1": -2, "dim2": -1}, sampleArray(2, 3, 3)),
		valid("outside", Attrs{"offset": 5}, sampleArray(3, 4)),
		invalid("cannot be identical", Attrs{"dim1": 1, "dim2": -1}, sampleArray(3, 4)),
	}})

// Diagonal returns a view of the diagonal of dimensions dim1 and dim2, as a new last dimension; offset moves it to the right.
func (t *Tensor) Diagonal(offset, dim1, dim2 int) *Tensor {
	c := begin(LookupOp("diagonal"), t)
	if c.err != nil {
		return c.failed()
	}
	d1, err := normDim(dim1, len(t.shape))
	d2, err2 := normDim(dim2, len(t.shape))
	if err != nil || err2 != nil || len(t.shape) < 2 || d1 == d2 {
		return c.shapeFail("diagonal dimensions cannot be identical and must exist, got %d and %d of shape %v", dim1, dim2, t.shape)
	}
	row, col := max(-offset, 0), max(offset, 0)
	n := max(0, min(t.shape[d1]-row, t.shape[d2]-col))
	var shape, strides []int
	for d := range t.shape {
		if d != d1 && d != d2 {
			shape, strides = append(shape, t.shape[d]), append(strides, t.strides[d])
		}
	}
	at := t.offset
	if n > 0 {
		at += row*t.strides[d1] + col*t.strides[d2]
	}
	return c.viewOf(append(shape, n), append(strides, t.strides[d1]+t.strides[d2]), at, func(dy *Tensor) *Tensor {
		return dy.embedDiagonal(t.shape, offset, d1, d2)
	})
}

// embedDiagonal returns zeros of a shape with t on the diagonal of two dimensions: the gradient of Diagonal.
func (t *Tensor) embedDiagonal(shape []int, offset, d1, d2 int) *Tensor {
	if t.err != nil {
		return t
	}
	m, n := shape[d1], shape[d2]
	// Rows of the matrix [m, n] hold the diagonal's element in one column.
	rank := len(shape)
	x := t
	before, after := max(-offset, 0), 0
	if after = m - before - t.shape[rank-2]; before > 0 || after > 0 {
		x = x.Pad([]int{before, after}, PadConstant, 0)
	}
	mask := iota32(t.eng, t.scope, m).Unsqueeze(1).AddScalar(float64(offset)).Eq(iota32(t.eng, t.scope, n))
	x = masked(mask, x.Unsqueeze(-1))
	// Now [rest…, m, n]; move both to their places.
	dims := make([]int, 0, rank)
	next := 0
	for d := range rank {
		switch d {
		case d1:
			dims = append(dims, rank-2)
		case d2:
			dims = append(dims, rank-1)
		default:
			dims = append(dims, next)
			next++
		}
	}
	return x.Permute(dims...)
}

// --- short names of products ---

var _ = defineOp(OpInfo{Name: "bmm", Doc: "matrix products of a batch: [b, m, k] times [b, k, n]", Kind: KindComposite, Class: Lower, Inputs: []string{"a", "b"},
	Call: func(in []*Tensor, _ Attrs) []*Tensor { return one(in[0].BMM(in[1])) },
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		return LookupOp("einsum").Ref(in, Attrs{"equation": "bij,bjk->bik"})
	},
	Samples: []Sample{
		valid("batch", nil, sampleArray(2, 3, 4), sampleArray(2, 4, 5)),
		invalid("must be 3-D", nil, sampleArray(3, 4), sampleArray(4, 5)),
		invalid("batch", nil, sampleArray(2, 3, 4), sampleArray(3, 4, 5)),
	}})

// BMM returns the matrix products of two batches, [b, m, k] and [b, k, n].
func (t *Tensor) BMM(u *Tensor) *Tensor {
	c := begin(LookupOp("bmm"), t, u)
	switch {
	case c.err != nil:
		return c.failed()
	case len(t.shape) != 3 || len(u.shape) != 3:
		return c.shapeFail("batch1 and batch2 must be 3-D tensors, got shapes %v and %v", t.shape, u.shape)
	case t.shape[0] != u.shape[0]:
		return c.shapeFail("expected both to have the same batch size, got %d and %d", t.shape[0], u.shape[0])
	}
	return c.in[0].MatMul(c.in[1])
}

var _ = defineOp(OpInfo{Name: "outer", Doc: "products of every element of one list with every one of another", Kind: KindComposite, Inputs: []string{"a", "b"},
	Call: func(in []*Tensor, _ Attrs) []*Tensor { return one(in[0].Outer(in[1])) },
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		return LookupOp("einsum").Ref(in, Attrs{"equation": "i,j->ij"})
	},
	Samples: []Sample{valid("lists", nil, sampleArray(3), sampleArray(4)), invalid("expected two 1-D tensors", nil, sampleArray(3, 2), sampleArray(4))}})

// Outer returns the products of every element of the list t with every one of the list u.
func (t *Tensor) Outer(u *Tensor) *Tensor {
	c := begin(LookupOp("outer"), t, u)
	switch {
	case c.err != nil:
		return c.failed()
	case len(t.shape) != 1 || len(u.shape) != 1:
		return c.shapeFail("outer: expected two 1-D tensors, got shapes %v and %v", t.shape, u.shape)
	}
	return t.Unsqueeze(1).Mul(u)
}

var _ = defineOp(OpInfo{Name: "dot", Doc: "sum of the products of two lists", Kind: KindComposite, Class: Widest, Inputs: []string{"a", "b"},
	Call: func(in []*Tensor, _ Attrs) []*Tensor { return one(in[0].Dot(in[1])) },
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		return LookupOp("einsum").Ref(in, Attrs{"equation": "i,i->"})
	},
	Samples: []Sample{
		valid("lists", nil, sampleArray(5), positiveArray(5)),
		invalid("1D tensors expected", nil, sampleArray(3, 2), sampleArray(3, 2)),
		invalid("inconsistent tensor size", nil, sampleArray(3), sampleArray(4)),
	}})

// Dot returns the sum of the products of two lists of one length and dtype.
func (t *Tensor) Dot(u *Tensor) *Tensor {
	c := begin(LookupOp("dot"), t, u)
	if c.err != nil {
		return c.failed()
	}
	a, b := c.in[0], c.in[1]
	switch {
	case len(a.shape) != 1 || len(b.shape) != 1:
		return c.shapeFail("1D tensors expected, but got shapes %v and %v", a.shape, b.shape)
	case a.shape[0] != b.shape[0]:
		return c.shapeFail("inconsistent tensor size, expected both lists to have the same number of elements, but got %d and %d", a.shape[0], b.shape[0])
	case a.dtype != b.dtype:
		return c.fail("cast one", errorOf(ErrDType, "dot: expected both vectors to have same dtype, but found %s and %s", a.dtype, b.dtype))
	case !a.dtype.IsFloat():
		return reduce("sum", one(a.Mul(b)), nil, false).Cast(a.dtype)
	}
	return reduce("sum_mul", []*Tensor{a, b}, nil, false).Cast(a.dtype) // which autocast makes float32
}
