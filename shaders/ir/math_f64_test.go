package ir_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/ir/internal/bigmath"
)

// mathFn64 is a function of F64 to measure. exact is for arguments at which ref is finite and not zero.
type mathFn64 struct {
	op    ir.Op
	ref   func(x, y float64) float64
	exact func(x, y *big.Float) *big.Float
	ulps  float64 // seen, rounded up
	edge  []float64
}

func exact1(f func(x *big.Float) *big.Float) func(x, y *big.Float) *big.Float {
	return func(x, _ *big.Float) *big.Float { return f(x) }
}

var big1, big2 = bigmath.New(1), bigmath.New(2)

func bigQuotientOfLogs(base *big.Float) func(x *big.Float) *big.Float {
	return func(x *big.Float) *big.Float { return bigmath.Div(bigmath.Log(x), bigmath.Log(base)) }
}

func bigExpm1(x *big.Float) *big.Float { return bigmath.Expm1(x) }

func bigSinh(x *big.Float) *big.Float {
	if x.Sign() < 0 {
		return bigmath.Neg(bigSinh(bigmath.Neg(x)))
	}
	e := bigmath.Expm1(x)
	return bigmath.Div(bigmath.Add(e, bigmath.Div(e, bigmath.Add(e, big1))), big2)
}

func bigCosh(x *big.Float) *big.Float {
	e := bigmath.Exp(x)
	return bigmath.Div(bigmath.Add(e, bigmath.Div(big1, e)), big2)
}

func bigTanh(x *big.Float) *big.Float {
	if v, _ := x.Float64(); math.Abs(v) > 100 { // nothing else is left in so many digits
		return bigmath.New(math.Copysign(1, v))
	}
	e := bigmath.Expm1(bigmath.Mul(x, big2))
	return bigmath.Div(e, bigmath.Add(e, big2))
}

func bigErf(x *big.Float) *big.Float {
	if v, _ := x.Float64(); math.Abs(v) > 6.5 {
		return bigmath.New(math.Copysign(1, v))
	}
	return bigmath.Erf(x)
}

func bigAtan2(y, x *big.Float) *big.Float {
	half := bigmath.Div(bigmath.Pi(), big2)
	switch {
	case x.Sign() == 0 && y.Sign() > 0:
		return half
	case x.Sign() == 0:
		return bigmath.Neg(half)
	case x.Sign() > 0:
		return bigmath.Atan(bigmath.Div(y, x))
	case y.Signbit():
		return bigmath.Sub(bigmath.Atan(bigmath.Div(y, x)), bigmath.Pi())
	}
	return bigmath.Add(bigmath.Atan(bigmath.Div(y, x)), bigmath.Pi())
}

func bigPow(x, y *big.Float) *big.Float {
	if x.Sign() > 0 {
		return bigmath.Exp(bigmath.Mul(y, bigmath.Log(x)))
	}
	r := bigmath.Exp(bigmath.Mul(y, bigmath.Log(bigmath.Neg(x))))
	if n, _ := y.Int(nil); n.Bit(0) == 1 {
		return bigmath.Neg(r)
	}
	return r
}

// The bounds are not OpenCL's, which conformance has, but what was measured, rounded up: the replacements are better.
var mathFns64 = []mathFn64{
	{ir.OpRsqrt, func(x, _ float64) float64 { return 1 / math.Sqrt(x) }, exact1(func(x *big.Float) *big.Float { return bigmath.Div(big1, bigmath.Sqrt(x)) }), 1.5, nil},
	{ir.OpExp, one(math.Exp), exact1(bigmath.Exp), 1, []float64{709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412, -708.3964185322641, math.Ln2 / 2}},
	{ir.OpExp2, one(math.Exp2), exact1(func(x *big.Float) *big.Float { return bigmath.Exp(bigmath.Mul(x, bigmath.Ln2())) }), 1, []float64{1023.9999999999999, 1024, -1022, -1074, -1074.5, -1075, -1075.5, 0.5}},
	{ir.OpExpm1, one(math.Expm1), exact1(bigExpm1), 1, []float64{709.782712893384, 709.7827128933841, -38, -36.7, math.Ln2 / 2, -math.Ln2 / 2}},
	{ir.OpLog, one(math.Log), exact1(bigmath.Log), 1, []float64{math.Sqrt2, math.Sqrt2 / 2, 1 + 1e-8}},
	{ir.OpLog2, one(math.Log2), exact1(bigQuotientOfLogs(big2)), 1, []float64{math.Sqrt2, math.Sqrt2 / 2, 2, 4, 1024, 1 + 1e-8}},
	{ir.OpLog10, one(math.Log10), exact1(bigQuotientOfLogs(bigmath.New(10))), 1.5, []float64{math.Sqrt2, math.Sqrt2 / 2, 10, 100, 1000, 1e22}},
	{ir.OpLog1p, one(math.Log1p), exact1(bigmath.Log1p), 1.5, []float64{-0.9999999999999999, 0.41421356237309503, -0.2928932188134525}},
	{ir.OpSin, one(math.Sin), exact1(func(x *big.Float) *big.Float { s, _ := bigmath.SinCos(x); return s }), 1, trigEdges},
	{ir.OpCos, one(math.Cos), exact1(func(x *big.Float) *big.Float { _, c := bigmath.SinCos(x); return c }), 1, trigEdges},
	{ir.OpTan, one(math.Tan), exact1(func(x *big.Float) *big.Float { s, c := bigmath.SinCos(x); return bigmath.Div(s, c) }), 2, trigEdges},
	{ir.OpAsin, one(math.Asin), exact1(bigmath.Asin), 1.5, []float64{0.5, 0.49999999999999994, 0.9999999999999999, 1.0000000000000002, 0.975}},
	{ir.OpAcos, one(math.Acos), exact1(bigmath.Acos), 1.5, []float64{0.5, 0.49999999999999994, 0.9999999999999999, 1.0000000000000002, 0.975}},
	{ir.OpAtan, one(math.Atan), exact1(bigmath.Atan), 1.5, []float64{0.4375, 0.6875, 1.1875, 2.4375}},
	{ir.OpSinh, one(math.Sinh), exact1(bigSinh), 2, []float64{709.8, 710.4758600739439, 710.475860073944, 711}},
	{ir.OpCosh, one(math.Cosh), exact1(bigCosh), 2, []float64{709.8, 710.4758600739439, 710.475860073944, 711}},
	{ir.OpTanh, one(math.Tanh), exact1(bigTanh), 2, []float64{0.625, 19.06, 22, 1e300}},
	{ir.OpErf, one(math.Erf), exact1(bigErf), 1.5, []float64{1, 0.9999999999999999, 1.5, 2, 5.9, 6, 1e300}},
	{ir.OpAtan2, math.Atan2, bigAtan2, 2, nil},
	{ir.OpPow, math.Pow, bigPow, 1, nil},
}

// trigEdges: multiples of pi/2, the ends of the reductions, and the double nearest to a multiple of pi/2 for its size (Muller, "Elementary
// Functions", table 11.2).
var trigEdges = []float64{math.Pi / 4, math.Pi / 2, math.Pi, 3 * math.Pi / 2, 2 * math.Pi, 1e5, 1e5 + 1, 99999.99999999999, 1e22, 0x1.6ac5b262ca1ffp849, 6381956970095103 * 0x1p797}

func (f *mathFn64) overflows() bool {
	return f.op == ir.OpExp || f.op == ir.OpExp2 || f.op == ir.OpExpm1 || f.op == ir.OpSinh || f.op == ir.OpCosh
}

// ulpError64 returns the distance of got from the exact value in units in the last place of a float64 there.
func ulpError64(f *mathFn64, x, y, got float64) float64 {
	want := f.ref(x, y)
	switch {
	case math.IsNaN(want):
		if got != got {
			return 0
		}
		return math.Inf(1)
	case got != got:
		return math.Inf(1)
	case f.overflows() && math.Abs(x) > 700 && math.Abs(x) < 2000: // package math is not exact at the thresholds
	case math.IsInf(want, 0) || want == 0 || x-x != 0 || y-y != 0 || f.op == ir.OpAtan2 && (x == 0 || y == 0) || f.op == ir.OpPow && x == 0: // the special values of package math are those of C
		switch {
		case got == want && math.Signbit(got) == math.Signbit(want):
			return 0
		case f.op == ir.OpAtan || f.op == ir.OpAtan2 || f.op == ir.OpAcos: // of infinities and zeros
			return math.Abs(got-want) / 0x1p-52
		case math.IsInf(want, 0) && math.Abs(got) == math.MaxFloat64, want == 0 && math.Abs(got) == math.SmallestNonzeroFloat64 && x != 0:
			return 1
		}
		return math.Inf(1)
	}
	w := f.exact(bigmath.New(x), bigmath.New(y))
	if math.IsInf(got, 0) {
		if v, _ := w.Float64(); math.Abs(v) == math.MaxFloat64 || math.IsInf(v, 0) {
			return 1
		}
		return math.Inf(1)
	}
	if v, _ := w.Float64(); got == 0 && math.Signbit(v) != math.Signbit(got) {
		return math.Inf(1)
	}
	e := w.MantExp(nil)
	d, _ := bigmath.Sub(bigmath.New(got), w).Float64()
	return math.Abs(d) / math.Ldexp(1, max(e-53, -1074))
}

var specials64 = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1.5, -2.5, math.Inf(1), math.Inf(-1), math.NaN(),
	math.Float64frombits(0xfff8000000000000), math.Float64frombits(0x7ff0000000000001), 5e-324, -5e-324, 1.5e-323, 0x1p-1022, -0x1p-1022, 0x1.ffffffffffffp-1023,
	math.MaxFloat64, -math.MaxFloat64, 1e300, -1e300, 1e-300, -1e-300, 1e10, -1e10, 1 << 52, 1<<52 + 1, 1<<53 - 1, 1 << 53, 1<<53 + 2, -(1<<52 + 1), 4503599627370495.5,
	0.9999999999999999, 1.0000000000000002, -0.9999999999999999, -1.0000000000000002, 100, -100, 1e-8, -1e-8, 1e-17, 3e-4}

// inputs64 returns arguments for f: edges, floats spread over all bit patterns, and numbers of everyday size.
func inputs64(f *mathFn64, n int) (xs, ys []float64) {
	r := rand.New(rand.NewPCG(2, uint64(f.op)))
	if f.op == ir.OpAtan2 || f.op == ir.OpPow {
		for _, x := range specials64 {
			for _, y := range specials64 {
				xs, ys = append(xs, x), append(ys, y)
			}
		}
		for len(xs) < n {
			x, y := math.Float64frombits(r.Uint64()), math.Float64frombits(r.Uint64())
			switch len(xs) % 5 {
			case 0:
				x, y = r.NormFloat64()*3, r.NormFloat64()*3
			case 1: // results of every size for pow
				x = math.Exp(r.Float64()*1400 - 700)
				y = (r.Float64()*2 - 1) * 1100 / math.Max(math.Abs(math.Log2(x)), 1e-3)
			case 2:
				x, y = 1+r.NormFloat64()*1e-8, r.NormFloat64()*1e10
			case 3:
				x, y = -math.Abs(r.NormFloat64()*10), math.Round(r.NormFloat64()*50)
			}
			xs, ys = append(xs, x), append(ys, y)
		}
		return xs, ys
	}
	for _, x := range append(append([]float64(nil), specials64...), f.edge...) {
		b := math.Float64bits(x)
		xs = append(xs, x, -x, math.Float64frombits(b+1), math.Float64frombits(b-1))
	}
	for i := 0; len(xs) < n; i++ {
		switch i % 4 {
		case 0:
			xs = append(xs, math.Float64frombits(r.Uint64()))
		case 1, 2:
			xs = append(xs, r.NormFloat64()*4)
		case 3:
			xs = append(xs, (r.Float64()*2-1)*math.Exp2(float64(i/4%32)-14))
		}
	}
	return xs, make([]float64, len(xs))
}

// caps64 is a device with doubles and no functions of them, such as those of Vulkan.
func caps64() ir.Caps {
	c := ir.InterpCaps()
	c.NativeMath, c.NativeMath64, c.FMA, c.MaxLanes = ir.VulkanMath(), ir.VulkanMath().Without(ir.OpRsqrt), true, 4
	return c
}

func runMath64(t testing.TB, op ir.Op, caps ir.Caps, lanes int, xs, ys []float64) []float64 {
	t.Helper()
	b := ir.NewBuilder("math64_"+op.String(), 64, 1, 1)
	x, y, out := b.Buffer("x", ir.F64, ir.Read), b.Buffer("y", ir.F64, ir.Read), b.Buffer("out", ir.F64, ir.Write)
	i := b.Mul(b.LinearID(), b.U32(uint32(lanes)))
	args := []ir.Value{b.Load(x, i, lanes)}
	if op == ir.OpPow || op == ir.OpAtan2 {
		args = append(args, b.Load(y, i, lanes))
	}
	b.Store(out, i, b.Math(op, args...))
	low := mustLower(t, mustBuild(t, b), caps)
	low.Walk(func(in *ir.Instr) {
		if in.Op.IsMath() && !caps.NativeMath64.Has(in.Op) {
			t.Fatalf("%s is left", in)
		}
	})
	p, err := interp.Compile(low)
	if err != nil {
		t.Fatal(err)
	}
	pack := func(v []float64) []byte {
		out := make([]byte, 0, 8*len(v))
		for _, x := range v {
			out = binary.NativeEndian.AppendUint64(out, math.Float64bits(x))
		}
		return out
	}
	res := make([]byte, 8*len(xs))
	if err := p.Run([3]int{len(xs) / (64 * lanes), 1, 1}, [][]byte{pack(xs), pack(ys), res}, nil, nil); err != nil {
		t.Fatal(err)
	}
	got := make([]float64, len(xs))
	for i := range got {
		got[i] = math.Float64frombits(binary.NativeEndian.Uint64(res[8*i:]))
	}
	return got
}

// TestMathReplacements64 measures every function against many digits.
func TestMathReplacements64(t *testing.T) {
	n := 1 << 13
	if testing.Short() {
		n = 1 << 11
	}
	for i := range mathFns64 {
		f := &mathFns64[i]
		t.Run(f.op.String(), func(t *testing.T) {
			xs, ys := inputs64(f, n)
			xs, ys = xs[:n], ys[:n]
			got := runMath64(t, f.op, caps64(), 4, xs, ys)
			e, at := worst64(f, xs, ys, got)
			msg := fmt.Sprintf("%.2f ULP at %v (%#x), %v: got %v, want %v", e, xs[at], math.Float64bits(xs[at]), ys[at], got[at], f.ref(xs[at], ys[at]))
			t.Log(msg)
			if e > f.ulps {
				t.Errorf("%s within %v ULP", msg, f.ulps)
			}
		})
	}
}

func worst64(f *mathFn64, xs, ys, got []float64) (err float64, at int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	const parts = 4
	for p := range parts {
		wg.Go(func() {
			most, where := 0.0, 0
			for i := p; i < len(xs); i += parts {
				if e := ulpError64(f, xs[i], ys[i], got[i]); e > most {
					most, where = e, i
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if most > err {
				err, at = most, where
			}
		})
	}
	wg.Wait()
	return err, at
}

// TestMathReplacements64InVectors: all widths give the same bits, those of lanes beside a large argument of sin too.
func TestMathReplacements64InVectors(t *testing.T) {
	const n = 1 << 12
	for i := range mathFns64 {
		f := &mathFns64[i]
		xs, ys := inputs64(f, n)
		xs, ys = xs[:n], ys[:n]
		wide := caps64()
		wide.MaxLanes = 16
		want := runMath64(t, f.op, wide, 1, xs, ys)
		for _, lanes := range []int{2, 8, 16} {
			for i, y := range runMath64(t, f.op, wide, lanes, xs, ys) {
				if math.Float64bits(y) != math.Float64bits(want[i]) && (y == y || want[i] == want[i]) {
					t.Errorf("%s of %v, %v with %d lanes is %v, and %v as a scalar", f.op, xs[i], ys[i], lanes, y, want[i])
					break
				}
			}
		}
	}
}
