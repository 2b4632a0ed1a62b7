package tensor

import "github.com/anygpu/anygpu/shaders/lib"

// Sums of columns, which the gradients of biases are, are little work, and a training step has one for each layer. So a reduction of
// columns is put aside until the next one comes, and both are one kernel. It is launched alone when something reads its result or
// overwrites its operand, or when none comes soon: meanwhile it holds its operand's memory.

// Bounds of what is put aside.
const (
	maxAside     = 12      // operators that it waits for the next one
	maxAsideCost = 8 << 20 // bytes: larger ones fill a device by themselves
)

// aside is a reduction that waits for another one; the zero value is none.
type aside struct {
	n     *node
	r     *lib.Reduce
	since int // the scheduler's count of operators
}

// touchedBy reports whether a node needs what the reduction makes, or overwrites what it reads.
func (a *aside) touchedBy(n *node) bool {
	if n.dead {
		return false
	}
	for _, s := range n.steps {
		for _, b := range s.bufs {
			if b.st == a.n.outs[0] {
				return true
			}
			for _, own := range a.n.steps[0].bufs {
				if b.write && b.st == own.st {
					return true
				}
			}
		}
	}
	return false
}

// putAside takes a node that is a small reduction of columns, and reports whether it did.
func (e *engine) putAside(n *node) bool {
	if len(n.steps) != 1 || len(n.outs) != 1 || n.failed != nil {
		return false
	}
	r, ok := n.steps[0].gen.(*lib.Reduce)
	if !ok || r.Inner < 2 || len(n.steps[0].bufs) != len(r.In)+1 || r.Cost() > maxAsideCost || !r.Joins(e.target) {
		return false
	}
	e.settle(n)
	other := e.sched.aside
	if other.n == nil {
		e.sched.aside = aside{n, r, e.sched.count}
		return true
	}
	e.sched.aside = aside{}
	if other.n.dead || !e.launchPair(other, aside{n: n, r: r}) {
		e.launchAlone(other.n)
		e.launchAlone(n)
	}
	return true
}

// launchPair launches two reductions as one kernel, and reports whether it could.
func (e *engine) launchPair(a, b aside) bool {
	both := &lib.Reductions{List: []*lib.Reduce{a.r, b.r}}
	if !both.Fits(e.target) {
		return false
	}
	pair := &node{op: b.n.op, site: b.n.site, outs: []*storage{a.n.outs[0], b.n.outs[0]}, number: b.n.number,
		steps: []step{{both, append(a.n.steps[0].bufs[:len(a.n.steps[0].bufs):len(a.n.steps[0].bufs)], b.n.steps[0].bufs...)}}}
	if e.launch(pair) != nil {
		e.plans.tape.fail()
		return false // one by one they will say which is wrong
	}
	e.stats.Fused++
	e.finish(a.n, nil)
	e.finish(b.n, nil)
	return true
}

// launchAside launches the reduction that waits, if there is one.
func (e *engine) launchAside() {
	if n := e.sched.aside.n; n != nil {
		e.sched.aside = aside{}
		e.launchAlone(n)
	}
}

// launchAlone launches a node whose operands are in memory.
func (e *engine) launchAlone(n *node) {
	if n.dead { // the collector found it meanwhile
		e.stats.Skipped++
		return
	}
	e.finish(n, e.launch(n))
}
