package ir

// pow is x^y = 2^(y log2|x|) by FreeBSD's powf: the logarithm as the sum of two F32 values, because its error is multiplied
// by up to 2^7. Special operands follow C: x^0 = 1 and 1^y = 1 even for NaN, a negative x needs an integer y.
func (m mathBuilder) pow(x, y Value) Value {
	ax := m.mag(x)
	ay := m.mag(y)
	xs := m.Select(m.Or(m.Eq(ax, m.u(0)), m.Ge(ax, m.u(infBits32))), m.u(f32Bits(1)), ax) // positive and finite
	hi, lo := m.log2Pair(xs)

	// The exponent z = y log2|x| as high + low. From |y| = 2^40 on, every x but 1 overflows or underflows.
	yf := m.float(m.Or(m.Min(ay, m.u(f32Bits(1<<40))), m.sign(y)))
	y1 := m.high(yf)
	low := m.Add(m.Mul(m.Sub(yf, y1), hi), m.Mul(yf, lo))
	high := m.Mul(y1, hi)
	z := m.Add(high, low)
	over, under := m.Ge(z, m.c(129)), m.Le(z, m.c(-152))
	out := m.Or(over, under)
	high, low = m.Select(out, m.c(0), high), m.Select(out, m.c(0), low)
	n := m.Round(m.Add(high, low))
	r := m.scale(m.exp2Fraction(m.Add(m.Sub(high, n), low)), m.Convert(n, I32))
	r = m.Select(over, m.c(inf), m.Select(under, m.c(0), r))

	// |x| = 0, infinity; y infinite.
	yNeg := m.Ne(m.sign(y), m.u(0))
	grows := func(big Value) Value { return m.Select(m.Ne(big, yNeg), m.c(inf), m.c(0)) }
	xInf := m.Eq(ax, m.u(infBits32))
	yInf := m.Eq(ay, m.u(infBits32))
	one := m.u(f32Bits(1))
	r = m.Select(yInf, m.Select(m.Eq(ax, one), m.c(1), grows(m.Gt(ax, one))), r)
	r = m.Select(m.Or(xInf, m.Eq(ax, m.u(0))), grows(xInf), r)

	// Negative x. From 2^24 on, y is an even integer.
	yn := m.float(m.Min(ay, m.u(f32Bits(1<<24))))
	whole := m.Eq(m.bits(m.Floor(yn)), m.bits(yn)) // by bits: a subnormal number could count as 0
	half := m.Mul(yn, m.c(0.5))
	odd := m.And(whole, m.Ne(m.Floor(half), half))
	xNeg := m.Ne(m.sign(x), m.u(0))
	r = m.withSign(r, m.Select(m.And(xNeg, odd), m.u(0x80000000), m.u(0)))
	finite := m.And(m.Ne(ax, m.u(0)), m.Lt(ax, m.u(infBits32)))
	r = m.Select(m.And(m.And(xNeg, finite), m.Not(whole)), m.c(nan), r)

	r = m.unlessNaN(x, m.unlessNaN(y, r))
	return m.Select(m.Or(m.Eq(ay, m.u(0)), m.Eq(m.bits(x), one)), m.c(1), r)
}

// log2Pair returns log2 of the positive finite number with bits b as hi + lo; hi has at most 12 bits.
func (m mathBuilder) log2Pair(b Value) (hi, lo Value) {
	sub := m.Lt(b, m.u(1<<23))
	b = m.Select(sub, m.bits(m.Convert(b, F32)), b) // subnormal: a multiple of 2^-149
	e := m.Sub(m.BitCast(m.Shr(b, m.u(23)), I32), m.Select(sub, m.i(127+149), m.i(127)))
	mant := m.And(b, m.u(0x7fffff))
	// Around 1 (to sqrt(3/2)), around 3/2 (to sqrt(3)), or around 1 with half the number.
	mid := m.And(m.Gt(mant, m.u(0x1cc471)), m.Lt(mant, m.u(0x5db3d7)))
	top := m.Ge(mant, m.u(0x5db3d7))
	e = m.Add(e, m.Select(top, m.i(1), m.i(0)))
	a := m.float(m.Sub(m.Or(mant, m.u(0x3f800000)), m.Select(top, m.u(1<<23), m.u(0))))
	bp := m.Select(mid, m.c(1.5), m.c(1))
	dpHigh := m.Select(mid, m.c(5.84960938e-01), m.c(0)) // log2(3/2) in two parts
	dpLow := m.Select(mid, m.c(1.56322085e-06), m.c(0))

	// s = (a-bp)/(a+bp) as sh + sl, then ln(a/bp) = 2s + 2s^3/3 + ...
	u := m.Sub(a, bp)
	v := m.Div(m.c(1), m.Add(a, bp))
	s := m.Mul(u, v)
	sh := m.high(s)
	th := m.high(m.Add(a, bp))
	tl := m.Sub(a, m.Sub(th, bp))
	sl := m.Mul(v, m.Sub(m.Sub(u, m.Mul(sh, th)), m.Mul(sh, tl)))
	s2 := m.Mul(s, s)
	r := m.Mul(m.Mul(s2, s2), m.poly(s2, 2.0697501302e-01, 2.3066075146e-01, 2.7272811532e-01, 3.3333334327e-01,
		4.2857143283e-01, 6.0000002384e-01))
	r = m.Add(r, m.Mul(sl, m.Add(sh, s)))
	s2 = m.Mul(sh, sh)
	th = m.high(m.Add(m.Add(m.c(3), s2), r))
	tl = m.Sub(r, m.Sub(m.Sub(th, m.c(3)), s2))
	u = m.Mul(sh, th)
	v = m.Add(m.Mul(sl, th), m.Mul(tl, s))
	ph := m.high(m.Add(u, v))
	pl := m.Sub(v, m.Sub(ph, u))
	// Times 2/(3 ln 2), in two parts.
	const cp, cpHigh, cpLow = 9.6179670095e-01, 9.6191406250e-01, -1.1736857402e-04
	zh := m.Mul(m.c(cpHigh), ph)
	zl := m.Add(m.Add(m.Mul(m.c(cpLow), ph), m.Mul(pl, m.c(cp))), dpLow)
	t := m.Convert(e, F32)
	hi = m.high(m.Add(m.Add(m.Add(zh, zl), dpHigh), t))
	return hi, m.Sub(zl, m.Sub(m.Sub(m.Sub(hi, t), dpHigh), zh))
}
