package vec

import "math"

// The operations of package vmath on one lane, for the functions in math_go.go.

func float(b uint32) float32 { return math.Float32frombits(b) }
func word(x float32) uint32  { return math.Float32bits(x) }

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func min32(a, b float32) float32 {
	if a < b {
		return a
	}
	return b
}

func max32(a, b float32) float32 {
	if a > b {
		return a
	}
	return b
}

// scale is a * 2^j in two steps, of which only the second can round.
func scale(a, j float32) float32 {
	if j != j {
		return j
	}
	k := int32(j)
	return float32(a*pow2(k>>1)) * pow2(k-k>>1)
}

func pow2(k int32) float32 { return float(uint32(k+127) << 23) }

func toF(b uint32) float32 { return float32(int32(b)) }

func sel(c bool, a, b float32) float32 {
	if c {
		return a
	}
	return b
}
