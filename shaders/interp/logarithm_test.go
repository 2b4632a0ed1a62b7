package interp

import (
	"math"
	"testing"
)

func TestLogarithms(t *testing.T) {
	off := func(got, want float64) float64 {
		_, e := math.Frexp(want)
		return math.Abs(got-want) / math.Ldexp(1, max(e-53, -1074))
	}
	// Computed with 60 digits and rounded once.
	for _, c := range []struct{ x, log2, log10 float64 }{
		{1.07085138, 0.09875826700212254, 0.02972920068743124},
		{1.0010236648381798, 0.0014760808083950818, 0.00044434459935085736},
		{0.9999999999999, -1.4431436399686926e-13, -4.344295236822776e-14},
		{1.0000000000000002, 3.203426503814917e-16, 9.64327466553287e-17},
		{0.9999999999999999, -1.6017132519074588e-16, -4.821637332766436e-17},
		{0.75, -0.4150374992788438, -0.12493873660829995},
		{1.4142135623730951, 0.5000000000000001, 0.15051499783199063},
		{0.7071067811865476, -0.4999999999999999, -0.15051499783199057},
		{1.5, 0.5849625007211562, 0.17609125905568124},
		{3.0, 1.584962500721156, 0.47712125471966244},
		{1e-300, -996.5784284662087, -300.0},
		{5e-324, -1074.0, -323.3062153431158},
		{1.7976931348623157e+308, 1024.0, 308.25471555991675},
		{123456.789, 16.913646648198387, 5.09151497716927},
		{0.1, -3.321928094887362, -1.0},
	} {
		if d := off(Log2(c.x), c.log2); d > 2 {
			t.Errorf("log2(%v) is %v, want %v: %v ULP", c.x, Log2(c.x), c.log2, d)
		}
		if d := off(Log10(c.x), c.log10); d > 2 {
			t.Errorf("log10(%v) is %v, want %v: %v ULP", c.x, Log10(c.x), c.log10, d)
		}
	}
	for e := -1074; e <= 1023; e++ {
		if got := Log2(math.Ldexp(1, e)); got != float64(e) {
			t.Errorf("log2(2^%d) is %v", e, got)
		}
	}
	for e := range 23 {
		if got := Log10(math.Pow10(e)); got != float64(e) {
			t.Errorf("log10(1e%d) is %v", e, got)
		}
	}
	for _, f := range []func(float64) float64{Log2, Log10} {
		if f(0) != math.Inf(-1) || f(math.Copysign(0, -1)) != math.Inf(-1) || !math.IsNaN(f(-1)) || !math.IsNaN(f(math.NaN())) || !math.IsInf(f(math.Inf(1)), 1) || f(1) != 0 {
			t.Errorf("special values: %v %v %v %v %v", f(0), f(-1), f(math.NaN()), f(math.Inf(1)), f(1))
		}
	}
}
