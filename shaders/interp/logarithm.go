package interp

import "math"

// Log2 and Log10 are the logarithms of F64, within 2 ULP; they are exact where the result is an integer. Those of package math are
// off by hundreds of ULP near 1, where the logarithm of the fraction and the exponent cancel.

// logParts returns ln m and e of a positive finite x = 2^e m with m from sqrt(1/2) to sqrt(2).
func logParts(x float64) (ln, e float64) {
	m, exp := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, exp = 2*m, exp-1
	}
	return math.Log(m), float64(exp)
}

// Log2 returns the logarithm of x to base 2.
func Log2(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	ln, e := logParts(x)
	return float64(float64(ln*(math.Log2E-1))+ln) + e
}

// Log10 returns the logarithm of x to base 10.
func Log10(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	ln, e := logParts(x)
	const high, low = 3.01029995663611771306e-01, 3.69423907715893078616e-13 // log10(2); high has zeros at its end
	return float64(float64(e*low)+float64(ln*math.Log10E)) + float64(e*high)
}
