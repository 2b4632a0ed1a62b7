package jit

import (
	"github.com/anygpu/anygpu/shaders/ir"
)

// place says where a value is.
type place uint8

const (
	atConst   place = iota // the same bits in every lane
	atParam                // a scalar parameter, in the frame
	atGeneral              // uniform, in a general register; Bool as 0 or 1
	atAffine               // U32 or I32: a general register for the first lane, and so much more for each next one
	atVector               // an element for each lane; narrow kinds in 32 bits. Scalars of invocations that run one by one are in lane 0
	atMask                 // Bool: a bit for each lane
)

// value is where an instruction's result is.
type value struct {
	place place
	reg   vreg
	step  uint32 // atAffine
	bits  uint64 // atConst
	param int
	level int
}

// scope is what is emitted in one block: what it defines is not visible after it.
type scope struct {
	vals []int
	alts []altKey
}

// altKey is another form of a value that was made once.
type altKey struct {
	reg   vreg
	bits  uint64
	form  uint8
	size  uint8
	level int // of constants in general registers, which are made where they are used
}

const (
	altVector   = iota // of a general register or affine value; of the constant bits
	altGeneral         // of a vector's lane 0, a parameter (bits), a constant
	altMask            // of a general register
	altAhead           // of a general register: so many times it (bits)
	altQuotient        // of general registers, the divisor in bits
)

// openLoop is a loop whose body is being emitted.
type openLoop struct {
	before *code // the instructions in front of it
	owner  *scope
}

// generator makes the instructions of a kernel. Level 0 is once a call, level 1 once a workgroup, level 2 once a vector of
// invocations; each loop adds one. What does not depend on a level is emitted in front of its loop.
type generator struct {
	*analysis
	class []regClass // of virtual registers
	root  *code
	cur   *code
	scope *scope
	level int
	loops []openLoop // loops[l] is the loop that level l+1 is the body of
	vals  []*value
	alts  map[altKey]vreg
	mask  vreg // of active lanes; 0 if all are
	err   error
	stubs []func(a *asm) // code of faults
	vars  []vreg
	size  int // instructions emitted

	jam *jam // nil unless several vectors are emitted for at once

}

func (g *generator) fail(format string, args ...any) {
	if g.err == nil {
		g.err = unsupported(format, args...)
	}
}

func (g *generator) newReg(c regClass) vreg {
	g.class = append(g.class, c)
	return vreg(len(g.class) - 1)
}

// emit appends an instruction.
func (g *generator) emit(i ins) { g.cur.add(&i); g.size++ }

// op appends an instruction with a new result.
func (g *generator) op(c regClass, emit func(a *asm, r []int), uses ...vreg) vreg {
	d := g.newReg(c)
	g.emit(ins{def: d, uses: uses, emit: emit})
	return d
}

// effect appends an instruction that has no result.
func (g *generator) effect(emit func(a *asm, r []int), uses ...vreg) {
	g.emit(ins{uses: uses, emit: emit, effect: true})
}

// control appends a jump or the target of one.
func (g *generator) control(emit func(a *asm, r []int), uses ...vreg) {
	g.emit(ins{uses: uses, emit: emit, effect: true, control: true})
}

// at emits f on an outer level.
func (g *generator) at(level int, f func()) {
	if level >= g.level {
		f()
		return
	}
	cur, scope, now := g.cur, g.scope, g.level
	l := g.loops[level]
	g.cur, g.scope, g.level = l.before, l.owner, level
	f()
	g.cur, g.scope, g.level = cur, scope, now
}

// bind records where a value is, until its block ends.
func (g *generator) bind(in ir.Value, v value) {
	if g.jam != nil && g.uniform[in.ID] {
		for _, vals := range g.jam.vals {
			vals[in.ID] = &v
		}
	}
	g.vals[in.ID] = &v
	g.scope.vals = append(g.scope.vals, in.ID)
}

// inner emits f in a scope of its own.
func (g *generator) inner(f func()) {
	old := g.scope
	s := &scope{}
	g.scope = s
	f()
	for _, id := range s.vals {
		g.vals[id] = nil
		if g.jam != nil {
			for _, vals := range g.jam.vals {
				vals[id] = nil
			}
		}
	}
	for _, k := range s.alts {
		delete(g.alts, k)
	}
	g.scope = old
}

// alt returns another form of a value, which f makes on the value's level if it is not there.
func (g *generator) alt(k altKey, level int, f func() vreg) vreg {
	if r, ok := g.alts[k]; ok {
		return r
	}
	var r vreg
	g.at(level, func() {
		r = f()
		g.alts[k] = r
		g.scope.alts = append(g.scope.alts, k)
	})
	return r
}

// size returns the bytes of an element in a vector register.
func elementSize(k ir.Kind) int {
	if is64(k) {
		return 8
	}
	return 4
}

// length returns the vector length for values of type t.
func (g *generator) length(t ir.Type) byte {
	n := g.lanes
	if n == 1 {
		n = t.Lanes
	}
	return lengthOf(n * elementSize(t.Kind))
}

func lengthOf(bytes int) byte {
	switch {
	case bytes > 32:
		return len512
	case bytes > 16:
		return len256
	}
	return len128
}

func (g *generator) val(in ir.Value) value {
	v := g.vals[in.ID]
	if v == nil {
		g.fail("value %d is not there", in.ID)
		return value{}
	}
	return *v
}

// operand is a vector operand: a register, or an element in memory that is broadcast.
type operand struct {
	reg  vreg
	mem  func(a *asm) memory
	size int
}

// operand returns v as the last operand of a vector instruction.
func (g *generator) operand(in ir.Value) operand {
	v, size := g.val(in), elementSize(in.Type.Kind)
	switch v.place {
	case atConst:
		return operand{mem: func(a *asm) memory { return a.word(v.bits, size) }, size: size}
	case atParam:
		return operand{mem: func(*asm) memory { return at(frameReg, int32(frameParams+4*v.param)) }, size: size}
	}
	return operand{reg: g.vector(in)}
}

// vector returns v in a vector register.
func (g *generator) vector(in ir.Value) vreg { return g.vectorOf(g.val(in), elementSize(in.Type.Kind)) }

func (g *generator) vectorOf(v value, size int) vreg {
	switch v.place {
	case atVector:
		return v.reg
	case atConst:
		return g.alt(altKey{bits: v.bits, form: altVector, size: uint8(size)}, 0, func() vreg {
			if v.bits == 0 {
				return g.op(vector, func(a *asm, r []int) { a.rrr(vPXORD, form{length: len512}, r[0], r[0], r[0]) })
			}
			return g.op(vector, func(a *asm, r []int) {
				a.rrm(vBROADCASTSS.sized(size), form{length: len512}, r[0], 0, a.word(v.bits, size))
			})
		})
	case atParam:
		return g.alt(altKey{bits: uint64(v.param) + 1<<40, form: altVector, size: uint8(size)}, 0, func() vreg {
			return g.op(vector, func(a *asm, r []int) {
				a.rrm(vBROADCASTSS, form{length: len512}, r[0], 0, at(frameReg, int32(frameParams+4*v.param)))
			})
		})
	case atGeneral, atAffine:
		return g.alt(altKey{reg: v.reg, bits: uint64(v.step), form: altVector, size: uint8(size)}, v.level, func() vreg {
			f := form{length: len512}
			o := vPBROADCASTD
			o.w = bit(size == 8)
			x := g.op(vector, func(a *asm, r []int) { a.rrr(o, f, r[0], 0, r[1]) }, v.reg)
			if v.place == atGeneral {
				return x
			}
			return g.op(vector, func(a *asm, r []int) { a.rrm(vPADDD, f, r[0], r[1], a.iota(v.step)) }, x)
		})
	}
	g.fail("a truth value as a vector")
	return g.newReg(vector)
}

// iota returns a vector of multiples of step.
func (a *asm) iota(step uint32) memory {
	k := constant{uint64(step), 64}
	off, ok := a.words[k]
	if !ok {
		b := make([]byte, 0, 64)
		for i := range uint32(16) {
			b = appendWord(b, i*step)
		}
		off = a.table(b, 64)
		if a.words == nil {
			a.words = map[constant]int{}
		}
		a.words[k] = off
	}
	return memory{pool: true, index: -1, disp: int32(off)}
}

func appendWord(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// isGeneral reports whether v is uniform and can be had in a general register without leaving a vector register.
func isGeneral(v value) bool { return v.place == atConst || v.place == atParam || v.place == atGeneral }

// general returns a uniform value in a general register; of floats the bits.
func (g *generator) general(in ir.Value) vreg { return g.generalOf(g.val(in), in.Type.Kind) }

func (g *generator) generalOf(v value, k ir.Kind) vreg {
	switch v.place {
	case atGeneral:
		return v.reg
	case atConst:
		return g.alt(altKey{bits: v.bits, form: altGeneral, level: g.level}, g.level, func() vreg {
			return g.op(general, func(a *asm, r []int) { a.movImm(r[0], v.bits) })
		})
	case atParam:
		return g.alt(altKey{bits: uint64(v.param) + 1<<40, form: altGeneral}, 0, func() vreg {
			return g.op(general, func(a *asm, r []int) { a.load(4, r[0], at(frameReg, int32(frameParams+4*v.param))) })
		})
	case atVector:
		return g.alt(altKey{reg: v.reg, form: altGeneral}, v.level, func() vreg {
			o := vMOVDtoR
			o.w = bit(is64(k))
			return g.op(general, func(a *asm, r []int) { a.rrr(o, form{}, r[1], 0, r[0]) }, v.reg)
		})
	case atMask:
		return g.alt(altKey{reg: v.reg, form: altGeneral}, v.level, func() vreg {
			return g.op(general, func(a *asm, r []int) {
				a.k2(opKToGPR, r[0], r[1])
				a.ri(opAND, false, r[0], 1)
			}, v.reg)
		})
	}
	g.fail("a value that differs between invocations where one for all is needed")
	return g.newReg(general)
}

// maskOf returns a Bool in a mask register.
func (g *generator) maskOf(in ir.Value) vreg {
	v := g.val(in)
	switch v.place {
	case atMask:
		return v.reg
	case atConst:
		return g.alt(altKey{bits: v.bits, form: altMask}, 0, func() vreg {
			o := opKXNOR
			if v.bits == 0 {
				o = opKXOR
			}
			return g.op(mask, func(a *asm, r []int) { a.k3(o, r[0], r[0], r[0]) })
		})
	case atGeneral:
		return g.alt(altKey{reg: v.reg, form: altMask}, v.level, func() vreg {
			return g.op(mask, func(a *asm, r []int) {
				a.mov(false, tempG, r[1])
				a.unary(digitNeg, false, tempG)
				a.k2(opKFromGPR, r[0], tempG)
			}, v.reg)
		})
	}
	g.fail("a %s as a mask", in.Type)
	return g.newReg(mask)
}

// three emits a vector instruction of two operands.
func (g *generator) three(o opcode, length byte, x vreg, y operand, imm ...byte) vreg {
	return g.threeTo(vector, o, length, x, y, imm...)
}

func (g *generator) threeTo(c regClass, o opcode, length byte, x vreg, y operand, imm ...byte) vreg {
	if y.mem != nil {
		return g.op(c, func(a *asm, r []int) {
			a.rrm(o, form{length: length, broadcast: true}, r[0], r[1], y.mem(a), imm...)
		}, x)
	}
	return g.op(c, func(a *asm, r []int) { a.rrr(o, form{length: length}, r[0], r[1], r[2], imm...) }, x, y.reg)
}

// two emits a vector instruction of one operand.
func (g *generator) two(o opcode, length byte, x vreg, imm ...byte) vreg {
	return g.op(vector, func(a *asm, r []int) { a.rrr(o, form{length: length}, r[0], 0, r[1], imm...) }, x)
}

// twoReversed is two for instructions whose source is the register and whose result is the operand that can be memory.
func (g *generator) twoReversed(o opcode, length byte, x vreg, imm ...byte) vreg {
	return g.op(vector, func(a *asm, r []int) { a.rrr(o, form{length: length}, r[1], 0, r[0], imm...) }, x)
}

// move copies a register to another, which exists.
func (g *generator) move(d, s vreg) {
	i := ins{def: d, uses: []vreg{s}, copy: true}
	switch g.class[d] {
	case general:
		i.emit = func(a *asm, r []int) { a.mov(true, r[0], r[1]) }
	case vector:
		i.emit = func(a *asm, r []int) { moveVector(a, r[0], r[1]) }
	default:
		i.emit = func(a *asm, r []int) { a.k2(opKMOV, r[0], r[1]) }
	}
	g.emit(i)
}

func moveVector(a *asm, d, s int) {
	if d != s {
		a.rrr(vMOVAPS, form{length: len512}, d, 0, s)
	}
}

// pure reports whether an operation depends on its operands alone and has no effect.
func pure(op ir.Op) bool {
	switch op {
	case ir.OpVar, ir.OpGet, ir.OpSet, ir.OpLoad, ir.OpStore, ir.OpIf, ir.OpFor, ir.OpLoopVar, ir.OpBarrier:
		return false
	}
	return !op.IsAtomic()
}

func (g *generator) block(b *ir.Block) {
	if g.jam != nil {
		g.jamBlock(b)
		return
	}
	for _, in := range b.Instrs {
		if g.err != nil {
			return
		}
		if !g.live[in.ID] {
			continue
		}
		g.instr(in)
	}
}

func (g *generator) instr(in *ir.Instr) {
	if !pure(in.Op) {
		g.state(in)
		return
	}
	if g.vals[in.ID] == nil {
		level := g.levelOf(in)
		g.at(level, func() {
			v := g.compute(in)
			v.level = level
			g.bind(in, v)
		})
	}
	if in.Op == ir.OpDiv || in.Op == ir.OpRem {
		g.checkDivisor(in)
	}
}

// levelOf returns the level on which a value is computed.
func (g *generator) levelOf(in *ir.Instr) int {
	switch in.Op {
	case ir.OpConst, ir.OpParam, ir.OpNumGroups:
		return 0
	case ir.OpGroupID:
		return int(bit(in.Imm == 0))
	case ir.OpLocalID:
		if g.k.Local[in.Imm] == 1 {
			return 0
		}
		return 2
	case ir.OpGlobalID:
		if g.k.Local[in.Imm] == 1 {
			return int(bit(in.Imm == 0))
		}
		return 2
	}
	level := 0
	for _, arg := range in.Args {
		level = max(level, g.val(arg).level)
	}
	return level
}

// fault emits a jump, taken on cc, to code that reports a fault of in, with the index in a general register if there is one.
func (g *generator) fault(a *asm, cc byte, in *ir.Instr, k faultKind, index int) {
	l := a.newLabel()
	a.jcc(cc, l)
	g.stubs = append(g.stubs, func(a *asm) {
		a.place(l)
		if index >= 0 {
			a.store(8, at(frameReg, frameFaultIndex), index)
		}
		g.leave(a, in, k)
	})
}

// faultLanes is fault for an index in a vector register, of which the lanes in a mask register are wrong. The flags are
// those of a test of the mask.
func (g *generator) faultLanes(a *asm, in *ir.Instr, k faultKind, index, lanes int) {
	l := a.newLabel()
	a.jcc(ccNE, l)
	g.stubs = append(g.stubs, func(a *asm) {
		a.place(l)
		if index >= 0 {
			a.rrm(vMOVUPSs, form{length: len512}, index, 0, at(frameReg, frameScratch))
			a.k2(opKToGPR, tempG, lanes)
			a.tzcnt(tempG, tempG)
			a.load(4, tempG, memory{base: frameReg, index: tempG, scale: 4, disp: frameScratch})
			a.store(8, at(frameReg, frameFaultIndex), tempG)
		}
		g.leave(a, in, k)
	})
}

func (g *generator) leave(a *asm, in *ir.Instr, k faultKind) {
	a.movImm(tempG, uint64(uint32(faultCode(in.ID, k))))
	a.store(8, at(frameReg, frameFault), tempG)
	a.ret()
}
