package tensor

import (
	"slices"

	"github.com/anygpu/anygpu/backend"
)

// runPlan does with nodes what a plan says; e.mu is held, and the planner's slots are the nodes' storages.
func (e *engine) runPlan(p *plan, nodes []*node) {
	r := planRun{e: e, plan: p, nodes: nodes, regions: slices.Grow(e.plans.regions, p.bindings)}
	if p.scratch > 0 {
		r.scratch = make([]memory, p.scratch)
	}
	for _, n := range p.sources {
		r.scalars = append(r.scalars, nodes[n].scalars())
	}
	for _, n := range nodes {
		for _, st := range n.outs {
			st.node = nil // so that the collector's finds do not reach the nodes
		}
	}
	for i := range p.ops {
		r.do(&p.ops[i])
	}
	e.plans.regions = r.regions
	e.stats.Planned++
	e.stats.Skipped += p.stats.Skipped
	e.stats.Fused += p.stats.Fused
	e.stats.Launches += p.stats.Launches
}

// planRun is a plan at work.
type planRun struct {
	e       *engine
	plan    *plan
	nodes   []*node
	scratch []memory
	regions []backend.Region
	scalars [][]uint32 // of the plan's sources
}

func (r *planRun) do(op *planOp) {
	e := r.e
	slots := e.plans.slots
	switch op.kind {
	case planAlloc:
		st := slots[op.a]
		if st.err != nil || st.mem != nil {
			return
		}
		st.err = e.allocateStorage(st)
	case planScratch:
		if err := e.allocateTo(&r.scratch[op.a], op.size); err != nil {
			r.scratch[op.a] = memory{}
		}
	case planUnscratch:
		if m := &r.scratch[op.a]; m.e != nil {
			m.free() // the queue keeps the order, so the next owner comes after
		}
	case planLaunchOne:
		l := &r.plan.launches[op.a]
		if err := r.launch(l); err != nil {
			for _, n := range l.nodes {
				e.failNode(r.nodes[n], err)
			}
		}
	case planStep:
		n := r.nodes[op.a]
		if err := r.step(n, int(op.b)); err != nil {
			e.failNode(n, err)
		}
	case planUnclaimed:
		if st := slots[op.a]; st.refs.Load() == 0 {
			st.drop()
		}
	case planFinish:
		e.finish(r.nodes[op.a], nil)
	case planAbsorb:
		e.retire(r.nodes[op.a])
	case planDie:
		n := r.nodes[op.a]
		n.dead = true
		n.releaseInputs()
	case planWrote:
		r.nodes[op.a].wrote()
	}
}

// launch queues a launch with its buffers.
func (r *planRun) launch(l *planLaunch) error {
	start := len(r.regions)
	for _, b := range l.bufs {
		m := (*memory)(nil)
		if b.slot < 0 {
			m = &r.scratch[^b.slot]
			if m.e == nil {
				return errorOf(ErrFreed, "there was no memory for what is computed on the way")
			}
		} else {
			st := r.e.plans.slots[b.slot]
			if st.err != nil {
				return st.err
			}
			if m = st.mem; m == nil {
				return errorOf(ErrFreed, "an operand's memory is gone")
			}
		}
		region := m.region
		region.Offset += b.offset
		region.Size -= b.offset
		r.regions = append(r.regions, region)
	}
	launch := l.launch
	if len(l.patches) > 0 {
		launch.Params = slices.Clone(launch.Params)
		for _, p := range l.patches {
			copy(launch.Params[p.at:], r.scalars[p.source])
		}
	}
	launch.Buffers = r.regions[start:len(r.regions):len(r.regions)]
	return r.e.queue.Add(launch)
}

// step launches a step from its node's generator.
func (r *planRun) step(n *node, i int) error {
	bufs := n.steps[i].bufs
	regions := make([]backend.Region, len(bufs))
	for j, b := range bufs {
		if b.st.err != nil {
			return b.st.err
		}
		if b.st.mem == nil {
			return errorOf(ErrFreed, "an operand's memory is gone")
		}
		regions[j] = b.region()
	}
	return r.e.launchGen(n.steps[i].gen, regions)
}
