package tensor

import (
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// This file runs attention as one kernel forward and one backward, which keep the scores to themselves.

// heads is a tensor [batch, heads, rows, features] whose features are contiguous, as the kernel sees it.
func heads(t *Tensor) (l lib.AttentionLayout, batch, heads int) {
	shape, strides := t.shape, t.strides
	batch, heads = 1, 1
	l = lib.AttentionLayout{Offset: t.offset, Row: strides[len(shape)-2]}
	if n := len(shape) - 3; n >= 0 {
		heads, l.Head = shape[n], strides[n]
		if n > 0 {
			batch, l.Batch = shape[0], strides[0]
		}
	}
	return l, batch, heads
}

// featuresTogether returns t, copied if its last dimension is not contiguous.
func featuresTogether(t *Tensor) *Tensor {
	if t.err != nil || t.strides[len(t.strides)-1] == 1 {
		return t
	}
	return t.copyAs("contiguous", t.dtype)
}

// attend computes attention in one kernel, or returns nil if there is none for the operands.
func (c *call) attend(q, k, v *Tensor, scale float64, causal bool) *Tensor {
	rank := len(q.shape)
	if rank > 4 || q.dtype == Float64 || q.dtype != k.dtype || q.dtype != v.dtype || len(k.shape) != rank || len(v.shape) != rank ||
		!slices.Equal(q.shape[:rank-2], k.shape[:rank-2]) || !slices.Equal(q.shape[:rank-2], v.shape[:rank-2]) {
		return nil
	}
	g := &lib.Attention{Queries: q.Size(-2), Keys: k.Size(-2), D: q.Size(-1), E: v.Size(-1), Kind: q.dtype.Kind(), Causal: causal, Scale: float32(scale),
		Ops: []string{"scaled_dot_product_attention"}}
	q, k, v = featuresTogether(q), featuresTogether(k), featuresTogether(v)
	for _, t := range []*Tensor{q, k, v} {
		if t.err != nil {
			return t
		}
	}
	g.Q, g.Batch, g.Heads = heads(q)
	g.K, _, _ = heads(k)
	g.V, _, _ = heads(v)
	// The result is laid out position by position, so that the heads of one are together: joining them is then a view.
	shape := append(slices.Clone(q.shape[:rank-1]), g.E)
	strides := byPosition(shape)
	flat := newShape(shape, strides)
	g.Out, _, _ = heads(&Tensor{shape: shape, strides: strides})
	if !g.Fits(c.eng.target) {
		return nil
	}
	k2 := &call{op: c.op, in: []*Tensor{q, k, v}, scope: c.scope, eng: c.eng, site: c.site}
	mem := k2.output(flat, q.dtype)
	lse := k2.output([]int{g.Batch, g.Heads, g.Queries}, Float32)
	for _, t := range []*Tensor{mem, lse} {
		if t.err != nil {
			return t
		}
	}
	k2.run(g, []binding{{st: q.ref.st}, {st: k.ref.st}, {st: v.ref.st}}, mem, lse)
	out := mem.view(shape, strides, 0, c.scope)
	k2.differentiable(one(out), nil, func(cc *Call, dy *Tensor) []*Tensor { return attendGrad(c, g, cc, out, lse, dy) })
	return out
}

// byPosition returns the strides of [batch, heads, rows, features] in the order of batch, rows, heads and features; those of tensors
// of other ranks are row-major.
func byPosition(shape []int) []int {
	strides := contiguousStrides(shape)
	if len(shape) == 4 {
		h, n, d := shape[1], shape[2], shape[3]
		strides = []int{n * h * d, d, h * d, 1}
	}
	return strides
}

// newShape is a shape of as many elements that is contiguous where strides are not.
func newShape(shape, strides []int) []int {
	if isContiguous(shape, strides) {
		return shape
	}
	return []int{shape[0], shape[2], shape[1], shape[3]}
}

// attendGrad returns the gradients of q, k and v, from one kernel if they need not be differentiated again.
func attendGrad(c *call, g *lib.Attention, cc *Call, out, lse, dy *Tensor) []*Tensor {
	q, k, v := cc.In[0], cc.In[1], cc.In[2]
	scale := float64(g.Scale)
	in := []*Tensor{q, k, v, out, lse, dy}
	back := &call{op: c.op, scope: innermost(in), eng: c.eng, site: c.site}
	if !back.scope.gradOff() {
		weights := back.attentionWeights(q, k, nil, scale, g.Causal)
		dw := dy.MatMul(v.Transpose(-1, -2))
		ds := weights.Mul(dw.Sub(dw.Mul(weights).SumKeep(-1))).MulScalar(scale)
		return []*Tensor{ds.MatMul(k), ds.Transpose(-1, -2).MatMul(q), weights.Transpose(-1, -2).MatMul(dy)}
	}
	if dy = featuresTogether(dy); dy.err != nil {
		return []*Tensor{dy, dy, dy}
	}
	in[5] = dy
	back.in = in
	b := *g
	b.Backward = true
	b.DOut, _, _ = heads(dy)
	views, n := gradientViews(q, k, v)
	b.DQ, _, _ = heads(views[0])
	b.DK, _, _ = heads(views[1])
	b.DV, _, _ = heads(views[2])
	mem := back.output([]int{n}, q.dtype)
	if mem.err != nil {
		return []*Tensor{mem, mem, mem}
	}
	var bufs []binding
	for _, t := range in[:4] {
		bufs = append(bufs, binding{st: t.ref.st})
	}
	back.run(&b, append(bufs, binding{st: lse.ref.st}, binding{st: dy.ref.st}), mem)
	gs := make([]*Tensor, 3)
	for i, t := range views {
		gs[i] = mem.view(t.shape, t.strides, t.offset, back.scope)
	}
	return gs
}

// gradientViews places the gradients of q, k and v in one memory of n elements: as the operands are, if those are neighbours, so that
// joining the gradients is a view, else one after the other.
func gradientViews(q, k, v *Tensor) (views [3]*Tensor, n int) {
	if len(q.shape) == 4 && q.ref.st == k.ref.st && q.ref.st == v.ref.st && sameShape(q, k) && sameShape(q, v) {
		h, rows, d := q.shape[1], q.shape[2], q.shape[3]
		strides := []int{rows * 3 * h * d, d, 3 * h * d, 1}
		if k.offset == q.offset+h*d && v.offset == k.offset+h*d && slices.Equal(q.strides, strides) && slices.Equal(k.strides, strides) && slices.Equal(v.strides, strides) {
			for i := range views {
				views[i] = &Tensor{shape: q.shape, strides: strides, offset: i * h * d}
			}
			return views, 3 * Numel(q.shape)
		}
	}
	for i, t := range []*Tensor{q, k, v} {
		views[i] = &Tensor{shape: t.shape, strides: contiguousStrides(t.shape), offset: n}
		if len(t.shape) == 4 && t.strides[1] < t.strides[2] {
			views[i].strides = byPosition(t.shape)
		}
		n += (Numel(t.shape) + 15) / 16 * 16 // so that vectors stay aligned
	}
	return views, n
}
