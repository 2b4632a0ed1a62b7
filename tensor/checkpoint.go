package tensor

import "fmt"

var opCheckpoint = register(&OpInfo{Name: "checkpoint", Doc: "a function whose inner values are computed again in the backward pass", Kind: KindComposite,
	NamesOnly: "its formula is a function of Go's, each caller's own"})

// Checkpoint returns f(in...) without keeping what f computes on the way: Backward runs f again (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016; torch.utils.checkpoint). f must do the same each time: it draws random numbers from the given generators
// (or from the default one), which the second run finds in the state of the first, under the autocast of the first. Gradients flow to in,
// and to parameters that f uses; where no operand needs a gradient, f runs as it is. It is for Backward, not for [Grad].
func Checkpoint(f func(in ...*Tensor) *Tensor, generators []*Generator, in ...*Tensor) *Tensor {
	c := begin(opCheckpoint, in...)
	if c.err != nil {
		return c.failed()
	}
	need := false
	for _, t := range in {
		need = need || t.needsGrad()
	}
	if c.scope == nil || !need || c.scope.gradOff() {
		return f(in...)
	}
	r := &rerun{call: c, f: f, caster: c.scope.currentCaster(), generators: append([]*Generator{DefaultGenerator()}, generators...)}
	r.states = r.state()
	inner := newTemporary(c.scope, c.eng)
	inner.noGrad = 1
	out := f(aliases(inner, in)...)
	if out.Err() == nil {
		out = out.alias(c.scope)
	}
	inner.discard()
	if err := out.Err(); err != nil {
		return failed(err, c.scope)
	}
	c.record([]*Tensor{out}, func(dys []*Tensor, needs []bool) []*Tensor {
		if dys[0] == nil {
			return nil
		}
		return r.backward(dys[0], needs)
	})
	return out
}

// aliases returns the tensors in a scope, without their history.
func aliases(s *Scope, ts []*Tensor) []*Tensor {
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		out[i] = t.alias(s)
	}
	return out
}

// rerun is what the second run of a checkpointed function needs.
type rerun struct {
	call       *call
	f          func(in ...*Tensor) *Tensor
	caster     Caster
	generators []*Generator
	states     [][2]uint64
}

func (r *rerun) state() [][2]uint64 {
	out := make([][2]uint64, len(r.generators))
	for i, g := range r.generators {
		out[i][0], out[i][1] = g.State()
	}
	return out
}

func (r *rerun) setState(states [][2]uint64) {
	for i, g := range r.generators {
		g.SetState(states[i][0], states[i][1])
	}
}

// backward runs the function again, with gradients, and goes back through it.
func (r *rerun) backward(dy *Tensor, needs []bool) []*Tensor {
	c := r.call
	gs := make([]*Tensor, len(c.in))
	all := func(t *Tensor) []*Tensor {
		for i := range gs {
			if needs[i] {
				gs[i] = t
			}
		}
		return gs
	}
	pass := innermost([]*Tensor{dy})
	if !pass.gradOff() {
		return all(Failed("checkpoint", fmt.Errorf("a checkpointed function is differentiated by Backward alone, and once"), dy))
	}
	// What the function computes belongs to the scopes of its operands for now, not to the running pass, which records no gradients.
	for s := c.scope; s != nil; s = s.parent {
		if to := s.redirect; to != nil {
			s.redirect = nil
			defer func() { s.redirect = to }()
		}
	}
	again := newTemporary(c.scope, c.eng)
	defer again.discard()
	if again.caster = r.caster; r.caster == nil {
		again.caster = NoCast
	}
	now := r.state()
	r.setState(r.states)
	defer r.setState(now)
	in := aliases(again, c.in)
	for i, t := range in {
		t.requiresGrad = needs[i]
	}
	out := r.f(in...)
	if err := out.Err(); err != nil {
		return all(out)
	}
	if out.needsGrad() {
		if err := out.BackwardWith(dy.alias(again)); err != nil {
			return all(Failed("checkpoint", err, dy))
		}
	}
	for i, t := range in {
		if g := t.Grad(); g != nil {
			gs[i] = g.alias(pass)
			t.ZeroGrad()
		}
	}
	return gs
}
