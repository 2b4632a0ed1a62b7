package tensor

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/lib"
)

// call is one application of an operator while it is being checked and recorded.
type call struct {
	op    *OpInfo
	in    []*Tensor // after autocast
	scope *Scope
	eng   *engine
	site  site
	err   error
}

// begin checks what all operators check: that operands exist, did not fail, were not freed and are on one device. It
// applies autocast. A 0-dimensional CPU tensor joins the others' device in elementwise operators.
func begin(op *OpInfo, ts ...*Tensor) *call {
	c := &call{op: op, in: ts, scope: innermost(ts)}
	for _, t := range ts {
		if t != nil && t.err != nil {
			c.err = t.err
			return c
		}
	}
	c.site = here(1)
	for i, t := range ts {
		if t == nil {
			return c.stop("", fmt.Errorf("operand %s is nil", c.operandName(i)))
		}
		if err := t.freedErr(); err != nil {
			return c.stop("", err)
		}
	}
	if cast := c.scope.currentCaster(); cast != nil && op.Class != AsIs {
		in, err := cast(op, c.in)
		if err != nil {
			return c.stop("", err)
		}
		for _, t := range in {
			if t.Err() != nil {
				c.err = t.Err()
				return c
			}
		}
		c.in = in
	}
	c.oneDevice()
	return c
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
	return newTensor(c.eng.newStorage(dtype, n), shape, contiguousStrides(shape), 0, dtype, c.scope)
}

// run records that gen computes outs from ins, bound in this order.
func (c *call) run(gen lib.Generator, ins []binding, outs ...*Tensor) {
	n := &node{op: c.op.Name, site: c.site, gen: gen, bufs: ins}
	for _, t := range outs {
		n.bufs = append(n.bufs, binding{st: t.ref.st, write: true})
		n.outs = append(n.outs, t.ref.st)
	}
	if err := c.eng.add(n); err != nil {
		c.eng.mu.Lock()
		for _, st := range n.outs {
			if st.err == nil && st.mem == nil && st.node == nil {
				st.err = err
			}
		}
		c.eng.mu.Unlock()
	}
}
