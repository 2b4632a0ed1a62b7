package tensor

import (
	"slices"
	"sync"
	"sync/atomic"
)

// gradFn is a node of the gradient graph: one application of an operator whose result needs a gradient.
type gradFn struct {
	op       *OpInfo
	seq      uint64 // a node comes after those that made its operands
	in       []*Tensor
	versions []version // of the operands, when the operator was called
	saved    []*ref    // values that backward needs
	once     bool      // a backward pass gave up its claim on them
	outs     []outMeta
	scope    *Scope
	site     *site
	module   string // the layer that called the operator, if it was observed

	// The gradient: for the only output, or for all of them.
	call     Call
	back     func(cc *Call, dy *Tensor) []*Tensor
	backward func(dys []*Tensor, needs []bool) []*Tensor

	space struct { // for the lists of most operators
		versions [3]version
		saved    [3]*ref
		outs     [1]outMeta
		needs    [3]bool
	}
}

// gradients calls the operator's gradient.
func (fn *gradFn) gradients(dys []*Tensor, needs []bool) []*Tensor {
	if fn.back == nil {
		return fn.backward(dys, needs)
	}
	if dys[0] == nil {
		return nil
	}
	fn.call.needs = needs
	return fn.back(&fn.call, dys[0])
}

// version identifies a tensor's value: its storage, and how often that was updated in place.
type version struct {
	storage uint64
	updates uint32
}

// Version identifies the tensor's value: it changes when the value is updated in place or moved to other memory. It is for caches
// of what was computed from it.
func (t *Tensor) Version() [2]uint64 {
	if t == nil || t.err != nil {
		return [2]uint64{}
	}
	v := t.version()
	return [2]uint64{v.storage, uint64(v.updates)}
}

func (t *Tensor) version() version { return version{t.ref.st.serial, t.ref.st.version.Load()} }

type outMeta struct {
	shape []int
	dtype DType
}

var gradSeq atomic.Uint64

// gradMu guards the gradients of leaves, which goroutines that train one model together add to.
var gradMu sync.Mutex

// differentiable makes outs collect gradients for the call's operands, if any of them needs one. back gets the gradient of
// the only output.
func (c *call) differentiable(outs []*Tensor, params []float64, back func(cc *Call, dy *Tensor) []*Tensor) {
	fn := c.newGradFn(outs)
	if fn == nil {
		return
	}
	fn.back, fn.call.In, fn.call.Params = back, c.in, params
	if len(outs) > 0 {
		fn.call.Out = outs[0]
	}
}

// record is differentiable for any number of outputs; the gradients of outputs that nothing used are nil.
func (c *call) record(outs []*Tensor, back func(dys []*Tensor, needs []bool) []*Tensor) {
	if fn := c.newGradFn(outs); fn != nil {
		fn.backward = back
	}
}

// newGradFn makes the node of a call for outs, or returns nil if it is not to be recorded.
func (c *call) newGradFn(outs []*Tensor) *gradFn {
	if !c.needsGrad() {
		return nil
	}
	for _, t := range outs {
		if t.err != nil {
			return nil
		}
	}
	fn := &gradFn{op: c.op, seq: gradSeq.Add(1), in: c.in, scope: c.scope, site: c.site, module: c.scope.module()}
	fn.versions, fn.saved, fn.outs = fn.space.versions[:0], fn.space.saved[:0], fn.space.outs[:0]
	for _, t := range c.in {
		fn.versions = append(fn.versions, t.version())
	}
	for i, t := range outs {
		fn.outs = append(fn.outs, outMeta{t.shape, t.dtype})
		if t.dtype.IsFloat() {
			t.fn, t.fnOut = fn, int32(i)
		}
	}
	fn.save(outs)
	return fn
}

// needsGrad reports whether the call is to be recorded for gradients.
func (c *call) needsGrad() bool {
	for i, t := range c.in {
		if t.needsGrad() && c.op.flows(i) {
			return !c.scope.gradOff()
		}
	}
	return false
}

// flows reports whether gradients flow to operand i.
func (o *OpInfo) flows(i int) bool { return i >= len(o.Differentiable) || o.Differentiable[i] }

func (t *Tensor) needsGrad() bool { return t != nil && (t.requiresGrad || t.fn != nil) }

// RequiresGrad reports whether gradients flow to the tensor: it is a leaf that collects them, or was computed from one.
func (t *Tensor) RequiresGrad() bool { return t.needsGrad() }

// SetRequiresGrad makes a leaf collect gradients, or stop doing so, and returns it. Only floating-point tensors can;
// for others, and for a result of operators that should stop, it returns a failed tensor.
func (t *Tensor) SetRequiresGrad(on bool) *Tensor {
	switch {
	case t == nil || t.err != nil:
		return t
	case on && !t.dtype.IsFloat():
		return failed(trap(errorOf(ErrGrad, "only Tensors of floating point dtype can require gradients, got %s", describe(t))), t.scope)
	case t.fn != nil && !on:
		return failed(trap(errorOf(ErrGrad, "you can only change requires_grad flags of leaf variables; use Detach")), t.scope)
	case t.fn == nil:
		t.requiresGrad = on
	}
	return t
}

// IsLeaf reports whether the tensor was not made by an operator that records gradients.
func (t *Tensor) IsLeaf() bool { return t == nil || t.fn == nil }

// Grad returns the gradient that Backward left in a leaf, or nil. It belongs to no scope, and is freed when the leaf's gradient
// is set or zeroed; results computed from it stay.
func (t *Tensor) Grad() *Tensor {
	if t == nil {
		return nil
	}
	gradMu.Lock()
	defer gradMu.Unlock()
	return t.grad
}

// SetGrad replaces the gradient, which then belongs to the leaf: it is moved out of its scope. A nil g clears it.
func (t *Tensor) SetGrad(g *Tensor) {
	if t == nil {
		return
	}
	gradMu.Lock()
	old := t.grad
	t.grad = g.Keep()
	gradMu.Unlock()
	if old != g {
		old.Free()
	}
}

// ZeroGrad clears the gradient and frees it; the next Backward starts anew.
func (t *Tensor) ZeroGrad() { t.SetGrad(nil) }

// Backward computes the gradient of t, which must have one element, for the leaves it was computed from, and adds it to
// their Grad. It frees the values that layers discarded ([Tensor.Discard]) once they were used, so that a second Backward through such
// layers is an error, as in PyTorch; other graphs may run again.
func (t *Tensor) Backward() error { return t.backward(nil, true) }

// BackwardWith is Backward from the gradient upstream of t, of t's shape; nil is 1 for a tensor of one element.
func (t *Tensor) BackwardWith(upstream *Tensor) error { return t.backward(upstream, true) }

// BackwardRetain is BackwardWith that keeps the graph, as PyTorch's retain_graph=True.
func (t *Tensor) BackwardRetain(upstream *Tensor) error { return t.backward(upstream, false) }

func (t *Tensor) backward(upstream *Tensor, frees bool) error {
	if err := t.Err(); err != nil {
		return err
	}
	inner := newTemporary(t.scope, t.eng)
	inner.noGrad, inner.noCast = 1, true
	defer inner.discard()
	p := &pass{passLists: newPassLists(), temp: inner, start: storageSerial.Load(), leaves: true, frees: frees}
	defer p.end()
	if err := p.seed([]*Tensor{t}, []*Tensor{upstream}); err != nil {
		t.scope.note(err)
		return trap(err)
	}
	// What gradients compute from operands alone is temporary too, whichever scope those are in.
	for _, s := range p.scopes(t) {
		if s.redirect == nil && s != inner {
			s.redirect = inner
			defer func() { s.redirect = nil }()
		}
	}
	if err := p.run(); err != nil {
		t.scope.note(err)
		return err
	}
	return nil
}

// discard frees a temporary scope without submitting anything: what was computed only for it is then never run.
func (s *Scope) discard() {
	s.closed = true
	s.owned.releaseAll()
	s.stock.giveBack(s.eng)
	if s.parent != nil {
		s.parent.checks = append(s.parent.checks, s.checks...)
		delete(s.parent.children, s)
	}
}

// Grad returns the gradients of the sum of outputs (tensors of one element, or with one upstream gradient for each) for
// inputs. They can be differentiated again. An input that the outputs do not depend on gives an error.
func Grad(outputs, inputs []*Tensor, upstream ...*Tensor) ([]*Tensor, error) {
	for _, t := range slices.Concat(outputs, inputs) {
		if err := t.Err(); err != nil {
			return nil, err
		}
	}
	if len(upstream) == 0 {
		upstream = make([]*Tensor, len(outputs))
	}
	if len(upstream) != len(outputs) {
		return nil, trap(errorOf(ErrGrad, "grad: %d outputs need as many upstream gradients, got %d", len(outputs), len(upstream)))
	}
	p := &pass{passLists: newPassLists(), want: map[slot][]int{}, reached: map[slot]bool{}, found: make([]*Tensor, len(inputs))}
	defer p.end()
	for i, t := range inputs {
		p.want[slotOf(t)] = append(p.want[slotOf(t)], i)
	}
	// Gradients run in the dtypes of the forward pass, whatever autocast says now.
	for _, t := range outputs {
		if s := t.scope; s != nil && !s.noCast {
			s.noCast = true
			defer func() { s.noCast = false }()
		}
	}
	if err := p.seed(outputs, upstream); err != nil {
		return nil, trap(err)
	}
	for _, s := range p.scopes(outputs...) {
		if !s.noCast {
			s.noCast = true
			defer func() { s.noCast = false }()
		}
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	for i, g := range p.found {
		if g == nil && p.reached[slotOf(inputs[i])] {
			p.found[i] = zerosLike(inputs[i]) // the operators on the way are constant there
		} else if g == nil {
			return nil, trap(errorOf(ErrGrad, "grad: input %d (%s) does not appear in the graph of the outputs, or does not require grad", i, describe(inputs[i])))
		}
	}
	return p.found, nil
}
