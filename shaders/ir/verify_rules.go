package ir

import "fmt"

// rule checks one instruction, whose operands are known to exist and to be in scope, and returns what is wrong with it.
type rule func(v *verifier, in *Instr) string

// rules has the rule of each operation.
var rules = [numOps]rule{
	OpConst: ruleConst, OpParam: ruleParam,
	OpGlobalID: ruleID, OpLocalID: ruleID, OpGroupID: ruleID, OpNumGroups: ruleID,

	OpAdd: lanewise(Kind.IsArith), OpSub: lanewise(Kind.IsArith), OpMul: lanewise(Kind.IsArith), OpDiv: lanewise(Kind.IsArith),
	OpRem: lanewise(isIntOp), OpMin: lanewise(Kind.IsArith), OpMax: lanewise(Kind.IsArith),
	OpNeg: lanewise(isNegOp), OpAbs: lanewise(isNegOp), OpFma: lanewise(isFloatOp), OpMulHi: lanewise(isU32),
	OpAnd: lanewise(isBitsOp), OpOr: lanewise(isBitsOp), OpXor: lanewise(isBitsOp), OpNot: lanewise(isBitsOp),
	OpShl: lanewise(isIntOp), OpShr: lanewise(isIntOp),

	OpEq: compare(isEqOp), OpNe: compare(isEqOp),
	OpLt: compare(Kind.IsArith), OpLe: compare(Kind.IsArith), OpGt: compare(Kind.IsArith), OpGe: compare(Kind.IsArith),

	OpSelect: ruleSelect, OpConvert: ruleConvert, OpBitCast: ruleBitCast,
	OpSplat: ruleSplat, OpExtract: ruleExtract, OpVec: ruleVec,

	OpSqrt: lanewise(isFloatOp), OpRsqrt: lanewise(isFloatOp), OpExp: lanewise(isFloatOp), OpExp2: lanewise(isFloatOp),
	OpExpm1: lanewise(isFloatOp), OpLog: lanewise(isFloatOp), OpLog2: lanewise(isFloatOp), OpLog10: lanewise(isFloatOp),
	OpLog1p: lanewise(isFloatOp), OpSin: lanewise(isFloatOp), OpCos: lanewise(isFloatOp), OpTan: lanewise(isFloatOp),
	OpAsin: lanewise(isFloatOp), OpAcos: lanewise(isFloatOp), OpAtan: lanewise(isFloatOp), OpAtan2: lanewise(isFloatOp),
	OpSinh: lanewise(isFloatOp), OpCosh: lanewise(isFloatOp), OpTanh: lanewise(isFloatOp), OpErf: lanewise(isFloatOp),
	OpPow: lanewise(isFloatOp), OpFloor: lanewise(isFloatOp), OpCeil: lanewise(isFloatOp), OpTrunc: lanewise(isFloatOp),
	OpRound: lanewise(isFloatOp),

	OpVar: ruleVar, OpGet: ruleGet, OpSet: ruleSet, OpLoad: ruleLoad, OpStore: ruleStore,
	OpAtomicAdd: ruleAtomic, OpAtomicMin: ruleAtomic, OpAtomicMax: ruleAtomic, OpAtomicAnd: ruleAtomic,
	OpAtomicOr: ruleAtomic, OpAtomicXchg: ruleAtomic, OpAtomicCAS: ruleAtomic,

	OpShuffleXor: ruleShuffle,

	OpIf: ruleIf, OpFor: ruleFor, OpLoopVar: ruleLoopVar, OpBarrier: ruleVoid,
}

func isEqOp(k Kind) bool { return k.IsArith() || k == Bool }

// lanewise is the rule of operations whose operands and result have one type, of a kind that ok allows.
func lanewise(ok func(Kind) bool) rule {
	return func(_ *verifier, in *Instr) string {
		if !ok(in.Type.Kind) {
			return undefined(in.Op, in.Type)
		}
		return wantTypes(in, in.Type, in.Args)
	}
}

// compare is the rule of comparisons: operands of one type, result Bool with the same lanes.
func compare(ok func(Kind) bool) rule {
	return func(_ *verifier, in *Instr) string {
		t := in.Args[0].Type
		if !ok(t.Kind) {
			return undefined(in.Op, t)
		}
		if in.Type != t.With(Bool) {
			return wrongResult(in, t.With(Bool))
		}
		return wantTypes(in, t, in.Args)
	}
}

func undefined(op Op, t Type) string {
	if t.Kind == BF16 || t.Kind == U8 || t.Kind == U16 {
		return fmt.Sprintf("%s is not defined for %s: it is a storage kind; convert it first", op, t)
	}
	return fmt.Sprintf("%s is not defined for %s", op, t)
}

func wrongResult(in *Instr, want Type) string {
	return fmt.Sprintf("the result of %s must be %s, not %s", in.Op, want, in.Type)
}

func wantTypes(in *Instr, want Type, args []Value) string {
	for i, a := range args {
		if a.Type != want {
			return fmt.Sprintf("operand %d of %s has type %s: want %s", i+len(in.Args)-len(args), in.Op, a.Type, want)
		}
	}
	return ""
}

func ruleConst(_ *verifier, in *Instr) string {
	bits := in.Type.Kind.Size() * 8
	switch {
	case in.Type.Kind == Void:
		return "a constant needs a type"
	case in.Type.Kind == Bool:
		bits = 1
	}
	if bits < 64 && in.Imm>>bits != 0 {
		return fmt.Sprintf("constant %#x has more bits than a %s", in.Imm, in.Type.Kind)
	}
	return ""
}

func ruleParam(v *verifier, in *Instr) string {
	if in.Imm >= uint64(len(v.k.Params)) {
		return fmt.Sprintf("there is no parameter %d: the kernel has %d", in.Imm, len(v.k.Params))
	}
	if want := Scalar(v.k.Params[in.Imm].Kind); in.Type != want {
		return wrongResult(in, want)
	}
	return ""
}

func ruleID(_ *verifier, in *Instr) string {
	if in.Imm > 2 {
		return fmt.Sprintf("dimension %d is not 0, 1 or 2", in.Imm)
	}
	if in.Type != Scalar(U32) {
		return wrongResult(in, Scalar(U32))
	}
	return ""
}

func ruleSelect(_ *verifier, in *Instr) string {
	if in.Type.Kind == Void {
		return "select needs a type"
	}
	if want := in.Type.With(Bool); in.Args[0].Type != want {
		return fmt.Sprintf("the condition of select has type %s: want %s", in.Args[0].Type, want)
	}
	return wantTypes(in, in.Type, in.Args[1:])
}

func ruleConvert(_ *verifier, in *Instr) string {
	from, to := in.Args[0].Type, in.Type
	switch {
	case to.Kind == Void:
		return "convert needs a kind"
	case from.Kind == to.Kind:
		return fmt.Sprintf("convert from %s to itself", from.Kind)
	case from.Lanes != to.Lanes:
		return fmt.Sprintf("convert from %s to %s changes the lanes", from, to)
	}
	return ""
}

func ruleBitCast(_ *verifier, in *Instr) string {
	from, to := in.Args[0].Type, in.Type
	if from.Kind == to.Kind || from.Lanes != to.Lanes || from.Kind.Size() != to.Kind.Size() || to.Kind.Size() == 0 {
		return fmt.Sprintf("bitcast from %s to %s: needs another kind of the same size and the same lanes", from, to)
	}
	return ""
}

func ruleSplat(_ *verifier, in *Instr) string {
	if in.Args[0].Type != Scalar(in.Type.Kind) || !in.Type.IsVector() {
		return fmt.Sprintf("splat makes a vector of a scalar of its kind, not %s of %s", in.Type, in.Args[0].Type)
	}
	return ""
}

func ruleExtract(_ *verifier, in *Instr) string {
	from := in.Args[0].Type
	if !from.IsVector() || in.Imm >= uint64(from.Lanes) {
		return fmt.Sprintf("%s has no lane %d to extract", from, in.Imm)
	}
	if in.Type != Scalar(from.Kind) {
		return wrongResult(in, Scalar(from.Kind))
	}
	return ""
}

func ruleVec(_ *verifier, in *Instr) string {
	if !in.Type.IsVector() || len(in.Args) != in.Type.Lanes {
		return fmt.Sprintf("%d operands do not make a %s", len(in.Args), in.Type)
	}
	return wantTypes(in, Scalar(in.Type.Kind), in.Args)
}

func ruleShuffle(v *verifier, in *Instr) string {
	switch {
	case v.k.Subgroup == 0:
		return "the kernel does not say how large a subgroup is"
	case in.Imm == 0 || in.Imm >= uint64(v.k.Subgroup):
		return fmt.Sprintf("mask %d leads to no other invocation of a subgroup of %d", in.Imm, v.k.Subgroup)
	case in.Type.Kind.Size() != 4 || in.Type.Lanes != 1:
		return fmt.Sprintf("shuffle_xor is not defined for %s, only for scalars of f32, i32 and u32", in.Type)
	}
	return wantTypes(in, in.Type, in.Args)
}

func ruleVar(_ *verifier, in *Instr) string { return wantTypes(in, in.Type, in.Args) }

func ruleGet(_ *verifier, in *Instr) string {
	if in.Args[0].Op != OpVar {
		return fmt.Sprintf("get reads a variable, not a %s", in.Args[0].Op)
	}
	return wantTypes(in, in.Type, in.Args)
}

func ruleSet(v *verifier, in *Instr) string {
	if in.Args[0].Op != OpVar {
		return fmt.Sprintf("set writes a variable, not a %s", in.Args[0].Op)
	}
	if r := wantTypes(in, in.Args[0].Type, in.Args[1:]); r != "" {
		return r
	}
	return ruleVoid(v, in)
}

func ruleVoid(_ *verifier, in *Instr) string {
	if in.Type.Kind != Void {
		return fmt.Sprintf("%s has no result, but has type %s", in.Op, in.Type)
	}
	return ""
}

// memory checks the memory operand and the index, which is the first operand.
func (v *verifier) memory(in *Instr, need Access) string {
	m := in.Mem
	switch {
	case m == nil:
		return fmt.Sprintf("%s needs memory", in.Op)
	case !v.mems[m]:
		return fmt.Sprintf("memory %q is not declared in this kernel", m.Name)
	case m.Space == Global && m.Access&need != need:
		return fmt.Sprintf("%s needs %s access to buffer %q, which is declared %s", in.Op, need, m.Name, m.Access)
	case in.Args[0].Type != Scalar(U32):
		return fmt.Sprintf("the index has type %s: want u32", in.Args[0].Type)
	}
	return ""
}

// converts reports whether an access of kind k to m is one that converts between F32 and F16 (see OpLoad, OpStore).
func converts(k Kind, m *Mem) bool { return k == F32 && m.Kind == F16 }

func ruleLoad(v *verifier, in *Instr) string {
	if r := v.memory(in, Read); r != "" {
		return r
	}
	if in.Type.Kind != in.Mem.Kind && !converts(in.Type.Kind, in.Mem) {
		return fmt.Sprintf("a load of %s from memory of %s", in.Type, in.Mem.Kind)
	}
	return ""
}

func ruleStore(v *verifier, in *Instr) string {
	if r := v.memory(in, Write); r != "" {
		return r
	}
	if k := in.Args[1].Type.Kind; k != in.Mem.Kind && !converts(k, in.Mem) {
		return fmt.Sprintf("a store of %s to memory of %s", in.Args[1].Type, in.Mem.Kind)
	}
	return ruleVoid(v, in)
}

func ruleAtomic(v *verifier, in *Instr) string {
	if r := v.memory(in, ReadWrite); r != "" {
		return r
	}
	m := in.Mem
	if m.Kind != U32 && m.Kind != I32 || m.Space == Private {
		return fmt.Sprintf("%s needs u32 or i32 in global or shared memory, not %s in %s memory", in.Op, m.Kind, m.Space)
	}
	if in.Type != Scalar(m.Kind) {
		return wrongResult(in, Scalar(m.Kind))
	}
	return wantTypes(in, in.Type, in.Args[1:])
}

func ruleIf(v *verifier, in *Instr) string {
	if in.Args[0].Type != Scalar(Bool) {
		return fmt.Sprintf("the condition has type %s: want a bool scalar", in.Args[0].Type)
	}
	return ruleVoid(v, in)
}

func ruleFor(v *verifier, in *Instr) string {
	t := in.Args[0].Type
	if t != Scalar(I32) && t != Scalar(U32) {
		return fmt.Sprintf("the bounds have type %s: want i32 or u32", t)
	}
	if r := wantTypes(in, t, in.Args); r != "" {
		return r
	}
	if s := in.Args[2]; s.Op == OpConst && ConstFloat(t.Kind, s.Imm) <= 0 {
		return "the step must be positive"
	}
	return ruleVoid(v, in)
}

// ruleLoopVar has nothing to add: verifier.block checks the place and the type.
func ruleLoopVar(*verifier, *Instr) string { return "" }
