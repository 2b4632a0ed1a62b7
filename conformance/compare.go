package conformance

import (
	"math"

	"github.com/anygpu/anygpu/tensor"
)

// comparison holds results against a reference.
type comparison struct {
	what  string
	dtype tensor.DType // of the results
	bound bound
	scale func(i int) scale // nil where the bound needs none
	// coarse is the dtype that parts of the computation are rounded to, where it is not dtype.
	coarse tensor.DType
}

// check returns a *Mismatch for the worst element that is out of bounds, and the worst distance in ULP.
func (c comparison) check(got, want []float64) (measured, error) {
	m := measured{bound: c.bound.describe(c.dtype)}
	bad, at, worst := 0, -1, 0.0
	for i, w := range want {
		ulp, of, ok := c.element(i, got[i], w)
		if !math.IsInf(ulp, 0) && !math.IsNaN(ulp) {
			m.add(measured{ulp: ulp, ofBound: of, has: c.dtype.IsFloat()})
		}
		if ok {
			continue
		}
		bad++
		if at < 0 || ulp > worst {
			at, worst = i, ulp
		}
	}
	if at < 0 {
		return m, nil
	}
	d := &Mismatch{What: c.what, DType: c.dtype.String(), Off: bad, Elements: len(want), Index: at, Got: number(got[at]), Want: number(want[at]), Bound: m.bound}
	if !math.IsInf(worst, 0) && c.dtype.IsFloat() {
		d.ULP = worst
	}
	return m, d
}

// element returns the distance of one result in ULP and as a part of the bound, and whether it is within bounds.
func (c comparison) element(i int, got, want float64) (ulp, ofBound float64, ok bool) {
	if !c.dtype.IsFloat() {
		if got == want {
			return 0, 0, true
		}
		return math.Abs(got - want), 0, false
	}
	f := formats[c.dtype]
	if math.IsNaN(got) && math.IsNaN(want) {
		return 0, 0, true
	}
	var s scale
	if c.scale != nil {
		s = c.scale(i)
	}
	allowed := c.bound.allowed(c.dtype, want, s)
	if c.coarse.IsFloat() && c.coarse != c.dtype {
		allowed = max(allowed, c.bound.allowed(c.coarse, want, s))
	}
	d := math.Abs(got - want)
	if got == f.round(want) {
		if math.IsInf(got, 0) {
			return 0, 0, true
		}
		return math.Min(d/f.ulp(want), 0.5), part(d, allowed), true
	}
	if math.IsNaN(got) || math.IsNaN(want) || math.IsInf(want, 0) {
		return math.Inf(1), 0, false
	}
	if math.IsInf(got, 0) {
		// A result just below the largest finite number may overflow by its error.
		return math.Inf(1), 0, math.Signbit(got) == math.Signbit(want) && math.Abs(want)+allowed >= f.max
	}
	if math.Abs(want) < f.minNormal() && c.dtype != tensor.Float16 {
		// Devices may flush subnormal numbers to zero, and a part of a formula that was subnormal has few bits. Not so in
		// float16: its subnormal numbers are normal in float32, in which they are computed, and small gradients are among them.
		if got == 0 {
			return 0, 0, true
		}
		allowed = max(allowed, f.minNormal()*f.eps*1024)
	}
	return d / f.ulp(want), part(d, allowed), d <= allowed
}

// part is d over allowed, 0 where only the exact result is allowed.
func part(d, allowed float64) float64 {
	if allowed == 0 {
		return 0
	}
	return d / allowed
}

// wrapped is the value that an integer dtype has for v: it truncates and wraps; bool is whether v is not zero.
func wrapped(d tensor.DType, v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	v = math.Trunc(v) + 0 // integers have no -0
	switch d {
	case tensor.Bool:
		if v != 0 {
			return 1
		}
		return 0
	case tensor.Uint8:
		return math.Mod(math.Mod(v, 256)+256, 256)
	case tensor.Int32:
		if math.Abs(v) < 1<<53 {
			return float64(int32(int64(v)))
		}
	}
	return v
}
