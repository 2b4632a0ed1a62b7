package tensor

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/lib"
)

// A plan is what the scheduler did with the nodes of a flush, written down as the few things that have an effect: memory taken, kernels
// launched, claims given up. A flush that looks the same in all that the scheduler looks at (see [planner.describe]) does the same
// things with other storages, so that a training step that was seen before is neither scheduled nor compiled again. Descriptions are
// compared as a whole; the hash only finds them.
//
// The first flush of a kind only leaves its hash, the second is written down, the third and later ones use the plan.
type plan struct {
	description []byte
	ops         []planOp
	launches    []planLaunch
	bindings    int // of all launches
	scratch     int
	stats       LaunchStats // what the scheduler counted, but for what is counted again
	sources     []int32     // nodes whose scalars are parameters of launches, whatever their values are
	fixed       []fixedScalars
	gens        []*lib.Elementwise // held so that no other kernel gets the address of one in the description
}

// planOp is one effect. a is a node's place in the flush, a storage's number in the description, a scratch memory's number or a launch's.
type planOp struct {
	kind planKind
	a, b int32
	size int64
}

type planKind uint8

const (
	planAlloc     planKind = iota // storage a gets memory
	planScratch                   // scratch memory a of size bytes
	planUnscratch                 // scratch memory a is given back
	planLaunchOne                 // launch a
	planStep                      // step b of node a, whose kernels depend on more than the description has
	planUnclaimed                 // storage a is freed if nobody claims it
	planFinish                    // node a gives up its operands
	planAbsorb                    // the same if its result was written or nobody claims it; else it becomes a recipe
	planDie                       // node a is not needed any more
	planWrote                     // node a's updates in place were launched
)

// planLaunch is a launch without its buffers.
type planLaunch struct {
	launch  backend.Launch
	bufs    []planBinding
	nodes   []int32 // that it computes
	patches []patch
}

// patch is where parameters of a launch, from at on, are the scalars of a source.
type patch struct{ at, source int32 }

// fixedScalars are scalars of a node that a plan holds for alone.
type fixedScalars struct {
	node int32
	bits []uint32
}

// holds reports whether the plan, which has the description of the nodes, is for them.
func (p *plan) holds(nodes []*node) bool {
	for _, f := range p.fixed {
		if !slices.Equal(nodes[f.node].scalars(), f.bits) {
			return false
		}
	}
	return true
}

// scalars returns the scalars of a node that shares its kernel with others.
func (n *node) scalars() []uint32 { return n.steps[0].gen.(*lib.Elementwise).ScalarBits }

// planBinding is a buffer of a launch: a storage's memory, or a scratch memory ^slot.
type planBinding struct {
	slot   int32
	offset int64
}

// Bounds of what is kept. Programs that are always different start anew.
const (
	maxPlanBytes = 32 << 20 // of descriptions
	maxPlansSeen = 1 << 14
	maxPlansLike = 4 // with one description: for different scalars
)

// planner finds and keeps an engine's plans; all of it is guarded by the engine's mutex.
type planner struct {
	seed  maphash.Seed
	seen  map[uint64]struct{} // hashes of flushes that have no plan
	plans map[uint64][]*plan
	bytes int

	epoch   uint64     // of the numbers that storages have
	slots   []*storage // by number
	code    []byte
	regions []backend.Region // of the launches of a flush by a plan
	types   coders
	tape    *tape // while a plan is written
}

func newPlanner() planner {
	return planner{seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}, plans: map[uint64][]*plan{}, types: coders{}}
}

// forget drops all plans.
func (p *planner) forget() { *p = newPlanner() }

// maxRegions bounds the memory that is kept for the buffers of launches.
const maxRegions = 1 << 14

// submitted is called when the launches of a flush have been submitted.
func (p *planner) submitted() {
	if cap(p.regions) > maxRegions {
		p.regions = nil
	}
	clear(p.regions)
	p.regions = p.regions[:0]
}

// runPending schedules and launches nodes, by a plan if there is one; e.mu is held.
func (e *engine) runPending(nodes []*node) {
	p := &e.plans
	if !e.sched.on || e.prof != nil || e.tune.on || p.tape != nil || !p.describe(nodes) {
		e.schedule(nodes)
		return
	}
	defer func() { // no storage is held longer than its tensors want
		clear(p.slots)
		p.slots = p.slots[:0]
	}()
	h := maphash.Bytes(p.seed, p.code)
	for _, pl := range p.plans[h] {
		if bytes.Equal(pl.description, p.code) && pl.holds(nodes) {
			e.runPlan(pl, nodes)
			return
		}
	}
	if _, again := p.seen[h]; !again {
		if len(p.seen) >= maxPlansSeen {
			clear(p.seen)
		}
		p.seen[h] = struct{}{}
		e.schedule(nodes)
		return
	}
	t := e.newTape(nodes)
	p.tape = t
	e.schedule(nodes)
	p.tape = nil
	if pl := t.finish(e); pl != nil {
		if p.bytes += len(pl.description); p.bytes > maxPlanBytes {
			clear(p.plans)
			p.bytes = len(pl.description)
		}
		like := p.plans[h]
		if len(like) >= maxPlansLike {
			p.bytes -= len(like[0].description)
			like = slices.Delete(like, 0, 1)
		}
		p.plans[h] = append(like, pl)
	}
}
