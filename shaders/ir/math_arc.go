package ir

import "math"

// split32 returns v as the sum of two F32 values.
func split32(v float64) (hi, lo float64) {
	hi = float64(float32(v))
	return hi, v - hi
}

// asinTail returns asin(x)/x - 1 for z = x*x <= 1/4, with the polynomial of Cephes' asinf.
func (m mathBuilder) asinTail(z Value) Value {
	return m.Mul(m.poly(z, 4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1), z)
}

// asinHalf returns asin(sqrt((1-a)/2)), half the arc cosine of a in [1/2, 1], as the sum of a value with few bits and a
// small one. As in fdlibm, a quotient corrects the square root, which is therefore allowed to be inexact.
func (m mathBuilder) asinHalf(a Value) (w, rest Value) {
	t := m.Mul(m.Sub(m.c(1), a), m.c(0.5))
	s := m.Sqrt(t)
	w = m.high(s)
	c := m.Div(m.Sub(t, m.Mul(w, w)), m.Add(m.Add(s, w), m.c(1e-30))) // 1e-30: 0/0 at a = 1
	return w, m.Add(c, m.Mul(s, m.asinTail(t)))
}

// arcInput returns |x| limited to 1 (0 for NaN).
func (m mathBuilder) arcInput(x Value) Value { return m.Min(m.Abs(m.number(x)), m.c(1)) }

// unlessOutside returns y, or NaN where |x| > 1 or x is NaN.
func (m mathBuilder) unlessOutside(x, y Value) Value {
	return m.Select(m.Gt(m.mag(x), m.u(f32Bits(1))), m.c(nan), y)
}

func (m mathBuilder) asin(x Value) Value {
	hi, lo := split32(math.Pi / 2)
	a := m.arcInput(x)
	small := m.Add(m.Mul(a, m.asinTail(m.Mul(a, a))), a)
	w, rest := m.asinHalf(a)
	large := m.Sub(m.Sub(m.c(hi), m.Add(w, w)), m.Sub(m.Add(rest, rest), m.c(lo)))
	y := m.Select(m.Lt(a, m.c(0.5)), small, large)
	return m.unlessOutside(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

func (m mathBuilder) acos(x Value) Value {
	hi, lo := split32(math.Pi / 2)
	a := m.arcInput(x)
	n := m.withSign(a, m.sign(x))
	small := m.Sub(m.c(hi), m.Sub(n, m.Sub(m.c(lo), m.Mul(n, m.asinTail(m.Mul(a, a))))))
	w, rest := m.asinHalf(a)
	near := m.Add(w, rest) // half the angle to 1 or -1
	far := m.Sub(m.c(hi), m.Add(w, m.Sub(rest, m.c(lo))))
	large := m.Select(m.Ne(m.sign(x), m.u(0)), far, near)
	y := m.Select(m.Lt(a, m.c(0.5)), small, m.Add(large, large))
	return m.unlessOutside(x, y)
}

// atanRatio returns atan(y/x) for y, x >= 0, not both 0. By FreeBSD's atanf: the arc tangent of the nearest of 0, 1/2, 1,
// 3/2 and infinity, plus a polynomial of the rest. The rest comes from y and x by one division.
func (m mathBuilder) atanRatio(y, x Value) Value {
	type interval struct {
		below    float64 // of y/x
		at       float64
		num, den Value
	}
	intervals := []interval{
		{39.0 / 16, math.Atan(1.5), m.Sub(y, m.Mul(m.c(1.5), x)), m.Add(x, m.Mul(m.c(1.5), y))},
		{19.0 / 16, math.Atan(1), m.Sub(y, x), m.Add(x, y)},
		{11.0 / 16, math.Atan(0.5), m.Sub(m.Add(y, y), x), m.Add(m.Add(x, x), y)},
		{7.0 / 16, 0, y, x},
	}
	hi, lo := split32(math.Pi / 2)
	num, den := m.Neg(x), y
	high, low := m.c(hi), m.c(lo)
	for _, iv := range intervals {
		in := m.Lt(y, m.Mul(m.c(iv.below), x))
		hi, lo := split32(iv.at)
		num, den = m.Select(in, iv.num, num), m.Select(in, iv.den, den)
		high, low = m.Select(in, m.c(hi), high), m.Select(in, m.c(lo), low)
	}
	t := m.Div(num, den)
	z := m.Mul(t, t)
	p := m.Mul(m.poly(z, 6.1687607318e-02, -1.0648017377e-01, 1.4253635705e-01, -1.9999158382e-01, 3.3333328366e-01), z)
	return m.Sub(high, m.Sub(m.Sub(m.Mul(t, p), low), t))
}

func (m mathBuilder) atan(x Value) Value {
	y := m.atanRatio(m.Abs(m.number(x)), m.c(1))
	return m.unlessNaN(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

// atan2 scales both operands where sums of them could overflow or are subnormal (subnormal numbers are then read as
// integers, because a device may flush them); two infinities or zeros count as two ones or as zero over one.
func (m mathBuilder) atan2(y, x Value) Value {
	ay, ax := m.Abs(m.number(y)), m.Abs(m.number(x))
	both := m.And(m.Eq(m.mag(y), m.u(infBits32)), m.Eq(m.mag(x), m.u(infBits32)))
	none := m.Eq(m.Or(m.mag(y), m.mag(x)), m.u(0))
	ay, ax = m.Select(both, m.c(1), ay), m.Select(m.Or(both, none), m.c(1), ax)
	most := m.Max(ay, ax)
	large, small := m.Gt(most, m.c(0x1p64)), m.Lt(most, m.c(0x1p-64))
	scaled := func(a Value) Value {
		up := m.Select(m.Lt(m.bits(a), m.u(1<<23)), m.Mul(m.Convert(m.bits(a), F32), m.c(0x1p-85)), m.Mul(a, m.c(0x1p64)))
		return m.Select(large, m.Mul(a, m.c(0x1p-64)), m.Select(small, up, a))
	}
	r := m.atanRatio(scaled(ay), scaled(ax))
	hi, lo := split32(math.Pi)
	r = m.Select(m.Ne(m.sign(x), m.u(0)), m.Sub(m.c(hi), m.Sub(r, m.c(lo))), r)
	return m.unlessNaN(x, m.unlessNaN(y, m.withSign(r, m.sign(y))))
}
