package tensor

import (
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// This file finds the cluster that a node joins. The results of a cluster's members have one element for each of its shape, or one for
// each row. A node of another shape of as many elements joins as well, if it reads the results in order: its own operands in memory are then seen in
// the cluster's shape.

// stage is what a node computes, or a part of it: an elementwise computation or a reduction of rows.
type stage struct {
	gen   *lib.Elementwise // of a reduction only a description
	red   *lib.Reduce
	row   bool  // elementwise, on what there is one of in a row; of a node with several stages only
	wires []int // of a node with several stages: operand i >= 0, or value ^v of the node's stages
}

// gather puts a node into a cluster: the one that makes its operands, or a new one. The first stage is the one that decides; a node with several
// has one operand.
func (e *engine) gather(n *node, stages []stage) {
	first := stages[0]
	bufs := n.steps[0].bufs[:len(first.gen.In)]
	if len(stages) > 1 {
		bufs = bufs[:1]
	}
	g, row := e.clusterFor(n, stages, bufs)
	var space [8]int
	operands := space[:0]
	for i, b := range bufs {
		operands = append(operands, g.wire(b, first.gen.In[i], first.gen.Shape, row))
	}
	base := len(g.values)
	for k, s := range stages {
		m := member{gen: s.gen, red: s.red, row: row && s.red == nil || s.row, wire: len(g.wires), val: len(g.values)}
		wires := operands
		if len(stages) > 1 {
			wires = nil
			for _, w := range s.wires {
				if w < 0 {
					w = ^(^w + base)
				} else {
					w = operands[w]
				}
				wires = append(wires, w)
			}
		}
		g.wires = append(g.wires, wires...)
		for _, w := range wires {
			if w < 0 {
				g.reads[^w]++
			}
		}
		var outs []*storage
		if k == len(stages)-1 {
			m.n, m.of, outs = n, n, n.outs
			n.cluster, n.value = g, m.val
		}
		for i := range s.gen.Out {
			var st *storage
			if outs != nil {
				st = outs[i]
			}
			g.addValue(st, m.row || m.red != nil)
		}
		g.members = append(g.members, m)
		g.scalars += len(s.gen.Scalars)
		g.weight += e.stageWeight(s)
	}
}

// stageWeight estimates the instructions of a stage.
func (e *engine) stageWeight(s stage) int {
	if s.red != nil {
		return mathWeight
	}
	return e.weight(s.gen)
}

// clusterFor returns the cluster that a node joins, and whether it does so with one element a row. Clusters that make its operands, but cannot
// have it, are launched.
func (e *engine) clusterFor(n *node, stages []stage, bufs []binding) (g *cluster, row bool) {
	gen := stages[0].gen
	more := load{members: len(stages), buffers: len(bufs) + len(n.outs)}
	reduces := 0 // the length of the rows that are reduced
	width := 0
	for _, s := range stages {
		more.scalars += len(s.gen.Scalars)
		more.weight += e.stageWeight(s)
		if s.red != nil {
			reduces = s.red.N
			width, _ = s.red.RowsFit(e.target)
		}
	}
	uniform := !gen.Index && reduces == 0
	for i, b := range bufs {
		from := b.st.waiting()
		if from == nil {
			continue
		}
		made := b.st.dtype.operand()
		switch {
		case gen.In[i].Kind != made.Kind || gen.In[i].Bool != made.Bool, from.uniform && len(from.members) > maxUniform, from.uniform && reduces > 0:
			e.emit(from)
		case from.uniform:
			more.members += len(from.members)
			more.scalars += from.scalars
			more.weight += from.weight
		}
	}
	if more.scalars > maxScalars { // numbers in memory are no parameters
		for _, b := range bufs {
			if from := b.st.waiting(); from != nil && from.uniform {
				more.scalars -= from.scalars
				e.emit(from)
			}
		}
	}
	for i, b := range bufs {
		from := b.st.waiting()
		uniform = uniform && from != nil && from.uniform
		if from == nil || from.uniform {
			continue
		}
		level, ok := from.level(b, gen.In[i], gen.Shape)
		switch {
		case !ok, reduces > 0 && level, g != nil && level != row, gen.Index && level:
			e.emit(from)
		case from == g:
		case g != nil && from.head != nil && g.rowN == 0:
			// The template's kernel computes the rest.
			if g.head == nil && e.fits(g, from, more) && g.canJoin(from) {
				e.merge(from, g)
			} else {
				e.emit(g)
			}
			if g = nil; from.takes(bufs, gen, level) {
				g, row = from, level
			} else {
				e.emit(from)
			}
		case g != nil && !(e.fits(g, from, more) && from.canJoin(g)):
			e.emit(from)
		case g != nil:
			e.merge(g, from)
		case !e.fits(nil, from, more), reduces > 0 && !from.reduced(reduces, width), !from.takes(bufs, gen, level):
			e.emit(from)
		default:
			g, row = from, level
		}
	}
	if g != nil && !g.takes(bufs, gen, row) { // another cluster's shape won
		e.emit(g)
		g, row = nil, false
	}
	if g == nil {
		g, row = e.newCluster(gen.Shape, uniform), false
		if reduces > 0 {
			g.rowN, g.rowDims, g.width = reduces, 1, width
		}
	}
	return g, row
}

// level says how a node of the given shape that reads a result of the cluster joins it: with one element for each of the cluster's, or one a
// row; ok is false if it reads otherwise.
func (g *cluster) level(b binding, o lib.Operand, shape []int) (row, ok bool) {
	if b.offset != 0 || o.Offset != 0 {
		return false, false
	}
	n, all := Numel(shape), Numel(g.shape)
	inOrder := o.Strides == nil || isContiguous(shape, o.Strides)
	if !g.perRow[b.st.place()] {
		return false, n == all && inOrder
	}
	if n == g.rows() && inOrder {
		return true, true
	}
	if n != all || o.Strides == nil {
		return false, false
	}
	// One element a row, repeated along it.
	to, ok := restrided(shape, o.Strides, g.shape)
	if !ok {
		return false, false
	}
	cut := len(g.shape) - g.rowDims
	for i := cut; i < len(to); i++ {
		if to[i] != 0 && g.shape[i] != 1 {
			return false, false
		}
	}
	return false, isContiguous(g.shape[:cut], to[:cut])
}

// place is the number of a result in the cluster that makes it.
func (st *storage) place() int { return st.node.value + slices.Index(st.node.outs, st) }

// restrided is [reshapedStrides], for strides that may be nil: contiguous.
func restrided(shape, strides, to []int) ([]int, bool) {
	if strides == nil {
		strides = contiguousStrides(shape)
	}
	if slices.Equal(shape, to) {
		return strides, true
	}
	return reshapedStrides(shape, strides, to)
}

// seenAs returns an operand of a node in the cluster's shape.
func (g *cluster) seenAs(o lib.Operand, shape []int, row bool) (lib.Operand, bool) {
	to := g.shape
	if row {
		to = g.shape[:len(g.shape)-g.rowDims]
	}
	if !row && (o.Strides == nil || slices.Equal(shape, to)) {
		return o, true
	}
	s, ok := restrided(shape, o.Strides, to)
	if row {
		s = append(slices.Clone(s), make([]int, g.rowDims)...)
	}
	o.Strides = s
	return o, ok
}

// takes reports whether the cluster can have a node's operands in memory.
func (g *cluster) takes(bufs []binding, gen *lib.Elementwise, row bool) bool {
	for i, b := range bufs {
		if from := b.st.waiting(); from != nil && (from == g || from.uniform) {
			continue
		}
		o, ok := g.seenAs(gen.In[i], gen.Shape, row)
		if !ok || g.head != nil && (b.offset != 0 || o.Offset != 0 || o.Strides != nil && !isContiguous(g.shape, o.Strides)) {
			return false
		}
	}
	return g.head == nil || !gen.Index
}

// reduced makes the last dimensions of the cluster's shape rows of n elements, if it can be seen so, for reductions of the given width.
func (g *cluster) reduced(n, width int) bool {
	if g.head != nil || g.uniform {
		return false
	}
	if g.rowN != 0 {
		return g.rowN == n && g.width == width
	}
	size := 1
	for d := len(g.shape) - 1; d >= 0; d-- {
		if size *= g.shape[d]; size == n {
			g.rowN, g.rowDims, g.width = n, len(g.shape)-d, width
			return true
		}
	}
	all := Numel(g.shape)
	if all%n != 0 || !g.reshape([]int{all / n, n}) {
		return false
	}
	g.rowN, g.rowDims, g.width = n, 1, width
	return true
}

// reshape changes the shape, which has as many elements, if the operands can be seen in it.
func (g *cluster) reshape(shape []int) bool {
	if slices.Equal(g.shape, shape) {
		return true
	}
	for i := range g.ins {
		if _, ok := restrided(g.shape, g.ins[i].op.Strides, shape); !ok {
			return false
		}
	}
	for i := range g.ins {
		if g.ins[i].op.Strides != nil {
			g.ins[i].op.Strides, _ = restrided(g.shape, g.ins[i].op.Strides, shape)
		}
	}
	g.shape = shape
	return true
}

// canJoin gives the cluster the shape of another one that it is to be merged with, if that is possible.
func (g *cluster) canJoin(to *cluster) bool {
	switch {
	case g.head != nil || Numel(g.shape) != Numel(to.shape):
		return false
	case g.rowN == 0 && to.head != nil:
		for i := range g.ins {
			in := &g.ins[i]
			if in.bind.offset != 0 || in.op.Offset != 0 || in.op.Strides != nil && !isContiguous(g.shape, in.op.Strides) {
				return false
			}
		}
		for _, m := range g.members {
			if m.gen.Index {
				return false
			}
		}
		return g.reshape(to.shape)
	case g.rowN == 0:
		return g.reshape(to.shape)
	case to.rowN == 0:
		if to.head != nil || !to.reshape(g.shape) {
			return false
		}
		to.rowN, to.rowDims, to.width = g.rowN, g.rowDims, g.width
		return true
	}
	return g.rowN == to.rowN && g.width == to.width && slices.Equal(g.shape, to.shape) && g.rowDims == to.rowDims
}

// wire returns where a member's operand comes from; see cluster.wires.
func (g *cluster) wire(b binding, o lib.Operand, shape []int, row bool) int {
	switch from := b.st.waiting(); {
	case from == g:
		return ^b.st.place()
	case from != nil:
		return ^g.repeat(from, b.st.place())
	}
	o, _ = g.seenAs(o, shape, row)
	return g.intern(input{b, o})
}
