package ir

import "fmt"

// Op is the operation of an instruction.
type Op uint8

// The operations. The comment gives operands and result.
const (
	OpInvalid Op = iota

	// Leaves.
	OpConst     // Imm: the bits of the constant (see ConstBits), the same in every lane
	OpParam     // Imm: index of the scalar parameter
	OpGlobalID  // Imm: dimension; U32. GroupID*workgroup size + LocalID
	OpLocalID   // Imm: dimension; U32
	OpGroupID   // Imm: dimension; U32
	OpNumGroups // Imm: dimension; U32

	// Arithmetic, lane by lane; operands and result of one type.
	OpAdd
	OpSub
	OpMul
	OpDiv // integers truncate
	OpRem // integers only; the sign of the dividend
	OpMin
	OpMax
	OpNeg
	OpAbs
	OpFma   // a*b+c, floats
	OpMulHi // U32: the high word of the 64-bit product

	// Bits: integers (I32, U32, I64), and And, Or, Xor, Not also of Bool.
	OpAnd
	OpOr
	OpXor
	OpNot
	OpShl // the amount has the type of the value
	OpShr // arithmetic for signed kinds

	// Comparisons: operands of one type, result Bool with the same lanes. With NaN all but Ne are false.
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe

	// Choice and conversion.
	OpSelect  // cond Bool, a, b: cond ? a : b, lane by lane
	OpConvert // value conversion to Type
	OpBitCast // the same bits as another type of the same total size (U32/I32/F32, U16/F16/BF16, I64/F64)

	// Vectors.
	OpSplat   // scalar to every lane
	OpExtract // Imm: lane
	OpVec     // Lanes scalars to a vector

	// Math functions, lane by lane, floats (F32 and F64; F16 by way of F32).
	OpSqrt
	OpRsqrt
	OpExp
	OpExp2
	OpExpm1
	OpLog
	OpLog2
	OpLog10
	OpLog1p
	OpSin
	OpCos
	OpTan
	OpAsin
	OpAcos
	OpAtan
	OpAtan2 // y, x
	OpSinh
	OpCosh
	OpTanh
	OpErf
	OpPow
	OpFloor
	OpCeil
	OpTrunc
	OpRound // half to even

	// State and memory.
	OpVar   // args: initial value; declares a mutable variable of its type. Use only through Get and Set
	OpGet   // args: the OpVar; its current value
	OpSet   // args: the OpVar, value
	OpLoad  // Mem; args: index U32. A load of F32 from memory of F16 converts (only after Lower)
	OpStore // Mem; args: index U32, value. A store of F32 to memory of F16 rounds to nearest even (only after Lower)

	// Atomics on U32 or I32 in Global or Shared memory; the result is the old value.
	OpAtomicAdd // Mem; args: index, value
	OpAtomicMin
	OpAtomicMax
	OpAtomicAnd
	OpAtomicOr
	OpAtomicXchg
	OpAtomicCAS // Mem; args: index, expected, value

	// OpShuffleXor is the operand's value in another invocation of the subgroup: the one whose local id differs by XOR with Imm, which is
	// below the kernel's Subgroup. F32, I32 and U32 scalars, where all invocations of the workgroup are together.
	OpShuffleXor

	// Structure.
	OpIf      // args: cond Bool scalar; Blocks: then, else (may be empty)
	OpFor     // args: lo, hi, step (I32 or U32 scalars, step > 0); Blocks: body, whose first instruction is the OpLoopVar
	OpLoopVar // the loop's counter
	OpBarrier // execution and memory barrier of the workgroup (Shared and Global)

	numOps
)

// opClass groups operations that share a rule.
type opClass uint8

const (
	classLeaf opClass = iota
	classArith
	classBits
	classCompare
	classMisc
	classMath
	classState
	classAtomic
	classExchange
	classStructure
)

type opInfo struct {
	name  string
	args  int // -1: varies
	class opClass
}

var opInfos = [numOps]opInfo{
	OpInvalid: {"invalid", 0, classMisc},
	OpConst:   {"const", 0, classLeaf}, OpParam: {"param", 0, classLeaf}, OpGlobalID: {"global_id", 0, classLeaf},
	OpLocalID: {"local_id", 0, classLeaf}, OpGroupID: {"group_id", 0, classLeaf}, OpNumGroups: {"num_groups", 0, classLeaf},
	OpAdd: {"add", 2, classArith}, OpSub: {"sub", 2, classArith}, OpMul: {"mul", 2, classArith}, OpDiv: {"div", 2, classArith},
	OpRem: {"rem", 2, classArith}, OpMin: {"min", 2, classArith}, OpMax: {"max", 2, classArith}, OpNeg: {"neg", 1, classArith},
	OpAbs: {"abs", 1, classArith}, OpFma: {"fma", 3, classArith}, OpMulHi: {"mul_hi", 2, classArith},
	OpAnd: {"and", 2, classBits}, OpOr: {"or", 2, classBits}, OpXor: {"xor", 2, classBits}, OpNot: {"not", 1, classBits},
	OpShl: {"shl", 2, classBits}, OpShr: {"shr", 2, classBits},
	OpEq: {"eq", 2, classCompare}, OpNe: {"ne", 2, classCompare}, OpLt: {"lt", 2, classCompare}, OpLe: {"le", 2, classCompare},
	OpGt: {"gt", 2, classCompare}, OpGe: {"ge", 2, classCompare},
	OpSelect: {"select", 3, classMisc}, OpConvert: {"convert", 1, classMisc}, OpBitCast: {"bitcast", 1, classMisc},
	OpSplat: {"splat", 1, classMisc}, OpExtract: {"extract", 1, classMisc}, OpVec: {"vec", -1, classMisc},
	OpSqrt: {"sqrt", 1, classMath}, OpRsqrt: {"rsqrt", 1, classMath}, OpExp: {"exp", 1, classMath}, OpExp2: {"exp2", 1, classMath},
	OpExpm1: {"expm1", 1, classMath}, OpLog: {"log", 1, classMath}, OpLog2: {"log2", 1, classMath}, OpLog10: {"log10", 1, classMath},
	OpLog1p: {"log1p", 1, classMath}, OpSin: {"sin", 1, classMath}, OpCos: {"cos", 1, classMath}, OpTan: {"tan", 1, classMath},
	OpAsin: {"asin", 1, classMath}, OpAcos: {"acos", 1, classMath}, OpAtan: {"atan", 1, classMath}, OpAtan2: {"atan2", 2, classMath},
	OpSinh: {"sinh", 1, classMath}, OpCosh: {"cosh", 1, classMath}, OpTanh: {"tanh", 1, classMath}, OpErf: {"erf", 1, classMath},
	OpPow: {"pow", 2, classMath}, OpFloor: {"floor", 1, classMath}, OpCeil: {"ceil", 1, classMath}, OpTrunc: {"trunc", 1, classMath},
	OpRound: {"round", 1, classMath},
	OpVar:   {"var", 1, classState}, OpGet: {"get", 1, classState}, OpSet: {"set", 2, classState},
	OpLoad: {"load", 1, classState}, OpStore: {"store", 2, classState},
	OpAtomicAdd: {"atomic_add", 2, classAtomic}, OpAtomicMin: {"atomic_min", 2, classAtomic}, OpAtomicMax: {"atomic_max", 2, classAtomic},
	OpAtomicAnd: {"atomic_and", 2, classAtomic}, OpAtomicOr: {"atomic_or", 2, classAtomic}, OpAtomicXchg: {"atomic_xchg", 2, classAtomic},
	OpAtomicCAS:  {"atomic_cas", 3, classAtomic},
	OpShuffleXor: {"shuffle_xor", 1, classExchange},
	OpIf:         {"if", 1, classStructure}, OpFor: {"for", 3, classStructure}, OpLoopVar: {"loop_var", 0, classStructure},
	OpBarrier: {"barrier", 0, classStructure},
}

// String returns the operation's name in printed IR.
func (o Op) String() string {
	if o >= numOps {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return opInfos[o].name
}

// NumOps is the number of operations; every Op is below it.
const NumOps = int(numOps)

// IsMath reports whether o is a math function (OpSqrt to OpRound).
func (o Op) IsMath() bool { return o < numOps && opInfos[o].class == classMath }

// IsArith reports whether o is arithmetic (OpAdd to OpMulHi).
func (o Op) IsArith() bool { return o < numOps && opInfos[o].class == classArith }

// IsBits reports whether o is a bit operation (OpAnd to OpShr).
func (o Op) IsBits() bool { return o < numOps && opInfos[o].class == classBits }

// IsCompare reports whether o is a comparison.
func (o Op) IsCompare() bool { return o < numOps && opInfos[o].class == classCompare }

// IsAtomic reports whether o is an atomic memory operation.
func (o Op) IsAtomic() bool { return o < numOps && opInfos[o].class == classAtomic }
