package ir

import "math"

//go:generate go run ./internal/coeffs

// mathBuilder64 writes math functions of F64 values with any number of lanes, to at most 2 ULP. Like [mathBuilder] they
// use + - * /, square root, comparisons of numbers and integer operations on the bits, here 64-bit integers. They use no
// fused operations even where there are some: devices whose division and square root are exact, and both executors of the CPU, give the same bits. Additions
// round to nearest (see nearest).
//
// Where an error would be multiplied, values are sums of two numbers: see high, and Dekker, "A floating-point technique
// for extending the available precision", 1971. Argument reductions and formulas are those of Muller, "Elementary
// Functions", 3rd edition, chapters 11 and 12; the polynomials are derived by internal/coeffs.
type mathBuilder64 struct {
	*Builder
	lanes int
}

const (
	infBits64  = 0x7ff0000000000000
	oneBits64  = 0x3ff0000000000000
	signBit64  = 1 << 63
	magBits64  = 1<<63 - 1
	mantBits64 = 1<<52 - 1
)

// c and i are constants with the lanes of the function.
func (m mathBuilder64) c(v float64) Value   { return m.Const(Vec(F64, m.lanes), v) }
func (m mathBuilder64) i(bits uint64) Value { return m.ConstBits(Vec(I64, m.lanes), bits) }

func (m mathBuilder64) bits(x Value) Value  { return m.BitCast(x, I64) }
func (m mathBuilder64) float(b Value) Value { return m.BitCast(b, F64) }

// mag returns the bits of |x|, which order like the numbers do; NaN is above infBits64.
func (m mathBuilder64) mag(x Value) Value  { return m.And(m.bits(x), m.i(magBits64)) }
func (m mathBuilder64) sign(x Value) Value { return m.And(m.bits(x), m.i(signBit64)) }

// withSign flips the sign of y where the sign bit in s is set.
func (m mathBuilder64) withSign(y, s Value) Value { return m.float(m.Xor(m.bits(y), s)) }

// unlessNaN returns y, or NaN where x is NaN.
func (m mathBuilder64) unlessNaN(x, y Value) Value {
	return m.Select(m.Gt(m.mag(x), m.i(infBits64)), m.c(nan), y)
}

// unlessTiny returns y, or x where |x| < 2^-54: the result of an odd function with slope 1, and of others that start as
// x + c x^2, to the last bit. It keeps the sign of zero, and subnormal numbers where arithmetic flushes them.
func (m mathBuilder64) unlessTiny(x, y Value) Value {
	return m.Select(m.Lt(m.mag(x), m.i(math.Float64bits(0x1p-54))), x, y)
}

// number returns x, or 0 where x is NaN, so that comparisons of the result are defined.
func (m mathBuilder64) number(x Value) Value {
	return m.Select(m.Gt(m.mag(x), m.i(infBits64)), m.c(0), x)
}

// mulAdd returns x*y + z.
func (m mathBuilder64) mulAdd(x, y, z Value) Value {
	return m.Add(m.Mul(x, y), z)
}

// poly evaluates a polynomial of z by Horner's rule, coefficients from the highest degree down.
func (m mathBuilder64) poly(z Value, coeffs []float64) Value {
	y := m.c(coeffs[0])
	for _, c := range coeffs[1:] {
		y = m.mulAdd(y, z, m.c(c))
	}
	return y
}

// high returns x with its last 32 bits cleared: 21 bits of significand remain, so that the product of two such values, and
// of one with a constant of 32 bits, is exact.
func (m mathBuilder64) high(x Value) Value {
	return m.float(m.And(m.bits(x), m.i(0xffffffff00000000)))
}

// highHalf is high for constants.
func highHalf(v float64) float64 {
	return math.Float64frombits(math.Float64bits(v) &^ 0xffffffff)
}

// nearest returns the integer nearest to x, |x| < 2^51, as F64 and as I64: adding 3*2^51 leaves no bits for a fraction, and
// the last bits of the sum are the integer's.
func (m mathBuilder64) nearest(x Value) (k, ki Value) {
	const shift = 3 << 51
	t := m.Add(x, m.c(shift))
	return m.Sub(t, m.c(shift)), m.Sub(m.bits(t), m.i(math.Float64bits(shift)))
}

// shr is the shift right by a constant n > 0 that fills up with zeros.
func (m mathBuilder64) shr(x Value, n uint64) Value {
	return m.And(m.Shr(x, m.i(n)), m.i(1<<(64-n)-1))
}

// pow2 returns 2^k for I64 k in [-1022, 1023].
func (m mathBuilder64) pow2(k Value) Value { return m.float(m.Shl(m.Add(k, m.i(1023)), m.i(52))) }

// scale returns x * 2^k for I64 k in [-2044, 2046], by two multiplications so that neither factor overflows.
func (m mathBuilder64) scale(x, k Value) Value {
	half := m.Shr(k, m.i(1))
	return m.Mul(m.Mul(x, m.pow2(half)), m.pow2(m.Sub(k, half)))
}

// product returns a*b as the sum of two numbers, for a constant b, to about 100 bits (Dekker).
func (m mathBuilder64) product(a Value, b float64) (p, low Value) {
	p = m.Mul(a, m.c(b))
	ah := m.float(m.And(m.bits(a), m.i(^uint64(1<<27-1))))
	al := m.Sub(a, ah)
	bh := math.Float64frombits(math.Float64bits(b) &^ (1<<27 - 1))
	low = m.Sub(m.Mul(ah, m.c(bh)), p)
	low = m.Add(m.Add(low, m.Mul(ah, m.c(b-bh))), m.Mul(al, m.c(bh)))
	return p, m.Add(low, m.Mul(al, m.c(b-bh)))
}
