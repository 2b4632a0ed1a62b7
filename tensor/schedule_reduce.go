package tensor

import (
	"slices"
	"strconv"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// prologue launches a reduction together with the cluster that makes its operand, if nothing else needs what the cluster makes: the
// reduction then computes the elements itself instead of reading them. It reports whether it did.
func (e *engine) prologue(n *node) bool {
	r, g, v := n.reducible()
	if g == nil || g.rowN != 0 || g.head != nil || g.scalars+len(r.Scalars) > maxScalars || g.weight > maxWeight/2 {
		return false
	}
	from := g.values[v]
	bufs := n.steps[0].bufs
	own := 0 // claims of n
	for _, b := range bufs[:len(r.In)] {
		if b.st == from {
			own++
		}
	}
	// The composition lists the value because n claims it; it must be the only one, and needed by n alone.
	c := &e.sched.comp
	g.compose(c)
	limit := e.target.Caps.MaxBuffers
	if limit <= 0 {
		limit = maxBuffers
	}
	if len(c.ins) == 0 || len(c.outs) != 1 || c.outs[0] != v || from.needed(c.claims[v]+own, true) || len(c.ins)+len(bufs) > min(limit, maxBuffers) {
		return false
	}
	wide := r.Out.Kind.Size() == 8
	was := wide
	for _, o := range r.In {
		was = was || o.Kind.Size() == 8
	}
	f := g.fuse(c, "")
	for i, o := range f.In {
		if o.Offset != 0 || o.Strides != nil && !isContiguous(g.shape, o.Strides) || g.ins[c.ins[i]].bind.st.err != nil {
			return false
		}
		wide = wide || o.Kind.Size() == 8
	}
	for i, o := range r.In {
		wide = wide || bufs[i].st != from && o.Kind.Size() == 8
	}
	if f.Index || wide != was { // vectors of 8-byte elements are shorter, which would give sums another order
		return false
	}
	fused := *r
	k := g.appendText(e.sched.key[:0], c)
	var all []binding
	for _, i := range c.ins {
		all = append(all, g.ins[i].bind)
	}
	fused.In = f.In
	wires := make([]int, len(r.In)) // of the reduction's operands: ^0 for what the cluster makes
	for i, b := range bufs[:len(r.In)] {
		if wires[i] = ^0; b.st != from {
			wires[i] = len(fused.In)
			fused.In, all = append(fused.In, r.In[i]), append(all, b)
		}
		k = strconv.AppendInt(append(k, 'r'), int64(wires[i]), 10)
	}
	e.sched.key = k
	all = append(all, bufs[len(r.In):]...)
	fused.BodyKey = r.BodyKey + "|" + string(k)
	fused.Name = f.Name + "_" + r.Name
	fused.Ops = append(f.Ops, r.Ops...)
	cut := len(f.Scalars)
	fused.Scalars, fused.ScalarBits = append(f.Scalars, r.Scalars...), append(f.ScalarBits, r.ScalarBits...)
	ins := len(f.In)
	fused.Prologue = func(b *ir.Builder, in, scalars []ir.Value) ir.Value {
		made := f.Body(b, in[:ins], scalars[:cut:cut])
		if len(made) != 1 {
			return nil
		}
		args := make([]ir.Value, len(wires))
		for i, w := range wires {
			if args[i] = made[0]; w >= 0 {
				args[i] = in[w]
			}
		}
		if r.Prologue == nil {
			return args[0]
		}
		return r.Prologue(b, args, scalars[cut:])
	}
	if r.Epilogue != nil {
		fused.Epilogue = func(b *ir.Builder, acc, n ir.Value, scalars []ir.Value) ir.Value {
			return r.Epilogue(b, acc, n, scalars[cut:])
		}
	}
	for _, i := range c.live {
		e.plans.tape.fix(source{g.members[i].of, g.members[i].gen.ScalarBits})
	}
	if e.launch(&node{op: n.op, site: n.site, outs: n.outs, steps: []step{{&fused, all}}, number: n.number}) != nil {
		e.plans.tape.fail()
		return false // the operators one by one will say which of them is wrong
	}
	e.finish(n, nil)
	e.absorb(g, c)
	e.sched.remove(g)
	e.sched.recycle(g)
	return true
}

// reducible returns the reduction that a node is, the cluster that makes its operand, and which of the cluster's values that is;
// a nil cluster if there is none.
func (n *node) reducible() (*lib.Reduce, *cluster, int) {
	if len(n.steps) != 1 || len(n.outs) != 1 || n.failed != nil {
		return nil, nil, 0
	}
	r, ok := n.steps[0].gen.(*lib.Reduce)
	if !ok || len(n.steps[0].bufs) != len(r.In)+1 {
		return nil, nil, 0
	}
	var g *cluster
	v := 0
	for i, b := range n.steps[0].bufs[:len(r.In)] {
		from := b.st.waiting()
		if from == nil {
			continue
		}
		at := b.st.node.value + slices.Index(b.st.node.outs, b.st)
		made := b.st.dtype.operand()
		if from.uniform || g != nil && (from != g || at != v) || b.offset != 0 || b.write || made.Kind != r.In[i].Kind || made.Bool != r.In[i].Bool ||
			b.st.n != r.Outer*r.N*r.Inner || b.st.n == 0 {
			return nil, nil, 0
		}
		g, v = from, at
	}
	return r, g, v
}
