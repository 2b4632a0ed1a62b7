package tensor

import (
	"fmt"
	"slices"

	"github.com/anygpu/anygpu/backend"
)

var opDetach = register(&OpInfo{Name: "detach", Kind: KindView, Doc: "the same value without its history", Inputs: []string{"x"}, Differentiable: []bool{false},
	NoErrors: "every tensor has a value without a history"})

var opTo = register(&OpInfo{Name: "to", Kind: KindMove, Doc: "the value on another device", Inputs: []string{"x"}})

var opCopyFrom = register(&OpInfo{Name: "copy_", Kind: KindMove, Doc: "the values of src, broadcast and cast, over those of x in place", Inputs: []string{"x", "src"}, Differentiable: []bool{false, false}})

var _ = register(&OpInfo{Name: "cast", Kind: KindMove, Doc: "the value in another dtype", Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		d, err := ParseDType(a.String("dtype", "float32"))
		if err != nil {
			return []*Tensor{begin(LookupOp("cast"), in[0]).fail("", &kindError{ErrDType, err.Error()})}
		}
		return []*Tensor{in[0].Cast(d)}
	}})

// Cast returns the value in dtype d: t itself if it has it. Floats round to nearest even, floats to integers truncate and
// saturate (NaN gives 0), integers to narrower ones wrap, and to bool means "is not zero".
func (t *Tensor) Cast(d DType) *Tensor {
	if t == nil || t.err != nil || t.dtype == d {
		return t
	}
	if !d.Valid() {
		c := begin(LookupOp("cast"), t)
		return c.fail("", errorOf(ErrDType, "no such dtype: %s", d))
	}
	return t.copyAs("cast", d)
}

// To returns the tensor on dev: t itself if it is there, else a copy. It waits for t's value. It is differentiable: the
// gradient goes back to t's device. The copy belongs to t's scope; [Scope.To] moves into another.
func (t *Tensor) To(dev backend.Device) *Tensor {
	c := begin(opTo, t)
	if c.err != nil {
		return c.failed()
	}
	e, err := engineFor(dev)
	if err != nil {
		return c.fail("", err)
	}
	if e == t.eng {
		return t
	}
	return c.to(e)
}

// CPU returns the tensor on the CPU: t itself if it is there, else a copy.
func (t *Tensor) CPU() *Tensor {
	e, err := cpuEngine()
	if err != nil {
		return failed(err, nil)
	}
	return t.To(e.dev)
}

// to copies the call's operand to an engine, into the call's scope.
func (c *call) to(e *engine) *Tensor {
	t := c.in[0]
	var out *Tensor
	if e == t.eng {
		out = t.alias(c.scope)
	} else {
		st, err := t.transfer(e)
		if err != nil {
			return c.fail("", err)
		}
		out = newTensor(st, t.shape, contiguousStrides(t.shape), 0, t.dtype, c.scope)
	}
	from := t.eng.dev
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.To(from)} })
	return out
}

// transfer copies t's elements to new memory of another engine.
func (t *Tensor) transfer(e *engine) (*storage, error) {
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	return e.upload(t.dtype, Numel(t.shape), data)
}

// bytes returns t's elements in row-major order, padded to whole words.
func (t *Tensor) bytes() ([]byte, error) {
	n := int64(Numel(t.shape)) * int64(t.dtype.Size())
	b, ok := t.denseBinding()
	if !ok {
		d := t.Detach().copyAs("contiguous", t.dtype)
		if d.err != nil {
			return nil, d.err
		}
		defer d.Free()
		b = binding{st: d.ref.st}
	}
	data := make([]byte, (n+3)&^3)
	return data, t.eng.read(b.st, b.offset, data)
}

// upload makes a storage with data in it.
func (e *engine) upload(dtype DType, n int, data []byte) (*storage, error) {
	if e.closed.Load() {
		return nil, fmt.Errorf("%s: %w", e.name, backend.ErrClosed)
	}
	st := e.newStorage(dtype, n)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drain()
	if err := e.allocateStorage(st); err != nil {
		return nil, err
	}
	m := st.mem
	if len(data) == 0 {
		return st, nil
	}
	// The memory may have had another owner whose work waits in the queue.
	_, err := e.queue.Flush()
	if err == nil {
		err = m.region.Buffer.Write(m.region.Offset, data)
	}
	if err != nil {
		m.free()
		st.mem = nil
		return nil, err
	}
	return st, nil
}

// MoveTo moves the tensor to dev in place, with its gradient: t stays the same *Tensor, so that modules and optimizers
// still see it. Only leaves can be moved. Gradient graphs recorded before are then invalid.
func (t *Tensor) MoveTo(dev backend.Device) error {
	c := begin(opTo, t)
	if c.err != nil {
		return c.err
	}
	e, err := engineFor(dev)
	if err != nil {
		return c.fail("", err).err
	}
	if t.fn != nil {
		return c.fail("move the parameters it was computed from, or use To", errorOf(ErrGrad, "only a leaf can be moved in place")).err
	}
	if e == t.eng {
		return nil
	}
	st, err := t.transfer(e)
	if err != nil {
		return c.fail("", err).err
	}
	if g := t.Grad(); g != nil {
		if err := g.MoveTo(dev); err != nil {
			st.release()
			return err
		}
	}
	t.adopt(st)
	return nil
}

// CastTo gives the tensor another dtype in place, with its gradient: t stays the same *Tensor, so that modules and optimizers still
// see it. Values change as with [Tensor.Cast]. Only leaves can be cast, and those that require grad only to a floating-point dtype.
// Gradient graphs recorded before are then invalid.
func (t *Tensor) CastTo(d DType) error {
	c := begin(LookupOp("cast"), t)
	if c.err != nil {
		return c.err
	}
	switch {
	case t.fn != nil:
		return c.fail("cast the parameters it was computed from, or use Cast", errorOf(ErrGrad, "only a leaf can be cast in place")).err
	case !d.Valid():
		return c.fail("", errorOf(ErrDType, "no such dtype: %s", d)).err
	case t.requiresGrad && !d.IsFloat():
		return c.fail("", errorOf(ErrDType, "only tensors of floating-point dtype can require gradients, not %s", d)).err
	case d == t.dtype:
		return nil
	}
	old := t.Detach() // a claim on t's memory, given up below
	v := old.Cast(d)
	defer v.Free()
	defer old.Free()
	if v.err != nil {
		return v.err
	}
	st, err := v.transfer(t.eng)
	if err != nil {
		return c.fail("", err).err
	}
	if g := t.Grad(); g != nil {
		if err := g.CastTo(d); err != nil {
			st.release()
			return err
		}
	}
	t.dtype = d
	t.adopt(st)
	return nil
}

// adopt gives the tensor another storage of its shape and dtype, on any engine.
func (t *Tensor) adopt(st *storage) {
	old := t.ref
	t.ref, t.eng = st.claim(), st.eng
	t.strides, t.offset = contiguousStrides(t.shape), 0
	t.enter(t.scope)
	old.release()
}

// CopyFrom overwrites the tensor's values with u's, broadcast to t's shape and cast to its dtype, in place; u may be on
// another device. Gradient graphs that need the old values give an error afterwards. No gradient flows to u.
func (t *Tensor) CopyFrom(u *Tensor) error {
	c := begin(opCopyFrom, t)
	if c.err != nil {
		return c.err
	}
	if err := u.Err(); err != nil {
		return err
	}
	if shape, err := BroadcastShapes(t.shape, u.shape); err != nil || !slices.Equal(shape, t.shape) {
		return c.shapeFail("cannot copy shape %v to shape %v", u.shape, t.shape).err
	}
	// Each of these has a claim of its own on u's memory, which must not wait for the collector.
	alias := u.Detach()
	defer alias.Free()
	u = alias.To(t.eng.dev)
	defer u.Free()
	if u.err == nil && u.ref.st == t.ref.st {
		u = u.Clone()
		defer u.Free()
	}
	if u.err != nil {
		return u.err
	}
	o := t.dtype.operand()
	o.Strides, o.Offset = t.strides, t.offset
	c.in = []*Tensor{t, u}
	c.runSteps([]step{{copyKernel(u, t.shape, o), []binding{{st: u.ref.st}, {st: t.ref.st, write: true}}}})
	t.ref.st.version.Add(1)
	return c.err
}
