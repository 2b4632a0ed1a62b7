package vmath

import "math"

// The polynomials of this package are minimax approximations with float32 coefficients, found by Sollya's fpminimax
// (N. Brisebarre, S. Chevillard, "Efficient polynomial L-infinity approximations", 2007).

// rounder, added, rounds a number below 2^22 to an integer, which the low bits of the sum then have.
const rounder = 0x1.8p23

// ln2High has few enough bits that its products with exponents are exact; ln2Low is the rest of ln 2.
const (
	ln2High = 0x1.62e4p-1
	ln2Low  = math.Ln2 - ln2High
)

// reduce returns j, an integer, and r with x = j ln 2 + r and |r| <= ln(2)/2, for |x| < 2^21 (W. Cody, W. Waite,
// "Software manual for the elementary functions", 1980).
func (b *builder) reduce(x val) (j, r val) {
	j = b.sub(b.fma(x, b.c(math.Log2E), b.c(rounder)), b.c(rounder))
	return j, b.fnma(j, b.c(ln2Low), b.fnma(j, b.c(ln2High), x))
}

// expTail is (e^r - 1 - r) / r^2 for |r| <= ln(2)/2.
var expTail = []float64{1.378250424750149250030517578125e-3, 8.3686746656894683837890625e-3, 4.16689626872539520263671875e-2,
	0.16666521131992340087890625, 0.4999999105930328369140625}

// expOf is e^x for x in [-104, 89], or NaN.
func (b *builder) expOf(x val) val {
	j, r := b.reduce(x)
	return b.op(Scale, b.poly(r, append(expTail[:len(expTail):len(expTail)], 1, 1)...), j)
}

func (b *builder) exp(x val) val { return b.expOf(b.clamp(-104, 89, x)) }

// exp2 is 2^j 2^f with |f| <= 1/2.
func (b *builder) exp2(x val) val {
	x = b.clamp(-151, 128, x)
	j := b.sub(b.add(x, b.c(rounder)), b.c(rounder))
	p := b.poly(b.sub(x, j), 1.5243396046571433544158935546875e-4, 1.3391473330557346343994140625e-3,
		9.618829004466533660888671875e-3, 5.5503584444522857666015625e-2, 0.240226447582244873046875, 0.693147182464599609375, 1)
	return b.op(Scale, p, j)
}

// expm1 is 2^j (e^r - 1) + (2^j - 1), computed with half of 2^j, which overflows only with the result. Tiny x is its own
// result, which also keeps the sign of zero.
func (b *builder) expm1(x val) val {
	j, r := b.reduce(b.clamp(-60, 89, x))
	v := b.fma(b.poly(r, expTail...), b.mul(r, r), r)
	half := b.op(Scale, b.c(0.5), j)
	y := b.fma(v, half, b.sub(half, b.c(0.5)))
	return b.sel(b.lt(b.abs(x), b.c(0x1p-25)), x, b.add(y, y))
}

// tanh of |x| < 0.55 is an odd polynomial; beyond it is 1 - 2/(e^2|x| + 1), and from 10 on 1 to the last bit.
func (b *builder) tanh(x val) val {
	a := b.op(Min, b.c(10), b.abs(x))
	s := b.mul(a, a)
	p := b.poly(s, -6.188181228935718536376953125e-3, 2.1011881530284881591796875e-2, -5.38379959762096405029296875e-2,
		0.13332450389862060546875, -0.33333313465118408203125)
	small := b.fma(b.mul(a, s), p, a)
	large := b.sub(b.c(1), b.div(b.c(2), b.add(b.expOf(b.add(a, a)), b.c(1))))
	return b.signed(b.sel(b.lt(a, b.c(0.55)), small, large), x)
}

// erf is an odd polynomial up to 0.9277, and beyond it 1 - e^p(|x|) with a polynomial p; both are minimax
// approximations found by N. Juffa. From 4 on the result is 1 to the last bit.
func (b *builder) erf(x val) val {
	a := b.op(Min, b.c(4), b.abs(x))
	p := b.poly(b.mul(a, a), -5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
	small := b.fma(p, a, a)
	q := b.poly(a, -1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1)
	large := b.sub(b.c(1), b.expOf(b.op(Fma, q, a, b.op(Xor, a, b.bits(0x80000000)))))
	return b.signed(b.sel(b.lt(b.c(0.927734375), a), large, small), x)
}
