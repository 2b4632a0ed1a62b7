package ir

import "math"

// Logarithms: x = 2^e (1+f) with 1+f in [sqrt(1/2), sqrt(2)), and ln(1+f) = f - f^2/2 + f^3 P(f) with the polynomial of
// Cephes' logf.

const sqrtHalfBits = 0x3f3504f3

// logSplit returns e (as F32) and f for a positive finite x. Subnormal numbers are read as integers, multiples of 2^-149,
// because a device may flush them to zero.
func (m mathBuilder) logSplit(x Value) (e, f Value) {
	b := m.bits(x)
	sub := m.Lt(b, m.u(1<<23))
	b = m.Select(sub, m.bits(m.Convert(b, F32)), b)
	ei, mant := m.logBits(b)
	ei = m.Sub(ei, m.Select(sub, m.i(149), m.i(0)))
	return m.Convert(ei, F32), m.Sub(mant, m.c(1))
}

// logBits splits the bits of a normal number into an exponent and a significand in [sqrt(1/2), sqrt(2)).
func (m mathBuilder) logBits(b Value) (e, mant Value) {
	b = m.Add(b, m.u(0x3f800000-sqrtHalfBits))
	e = m.Sub(m.BitCast(m.Shr(b, m.u(23)), I32), m.i(127))
	return e, m.float(m.Add(m.And(b, m.u(0x7fffff)), m.u(sqrtHalfBits)))
}

// logTail returns f^3 P(f) and f^2/2.
func (m mathBuilder) logTail(f Value) (cubic, half Value) {
	z := m.Mul(f, f)
	p := m.poly(f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	return m.Mul(m.Mul(p, f), z), m.Mul(m.c(0.5), z)
}

// logSpecial puts in the results for zero (-Inf), infinity, negative numbers and NaN.
func (m mathBuilder) logSpecial(x, y Value) Value {
	b := m.bits(x)
	special := m.Ge(m.Sub(b, m.u(1)), m.u(infBits32-1)) // 0, infinity, NaN, negative
	other := m.Select(m.Eq(b, m.u(infBits32)), m.c(inf), m.c(nan))
	return m.Select(special, m.Select(m.Eq(m.mag(x), m.u(0)), m.c(-inf), other), y)
}

func (m mathBuilder) log(x Value) Value {
	e, f := m.logSplit(x)
	y, half := m.logTail(f)
	y = m.Sub(m.Add(y, m.Mul(e, m.c(-2.12194440e-4))), half)
	return m.logSpecial(x, m.Add(m.Add(f, y), m.Mul(e, m.c(0.693359375))))
}

// log2 and log10 multiply ln(1+f) by a constant in two parts, the first of few bits (1 for log2).
func (m mathBuilder) log2(x Value) Value {
	const low = math.Log2E - 1
	e, f := m.logSplit(x)
	y, half := m.logTail(f)
	y = m.Sub(y, half)
	z := m.Add(m.Add(m.Mul(y, m.c(low)), m.Mul(f, m.c(low))), y)
	return m.logSpecial(x, m.Add(m.Add(z, f), e))
}

func (m mathBuilder) log10(x Value) Value {
	const (
		eHigh, twoHigh = 4.3359375e-1, 3.0078125e-1
		eLow, twoLow   = math.Log10E - eHigh, math.Ln2/math.Ln10 - twoHigh
	)
	e, f := m.logSplit(x)
	y, half := m.logTail(f)
	y = m.Sub(y, half)
	z := m.Add(m.Add(m.Mul(y, m.c(eLow)), m.Mul(f, m.c(eLow))), m.Mul(e, m.c(twoLow)))
	z = m.Add(m.Add(z, m.Mul(y, m.c(eHigh))), m.Mul(f, m.c(eHigh)))
	return m.logSpecial(x, m.Add(z, m.Mul(e, m.c(twoHigh))))
}

// log1p is the method of FreeBSD's log1pf: u = 1+x loses the last bits of x, which are put back as the correction c/u.
// Where 1+x is within [sqrt(1/2), sqrt(2)) nothing is lost, because f is x itself.
func (m mathBuilder) log1p(x Value) Value {
	b := m.bits(x)
	near := m.Or(m.Lt(b, m.u(0x3ed413d0)), m.And(m.Ge(b, m.u(0x80000000)), m.Le(b, m.u(0xbe95f619))))
	u := m.Add(m.c(1), x)
	k, mant := m.logBits(m.bits(u))
	lost := m.Select(m.Ge(k, m.i(2)), m.Sub(m.c(1), m.Sub(u, x)), m.Sub(x, m.Sub(u, m.c(1))))
	c := m.Select(m.Lt(k, m.i(25)), m.Div(lost, u), m.c(0))
	f := m.Select(near, x, m.Sub(mant, m.c(1)))
	c = m.Select(near, m.c(0), c)
	e := m.Select(near, m.c(0), m.Convert(k, F32))

	s := m.Div(f, m.Add(m.c(2), f))
	z := m.Mul(s, s)
	r := m.Mul(m.poly(z, 0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693), z)
	half := m.Mul(m.c(0.5), m.Mul(f, f))
	const ln2High, ln2Low = 6.9313812256e-01, 9.0580006145e-06
	y := m.Add(m.Mul(s, m.Add(half, r)), m.Add(m.Mul(e, m.c(ln2Low)), c))
	y = m.Add(m.Add(m.Sub(y, half), f), m.Mul(e, m.c(ln2High)))

	y = m.unlessTiny(x, y)
	y = m.Select(m.Eq(b, m.u(f32Bits(-1))), m.c(-inf), y)
	y = m.Select(m.Gt(b, m.u(f32Bits(-1))), m.c(nan), y) // below -1, and negative NaN
	y = m.Select(m.Eq(b, m.u(infBits32)), m.c(inf), y)
	return m.unlessNaN(x, y)
}
