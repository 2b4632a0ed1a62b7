package interp

import (
	"math"

	vloop "github.com/anygpu/anygpu/shaders/interp/internal/vec"
	"github.com/anygpu/anygpu/shaders/ir"
)

// The math functions of both executors. Those of F32 that package vmath defines are computed as it says, within its
// bounds; the others in float64, and rounded once more for F32.

func rsqrt64(x float64) float64 { return 1 / math.Sqrt(x) }

// unaryMath64 has the functions of one operand; other entries are nil.
var unaryMath64 = [ir.NumOps]func(float64) float64{
	ir.OpSqrt: math.Sqrt, ir.OpRsqrt: rsqrt64,
	ir.OpExp: math.Exp, ir.OpExp2: math.Exp2, ir.OpExpm1: math.Expm1,
	ir.OpLog: math.Log, ir.OpLog2: Log2, ir.OpLog10: Log10, ir.OpLog1p: math.Log1p,
	ir.OpSin: math.Sin, ir.OpCos: math.Cos, ir.OpTan: math.Tan,
	ir.OpAsin: math.Asin, ir.OpAcos: math.Acos, ir.OpAtan: math.Atan,
	ir.OpSinh: math.Sinh, ir.OpCosh: math.Cosh, ir.OpTanh: math.Tanh,
	ir.OpErf:   math.Erf,
	ir.OpFloor: math.Floor, ir.OpCeil: math.Ceil, ir.OpTrunc: math.Trunc, ir.OpRound: math.RoundToEven,
}

// binaryMath64 has the functions of two operands.
var binaryMath64 = [ir.NumOps]func(x, y float64) float64{ir.OpAtan2: math.Atan2, ir.OpPow: math.Pow}

// math32 computes a math function of F32 operands; y is ignored by functions of one operand.
func math32(op ir.Op, x, y float32) float32 {
	if f := vloop.Scalar(op); f != nil {
		return f(x)
	}
	if f := unaryMath64[op]; f != nil {
		return float32(f(float64(x)))
	}
	return float32(binaryMath64[op](float64(x), float64(y)))
}

func evalMath(op ir.Op, k ir.Kind, a, b uint64) uint64 {
	switch k {
	case ir.F16:
		return uint64(ir.F32ToF16(math32(op, ir.F16ToF32(uint16(a)), ir.F16ToF32(uint16(b)))))
	case ir.F32:
		return bitsF32(math32(op, f32of(a), f32of(b)))
	case ir.F64:
		if f := unaryMath64[op]; f != nil {
			return bitsF64(f(f64of(a)))
		}
		return bitsF64(binaryMath64[op](f64of(a), f64of(b)))
	}
	return 0
}
