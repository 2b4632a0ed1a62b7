package vmath

import "math"

// Circular functions: x = q pi/2 + r with |r| <= pi/4; q says which polynomial of r and which sign.

// trigLimit is the largest |x| for which the reduction is accurate.
const trigLimit = 65536

// piOver2 is pi/2 in three parts. The first has 18 bits, so that x less q times it is exact.
var piOver2 = func() [3]float64 {
	const rest = 6.123233995736766e-17 // pi/2 less its float64
	a := float64(math.Float32frombits(math.Float32bits(math.Pi/2) &^ 0x3f))
	b := float64(float32(math.Pi/2 - a))
	return [3]float64{a, b, math.Pi/2 - a - b + rest}
}()

// quarters returns q, in the low bits of a word, and r.
func (b *builder) quarters(x val) (q, r val) {
	q = b.fma(x, b.c(2/math.Pi), b.c(rounder))
	j := b.sub(q, b.c(rounder))
	r = x
	for _, part := range piOver2 {
		r = b.fnma(j, b.c(part), r)
	}
	return q, r
}

// sinCos is the sine of r where q is even and its cosine where q is odd, negative where q has bit 1.
func (b *builder) sinCos(q, r val) val {
	s := b.mul(r, r)
	sin := b.poly(s, 2.8005442800349555909633636474609375e-6, -1.98499110410921275615692138671875e-4, 8.33337195217609405517578125e-3,
		-0.16666667163372039794921875)
	sin = b.fma(b.mul(r, s), sin, r)
	cos := b.poly(s, 2.4432563805021345615386962890625e-5, -1.388731063343584537506103515625e-3, 4.16666455566883087158203125e-2, -0.5, 1)
	y := b.sel(b.op(SignOf, b.shl(q, 31)), cos, sin)
	return b.op(Xor, y, b.shl(b.and(q, b.bits(2)), 30))
}

func (b *builder) sin(x val) val {
	q, r := b.quarters(x)
	return b.sel(b.eq(x, b.c(0)), x, b.sinCos(q, r))
}

func (b *builder) cos(x val) val {
	q, r := b.quarters(x)
	return b.sinCos(b.op(IAdd, q, b.bits(1)), r)
}
