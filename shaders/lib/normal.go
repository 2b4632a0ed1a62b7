package lib

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// boxMuller returns two independent normal variates of two random words (Box and Muller, "A note on the generation of
// random normal deviates", 1958). The radius comes from all 32 bits of u, as (u+1/2)/2^32, which is never 0; the angle is in
// [-pi, pi). The functions are written out, without a division, so that every device computes the same operations: they are
// faster than a library's, which has to take any argument, and agree wherever additions and products are rounded correctly.
func boxMuller(b *ir.Builder, u, v ir.Value) (x, y ir.Value) {
	fraction := b.Add(b.Mul(b.Convert(u, ir.F32), b.F32(0x1p-32)), b.F32(0x1p-33))
	// Rounding can take the fraction to 1, and its logarithm to a little above 0.
	radius := b.Sqrt(b.Max(b.Mul(b.F32(-2), logOfFraction(b, fraction)), b.F32(0)))
	sin, cos := sinCosOfTurn(b, b.BitCast(v, ir.I32))
	return b.Mul(radius, cos), b.Mul(radius, sin)
}

// logOfFraction returns log(x) for normal positive x, as Cephes' logf does (Moshier, public domain): x = m*2^e with m in
// [sqrt(1/2), sqrt(2)), and a polynomial in m-1. Error below 1.5 ULP.
func logOfFraction(b *ir.Builder, x ir.Value) ir.Value {
	bits := b.BitCast(x, ir.I32)
	c := func(v int32) ir.Value { return b.ConstBits(bits.Type, uint64(uint32(v))) }
	const root = 0x3f3504f3 // sqrt(1/2)
	shifted := b.Sub(bits, c(root))
	e := b.Convert(b.Shr(shifted, c(23)), ir.F32)
	m := b.BitCast(b.Add(b.And(shifted, c(0x7fffff)), c(root)), ir.F32)
	f := b.Sub(m, b.F32(1))
	z := b.Mul(f, f)
	p := horner(b, f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	y := b.Mul(b.Mul(p, f), z)
	y = b.Add(y, b.Mul(e, b.F32(-2.12194440e-4))) // log 2 in two parts
	y = b.Sub(y, b.Mul(z, b.F32(0.5)))
	return b.Add(b.Add(f, y), b.Mul(e, b.F32(0.693359375)))
}

// sinCosOfTurn returns the sine and cosine of 2 pi v/2^32 from the high 24 bits of v. The angle is reduced to a quarter
// turn exactly, in integers; the polynomials are Cephes' sinf and cosf on [-pi/4, pi/4].
func sinCosOfTurn(b *ir.Builder, v ir.Value) (sin, cos ir.Value) {
	c := func(i int32) ir.Value { return b.ConstBits(v.Type, uint64(uint32(i))) }
	turn := b.Shr(v, c(8))
	quarter := b.Shr(b.Add(turn, c(1<<21)), c(22)) // -2 to 2
	x := b.Mul(b.Convert(b.Sub(turn, b.Shl(quarter, c(22))), ir.F32), b.F32(2*math.Pi/(1<<24)))
	z := b.Mul(x, x)
	s := b.Add(x, b.Mul(b.Mul(x, z), horner(b, z, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)))
	k := b.Mul(b.Mul(z, z), horner(b, z, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2))
	k = b.Add(b.Sub(k, b.Mul(z, b.F32(0.5))), b.F32(1))
	odd := b.Ne(b.And(quarter, c(1)), c(0))
	sin, cos = b.Select(odd, k, s), b.Select(odd, s, k)
	// Quarters 2 and 3 (modulo 4) have a negative sine, 1 and 2 a negative cosine.
	sin = b.Select(b.Ne(b.And(quarter, c(2)), c(0)), b.Neg(sin), sin)
	cos = b.Select(b.Ne(b.And(b.Add(quarter, c(1)), c(2)), c(0)), b.Neg(cos), cos)
	return sin, cos
}

// horner evaluates a polynomial, the highest coefficient first.
func horner(b *ir.Builder, x ir.Value, coefficients ...float64) ir.Value {
	p := b.ConstLike(x, coefficients[0])
	for _, c := range coefficients[1:] {
		p = b.Add(b.Mul(p, x), b.ConstLike(x, c))
	}
	return p
}
