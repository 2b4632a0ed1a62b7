package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// ulpError returns the distance of got from want in units of the last place of want as F32.
func ulpError(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case math.IsNaN(want) && got != got, float64(got) == want, got == w:
		return 0
	case got != got || math.IsNaN(want) || math.IsInf(float64(got), 0) != math.IsInf(float64(w), 0):
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// TestMath holds math functions against double precision, with the bounds of OpenCL, on numbers of all magnitudes.
func TestMath(t *testing.T) {
	needCode(t)
	for _, c := range []struct {
		name  string
		f     func(b *ir.Builder, x ir.Value) ir.Value
		want  func(x float64) float64
		bound float64
	}{
		{"exp", (*ir.Builder).Exp, math.Exp, 3},
		{"exp2", (*ir.Builder).Exp2, math.Exp2, 3},
		{"expm1", (*ir.Builder).Expm1, math.Expm1, 3},
		{"tanh", (*ir.Builder).Tanh, math.Tanh, 5},
		{"sinh", (*ir.Builder).Sinh, math.Sinh, 4},
		{"cosh", (*ir.Builder).Cosh, math.Cosh, 4},
		{"erf", (*ir.Builder).Erf, math.Erf, 16},
		{"log", (*ir.Builder).Log, math.Log, 3},
		{"log2", (*ir.Builder).Log2, math.Log2, 3},
		{"log10", (*ir.Builder).Log10, math.Log10, 3},
		{"log1p", (*ir.Builder).Log1p, math.Log1p, 2},
		{"sin", (*ir.Builder).Sin, math.Sin, 4},
		{"cos", (*ir.Builder).Cos, math.Cos, 4},
		{"tan", (*ir.Builder).Tan, math.Tan, 5},
		{"asin", (*ir.Builder).Asin, math.Asin, 4},
		{"acos", (*ir.Builder).Acos, math.Acos, 4},
		{"atan", (*ir.Builder).Atan, math.Atan, 5},
		{"sqrt", (*ir.Builder).Sqrt, math.Sqrt, 0.5},
		{"rsqrt", (*ir.Builder).Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 2},
		{"floor", (*ir.Builder).Floor, math.Floor, 0},
		{"ceil", (*ir.Builder).Ceil, math.Ceil, 0},
		{"trunc", (*ir.Builder).Trunc, math.Trunc, 0},
		{"round", (*ir.Builder).Round, math.RoundToEven, 0},
		{"reciprocal", func(b *ir.Builder, x ir.Value) ir.Value { return b.Div(b.F32(1), x) }, func(x float64) float64 { return 1 / x }, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(elementwise(t, c.f))
			if err != nil {
				t.Fatal(err)
			}
			const n = 1 << 18
			bufs := aligned([][]byte{make([]byte, 4*n), make([]byte, 4*n)})
			x, y := floats(bufs[0]), floats(bufs[1])
			for i := range x { // all exponents and both signs, and the special values at the end
				x[i] = math.Float32frombits(uint32(i)*(1<<32/n) + uint32(i)*2654435761%(1<<32/n))
			}
			copy(x[n-11:], []float32{0, float32(math.Copysign(0, -1)), 1, -1, 88.7228, 88.7229, -103.9, 0.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())})
			if err := p.Run([3]int{n / 1024, 1, 1}, bufs, []uint32{n}, interp.DefaultPool()); err != nil {
				t.Fatal(err)
			}
			worst, where := 0.0, float32(0)
			for i := range x {
				if e := ulpError(y[i], c.want(float64(x[i]))); e > worst {
					worst, where = e, x[i]
				}
			}
			if worst > c.bound {
				t.Errorf("%v is off by %v ULP, the bound is %v", where, worst, c.bound)
			}
			t.Logf("%.2f ULP at %v", worst, where)
		})
	}
}
