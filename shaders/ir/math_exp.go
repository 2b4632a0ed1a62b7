package ir

import "math"

// Exponentials: e^x = 2^k e^r with k the integer nearest to x/ln 2 and |r| <= (ln 2)/2. r is found by Cody and Waite's
// reduction: ln 2 in two parts, of which the first has few enough bits that its product with k is exact.
const (
	ln2High = 0.693145751953125        // 0x3f317200
	ln2Low  = 1.428606765330187045e-06 // ln 2 - ln2High
	expOver = 88.72283935546875        // the largest F32 whose exponential is finite
)

// expReduce returns k (as F32) and r for finite x.
func (m mathBuilder) expReduce(x Value) (k, r Value) {
	k = m.Round(m.Mul(x, m.c(math.Log2E)))
	if m.fma {
		return k, m.Fma(k, m.c(-ln2Low), m.Fma(k, m.c(-ln2High), x))
	}
	return k, m.Sub(m.Sub(x, m.Mul(k, m.c(ln2High))), m.Mul(k, m.c(ln2Low)))
}

// expTail returns e^r - 1 for |r| <= (ln 2)/2, with the polynomial of SLEEF's expf.
func (m mathBuilder) expTail(r Value) Value {
	p := m.poly(r, 0.000198527617612853646278381, 0.00139304355252534151077271, 0.00833336077630519866943359,
		0.0416664853692054748535156, 0.166666671633720397949219, 0.5)
	return m.mulAdd(m.Mul(r, r), p, r)
}

// expShifted returns e^x * 2^shift for x in [-104, 90].
func (m mathBuilder) expShifted(x Value, shift int32) Value {
	if m.exact && shift == 0 {
		return m.Exp(x)
	}
	k, r := m.expReduce(x)
	return m.scale(m.Add(m.expTail(r), m.c(1)), m.Add(m.Convert(k, I32), m.i(shift)))
}

func (m mathBuilder) exp(x Value) Value {
	n := m.number(x)
	y := m.expShifted(m.Min(m.Max(n, m.c(-104)), m.c(89)), 0)
	return m.unlessNaN(x, m.Select(m.Gt(n, m.c(expOver)), m.c(inf), y))
}

// exp2 has no reduction to make: x = k + f exactly. The polynomial is SLEEF's.
func (m mathBuilder) exp2(x Value) Value {
	n := m.number(x)
	a := m.Min(m.Max(n, m.c(-151)), m.c(128))
	k := m.Round(a)
	f := m.Sub(a, k)
	y := m.scale(m.exp2Fraction(f), m.Convert(k, I32))
	return m.unlessNaN(x, m.Select(m.Ge(n, m.c(128)), m.c(inf), y))
}

// exp2Fraction returns 2^f for |f| <= 1/2.
func (m mathBuilder) exp2Fraction(f Value) Value {
	p := m.poly(f, 0.1535920892e-3, 0.1339262701e-2, 0.9618384764e-2, 0.5550347269e-1, 0.2402264476, 0.6931471825)
	return m.mulAdd(p, f, m.c(1))
}

// expm1 is 2^k ((e^r - 1) + (1 - 2^-k)). Below -60 it is -1 to the last bit; tiny x is its own result, which also keeps
// the sign of zero.
func (m mathBuilder) expm1(x Value) Value {
	n := m.number(x)
	k, r := m.expReduce(m.Min(m.Max(n, m.c(-60)), m.c(89)))
	ki := m.Convert(k, I32)
	// 2^-k is below the last bit of 1 from k = 25 on; its exponent must stay in range for k = 128.
	back := m.pow2(m.Neg(m.Min(ki, m.i(100))))
	y := m.scale(m.Add(m.expTail(r), m.Sub(m.c(1), back)), ki)
	y = m.Select(m.Gt(n, m.c(expOver)), m.c(inf), y)
	return m.unlessNaN(x, m.unlessTiny(x, y))
}

// sinh of |x| < 1 is an odd polynomial (Cephes); beyond it is h - 1/(4h) with h = e^|x|/2, which overflows when sinh does.
func (m mathBuilder) sinh(x Value) Value {
	h, over, a := m.halfExp(x)
	z := m.Mul(a, a)
	small := m.Add(m.Mul(m.Mul(m.poly(z, 2.03721912945e-4, 8.33028376239e-3, 1.66667160211e-1), z), a), a)
	y := m.Select(m.Lt(a, m.c(1)), small, m.Sub(h, m.Div(m.c(0.25), h)))
	y = m.Select(over, m.c(inf), y)
	return m.unlessNaN(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

func (m mathBuilder) cosh(x Value) Value {
	h, over, _ := m.halfExp(x)
	y := m.Select(over, m.c(inf), m.Add(h, m.Div(m.c(0.25), h)))
	return m.unlessNaN(x, y)
}

// halfExp returns e^a/2 for a = |x|, at most 89.5 (0 for NaN), and whether |x| is so large that it overflows.
func (m mathBuilder) halfExp(x Value) (h, over, a Value) {
	n := m.Abs(m.number(x))
	a = m.Min(n, m.c(89.5))
	return m.expShifted(a, -1), m.Gt(n, m.c(89.41598510742188)), a // the largest F32 whose sinh and cosh are finite
}

// tanh of |x| < 0.625 is an odd polynomial (Cephes); beyond it is 1 - 2/(e^2|x| + 1). From 10 on that is 1 to the last
// bit, so that nothing overflows.
func (m mathBuilder) tanh(x Value) Value {
	a := m.Min(m.Abs(m.number(x)), m.c(10))
	z := m.Mul(a, a)
	p := m.poly(z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
	small := m.mulAdd(m.Mul(p, z), a, a)
	large := m.Sub(m.c(1), m.Div(m.c(2), m.Add(m.expShifted(m.Add(a, a), 0), m.c(1))))
	y := m.Select(m.Lt(a, m.c(0.625)), small, large)
	return m.unlessNaN(x, m.unlessTiny(x, m.withSign(y, m.sign(x))))
}

// erf is an odd polynomial up to 0.9277, and beyond it 1 - e^p(|x|) with a polynomial p; both are minimax
// approximations found by N. Juffa. From 4 on the result is 1 to the last bit. Tiny x is multiplied by 2/sqrt(pi), which
// is 1.128: the sum of x and 0.128x would lose the second term on a device that flushes subnormal numbers.
func (m mathBuilder) erf(x Value) Value {
	a := m.Min(m.Abs(m.number(x)), m.c(4))
	s := m.Mul(a, a)
	p := m.poly(s, -5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
	small := m.Select(m.Lt(a, m.c(1e-30)), m.Mul(a, m.c(1.1283791670955126)), m.mulAdd(p, a, a))
	q := m.poly(a, -1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1,
		-1.28717512e-1)
	large := m.Sub(m.c(1), m.expShifted(m.mulAdd(q, a, m.Neg(a)), 0))
	y := m.Select(m.Gt(a, m.c(0.927734375)), large, small)
	return m.unlessNaN(x, m.withSign(y, m.sign(x)))
}
