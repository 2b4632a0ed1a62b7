package interp

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// The math functions of both executors. Each is computed in float64; for F32 the result is rounded once more, which
// leaves it within 0.51 ulp.

func rsqrt64(x float64) float64 { return 1 / math.Sqrt(x) }

// unaryMath64 has the functions of one operand; other entries are nil.
var unaryMath64 = [ir.NumOps]func(float64) float64{
	ir.OpSqrt: math.Sqrt, ir.OpRsqrt: rsqrt64,
	ir.OpExp: math.Exp, ir.OpExp2: math.Exp2, ir.OpExpm1: math.Expm1,
	ir.OpLog: math.Log, ir.OpLog2: math.Log2, ir.OpLog10: math.Log10, ir.OpLog1p: math.Log1p,
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
	switch op {
	case ir.OpExp:
		return exp32(x)
	case ir.OpTanh:
		return tanh32(x)
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

// exp2Table has 2^(i/32).
var exp2Table = func() (t [32]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 32)
	}
	return t
}()

// expOf returns e^x within about 2e-12 for |x| < 700: x = (32e + i) ln2/32 + r, e^x = 2^e * 2^(i/32) * e^r, the last by
// its series to r^4 (P. T. P. Tang, "Table-driven implementation of the exponential function", 1989). The conversions
// keep compilers from fusing products and sums, so that all processors give the same.
func expOf(x float64) float64 {
	const shift = 0x1.8p52 // adding it rounds to an integer
	k := float64(x*(32/math.Ln2)) + shift - shift
	r := x - float64(k*(math.Ln2/32))
	n := int64(k)
	p := float64(r*(1.0/24)) + 1.0/6
	p = float64(p*r) + 0.5
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	return math.Float64frombits(math.Float64bits(exp2Table[n&31])+uint64(n>>5)<<52) * p
}

func exp32(x float32) float32 {
	switch {
	case x > 89:
		return float32(math.Inf(1))
	case x < -104:
		return 0
	case x != x:
		return x
	}
	return float32(expOf(float64(x)))
}

// tanh32 is 1 - 2/(e^2x + 1); near 0, where that cancels, it is the start of the series.
func tanh32(x float32) float32 {
	v := float64(x)
	switch {
	case x > 10:
		return 1
	case x < -10:
		return -1
	case x != x:
		return x
	case math.Abs(v) < 0x1p-10:
		return float32(v - float64(v*v)*v*(1.0/3))
	}
	return float32(1 - 2/(expOf(2*v)+1))
}
