// Package bigmath computes elementary functions with many digits, and fits polynomials to them. The coefficients of the
// kernel language's functions of float64 come from here, and tests measure these functions' errors with it.
//
// Results are good to at least 200 bits, relative to the result, for every finite float64 argument.
package bigmath

import (
	"math"
	"math/big"
	"sync"
)

// prec is the precision of intermediate results, in bits.
const prec = 320

// Float is a number of many digits.
type Float = big.Float

func num() *Float { return new(big.Float).SetPrec(prec) }

// New returns x.
func New(x float64) *Float { return num().SetFloat64(x) }

// Add returns x + y.
func Add(x, y *Float) *Float { return num().Add(x, y) }

// Sub returns x - y.
func Sub(x, y *Float) *Float { return num().Sub(x, y) }

// Mul returns x * y.
func Mul(x, y *Float) *Float { return num().Mul(x, y) }

// Div returns x / y.
func Div(x, y *Float) *Float { return num().Quo(x, y) }

// Sqrt returns the square root of x.
func Sqrt(x *Float) *Float { return num().Sqrt(x) }

// Neg returns -x.
func Neg(x *Float) *Float { return num().Neg(x) }

func scale(x *Float, exp int) *Float { return num().SetMantExp(x, exp) }

// exponent returns e with 2^(e-1) <= |x| < 2^e; far below all numbers for 0.
func exponent(x *Float) int {
	if x.Sign() == 0 {
		return math.MinInt32
	}
	return x.MantExp(nil)
}

// series adds up terms, each made from the one before, until they no longer matter.
func series(first *Float, next func(term *Float, n int64) *Float) *Float {
	sum, term := num().Set(first), first
	for n := int64(1); ; n++ {
		term = next(term, n)
		if term.Sign() == 0 || exponent(term) < exponent(sum)-prec {
			return sum
		}
		sum = Add(sum, term)
	}
}

func ratio(x *Float, n int64) *Float { return Div(x, num().SetInt64(n)) }

// Expm1 returns e^x - 1.
func Expm1(x *Float) *Float {
	if exponent(x) < -8 {
		return series(x, func(t *Float, n int64) *Float { return ratio(Mul(t, x), n+1) })
	}
	return Sub(Exp(x), New(1))
}

// Exp returns e^x.
func Exp(x *Float) *Float {
	halvings := max(0, exponent(x)+8)
	r := scale(x, -halvings)
	y := series(New(1), func(t *Float, n int64) *Float { return ratio(Mul(t, r), n) })
	for range halvings {
		y = Mul(y, y)
	}
	return y
}

// Ln2 returns the natural logarithm of 2: the sum of 1/(n 2^n).
var Ln2 = sync.OnceValue(func() *Float {
	p := New(1)
	return series(New(0.5), func(_ *Float, n int64) *Float {
		p = scale(p, -1)
		return ratio(scale(p, -1), n+1)
	})
})

// Log returns the natural logarithm of a positive x, by Halley's iteration for e^y = m.
func Log(x *Float) *Float {
	m := num()
	e := x.MantExp(m)
	v, _ := m.Float64()
	if v < math.Sqrt2/2 {
		m, e, v = scale(m, 1), e-1, 2*v
	}
	if d := Sub(m, New(1)); exponent(d) < -40 { // no digits are lost near 1
		return Add(Log1p(d), Mul(Ln2(), num().SetInt64(int64(e))))
	}
	y := New(math.Log(v))
	for range 2 {
		z := Exp(y)
		y = Add(y, scale(Div(Sub(m, z), Add(m, z)), 1))
	}
	return Add(y, Mul(Ln2(), num().SetInt64(int64(e))))
}

// Log1p returns the natural logarithm of 1 + x.
func Log1p(x *Float) *Float {
	if exponent(x) >= -40 {
		return Log(Add(New(1), x))
	}
	p := x
	return series(x, func(_ *Float, n int64) *Float {
		p = Neg(Mul(p, x))
		return ratio(p, n+1)
	})
}

// piPrec is enough for the largest float64.
const piPrec = 1600

// PiLong returns pi with 1,600 bits, by Machin's formula.
var PiLong = sync.OnceValue(func() *Float {
	inverse := func(n int64) *Float { // arctan(1/n)
		term := new(big.Float).SetPrec(piPrec).SetInt64(n)
		term.Quo(new(big.Float).SetPrec(piPrec).SetInt64(1), term)
		sum := new(big.Float).SetPrec(piPrec).Set(term)
		square := new(big.Float).SetPrec(piPrec).SetInt64(-n * n)
		for k := int64(3); exponent(term) > -piPrec; k += 2 {
			term.Quo(term, square)
			sum.Add(sum, new(big.Float).SetPrec(piPrec).Quo(term, new(big.Float).SetPrec(piPrec).SetInt64(k)))
		}
		return sum
	}
	a, b := inverse(5), inverse(239)
	a.Mul(a, new(big.Float).SetPrec(piPrec).SetInt64(4))
	a.Sub(a, b)
	return a.Mul(a, new(big.Float).SetPrec(piPrec).SetInt64(4))
})

// Pi returns pi.
func Pi() *Float { return num().Set(PiLong()) }

// SinCos returns the sine and the cosine of x.
func SinCos(x *Float) (sin, cos *Float) {
	long := func() *Float { return new(big.Float).SetPrec(piPrec) }
	quarter := long().Quo(PiLong(), long().SetInt64(2))
	q := long().Quo(x, quarter)
	q.Add(q, long().SetFloat64(math.Copysign(0.5, float64(x.Sign()))))
	k, _ := q.Int(nil)
	r := num().Set(long().Sub(x, long().Mul(long().SetInt(k), quarter)))
	z := Neg(Mul(r, r))
	sin = series(r, func(t *Float, n int64) *Float { return ratio(Mul(t, z), 2*n*(2*n+1)) })
	cos = series(New(1), func(t *Float, n int64) *Float { return ratio(Mul(t, z), 2*n*(2*n-1)) })
	switch new(big.Int).And(k, big.NewInt(3)).Int64() {
	case 1:
		return cos, Neg(sin)
	case 2:
		return Neg(sin), Neg(cos)
	case 3:
		return Neg(cos), sin
	}
	return sin, cos
}

// Atan returns the arc tangent of x.
func Atan(x *Float) *Float {
	if exponent(x) > 1 {
		half := scale(Pi(), -1)
		if x.Sign() < 0 {
			half = Neg(half)
		}
		return Sub(half, Atan(Div(New(1), x)))
	}
	halvings := 0
	for exponent(x) > -4 { // atan x = 2 atan(x/(1+sqrt(1+x^2)))
		x = Div(x, Add(New(1), Sqrt(Add(New(1), Mul(x, x)))))
		halvings++
	}
	z, p := Neg(Mul(x, x)), x
	return scale(series(x, func(_ *Float, n int64) *Float {
		p = Mul(p, z)
		return ratio(p, 2*n+1)
	}), halvings)
}

// Asin returns the arc sine of x, |x| <= 1.
func Asin(x *Float) *Float {
	rest := Sub(New(1), Mul(x, x))
	if rest.Sign() == 0 {
		return scale(Mul(Pi(), x), -1)
	}
	return Atan(Div(x, Sqrt(rest)))
}

// Acos returns the arc cosine of x, |x| <= 1.
func Acos(x *Float) *Float {
	if v, _ := x.Float64(); v == -1 {
		return Pi()
	}
	return scale(Atan(Sqrt(Div(Sub(New(1), x), Add(New(1), x)))), 1)
}

// Erf returns the error function of |x| < 7, by the series of positive terms: 2x/sqrt(pi) e^(-x^2) times the sum of
// (2x^2)^n/(2n+1)!!.
func Erf(x *Float) *Float {
	z := Mul(x, x)
	sum := series(New(1), func(t *Float, n int64) *Float { return ratio(Mul(t, scale(z, 1)), 2*n+1) })
	return Mul(Div(scale(x, 1), Sqrt(Pi())), Mul(Exp(Neg(z)), sum))
}
