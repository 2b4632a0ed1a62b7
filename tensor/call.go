package tensor

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// call is one application of an operator while it is being checked and recorded.
type call struct {
	op    *OpInfo
	in    []*Tensor // after autocast
	scope *Scope
	eng   *engine
	site  *site
	err   error
	temps []*storage // copies that only the next node needs
}

// begin checks what all operators check: that operands exist, did not fail, were not freed and are on one device. It
// applies autocast. A 0-dimensional CPU tensor joins the others' device in elementwise operators.
func begin(op *OpInfo, ts ...*Tensor) *call {
	c := &call{op: op, in: ts} // in the caller's frame, if that is where it stays
	c.begin()
	return c
}

func (c *call) begin() {
	ts := c.in
	c.scope = innermost(ts)
	for _, t := range ts {
		if t != nil && t.err != nil {
			c.err = t.err
			return
		}
	}
	if c.scope != nil && c.scope.origin != nil {
		c.site = c.scope.origin
	} else {
		c.site = here(2)
	}
	for i, t := range ts {
		if t == nil {
			c.stop("", fmt.Errorf("operand %s is nil", c.operandName(i)))
			return
		}
		if err := t.freedErr(); err != nil {
			c.stop("", err)
			return
		}
	}
	if c.autocast(); c.err != nil {
		return
	}
	c.oneDevice()
	c.observe(ts, nil)
}

// oneDevice applies the same-device rule: the device is that of the first operand that may not move.
func (c *call) oneDevice() {
	movable := func(t *Tensor) bool {
		return c.op.Kind == KindElementwise && t.eng.isCPU && len(t.shape) == 0
	}
	for _, t := range c.in {
		if c.eng == nil || movable(c.in[0]) && !movable(t) {
			c.eng = t.eng
			if !movable(t) {
				break
			}
		}
	}
	for i, t := range c.in {
		switch {
		case t.eng == c.eng:
		case movable(t):
			m := t.To(c.eng.dev)
			if m.err != nil {
				c.err = m.err
				return
			}
			c.in = append([]*Tensor(nil), c.in...)
			c.in[i] = m
		default:
			c.stop("move one with To", errorOf(ErrDevice, "expected all tensors to be on the same device, but found at least two devices, %s and %s", c.in[0].eng.name, c.other()))
			return
		}
	}
}

func (c *call) other() string {
	for _, t := range c.in {
		if t.eng != c.in[0].eng {
			return t.eng.name
		}
	}
	return c.in[0].eng.name
}

func (c *call) operandName(i int) string {
	if i < len(c.op.Inputs) {
		return c.op.Inputs[i]
	}
	return string(rune('a' + i%26))
}

// stop makes the call's error.
func (c *call) stop(hint string, err error) *call {
	if c.err != nil {
		return c
	}
	e := &Error{Op: c.op.Name, Hint: hint, Err: err, Operands: describeOperands(c.op.Inputs, c.in)}
	if c.site == nil {
		c.site = here(1)
	}
	e.File, e.Line = c.site.resolve()
	c.err = trap(e)
	return c
}

// fail returns the failed result with a new error.
func (c *call) fail(hint string, err error) *Tensor { return c.stop(hint, err).failed() }

// failed returns the failed result.
func (c *call) failed() *Tensor { return failed(c.err, c.scope) }

// output makes a contiguous tensor for a result.
func (c *call) output(shape []int, dtype DType) *Tensor {
	n, err := checkShape(shape)
	if err != nil {
		return c.fail("", err)
	}
	if dtype == Float64 && !c.eng.target.Caps.F64 {
		return c.fail("use float32", errorOf(ErrDType, "%s has no double precision", c.eng.name))
	}
	return newTensor(c.newStorage(dtype, n), shape, contiguousStrides(shape), 0, dtype, c.scope)
}

// run records that gen computes outs from ins, bound in this order.
func (c *call) run(gen lib.Generator, ins []binding, outs ...*Tensor) {
	r := c.nodeFor(outs...)
	r.run(gen, ins)
	c.add(&r.node, outs...)
}

// run makes the node one kernel, with its results last.
func (r *record) run(gen lib.Generator, ins []binding) {
	bufs := append(r.bufs[:0], ins...)
	for _, st := range r.node.outs {
		bufs = append(bufs, binding{st: st, write: true})
	}
	r.step[0] = step{gen, bufs}
	r.steps = r.step[:]
}

// nodeFor returns room for a node that makes outs: that of the first of them if it was not used yet.
func (c *call) nodeFor(outs ...*Tensor) *record {
	var r *record
	if len(outs) > 0 {
		st := outs[0].ref.st
		r, st.record = st.record, nil
	}
	if r == nil {
		r = &record{}
	}
	r.room = r
	r.op, r.site = c.op.Name, c.site
	r.node.outs = r.outs[:0]
	for _, t := range outs {
		r.node.outs = append(r.node.outs, t.ref.st)
	}
	return r
}

// runSteps records kernels that together make outs.
func (c *call) runSteps(steps []step, outs ...*Tensor) {
	r := c.nodeFor(outs...)
	r.steps = steps
	c.add(&r.node, outs...)
}

// add records a node that makes outs.
func (c *call) add(n *node, outs ...*Tensor) {
	if err := c.eng.add(n); err != nil {
		c.eng.mu.Lock()
		for _, st := range n.outs {
			if st.err == nil && st.mem == nil && st.node == nil {
				st.err = err
			}
		}
		c.eng.mu.Unlock()
	}
	for _, st := range c.temps {
		st.release() // the node has its own claim
	}
	c.temps = nil
	c.observe(nil, outs)
}

// dense returns a binding of t's elements in row-major order: t's own memory, or that of a copy.
func (c *call) dense(t *Tensor) binding {
	if b, ok := t.denseBinding(); ok {
		return b
	}
	st := c.eng.newStorage(t.dtype, Numel(t.shape))
	gen := copyKernel(t, t.shape, t.dtype.operand())
	n := &node{op: c.op.Name, site: c.site, outs: []*storage{st}, steps: []step{{gen, []binding{{st: t.ref.st}, {st: st, write: true}}}}}
	if err := c.eng.add(n); err != nil {
		c.stop("", err)
	}
	c.temps = append(c.temps, st)
	return binding{st: st}
}

// denseBinding returns t's memory as a binding, if its elements are contiguous and start where a binding may.
func (t *Tensor) denseBinding() (binding, bool) {
	off := int64(t.offset) * int64(t.dtype.Size())
	if !t.isDense() || off%t.eng.align != 0 || off%4 != 0 {
		return binding{}, false
	}
	return binding{st: t.ref.st, offset: off}, true
}

// copyKernel copies t, broadcast to shape, to an output of another layout or dtype.
func copyKernel(t *Tensor, shape []int, out lib.Operand) lib.Generator {
	kind := out.ValueKind()
	return &lib.Elementwise{Name: "copy", Ops: []string{"copy"}, BodyKey: "copy", Shape: shape,
		In: []lib.Operand{operandOf(t, shape)}, Out: []lib.Operand{out},
		Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return []ir.Value{b.Convert(in[0], kind)} }}
}
