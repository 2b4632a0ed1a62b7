package jit

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// boolOp emits an operation on truth values.
func (g *generator) boolOp(in *ir.Instr, inGeneral bool) value {
	o := in.Op
	if inGeneral {
		x := g.general(in.Args[0])
		switch o {
		case ir.OpNot, ir.OpEq:
			one := value{place: atConst, bits: 1}
			if o == ir.OpEq {
				x = g.generalBinary(ir.OpXor, false, x, g.val(in.Args[1]))
			}
			return value{place: atGeneral, reg: g.generalBinary(ir.OpXor, false, x, one)}
		case ir.OpNe:
			o = ir.OpXor
		}
		return value{place: atGeneral, reg: g.generalBinary(o, false, x, g.val(in.Args[1]))}
	}
	x := g.maskOf(in.Args[0])
	var r vreg
	switch o {
	case ir.OpNot:
		r = g.op(mask, func(a *asm, r []int) { a.k2(opKNOT, r[0], r[1]) }, x)
	default:
		k, ok := map[ir.Op]opcode{ir.OpAnd: opKAND, ir.OpOr: opKOR, ir.OpXor: opKXOR, ir.OpNe: opKXOR, ir.OpEq: opKXNOR}[o]
		if !ok {
			g.fail("%s of %s", in.Op, in.Args[0].Type)
		}
		r = g.op(mask, func(a *asm, r []int) { a.k3(k, r[0], r[1], r[2]) }, x, g.maskOf(in.Args[1]))
	}
	return value{place: atMask, reg: r}
}

var mirrored = map[ir.Op]ir.Op{ir.OpEq: ir.OpEq, ir.OpNe: ir.OpNe, ir.OpLt: ir.OpGt, ir.OpGt: ir.OpLt, ir.OpLe: ir.OpGe, ir.OpGe: ir.OpLe}

// inMemory reports whether a value is best an operand in memory.
func (g *generator) inMemory(in ir.Value) bool {
	p := g.val(in).place
	return p == atConst || p == atParam
}

// compare emits a comparison of vectors.
func (g *generator) compare(in *ir.Instr) value {
	x, y, o := in.Args[0], in.Args[1], in.Op
	if v, ok := g.compareMagnitude(in); ok {
		return v
	}
	if g.inMemory(x) {
		x, y, o = y, x, mirrored[o]
	}
	kind := x.Type.Kind
	size := elementSize(kind)
	var c opcode
	var predicate byte
	switch {
	case kind.IsFloat():
		c = vCMPPS.sized(size)
		predicate = map[ir.Op]byte{ir.OpEq: fcmpEQ, ir.OpNe: fcmpNE, ir.OpLt: fcmpLT, ir.OpLe: fcmpLE, ir.OpGt: fcmpGT, ir.OpGe: fcmpGE}[o]
	default:
		c = vPCMPUD
		if kind == ir.I32 || kind == ir.I64 {
			c = vPCMPD
		}
		c = c.sized(size)
		predicate = map[ir.Op]byte{ir.OpEq: cmpEQ, ir.OpNe: cmpNE, ir.OpLt: cmpLT, ir.OpLe: cmpLE, ir.OpGt: cmpNLE, ir.OpGe: cmpNLT}[o]
	}
	return value{place: atMask, reg: g.threeTo(mask, c, g.length(x.Type), g.vector(x), g.operand(y), predicate)}
}

// compareMagnitude recognises a test for NaN by the bits, which is one comparison of floats.
func (g *generator) compareMagnitude(in *ir.Instr) (value, bool) {
	if in.Op != ir.OpGt || in.Args[0].Type.Kind != ir.U32 || !g.isConst(in.Args[1], 0x7f800000) {
		return value{}, false
	}
	and := in.Args[0]
	if and.Op != ir.OpAnd || !g.isConst(and.Args[1], 0x7fffffff) || and.Args[0].Op != ir.OpBitCast {
		return value{}, false
	}
	x := and.Args[0].Args[0]
	if x.Type.Kind != ir.F32 || g.val(x).place != atVector {
		return value{}, false
	}
	r := g.vector(x)
	return value{place: atMask, reg: g.threeTo(mask, vCMPPS, g.length(x.Type), r, operand{reg: r}, fcmpUNORD)}, true
}

func (g *generator) isConst(in ir.Value, bits uint64) bool {
	v := g.val(in)
	return v.place == atConst && v.bits == bits
}

var commutes = map[ir.Op]bool{ir.OpAdd: true, ir.OpMul: true, ir.OpAnd: true, ir.OpOr: true, ir.OpXor: true}

// binary emits an operation of two vectors.
func (g *generator) binary(in *ir.Instr, o opcode) vreg {
	x, y := in.Args[0], in.Args[1]
	if commutes[in.Op] && g.inMemory(x) {
		x, y = y, x
	}
	return g.three(o, g.length(in.Type), g.vector(x), g.operand(y))
}

var floatOpcodes = map[ir.Op]opcode{ir.OpAdd: vADDPS, ir.OpSub: vSUBPS, ir.OpMul: vMULPS, ir.OpDiv: vDIVPS}

// rounding modes of VRNDSCALE: nearest even, down, up, to zero; without the inexact exception
var roundings = map[ir.Op]byte{ir.OpRound: 8, ir.OpFloor: 9, ir.OpCeil: 10, ir.OpTrunc: 11}

func (g *generator) floatOp(in *ir.Instr) value {
	kind, l := in.Type.Kind, g.length(in.Type)
	size := elementSize(kind)
	var r vreg
	round := false // F16 is kept as F32
	switch in.Op {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpDiv:
		r, round = g.binary(in, floatOpcodes[in.Op].sized(size)), true
	case ir.OpMin, ir.OpMax:
		// Min(x, y) is y if y < x, else x: VMINPS y, x.
		o := vMINPS
		if in.Op == ir.OpMax {
			o = vMAXPS
		}
		r = g.three(o.sized(size), l, g.vector(in.Args[1]), g.operand(in.Args[0]))
	case ir.OpNeg, ir.OpAbs:
		o, bits := vPXORD, uint64(1)<<(8*size-1)
		if in.Op == ir.OpAbs {
			o, bits = vPANDD, bits-1
		}
		r = g.three(o.sized(size), l, g.vector(in.Args[0]), constOperand(bits, size))
	case ir.OpFma:
		r, round = g.fma(vFMADD213PS, in.Args[0], in.Args[1], in.Args[2], in.Type), true
	case ir.OpSqrt:
		r, round = g.two(vSQRTPS.sized(size), l, g.vector(in.Args[0])), true
	case ir.OpFloor, ir.OpCeil, ir.OpTrunc, ir.OpRound:
		r = g.two(vRNDSCALEPS.sized(size), l, g.vector(in.Args[0]), roundings[in.Op])
	case ir.OpExp:
		if kind != ir.F32 {
			g.fail("%s of %s", in.Op, in.Type)
		}
		r = g.exp(g.vector(in.Args[0]), l)
	default:
		g.fail("%s of %s", in.Op, in.Type)
		r = g.newReg(vector)
	}
	if kind == ir.F16 && round {
		r = g.roundF16(r, l)
	}
	return value{place: atVector, reg: r}
}

func constOperand(bits uint64, size int) operand {
	return operand{mem: func(a *asm) memory { return a.word(bits, size) }, size: size}
}

// half returns the length of a vector with elements of half the size.
func half(length byte) byte { return max(length, 1) - 1 }

// roundF16 rounds F32 lanes to F16.
func (g *generator) roundF16(x vreg, l byte) vreg {
	h := g.twoReversed(vCVTPS2PH, l, x, 0)
	return g.two(vCVTPH2PS, l, h)
}

// roundProducts makes Fma round twice, as the executors of package interp do. Tests set it.
var roundProducts = false

// fma emits x*y+z.
func (g *generator) fma(o opcode, x, y, z ir.Value, t ir.Type) vreg {
	size, l := elementSize(t.Kind), g.length(t)
	if g.inMemory(x) {
		x, y = y, x
	}
	if t.Kind == ir.F16 || roundProducts { // the product and the sum are rounded; of F16 in F32
		p := g.three(vMULPS.sized(size), l, g.vector(x), g.operand(y))
		return g.three(vADDPS.sized(size), l, p, g.operand(z))
	}
	xr := g.vector(x)
	if yo := g.operand(y); yo.mem != nil && !g.inMemory(z) {
		return g.fmaFactor(l, size, xr, yo, g.vector(z))
	}
	zo := g.operand(z)
	if zo.mem != nil {
		return g.fmaMem(l, size, xr, g.vector(y), zo)
	}
	return g.fmaReg(l, size, xr, g.vector(y), zo.reg)
}

func (g *generator) fmaMem(l byte, size int, x, y vreg, z operand) vreg {
	return g.op(vector, func(a *asm, r []int) {
		other := r[2]
		if r[0] == r[2] {
			other = r[1]
		} else {
			moveVector(a, r[0], r[1])
		}
		a.rrm(vFMADD213PS.sized(size), form{length: l, broadcast: true}, r[0], other, z.mem(a))
	}, x, y)
}

// fmaFactor is fma with a factor in memory.
func (g *generator) fmaFactor(l byte, size int, x vreg, y operand, z vreg) vreg {
	return g.op(vector, func(a *asm, r []int) {
		f := form{length: l, broadcast: true}
		if r[0] == r[2] {
			a.rrm(vFMADD231PS.sized(size), f, r[0], r[1], y.mem(a))
			return
		}
		moveVector(a, r[0], r[1])
		a.rrm(vFMADD132PS.sized(size), f, r[0], r[2], y.mem(a))
	}, x, z)
}

func (g *generator) fmaReg(l byte, size int, x, y, z vreg) vreg {
	return g.op(vector, func(a *asm, r []int) {
		f := form{length: l}
		switch r[0] {
		case r[3]:
			a.rrr(vFMADD231PS.sized(size), f, r[0], r[1], r[2])
		case r[2]:
			a.rrr(vFMADD213PS.sized(size), f, r[0], r[1], r[3])
		default:
			moveVector(a, r[0], r[1])
			a.rrr(vFMADD213PS.sized(size), f, r[0], r[2], r[3])
		}
	}, x, y, z)
}

// exp emits e^x: x = k ln 2 + r with k whole and |r| <= (ln 2)/2, e^r by a polynomial, and scaling by 2^k, which gives infinity,
// subnormal numbers and 0 as the result has them. The reduction is Cody and Waite's, with ln 2 in two parts. x is bounded first, so that
// infinities have a k; NaN goes through.
func (g *generator) exp(x vreg, l byte) vreg {
	f32 := func(v float64) operand { return constOperand(uint64(math.Float32bits(float32(v))), 4) }
	bound := func(o opcode, v float64, x vreg) vreg {
		// The second operand is the result if either is NaN.
		return g.three(o, l, g.vectorOf(value{place: atConst, bits: uint64(math.Float32bits(float32(v)))}, 4), operand{reg: x})
	}
	x = bound(vMAXPS, -104, bound(vMINPS, 89, x))
	k := g.two(vRNDSCALEPS, l, g.three(vMULPS, l, x, f32(math.Log2E)), 8)
	const ln2High = 0.693145751953125
	reduce := func(x, k vreg, c float64) vreg { // x - k*c
		return g.op(vector, func(a *asm, r []int) {
			f := form{length: l, broadcast: true}
			m := a.word(uint64(math.Float32bits(float32(c))), 4)
			if r[0] == r[2] && r[0] != r[1] {
				moveVector(a, tempZ, r[2])
				moveVector(a, r[0], r[1])
				a.rrm(vFNMADD231PS, f, r[0], tempZ, m)
				return
			}
			moveVector(a, r[0], r[1])
			a.rrm(vFNMADD231PS, f, r[0], r[2], m)
		}, x, k)
	}
	t := reduce(reduce(x, k, ln2High), k, math.Ln2-ln2High)
	// The polynomial of SLEEF's expf.
	p := g.vectorOf(value{place: atConst, bits: uint64(math.Float32bits(0.000198527617612853646278381))}, 4)
	for _, c := range []float64{0.00139304355252534151077271, 0.00833336077630519866943359, 0.0416664853692054748535156, 0.166666671633720397949219, 0.5, 1, 1} {
		p = g.fmaMem(l, 4, p, t, f32(c))
	}
	return g.three(vSCALEFPS, l, p, operand{reg: k})
}

var intOpcodes = map[ir.Op]opcode{ir.OpAdd: vPADDD, ir.OpSub: vPSUBD, ir.OpMul: vPMULLD, ir.OpAnd: vPANDD, ir.OpOr: vPORD, ir.OpXor: vPXORD, ir.OpShl: vPSLLVD}

// intOp emits an operation of integer vectors.
func (g *generator) intOp(in *ir.Instr) value {
	kind, l := in.Type.Kind, g.length(in.Type)
	size := elementSize(kind)
	at := func(r vreg) value { return value{place: atVector, reg: r} }
	o, ok := intOpcodes[in.Op]
	switch {
	case ok:
	case in.Op == ir.OpShr:
		if o = vPSRAVD; kind == ir.U32 {
			o = vPSRLVD
		}
	case in.Op == ir.OpMin:
		if o = vPMINSD; kind == ir.U32 {
			o = vPMINUD
		}
	case in.Op == ir.OpMax:
		if o = vPMAXSD; kind == ir.U32 {
			o = vPMAXUD
		}
	case in.Op == ir.OpAbs:
		return at(g.two(vPABSD.sized(size), l, g.vector(in.Args[0])))
	case in.Op == ir.OpNeg:
		zero := g.vectorOf(value{place: atConst}, 4)
		return at(g.three(vPSUBD.sized(size), l, zero, operand{reg: g.vector(in.Args[0])}))
	case in.Op == ir.OpNot:
		return at(g.three(vPXORD.sized(size), l, g.vector(in.Args[0]), constOperand(math.MaxUint64>>(64-8*size), size)))
	case in.Op == ir.OpMulHi:
		return at(g.mulHigh(l, g.vector(in.Args[0]), g.vector(in.Args[1])))
	case in.Op == ir.OpDiv || in.Op == ir.OpRem:
		return at(g.divideVector(in))
	default:
		g.fail("%s of %s", in.Op, in.Type)
		return at(g.newReg(vector))
	}
	return at(g.binary(in, o.sized(size)))
}

// mulHigh emits the high words of products: of the even lanes and of the odd ones.
func (g *generator) mulHigh(l byte, x, y vreg) vreg {
	shift := func(x vreg) vreg { return g.three(vPSRLVD.sized(8), l, x, constOperand(32, 8)) }
	even := shift(g.three(vPMULUDQ, l, x, operand{reg: y}))
	odd := g.three(vPMULUDQ, l, shift(x), operand{reg: shift(y)})
	alternate := g.op(mask, func(a *asm, r []int) {
		a.movImm(tempG, 0xaaaa)
		a.k2(opKFromGPR, r[0], tempG)
	})
	return g.op(vector, func(a *asm, r []int) {
		a.rrr(vPBLENDMD, form{length: l, mask: r[3]}, r[0], r[1], r[2])
	}, even, odd, alternate)
}

// divideVector emits quotients or remainders of 32-bit integers by way of F64, whose quotients are near enough to the exact ones to give the
// same whole number.
func (g *generator) divideVector(in *ir.Instr) vreg {
	kind, l := in.Type.Kind, g.length(in.Type)
	if kind == ir.I64 {
		return g.divideWide(in, l)
	}
	if y := g.val(in.Args[1]); kind == ir.U32 && y.place == atConst && y.bits&(y.bits-1) == 0 && y.bits != 0 {
		x := g.vector(in.Args[0])
		if in.Op == ir.OpRem {
			return g.three(vPANDD, l, x, constOperand(y.bits-1, 4))
		}
		n := uint64(0)
		for 1<<n < y.bits {
			n++
		}
		return g.three(vPSRLVD, l, x, constOperand(n, 4))
	}
	to, back := vCVTUDQ2PD, vCVTTPD2UDQ
	if kind == ir.I32 {
		to, back = vCVTDQ2PD, vCVTTPD2DQ
	}
	x, y := g.vector(in.Args[0]), g.vector(in.Args[1])
	divide := func(x, y vreg, l byte) vreg {
		q := g.three(vDIVPS.sized(8), l, g.two(to, l, x), operand{reg: g.two(to, l, y)})
		return g.two(back, l, q)
	}
	var q vreg
	if l == len512 {
		high := func(x vreg) vreg { return g.twoReversed(vEXTRACTI64X4, len512, x, 1) }
		q = g.three(vINSERTI64X4, len512, divide(x, y, len512), operand{reg: divide(high(x), high(y), len512)}, 1)
	} else {
		q = divide(x, y, l+1)
	}
	if in.Op == ir.OpDiv {
		return q
	}
	p := g.three(vPMULLD, l, q, operand{reg: y})
	return g.three(vPSUBD, l, x, operand{reg: p})
}

// choose emits a selection.
func (g *generator) choose(in *ir.Instr) value {
	cond, x, y := in.Args[0], in.Args[1], in.Args[2]
	c, vx, vy := g.val(cond), g.val(x), g.val(y)
	if c.place == atConst {
		if c.bits != 0 {
			return vx
		}
		return vy
	}
	scalar := in.Type.Lanes == 1
	kind := in.Type.Kind
	if scalar && c.place == atGeneral && isGeneral(vx) && isGeneral(vy) && !kind.IsFloat() {
		return value{place: atGeneral, reg: g.op(general, func(a *asm, r []int) {
			a.mov(true, tempG, r[3])
			a.rr(opTEST, false, r[1], r[1])
			a.cmov(ccNE, true, tempG, r[2])
			a.mov(true, r[0], tempG)
		}, c.reg, g.general(x), g.general(y))}
	}
	k := g.maskOf(cond)
	if kind == ir.Bool {
		a := g.op(mask, func(a *asm, r []int) { a.k3(opKAND, r[0], r[1], r[2]) }, k, g.maskOf(x))
		b := g.op(mask, func(a *asm, r []int) { a.k3(opKANDN, r[0], r[1], r[2]) }, k, g.maskOf(y))
		return value{place: atMask, reg: g.op(mask, func(a *asm, r []int) { a.k3(opKOR, r[0], r[1], r[2]) }, a, b)}
	}
	l, size := g.length(in.Type), elementSize(kind)
	o := vBLENDMPS
	if !kind.IsFloat() {
		o = vPBLENDMD
	}
	o = o.sized(size)
	if vy.place == atConst && vy.bits == 0 { // zero where the mask is not set
		if xo := g.operand(x); xo.mem != nil {
			return value{place: atVector, reg: g.op(vector, func(a *asm, r []int) {
				f := form{length: l, mask: r[1], zero: true}
				if size == 8 {
					f.length = max(l, len256)
				}
				a.rrm(vBROADCASTSS.sized(size), f, r[0], 0, xo.mem(a))
			}, k)}
		}
		move := vMOVAPS.sized(size)
		return value{place: atVector, reg: g.op(vector, func(a *asm, r []int) {
			a.rrr(move, form{length: l, mask: r[2], zero: true}, r[0], 0, r[1])
		}, g.vector(x), k)}
	}
	yr, xo := g.vector(y), g.operand(x)
	if xo.mem != nil {
		return value{place: atVector, reg: g.op(vector, func(a *asm, r []int) {
			a.rrm(o, form{length: l, mask: r[2], broadcast: true}, r[0], r[1], xo.mem(a))
		}, yr, k)}
	}
	return value{place: atVector, reg: g.op(vector, func(a *asm, r []int) {
		a.rrr(o, form{length: l, mask: r[3]}, r[0], r[1], r[2])
	}, yr, xo.reg, k)}
}

// bitCast emits nothing where a register's bits stay.
func (g *generator) bitCast(in *ir.Instr) value {
	from, to := in.Args[0].Type.Kind, in.Type.Kind
	v := g.val(in.Args[0])
	switch {
	case from == ir.F16 || to == ir.F16:
		x, l := g.vector(in.Args[0]), g.length(in.Type)
		if to == ir.F16 { // from U16 in 32 bits
			x = g.two(vCVTPH2PS, l, g.twoReversed(vPMOVDW, l, x))
		} else {
			x = g.two(vPMOVZXWD, l, g.twoReversed(vCVTPS2PH, l, x, 0))
		}
		return value{place: atVector, reg: x}
	case to.IsFloat() && v.place == atGeneral || to.IsFloat() && v.place == atAffine:
		return value{place: atVector, reg: g.vector(in.Args[0])}
	}
	return v
}

// divideWide emits quotients or remainders of 64-bit integers, which processors divide one by one. A divisor of 0 is taken as 1, as in divideGeneral.
func (g *generator) divideWide(in *ir.Instr, l byte) vreg {
	n := int32(max(g.lanes, in.Type.Lanes))
	result := quotientOr(in.Op == ir.OpRem)
	return g.op(vector, func(a *asm, r []int) {
		f := form{length: l}
		a.rrm(vMOVUPSs, f, r[1], 0, at(frameReg, frameScratch))
		a.rrm(vMOVUPSs, f, r[2], 0, at(frameReg, frameScratch+64))
		lane := func(disp int32) memory { return memory{base: frameReg, index: r12, scale: 8, disp: disp} }
		next, usual, done := a.newLabel(), a.newLabel(), a.newLabel()
		a.movImm(r12, 0)
		a.place(next)
		a.load(8, tempG, lane(frameScratch))
		a.load(8, tempG2, lane(frameScratch+64))
		a.ri(opCMP, true, tempG2, 1)
		a.adcZero(true, tempG2)
		a.movImm(tempG3, 0)
		a.ri(opCMP, true, tempG2, -1) // the quotient of the smallest number by -1 has no place in 64 bits
		a.jcc(ccNE, usual)
		a.unary(digitNeg, true, tempG)
		a.jmp(done)
		a.place(usual)
		a.byte(0x48, 0x99) // cqo
		a.unary(digitIdiv, true, tempG2)
		a.place(done)
		a.store(8, lane(frameScratch), result)
		a.ri(opADD, true, r12, 1)
		a.ri(opCMP, true, r12, n)
		a.jcc(ccB, next)
		a.rrm(vMOVUPS, f, r[0], 0, at(frameReg, frameScratch))
	}, g.vector(in.Args[0]), g.vector(in.Args[1]))
}
