package tensor

import (
	"strconv"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// This file fuses reductions of rows with what is computed from them and for them: see lib.Rows.

// gatherRows puts a reduction of rows, or a softmax, into a cluster. It reports whether it did.
func (e *engine) gatherRows(n *node) bool {
	if len(n.steps) != 1 || len(n.outs) != 1 || n.failed != nil {
		return false
	}
	var stages []stage
	switch gen := n.steps[0].gen.(type) {
	case *lib.Reduce:
		if _, ok := gen.RowsFit(e.target); !ok || len(n.steps[0].bufs) != len(gen.In)+1 {
			return false
		}
		stages = []stage{{gen: described(gen), red: gen}}
	case *lib.Softmax:
		steps, ok := gen.Rows()
		if !ok || len(n.steps[0].bufs) != 2 {
			return false
		}
		in := lib.Operand{Kind: gen.In}
		for _, s := range steps {
			st := stage{gen: s.Elementwise, red: s.Reduce, row: s.Row, wires: s.Wires}
			if s.Reduce != nil {
				if _, ok := s.Reduce.RowsFit(e.target); !ok {
					return false
				}
				st.gen = described(s.Reduce)
			}
			stages = append(stages, st)
		}
		stages[0].gen.In = []lib.Operand{in}
	default:
		return false
	}
	if b := n.steps[0].bufs; b[len(b)-1].st != n.outs[0] || b[len(b)-1].offset != 0 {
		return false
	}
	for _, b := range n.steps[0].bufs[:len(n.steps[0].bufs)-1] {
		if b.write || n.makes(b.st) {
			return false
		}
	}
	e.gather(n, stages)
	return true
}

// described describes a reduction of rows in the form of an elementwise computation.
func described(r *lib.Reduce) *lib.Elementwise {
	return &lib.Elementwise{Name: r.Name, Ops: r.Ops, BodyKey: "~" + strconv.Itoa(int(r.Op)) + r.BodyKey, Shape: []int{r.Outer, r.N}, In: r.In, Out: []lib.Operand{r.Out},
		Scalars: r.Scalars, ScalarBits: r.ScalarBits}
}

// rowsKernel makes the kernel of a cluster with reductions.
func (g *cluster) rowsKernel(c *composition, key string) *lib.Rows {
	f := &lib.Rows{BodyKey: key, Shape: g.shape, RowDims: g.rowDims}
	for _, i := range c.ins {
		f.In = append(f.In, g.ins[i].op)
	}
	var names []string
	for _, i := range c.live {
		m := &g.members[i]
		s := lib.RowStep{Reduce: m.red, Row: m.row}
		if m.red == nil {
			s.Elementwise = m.gen
		}
		for _, w := range g.wires[m.wire : m.wire+len(m.gen.In)] {
			if w >= 0 {
				w = c.inNum[w]
			} else {
				w = ^c.valNum[^w]
			}
			s.Wires = append(s.Wires, w)
		}
		f.Steps = append(f.Steps, s)
		f.Scalars = append(f.Scalars, m.gen.Scalars...)
		f.ScalarBits = append(f.ScalarBits, m.gen.ScalarBits...)
		f.Ops = append(f.Ops, m.gen.Ops...)
		names = append(names, m.gen.Name)
	}
	for _, v := range c.outs {
		f.Results = append(f.Results, lib.RowResult{Value: c.valNum[v], Out: g.values[v].dtype.operand()})
	}
	f.Name = fusedName(names)
	return f
}

// gatherTemplate opens a cluster for what is computed from a product, if its kernel can do that as well. It reports whether it did.
func (e *engine) gatherTemplate(n *node) bool {
	if len(n.steps) != 1 || len(n.outs) != 1 || n.failed != nil {
		return false
	}
	m, ok := n.steps[0].gen.(*lib.MatMul)
	if !ok || !m.TakesTail(e.target) {
		return false
	}
	e.settle(n)
	out := lib.Operand{Kind: m.Out}
	kind := out.ValueKind()
	gen := &lib.Elementwise{Name: "matmul", Ops: m.Ops, BodyKey: "product", In: []lib.Operand{out}, Out: []lib.Operand{out},
		Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return []ir.Value{b.Convert(in[0], kind)} }}
	g := e.newCluster([]int{m.Batch * m.M, m.N}, false)
	g.head = m
	g.ins = append(g.ins, input{binding{st: n.outs[0]}, out})
	g.wires = append(g.wires, 0)
	g.addValue(n.outs[0], false)
	g.members = append(g.members, member{n: n, of: n, gen: gen})
	n.cluster, n.value = g, 0
	return true
}

// tailKernel makes the kernel of a cluster with a template.
func (g *cluster) tailKernel(c *composition, key string) *lib.MatMul {
	m := *g.head
	m.Tail = g.fuse(c, key)
	m.Ops = m.Tail.Ops
	return &m
}
