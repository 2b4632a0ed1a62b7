package jit

import "github.com/anygpu/anygpu/shaders/ir"

// Jamming runs several vectors of invocations at once through a kernel that goes down the columns of a matrix. One vector takes a line of each row, and
// memory answers single lines of many rows slowly; its sums also wait for each other. What the vectors have in common (loops, row numbers) is
// emitted once, the rest once for each. If lanes differ about a condition, the vectors go one by one instead.

// maxJam is how many vectors go together, if their sums have room in registers.
const maxJam = 8

// jamWidth returns how many vectors of invocations go together, 1 if that is not possible or not worth it.
func (g *generator) jamWidth() int {
	if g.lanes == 1 || g.k.Invocations()%(g.lanes*maxJam) != 0 {
		return 1
	}
	j := jamCheck{g: g, ok: true}
	j.block(g.k.Body, 0)
	switch {
	case !j.ok || !j.columns:
		return 1
	case j.inLoops <= 16:
		return maxJam
	case j.inLoops <= 48:
		return maxJam / 2
	}
	return 1
}

// jamCheck looks for what jamming cannot do: conditions that lanes may differ about where vectors could not start again, because they have stored
// something or are in a loop.
type jamCheck struct {
	g       *generator
	ok      bool
	columns bool // a loop loads elements that differ between lanes
	stored  bool
	inLoops int // instructions in loops that are emitted for each vector
}

func (j *jamCheck) block(b *ir.Block, loops int) {
	for _, in := range b.Instrs {
		if !j.g.live[in.ID] {
			continue
		}
		uniform := j.g.uniform[in.ID]
		if loops > 0 && (!uniform || in.Op == ir.OpSet) {
			j.inLoops++
		}
		switch in.Op {
		case ir.OpStore:
			j.stored = true
		case ir.OpLoad:
			j.columns = j.columns || loops > 0 && !uniform
		case ir.OpFor:
			for _, arg := range in.Args {
				j.ok = j.ok && j.g.uniform[arg.ID]
			}
			j.block(in.Blocks[0], loops+1)
			continue
		case ir.OpIf:
			if !j.g.uniform[in.Args[0].ID] {
				j.ok = j.ok && loops == 0 && !j.stored && len(in.Blocks[1].Instrs) == 0
			}
		}
		for _, inner := range in.Blocks {
			j.block(inner, loops)
		}
	}
}

// jam is the state of the generator while it emits for several vectors.
type jam struct {
	vals   [][]*value // of each vector, in place of the generator's
	blocks []vreg     // and its number in the workgroup
	single *label     // where vectors go one by one
}

// jammed emits the kernel for several vectors, and a jump to next behind it, if there are so many left; else, or if lanes differ about a condition, what follows is run.
func (g *generator) jammed(width int, next *label) {
	j := &jam{single: &label{}}
	block := g.vars[varBlock]
	g.control(func(a *asm, r []int) {
		a.lea(true, tempG, at(r[0], int32(width)))
		a.rm(opCMP, true, tempG, at(frameReg, frameEnd))
		a.jcc(ccA, j.single.number(a))
	}, block)
	vals := g.vals
	g.inner(func() {
		for i := range width {
			b := block
			if i > 0 {
				b = g.generalBinary(ir.OpAdd, true, block, value{place: atConst, bits: uint64(i)})
			}
			j.blocks = append(j.blocks, b)
			j.vals = append(j.vals, make([]*value, len(vals)))
		}
		g.jam = j
		g.emitFor(0)
		g.jamBlock(g.k.Body)
	})
	g.jam, g.vals, g.vars[varBlock] = nil, vals, block
	g.emit(ins{def: block, uses: []vreg{block}, tied: true, effect: true, emit: func(a *asm, r []int) { a.ri(opADD, true, r[0], int32(width-1)) }})
	g.jump(next)
	g.placeLabel(j.single)
}

// emitFor makes vector i the one that is emitted for.
func (g *generator) emitFor(i int) {
	g.vals, g.vars[varBlock] = g.jam.vals[i], g.jam.blocks[i]
}

// jamBlock emits a block: runs of instructions without control flow for one vector after the other.
func (g *generator) jamBlock(b *ir.Block) {
	run := make([]*ir.Instr, 0, len(b.Instrs))
	flush := func() {
		for i := range g.jam.vals {
			g.emitFor(i)
			for _, in := range run {
				if i > 0 && g.uniform[in.ID] && in.Op != ir.OpStore && in.Op != ir.OpSet {
					continue // it is bound for all
				}
				g.instr(in)
			}
		}
		g.emitFor(0)
		run = run[:0]
	}
	for _, in := range b.Instrs {
		switch {
		case g.err != nil:
			return
		case !g.live[in.ID]:
		case in.Op == ir.OpIf && !g.uniform[in.Args[0].ID]:
			flush()
			for i := range g.jam.vals {
				g.emitFor(i)
				g.unlessAll(g.maskOf(in.Args[0]), g.jam.single)
			}
			g.emitFor(0)
			g.inner(func() { g.jamBlock(in.Blocks[0]) })
		case in.Op == ir.OpIf || in.Op == ir.OpFor:
			flush()
			g.instr(in)
		case in.Op == ir.OpSet && g.uniform[in.Args[0].ID]: // what was read of the variable before must be used by all before
			flush()
			g.instr(in)
		default:
			run = append(run, in)
		}
	}
	flush()
}

// unlessAll jumps if not all lanes of a mask are set.
func (g *generator) unlessAll(m vreg, l *label) {
	o := opKORTESTW
	if g.lanes == 8 {
		o = opKORTESTB
	}
	g.control(func(a *asm, r []int) {
		a.k2(o, r[0], r[0])
		a.jcc(ccAE, l.number(a))
	}, m)
}

// rowsAhead is how many rows before its use memory is asked for: less than a cache has places for lines at multiples of a page.
const rowsAhead = 8

// prefetchRow asks for what a load in a loop down columns will want some rounds later, if its index has the form x + counter*stride.
func (g *generator) prefetchRow(in *ir.Instr, v value) {
	stride := strideOf(in.Args[0])
	if stride == nil || !isGeneral(g.val(stride)) {
		return
	}
	m, r := in.Mem, g.general(stride)
	bytes := uint64(rowsAhead * m.Kind.Size())
	ahead := g.alt(altKey{reg: r, bits: bytes, form: altAhead}, g.val(stride).level, func() vreg {
		return g.op(general, func(a *asm, r []int) { a.imulImm(true, r[0], r[1], int32(bytes)) }, r)
	})
	g.effect(func(a *asm, r []int) {
		a.lea(true, tempG, element(a, m, r[0]))
		a.prefetch(memory{base: tempG, index: r[1], scale: 1})
	}, v.reg, ahead)
}

// strideOf returns the stride of an index x + counter*stride, nil for other forms.
func strideOf(index ir.Value) ir.Value {
	if index.Op != ir.OpAdd {
		return nil
	}
	for _, p := range index.Args {
		if p.Op != ir.OpMul {
			continue
		}
		for i, f := range p.Args {
			if f.Op == ir.OpLoopVar {
				return p.Args[1-i]
			}
		}
	}
	return nil
}
