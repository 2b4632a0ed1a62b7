package tensor

import (
	"os"
	"slices"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// The scheduler runs the operators that wait for a flush in fewer kernels than there are operators. It goes through them once,
// in program order, and gathers elementwise operators of one shape that use each other's results in clusters. A cluster
// waits until something outside of it needs it: an operator that is not elementwise reads one of its results, or overwrites
// one of its operands. Then it is launched as one kernel, in front of that operator. Because a cluster is launched before
// anything outside sees its results, and no cluster reads from another one that waits, every order of launching clusters is
// an order that the program could have been written in.
//
// A result that nobody but the cluster claims is never written to memory, nor is one that only a scope's list of tensors
// claims besides: it is fused away, and remembered as a recipe (see [recipe]). Any other result is an output of the
// kernel, and so are results that nothing uses and small ones.
//
// Clusters without operands (numbers, and what is computed from them) are uniform: the same at every place. Operators of any
// shape take them into their own kernel instead of reading them.

// Bounds of a fused kernel, besides the device's.
const (
	maxClusters = 16  // that wait, besides uniform ones: they hold their operands' memory
	maxIdle     = 4   // operators after the last one that joined a cluster, for the same reason
	maxMembers  = 32  // operators
	maxScalars  = 16  // parameters; the others of ir.MaxParams are for geometry
	maxWeight   = 600 // instructions, math functions counted as mathWeight
	mathWeight  = 16
	maxBuffers  = 24 // operands and results
	maxUniform  = 8  // operators that are repeated for the sake of a uniform operand
)

// cluster is a number of elementwise operators that will be one kernel.
type cluster struct {
	shape   []int
	members []member
	ins     []input
	wires   []int      // of all members' operands, in order: an index of ins, or ^v for value v
	values  []*storage // results of all members, in order; nil for those of repeated and of helping members
	reads   []int      // how many operands of members are that value
	perRow  []bool     // of each value: there is one a row, not one an element
	scalars int
	weight  int
	uniform bool // the results are the same at every place
	repeats bool // members of uniform clusters are repeated here
	joined  int  // the scheduler's count of operators when the last one joined

	// With reductions: a row is the last rowDims dimensions of shape, rowN elements; 0 without. width is that of the reductions' kernels.
	rowN, rowDims, width int

	// A template whose product is input 0, and what is computed from the product in the template's kernel.
	head *lib.MatMul
}

// rows is the number of rows.
func (g *cluster) rows() int { return Numel(g.shape[:len(g.shape)-g.rowDims]) }

// member is an operator of a cluster.
type member struct {
	n    *node // nil if it is here only for its value: repeated from a uniform cluster, or a stage of a node before its last one
	of   *node // the node that it is, or that it repeats; nil for a stage before the last one
	gen  *lib.Elementwise
	red  *lib.Reduce // a reduction; gen then only describes it
	row  bool        // elementwise, on what there is one of in a row
	wire int         // the first of its operands in wires
	val  int         // the first of its results in values
}

// input is an operand of a cluster in memory.
type input struct {
	bind binding
	op   lib.Operand
}

func (a *input) same(b *input) bool {
	return a.bind.st == b.bind.st && a.bind.offset == b.bind.offset && a.op.Kind == b.op.Kind && a.op.Bool == b.op.Bool &&
		a.op.Offset == b.op.Offset && slices.Equal(a.op.Strides, b.op.Strides)
}

// scheduler is the part of an engine that fuses.
type scheduler struct {
	on       bool
	open     []*cluster // that wait, oldest first
	uniform  []*cluster // that wait
	free     []*cluster // to be used again
	weights  map[string]int
	prepared map[string]*prepared
	key      []byte
	comp     composition
	aside    aside
	count    int // of operators
}

// SetFusion switches the fusion of operators on dev on or off. It is on unless the environment has ANYGPU_FUSION=0. Results
// are the same bit by bit; without fusion each operator is a kernel of its own.
func SetFusion(dev backend.Device, on bool) error {
	e, err := engineFor(dev)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.flushLocked(); err != nil {
		return err
	}
	e.sched.on = on
	return nil
}

func newScheduler() scheduler {
	return scheduler{on: os.Getenv("ANYGPU_FUSION") != "0", weights: map[string]int{}, prepared: map[string]*prepared{}}
}

// schedule launches nodes, in an order that their operands allow; e.mu is held.
func (e *engine) schedule(nodes []*node) {
	s := &e.sched
	for _, n := range nodes {
		if a := &s.aside; a.n != nil && (s.count-a.since > maxAside || a.touchedBy(n)) {
			e.launchAside()
		}
		switch {
		case n.dead:
			e.stats.Skipped++
		case s.on && n.fusable():
			e.gather(n, []stage{{gen: n.steps[0].gen.(*lib.Elementwise)}})
		case s.on && e.gatherRows(n):
		case s.on && e.gatherTemplate(n):
		case s.on && e.prologue(n):
		case s.on && e.putAside(n):
		default:
			e.settle(n)
			err := e.launch(n)
			e.plans.tape.node(planWrote, n)
			n.wrote()
			e.finish(n, err)
		}
		s.count++
		if g := n.cluster; g != nil {
			g.joined = s.count
		}
		for i := 0; i < len(s.open); {
			if g := s.open[i]; s.count-g.joined > maxIdle {
				e.emit(g)
				i = 0 // that may have launched others
			} else {
				i++
			}
		}
	}
	e.launchAside()
	for len(s.open) > 0 {
		e.emit(s.open[0])
	}
	// What took uniform clusters into its own kernel is done now, so that most of them turn out dead.
	for len(s.uniform) > 0 {
		e.emit(s.uniform[len(s.uniform)-1])
	}
}

// finish notes a node's error and gives up what it claims. The queue keeps the order, so that memory freed here can be
// reused by the nodes after this one.
func (e *engine) finish(n *node, err error) {
	e.plans.tape.node(planFinish, n)
	e.end(n, err)
}

func (e *engine) end(n *node, err error) {
	if err != nil {
		e.failNode(n, err)
	}
	for _, st := range n.outs {
		st.node = nil
	}
	n.cluster = nil
	n.releaseInputs()
}

// wrote counts the node's updates in place, which were launched; e.mu is held.
func (n *node) wrote() {
	n.each(func(b binding) {
		if b.write {
			b.st.written++
		}
	})
}

// fusable reports whether a node can be in a cluster: one elementwise kernel that makes all of its results, densely.
func (n *node) fusable() bool {
	if len(n.steps) != 1 || len(n.outs) == 0 || n.failed != nil {
		return false
	}
	g, ok := n.steps[0].gen.(*lib.Elementwise)
	if !ok || len(g.Out) != len(n.outs) || len(g.Scalars) != len(g.ScalarBits) || len(n.steps[0].bufs) != len(g.In)+len(g.Out) {
		return false
	}
	for i, o := range g.Out {
		b := n.steps[0].bufs[len(g.In)+i]
		if b.st != n.outs[i] || b.offset != 0 || o.Offset != 0 || o.Strides != nil && !isContiguous(g.Shape, o.Strides) {
			return false
		}
	}
	for _, b := range n.steps[0].bufs[:len(g.In)] {
		if b.write || n.makes(b.st) {
			return false
		}
	}
	return true
}

// settle launches the clusters that must come before a node that is not in one.
func (e *engine) settle(n *node) {
	n.each(func(b binding) {
		if g := b.st.waiting(); g != nil {
			e.emit(g)
		}
		if !b.write {
			return
		}
		for _, list := range [...]*[]*cluster{&e.sched.open, &e.sched.uniform} {
			for i := 0; i < len(*list); {
				if g := (*list)[i]; g.readsFrom(b.st) {
					e.emit(g)
				} else {
					i++
				}
			}
		}
	})
}

// waiting returns the cluster that makes a storage and was not launched yet.
func (st *storage) waiting() *cluster {
	if st.node == nil {
		return nil
	}
	return st.node.cluster
}

// readsFrom reports whether the cluster reads a storage, or its operators would if they were launched one by one: where a
// uniform operand is repeated, they do not read it now, but may later (see [recipe]).
func (g *cluster) readsFrom(st *storage) bool {
	for i := range g.ins {
		if g.ins[i].bind.st == st {
			return true
		}
	}
	if !g.repeats && g.head == nil {
		return false
	}
	for _, m := range g.members {
		if m.n == nil || m.n.dead {
			continue
		}
		for _, b := range m.n.steps[0].bufs {
			if b.st == st && !m.n.makes(st) {
				return true
			}
		}
	}
	return false
}

// load is what a node or a cluster adds to a kernel.
type load struct{ members, scalars, weight, buffers int }

// fits reports whether the clusters (a may be nil) and a node can be one kernel.
func (e *engine) fits(a, b *cluster, more load) bool {
	for _, g := range [...]*cluster{a, b} {
		if g != nil {
			more.members += len(g.members)
			more.scalars += g.scalars
			more.weight += g.weight
			more.buffers += len(g.ins)
			if g.head != nil {
				more.buffers += 3
			}
		}
	}
	if more.members > maxMembers || more.scalars > maxScalars || more.weight > maxWeight {
		return false
	}
	limit := e.target.Caps.MaxBuffers
	if limit <= 0 {
		limit = maxBuffers
	}
	limit = min(limit, maxBuffers)
	values := len(b.values)
	if a != nil {
		values += len(a.values)
	}
	if more.buffers+values <= limit {
		return true
	}
	for _, g := range [...]*cluster{a, b} {
		if g != nil {
			more.buffers += g.outputs()
		}
	}
	return more.buffers <= limit
}

// outputs returns how many results of the cluster may have to be written: all that others claim by now. The claims of a node that is
// about to join count, so that it is one more than needed at times.
func (g *cluster) outputs() int {
	n := 0
	for v, st := range g.values {
		if st != nil && int(st.refs.Load()) > g.reads[v] {
			n++
		}
	}
	return n
}

// intern returns the number of an operand in memory.
func (g *cluster) intern(in input) int {
	for i := range g.ins {
		if g.ins[i].same(&in) {
			return i
		}
	}
	g.ins = append(g.ins, in)
	return len(g.ins) - 1
}

// addValue adds a result.
func (g *cluster) addValue(st *storage, perRow bool) {
	g.values, g.reads, g.perRow = append(g.values, st), append(g.reads, 0), append(g.perRow, perRow)
}

// repeat takes value v of a uniform cluster, with what it is computed from, into g and returns its number there.
func (g *cluster) repeat(from *cluster, v int) int {
	return g.repeated(from, v, make([]int, len(from.members)))
}

// repeated is repeat; taken has the first value in g of each member of from that was taken, plus 1.
func (g *cluster) repeated(from *cluster, v int, taken []int) int {
	i := 0
	for i+1 < len(from.members) && from.members[i+1].val <= v {
		i++
	}
	m := from.members[i]
	if taken[i] > 0 {
		return taken[i] - 1 + v - m.val
	}
	for _, have := range g.members {
		// By the node: nodes share gen, and those that have equal numbers now need not have them when the plan is used.
		if have.n == nil && have.of == m.of {
			taken[i] = have.val + 1
			return have.val + v - m.val
		}
	}
	wires := make([]int, 0, len(m.gen.In))
	for _, w := range from.wires[m.wire : m.wire+len(m.gen.In)] {
		wires = append(wires, ^g.repeated(from, ^w, taken)) // uniform clusters have no operands in memory
	}
	g.repeats = true
	copied := member{of: m.of, gen: m.gen, wire: len(g.wires), val: len(g.values)}
	g.wires = append(g.wires, wires...)
	copied.row = true // in a kernel of rows it is computed once a row
	for range m.gen.Out {
		g.addValue(nil, true)
	}
	g.members = append(g.members, copied)
	g.scalars += len(m.gen.Scalars)
	taken[i] = copied.val + 1
	return copied.val + v - m.val
}

// merge moves the members of cluster b to a, which has its shape (see [cluster.match]).
func (e *engine) merge(a, b *cluster) {
	off := len(a.values)
	for _, m := range b.members {
		wires := b.wires[m.wire : m.wire+len(m.gen.In)]
		moved := m
		moved.wire, moved.val = len(a.wires), m.val+off
		for _, w := range wires {
			if w < 0 {
				w = ^(^w + off)
			} else {
				w = a.intern(b.ins[w])
			}
			a.wires = append(a.wires, w)
		}
		a.members = append(a.members, moved)
		if m.n != nil {
			m.n.cluster, m.n.value = a, moved.val
		}
	}
	a.values, a.reads, a.perRow = append(a.values, b.values...), append(a.reads, b.reads...), append(a.perRow, b.perRow...)
	a.repeats = a.repeats || b.repeats
	a.scalars += b.scalars
	a.weight += b.weight
	e.sched.remove(b)
	e.sched.recycle(b)
}

// newCluster returns an empty cluster that waits. If too many wait already, the oldest is launched.
func (e *engine) newCluster(shape []int, uniform bool) *cluster {
	s := &e.sched
	var g *cluster
	if n := len(s.free); n > 0 {
		g, s.free = s.free[n-1], s.free[:n-1]
	} else {
		g = &cluster{}
	}
	g.shape, g.uniform, g.joined = shape, uniform, s.count
	if uniform {
		s.uniform = append(s.uniform, g)
		return g
	}
	if len(s.open) >= maxClusters {
		e.emit(s.open[0])
	}
	s.open = append(s.open, g)
	return g
}

// remove takes a cluster from those that wait.
func (s *scheduler) remove(g *cluster) {
	list := &s.open
	if g.uniform {
		list = &s.uniform
	}
	if i := slices.Index(*list, g); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
}

// recycle keeps a cluster's slices for another one.
func (s *scheduler) recycle(g *cluster) {
	clear(g.members)
	clear(g.ins)
	clear(g.values)
	*g = cluster{members: g.members[:0], ins: g.ins[:0], wires: g.wires[:0], values: g.values[:0], reads: g.reads[:0], perRow: g.perRow[:0]}
	s.free = append(s.free, g)
}

// weight estimates the instructions of an operator's body.
func (e *engine) weight(gen *lib.Elementwise) int {
	s := &e.sched
	w, ok := s.weights[gen.BodyKey]
	if !ok {
		w = weigh(gen)
		s.weights[gen.BodyKey] = w
	}
	return w
}

func weigh(gen *lib.Elementwise) int {
	b := ir.NewBuilder("weight", 1, 1, 1)
	var in []ir.Value
	var scalars []ir.Value
	for _, o := range gen.In {
		in = append(in, b.ConstBits(ir.Scalar(o.ValueKind()), 0))
	}
	if gen.Index {
		in = append(in, b.U32(0))
	}
	for _, k := range gen.Scalars {
		scalars = append(scalars, b.ConstBits(ir.Scalar(k), 0))
	}
	gen.Body(b, in, scalars)
	k, err := b.Build()
	if err != nil {
		return maxWeight + 1 // let the operator's own kernel say what is wrong
	}
	w := 0
	k.Walk(func(i *ir.Instr) {
		switch {
		case i.Op.IsMath():
			w += mathWeight
		case i.Op != ir.OpConst:
			w++
		}
	})
	return w
}
