//go:build !arm64

package vec

import "math"

// fma returns a*b + c, rounded once. The product of float32 values is exact in float64; its sum with c is rounded to odd
// there, so that rounding it again gives the same as rounding the exact sum (S. Boldo, G. Melquiond, "Emulation of FMA
// and correctly rounded sums: proved algorithms using rounding to odd", 2008).
func fma(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := float64(p + z)
	bits := math.Float64bits(s)
	if bits&1 == 0 {
		t := float64(s - p)
		if e := float64(p-float64(s-t)) + float64(z-t); e != 0 && e == e {
			if (e > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
			s = math.Float64frombits(bits)
		}
	}
	return float32(s)
}
