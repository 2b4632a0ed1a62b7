package tensor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// prepared is a kernel for one shape and layout of operands: all that a launch needs but buffers and scalars.
type prepared struct {
	prog     backend.Program
	groups   [3]int
	geometry []uint32
	cost     float64
	err      error
}

// maxPrepared bounds the kernels that are remembered by shape; programs with ever new shapes start anew.
const maxPrepared = 4096

// prepare works out a kernel at its first launch with a shape.
func (e *engine) prepare(key []byte, gen lib.Generator, scalars int) *prepared {
	p := &prepared{}
	var params []uint32
	if p.groups, params, p.err = gen.Launch(e.target); p.err == nil {
		p.geometry = params[:len(params)-scalars]
		p.cost = gen.Cost()
		if p.groups[0]*p.groups[1]*p.groups[2] != 0 {
			p.prog, p.err = e.program(gen)
		}
	}
	if len(e.sched.prepared) >= maxPrepared {
		clear(e.sched.prepared)
	}
	e.sched.prepared[string(key)] = p
	return p
}

// launchElementwise queues the kernel of one operator.
func (e *engine) launchElementwise(gen *lib.Elementwise, regions []backend.Region) error {
	k := e.sched.key[:0]
	k = appendBody(append(k, '1'), gen)
	k = appendInts(k, gen.Shape)
	for _, o := range gen.In {
		k = appendOperand(k, o)
	}
	for _, o := range gen.Out {
		k = appendOperand(k, o)
	}
	e.sched.key = k
	p := e.sched.prepared[string(k)]
	if p == nil {
		p = e.prepare(k, gen, len(gen.ScalarBits))
	}
	params := append(make([]uint32, 0, len(p.geometry)+len(gen.ScalarBits)), p.geometry...)
	return e.launchPrepared(p, regions, append(params, gen.ScalarBits...))
}

func (e *engine) launchPrepared(p *prepared, regions []backend.Region, params []uint32) error {
	if p.err != nil || p.prog == nil {
		return p.err
	}
	e.stats.Launches++
	return e.enqueue(backend.Launch{Program: p.prog, Groups: p.groups, Buffers: regions, Params: params, Cost: p.cost})
}

// emit launches a group that waits: as one kernel, or as one for each operator if that is not possible.
func (e *engine) emit(g *cluster) {
	s := &e.sched
	s.remove(g)
	c := &s.comp
	g.compose(c)
	for _, i := range c.live {
		if n := g.members[i].n; n != nil {
			for _, st := range n.outs {
				st.node = nil // so that the collector's finds do not reach the node while it is launched
			}
		}
	}
	if len(c.outs) > 0 && (len(c.live) == 1 || e.emitFused(g, c) != nil) {
		// The operators one by one, so that an error goes to the operator that it is about.
		live := c.live
		if len(live) > 1 {
			live = slices.Clone(live) // settle may launch other clusters, which compose in the same place
		}
		for _, i := range live {
			if n := g.members[i].n; n != nil {
				e.settle(n) // its uniform operands are needed in memory now
				e.finish(n, e.launch(n))
			}
		}
	} else {
		e.absorb(g, c)
		if len(c.outs) > 0 {
			e.stats.Fused-- // the others ran in the kernel of one
		}
	}
	for _, m := range g.members {
		if m.n != nil && m.n.dead {
			e.stats.Skipped++
		}
	}
	s.recycle(g)
}

// absorb ends the members of a cluster that was launched: what was not written becomes a recipe, if it is claimed.
func (e *engine) absorb(g *cluster, c *composition) {
	for _, i := range slices.Backward(c.live) {
		n := g.members[i].n
		if n == nil || n.dead {
			continue
		}
		e.stats.Fused++
		e.retire(n)
	}
}

// retire ends a node that ran in a kernel with others.
func (e *engine) retire(n *node) {
	e.plans.tape.node(planAbsorb, n)
	if st := n.outs[0]; len(n.outs) == 1 && st.mem == nil && st.refs.Load() > 0 && st.err == nil {
		n.cluster, st.node = nil, nil
		st.recipe = newRecipe(n)
		return
	}
	e.end(n, nil)
}

// composition is a group as it is launched: without what nobody needs.
type composition struct {
	live   []int // members
	ins    []int // operands
	outs   []int // results to be written
	inNum  []int // number of an operand among ins
	valNum []int // number of a value among those of live members

	used, usedIn []bool // values and operands that live members read
	claims       []int  // how many claims of live members a value has
}

// compose fills c for g.
func (g *cluster) compose(c *composition) {
	c.live, c.ins, c.outs = c.live[:0], c.ins[:0], c.outs[:0]
	c.inNum, c.valNum, c.claims = zeros(c.inNum, len(g.ins)), zeros(c.valNum, len(g.values)), zeros(c.claims, len(g.values))
	c.used, c.usedIn = zeros(c.used, len(g.values)), zeros(c.usedIn, len(g.ins))
	used, usedIn, claims := c.used, c.usedIn, c.claims
	for i := len(g.members) - 1; i >= 0; i-- {
		m := &g.members[i]
		vals := used[m.val : m.val+len(m.gen.Out)]
		if m.n != nil && m.n.dead || m.n == nil && !slices.Contains(vals, true) {
			continue
		}
		c.live = append(c.live, i)
		for _, w := range g.wires[m.wire : m.wire+len(m.gen.In)] {
			switch {
			case w >= 0:
				usedIn[w] = true
			default:
				used[^w] = true
				if m.n != nil {
					claims[^w]++
				}
			}
		}
	}
	slices.Reverse(c.live)
	for i, u := range usedIn {
		if u {
			c.inNum[i] = len(c.ins)
			c.ins = append(c.ins, i)
		}
	}
	n := 0
	for _, i := range c.live {
		m := &g.members[i]
		for v := m.val; v < m.val+len(m.gen.Out); v++ {
			c.valNum[v] = n
			n++
			if st := g.values[v]; st != nil && st.needed(claims[v], len(m.gen.Out) == 1) {
				c.outs = append(c.outs, v)
			}
		}
	}
}

// zeros returns n zeros, in s if they fit.
func zeros[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// appendText appends what identifies a cluster's body.
func (g *cluster) appendText(k []byte, c *composition) []byte {
	for _, i := range c.live {
		m := &g.members[i]
		k = appendBody(k, m.gen)
		if m.row {
			k = append(k, '-')
		}
		for _, w := range g.wires[m.wire : m.wire+len(m.gen.In)] {
			if w >= 0 {
				k = strconv.AppendInt(append(k, 'i'), int64(c.inNum[w]), 10)
			} else {
				k = strconv.AppendInt(append(k, 'v'), int64(c.valNum[^w]), 10)
			}
		}
		k = append(k, ';')
	}
	k = append(k, '=')
	for _, v := range c.outs {
		k = strconv.AppendInt(append(k, 'v'), int64(c.valNum[v]), 10)
	}
	return k
}

// nodes returns the nodes that c computes; nil for those that are repeated for their value.
func (g *cluster) nodes(c *composition) []*node {
	ns := make([]*node, len(c.live))
	for i, m := range c.live {
		ns[i] = g.members[m].n
	}
	return ns
}

// emitFused launches a group as one kernel.
func (e *engine) emitFused(g *cluster, c *composition) error {
	var own []binding // operands of a template
	ins := c.ins
	if g.head != nil {
		own = g.members[0].n.steps[0].bufs
		own = own[:len(own)-1]
		if len(ins) == 0 || ins[0] != 0 || c.live[0] != 0 {
			return errorOf(ErrFreed, "nothing needs the product")
		}
		ins = ins[1:]
	}
	space := make([]binding, 0, len(own)+len(ins))
	operands := append(space, own...)
	for _, i := range ins {
		operands = append(operands, g.ins[i].bind)
	}
	for _, b := range operands {
		if b.st.err != nil {
			return b.st.err
		} else if b.st.mem == nil {
			return errorOf(ErrFreed, "an operand's memory is gone")
		}
	}
	k := g.appendText(append(e.sched.key[:0], 'n'), c)
	scalars := 0
	for _, i := range c.live {
		scalars += len(g.members[i].gen.ScalarBits)
	}
	body := len(k)
	k = appendInts(k, g.shape)
	for _, i := range c.ins {
		k = appendOperand(k, g.ins[i].op)
	}
	if g.rowN != 0 {
		k = appendInts(append(k, 'R'), []int{g.rowDims})
	}
	if m := g.head; m != nil {
		k = appendInts(append(k, 'M', byte(m.A), byte(m.B), byte(m.Out), byte(m.Bias), '0'+flags(m.TransA, m.TransB)),
			[]int{m.M, m.N, m.K, m.Batch, m.OffsetA, m.OffsetB, m.BatchStrideA, m.BatchStrideB})
	}
	e.sched.key = k
	p := e.sched.prepared[string(k)]
	if p == nil {
		p = e.prepare(k, g.kernel(c, string(k[:body])), scalars)
	}
	if p.err != nil {
		return p.err
	}
	if e.prof != nil {
		e.prof.operators(g.nodes(c)...)
	}
	if t := e.plans.tape; t != nil {
		t.computes(g.nodes(c)...)
		var from []source
		for _, i := range c.live {
			from = append(from, source{g.members[i].of, g.members[i].gen.ScalarBits})
		}
		t.ends(from...)
	}
	regions := make([]backend.Region, 0, len(operands)+len(c.outs))
	for _, b := range operands {
		regions = append(regions, b.region())
	}
	for _, v := range c.outs {
		st := g.values[v]
		if err := e.allocateStorage(st); err != nil {
			e.plans.tape.fail()
			return err
		}
		regions = append(regions, st.mem.region)
	}
	params := append(make([]uint32, 0, len(p.geometry)+scalars), p.geometry...)
	for _, i := range c.live {
		params = append(params, g.members[i].gen.ScalarBits...)
	}
	if err := e.launchPrepared(p, regions, params); err != nil {
		e.plans.tape.fail()
		return err
	}
	for _, v := range c.outs {
		e.plans.tape.storage(planUnclaimed, g.values[v])
		if st := g.values[v]; st.refs.Load() == 0 {
			st.drop() // the collector found it meanwhile
		}
	}
	return nil
}

// kernel makes the kernel of a cluster; key identifies its body.
func (g *cluster) kernel(c *composition, key string) lib.Generator {
	switch {
	case g.head != nil:
		return g.tailKernel(c, key)
	case slices.ContainsFunc(c.live, func(i int) bool { return g.members[i].red != nil }):
		return g.rowsKernel(c, key)
	}
	return g.fuse(c, key)
}

func flags(bits ...bool) (n byte) {
	for i, b := range bits {
		if b {
			n |= 1 << i
		}
	}
	return n
}

// region is the memory of a binding whose storage has some.
func (b binding) region() backend.Region {
	r := b.st.mem.region
	r.Offset += b.offset
	r.Size -= b.offset
	return r
}

// fuse makes the kernel of a group; key identifies its body.
func (g *cluster) fuse(c *composition, key string) *lib.Elementwise {
	f := &lib.Elementwise{BodyKey: key, Shape: g.shape}
	for _, i := range c.ins {
		f.In = append(f.In, g.ins[i].op)
	}
	body := fusedBody{}
	var names []string
	for _, i := range c.live {
		m := &g.members[i]
		part := fusedPart{gen: m.gen}
		for _, w := range g.wires[m.wire : m.wire+len(m.gen.In)] {
			if w >= 0 {
				w = c.inNum[w]
			} else {
				w = ^c.valNum[^w]
			}
			part.wires = append(part.wires, w)
		}
		body.parts = append(body.parts, part)
		f.Index = f.Index || m.gen.Index
		f.Scalars = append(f.Scalars, m.gen.Scalars...)
		f.ScalarBits = append(f.ScalarBits, m.gen.ScalarBits...)
		f.Ops = append(f.Ops, m.gen.Ops...)
		names = append(names, m.gen.Name)
	}
	for _, v := range c.outs {
		body.outs = append(body.outs, c.valNum[v])
		o := g.values[v].dtype.operand()
		f.Out = append(f.Out, o)
	}
	body.index, body.ins = f.Index, len(f.In)
	f.Body = body.build
	f.Name = fusedName(names)
	return f
}

// fusedName names a kernel after the first operators in it.
func fusedName(names []string) string {
	const most = 4
	if len(names) > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and_%d_more", len(names)-most))
	}
	return strings.Join(names, "_")
}

// fusedBody is the bodies of several operators, one after the other.
type fusedBody struct {
	parts []fusedPart
	ins   int
	index bool
	outs  []int // numbers of the values to return
}

type fusedPart struct {
	gen   *lib.Elementwise
	wires []int // see cluster.wires
}

func (f *fusedBody) build(b *ir.Builder, in, scalars []ir.Value) []ir.Value {
	lanes := 1
	for _, v := range in {
		lanes = max(lanes, v.Type.Lanes)
	}
	var vals []ir.Value
	for _, p := range f.parts {
		var args []ir.Value
		for _, w := range p.wires {
			if w >= 0 {
				args = append(args, in[w])
			} else {
				args = append(args, vals[^w])
			}
		}
		if p.gen.Index {
			args = append(args, in[f.ins])
		}
		n := len(p.gen.Scalars)
		out := p.gen.Body(b, args, scalars[:n:n])
		scalars = scalars[n:]
		if len(out) != len(p.gen.Out) {
			b.Fail(fmt.Errorf("the body of %s returned %d values for %d outputs", p.gen.Name, len(out), len(p.gen.Out)))
			return nil
		}
		for i, v := range out {
			if v = lib.Remembered(b, v, p.gen.Out[i]); v == nil {
				b.Fail(fmt.Errorf("the body of %s returned no value of kind %s", p.gen.Name, p.gen.Out[i].ValueKind()))
				return nil
			}
			vals = append(vals, b.Splat(v, lanes))
		}
	}
	out := make([]ir.Value, len(f.outs))
	for i, v := range f.outs {
		out[i] = vals[v]
	}
	return out
}

// appendBody appends what identifies an operator's body, apart from the kinds of its operands.
func appendBody(k []byte, gen *lib.Elementwise) []byte {
	k = strconv.AppendInt(k, int64(len(gen.BodyKey)), 10)
	k = append(append(k, ':'), gen.BodyKey...)
	for _, s := range gen.Scalars {
		k = append(k, 's', 'a'+byte(s))
	}
	for _, o := range gen.Out {
		k = appendKind(append(k, '>'), o)
	}
	if gen.Index {
		k = append(k, '#')
	}
	return k
}

func appendKind(k []byte, o lib.Operand) []byte {
	if o.Bool {
		return append(k, '?')
	}
	return append(k, 'a'+byte(o.Kind))
}

// appendOperand appends an operand's kind and layout.
func appendOperand(k []byte, o lib.Operand) []byte {
	k = appendKind(append(k, ' '), o)
	if o.Strides != nil {
		k = appendInts(k, o.Strides)
	}
	if o.Offset != 0 {
		k = strconv.AppendInt(append(k, '+'), int64(o.Offset), 10)
	}
	return k
}

func appendInts(k []byte, ints []int) []byte {
	k = append(k, '[')
	for _, n := range ints {
		k = append(strconv.AppendInt(k, int64(n), 10), ',')
	}
	return append(k, ']')
}
