package jit

import (
	"math/bits"

	"github.com/anygpu/anygpu/shaders/ir"
)

// compute emits an operation without effect and returns where its result is.
func (g *generator) compute(in *ir.Instr) value {
	switch in.Op {
	case ir.OpConst:
		return value{place: atConst, bits: g.constBits(in)}
	case ir.OpParam:
		return value{place: atParam, param: int(in.Imm)}
	case ir.OpGroupID, ir.OpLocalID, ir.OpGlobalID, ir.OpNumGroups:
		return g.position(in)
	case ir.OpSplat, ir.OpExtract, ir.OpVec:
		return g.lanesOp(in)
	case ir.OpConvert:
		return g.convert(in)
	case ir.OpBitCast:
		return g.bitCast(in)
	case ir.OpSelect:
		return g.choose(in)
	}
	args := make([]value, len(in.Args))
	inGeneral, linear := true, true
	for i, arg := range in.Args {
		args[i] = g.val(arg)
		inGeneral = inGeneral && isGeneral(args[i])
		linear = linear && (isGeneral(args[i]) || args[i].place == atAffine)
	}
	kind := in.Args[0].Type.Kind
	scalar := in.Args[0].Type.Lanes == 1
	switch {
	case kind == ir.Bool:
		return g.boolOp(in, inGeneral && scalar)
	case in.Op.IsCompare() && inGeneral && scalar && !kind.IsFloat():
		return g.compareGeneral(in)
	case in.Op.IsCompare():
		return g.compare(in)
	case kind.IsFloat():
		return g.floatOp(in)
	case inGeneral && scalar:
		return g.generalOp(in, args)
	}
	if linear && scalar {
		if v, ok := g.affineOp(in, args); ok {
			return v
		}
	}
	return g.intOp(in)
}

// constBits returns the bits of a constant as a lane of a vector register holds them: F16 as F32.
func (g *generator) constBits(in *ir.Instr) uint64 {
	if in.Type.Kind == ir.F16 {
		return ir.ConstBits(ir.F32, ir.ConstFloat(ir.F16, in.Imm))
	}
	return in.Imm
}

// position emits the numbers of groups and invocations.
func (g *generator) position(in *ir.Instr) value {
	dim := int(in.Imm)
	frame := func(off int) value {
		return value{place: atGeneral, reg: g.op(general, func(a *asm, r []int) { a.load(8, r[0], at(frameReg, int32(off))) })}
	}
	switch in.Op {
	case ir.OpNumGroups:
		return frame(frameNumGroups + 8*dim)
	case ir.OpGroupID:
		return g.groupID(dim, frame)
	case ir.OpLocalID:
		return g.localID(dim)
	}
	group := value{place: atConst}
	g.at(int(bit(dim == 0)), func() { group = g.groupID(dim, frame) })
	if size := g.k.Local[dim]; size > 1 {
		group = value{place: atGeneral, reg: g.generalBinary(ir.OpMul, false, group.reg, value{place: atConst, bits: uint64(size)})}
	} else {
		return group
	}
	group.level = g.level
	local := g.localID(dim)
	sum := value{place: atVector}
	switch local.place {
	case atVector:
		sum.reg = g.three(vPADDD, g.length(in.Type), local.reg, operand{reg: g.vectorOf(group, 4)})
	default:
		sum.place, sum.step = local.place, local.step
		sum.reg = g.generalBinary(ir.OpAdd, false, local.reg, group)
	}
	return sum
}

func (g *generator) groupID(dim int, frame func(off int) value) value {
	if dim == 0 {
		return value{place: atGeneral, reg: g.vars[varGroup]}
	}
	return frame(frameGroupY + 8*(dim-1))
}

// variables of the generator, by index in vars
const (
	varGroup = iota // the workgroup in dimension 0
	varBlock        // the vector of invocations in the workgroup, or the invocation
	numVars
)

// localID returns the position in the workgroup. Invocations are numbered dimension 0 first.
func (g *generator) localID(dim int) value {
	local := g.k.Local
	if local[dim] == 1 {
		return value{place: atConst}
	}
	block := value{place: atGeneral, reg: g.vars[varBlock], level: 2}
	alone := local[0]*local[1]*local[2] == local[dim]
	if g.lanes == 1 {
		v := block
		if dim > 0 {
			v.reg = g.divideBy(block.reg, uint32(local[0]), false)
		}
		if dim == 2 {
			v.reg = g.divideBy(v.reg, uint32(local[1]), false)
		} else if !alone {
			v.reg = g.divideBy(v.reg, uint32(local[dim]), true)
		}
		return v
	}
	if alone {
		return value{place: atAffine, step: 1, reg: g.generalBinary(ir.OpMul, false, block.reg, value{place: atConst, bits: uint64(g.lanes)})}
	}
	lanes, size := g.lanes, lengthOf(4*g.lanes)
	return value{place: atVector, reg: g.op(vector, func(a *asm, r []int) {
		m := a.positions(local, dim, lanes)
		a.mov(false, tempG, r[1])
		a.imulImm(false, tempG, tempG, int32(4*lanes))
		a.leaPool(tempG2, m)
		a.rrm(vMOVUPS, form{length: size}, r[0], 0, memory{base: tempG2, index: tempG, scale: 1})
	}, block.reg)}
}

// positions returns a table of the positions of a workgroup's invocations in a dimension.
func (a *asm) positions(local [3]int, dim, lanes int) memory {
	k := constant{uint64(dim), 1 << 20}
	off, ok := a.words[k]
	if !ok {
		n := local[0] * local[1] * local[2]
		var b []byte
		for i := range (n + lanes - 1) / lanes * lanes {
			p := [3]int{i % local[0], i / local[0] % local[1], i / local[0] / local[1]}
			b = appendWord(b, uint32(p[dim]))
		}
		off = a.table(b, 64)
		if a.words == nil {
			a.words = map[constant]int{}
		}
		a.words[k] = off
	}
	return memory{pool: true, index: -1, disp: int32(off)}
}

func (a *asm) leaPool(d int, m memory) { a.lea(true, d, m) }

// --- general registers ---

// fitsImm reports whether a constant can be an immediate operand.
func fitsImm(v value, wide bool) bool {
	return v.place == atConst && (!wide && v.bits < 1<<32 || wide && int64(v.bits) == int64(int32(v.bits)))
}

var generalOpcodes = map[ir.Op]byte{ir.OpAdd: opADD, ir.OpSub: opSUB, ir.OpAnd: opAND, ir.OpOr: opOR, ir.OpXor: opXOR}

// generalBinary emits an operation on a general register and a uniform value.
func (g *generator) generalBinary(o ir.Op, wide bool, x vreg, y value) vreg {
	kind := ir.U32
	if wide {
		kind = ir.I64
	}
	imm := fitsImm(y, wide)
	if o == ir.OpMul {
		if imm {
			switch {
			case y.bits == 1:
				return x
			case bits.OnesCount64(y.bits) == 1:
				n := byte(bits.TrailingZeros64(y.bits))
				return g.op(general, func(a *asm, r []int) {
					a.mov(wide, r[0], r[1])
					a.shift(digitShl, wide, r[0], n)
				}, x)
			}
			return g.op(general, func(a *asm, r []int) { a.imulImm(wide, r[0], r[1], int32(uint32(y.bits))) }, x)
		}
		return g.op(general, func(a *asm, r []int) {
			s := r[2]
			if r[0] == r[2] {
				s = r[1]
			} else {
				a.mov(true, r[0], r[1])
			}
			a.imul(wide, r[0], s)
		}, x, g.generalOf(y, kind))
	}
	c := generalOpcodes[o]
	if imm {
		if y.bits == 0 && o != ir.OpAnd {
			return x
		}
		return g.op(general, func(a *asm, r []int) {
			a.mov(true, r[0], r[1])
			a.ri(c, wide, r[0], int32(uint32(y.bits)))
		}, x)
	}
	return g.op(general, func(a *asm, r []int) {
		switch {
		case r[0] == r[2] && o == ir.OpSub && r[0] != r[1]:
			a.unary(digitNeg, wide, r[0])
			a.rr(opADD, wide, r[0], r[1])
		case r[0] == r[2] && o != ir.OpSub:
			a.rr(c, wide, r[0], r[1])
		default:
			a.mov(true, r[0], r[1])
			a.rr(c, wide, r[0], r[2])
		}
	}, x, g.generalOf(y, kind))
}

// divideBy divides a general register by a constant.
func (g *generator) divideBy(x vreg, by uint32, rem bool) vreg {
	switch {
	case by == 1 && rem:
		return g.op(general, func(a *asm, r []int) { a.movImm(r[0], 0) })
	case by == 1:
		return x
	case by&(by-1) == 0 && rem:
		return g.generalBinary(ir.OpAnd, false, x, value{place: atConst, bits: uint64(by - 1)})
	case by&(by-1) == 0:
		return g.op(general, func(a *asm, r []int) {
			a.mov(true, r[0], r[1])
			a.shift(digitShr, false, r[0], byte(bits.TrailingZeros32(by)))
		}, x)
	}
	return g.op(general, func(a *asm, r []int) {
		a.mov(false, tempG, r[1])
		a.movImm(tempG2, uint64(by))
		a.movImm(tempG3, 0)
		a.unary(digitDiv, false, tempG2)
		a.mov(false, r[0], quotientOr(rem))
	}, x)
}

func quotientOr(rem bool) int {
	if rem {
		return rdx
	}
	return rax
}

// generalOp emits an integer operation of uniform operands.
func (g *generator) generalOp(in *ir.Instr, args []value) value {
	kind := in.Type.Kind
	wide := kind == ir.I64
	result := func(r vreg) value { return value{place: atGeneral, reg: r} }
	x := args[0]
	var y value
	if len(args) > 1 {
		y = args[1]
	}
	if x.place == atConst && (len(args) == 1 || y.place == atConst) && kind == ir.U32 {
		if v, ok := fold(in.Op, uint32(x.bits), uint32(y.bits)); ok {
			return value{place: atConst, bits: uint64(v)}
		}
	}
	switch in.Op {
	case ir.OpAdd, ir.OpMul, ir.OpAnd, ir.OpOr, ir.OpXor:
		if x.place == atConst {
			x, y = y, x
		}
		fallthrough
	case ir.OpSub:
		if fitsImm(y, wide) && (y.bits == 0 && (in.Op == ir.OpAdd || in.Op == ir.OpSub) || y.bits == 1 && in.Op == ir.OpMul) {
			return x
		}
		return result(g.generalBinary(in.Op, wide, g.generalOf(x, kind), y))
	case ir.OpDiv, ir.OpRem:
		if kind == ir.U32 && y.place == atConst && y.bits != 0 {
			if y.bits == 1 && in.Op == ir.OpDiv {
				return x
			}
			return result(g.divideBy(g.generalOf(x, kind), uint32(y.bits), in.Op == ir.OpRem))
		}
		xr, yr := g.generalOf(x, kind), g.generalOf(y, kind)
		q := g.alt(altKey{reg: xr, bits: uint64(yr), form: altQuotient, level: g.level, size: uint8(kind)}, g.level, func() vreg { return g.divideGeneral(kind, xr, yr) })
		if in.Op == ir.OpDiv {
			return result(q)
		}
		back := g.generalBinary(ir.OpMul, wide, q, value{place: atGeneral, reg: yr})
		return result(g.generalBinary(ir.OpSub, wide, xr, value{place: atGeneral, reg: back}))
	case ir.OpMin, ir.OpMax:
		cc := byte(ccB)
		switch {
		case in.Op == ir.OpMin && kind != ir.U32:
			cc = ccL
		case in.Op == ir.OpMax && kind == ir.U32:
			cc = ccA
		case in.Op == ir.OpMax:
			cc = ccG
		}
		// y if y < x, else x
		return result(g.op(general, func(a *asm, r []int) {
			a.rr(opCMP, wide, r[2], r[1])
			a.mov(true, tempG, r[1])
			a.cmov(cc, wide, tempG, r[2])
			a.mov(true, r[0], tempG)
		}, g.generalOf(x, kind), g.generalOf(y, kind)))
	case ir.OpNeg, ir.OpNot:
		digit := digitNeg
		if in.Op == ir.OpNot {
			digit = digitNot
		}
		return result(g.op(general, func(a *asm, r []int) {
			a.mov(true, r[0], r[1])
			a.unary(digit, wide, r[0])
		}, g.generalOf(x, kind)))
	case ir.OpAbs:
		if kind == ir.U32 {
			return x
		}
		return result(g.op(general, func(a *asm, r []int) {
			a.mov(true, tempG, r[1])
			a.unary(digitNeg, wide, tempG)
			a.cmov(ccL, wide, tempG, r[1])
			a.mov(true, r[0], tempG)
		}, g.generalOf(x, kind)))
	case ir.OpMulHi:
		return result(g.op(general, func(a *asm, r []int) {
			a.mov(true, tempG, r[1])
			a.imul(true, tempG, r[2])
			a.shift(digitShr, true, tempG, 32)
			a.mov(true, r[0], tempG)
		}, g.generalOf(x, kind), g.generalOf(y, kind)))
	case ir.OpShl, ir.OpShr:
		digit, o := digitShl, opSHLX
		if in.Op == ir.OpShr {
			if digit, o = digitShr, opSHRX; kind != ir.U32 {
				digit, o = digitSar, opSARX
			}
		}
		if y.place == atConst {
			return result(g.op(general, func(a *asm, r []int) {
				a.mov(true, r[0], r[1])
				a.shift(digit, wide, r[0], byte(y.bits))
			}, g.generalOf(x, kind)))
		}
		return result(g.op(general, func(a *asm, r []int) { a.shiftx(o, wide, r[0], r[1], r[2]) }, g.generalOf(x, kind), g.generalOf(y, kind)))
	}
	g.fail("%s of %s", in.Op, in.Type)
	return result(g.newReg(general))
}

// fold computes an operation of constants.
func fold(o ir.Op, x, y uint32) (uint32, bool) {
	switch o {
	case ir.OpAdd:
		return x + y, true
	case ir.OpSub:
		return x - y, true
	case ir.OpMul:
		return x * y, true
	case ir.OpDiv:
		if y != 0 {
			return x / y, true
		}
	case ir.OpMin:
		return min(x, y), true
	case ir.OpMax:
		return max(x, y), true
	}
	return 0, false
}

// divideGeneral divides; a divisor of 0 is taken as 1, because the division may have moved in front of what guards it (see checkDivisor).
func (g *generator) divideGeneral(kind ir.Kind, x, y vreg) vreg {
	return g.op(general, func(a *asm, r []int) {
		wide := kind != ir.U32
		if kind == ir.I32 {
			a.rr(opMOVSX, true, tempG, r[1])
			a.rr(opMOVSX, true, tempG2, r[2])
		} else {
			a.mov(true, tempG, r[1])
			a.mov(true, tempG2, r[2])
		}
		a.ri(opCMP, wide, tempG2, 1)
		a.adcZero(wide, tempG2)
		if kind == ir.U32 {
			a.movImm(tempG3, 0)
			a.unary(digitDiv, false, tempG2)
			a.mov(true, r[0], rax)
			return
		}
		// The quotient of the smallest number by -1 has no place in 64 bits.
		usual, done := a.newLabel(), a.newLabel()
		a.ri(opCMP, true, tempG2, -1)
		a.jcc(ccNE, usual)
		a.unary(digitNeg, true, tempG)
		a.movImm(tempG3, 0)
		a.jmp(done)
		a.place(usual)
		a.byte(0x48, 0x99) // cqo
		a.unary(digitIdiv, true, tempG2)
		a.place(done)
		a.rr(opMOV, kind == ir.I64, r[0], rax)
	}, x, y)
}

// checkDivisor emits the fault of an integer division by zero.
func (g *generator) checkDivisor(in *ir.Instr) {
	y := g.val(in.Args[1])
	if in.Type.Kind.IsFloat() || y.place == atConst && y.bits != 0 {
		return
	}
	size := elementSize(in.Type.Kind)
	if isGeneral(y) && in.Type.Lanes == 1 {
		g.effect(func(a *asm, r []int) {
			a.rr(opTEST, size == 8, r[0], r[0])
			g.fault(a, ccE, in, faultDivision, -1)
		}, g.generalOf(y, in.Type.Kind))
		return
	}
	f := form{length: g.length(in.Type)}
	uses := []vreg{g.vector(in.Args[1])}
	if g.mask != 0 {
		uses = append(uses, g.mask)
	}
	zero := g.op(mask, func(a *asm, r []int) {
		f := f
		if len(r) > 2 {
			f.mask = r[2]
		}
		a.rrm(vPCMPUD.sized(size), form{length: f.length, mask: f.mask, broadcast: true}, r[0], r[1], a.word(0, size), cmpEQ)
	}, uses...)
	lanes := in.Type.Lanes
	g.effect(func(a *asm, r []int) {
		if g.lanes == 1 {
			a.k2(opKToGPR, tempG, r[0])
			a.byte(0xa9) // test eax, imm32
			a.int32(1<<lanes - 1)
		} else {
			a.k2(opKORTESTW, r[0], r[0])
		}
		g.faultLanes(a, in, faultDivision, -1, r[0])
	}, zero)
}

// compareGeneral emits a comparison of integers as 0 or 1.
func (g *generator) compareGeneral(in *ir.Instr) value {
	cc, x, y := g.conditionOf(in)
	wide := in.Args[0].Type.Kind == ir.I64
	return value{place: atGeneral, reg: g.op(general, func(a *asm, r []int) {
		a.rr(opCMP, wide, r[1], r[2])
		a.setcc(cc, r[0])
	}, x, y)}
}

// conditionOf returns the condition of a comparison in general registers, and its operands.
func (g *generator) conditionOf(in *ir.Instr) (cc byte, x, y vreg) {
	unsigned := in.Args[0].Type.Kind == ir.U32
	cc = map[ir.Op]byte{ir.OpEq: ccE, ir.OpNe: ccNE, ir.OpLt: ccL, ir.OpLe: ccLE, ir.OpGt: ccG, ir.OpGe: ccGE}[in.Op]
	if unsigned {
		cc = map[ir.Op]byte{ir.OpEq: ccE, ir.OpNe: ccNE, ir.OpLt: ccB, ir.OpLe: ccBE, ir.OpGt: ccA, ir.OpGe: ccAE}[in.Op]
	}
	return cc, g.general(in.Args[0]), g.general(in.Args[1])
}

// affineOp emits an operation whose result is affine.
func (g *generator) affineOp(in *ir.Instr, args []value) (value, bool) {
	x := args[0]
	var y value
	if len(args) > 1 {
		y = args[1]
	}
	out := value{place: atAffine}
	switch in.Op {
	case ir.OpAdd:
		if x.place != atAffine {
			x, y = y, x
		}
		out.step = x.step
		if y.place == atAffine {
			out.step += y.step
			y.place = atGeneral
		}
		out.reg = g.generalBinary(in.Op, false, x.reg, y)
	case ir.OpSub:
		out.step = x.step
		if y.place == atAffine {
			out.step -= y.step
			y.place = atGeneral
		}
		out.reg = g.generalBinary(in.Op, false, g.generalOf(asGeneral(x), ir.U32), y)
	case ir.OpMul:
		if x.place == atConst {
			x, y = y, x
		}
		if y.place != atConst {
			return out, false
		}
		out.step = x.step * uint32(y.bits)
		out.reg = g.generalBinary(in.Op, false, x.reg, y)
	case ir.OpShl:
		if y.place != atConst || y.bits > 31 {
			return out, false
		}
		out.step = x.step << y.bits
		out.reg = g.generalBinary(ir.OpMul, false, x.reg, value{place: atConst, bits: 1 << y.bits})
	default:
		return out, false
	}
	return out, true
}

// asGeneral returns the first lane of an affine value.
func asGeneral(v value) value {
	if v.place == atAffine {
		v.place = atGeneral
	}
	return v
}
