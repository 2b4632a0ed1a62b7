package tensor

import (
	"slices"

	"github.com/anygpu/anygpu/backend"
)

// tape writes a plan while the scheduler works. Its methods do nothing on a nil tape.
type tape struct {
	planner *planner
	plan    *plan
	before  LaunchStats
	bad     bool // something happened that need not happen again: there will be no plan
	muted   int  // within a step that is launched from its own generator
	ignored uint64
	nodes   []int32       // of the next launches
	places  []memoryPlace // the memory that there is, latest last

	scalars []source // of which the next launch's last parameters are made
}

// memoryPlace is where a storage, or a scratch memory ^slot, is.
type memoryPlace struct {
	region backend.Region
	slot   int32
}

// newTape starts to write a plan of nodes that were described just now.
func (e *engine) newTape(nodes []*node) *tape {
	p := &e.plans
	t := &tape{planner: p, before: e.stats, plan: &plan{description: slices.Clone(p.code)}}
	for i, st := range p.slots {
		if st.mem != nil {
			t.places = append(t.places, memoryPlace{st.mem.region, int32(i)})
		}
	}
	for _, n := range nodes {
		if n.dead || n.base == nil {
			continue
		}
		t.plan.gens = append(t.plan.gens, n.base)
	}
	return t
}

// finish returns the plan, or nil.
func (t *tape) finish(e *engine) *plan {
	if t.bad || t.muted != 0 {
		return nil
	}
	s := &t.plan.stats
	s.Skipped, s.Fused, s.Launches = e.stats.Skipped-t.before.Skipped, e.stats.Fused-t.before.Fused, e.stats.Launches-t.before.Launches-t.ignored
	return t.plan
}

func (t *tape) fail() {
	if t != nil {
		t.bad = true
	}
}

func (t *tape) op(kind planKind, a, b int32) {
	if t != nil {
		t.plan.ops = append(t.plan.ops, planOp{kind: kind, a: a, b: b})
	}
}

// node writes what is done to a node.
func (t *tape) node(kind planKind, n *node) {
	if t != nil {
		t.op(kind, n.number, 0)
	}
}

// storage writes what is done to a storage, by node n if it is memory.
func (t *tape) storage(kind planKind, st *storage) {
	if t == nil {
		return
	}
	if st.epoch != t.planner.epoch {
		t.bad = true
		return
	}
	t.op(kind, st.slot, 0)
	if kind == planAlloc {
		t.places = append(t.places, memoryPlace{st.mem.region, st.slot})
	}
}

// scratch writes that scratch memory was allocated, and returns its number.
func (t *tape) scratch(m *memory, size int64) int32 {
	if t == nil || t.muted > 0 {
		return 0
	}
	n := int32(t.plan.scratch)
	t.plan.scratch++
	t.plan.ops = append(t.plan.ops, planOp{kind: planScratch, a: n, size: size})
	t.places = append(t.places, memoryPlace{m.region, ^n})
	return n
}

func (t *tape) unscratch(n int32) {
	if t != nil && t.muted == 0 {
		t.op(planUnscratch, n, 0)
	}
}

// computes says which nodes the next launches compute.
func (t *tape) computes(ns ...*node) {
	if t == nil {
		return
	}
	t.nodes, t.scalars = nil, nil // a kernel without elements leaves its own behind
	for _, n := range ns {
		if n != nil {
			t.nodes = append(t.nodes, n.number)
		}
	}
}

// step writes a step that is to be launched from its node's own generator, until the function that it returns is called.
func (t *tape) step(e *engine, n *node, i int) (end func()) {
	if t == nil || !changes(n.steps[i].gen) {
		return func() {}
	}
	t.op(planStep, n.number, int32(i))
	t.muted++
	launches := e.stats.Launches
	return func() {
		t.muted--
		t.ignored += e.stats.Launches - launches
	}
}

// source is a kernel with scalars: that of a node, which may have others next time, or one of which the description has them.
type source struct {
	n    *node
	bits []uint32
}

// changes reports whether the scalars may change.
func (s source) changes() bool { return s.n != nil && s.n.base != nil && len(s.bits) > 0 }

// ends says whose scalars, in order, are the last parameters of the next launch.
func (t *tape) ends(from ...source) {
	if t != nil {
		t.scalars = from
	}
}

// fix makes the plan hold for these values of a kernel's scalars alone.
func (t *tape) fix(s source) {
	if t != nil && s.changes() {
		t.plan.fixed = append(t.plan.fixed, fixedScalars{s.n.number, slices.Clone(s.bits)})
	}
}

// patches finds the parameters that may change.
func (t *tape) patches(params []uint32) (out []patch) {
	at := len(params)
	for _, s := range t.scalars {
		at -= len(s.bits)
	}
	if at < 0 { // scalars of a kernel without elements, which was not launched
		t.bad, t.scalars = true, nil
		return nil
	}
	for _, s := range t.scalars {
		if s.changes() {
			i := slices.Index(t.plan.sources, s.n.number)
			if i < 0 {
				i = len(t.plan.sources)
				t.plan.sources = append(t.plan.sources, s.n.number)
			}
			if !slices.Equal(params[at:at+len(s.bits)], s.bits) {
				t.bad = true
			}
			out = append(out, patch{int32(at), int32(i)})
		}
		at += len(s.bits)
	}
	t.scalars = nil
	return out
}

// launch writes a launch.
func (t *tape) launch(l backend.Launch) {
	if t == nil || t.muted > 0 {
		return
	}
	pl := planLaunch{launch: l, nodes: t.nodes, patches: t.patches(l.Params)}
	for _, r := range l.Buffers {
		// Live memory does not overlap, so that the last place that has the region is where it is.
		i := len(t.places) - 1
		for ; i >= 0; i-- {
			if m := t.places[i].region; m.Buffer == r.Buffer && m.Offset <= r.Offset && r.Offset+r.Size <= m.Offset+m.Size {
				break
			}
		}
		if i < 0 {
			t.bad = true
			return
		}
		m := t.places[i]
		if r.Size != m.region.Size-(r.Offset-m.region.Offset) {
			t.bad = true
			return
		}
		pl.bufs = append(pl.bufs, planBinding{m.slot, r.Offset - m.region.Offset})
	}
	pl.launch.Buffers = nil
	t.plan.bindings += len(pl.bufs)
	t.op(planLaunchOne, int32(len(t.plan.launches)), 0)
	t.plan.launches = append(t.plan.launches, pl)
}
