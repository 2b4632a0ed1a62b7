package tensor

import (
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

var _ = register(&OpInfo{Name: "matmul", Doc: "matrix product over the last two dimensions; the others are broadcast", Kind: KindTemplate, Class: Lower,
	Inputs: []string{"a", "b"},
	Call:   func(in []*Tensor, _ Attrs) []*Tensor { return []*Tensor{in[0].MatMul(in[1])} }})

var _ = register(&OpInfo{Name: "linear", Doc: "x w^T + b", Kind: KindTemplate, Class: Lower, Inputs: []string{"x", "w", "b"},
	Call: func(in []*Tensor, _ Attrs) []*Tensor {
		if len(in) == 2 {
			return []*Tensor{Linear(in[0], in[1], nil)}
		}
		return []*Tensor{Linear(in[0], in[1], in[2])}
	}})

// MatMul returns the matrix product of t [..., m, k] and u [..., k, n] with the leading dimensions broadcast, as torch.matmul: a
// one-dimensional operand is a row on the left and a column on the right, and its dimension is then dropped. Both have one
// dtype; float16 and bfloat16 products accumulate in float32.
func (t *Tensor) MatMul(u *Tensor) *Tensor {
	c := begin(LookupOp("matmul"), t, u)
	if c.err != nil {
		return c.failed()
	}
	a, b := c.in[0], c.in[1]
	if len(a.shape) == 0 || len(b.shape) == 0 {
		return c.shapeFail("both arguments to matmul need to be at least 1D, but they are %dD and %dD", len(a.shape), len(b.shape))
	}
	k := a.shape[len(a.shape)-1]
	if kb := b.shape[max(0, len(b.shape)-2)]; k != kb {
		return c.shapeFail("mat1 and mat2 shapes cannot be multiplied (%v and %v: inner sizes %d and %d)", a.shape, b.shape, k, kb)
	}
	if a.dtype != b.dtype {
		return c.fail("cast one", errorOf(ErrDType, "expected both operands to have the same dtype, but got: %s != %s", a.dtype, b.dtype))
	}
	switch {
	case len(a.shape) == 1 && len(b.shape) == 1:
		return a.Reshape(1, k).matmul(c, b.Reshape(k, 1)).Reshape()
	case len(a.shape) == 1:
		return a.Reshape(1, k).matmul(c, b).Squeeze(-2)
	case len(b.shape) == 1:
		return a.matmul(c, b.Reshape(k, 1)).Squeeze(-1)
	case len(a.shape) > 2 && len(b.shape) == 2:
		// One large product instead of a batch of small ones.
		shape := slices.Clone(a.shape)
		shape[len(shape)-1] = b.shape[1]
		y := a.Reshape(Numel(a.shape[:len(a.shape)-1]), k).matmul(c, b)
		return through(y, y.Reshape(shape...))
	}
	return a.matmul(c, b)
}

// matmul multiplies operands of two dimensions or more that were checked by the call c.
func (t *Tensor) matmul(c *call, u *Tensor) *Tensor {
	if t.err != nil {
		return t
	}
	if u.err != nil {
		return u
	}
	in := []*Tensor{t, u}
	c = &call{op: c.op, in: in, scope: c.scope, eng: c.eng, site: c.site}
	if t.dtype == Bool || t.dtype == Uint8 {
		return c.fail("cast to int32 or a float", errorOf(ErrDType, "not implemented for %s", t.dtype))
	}
	ra, rb := len(t.shape), len(u.shape)
	batch, err := BroadcastShapes(t.shape[:ra-2], u.shape[:rb-2])
	if err != nil {
		return c.fail("", &kindError{ErrShape, err.Error()})
	}
	m, k, n := t.shape[ra-2], t.shape[ra-1], u.shape[rb-1]
	out := c.output(append(slices.Clone(batch), m, n), t.dtype)
	if out.err != nil {
		return out
	}
	a, b := c.matrix(t, batch), c.matrix(u, batch)
	kind := t.dtype.Kind()
	c.run(&lib.MatMul{M: m, N: n, K: k, Batch: Numel(batch), TransA: a.trans, TransB: b.trans, A: kind, B: kind, Out: kind,
		BatchStrideA: a.stride, BatchStrideB: b.stride, OffsetA: a.offset, OffsetB: b.offset, Ops: []string{"matmul"}}, []binding{a.buf, b.buf}, out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dy *Tensor) []*Tensor {
		return cc.pick(func() *Tensor { return sumTo(dy.MatMul(u.Transpose(-1, -2)), t.shape) },
			func() *Tensor { return sumTo(t.Transpose(-1, -2).MatMul(dy), u.shape) })
	})
	return out
}

// matrix is an operand of a matrix product in memory.
type matrix struct {
	buf    binding
	trans  bool // the memory holds the transposed matrix
	offset int  // in elements
	stride int  // between matrices of the batch, in elements
}

// matrix finds t's matrices, broadcast to the batch, in memory. Row-major and transposed matrices at equal distances are
// used as they are; others are copied.
func (c *call) matrix(t *Tensor, batch []int) matrix {
	r := len(t.shape) - 2
	rows, strides := t.shape[r:], t.strides[r:]
	m := matrix{buf: binding{st: t.ref.st}, offset: t.offset}
	switch {
	case isContiguous(rows, strides):
	case isContiguous([]int{rows[1], rows[0]}, []int{strides[1], strides[0]}):
		m.trans = true
	default:
		return c.copiedMatrix(t, batch)
	}
	var ok bool
	if m.stride, ok = uniformStride(batch, broadcastStrides(t.shape[:r], t.strides[:r], batch)); !ok {
		return c.copiedMatrix(t, batch)
	}
	return m
}

// copiedMatrix makes t's matrices contiguous, repeating broadcast ones where they are not all one.
func (c *call) copiedMatrix(t *Tensor, batch []int) matrix {
	r := len(t.shape) - 2
	shape := t.shape
	if _, ok := uniformStride(batch, broadcastStrides(t.shape[:r], contiguousStrides(t.shape)[:r], batch)); !ok {
		shape = append(slices.Clone(batch), t.shape[r:]...)
	}
	st := c.eng.newStorage(t.dtype, Numel(shape))
	n := &node{op: c.op.Name, site: c.site, outs: []*storage{st}, steps: []step{{copyKernel(t, shape, t.dtype.operand()), []binding{{st: t.ref.st}, {st: st, write: true}}}}}
	if err := c.eng.add(n); err != nil {
		c.stop("", err)
	}
	c.temps = append(c.temps, st)
	lead := len(shape) - 2
	stride, _ := uniformStride(batch, broadcastStrides(shape[:lead], contiguousStrides(shape)[:lead], batch))
	return matrix{buf: binding{st: st}, stride: stride}
}

// uniformStride returns the one distance between neighbours of a batch in row-major order, if there is one.
func uniformStride(batch, strides []int) (int, bool) {
	stride, next := 0, 0
	first := true
	for i := len(batch) - 1; i >= 0; i-- {
		switch {
		case batch[i] == 0:
			return 0, true
		case batch[i] == 1:
			continue
		case first:
			stride, first = strides[i], false
		case strides[i] != next:
			return 0, false
		}
		next = strides[i] * batch[i]
	}
	return stride, true
}

// Linear returns x w^T + b for x [..., in], w [out, in] and b [out], which may be nil; one kernel with the bias in it.
func Linear(x, w, b *Tensor) *Tensor {
	in := []*Tensor{x, w}
	if b != nil {
		in = append(in, b)
	}
	c := begin(LookupOp("linear"), in...)
	if c.err != nil {
		return c.failed()
	}
	x, w = c.in[0], c.in[1]
	switch {
	case len(w.shape) != 2:
		return c.shapeFail("the weight must be a matrix [out, in], got shape %v", w.shape)
	case len(x.shape) == 0 || x.shape[len(x.shape)-1] != w.shape[1]:
		return c.shapeFail("mat1 and mat2 shapes cannot be multiplied (%v and %v transposed: the input's last size must be %d)", x.shape, w.shape, w.shape[1])
	case b != nil && !slices.Equal(c.in[2].shape, w.shape[:1]):
		return c.shapeFail("the bias must have shape %v, got %v", w.shape[:1], c.in[2].shape)
	}
	for _, t := range c.in {
		if t.dtype != x.dtype {
			return c.fail("cast one", errorOf(ErrDType, "expected all operands to have the same dtype, but got: %s != %s", x.dtype, t.dtype))
		}
	}
	if !x.dtype.IsFloat() {
		return c.fail("cast to float32", errorOf(ErrDType, "not implemented for %s", x.dtype))
	}
	if len(x.shape) != 2 {
		shape := slices.Clone(x.shape)
		shape[len(shape)-1] = w.shape[0]
		flat := x.Reshape(Numel(x.shape[:len(x.shape)-1]), w.shape[1])
		if flat.err != nil {
			return flat
		}
		c.in = append([]*Tensor{flat}, c.in[1:]...)
		y := linear(c)
		return through(y, y.Reshape(shape...))
	}
	return linear(c)
}

// linear records the kernel for x [n, in].
func linear(c *call) *Tensor {
	x, w := c.in[0], c.in[1]
	out := c.output([]int{x.shape[0], w.shape[0]}, x.dtype)
	if out.err != nil {
		return out
	}
	kind := x.dtype.Kind()
	mx, mw := c.matrix(x, nil), c.matrix(w, nil)
	g := &lib.MatMul{M: x.shape[0], N: w.shape[0], K: x.shape[1], Batch: 1, TransA: mx.trans, TransB: !mw.trans, A: kind, B: kind, Out: kind,
		OffsetA: mx.offset, OffsetB: mw.offset, Bias: ir.Void, Ops: []string{"linear"}}
	bufs := []binding{mx.buf, mw.buf}
	if len(c.in) == 3 {
		g.Bias = kind
		bufs = append(bufs, c.dense(c.in[2]))
	}
	c.run(g, bufs, out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dy *Tensor) []*Tensor {
		gs := make([]*Tensor, len(cc.In))
		if cc.Needs(0) {
			gs[0] = dy.MatMul(w)
		}
		if cc.Needs(1) {
			gs[1] = dy.Transpose(0, 1).MatMul(x)
		}
		switch {
		case !cc.Needs(2):
		case dy.shape[0] == 1:
			gs[2] = dy.Reshape(dy.shape[1]) // a sum of one row would be a launch
		default:
			gs[2] = dy.Sum(0)
		}
		return gs
	})
	return out
}
