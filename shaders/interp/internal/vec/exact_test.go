package vec

import (
	"math"
	"math/big"
)

// exactFma rounds the exact a*b + c to float32.
func exactFma(a, b, c float32) float32 {
	if x := float64(a)*float64(b) + float64(c); x-x != 0 || x == 0 {
		return float32(x)
	}
	f := func(x float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(x)) }
	p := f(a)
	p.Mul(p, f(b)).Add(p, f(c))
	got, _ := p.Float32()
	if got == 0 && p.Sign() < 0 {
		return float32(math.Copysign(0, -1))
	}
	return got
}
