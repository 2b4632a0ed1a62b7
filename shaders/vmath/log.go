package vmath

import "math"

// Logarithms: x = 2^e (1+f) with 1+f in [3/4, 3/2), and a polynomial in f that starts with f times the logarithm's slope.

const (
	threeQuarters = 0x3f400000 // the bits of 3/4
	exponentBits  = 0xff800000
	infinity      = 0x7f800000
)

// logTail is (ln(1+f) - f) / f^2 for f in [-1/4, 1/2].
var logTail = []float64{-4.51799593865871429443359375e-2, 0.1047988235950469970703125, -0.13169388473033905029296875,
	0.14478527009487152099609375, -0.1664644777774810791015625, 0.19990718364715576171875, -0.2500011622905731201171875,
	0.3333345353603363037109375, -0.5}

// logSplit returns e and f of a positive number.
func (b *builder) logSplit(x val) (e, f val) {
	sub := b.lt(x, b.c(0x1p-126))
	x = b.mul(x, b.sel(sub, b.c(0x1p23), b.c(1)))
	w := b.and(b.op(ISub, x, b.bits(threeQuarters)), b.bits(exponentBits))
	e = b.fma(b.op(ToF, w), b.c(0x1p-23), b.sel(sub, b.c(-23), b.c(0)))
	return e, b.sub(b.op(ISub, x, w), b.c(1))
}

// logSpecial puts in the results for zero (-Inf), infinity, negative numbers and NaN.
func (b *builder) logSpecial(x, y val) val {
	y = b.sel(b.lt(x, b.bits(infinity)), y, x)
	y = b.sel(b.lt(x, b.c(0)), b.c(math.NaN()), y)
	return b.sel(b.eq(x, b.c(0)), b.c(math.Inf(-1)), y)
}

// ln1p is ln(1+f) for f in [-1/4, 1/2].
func (b *builder) ln1p(f val) val { return b.fma(b.poly(f, logTail...), b.mul(f, f), f) }

func (b *builder) log(x val) val {
	e, f := b.logSplit(x)
	return b.logSpecial(x, b.fma(e, b.c(math.Ln2), b.ln1p(f)))
}

// slope returns f times the sum of high and low, plus f^2 times a polynomial, plus rest, which is small.
func (b *builder) slope(f val, high, low float64, rest val, coeffs ...float64) val {
	y := b.fma(b.poly(f, coeffs...), b.mul(f, f), b.fma(f, b.c(low), rest))
	return b.fma(f, b.c(high), y)
}

func (b *builder) log2(x val) val {
	const high = 1.44269502162933349609375
	e, f := b.logSplit(x)
	y := b.slope(f, high, math.Log2E-high, b.c(0), -6.551869213581085205078125e-2, 0.1515975296497344970703125, -0.19009579718112945556640625,
		0.20884017646312713623046875, -0.2401402294635772705078125, 0.2884061038494110107421875, -0.3606761991977691650390625,
		0.4809000790119171142578125, -0.721347510814666748046875)
	return b.logSpecial(x, b.add(y, e))
}

func (b *builder) log10(x val) val {
	const (
		high = 0.4342944920063018798828125
		two  = math.Ln2 / math.Ln10
		most = 0x1.344p-2 // of two
	)
	e, f := b.logSplit(x)
	y := b.slope(f, high, math.Log10E-high, b.mul(e, b.c(two-most)), -1.945027150213718414306640625e-2, 4.53053601086139678955078125e-2,
		-5.71390353143215179443359375e-2, 6.2899477779865264892578125e-2, -7.230369746685028076171875e-2, 8.6818180978298187255859375e-2,
		-0.108573727309703826904296875, 0.1447653472423553466796875, -0.21714724600315093994140625)
	return b.logSpecial(x, b.fma(e, b.c(most), y))
}

// log1p takes e from 1+x, but f = 2^-e x + (2^-e - 1) from x, so that no bits of x are lost.
func (b *builder) log1p(x val) val {
	w := b.and(b.op(ISub, b.add(x, b.c(1)), b.bits(threeQuarters)), b.bits(exponentBits))
	scale := b.op(ISub, b.c(4), w) // 4 * 2^-e, as 2^-e can be subnormal
	f := b.add(b.op(ISub, x, w), b.fma(scale, b.c(0.25), b.c(-1)))
	e := b.mul(b.op(ToF, w), b.c(0x1p-23))
	y := b.fma(e, b.c(math.Ln2), b.ln1p(f))
	y = b.sel(b.lt(x, b.bits(infinity)), y, x)
	y = b.sel(b.lt(x, b.c(-1)), b.c(math.NaN()), y)
	y = b.sel(b.eq(x, b.c(-1)), b.c(math.Inf(-1)), y)
	return b.sel(b.eq(x, b.c(0)), x, y)
}
