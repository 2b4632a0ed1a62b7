package jit

import "github.com/anygpu/anygpu/shaders/ir"

// convert emits a conversion of those that ir.Lower leaves.
func (g *generator) convert(in *ir.Instr) value {
	x := in.Args[0]
	v, from, to := g.val(x), x.Type.Kind, in.Type.Kind
	word := func(k ir.Kind) bool { return k == ir.I32 || k == ir.U32 || k == ir.U8 || k == ir.U16 }
	l := max(g.length(in.Type), g.length(x.Type))
	at := func(r vreg) value { return value{place: atVector, reg: r} }
	general := v.place == atGeneral || v.place == atParam
	switch {
	case v.place == atConst && (word(from) || from == ir.I64) && (word(to) || to == ir.I64):
		b := v.bits
		switch {
		case from == ir.I32 && to == ir.I64:
			b = uint64(int64(int32(uint32(b))))
		case to == ir.U8:
			b = uint64(uint8(b))
		case to == ir.U16:
			b = uint64(uint16(b))
		case to != ir.I64:
			b = uint64(uint32(b))
		}
		return value{place: atConst, bits: b}
	case word(from) && word(to):
		if to == ir.U8 || to == ir.U16 { // the store leaves the rest out, but a register has the exact value
			bits := uint64(1)<<(8*to.Size()) - 1
			if general {
				return value{place: atGeneral, reg: g.generalBinary(ir.OpAnd, false, g.generalOf(v, from), value{place: atConst, bits: bits})}
			}
			return at(g.three(vPANDD, l, g.vector(x), constOperand(bits, 4)))
		}
		return v
	case from == ir.F32 && to == ir.F16:
		return at(g.roundF16(g.vector(x), l))
	case from == ir.F16 && to == ir.F32:
		return v
	case general && word(from) && to == ir.I64:
		return value{place: atGeneral, reg: g.op(0, func(a *asm, r []int) {
			if from == ir.I32 {
				a.rr(opMOVSX, true, r[0], r[1])
			} else {
				a.rr(opMOV, false, r[0], r[1])
			}
		}, g.generalOf(v, from))}
	case general && from == ir.I64 && word(to):
		return value{place: atGeneral, reg: g.op(0, func(a *asm, r []int) { a.rr(opMOV, false, r[0], r[1]) }, v.reg)}
	}
	// The length is that of the wider side; the scalars of lane 0 may have any.
	type pair struct{ from, to ir.Kind }
	o, ok := map[pair]opcode{
		{ir.I32, ir.F32}: vCVTDQ2PS, {ir.U32, ir.F32}: vCVTUDQ2PS, {ir.F32, ir.I32}: vCVTTPS2DQ, {ir.F32, ir.U32}: vCVTTPS2UDQ,
		{ir.I32, ir.F64}: vCVTDQ2PD, {ir.U32, ir.F64}: vCVTUDQ2PD, {ir.F64, ir.I32}: vCVTTPD2DQ, {ir.F64, ir.U32}: vCVTTPD2UDQ,
		{ir.F32, ir.F64}: vCVTPS2PD, {ir.F64, ir.F32}: vCVTPD2PS, {ir.I64, ir.F32}: vCVTQQ2PS, {ir.I64, ir.F64}: vCVTQQ2PD,
		{ir.F64, ir.I64}: vCVTTPD2QQ, {ir.F32, ir.I64}: vCVTTPS2QQ, {ir.I32, ir.I64}: vPMOVSXDQ, {ir.U32, ir.I64}: vPMOVZXDQ,
	}[pair{from, to}]
	switch {
	case ok:
		return at(g.two(o, l, g.vector(x)))
	case from == ir.I64 && (to == ir.I32 || to == ir.U32):
		return at(g.twoReversed(vPMOVQD, l, g.vector(x)))
	}
	g.fail("conversion of %s to %s", x.Type, in.Type)
	return at(g.newReg(vector))
}

// lanesOp emits the operations that make vectors of scalars and take them apart.
func (g *generator) lanesOp(in *ir.Instr) value {
	if g.lanes != 1 {
		g.fail("%s in a kernel without vectors", in.Op)
		return value{place: atVector, reg: g.newReg(vector)}
	}
	switch in.Op {
	case ir.OpSplat:
		return g.splat(in)
	case ir.OpExtract:
		return g.extract(in)
	}
	return g.vec(in)
}

func (g *generator) splat(in *ir.Instr) value {
	x := in.Args[0]
	v, size, l := g.val(x), elementSize(in.Type.Kind), g.length(in.Type)
	switch v.place {
	case atConst, atParam:
		return v
	case atMask:
		return value{place: atMask, reg: g.op(mask, func(a *asm, r []int) {
			a.k2(opKToGPR, tempG, r[1])
			a.ri(opAND, false, tempG, 1)
			a.unary(digitNeg, false, tempG)
			a.k2(opKFromGPR, r[0], tempG)
		}, v.reg)}
	case atGeneral:
		if in.Type.Kind == ir.Bool {
			return value{place: atMask, reg: g.maskOf(x)}
		}
		return value{place: atVector, reg: g.vector(x)}
	}
	o := vBROADCASTSS.sized(size)
	if size == 8 {
		l = max(l, len256)
	}
	return value{place: atVector, reg: g.two(o, l, g.vector(x))}
}

func (g *generator) extract(in *ir.Instr) value {
	x, lane := in.Args[0], byte(in.Imm)
	v := g.val(x)
	switch {
	case v.place == atConst || v.place == atParam:
		return v
	case in.Type.Kind == ir.Bool:
		return value{place: atMask, reg: g.op(mask, func(a *asm, r []int) {
			a.k2(opKToGPR, tempG, r[1])
			a.shift(digitShr, false, tempG, lane)
			a.k2(opKFromGPR, r[0], tempG)
		}, v.reg)}
	case lane == 0:
		return v
	}
	o, l := vALIGND, g.length(x.Type)
	o.w = bit(is64(x.Type.Kind))
	r := g.vector(x)
	return value{place: atVector, reg: g.three(o, l, r, operand{reg: r}, lane)}
}

// vec makes a vector of scalars: by way of memory, unless they are constants.
func (g *generator) vec(in *ir.Instr) value {
	size := elementSize(in.Type.Kind)
	if in.Type.Kind == ir.Bool {
		g.fail("vec of truth values")
		return value{place: atMask, reg: g.newReg(mask)}
	}
	constant := make([]byte, 0, 64)
	for _, x := range in.Args {
		v := g.val(x)
		if v.place != atConst {
			constant = nil
			break
		}
		constant = appendWord(constant, uint32(v.bits))
		if size == 8 {
			constant = appendWord(constant, uint32(v.bits>>32))
		}
	}
	l := g.length(in.Type)
	if constant != nil {
		for len(constant) < 64 {
			constant = append(constant, 0)
		}
		return value{place: atVector, reg: g.op(vector, func(a *asm, r []int) {
			m := memory{pool: true, index: -1, disp: int32(a.table(constant, 64))}
			a.rrm(vMOVUPS, form{length: l}, r[0], 0, m)
		})}
	}
	for i, x := range in.Args {
		m := at(frameReg, int32(frameScratch+i*size))
		if v := g.val(x); v.place == atVector {
			g.effect(func(a *asm, r []int) { storeScalar(a, size, m, r[0]) }, v.reg)
		} else {
			g.effect(func(a *asm, r []int) { a.store(size, m, r[0]) }, g.general(x))
		}
	}
	d := g.newReg(vector)
	g.emit(ins{def: d, effect: true, emit: func(a *asm, r []int) {
		a.rrm(vMOVUPS, form{length: l}, r[0], 0, at(frameReg, frameScratch))
	}})
	return value{place: atVector, reg: d}
}

// storeScalar stores lane 0, of 4 or 8 bytes.
func storeScalar(a *asm, size int, m memory, s int) {
	o := opcode{0x11, pF3, m0F, 0} // vmovss
	if size == 8 {
		o = opcode{0x11, pF2, m0F, 1} // vmovsd
	}
	a.rrm(o, form{}, s, 0, m)
}
