package tensor

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

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
