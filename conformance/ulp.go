package conformance

import (
	"math"

	"github.com/anygpu/anygpu/tensor"
)

// format is what rounding needs to know of a floating-point dtype.
type format struct {
	mantissa int     // explicit bits
	minExp   int     // exponent of the smallest normal number
	max      float64 // largest finite value
	eps      float64 // 2^-mantissa
}

var formats = map[tensor.DType]format{
	tensor.Float16:  {10, -14, 65504, 0x1p-10},
	tensor.BFloat16: {7, -126, 0x1.FEp127, 0x1p-7},
	tensor.Float32:  {23, -126, math.MaxFloat32, 0x1p-23},
	tensor.Float64:  {52, -1022, math.MaxFloat64, 0x1p-52},
}

// ulp returns the unit in the last place of v in a dtype: the distance of the two neighbours that enclose |v|, as
// Muller defines it ("On the definition of ulp(x)", RR-5504); of a subnormal number, that of the smallest normal one.
func (f format) ulp(v float64) float64 {
	v = math.Abs(v)
	if v > f.max {
		v = f.max
	}
	_, e := math.Frexp(v) // v = m * 2^e, m in [0.5, 1)
	return math.Ldexp(1, max(e-1, f.minExp)-f.mantissa)
}

// minNormal is the smallest normal number; results below may be flushed to zero.
func (f format) minNormal() float64 { return math.Ldexp(1, f.minExp) }

// round rounds v to the format, to nearest even, with overflow to infinity. It is independent of the library's own
// conversions.
func (f format) round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	q := f.ulp(v)
	r := math.RoundToEven(v/q) * q
	if math.Abs(r) > f.max {
		// The largest finite number rounds up half an ulp above it.
		return math.Copysign(math.Inf(1), v)
	}
	return r
}
