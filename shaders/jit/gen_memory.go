package jit

import "github.com/anygpu/anygpu/shaders/ir"

// Memory is checked at each access: an index that is not below the number of elements is a fault. Lanes that are not active do
// not access memory.

// load emits a load.
func (g *generator) load(in *ir.Instr) value {
	at := func(r vreg) value { return value{place: atVector, reg: r, level: g.level} }
	index := in.Args[0]
	v := g.val(index)
	switch {
	case in.Type.Lanes > 1:
		return at(g.loadLanes(in))
	case isGeneral(v) || g.lanes == 1:
		return g.loadScalar(in)
	case v.place == atAffine && v.step == 1:
		return at(g.loadNeighbours(in, v))
	}
	return at(g.gather(in))
}

// indexCheck emits the check of a uniform index for an access to n elements.
func (g *generator) indexCheck(in *ir.Instr, index vreg, n int, aligned bool) {
	binding := in.Mem.Index
	g.effect(func(a *asm, r []int) {
		if n == 1 {
			a.rm(opCMP, true, r[0], bufferElements(binding))
			g.fault(a, ccAE, in, faultBounds, r[0])
			return
		}
		a.lea(true, tempG, at(r[0], int32(n)))
		a.rm(opCMP, true, tempG, bufferElements(binding))
		g.fault(a, ccA, in, faultBounds, r[0])
		if aligned {
			a.testImm(r[0], n-1)
			g.fault(a, ccNE, in, faultAligned, r[0])
		}
	}, index)
}

// element returns the place in memory of an element, whose index is in a register; the buffer's address is loaded to a temporary register.
func element(a *asm, m *ir.Mem, index int) memory {
	a.load(8, tempG, bufferPointer(m.Index))
	return memory{base: tempG, index: index, scale: m.Kind.Size()}
}

// loadScalar loads one element for all lanes.
func (g *generator) loadScalar(in *ir.Instr) value {
	index := g.general(in.Args[0])
	g.indexCheck(in, index, 1, false)
	m := in.Mem
	size := m.Kind.Size()
	switch {
	case m.Kind == ir.F16:
		return value{place: atVector, level: g.level, reg: g.op(vector, func(a *asm, r []int) {
			a.load(2, tempG, element(a, m, r[1]))
			a.rrr(vMOVDfromR, form{}, r[0], 0, tempG)
			a.rrr(vCVTPH2PS, form{}, r[0], 0, r[0])
			a.rrr(vBROADCASTSS, form{length: len512}, r[0], 0, r[0])
		}, index)}
	case m.Kind.IsFloat():
		return value{place: atVector, level: g.level, reg: g.op(vector, func(a *asm, r []int) {
			a.rrm(vBROADCASTSS.sized(size), form{length: len512}, r[0], 0, element(a, m, r[1]))
		}, index)}
	}
	return value{place: atGeneral, level: g.level, reg: g.op(general, func(a *asm, r []int) { a.load(size, r[0], element(a, m, r[1])) }, index)}
}

// loadPlain loads the elements from a place on into the lanes of a vector.
func loadPlain(a *asm, kind ir.Kind, f form, d int, m memory) {
	switch kind {
	case ir.U8:
		a.rrm(vPMOVZXBD, f, d, 0, m)
	case ir.U16:
		a.rrm(vPMOVZXWD, f, d, 0, m)
	case ir.F16:
		a.rrm(vCVTPH2PS, f, d, 0, m)
	default:
		a.rrm(vMOVUPS.sized(kind.Size()), f, d, 0, m)
	}
}

// storePlain is the counterpart of loadPlain.
func storePlain(a *asm, kind ir.Kind, f form, s int, m memory) {
	switch kind {
	case ir.U8:
		a.rrm(vPMOVDB, f, s, 0, m)
	case ir.U16:
		a.rrm(vPMOVDW, f, s, 0, m)
	case ir.F16:
		a.rrm(vCVTPS2PH, f, s, 0, m, 0)
	default:
		a.rrm(vMOVUPSs.sized(kind.Size()), f, s, 0, m)
	}
}

// pairMask returns the mask of a vector of two lanes, which have no length of their own; 0 for more.
func (g *generator) pairMask(t ir.Type) []vreg {
	if t.Lanes != 2 || elementSize(t.Kind) == 8 {
		return nil
	}
	return []vreg{g.alt(altKey{bits: 3, form: altMask}, 0, func() vreg {
		return g.op(mask, func(a *asm, r []int) {
			a.movImm(tempG, 3)
			a.k2(opKFromGPR, r[0], tempG)
		})
	})}
}

// loadLanes loads a vector of the kernel.
func (g *generator) loadLanes(in *ir.Instr) vreg {
	index := g.general(in.Args[0])
	g.indexCheck(in, index, in.Type.Lanes, true)
	m, l := in.Mem, g.length(in.Type)
	return g.op(vector, func(a *asm, r []int) {
		f := form{length: l}
		if len(r) > 2 {
			f.mask, f.zero = r[2], true
		}
		loadPlain(a, m.Kind, f, r[0], element(a, m, r[1]))
	}, append([]vreg{index}, g.pairMask(in.Type)...)...)
}

// checkLanes emits the check of an index that differs between lanes.
func (g *generator) checkLanes(in *ir.Instr, index vreg) {
	l, binding := lengthOf(4*g.lanes), in.Mem.Index
	uses := []vreg{index}
	if g.mask != 0 {
		uses = append(uses, g.mask)
	}
	wrong := g.op(mask, func(a *asm, r []int) {
		f := form{length: l, broadcast: true}
		if len(r) > 2 {
			f.mask = r[2]
		}
		a.rrm(vPCMPUD, f, r[0], r[1], bufferElements(binding), cmpNLT)
	}, uses...)
	g.effect(func(a *asm, r []int) {
		a.k2(opKORTESTW, r[1], r[1])
		g.faultLanes(a, in, faultBounds, r[0], r[1])
	}, index, wrong)
}

// neighbours emits the check of an access to consecutive elements and returns the index of the first, and the mask if there is one. The
// index is extended with its sign: lanes in front of the first element, which are not active, have negative ones.
func (g *generator) neighbours(in *ir.Instr, v value) []vreg {
	if g.mask == 0 {
		g.indexCheck(in, v.reg, g.lanes, false)
		return []vreg{v.reg}
	}
	g.checkLanes(in, g.vectorOf(v, 4))
	return []vreg{g.op(general, func(a *asm, r []int) { a.rr(opMOVSX, true, r[0], r[1]) }, v.reg), g.mask}
}

func (g *generator) loadNeighbours(in *ir.Instr, v value) vreg {
	m, l := in.Mem, g.length(in.Type)
	if g.level > 2 {
		if g.jam == nil {
			g.prefetch(m, v)
		} else {
			g.prefetchRow(in, v)
		}
	}
	return g.op(vector, func(a *asm, r []int) {
		f := form{length: l}
		if len(r) > 2 {
			f.mask, f.zero = r[2], true
		}
		loadPlain(a, m.Kind, f, r[0], element(a, m, r[1]))
	}, g.neighbours(in, v)...)
}

// prefetchLines is how many lines of memory are asked for at once, a power of 2.
const prefetchLines = 8

// prefetch asks for the memory beside a load in a loop. Such a loop goes down columns: the next vectors of invocations want what lies beside, and lines
// that are asked for together come much faster from memory than one by one, with those of other rows between them.
func (g *generator) prefetch(m *ir.Mem, v value) {
	g.effect(func(a *asm, r []int) {
		skip := a.newLabel()
		a.testImm(r[1], prefetchLines*64/(g.lanes*m.Kind.Size())-1)
		a.jcc(ccNE, skip)
		at := element(a, m, r[0])
		for i := range prefetchLines {
			at.disp = int32(64 * (i + 1))
			a.prefetch(at)
		}
		a.place(skip)
	}, v.reg, g.vars[varBlock])
}

// activeCopy returns a copy of the mask that an instruction may clear.
func (g *generator) activeCopy() vreg {
	d := g.newReg(mask)
	if g.mask != 0 {
		g.emit(ins{def: d, uses: []vreg{g.mask}, emit: func(a *asm, r []int) { a.k2(opKMOV, r[0], r[1]) }})
	} else {
		lanes := g.lanes
		g.emit(ins{def: d, emit: func(a *asm, r []int) {
			if lanes == 16 {
				a.k3(opKXNOR, r[0], r[0], r[0])
				return
			}
			a.movImm(tempG, 1<<lanes-1)
			a.k2(opKFromGPR, r[0], tempG)
		}})
	}
	return d
}

// gather loads an element for each lane.
func (g *generator) gather(in *ir.Instr) vreg {
	index := g.vector(in.Args[0])
	g.checkLanes(in, index)
	m, words := in.Mem, lengthOf(4*g.lanes)
	size := m.Kind.Size()
	fetch := func(o opcode, l byte, index vreg, scale int) vreg {
		d := g.newReg(vector)
		g.emit(ins{def: d, early: true, uses: []vreg{index, g.activeCopy()}, emit: func(a *asm, r []int) {
			a.load(8, tempG, bufferPointer(m.Index))
			a.rrr(vPXORD, form{length: len512}, r[0], r[0], r[0])
			a.vsib(o, form{length: l, mask: r[2]}, r[0], memory{base: tempG, index: r[1], scale: scale})
		}})
		return d
	}
	switch size {
	case 4:
		return fetch(vPGATHERDD, words, index, 4)
	case 8:
		return fetch(vPGATHERDD.wide(), len512, index, 8)
	}
	// There is no gather of narrow elements: the word that has the element is shifted.
	per := uint64(4 / size)
	word := g.three(vPANDD, words, index, constOperand(uint64(uint32(^(per-1))), 4))
	x := fetch(vPGATHERDD, words, word, size)
	n := g.three(vPANDD, words, index, constOperand(per-1, 4))
	n = g.three(vPSLLVD, words, n, constOperand(uint64(2+size), 4)) // times 8 or 16
	x = g.three(vPSRLVD, words, x, operand{reg: n})
	if m.Kind == ir.F16 {
		return g.two(vCVTPH2PS, words, g.twoReversed(vPMOVDW, words, x))
	}
	return g.three(vPANDD, words, x, constOperand(1<<(8*size)-1, 4))
}

// store emits a store.
func (g *generator) store(in *ir.Instr) {
	index, x := in.Args[0], in.Args[1]
	v := g.val(index)
	switch {
	case x.Type.Lanes > 1:
		r := g.general(index)
		g.indexCheck(in, r, x.Type.Lanes, true)
		m, l := in.Mem, g.length(x.Type)
		g.effect(func(a *asm, r []int) {
			f := form{length: l}
			if len(r) > 2 {
				f.mask = r[2]
			}
			storePlain(a, m.Kind, f, r[1], element(a, m, r[0]))
		}, append([]vreg{r, g.vector(x)}, g.pairMask(x.Type)...)...)
	case g.lanes == 1 || isGeneral(v) && g.uniform[x.ID]:
		g.storeScalar(in)
	case v.place == atAffine && v.step == 1:
		g.storeNeighbours(in, v)
	default:
		g.scatter(in)
	}
}

func (g *generator) storeScalar(in *ir.Instr) {
	m, x := in.Mem, in.Args[1]
	index := g.general(in.Args[0])
	g.indexCheck(in, index, 1, false)
	size := m.Kind.Size()
	v := g.val(x)
	switch {
	case m.Kind == ir.F16:
		g.effect(func(a *asm, r []int) {
			a.rrr(vCVTPS2PH, form{}, r[1], 0, tempZ, 0)
			a.rrr(vMOVDtoR, form{}, tempZ, 0, tempG2)
			a.store(2, element(a, m, r[0]), tempG2)
		}, index, g.vector(x))
	case v.place == atVector && size >= 4:
		g.effect(func(a *asm, r []int) { storeScalar(a, size, element(a, m, r[0]), r[1]) }, index, v.reg)
	default:
		g.effect(func(a *asm, r []int) { a.store(size, element(a, m, r[0]), r[1]) }, index, g.general(x))
	}
}

func (g *generator) storeNeighbours(in *ir.Instr, v value) {
	m, x := in.Mem, in.Args[1]
	l := g.length(x.Type)
	uses := g.neighbours(in, v)
	g.effect(func(a *asm, r []int) {
		f := form{length: l}
		if len(r) > 2 {
			f.mask = r[2]
		}
		storePlain(a, m.Kind, f, r[0], element(a, m, r[1]))
	}, append([]vreg{g.vector(x)}, uses...)...)
}

// scatter stores an element of each lane, the first lane's first.
func (g *generator) scatter(in *ir.Instr) {
	index, x, m := g.vector(in.Args[0]), g.vector(in.Args[1]), in.Mem
	g.checkLanes(in, index)
	size := m.Kind.Size()
	words := lengthOf(4 * g.lanes)
	if size >= 4 {
		o, l := vPSCATTERDD, words
		if size == 8 {
			o, l = o.wide(), len512
		}
		g.effect(func(a *asm, r []int) {
			a.load(8, tempG, bufferPointer(m.Index))
			a.vsib(o, form{length: l, mask: r[2]}, r[1], memory{base: tempG, index: r[0], scale: size})
		}, index, x, g.activeCopy())
		return
	}
	if m.Kind == ir.F16 {
		x = g.two(vPMOVZXWD, words, g.twoReversed(vCVTPS2PH, words, x, 0))
	}
	g.effect(func(a *asm, r []int) {
		a.rrm(vMOVUPSs, form{length: len512}, r[0], 0, at(frameReg, frameScratch))
		a.rrm(vMOVUPSs, form{length: len512}, r[1], 0, at(frameReg, frameScratch+64))
		a.k2(opKToGPR, tempG, r[2])
		next, done := a.newLabel(), a.newLabel()
		a.place(next)
		a.rr(opTEST, false, tempG, tempG)
		a.jcc(ccE, done)
		a.tzcnt(tempG2, tempG)
		a.blsr(tempG, tempG)
		a.load(4, r12, memory{base: frameReg, index: tempG2, scale: 4, disp: frameScratch})
		a.load(4, tempG3, memory{base: frameReg, index: tempG2, scale: 4, disp: frameScratch + 64})
		a.load(8, r13, bufferPointer(m.Index))
		a.store(size, memory{base: r13, index: r12, scale: size}, tempG3)
		a.jmp(next)
		a.place(done)
	}, index, x, g.activeCopy())
}
