package spirv

import "github.com/anygpu/anygpu/shaders/ir"

// byKind picks one of three opcodes by the class of a kind; 0 means that there is none.
type byKind struct{ float, signed, unsigned opcode }

func (o byKind) of(k ir.Kind) opcode {
	switch {
	case k.IsFloat():
		return o.float
	case k.IsSigned():
		return o.signed
	}
	return o.unsigned
}

var arithOps = map[ir.Op]byKind{
	ir.OpAdd: {opFAdd, opIAdd, opIAdd}, ir.OpSub: {opFSub, opISub, opISub}, ir.OpMul: {opFMul, opIMul, opIMul},
	ir.OpDiv: {opFDiv, opSDiv, opUDiv}, ir.OpRem: {0, 0, opUMod}, ir.OpNeg: {opFNegate, opSNegate, 0},
	ir.OpAnd: {0, opBitwiseAnd, opBitwiseAnd}, ir.OpOr: {0, opBitwiseOr, opBitwiseOr}, ir.OpXor: {0, opBitwiseXor, opBitwiseXor},
	ir.OpNot: {0, opNot, opNot}, ir.OpShl: {0, opShiftLeftLogical, opShiftLeftLogical},
	ir.OpShr: {0, opShiftRightArith, opShiftRightLogical},
}

var boolOps = map[ir.Op]opcode{ir.OpAnd: opLogicalAnd, ir.OpOr: opLogicalOr, ir.OpXor: opLogicalNotEqual, ir.OpNot: opLogicalNot,
	ir.OpEq: opLogicalEqual, ir.OpNe: opLogicalNotEqual}

var compareOps = map[ir.Op]byKind{
	ir.OpEq: {opFOrdEqual, opIEqual, opIEqual}, ir.OpNe: {opFUnordNotEqual, opINotEqual, opINotEqual},
	ir.OpLt: {opFOrdLessThan, opSLessThan, opULessThan}, ir.OpLe: {opFOrdLessThanEqual, opSLessThanEqual, opULessThanEqual},
	ir.OpGt: {opFOrdGreaterThan, opSGreaterThan, opUGreaterThan}, ir.OpGe: {opFOrdGreaterEqual, opSGreaterThanEqual, opUGreaterThanEqual},
}

func (e *emitter) vals(in *ir.Instr) []uint32 {
	out := make([]uint32, len(in.Args))
	for i, a := range in.Args {
		out[i] = e.val(a)
	}
	return out
}

// arith emits arithmetic and bit operations.
func (e *emitter) arith(in *ir.Instr) uint32 {
	kind, typ, args := in.Type.Kind, e.valueType(in.Type), e.vals(in)
	if kind == ir.Bool {
		op, ok := boolOps[in.Op]
		if !ok {
			e.fail(in, "not defined for bool")
		}
		return e.result(op, typ, args...)
	}
	switch in.Op {
	case ir.OpMin, ir.OpMax:
		return e.minMax(in, typ, args)
	case ir.OpAbs:
		return e.abs(in, typ, args[0])
	case ir.OpFma:
		return e.extended(glslFma, typ, args...)
	case ir.OpMulHi:
		pair, _ := e.typ(opTypeStruct, typ, typ)
		return e.result(opCompositeExtract, typ, e.result(opUMulExtended, pair, args...), 1)
	case ir.OpRem:
		if kind.IsSigned() { // OpSRem of negative operands is undefined in Vulkan
			q := e.result(opSDiv, typ, args...)
			return e.result(opISub, typ, args[0], e.result(opIMul, typ, q, args[1]))
		}
	}
	op := arithOps[in.Op].of(kind)
	if op == 0 {
		e.fail(in, "not defined for %s", kind)
	}
	id := e.result(op, typ, args...)
	switch op {
	case opFAdd, opFSub, opFMul, opFDiv:
		e.decorate(id, decoNoContraction)
	}
	return id
}

func (e *emitter) minMax(in *ir.Instr, typ uint32, args []uint32) uint32 {
	isMin, kind := in.Op == ir.OpMin, in.Type.Kind
	if kind == ir.I64 { // drivers differ in whether GLSL.std.450 takes 64-bit integers
		op := opSGreaterThan
		if isMin {
			op = opSLessThan
		}
		return e.result(opSelect, typ, e.result(op, e.valueType(in.Type.With(ir.Bool)), args...), args[0], args[1])
	}
	var g glsl
	switch {
	case kind.IsFloat() && isMin:
		g = glslFMin
	case kind.IsFloat():
		g = glslFMax
	case kind.IsSigned() && isMin:
		g = glslSMin
	case kind.IsSigned():
		g = glslSMax
	case isMin:
		g = glslUMin
	default:
		g = glslUMax
	}
	return e.extended(g, typ, args...)
}

func (e *emitter) abs(in *ir.Instr, typ, x uint32) uint32 {
	switch kind := in.Type.Kind; {
	case kind.IsFloat():
		return e.extended(glslFAbs, typ, x)
	case kind == ir.I32:
		return e.extended(glslSAbs, typ, x)
	case kind == ir.I64:
		neg := e.result(opSLessThan, e.valueType(in.Type.With(ir.Bool)), x, e.constBits(in.Type, 0))
		return e.result(opSelect, typ, neg, e.result(opSNegate, typ, x), x)
	}
	e.fail(in, "not defined for %s", in.Type.Kind)
	return 0
}

func (e *emitter) compare(in *ir.Instr) uint32 {
	kind := in.Args[0].Type.Kind
	op := compareOps[in.Op].of(kind)
	if kind == ir.Bool {
		var ok bool
		if op, ok = boolOps[in.Op]; !ok {
			e.fail(in, "not defined for bool")
		}
	}
	return e.result(op, e.valueType(in.Type), e.vals(in)...)
}

func (e *emitter) math(in *ir.Instr) uint32 {
	g, ok := extMath[in.Op]
	switch {
	case !ok:
		e.fail(in, "GLSL.std.450 has no %s; lower the kernel without it in NativeMath", in.Op)
	case in.Type.Kind == ir.F64 && !native64.Has(in.Op):
		e.fail(in, "GLSL.std.450 has no %s of f64; compute it in f32 or run the kernel on another device", in.Op)
	}
	return e.extended(g, e.valueType(in.Type), e.vals(in)...)
}

// move emits what rearranges, chooses and converts values.
func (e *emitter) move(in *ir.Instr) uint32 {
	typ := e.valueType(in.Type)
	switch in.Op {
	case ir.OpSplat:
		if in.Args[0].Op == ir.OpConst {
			return 0 // declared at use
		}
		x := e.val(in.Args[0])
		return e.result(opCompositeConstruct, typ, repeat(x, in.Type.Lanes)...)
	case ir.OpExtract:
		if in.Args[0].Type.Lanes == 1 {
			return e.val(in.Args[0])
		}
		return e.result(opCompositeExtract, typ, e.val(in.Args[0]), uint32(in.Imm))
	case ir.OpVec:
		return e.result(opCompositeConstruct, typ, e.vals(in)...)
	case ir.OpSelect:
		args := e.vals(in)
		if in.Args[0].Type.Lanes < in.Type.Lanes {
			args[0] = e.result(opCompositeConstruct, e.valueType(in.Type.With(ir.Bool)), repeat(args[0], in.Type.Lanes)...)
		}
		return e.result(opSelect, typ, args...)
	case ir.OpConvert:
		return e.convert(e.val(in.Args[0]), in.Args[0].Type, in.Type)
	}
	return e.bitCast(in)
}

func repeat(x uint32, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = x
	}
	return out
}

// convert converts x from one type to another of the same lanes. ir.Lower has clamped floats to the integer's range.
func (e *emitter) convert(x uint32, from, to ir.Type) uint32 {
	typ := e.valueType(to)
	switch {
	case from.Kind == to.Kind:
		return x
	case to.Kind == ir.Bool && from.Kind.IsFloat():
		return e.result(opFUnordNotEqual, typ, x, e.constBits(from, 0))
	case to.Kind == ir.Bool:
		return e.result(opINotEqual, typ, x, e.constBits(from, 0))
	case from.Kind == ir.Bool:
		return e.result(opSelect, typ, x, e.constBits(to, ir.ConstBits(to.Kind, 1)), e.constBits(to, 0))
	case from.Kind.IsFloat() && to.Kind.IsFloat():
		return e.result(opFConvert, typ, x)
	case from.Kind.IsFloat() && to.Kind.IsSigned():
		return e.result(opConvertFToS, typ, x)
	case from.Kind.IsFloat():
		return e.result(opConvertFToU, typ, x)
	case to.Kind.IsFloat() && from.Kind.IsSigned():
		return e.result(opConvertSToF, typ, x)
	case to.Kind.IsFloat():
		return e.result(opConvertUToF, typ, x)
	}
	x = e.convertInt(x, from, to)
	switch { // wrap to the storage kind
	case to.Kind == ir.U8:
		x = e.result(opBitwiseAnd, typ, x, e.constBits(to, 0xff))
	case to.Kind == ir.U16 && from.Kind != ir.U8:
		x = e.result(opBitwiseAnd, typ, x, e.constBits(to, 0xffff))
	}
	return x
}

// convertInt converts between the 32-bit and 64-bit words that integers are kept in.
func (e *emitter) convertInt(x uint32, from, to ir.Type) uint32 {
	typ := e.valueType(to)
	wide, wasWide := to.Kind == ir.I64, from.Kind == ir.I64
	switch {
	case wide == wasWide && e.valueType(from) == typ:
		return x
	case wide == wasWide:
		return e.result(opBitcast, typ, x)
	case wide && from.Kind.IsSigned(), wasWide && to.Kind.IsSigned():
		return e.result(opSConvert, typ, x)
	case wasWide:
		return e.result(opUConvert, typ, x)
	}
	unsigned := e.vector(e.intType(64, 0), to.Lanes) // OpUConvert gives unsigned results only
	return e.result(opBitcast, typ, e.result(opUConvert, unsigned, x))
}

// bitCast reinterprets bits. U16 values are kept in 32-bit words, so F16 goes through a pair of halves in a word.
func (e *emitter) bitCast(in *ir.Instr) uint32 {
	from, to := in.Args[0].Type, in.Type
	typ, x := e.valueType(to), e.val(in.Args[0])
	switch {
	case e.valueType(from) == typ:
		return x
	case from.Kind == ir.U16 && to.Kind == ir.F16, from.Kind == ir.F16 && to.Kind == ir.U16:
		half, halves, word := e.valueType(ir.Scalar(ir.F16)), e.valueType(ir.Vec(ir.F16, 2)), e.valueType(ir.Scalar(ir.U32))
		return e.lanes(x, from, to, func(lane uint32) uint32 {
			if to.Kind == ir.F16 {
				return e.result(opCompositeExtract, half, e.result(opBitcast, halves, lane), 0)
			}
			return e.result(opBitcast, word, e.result(opCompositeConstruct, halves, lane, e.constBits(ir.Scalar(ir.F16), 0)))
		})
	case from.Kind.Size() != to.Kind.Size() || from.Kind.Size() < 4:
		e.fail(in, "no bit cast from %s to %s", from, to)
	}
	return e.result(opBitcast, typ, x)
}

// lanes applies f to each lane of x and gives the results as a value of type to.
func (e *emitter) lanes(x uint32, from, to ir.Type, f func(lane uint32) uint32) uint32 {
	if from.Lanes == 1 {
		return f(x)
	}
	out := make([]uint32, from.Lanes)
	for i := range out {
		out[i] = f(e.result(opCompositeExtract, e.valueType(ir.Scalar(from.Kind)), x, uint32(i)))
	}
	return e.result(opCompositeConstruct, e.valueType(to), out...)
}
