package interp

import (
	"math"
	"math/bits"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Scalars are kept as bits in a uint64, as ir.ConstBits does: narrower kinds in the low bits, Bool as 0 or 1.

func f32of(b uint64) float32   { return math.Float32frombits(uint32(b)) }
func bitsF32(f float32) uint64 { return uint64(math.Float32bits(f)) }
func f64of(b uint64) float64   { return math.Float64frombits(b) }
func bitsF64(f float64) uint64 { return math.Float64bits(f) }
func i32of(b uint64) int32     { return int32(uint32(b)) }
func bitsI32(i int32) uint64   { return uint64(uint32(i)) }
func bitsBool(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// evalOp computes an arithmetic, bit, comparison or math operation on operands of kind k. Faults (division by zero,
// shifts by too much) give 0; faultOf finds them.
func evalOp(op ir.Op, k ir.Kind, a, b, c uint64) uint64 {
	if op.IsMath() {
		return evalMath(op, k, a, b)
	}
	if op.IsCompare() {
		return bitsBool(evalCompare(op, k, a, b))
	}
	switch k {
	case ir.Bool:
		return evalBool(op, a, b)
	case ir.U32:
		return uint64(evalU32(op, uint32(a), uint32(b)))
	case ir.I32:
		return bitsI32(evalSigned(op, i32of(a), i32of(b), 32))
	case ir.I64:
		return uint64(evalSigned(op, int64(a), int64(b), 64))
	case ir.F16:
		return evalF16(op, uint16(a), uint16(b), uint16(c))
	case ir.F32:
		return bitsF32(evalFloat(op, f32of(a), f32of(b), f32of(c)))
	case ir.F64:
		return bitsF64(evalFloat(op, f64of(a), f64of(b), f64of(c)))
	}
	return 0
}

func evalBool(op ir.Op, a, b uint64) uint64 {
	switch op {
	case ir.OpAnd:
		return a & b
	case ir.OpOr:
		return a | b
	case ir.OpXor:
		return a ^ b
	case ir.OpNot:
		return a ^ 1
	}
	return 0
}

func evalU32(op ir.Op, x, y uint32) uint32 {
	switch op {
	case ir.OpAdd:
		return x + y
	case ir.OpSub:
		return x - y
	case ir.OpMul:
		return x * y
	case ir.OpMulHi:
		hi, _ := bits.Mul32(x, y)
		return hi
	case ir.OpDiv:
		if y == 0 {
			return 0
		}
		return x / y
	case ir.OpRem:
		if y == 0 {
			return 0
		}
		return x % y
	case ir.OpMin:
		return min(x, y)
	case ir.OpMax:
		return max(x, y)
	case ir.OpAnd:
		return x & y
	case ir.OpOr:
		return x | y
	case ir.OpXor:
		return x ^ y
	case ir.OpNot:
		return ^x
	case ir.OpShl:
		if y >= 32 {
			return 0
		}
		return x << y
	case ir.OpShr:
		if y >= 32 {
			return 0
		}
		return x >> y
	}
	return 0
}

func evalSigned[T int32 | int64](op ir.Op, x, y T, width T) T {
	switch op {
	case ir.OpAdd:
		return x + y
	case ir.OpSub:
		return x - y
	case ir.OpMul:
		return x * y
	case ir.OpDiv:
		if y == 0 {
			return 0
		}
		return x / y
	case ir.OpRem:
		if y == 0 {
			return 0
		}
		return x % y
	case ir.OpMin:
		return min(x, y)
	case ir.OpMax:
		return max(x, y)
	case ir.OpNeg:
		return -x
	case ir.OpAbs:
		if x < 0 {
			return -x
		}
		return x
	case ir.OpAnd:
		return x & y
	case ir.OpOr:
		return x | y
	case ir.OpXor:
		return x ^ y
	case ir.OpNot:
		return ^x
	case ir.OpShl:
		if y < 0 || y >= width {
			return 0
		}
		return x << y
	case ir.OpShr:
		if y < 0 || y >= width {
			return 0
		}
		return x >> y
	}
	return 0
}

// evalFloat relies on Go's rounding of each operation; the explicit conversion in Fma keeps the compiler from fusing it.
func evalFloat[T float32 | float64](op ir.Op, x, y, z T) T {
	switch op {
	case ir.OpAdd:
		return x + y
	case ir.OpSub:
		return x - y
	case ir.OpMul:
		return x * y
	case ir.OpDiv:
		return x / y
	case ir.OpMin:
		if y < x {
			return y
		}
		return x
	case ir.OpMax:
		if y > x {
			return y
		}
		return x
	case ir.OpNeg:
		return -x
	case ir.OpAbs:
		return T(math.Abs(float64(x)))
	case ir.OpFma:
		return T(x*y) + z
	}
	return 0
}

func evalF16(op ir.Op, a, b, c uint16) uint64 {
	switch op {
	case ir.OpNeg:
		return uint64(a ^ 0x8000)
	case ir.OpAbs:
		return uint64(a &^ 0x8000)
	}
	x, y := ir.F16ToF32(a), ir.F16ToF32(b)
	if op == ir.OpFma {
		return uint64(ir.F32ToF16(float32(x*y) + ir.F16ToF32(c)))
	}
	return uint64(ir.F32ToF16(evalFloat(op, x, y, 0)))
}

func evalCompare(op ir.Op, k ir.Kind, a, b uint64) bool {
	switch k {
	case ir.I32:
		return compare(op, i32of(a), i32of(b))
	case ir.I64:
		return compare(op, int64(a), int64(b))
	case ir.F16:
		return compare(op, ir.F16ToF32(uint16(a)), ir.F16ToF32(uint16(b)))
	case ir.F32:
		return compare(op, f32of(a), f32of(b))
	case ir.F64:
		return compare(op, f64of(a), f64of(b))
	}
	return compare(op, a, b)
}

func compare[T int32 | int64 | uint64 | float32 | float64](op ir.Op, x, y T) bool {
	switch op {
	case ir.OpEq:
		return x == y
	case ir.OpNe:
		return x != y
	case ir.OpLt:
		return x < y
	case ir.OpLe:
		return x <= y
	case ir.OpGt:
		return x > y
	case ir.OpGe:
		return x >= y
	}
	return false
}

// evalAtomic returns the new value of an atomic other than AtomicCAS.
func evalAtomic(op ir.Op, k ir.Kind, old, v uint64) uint64 {
	switch op {
	case ir.OpAtomicAdd:
		return evalOp(ir.OpAdd, k, old, v, 0)
	case ir.OpAtomicMin:
		return evalOp(ir.OpMin, k, old, v, 0)
	case ir.OpAtomicMax:
		return evalOp(ir.OpMax, k, old, v, 0)
	case ir.OpAtomicAnd:
		return old & v
	case ir.OpAtomicOr:
		return old | v
	}
	return v // OpAtomicXchg
}
