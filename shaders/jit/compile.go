package jit

import (
	"github.com/anygpu/anygpu/shaders/ir"
)

// machineCode is the code of a kernel.
type machineCode struct {
	code   []byte
	lanes  int
	blocks int        // vectors of invocations, or invocations, of a workgroup
	frame  int        // bytes
	jam    int        // vectors of invocations that go together
	kernel *ir.Kernel // lowered
}

// NativeMath64 returns the math functions of F64 that have instructions. The others are those of ir.Lower.
func NativeMath64() ir.MathSet {
	return ir.MathOps(ir.OpSqrt, ir.OpFloor, ir.OpCeil, ir.OpTrunc, ir.OpRound)
}

// caps is what the generator can do: no math functions but those with instructions or short sequences.
func caps(k *ir.Kernel) ir.Caps {
	c := ir.InterpCaps()
	c.NativeMath = ir.MathOps(ir.OpSqrt, ir.OpExp, ir.OpFloor, ir.OpCeil, ir.OpTrunc, ir.OpRound)
	c.NativeMath64 = NativeMath64()
	c.FMA = true
	wide := false
	k.Walk(func(in *ir.Instr) {
		wide = wide || is64(in.Type.Kind) || in.Mem != nil && is64(in.Mem.Kind)
	})
	if wide {
		c.MaxLanes = 8
	}
	return c
}

// generate makes the machine code of a kernel.
func generate(k *ir.Kernel) (*machineCode, error) {
	k, err := ir.Lower(k, caps(k))
	if err != nil {
		return nil, unsupported("%v", err)
	}
	an, err := analyze(k)
	if err != nil {
		return nil, err
	}
	g := &generator{analysis: an, class: make([]regClass, 1), root: &code{}, vals: make([]*value, k.NumInstr), alts: map[altKey]vreg{}, scope: &scope{}}
	g.cur = g.root
	g.entry()
	if g.err != nil {
		return nil, g.err
	}
	a := &asm{}
	list := joinCopies(g.root.flatten(nil), len(g.class))
	frame := assemble(a, list, g.class, slotsAt(len(k.Globals())))
	for _, f := range g.stubs {
		f(a)
	}
	return &machineCode{kernel: k, code: a.finish(), lanes: an.lanes, blocks: g.blocks(), frame: frame, jam: g.jamWidth()}, nil
}

func (g *generator) blocks() int { return (g.k.Invocations() + g.lanes - 1) / g.lanes }

// entry emits the loops over workgroups and over the invocations of each.
func (g *generator) entry() {
	frame := func(r vreg, off int32) {
		g.emit(ins{def: r, emit: func(a *asm, r []int) { a.load(8, r[0], at(frameReg, off)) }})
	}
	g.vars = make([]vreg, numVars)
	for i := range g.vars {
		g.vars[i] = g.newReg(general)
	}
	group, block := g.vars[varGroup], g.vars[varBlock]
	back := func(counter vreg, end int32) func(start *label, l *loopRange) {
		return func(start *label, l *loopRange) {
			g.emit(ins{def: counter, uses: []vreg{counter}, tied: true, effect: true, emit: func(a *asm, r []int) { a.ri(opADD, true, r[0], 1) }})
			g.emit(ins{effect: true, loop: l, uses: []vreg{counter}, emit: func(a *asm, r []int) {
				a.rm(opCMP, true, r[0], at(frameReg, end))
				a.jcc(ccB, start.number(a))
			}})
		}
	}
	frame(group, frameGroup)
	g.open(func() {
		frame(block, frameFirst)
		g.open(g.invocations, back(block, frameEnd))
	}, back(group, frameGroupEnd))
	g.effect(func(a *asm, _ []int) { a.ret() })
}

// invocations emits the body for a vector of invocations. The last of a workgroup may be incomplete.
func (g *generator) invocations() {
	rest := g.k.Invocations() % g.lanes
	if rest == 0 {
		next := &label{}
		if width := g.jamWidth(); width > 1 {
			g.jammed(width, next)
		}
		g.inner(func() { g.block(g.k.Body) })
		g.placeLabel(next)
		return
	}
	last := int32(g.blocks() - 1)
	all := 1<<g.lanes - 1
	k := g.op(mask, func(a *asm, r []int) {
		a.movImm(tempG, uint64(all))
		a.movImm(tempG2, uint64(1<<rest-1))
		a.ri(opCMP, true, r[1], last)
		a.cmov(ccE, false, tempG, tempG2)
		a.k2(opKFromGPR, r[0], tempG)
	}, g.vars[varBlock])
	g.divergent(k, func() { g.block(g.k.Body) }, nil, false)
}

// joinCopies lets an instruction write its result to where it is copied, if nothing in between touches that.
func joinCopies(list []*ins, vregs int) []*ins {
	uses, defs := make([]int32, vregs), make([]int32, vregs)
	for _, i := range list {
		for _, u := range i.uses {
			uses[u]++
		}
		defs[i.def]++
	}
	touches := func(i *ins, v vreg) bool {
		for _, u := range i.uses {
			if u == v {
				return true
			}
		}
		return i.def == v
	}
	out := list[:0]
	for _, i := range list {
		out = append(out, i)
		if !i.copy || uses[i.uses[0]] != 1 || defs[i.uses[0]] != 1 {
			continue
		}
		src, dst := i.uses[0], i.def
		for p := len(out) - 2; p >= 0 && p > len(out)-64; p-- {
			c := out[p]
			if c.def == src {
				if !c.tied && !(c.early && touches(c, dst)) {
					c.def = dst
					out = out[:len(out)-1]
				}
				break
			}
			if c.loop != nil || c.control || touches(c, dst) {
				break
			}
		}
	}
	return out
}
