package ir

import "math"

// pow is x^y = 2^(y log2|x|), with the logarithm as the sum of two F64 values, because its error is multiplied by up to 2^10.
// Special operands follow C (Annex F): x^0 = 1 and 1^y = 1 even for NaN, a negative x needs an integer y.
func (m mathBuilder64) pow(x, y Value) Value {
	ax, ay := m.mag(x), m.mag(y)
	xs := m.Select(m.Or(m.Eq(ax, m.i(0)), m.Ge(ax, m.i(infBits64))), m.i(oneBits64), ax) // positive and finite
	hi, lo := m.log2Pair(xs)

	// The exponent z = y log2|x| as high + low. From |y| = 2^65 on, every x but 1 overflows or underflows.
	yf := m.float(m.Or(m.Min(ay, m.i(math.Float64bits(0x1p65))), m.sign(y)))
	y1 := m.high(yf)
	low := m.Add(m.Mul(m.Sub(yf, y1), hi), m.Mul(yf, lo))
	high := m.Mul(y1, hi)
	z := m.Add(high, low)
	over, under := m.Ge(z, m.c(1025)), m.Le(z, m.c(-1080))
	out := m.Or(over, under)
	high, low = m.Select(out, m.c(0), high), m.Select(out, m.c(0), low)
	r := m.exp2Pair(high, low)
	r = m.Select(over, m.c(inf), m.Select(under, m.c(0), r))

	// |x| = 0, infinity; y infinite.
	yNeg := m.Ne(m.sign(y), m.i(0))
	grows := func(big Value) Value { return m.Select(m.Ne(big, yNeg), m.c(inf), m.c(0)) }
	xInf, yInf := m.Eq(ax, m.i(infBits64)), m.Eq(ay, m.i(infBits64))
	one := m.i(oneBits64)
	r = m.Select(yInf, m.Select(m.Eq(ax, one), m.c(1), grows(m.Gt(ax, one))), r)
	r = m.Select(m.Or(xInf, m.Eq(ax, m.i(0))), grows(xInf), r)

	// Negative x. From 2^53 on, y is an even integer.
	yn := m.float(m.Min(ay, m.i(math.Float64bits(0x1p53))))
	whole := m.Eq(m.bits(m.Floor(yn)), m.bits(yn)) // by bits: a subnormal number could count as 0
	half := m.Mul(yn, m.c(0.5))
	odd := m.And(whole, m.Ne(m.Floor(half), half))
	xNeg := m.Ne(m.sign(x), m.i(0))
	r = m.withSign(r, m.Select(m.And(xNeg, odd), m.i(signBit64), m.i(0)))
	finite := m.And(m.Ne(ax, m.i(0)), m.Lt(ax, m.i(infBits64)))
	r = m.Select(m.And(m.And(xNeg, finite), m.Not(whole)), m.c(nan), r)

	r = m.unlessNaN(x, m.unlessNaN(y, r))
	return m.Select(m.Or(m.Eq(ay, m.i(0)), m.Eq(m.bits(x), one)), m.c(1), r)
}

// exp2Pair returns 2^(high + low), of at most 1,100 in magnitude: with n the nearest integer and (high - n + low) ln 2 =
// r + w, it is 2^n e^r (1 + w).
func (m mathBuilder64) exp2Pair(high, low Value) Value {
	nf, n := m.nearest(m.Add(high, low))
	d := m.Sub(high, nf)
	t := m.high(m.Add(low, d))
	c := highHalf(math.Ln2)
	u := m.Mul(t, m.c(c))
	v := m.Add(m.Mul(m.Sub(low, m.Sub(t, d)), m.c(math.Ln2)), m.Mul(t, m.c(math.Ln2-c)))
	r := m.Add(u, v)
	w := m.Sub(v, m.Sub(r, u))
	tail := m.Mul(m.Mul(r, r), m.mulAdd(m.poly(r, exp64), r, m.c(0.5)))
	tail = m.Add(tail, m.mulAdd(r, w, w))
	return m.scale(m.Add(m.c(1), m.Add(r, tail)), n)
}

// log2Pair returns log2 of the positive finite number with bits b as hi + lo; hi has at most 21 bits.
func (m mathBuilder64) log2Pair(b Value) (hi, lo Value) {
	b, shift := m.logNormal(b)
	e := m.Sub(m.Shr(b, m.i(52)), m.Add(shift, m.i(1023)))
	mant := m.And(b, m.i(mantBits64))
	// Around 1 (to sqrt(3/2)), around 3/2 (to sqrt(3)), or around 1 with half the number.
	fraction := func(v float64) Value { return m.i(math.Float64bits(v) & mantBits64) }
	top := m.Ge(mant, fraction(math.Sqrt(3)))
	mid := m.And(m.Gt(mant, fraction(math.Sqrt(1.5))), m.Not(top))
	e = m.Add(e, m.Select(top, m.i(1), m.i(0)))
	a := m.float(m.Sub(m.Or(mant, m.i(oneBits64)), m.Select(top, m.i(1<<52), m.i(0))))
	const (
		logMid     = 0.58496250072115618145373894394781650875981440769248 // log2(3/2)
		logMidHigh = 0x1.2b8034p-1
	)
	bp := m.Select(mid, m.c(1.5), m.c(1))
	dpHigh := m.Select(mid, m.c(logMidHigh), m.c(0))
	dpLow := m.Select(mid, m.c(logMid-logMidHigh), m.c(0))

	// s = (a-bp)/(a+bp) as sh + sl, then ln(a/bp) = 2/3 s (3 + s^2 + r).
	u := m.Sub(a, bp)
	sum := m.Add(a, bp)
	v := m.Div(m.c(1), sum)
	s := m.Mul(u, v)
	sh, th := m.high(s), m.high(sum)
	tl := m.Sub(a, m.Sub(th, bp))
	sl := m.Mul(v, m.Sub(m.Sub(u, m.Mul(sh, th)), m.Mul(sh, tl)))
	s2 := m.Mul(s, s)
	r := m.Mul(m.Mul(s2, s2), m.poly(s2, logPair64))
	r = m.Add(r, m.Mul(sl, m.Add(sh, s)))
	s2 = m.Mul(sh, sh)
	th = m.high(m.Add(m.Add(m.c(3), s2), r))
	tl = m.Sub(r, m.Sub(m.Sub(th, m.c(3)), s2))
	u = m.Mul(sh, th)
	v = m.Add(m.Mul(sl, th), m.Mul(tl, s))
	ph := m.high(m.Add(u, v))
	pl := m.Sub(v, m.Sub(ph, u))
	// Times 2/(3 ln 2), in two parts.
	const (
		cp     = 2 / (3 * math.Ln2)
		cpHigh = 0x1.ec709ep-1
	)
	zh := m.Mul(m.c(cpHigh), ph)
	zl := m.Add(m.Add(m.Mul(m.c(cp-cpHigh), ph), m.Mul(pl, m.c(cp))), dpLow)
	t := m.Convert(e, F64)
	hi = m.high(m.Add(m.Add(m.Add(zh, zl), dpHigh), t))
	return hi, m.Sub(zl, m.Sub(m.Sub(m.Sub(hi, t), dpHigh), zh))
}
