package ir

import "math"

// Exponentials of F64: e^x = 2^k e^r with k the integer nearest to x/ln 2 and |r| <= (ln 2)/2, by Cody and Waite's
// reduction (see math_exp.go).
const (
	ln2High64 = 0x1.62e42fefa38p-1 // 42 bits: its product with k is exact
	ln2Low64  = math.Ln2 - ln2High64
)

// expParts returns k, r and e^r - 1 - r for |x| < 2^40; the last includes what rounding r lost.
func (m mathBuilder64) expParts(x Value) (k, r, tail Value) {
	kf, k := m.nearest(m.Mul(x, m.c(math.Log2E)))
	h := m.Sub(x, m.Mul(kf, m.c(ln2High64)))
	l := m.Mul(kf, m.c(ln2Low64))
	r = m.Sub(h, l)
	lost := m.Sub(m.Sub(h, r), l)
	z := m.Mul(r, r)
	return k, r, m.mulAdd(z, m.mulAdd(m.poly(r, exp64), r, m.c(0.5)), lost)
}

// clamped returns x, from lo to hi, and 0 for NaN.
func (m mathBuilder64) clamped(x Value, lo, hi float64) Value {
	return m.Min(m.Max(m.number(x), m.c(lo)), m.c(hi))
}

// exp overflows by the last multiplication.
func (m mathBuilder64) exp(x Value) Value {
	k, r, tail := m.expParts(m.clamped(x, -746, 710))
	return m.unlessNaN(x, m.scale(m.Add(m.c(1), m.Add(r, tail)), k))
}

// exp2 has no reduction to make: x = k + f exactly.
func (m mathBuilder64) exp2(x Value) Value {
	n := m.clamped(x, -1080, 1024)
	kf, k := m.nearest(n)
	return m.unlessNaN(x, m.scale(m.exp2Fraction(m.Sub(n, kf)), k))
}

// exp2Fraction returns 2^f for |f| <= 1/2: 1 + f ln 2 + f^2 P(f).
func (m mathBuilder64) exp2Fraction(f Value) Value {
	high := highHalf(math.Ln2)
	rest := m.mulAdd(m.mulAdd(m.poly(f, exp264), f, m.c(math.Ln2-high)), f, m.Mul(f, m.c(high)))
	return m.Add(m.c(1), rest)
}

// expm1Shifted returns (e^x - 1) * 2^shift for x in [-60, 711], as 2^(k+shift) ((1 - 2^-k) + r + tail). The first sum's
// rounding error is kept: |1 - 2^-k| is 0 or larger than |r|.
func (m mathBuilder64) expm1Shifted(x Value, shift int64) Value {
	k, r, tail := m.expParts(x)
	c := m.Sub(m.c(1), m.pow2(m.Neg(m.Min(k, m.i(1000)))))
	y := m.Add(c, r)
	lost := m.Add(m.Sub(c, y), r)
	return m.scale(m.Add(y, m.Add(lost, tail)), m.Add(k, m.i(uint64(shift))))
}

func (m mathBuilder64) expm1(x Value) Value {
	return m.unlessNaN(x, m.unlessTiny(x, m.expm1Shifted(m.clamped(x, -60, 710), 0)))
}

// sinh is h + h/(2h + 1) with h = (e^|x| - 1)/2, which overflows when sinh does.
func (m mathBuilder64) sinh(x Value) Value {
	h := m.expm1Shifted(m.Abs(m.clamped(x, -711, 711)), -1)
	l := m.Min(h, m.c(0x1p100)) // the quotient is 1/2 from here on
	y := m.Add(h, m.Div(l, m.Add(m.Add(l, l), m.c(1))))
	return m.unlessNaN(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

// cosh is h + 1/(4h) with h = e^|x|/2.
func (m mathBuilder64) cosh(x Value) Value {
	k, r, tail := m.expParts(m.Abs(m.clamped(x, -711, 711)))
	h := m.scale(m.Add(m.c(1), m.Add(r, tail)), m.Sub(k, m.i(1)))
	return m.unlessNaN(x, m.Add(h, m.Div(m.c(0.25), h)))
}

// tanh is t/(t + 2) with t = e^(2|x|) - 1. From 22 on it is 1 to the last bit.
func (m mathBuilder64) tanh(x Value) Value {
	a := m.Abs(m.clamped(x, -22, 22))
	t := m.expm1Shifted(m.Add(a, a), 0)
	y := m.Div(t, m.Add(t, m.c(2)))
	return m.unlessNaN(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

// erf is x + x P(x^2) up to 1, and beyond it 1 - e^q(|x|), where the error of the exponential counts for little. From 6 on
// the result is 1 to the last bit. Tiny x is multiplied by 2/sqrt(pi), whose digits below the first are lost in the sum
// where subnormal numbers are flushed.
func (m mathBuilder64) erf(x Value) Value {
	a := m.Abs(m.clamped(x, -6, 6))
	s := m.Min(a, m.c(1))
	small := m.Select(m.Lt(a, m.c(1e-290)), m.Mul(a, m.c(2/math.SqrtPi)), m.mulAdd(m.poly(m.Mul(s, s), erf64), a, a))
	k, r, tail := m.expParts(m.poly(m.Sub(m.Max(a, m.c(1)), m.c(1)), logErfc64))
	large := m.Sub(m.c(1), m.Mul(m.Add(m.c(1), m.Add(r, tail)), m.pow2(k)))
	y := m.Select(m.Lt(a, m.c(1)), small, large)
	return m.unlessNaN(x, m.withSign(y, m.sign(x)))
}
