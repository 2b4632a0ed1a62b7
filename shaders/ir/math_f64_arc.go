package ir

import "math"

// Inverse circular functions of F64, by the same steps as those of F32 (math_arc.go).

// Angles as sums of two F64 values.
const (
	piHalfLow64          = 6.123233995736766e-17 // pi/2 - math.Pi/2
	atanHalf64           = 0.4636476090008061
	atanHalfLow64        = 2.2698777452961687e-17
	atanThreeHalves64    = 0.982793723247329
	atanThreeHalvesLow64 = 1.3903311031230998e-17
)

// asinTail returns asin(x)/x - 1 for z = x*x <= 1/4.
func (m mathBuilder64) asinTail(z Value) Value { return m.Mul(m.poly(z, asin64), z) }

// asinHalf returns asin(sqrt((1-a)/2)), half the arc cosine of a in [1/2, 1], as the sum of a value with few bits and a
// small one: what cutting the square root off loses comes back by a quotient.
func (m mathBuilder64) asinHalf(a Value) (w, rest Value) {
	t := m.Mul(m.Sub(m.c(1), a), m.c(0.5))
	s := m.Sqrt(t)
	w = m.high(s)
	c := m.Div(m.Sub(t, m.Mul(w, w)), m.Add(m.Add(s, w), m.c(1e-300))) // 1e-300: 0/0 at a = 1
	return w, m.Add(c, m.Mul(s, m.asinTail(t)))
}

// unlessOutside returns y, or NaN where |x| > 1 or x is NaN.
func (m mathBuilder64) unlessOutside(x, y Value) Value {
	return m.Select(m.Gt(m.mag(x), m.i(oneBits64)), m.c(nan), y)
}

func (m mathBuilder64) asin(x Value) Value {
	hi, lo := math.Pi/2, piHalfLow64
	a := m.Abs(m.clamped(x, -1, 1))
	small := m.Add(m.Mul(a, m.asinTail(m.Mul(a, a))), a)
	w, rest := m.asinHalf(a)
	large := m.Sub(m.Sub(m.c(hi), m.Add(w, w)), m.Sub(m.Add(rest, rest), m.c(lo)))
	y := m.Select(m.Lt(a, m.c(0.5)), small, large)
	return m.unlessOutside(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

func (m mathBuilder64) acos(x Value) Value {
	hi, lo := math.Pi/2, piHalfLow64
	n := m.clamped(x, -1, 1)
	a := m.Abs(n)
	small := m.Sub(m.c(hi), m.Sub(n, m.Sub(m.c(lo), m.Mul(n, m.asinTail(m.Mul(a, a))))))
	w, rest := m.asinHalf(a)
	near := m.Add(w, rest) // half the angle to 1 or -1
	far := m.Sub(m.c(hi), m.Add(w, m.Sub(rest, m.c(lo))))
	large := m.Select(m.Ne(m.sign(x), m.i(0)), far, near)
	return m.unlessOutside(x, m.Select(m.Lt(a, m.c(0.5)), small, m.Add(large, large)))
}

// atanRatio returns atan(y/x) for y, x >= 0, not both 0: the arc tangent of the nearest of 0, 1/2, 1, 3/2 and infinity,
// plus a polynomial of the rest, which comes from y and x by one division.
func (m mathBuilder64) atanRatio(y, x Value) Value {
	type interval struct {
		below    float64 // of y/x
		hi, lo   float64 // the arc tangent
		num, den Value
	}
	hi, lo := math.Pi/2, piHalfLow64
	intervals := []interval{
		{39.0 / 16, atanThreeHalves64, atanThreeHalvesLow64, m.Sub(y, m.Mul(m.c(1.5), x)), m.Add(x, m.Mul(m.c(1.5), y))},
		{19.0 / 16, hi / 2, lo / 2, m.Sub(y, x), m.Add(x, y)},
		{11.0 / 16, atanHalf64, atanHalfLow64, m.Sub(m.Add(y, y), x), m.Add(m.Add(x, x), y)},
		{7.0 / 16, 0, 0, y, x},
	}
	num, den := m.Neg(x), y
	high, low := m.c(hi), m.c(lo)
	for _, v := range intervals {
		in := m.Lt(y, m.Mul(m.c(v.below), x))
		num, den = m.Select(in, v.num, num), m.Select(in, v.den, den)
		high, low = m.Select(in, m.c(v.hi), high), m.Select(in, m.c(v.lo), low)
	}
	t := m.Div(num, den)
	z := m.Mul(t, t)
	p := m.Mul(m.poly(z, atan64), z)
	return m.Add(high, m.Add(t, m.mulAdd(t, p, low)))
}

func (m mathBuilder64) atan(x Value) Value {
	y := m.atanRatio(m.Abs(m.number(x)), m.c(1))
	return m.unlessNaN(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

// atan2 scales both operands where sums of them could overflow or are subnormal (subnormal numbers are then read as
// integers, because a device may flush them); two infinities or zeros count as two ones or as zero over one.
func (m mathBuilder64) atan2(y, x Value) Value {
	ay, ax := m.Abs(m.number(y)), m.Abs(m.number(x))
	both := m.And(m.Eq(m.mag(y), m.i(infBits64)), m.Eq(m.mag(x), m.i(infBits64)))
	none := m.Eq(m.Or(m.mag(y), m.mag(x)), m.i(0))
	ay, ax = m.Select(both, m.c(1), ay), m.Select(m.Or(both, none), m.c(1), ax)
	most := m.Max(ay, ax)
	large, small := m.Gt(most, m.c(0x1p512)), m.Lt(most, m.c(0x1p-512))
	scaled := func(a Value) Value {
		up := m.Select(m.Lt(m.bits(a), m.i(1<<52)), m.Mul(m.Convert(m.bits(a), F64), m.c(0x1p-562)), m.Mul(a, m.c(0x1p512)))
		return m.Select(large, m.Mul(a, m.c(0x1p-512)), m.Select(small, up, a))
	}
	r := m.atanRatio(scaled(ay), scaled(ax))
	hi, lo := math.Pi/2, piHalfLow64
	r = m.Select(m.Ne(m.sign(x), m.i(0)), m.Sub(m.c(2*hi), m.Sub(r, m.c(2*lo))), r)
	return m.unlessNaN(x, m.unlessNaN(y, m.withSign(r, m.sign(y))))
}
