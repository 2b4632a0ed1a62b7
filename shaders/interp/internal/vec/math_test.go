package vec

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

var step = flag.Uint64("step", 4093, "measure math functions at every step-th of the 2^32 arguments; 1 is all")

// mathFns has the reference, in float64, and the bound in ULP of each function.
var mathFns = map[ir.Op]struct {
	ref   func(float64) float64
	bound float64
}{
	ir.OpSqrt:  {math.Sqrt, 0.5},
	ir.OpRsqrt: {func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.5},
	ir.OpExp:   {math.Exp, 1},
	ir.OpExp2:  {math.Exp2, 1},
	ir.OpExpm1: {math.Expm1, 1.6},
	ir.OpLog:   {math.Log, 1.1},
	ir.OpLog2:  {math.Log2, 1.7},
	ir.OpLog10: {math.Log10, 1.4},
	ir.OpLog1p: {math.Log1p, 1.1},
	ir.OpTanh:  {math.Tanh, 1.6},
	ir.OpErf:   {math.Erf, 1.1},
	ir.OpSin:   {math.Sin, 1.6},
	ir.OpCos:   {math.Cos, 1.6},
}

// ulps returns the distance of got from want in units in the last place of a float32 at want; infinite where one is NaN or
// infinite and the other not, or where a zero has the wrong sign.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case got == w && (got != 0 || want != 0 || math.Signbit(float64(got)) == math.Signbit(want)), got != got && want != want:
		if got-got != 0 || got != got {
			return 0
		}
	case got != got || w != w || got-got != 0 && w-w == 0 && math.Abs(want) < 0x1.fffffcp127:
		return math.Inf(1)
	case w-w != 0:
		if got-got == 0 && math.Abs(float64(got)) >= 0x1.fffffcp127 {
			return 1
		}
		return math.Inf(1)
	case got == 0 && want == 0:
		return math.Inf(1) // the sign
	}
	_, e := math.Frexp(want)
	unit := math.Ldexp(1, max(e-24, -149))
	return math.Abs(float64(got)-want) / unit
}

// TestMath measures every vector function on a sample of arguments, or with -step 1 on all, and holds vectors to the
// plain functions bit by bit.
func TestMath(t *testing.T) {
	for op, fn := range mathFns {
		t.Run(op.String(), func(t *testing.T) {
			t.Parallel()
			plain := Scalar(op)
			var mu sync.Mutex
			worst, at := 0.0, float32(0)
			const chunk = 1 << 16
			r := rand.New(rand.NewPCG(1, uint64(op)))
			x, d, e := make([]float32, chunk), make([]float32, chunk), make([]float32, chunk)
			var bits uint64
			for bits < 1<<32 {
				n := 0
				for ; n < chunk && bits < 1<<32; n++ {
					x[n] = math.Float32frombits(uint32(bits))
					bits += *step
					if *step > 1 && n%4 == 3 { // more where most arguments are
						x[n] = float32(r.NormFloat64() * math.Ldexp(1, r.IntN(12)-6))
					}
				}
				copy(x, special)
				loops := []func(d, a []float32){mathLoop(nil, op)}
				if len(sets) > 0 {
					loops = nil
				}
				for _, s := range sets {
					loops = append(loops, mathLoop(s, op))
				}
				loops[0](d[:n], x[:n])
				for _, f := range loops[1:] {
					f(e[:n], x[:n])
					for i := range n {
						if !same(d[i], e[i]) {
							t.Fatalf("%v (%#x): %v and %v on different instruction sets", x[i], math.Float32bits(x[i]), d[i], e[i])
						}
					}
				}
				for i := range n {
					if i%16 == int(bits%16) && len(sets) > 0 {
						if p := plain(x[i]); !same(p, d[i]) {
							t.Fatalf("%v (%#x): %v in vectors, %v in Go", x[i], math.Float32bits(x[i]), d[i], p)
						}
					}
					if u := ulps(d[i], fn.ref(float64(x[i]))); u > worst {
						mu.Lock()
						worst, at = u, x[i]
						mu.Unlock()
					}
				}
			}
			t.Logf("%.4f ULP at %v (%#x)", worst, at, math.Float32bits(at))
			if worst > fn.bound {
				t.Errorf("%.4f ULP at %v (%#x): %v, want %v within %v ULP", worst, at, math.Float32bits(at), plain(at), fn.ref(float64(at)), fn.bound)
			}
		})
	}
}

// TestMathSizes: all sizes, in place, nothing written behind the end, arguments beyond a function's limit anywhere.
func TestMathSizes(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a := values(r, n)
		for op := range mathFns {
			f, plain := mathLoop(s, op), Scalar(op)
			run := func(d []float32) int { f(d, a); return len(d) }
			checkFloats(t, op.String(), n, 1, run, func(i int) float32 { return plain(a[i]) })
			inPlace := func(d []float32) int { copy(d, a); f(d, d); return len(d) }
			checkFloats(t, op.String()+" in place", n, 1, inPlace, func(i int) float32 { return plain(a[i]) })
		}
	})
}

func TestFmaRoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2_000_000 {
		a, b, c := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		if r.IntN(2) == 0 { // near cancellation, and ties
			a, b = float32(r.IntN(1<<13))*float32(math.Ldexp(1, r.IntN(60)-30)), float32(r.IntN(1<<13))
			c = float32(r.IntN(1<<24)) * float32(math.Ldexp(1, r.IntN(80)-40))
		}
		if got, want := fma(a, b, c), exactFma(a, b, c); !same(got, want) {
			t.Fatalf("fma(%v, %v, %v) = %v, want %v", a, b, c, got, want)
		}
	}
}

func BenchmarkMath(b *testing.B) {
	for op := range mathFns {
		for _, s := range append(sets, nil) {
			name := "Go"
			if s != nil {
				name = s.name
			}
			b.Run(fmt.Sprint(op, "/", name), func(b *testing.B) {
				x, d := make([]float32, 1024), make([]float32, 1024)
				for i := range x {
					x[i] = float32(i)/128 + 0.1
				}
				f := mathLoop(s, op)
				for b.Loop() {
					f(d, x)
				}
				b.ReportMetric(1024*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelem/s")
			})
		}
	}
}
