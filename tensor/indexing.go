package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// This file has the kernels that operators on indices share: bounds checks, sorting, gathering and its adjoint.

// runWith records kernels that make outs and, on the way, temporaries, each with one claim.
func (c *call) runWith(steps []step, temps []*storage, outs ...*Tensor) {
	n := &node{op: c.op.Name, site: c.site, steps: steps, outs: slices.Clone(temps)}
	for _, t := range outs {
		n.outs = append(n.outs, t.ref.st)
	}
	if err := c.eng.add(n); err != nil {
		c.stop("", err)
		c.eng.mu.Lock()
		for _, st := range n.outs {
			if st.err == nil && st.mem == nil && st.node == nil {
				st.err = err
			}
		}
		c.eng.mu.Unlock()
	}
	for _, st := range slices.Concat(temps, c.temps) {
		st.release()
	}
	c.temps = nil
}

// indexDType reports an index that is not of int32 or int64.
func indexDType(index *Tensor) error {
	if index.dtype != Int32 && index.dtype != Int64 {
		return errorOf(ErrDType, "expected the index to have dtype int32 or int64, but got %s", index.dtype)
	}
	return nil
}

// checkIndex asserts that the indices are of a dimension of size n, or with wrap from its end. The error comes with the value of out.
func (c *call) checkIndex(out, index *Tensor, n int, wrap bool, what string) {
	count := Numel(index.shape)
	if count == 0 || out.err != nil {
		return
	}
	const none = math.MinInt64
	low := 0
	if wrap {
		low = -n
	}
	val := newTensor(c.eng.newStorage(Int64, 1), nil, nil, 0, Int64, nil)
	k := &lib.Reduce{Name: "index_range", Ops: []string{"index_range"}, BodyKey: "index_range", Op: lib.ReduceMax, Outer: 1, N: count, Inner: 1,
		In: []lib.Operand{index.dtype.operand()}, Out: Int64.operand(),
		Scalars: []ir.Kind{ir.I32, ir.I32}, ScalarBits: []uint32{uint32(min(n, math.MaxInt32)), uint32(int32(max(low, math.MinInt32)))},
		Prologue: func(b *ir.Builder, in, s []ir.Value) ir.Value {
			v := b.Convert(in[0], ir.I64)
			bad := b.Or(b.Lt(v, b.Convert(s[1], ir.I64)), b.Ge(v, b.Convert(s[0], ir.I64)))
			return b.Select(bad, v, b.ConstBits(v.Type, 1<<63))
		}}
	c.run(k, []binding{c.dense(index)}, val)
	op, operands, where := c.op, describeOperands(c.op.Inputs, c.in), c.site
	c.assert(out, val, func(v int64) error {
		if v == none {
			return nil
		}
		e := &Error{Op: op.Name, Operands: operands, Err: fmt.Errorf("index %d is out of bounds for %s with size %d", v, what, n)}
		e.File, e.Line = where.resolve()
		return trap(e)
	})
}

// sorted sorts rows of n values of a dense operand. It returns the keys and, for each, where in its row it was (I32), each
// with one claim. With bins the values are indices (see lib.SortRuns). A failure is the call's error.
func (c *call) sorted(in binding, kind ir.Kind, rows, n int, descending bool, bins int) (keys, order *storage) {
	first := &lib.SortRuns{Ops: []string{"sort"}, Rows: rows, N: n, In: kind, Descending: descending, Bins: bins}
	dtype := Int32
	if first.KeyKind() == ir.I64 {
		dtype = Int64
	}
	var k, o [2]*storage
	for i := range k {
		k[i], o[i] = c.eng.newStorage(dtype, rows*n), c.eng.newStorage(Int32, rows*n)
	}
	at := 0
	out := func(i int) []binding { return []binding{{st: k[i], write: true}, {st: o[i], write: true}} }
	steps := []step{{first, append([]binding{in}, out(0)...)}}
	for width := lib.SortRun; width < n; width *= 2 {
		m := &lib.MergeRuns{Ops: []string{"sort"}, Rows: rows, N: n, Width: width, KeyKind: first.KeyKind()}
		steps = append(steps, step{m, append([]binding{{st: k[at]}, {st: o[at]}}, out(1-at)...)})
		at = 1 - at
	}
	k[at].retain()
	o[at].retain()
	c.runWith(steps, append(k[:], o[:]...))
	return k[at], o[at]
}

// gathered takes elements of x along dim by index, in one kernel: out[.., j, ..] = x[.., index, ..], and 0 where the index is out of
// range. With each the index has the shape of the result; else it is a list, whose shape replaces the dimension.
func (c *call) gathered(x, index *Tensor, dim int, each bool) *Tensor {
	outer, n, inner := around(x.shape, dim)
	j := Numel(index.shape)
	shape := index.shape
	if each {
		_, j, _ = around(index.shape, dim)
	} else {
		shape = slices.Concat(x.shape[:dim], index.shape, x.shape[dim+1:])
	}
	out := c.output(slices.Clone(shape), x.dtype)
	if out.err != nil {
		return out
	}
	g := &lib.Gather{Ops: []string{c.op.Name}, Outer: outer, N: n, J: j, Inner: inner, Each: each, Kind: x.dtype.Kind(), Index: index.dtype.Kind()}
	c.run(g, []binding{c.dense(x), c.dense(index)}, out)
	return out
}

// scattered is the adjoint of gathered: base (nil: zeros) with src added, or with set put, at index along dim, of size n.
func (c *call) scattered(base, src, index *Tensor, dim, n int, each, set bool) *Tensor {
	dims := src.shape
	lead := index
	shape := slices.Clone(dims)
	outer, j, inner := around(dims, dim)
	if !each {
		// The dimensions of the index stand for one dimension.
		k := len(index.shape)
		j = Numel(index.shape)
		outer, inner = Numel(dims[:dim]), Numel(dims[dim+k:])
		shape = slices.Concat(dims[:dim], []int{n}, dims[dim+k:])
	} else if len(shape) > 0 {
		shape[dim] = n
		lead = index.Transpose(dim, -1)
	}
	out := c.output(shape, src.dtype)
	if out.err != nil || lead.err != nil {
		return out
	}
	if sum := (&lib.IndexSum{Ops: []string{c.op.Name}, Outer: outer, N: n, J: j, Inner: inner, Kind: src.dtype.Kind(), Index: index.dtype.Kind()}); !each && base == nil && !set && sum.Worth() {
		c.run(sum, []binding{c.dense(src), c.dense(index)}, out)
		return out
	}
	rows := 1
	if each {
		rows = outer * inner
	}
	keys, order := c.sorted(c.dense(lead), index.dtype.Kind(), rows, j, false, max(n, 1))
	starts := c.eng.newStorage(Int32, rows*(n+1))
	s := &lib.ScatterSum{Ops: []string{c.op.Name}, Outer: outer, N: n, J: j, Inner: inner, Each: each, HasBase: base != nil, Set: set, Kind: src.dtype.Kind()}
	var bufs []binding
	if base != nil {
		bufs = append(bufs, c.dense(base))
	}
	bufs = append(bufs, c.dense(src), binding{st: order}, binding{st: starts}, binding{st: out.ref.st, write: true})
	c.temps = append(c.temps, keys, order)
	c.runWith([]step{
		{&lib.IndexStarts{Ops: []string{"scatter"}, Rows: rows, J: j, Bins: n}, []binding{{st: keys}, {st: starts, write: true}}},
		{s, bufs}}, []*storage{starts}, out)
	return out
}
