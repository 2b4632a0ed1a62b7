package ir

import "math"

// Circular functions of F64: |x| = q pi/2 + r with |r| <= pi/4 and r as the sum of two numbers.

// piOver2 in parts: the products of the first two with q < 2^16 are exact.
const (
	piOver2High64   = 0x1.921fb5444p0
	piOver2Middle64 = 0x2.d1846989p-40
	piOver2Low64    = math.Pi/2 - piOver2High64 - piOver2Middle64

	reduceMax64 = 1e5 // the largest |x| that Cody and Waite's reduction with these is accurate for
)

// reduce returns q (I64, modulo 4) and r for x. Infinity and NaN give some finite r. Arguments up to reduceMax64 take Cody
// and Waite's reduction; where any lane is larger, a branch does Payne and Hanek's, which is accurate for all numbers.
func (m mathBuilder64) reduce(x Value) (q, r, low Value) {
	b := m.mag(x)
	b = m.Select(m.Ge(b, m.i(infBits64)), m.i(0), b)
	large := m.Gt(b, m.i(math.Float64bits(reduceMax64)))
	a := m.float(m.Select(large, m.i(0), b))
	kf, k := m.nearest(m.Mul(a, m.c(2/math.Pi)))
	h := m.Sub(a, m.Mul(kf, m.c(piOver2High64)))
	t := m.Mul(kf, m.c(piOver2Middle64))
	d := m.Sub(h, t)
	back := m.Sub(d, h)
	lost := m.Sub(m.Sub(h, m.Sub(d, back)), m.Add(t, back)) // Knuth's exact sum
	lost = m.Sub(lost, m.Mul(kf, m.c(piOver2Low64)))
	rs := m.Add(d, lost)
	qv, rv, lv := m.Var(k), m.Var(rs), m.Var(m.Add(m.Sub(d, rs), lost))
	m.If(m.anyLane(large), func() {
		ql, rl, ll := m.reduceLarge(b)
		m.Set(qv, m.Select(large, ql, m.Get(qv)))
		m.Set(rv, m.Select(large, rl, m.Get(rv)))
		m.Set(lv, m.Select(large, ll, m.Get(lv)))
	}, nil)
	return m.Get(qv), m.Get(rv), m.Get(lv)
}

func (m mathBuilder64) anyLane(cond Value) Value {
	any := m.Extract(cond, 0)
	for i := 1; i < cond.Type.Lanes; i++ {
		any = m.Or(any, m.Extract(cond, i))
	}
	return any
}

// reduceLarge is Payne and Hanek's reduction in integers (see math_trig.go), for the bits b of a number of at least 1: its significand times the
// 192 bits of 2/pi from the one on whose product is a multiple of 2 quarter turns. No number comes closer than about 2^-61 to a
// multiple of pi/2.
func (m mathBuilder64) reduceLarge(b Value) (q, r, low Value) {
	e := m.Sub(m.Shr(b, m.i(52)), m.i(1023))
	sig := m.Or(m.And(b, m.i(mantBits64)), m.i(1<<52))
	// The word of twoOverPi64 to start at is e/64: bit by bit, the words are moved to the front.
	words := make([]Value, len(twoOverPi64))
	for i, w := range twoOverPi64 {
		words[i] = m.i(w)
	}
	for _, step := range []int{8, 4, 2, 1} {
		move := m.Ne(m.And(e, m.i(uint64(step)<<6)), m.i(0))
		for i := range 3 + step {
			words[i] = m.Select(move, words[i+step], words[i])
		}
	}
	shift := m.And(e, m.i(63))
	align := func(x, next Value) Value { // the high word of (x, next) << shift, where a shift by 64 is not allowed
		rest := m.shr(next, 1)
		return m.Or(m.Shl(x, shift), m.Shr(rest, m.Sub(m.i(63), shift)))
	}
	high, middle, last := align(words[0], words[1]), align(words[1], words[2]), align(words[2], words[3])

	// The product in units of 2^-126 quarter turns, without multiples of 4 quarter turns.
	carry := m.mulHigh(last, sig)
	p0 := m.Add(m.Mul(middle, sig), carry)
	p1 := m.Add(m.mulHigh(middle, sig), m.Mul(high, sig))
	p1 = m.Add(p1, m.Select(m.below(p0, carry), m.i(1), m.i(0)))
	// Without the quarter turns it is a signed fraction of 128 bits.
	f1 := m.Or(m.Shl(p1, m.i(2)), m.shr(p0, 62))
	f0 := m.Shl(p0, m.i(2))
	q = m.Add(m.shr(p1, 62), m.shr(f1, 63)) // beyond half a quarter turn: counted from the next one, backwards
	// As numbers: the first 53 bits, and the rest.
	vh := m.Mul(m.Convert(m.And(f1, m.i(^uint64(0x7ff))), F64), m.c(0x1p-64))
	vl := m.Mul(m.Convert(m.And(f1, m.i(0x7ff)), F64), m.c(0x1p-64))
	vl = m.Add(vl, m.Mul(m.Convert(m.shr(f0, 11), F64), m.c(0x1p-117)))
	v := m.Add(vh, vl)
	vl = m.Add(m.Sub(vh, v), vl)
	// Times pi/2.
	p, pl := m.product(v, math.Pi/2)
	pl = m.Add(pl, m.Add(m.Mul(v, m.c(piHalfLow64)), m.Mul(vl, m.c(math.Pi/2))))
	r = m.Add(p, pl)
	return q, r, m.Add(m.Sub(p, r), pl)
}

// below compares as unsigned numbers.
func (m mathBuilder64) below(x, y Value) Value {
	return m.Lt(m.Xor(x, m.i(signBit64)), m.Xor(y, m.i(signBit64)))
}

// mulHigh returns the high 64 bits of the product of unsigned numbers.
func (m mathBuilder64) mulHigh(x, y Value) Value {
	low := func(v Value) Value { return m.And(v, m.i(1<<32-1)) }
	x0, x1, y0, y1 := low(x), m.shr(x, 32), low(y), m.shr(y, 32)
	a, b := m.Mul(x1, y0), m.Mul(x0, y1)
	mid := m.Add(m.Add(low(a), low(b)), m.shr(m.Mul(x0, y0), 32))
	return m.Add(m.Add(m.Mul(x1, y1), m.shr(mid, 32)), m.Add(m.shr(a, 32), m.shr(b, 32)))
}

// kernels returns the sine and the cosine of r + low.
func (m mathBuilder64) kernels(r, low Value) (sin, cos Value) {
	z := m.Mul(r, r)
	half := m.Mul(m.c(0.5), z)
	s := m.mulAdd(m.Mul(z, r), m.poly(z, sin64), m.Sub(low, m.Mul(half, low)))
	c := m.Sub(m.Mul(m.Mul(z, z), m.poly(z, cos64)), m.Mul(r, low))
	w := m.Sub(m.c(1), half)
	return m.Add(r, s), m.Add(w, m.Add(m.Sub(m.Sub(m.c(1), w), half), c))
}

func (m mathBuilder64) odd(q Value) Value { return m.Ne(m.And(q, m.i(1)), m.i(0)) }

// sinCos returns the sine where even quadrants mean sine.
func (m mathBuilder64) sinCos(q, r, low Value) Value {
	s, c := m.kernels(r, low)
	return m.withSign(m.Select(m.odd(q), c, s), m.Shl(m.And(q, m.i(2)), m.i(62)))
}

// unlessHuge returns y, or NaN where x is infinite or NaN.
func (m mathBuilder64) unlessHuge(x, y Value) Value {
	return m.Select(m.Ge(m.mag(x), m.i(infBits64)), m.c(nan), y)
}

func (m mathBuilder64) sin(x Value) Value {
	y := m.sinCos(m.reduce(x))
	return m.unlessHuge(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

func (m mathBuilder64) cos(x Value) Value {
	q, r, low := m.reduce(x)
	return m.unlessHuge(x, m.sinCos(m.Add(q, m.i(1)), r, low))
}

// tan is the quotient of sine and cosine, or of cosine and -sine.
func (m mathBuilder64) tan(x Value) Value {
	q, r, low := m.reduce(x)
	s, c := m.kernels(r, low)
	odd := m.odd(q)
	y := m.Div(m.Select(odd, c, s), m.Select(odd, m.Neg(s), c))
	return m.unlessHuge(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}
