package lib

import (
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Reductions are several plain reductions (without scalars) in one kernel, such as the sums of the gradients of several biases, each of which
// has too little work for a device. Buffers: those of each reduction in turn. Results have the bits of each reduction's own kernel.
type Reductions struct{ List []*Reduce }

// Joins reports whether a reduction can be one of several in a kernel: it is not done in stages and has no scalars.
func (r *Reduce) Joins(t Target) bool {
	if len(r.Scalars) > 0 || r.split > 1 || r.pairs != (pairing{}) || r.Outer*r.N*r.Inner == 0 {
		return false
	}
	_, _, staged := r.Split(t)
	return !staged
}

// Fits reports whether the reductions can be one kernel: their workgroups have one size, and the device binds all buffers.
func (m *Reductions) Fits(t Target) bool {
	local, buffers := 0, 0
	for i, r := range m.List {
		s := r.plan().shape(r, t)
		if i > 0 && s.local != local {
			return false
		}
		local, buffers = s.local, buffers+len(r.In)+1
	}
	return t.checkBuffers(m.what(), buffers) == nil
}

// Key identifies the kernel.
func (m *Reductions) Key() string {
	var keys []string
	for _, r := range m.List {
		keys = append(keys, r.Key())
	}
	return "reductions|" + strings.Join(keys, "||")
}

// Cost returns the bytes that the kernel reads and writes.
func (m *Reductions) Cost() float64 {
	sum := 0.0
	for _, r := range m.List {
		sum += r.Cost()
	}
	return sum
}

// Launch returns the grid, which has the workgroups of each reduction in turn, and the parameters: where those of each reduction
// but the first begin, then each one's geometry.
func (m *Reductions) Launch(t Target) (groups [3]int, params []uint32, err error) {
	var total uint64
	var geometry []uint32
	for i, r := range m.List {
		_, own, err := r.Launch(t)
		if err != nil {
			return groups, nil, err
		}
		if i > 0 {
			params = append(params, uint32(total))
		}
		geometry = append(geometry, own...)
		p := r.plan()
		total += p.shape(r, t).groups(r, p)
	}
	groups, err = t.fold(m.what(), total)
	return groups, append(params, geometry...), err
}

func (m *Reductions) what() string { return fmt.Sprintf("kernel of %d reductions", len(m.List)) }

// Build makes the kernel.
func (m *Reductions) Build(t Target) (*ir.Kernel, error) {
	if !m.Fits(t) {
		return nil, fmt.Errorf("%s: workgroups of several sizes, or more buffers than the device binds to a kernel", m.what())
	}
	local := 0
	emitters := make([]*reduceEmitter, len(m.List))
	for i, r := range m.List {
		e := &reduceEmitter{Reduce: r, reducePlan: r.plan(), t: t, prefix: fmt.Sprintf("r%d_", i), suffix: fmt.Sprintf("_%d", i)}
		e.s = e.shape(r, t)
		if !r.Joins(t) {
			return nil, fmt.Errorf("%s: %s cannot join others", m.what(), r.what())
		}
		if err := r.check(t); err != nil {
			return nil, err
		}
		local = e.s.local
		emitters[i] = e
	}
	if len(emitters) == 0 {
		return nil, fmt.Errorf("%s: nothing to do", m.what())
	}
	b := ir.NewBuilder(kernelName(m.List[0].Name, "reduce")+"_and_more", local, 1, 1)
	starts := make([]ir.Value, len(emitters))
	var ops []string
	for i, r := range m.List {
		ops = append(ops, r.Ops...)
		if i > 0 {
			starts[i] = b.Param(fmt.Sprintf("first%d", i), ir.U32)
		}
	}
	b.SetOps(ops...)
	for _, e := range emitters {
		e.b = b
		if err := e.prepare(); err != nil {
			return nil, fmt.Errorf("%s: %w", m.what(), err)
		}
	}
	// A chain of branches, which all invocations of a workgroup take alike.
	var choose func(i int)
	choose = func(i int) {
		e := emitters[i]
		own := func() {
			e.group = b.LinearGroup()
			if i > 0 {
				e.group = b.Sub(e.group, starts[i])
			}
			e.emit()
		}
		if i+1 == len(emitters) {
			own()
			return
		}
		b.If(b.Lt(b.LinearGroup(), starts[i+1]), own, func() { choose(i + 1) })
	}
	choose(0)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.what(), err)
	}
	return k, nil
}
