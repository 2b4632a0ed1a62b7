package tensor

import (
	"errors"
	"fmt"
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

// slot is a place where gradients come together: an output of a gradFn, or a leaf.
type slot struct {
	fn   *gradFn
	out  int
	leaf *Tensor
}

func slotOf(t *Tensor) slot {
	if t.fn != nil {
		return slot{fn: t.fn, out: int(t.fnOut)}
	}
	return slot{leaf: t}
}

// pass is one run through a gradient graph.
type pass struct {
	temp    *Scope // takes the temporaries; nil keeps them, for higher derivatives
	start   uint64 // storages made in the pass have a higher serial
	leaves  bool   // add to the leaves' Grad
	frees   bool   // discarded values, once they were used
	want    map[slot][]int
	found   []*Tensor
	reached map[slot]bool // what gradients flow to

	*passLists
}

// passLists are a pass's tables; they are used again.
type passLists struct {
	grads map[slot]*Tensor
	held  map[*ref]int // in how many slots a gradient is
	seen  map[*gradFn]bool
	slots []slot    // in order of their first gradient, so that a pass does the same things in the same order
	order []*gradFn // by seq, ascending
	stack []*gradFn
	one   [1]*Tensor // the gradient of an operator's output
}

var spareLists = sync.Pool{New: func() any {
	return &passLists{grads: map[slot]*Tensor{}, held: map[*ref]int{}, seen: map[*gradFn]bool{}}
}}

func newPassLists() *passLists { return spareLists.Get().(*passLists) }

// maxPassLists bounds the operators of a pass whose tables are kept.
const maxPassLists = 1 << 13

// end keeps the tables, empty, for another pass.
func (p *pass) end() {
	l := p.passLists
	p.passLists = nil
	if len(l.seen) > maxPassLists {
		return
	}
	clear(l.grads)
	clear(l.held)
	clear(l.seen)
	clear(l.slots)
	clear(l.order)
	clear(l.stack[:cap(l.stack)])
	l.one[0] = nil
	l.slots, l.order, l.stack = l.slots[:0], l.order[:0], l.stack[:0]
	spareLists.Put(l)
}

// seed checks the outputs and starts with their upstream gradients.
func (p *pass) seed(outputs, upstream []*Tensor) error {
	for i, t := range outputs {
		if !t.needsGrad() {
			return errorOf(ErrGrad, "element %d of tensors does not require grad and does not have a grad_fn: %s", i, describe(t))
		}
		g := upstream[i]
		switch {
		case g == nil && Numel(t.shape) != 1:
			return errorOf(ErrGrad, "grad can be implicitly created only for scalar outputs, got %s; use BackwardWith", describe(t))
		case g == nil:
			s := t.scope
			if p.temp != nil {
				s = p.temp
			}
			g = fill(t.eng, s, t.dtype, 1, t.shape)
		case g.Err() != nil:
			return g.Err()
		case !sameShape(g, t):
			return errorOf(ErrShape, "mismatch in shape: the upstream gradient has shape %v and output %d has shape %v", g.shape, i, t.shape)
		case g.eng != t.eng:
			return errorOf(ErrDevice, "expected all tensors to be on the same device, but found at least two devices, %s and %s (upstream gradient and output %d); move one with To", g.eng.name, t.eng.name, i)
		case p.temp != nil:
			g = g.alias(p.temp)
		}
		if g.dtype != t.dtype {
			g = g.Cast(t.dtype)
		}
		if err := p.add(slotOf(t), g); err != nil {
			return err
		}
		p.collect(t.fn)
	}
	slices.SortFunc(p.order, func(a, b *gradFn) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	return nil
}

// scopes returns the scopes of the outputs and of all operands in the graph.
func (p *pass) scopes(outputs ...*Tensor) (found []*Scope) {
	note := func(ts []*Tensor) {
		for _, t := range ts {
			if t.scope != nil && !slices.Contains(found, t.scope) {
				found = append(found, t.scope)
			}
		}
	}
	note(outputs)
	for _, fn := range p.order {
		note(fn.in)
	}
	return found
}

// collect finds the graph below fn, without recursion: graphs can be deep.
func (p *pass) collect(fn *gradFn) {
	stack := append(p.stack[:0], fn)
	for len(stack) > 0 {
		f := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if f == nil || p.seen[f] {
			continue
		}
		p.seen[f] = true
		p.order = append(p.order, f)
		for i, t := range f.in {
			if p.reached != nil && t.needsGrad() && f.op.flows(i) {
				p.reached[slotOf(t)] = true
			}
			stack = append(stack, t.fn)
		}
	}
	p.stack = stack
}

// add adds a gradient to a slot.
func (p *pass) add(s slot, g *Tensor) error {
	if old := p.grads[s]; old != nil {
		p.drop(old)
		g = old.Add(g)
	} else {
		p.slots = append(p.slots, s)
	}
	p.grads[s] = g
	if g.err == nil {
		p.held[g.ref]++
	}
	return g.err
}

// drop notes that a slot has given a gradient up.
func (p *pass) drop(g *Tensor) {
	if p.held[g.ref]--; p.held[g.ref] <= 0 {
		delete(p.held, g.ref)
	}
}

// run goes through the graph from the outputs to the leaves.
func (p *pass) run() error {
	for _, fn := range slices.Backward(p.order) {
		any := false
		dys := p.one[:]
		if fn.back == nil || len(fn.outs) != 1 {
			dys = make([]*Tensor, len(fn.outs)) // which may become the operands of an operator
		}
		for i := range dys {
			s := slot{fn: fn, out: i}
			if dys[i] = p.grads[s]; dys[i] != nil {
				any = true
				p.take(s, dys[i])
				delete(p.grads, s)
				p.drop(dys[i])
			}
		}
		if !any {
			continue
		}
		if err := p.step(fn, dys); err != nil {
			return err
		}
	}
	for _, s := range p.slots {
		g := p.grads[s]
		if g == nil {
			continue
		}
		p.take(s, g)
		if !p.leaves || s.leaf == nil || !s.leaf.requiresGrad {
			continue
		}
		if err := p.store(s.leaf, g); err != nil {
			return err
		}
	}
	return nil
}

// take keeps a gradient that was asked for.
func (p *pass) take(s slot, g *Tensor) {
	for _, i := range p.want[s] {
		p.found[i] = g
	}
}

// step runs the gradient of one operator.
func (p *pass) step(fn *gradFn, dys []*Tensor) error {
	if fn.spent() {
		return fn.fail(errorOf(ErrGrad, "trying to backward through the graph a second time: the first Backward freed values between layers that the gradient needs; use BackwardRetain the first time"))
	}
	needs := fn.space.needs[:]
	if len(fn.in) > len(needs) {
		needs = make([]bool, len(fn.in))
	}
	needs = needs[:len(fn.in)]
	for i, t := range fn.in {
		needs[i] = t.needsGrad() && fn.op.flows(i)
		if err := t.freedErr(); err != nil && needs[i] && !t.ref.given {
			return fn.fail(err)
		}
		if now, then := t.version(), fn.versions[i]; now != then {
			what := fmt.Sprintf("is at version %d; expected version %d instead", now.updates, then.updates)
			if now.storage != then.storage {
				what = "was moved to another device or given other memory"
			}
			return fn.fail(errorOf(ErrGrad, "one of the variables needed for gradient computation has been modified by an inplace operation: operand %d (%s) of %s %s",
				i, describe(t), fn.op.Name, what))
		}
	}
	if p.temp != nil {
		p.temp.origin, p.temp.originModule = fn.site, fn.module
	}
	gs := fn.gradients(dys, needs)
	for i, t := range fn.in {
		if i >= len(gs) || gs[i] == nil || !needs[i] {
			continue
		}
		g := gs[i]
		if g.err != nil {
			return fn.fail(g.err)
		}
		if !sameShape(g, t) {
			return fn.fail(fmt.Errorf("the operator's gradient for operand %d has shape %v, not %v", i, g.shape, t.shape))
		}
		if g.dtype != t.dtype {
			g = g.Cast(t.dtype)
		}
		s := slotOf(t)
		if err := p.add(s, g); err != nil {
			return fn.fail(err)
		}
	}
	p.sweep()
	if p.frees && !fn.once {
		fn.once = true
		fn.unsave()
	}
	return nil
}

// sweep frees a step's temporaries, and the gradients that were passed on: memory is used again within the pass, and what was computed
// for a gradient that nobody needs is never run.
func (p *pass) sweep() {
	if p.temp == nil {
		return
	}
	out := p.temp.owned.refs[:0]
	for _, r := range p.temp.owned.refs {
		if p.held[r] > 0 {
			out = append(out, r)
		} else {
			r.release()
		}
	}
	clear(p.temp.owned.refs[len(out):])
	p.temp.owned.refs = out
}

func (fn *gradFn) fail(err error) error {
	var op *Error
	if errors.As(err, &op) {
		return err
	}
	e := &Error{Op: "gradient of " + fn.op.Name, Err: err}
	e.File, e.Line = fn.site.resolve()
	return trap(e)
}

// store adds a gradient to a leaf. What the leaf keeps is dense, has memory of its own (optimizers and gradient
// scalers update it in place) and belongs to no scope.
func (p *pass) store(leaf, g *Tensor) error {
	gradMu.Lock()
	defer gradMu.Unlock()
	old := leaf.grad
	if old != nil {
		if err := old.Err(); err != nil {
			return fmt.Errorf("the gradient to add to: %w", err)
		}
		g = old.Add(g)
	}
	if g.err != nil {
		return g.err
	}
	st := g.ref.st
	if st.serial <= p.start || st.leaf || !g.isDense() || g.offset != 0 || st.n != Numel(g.shape) {
		g = g.Clone()
		if g.err != nil {
			return g.err
		}
		st = g.ref.st
	}
	st.leaf = true
	leaf.grad = g.Detach().Keep()
	if old != nil {
		old.Free()
	}
	return nil
}

// zerosLike returns zeros with t's shape, dtype, device and scope.
func zerosLike(t *Tensor) *Tensor {
	if t.err != nil {
		return t
	}
	return fill(t.eng, innermost([]*Tensor{t}), t.dtype, 0, t.shape)
}

// sumTo sums a tensor over the dimensions in which shape was broadcast to it.
func sumTo(t *Tensor, shape []int) *Tensor {
	if t.err != nil || slices.Equal(t.shape, shape) {
		return t
	}
	lead := len(t.shape) - len(shape)
	if lead < 0 {
		return t // the shape is checked by the caller
	}
	var dims []int
	for i, d := range t.shape {
		if i < lead || shape[i-lead] == 1 && d != 1 {
			dims = append(dims, i)
		}
	}
	if len(dims) > 0 {
		t = t.SumKeep(dims...)
	}
	if lead > 0 {
		t = t.Reshape(shape...)
	}
	return t
}
