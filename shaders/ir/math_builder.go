package ir

import "math"

// mathBuilder writes math functions of F32 values with any number of lanes.
//
// They use + - * /, square root, rounding to an integer, comparisons of numbers and integer operations on the bits: no
// fused multiplication and addition (a device may or may not have it), no comparison that a NaN could reach and decide (a
// compiler may assume that there is none; NaN and infinities are found by their bits), and no reliance on a division
// better than Vulkan's 2.5 ULP. So all devices that round + - * to nearest give the same bits, up to their division and
// square root and to flushed subnormal numbers.
//
// A device that asks for it ([Caps].FMA) gets polynomials of fused operations, and exponentials by its own function.
type mathBuilder struct {
	*Builder
	lanes int
	fma   bool
	exact bool // the device's Exp is as good as the replacement
}

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

// f32Bits returns the bits of v as F32.
func f32Bits(v float64) uint32 { return math.Float32bits(float32(v)) }

// c, u and i are constants with the lanes of the function.
func (m mathBuilder) c(v float64) Value   { return m.Const(Vec(F32, m.lanes), v) }
func (m mathBuilder) u(bits uint32) Value { return m.ConstBits(Vec(U32, m.lanes), uint64(bits)) }
func (m mathBuilder) i(v int32) Value     { return m.ConstBits(Vec(I32, m.lanes), uint64(uint32(v))) }

func (m mathBuilder) bits(x Value) Value  { return m.BitCast(x, U32) }
func (m mathBuilder) float(b Value) Value { return m.BitCast(b, F32) }

// mag returns the bits of |x|, which order like the numbers do; NaN is above infBits.
func (m mathBuilder) mag(x Value) Value  { return m.And(m.bits(x), m.u(0x7fffffff)) }
func (m mathBuilder) sign(x Value) Value { return m.And(m.bits(x), m.u(0x80000000)) }

// withSign flips the sign of y where the sign bit in s is set.
func (m mathBuilder) withSign(y, s Value) Value { return m.float(m.Xor(m.bits(y), s)) }

// unlessNaN returns y, or NaN where x is NaN.
func (m mathBuilder) unlessNaN(x, y Value) Value {
	return m.Select(m.Gt(m.mag(x), m.u(infBits32)), m.c(nan), y)
}

// unlessTiny returns y, or x where |x| < 2^-25: the result of an odd function with slope 1, to the last bit. It keeps the
// sign of zero, and subnormal numbers where arithmetic flushes them.
func (m mathBuilder) unlessTiny(x, y Value) Value {
	return m.Select(m.Lt(m.mag(x), m.u(f32Bits(1.0/(1<<25)))), x, y)
}

// number returns x, or 0 where x is NaN, so that comparisons and conversions of the result are defined.
func (m mathBuilder) number(x Value) Value {
	return m.Select(m.Gt(m.mag(x), m.u(infBits32)), m.c(0), x)
}

const infBits32 = 0x7f800000

// mulAdd returns x*y + z.
func (m mathBuilder) mulAdd(x, y, z Value) Value {
	if m.fma {
		return m.Fma(x, y, z)
	}
	return m.Add(m.Mul(x, y), z)
}

// poly evaluates a polynomial of z by Horner's rule, coefficients from the highest degree down.
func (m mathBuilder) poly(z Value, coeffs ...float64) Value {
	y := m.c(coeffs[0])
	for _, c := range coeffs[1:] {
		y = m.mulAdd(y, z, m.c(c))
	}
	return y
}

// high returns x with its last 12 bits cleared, so that the product of two such values is exact.
func (m mathBuilder) high(x Value) Value { return m.float(m.And(m.bits(x), m.u(0xfffff000))) }

// pow2 returns 2^k for I32 k in [-126, 127].
func (m mathBuilder) pow2(k Value) Value {
	return m.float(m.Shl(m.BitCast(m.Add(k, m.i(127)), U32), m.u(23)))
}

// scale returns x * 2^k for I32 k in [-252, 254], by two multiplications so that neither factor overflows.
func (m mathBuilder) scale(x, k Value) Value {
	half := m.Shr(k, m.i(1))
	return m.Mul(m.Mul(x, m.pow2(half)), m.pow2(m.Sub(k, half)))
}
