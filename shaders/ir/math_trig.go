package ir

import "math"

// Circular functions: |x| = q pi/2 + r with |r| <= pi/4; the function of r is a polynomial (Cephes), and q says which
// function and sign.

// piOver2 is pi/2 in parts: the first two have 16 bits, so that their product with q < 256 is exact.
var piOver2 = func() [3]float64 {
	const tail = 6.123233995736766e-17 // pi/2 - math.Pi/2
	cut := func(v float64) float64 { return float64(math.Float32frombits(f32Bits(v) &^ 0xff)) }
	a := cut(math.Pi / 2)
	b := cut(math.Pi/2 - a)
	return [3]float64{a, b, math.Pi/2 - a - b + tail}
}()

// reduceMax is the largest |x| for which the reduction with piOver2 is accurate.
const reduceMax = 200

// reduce returns q (U32, modulo 4) and r for x. Infinity and NaN give some finite r. Arguments up to reduceMax take Cody
// and Waite's reduction; where any lane is larger, a branch does Payne and Hanek's, which is accurate for all numbers.
func (m mathBuilder) reduce(x Value) (q, r Value) {
	b := m.mag(x)
	b = m.Select(m.Ge(b, m.u(infBits32)), m.u(0), b)
	a := m.float(b)
	large := m.Gt(a, m.c(reduceMax))
	s := m.Select(large, m.c(0), a)
	k := m.Round(m.Mul(s, m.c(2/math.Pi)))
	rs := s
	for _, part := range piOver2 {
		rs = m.Sub(rs, m.Mul(k, m.c(part)))
	}
	qv, rv := m.Var(m.Convert(k, U32)), m.Var(rs)
	m.If(m.anyLane(large), func() {
		ql, rl := m.reduceLarge(b)
		m.Set(qv, m.Select(large, ql, m.Get(qv)))
		m.Set(rv, m.Select(large, rl, m.Get(rv)))
	}, nil)
	return m.Get(qv), m.Get(rv)
}

func (m mathBuilder) anyLane(cond Value) Value {
	any := m.Extract(cond, 0)
	for i := 1; i < cond.Type.Lanes; i++ {
		any = m.Or(any, m.Extract(cond, i))
	}
	return any
}

// twoOverPi is 2/pi in words of 32 bits, from the bit of weight 2 on: the first word is 2/pi * 2^30.
var twoOverPi = [...]uint32{0, 0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea}

// reduceLarge is Payne and Hanek's reduction ("Radian reduction for trigonometric functions", 1983) in integers, for
// the bits b of a number of at least 2: its significand times the 96 bits of 2/pi that matter to the quadrant and fraction.
func (m mathBuilder) reduceLarge(b Value) (q, r Value) {
	e := m.Sub(m.Shr(b, m.u(23)), m.u(126))
	sig := m.Or(m.Shl(b, m.u(8)), m.u(0x80000000))
	first, shift := m.Shr(e, m.u(5)), m.And(e, m.u(31))
	var w [4]Value
	for j := range w {
		w[j] = m.u(twoOverPi[j])
		for n := 1; n <= 4; n++ {
			w[j] = m.Select(m.Eq(first, m.u(uint32(n))), m.u(twoOverPi[n+j]), w[j])
		}
	}
	align := func(x, next Value) Value { // the high word of (x, next) << shift, where a shift by 32 is not allowed
		return m.Or(m.Shl(x, shift), m.Shr(m.Shr(next, m.u(1)), m.Sub(m.u(31), shift)))
	}
	high, mid, low := align(w[0], w[1]), align(w[1], w[2]), align(w[2], w[3])
	// The product in units of 2^-62 quarter turns, without multiples of 4 quarter turns.
	carry := m.MulHi(sig, low)
	p0 := m.Add(m.Mul(sig, mid), carry)
	p1 := m.Add(m.Add(m.MulHi(sig, mid), m.Mul(sig, high)), m.Select(m.Lt(p0, carry), m.u(1), m.u(0)))
	q = m.Shr(p1, m.u(30))
	p1 = m.And(p1, m.u(0x3fffffff))
	neg := m.Ge(p1, m.u(0x20000000)) // over half a quarter turn: count from the next one, backwards
	q = m.Add(q, m.Select(neg, m.u(1), m.u(0)))
	n0 := m.Sub(m.u(0), p0)
	n1 := m.Sub(m.u(0x40000000), m.Add(p1, m.Select(m.Ne(p0, m.u(0)), m.u(1), m.u(0))))
	p0, p1 = m.Select(neg, n0, p0), m.Select(neg, n1, p1)
	// Move the first bit to the top.
	empty := m.Eq(p1, m.u(0))
	drop := m.Select(empty, m.u(32), m.u(0))
	p1, p0 = m.Select(empty, p0, p1), m.Select(empty, m.u(0), p0)
	top := m.Convert(m.And(p1, m.Not(m.Shr(p1, m.u(1)))), F32) // has the exponent of p1's first bit
	up := m.Sub(m.u(158), m.Min(m.Shr(m.bits(top), m.u(23)), m.u(158)))
	up = m.Min(up, m.u(31))
	sig = m.Or(m.Shl(p1, up), m.Shr(m.Shr(p0, m.u(1)), m.Sub(m.u(31), up)))
	// Times pi/2 in units of 2^-30: one rounding, at the conversion (of a signed number: SwiftShader rounds those of
	// 2^31 and more wrongly).
	f := m.Convert(m.BitCast(m.MulHi(sig, m.u(0x6487ed51)), I32), F32)
	f = m.Mul(f, m.pow2(m.Sub(m.i(-28), m.BitCast(m.Add(up, drop), I32))))
	return q, m.Select(neg, m.Neg(f), f)
}

// sinCos returns the sine where even quadrants mean sine, from q and r.
func (m mathBuilder) sinCos(q, r Value) Value {
	z := m.Mul(r, r)
	s := m.Add(m.Mul(m.Mul(m.poly(z, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1), z), r), r)
	c := m.poly(z, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
	c = m.Add(m.Sub(m.Mul(m.Mul(c, z), z), m.Mul(m.c(0.5), z)), m.c(1))
	odd := m.Ne(m.And(q, m.u(1)), m.u(0))
	return m.withSign(m.Select(odd, c, s), m.Shl(m.And(q, m.u(2)), m.u(30)))
}

// unlessHuge returns y, or NaN where x is infinite or NaN.
func (m mathBuilder) unlessHuge(x, y Value) Value {
	return m.Select(m.Ge(m.mag(x), m.u(infBits32)), m.c(nan), y)
}

func (m mathBuilder) sin(x Value) Value {
	q, r := m.reduce(x)
	return m.unlessHuge(x, m.unlessTiny(x, m.withSign(m.sinCos(q, r), m.sign(x))))
}

func (m mathBuilder) cos(x Value) Value {
	q, r := m.reduce(x)
	return m.unlessHuge(x, m.sinCos(m.Add(q, m.u(1)), r))
}

func (m mathBuilder) tan(x Value) Value {
	q, r := m.reduce(x)
	z := m.Mul(r, r)
	p := m.poly(z, 9.38540185543e-3, 3.11992232697e-3, 2.44301354525e-2, 5.34112807005e-2, 1.33387994085e-1, 3.33331568548e-1)
	t := m.Add(m.Mul(m.Mul(p, z), r), r)
	odd := m.Ne(m.And(q, m.u(1)), m.u(0))
	t = m.Select(odd, m.Div(m.c(-1), t), t)
	return m.unlessHuge(x, m.unlessTiny(x, m.withSign(t, m.sign(x))))
}
