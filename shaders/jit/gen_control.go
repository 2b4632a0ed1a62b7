package jit

import "github.com/anygpu/anygpu/shaders/ir"

// state emits variables, memory and control flow.
func (g *generator) state(in *ir.Instr) {
	switch in.Op {
	case ir.OpVar:
		g.variable(in)
	case ir.OpGet:
		v := g.val(in.Args[0])
		if v.level = g.level; !g.alias[in.ID] {
			d := g.newReg(g.class[v.reg])
			g.move(d, v.reg)
			v.reg = d
		}
		g.bind(in, v)
	case ir.OpSet:
		g.set(in)
	case ir.OpLoad:
		g.bind(in, g.load(in))
	case ir.OpStore:
		g.store(in)
	case ir.OpIf:
		g.branch(in)
	case ir.OpFor:
		g.loop(in)
	default:
		g.fail("%s", in.Op)
	}
}

// variable gives a variable a register. A uniform integer is in a general register, so is a uniform truth value.
func (g *generator) variable(in *ir.Instr) {
	kind := in.Type.Kind
	v := value{place: atVector, level: g.level}
	switch scalar := in.Type.Lanes == 1 && g.uniform[in.ID]; {
	case scalar && !kind.IsFloat():
		v.place, v.reg = atGeneral, g.newReg(general)
	case kind == ir.Bool:
		v.place, v.reg = atMask, g.newReg(mask)
	default:
		v.reg = g.newReg(vector)
	}
	g.move(v.reg, g.source(in.Args[0], v.place))
	g.bind(in, v)
}

// source returns a value in a register of the class of a place.
func (g *generator) source(in ir.Value, p place) vreg {
	switch p {
	case atGeneral:
		return g.general(in)
	case atMask:
		return g.maskOf(in)
	}
	return g.vector(in)
}

func (g *generator) set(in *ir.Instr) {
	v := g.val(in.Args[0])
	x := g.source(in.Args[1], v.place)
	if g.mask == 0 || v.place == atGeneral {
		g.move(v.reg, x)
		return
	}
	if v.place == atMask { // (v and not mask) or (x and mask)
		keep := g.op(mask, func(a *asm, r []int) { a.k3(opKANDN, r[0], r[1], r[2]) }, g.mask, v.reg)
		take := g.op(mask, func(a *asm, r []int) { a.k3(opKAND, r[0], r[1], r[2]) }, g.mask, x)
		g.emit(ins{def: v.reg, uses: []vreg{keep, take}, emit: func(a *asm, r []int) { a.k3(opKOR, r[0], r[1], r[2]) }})
		return
	}
	o := vMOVAPS.sized(elementSize(in.Args[1].Type.Kind))
	l := g.length(in.Args[1].Type)
	g.emit(ins{def: v.reg, uses: []vreg{v.reg, x, g.mask}, tied: true, emit: func(a *asm, r []int) {
		a.rrr(o, form{length: l, mask: r[3]}, r[0], 0, r[2])
	}})
}

// label is a place in the code that is known when instructions are emitted.
type label struct{ n int }

func (l *label) number(a *asm) int {
	if l.n == 0 {
		l.n = a.newLabel() + 1
	}
	return l.n - 1
}

func (g *generator) placeLabel(l *label) { g.control(func(a *asm, _ []int) { a.place(l.number(a)) }) }
func (g *generator) jump(l *label)       { g.control(func(a *asm, _ []int) { a.jmp(l.number(a)) }) }

// jumpUnless jumps if a uniform condition does not hold.
func (g *generator) jumpUnless(cond ir.Value, l *label) {
	if v := g.val(cond); v.place == atGeneral && cond.Op.IsCompare() && cond.Args[0].Type.Kind != ir.Bool {
		cc, x, y := g.conditionOf(cond)
		wide := cond.Args[0].Type.Kind == ir.I64
		g.control(func(a *asm, r []int) {
			a.rr(opCMP, wide, r[0], r[1])
			a.jcc(cc^1, l.number(a))
		}, x, y)
		return
	}
	g.control(func(a *asm, r []int) {
		a.rr(opTEST, false, r[0], r[0])
		a.jcc(ccE, l.number(a))
	}, g.general(cond))
}

func (g *generator) branch(in *ir.Instr) {
	cond := in.Args[0]
	then, other := in.Blocks[0], in.Blocks[1]
	if g.lanes == 1 || g.uniform[cond.ID] {
		if v := g.val(cond); v.place == atConst {
			b := then
			if v.bits == 0 {
				b = other
			}
			g.inner(func() { g.block(b) })
			return
		}
		end, otherwise := &label{}, &label{}
		g.jumpUnless(cond, otherwise)
		g.inner(func() { g.block(then) })
		if len(other.Instrs) > 0 {
			g.jump(end)
		}
		g.placeLabel(otherwise)
		if len(other.Instrs) > 0 {
			g.inner(func() { g.block(other) })
			g.placeLabel(end)
		}
		return
	}
	g.divergent(g.maskOf(cond), func() { g.block(then) }, func() { g.block(other) }, len(other.Instrs) > 0)
}

// maxClones bounds the instructions of a kernel up to which a block is also emitted for the case that all lanes take it.
const maxClones = 6000

// divergent emits blocks that lanes differ about. If all lanes are active there is also code for the case that all take the same.
func (g *generator) divergent(k vreg, then, other func(), hasOther bool) {
	lanes, outer := g.lanes, g.mask
	end, mixed, none := &label{}, &label{}, &label{}
	test := func(cc byte, l *label, m vreg) {
		g.control(func(a *asm, r []int) {
			o := opKORTESTW
			if lanes == 8 {
				o = opKORTESTB
			}
			a.k2(o, r[0], r[0])
			a.jcc(cc, l.number(a))
		}, m)
	}
	masked := func(f func(), m vreg) {
		g.mask = m
		g.inner(f)
		g.mask = outer
	}
	if outer == 0 && g.size < maxClones {
		test(ccAE, mixed, k) // not all ones
		g.inner(then)
		g.jump(end)
		g.placeLabel(mixed)
	}
	not := func() vreg {
		if outer == 0 {
			return g.op(mask, func(a *asm, r []int) { a.k2(opKNOT, r[0], r[1]); clip(a, lanes, r[0]) }, k)
		}
		return g.op(mask, func(a *asm, r []int) { a.k3(opKANDN, r[0], r[1], r[2]) }, k, outer)
	}
	if outer != 0 {
		k0 := k
		k = g.op(mask, func(a *asm, r []int) { a.k3(opKAND, r[0], r[1], r[2]) }, k0, outer)
	}
	test(ccE, none, k)
	masked(then, k)
	if !hasOther {
		g.placeLabel(none)
		g.placeLabel(end)
		return
	}
	g.placeLabel(none)
	m := not()
	test(ccE, end, m)
	masked(other, m)
	g.placeLabel(end)
}

// clip clears the bits of a mask beyond the lanes.
func clip(a *asm, lanes, k int) {
	if lanes == 8 {
		a.k2(opKToGPR, tempG, k)
		a.ri(opAND, false, tempG, 0xff)
		a.k2(opKFromGPR, k, tempG)
	}
}

// open starts a loop: what f emits is its body, on the next level. The loop's last instruction is emitted by back, with the label of its start.
func (g *generator) open(f func(), back func(start *label, l *loopRange)) {
	g.loops = append(g.loops[:g.level], openLoop{before: g.cur.nested(), owner: g.scope})
	start, l := &label{}, &loopRange{start: -1, end: -1}
	g.emit(ins{effect: true, loop: l, emit: func(a *asm, _ []int) { a.place(start.number(a)) }})
	g.level++
	g.inner(func() {
		f()
		back(start, l)
	})
	g.level--
	g.loops = g.loops[:g.level]
}

func (g *generator) loop(in *ir.Instr) {
	if g.lanes > 1 && !(g.uniform[in.Args[0].ID] && g.uniform[in.Args[1].ID] && g.uniform[in.Args[2].ID]) {
		g.divergentLoop(in)
		return
	}
	body := in.Blocks[0]
	counter := body.Instrs[0]
	kind := counter.Type.Kind
	hi, step := g.general(in.Args[1]), g.val(in.Args[2])
	if !isGeneral(step) {
		step = value{place: atGeneral, reg: g.general(in.Args[2]), level: step.level}
	}
	i := g.newReg(general)
	g.move(i, g.general(in.Args[0]))
	less, notLess := byte(ccB), byte(ccAE)
	if kind == ir.I32 {
		less, notLess = ccL, ccGE
	}
	end := &label{}
	g.control(func(a *asm, r []int) {
		a.rr(opCMP, false, r[0], r[1])
		a.jcc(notLess, end.number(a))
	}, i, hi)
	g.open(func() {
		g.bind(counter, value{place: atGeneral, reg: i, level: g.level})
		g.block(&ir.Block{Instrs: body.Instrs[1:]})
	}, func(start *label, l *loopRange) {
		// A counter that does not grow would never end.
		wrong := byte(ccBE)
		if kind == ir.I32 {
			wrong = ccLE
		}
		var next vreg
		next = g.generalBinary(ir.OpAdd, false, i, step)
		if fitsImm(step, false) && int32(uint32(step.bits)) > 0 && kind == ir.U32 {
			g.effect(func(a *asm, r []int) {
				a.rr(opCMP, false, r[0], r[1])
				g.fault(a, ccB, in, faultEndless, -1)
			}, next, i)
		} else {
			g.effect(func(a *asm, r []int) {
				a.rr(opCMP, false, r[0], r[1])
				g.fault(a, wrong, in, faultEndless, -1)
			}, next, i)
		}
		g.move(i, next)
		g.emit(ins{effect: true, loop: l, uses: []vreg{i, hi}, emit: func(a *asm, r []int) {
			a.rr(opCMP, false, r[0], r[1])
			a.jcc(less, start.number(a))
		}})
	})
	g.placeLabel(end)
}

// divergentLoop is a loop that lanes leave at different times. Once a lane has left it stays out.
func (g *generator) divergentLoop(in *ir.Instr) {
	body := in.Blocks[0]
	counter := body.Instrs[0]
	l := lengthOf(4 * g.lanes)
	compare := vPCMPUD
	if counter.Type.Kind == ir.I32 {
		compare = vPCMPD
	}
	lo, hi, step := g.vector(in.Args[0]), g.vector(in.Args[1]), g.vector(in.Args[2])
	i := g.newReg(vector)
	g.move(i, lo)
	active := g.activeCopy()
	outer := g.mask
	end := &label{}
	test := func() { // active lanes whose counter is below the bound go on
		g.emit(ins{def: active, uses: []vreg{active, i, hi}, tied: true, effect: true, emit: func(a *asm, r []int) {
			a.rrr(compare, form{length: l, mask: r[0]}, r[0], r[2], r[3], cmpLT)
		}})
	}
	g.open(func() {
		test()
		g.control(func(a *asm, r []int) {
			a.k2(opKORTESTW, r[0], r[0])
			a.jcc(ccE, end.number(a))
		}, active)
		g.bind(counter, value{place: atVector, reg: i, level: g.level})
		g.mask = active
		g.block(&ir.Block{Instrs: body.Instrs[1:]})
		g.mask = outer
	}, func(start *label, lr *loopRange) {
		next := g.three(vPADDD, l, i, operand{reg: step})
		wrong := g.op(mask, func(a *asm, r []int) {
			a.rrr(compare, form{length: l, mask: r[3]}, r[0], r[1], r[2], cmpLE)
		}, next, i, active)
		g.effect(func(a *asm, r []int) {
			a.k2(opKORTESTW, r[0], r[0])
			g.faultLanes(a, in, faultEndless, -1, r[0])
		}, wrong)
		g.move(i, next)
		g.emit(ins{effect: true, loop: lr, uses: []vreg{active, i, hi, step}, emit: func(a *asm, _ []int) { a.jmp(start.number(a)) }})
	})
	g.placeLabel(end)
}
