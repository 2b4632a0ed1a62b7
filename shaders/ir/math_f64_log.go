package ir

import "math"

// Logarithms of F64: x = 2^e (1+f) with 1+f in [sqrt(1/2), sqrt(2)), and with s = f/(2+f)
// ln(1+f) = f - f^2/2 + s (f^2/2 + R(s^2)), where R(s^2) = ln((1+s)/(1-s))/s - 2.

var (
	sqrtHalfBits64 = math.Float64bits(math.Sqrt2 / 2)
	log2High64     = highHalf(math.Log2E) // constants in two parts, the first of 21 bits
	log10High64    = highHalf(math.Log10E)
)

// logNormal returns the bits of the positive finite x, of a subnormal one as if it were 2^1074 x, and that exponent. Subnormal
// numbers are read as integers, because a device may flush them to zero.
func (m mathBuilder64) logNormal(b Value) (bits, shift Value) {
	sub := m.Lt(b, m.i(1<<52))
	return m.Select(sub, m.bits(m.Convert(b, F64)), b), m.Select(sub, m.i(1074), m.i(0))
}

// logBits splits the bits of a normal number into an exponent and a significand in [sqrt(1/2), sqrt(2)).
func (m mathBuilder64) logBits(b Value) (e, mant Value) {
	b = m.Add(b, m.i(oneBits64-sqrtHalfBits64))
	e = m.Sub(m.Shr(b, m.i(52)), m.i(1023))
	return e, m.float(m.Add(m.And(b, m.i(mantBits64)), m.i(sqrtHalfBits64)))
}

// logSplit returns e (as F64) and f for a positive finite x.
func (m mathBuilder64) logSplit(x Value) (e, f Value) {
	b, shift := m.logNormal(m.bits(x))
	ei, mant := m.logBits(b)
	return m.Convert(m.Sub(ei, shift), F64), m.Sub(mant, m.c(1))
}

// logTail returns f^2/2 and s (f^2/2 + R).
func (m mathBuilder64) logTail(f Value) (half, tail Value) {
	s := m.Div(f, m.Add(m.c(2), f))
	z := m.Mul(s, s)
	half = m.Mul(m.c(0.5), m.Mul(f, f))
	return half, m.Mul(s, m.mulAdd(m.poly(z, log64), z, half))
}

// logSpecial puts in the results for zero (-Inf), infinity, negative numbers and NaN.
func (m mathBuilder64) logSpecial(x, y Value) Value {
	b := m.bits(x)
	y = m.Select(m.Ge(b, m.i(infBits64)), m.Select(m.Eq(b, m.i(infBits64)), m.c(inf), m.c(nan)), y)
	return m.Select(m.Le(b, m.i(0)), m.Select(m.Eq(m.mag(x), m.i(0)), m.c(-inf), m.c(nan)), y)
}

func (m mathBuilder64) log(x Value) Value {
	e, f := m.logSplit(x)
	return m.logSpecial(x, m.logSum(e, f, m.Mul(e, m.c(ln2Low64))))
}

// logSum returns e ln 2 + ln(1+f) + low, where low includes the rest of e ln 2.
func (m mathBuilder64) logSum(e, f, low Value) Value {
	half, tail := m.logTail(f)
	return m.Add(m.Mul(e, m.c(ln2High64)), m.Sub(f, m.Sub(half, m.Add(tail, low))))
}

func (m mathBuilder64) log2(x Value) Value {
	return m.logBase(x, log2High64, math.Log2E-log2High64, 1, 0)
}

func (m mathBuilder64) log10(x Value) Value {
	const twoHigh = 0x1.34413509f78p-2 // log10 2: its product with an exponent is exact
	return m.logBase(x, log10High64, math.Log10E-log10High64, twoHigh, math.Ln2/math.Ln10-twoHigh)
}

// logBase returns e two + ln(1+f) c for constants in two parts. ln(1+f) is a sum of two numbers too, the first of 21 bits.
func (m mathBuilder64) logBase(x Value, cHigh, cLow, twoHigh, twoLow float64) Value {
	e, f := m.logSplit(x)
	half, tail := m.logTail(f)
	h := m.high(m.Sub(f, half))
	l := m.Add(m.Sub(m.Sub(f, h), half), tail)
	low := m.mulAdd(m.Add(l, h), m.c(cLow), m.Mul(l, m.c(cHigh)))
	if twoLow != 0 {
		low = m.mulAdd(e, m.c(twoLow), low)
	}
	y, high := m.Mul(e, m.c(twoHigh)), m.Mul(h, m.c(cHigh))
	w := m.Add(y, high)
	return m.logSpecial(x, m.Add(w, m.Add(low, m.Add(m.Sub(y, w), high))))
}

// log1p is log of u = 1+x, plus what that sum lost, over u. Where u is within [sqrt(1/2), sqrt(2)) nothing is lost, because
// f is x itself.
func (m mathBuilder64) log1p(x Value) Value {
	u := m.Add(m.c(1), x)
	back := m.Sub(u, m.c(1))
	lost := m.Div(m.Add(m.Sub(m.c(1), m.Sub(u, back)), m.Sub(x, back)), u)
	k, mant := m.logBits(m.bits(u))
	near := m.Eq(k, m.i(0))
	f := m.Select(near, x, m.Sub(mant, m.c(1)))
	e := m.Convert(k, F64)
	y := m.logSum(e, f, m.Select(near, m.c(0), m.mulAdd(e, m.c(ln2Low64), lost)))

	b := m.bits(x)
	y = m.unlessTiny(x, y)
	y = m.Select(m.Eq(b, m.i(math.Float64bits(-1))), m.c(-inf), y)
	y = m.Select(m.Eq(b, m.i(infBits64)), m.c(inf), y)
	// Below -1, and NaN: beyond the bits of -1 or of infinity.
	below := m.And(m.Lt(b, m.i(0)), m.Gt(b, m.i(math.Float64bits(-1))))
	return m.Select(m.Or(below, m.Gt(b, m.i(infBits64))), m.c(nan), y)
}
