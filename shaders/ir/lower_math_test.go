package ir_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// swiftCaps is what SwiftShader offers: nothing but 32 bits.
func swiftCaps() ir.Caps {
	return ir.Caps{MaxLanes: 4, NativeMath: ir.VulkanMath(), MaxInvocations: 256, MaxLocal: [3]int{256, 256, 64},
		MaxGroups: [3]int{65535, 65535, 65535}, SharedBytes: 32 << 10, MaxBuffers: 16, MaxBufferBytes: 1 << 30, SubgroupSize: 4}
}

func mustBuild(t testing.TB, b *ir.Builder) *ir.Kernel {
	t.Helper()
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustLower(t testing.TB, k *ir.Kernel, caps ir.Caps) *ir.Kernel {
	t.Helper()
	l, err := ir.Lower(k, caps)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mathFn is a function to measure.
type mathFn struct {
	op   ir.Op
	ref  func(x, y float64) float64
	ulps float64 // the bound on any device
	edge []float32
}

func one(f func(float64) float64) func(x, y float64) float64 {
	return func(x, _ float64) float64 { return f(x) }
}

// mathFns has the bounds of OpenCL C for single precision (OpenCL C specification, "Relative Error as ULPs").
var mathFns = []mathFn{
	{ir.OpExp, one(math.Exp), 3, []float32{88.72283, 88.72284, -87.33654, -103.97208, -103.97209, 0.34657359}},
	{ir.OpExp2, one(math.Exp2), 3, []float32{127.99999, 128, -126, -149, -149.5, -150, 0.5}},
	{ir.OpExpm1, one(math.Expm1), 3, []float32{88.72283, 88.72284, -17.5, -0.34657359, 0.34657359}},
	{ir.OpLog, one(math.Log), 3, []float32{0.70710677, 1.4142135}},
	{ir.OpLog2, one(math.Log2), 3, []float32{0.70710677, 1.4142135, 2, 4, 1024}},
	{ir.OpLog10, one(math.Log10), 3, []float32{0.70710677, 1.4142135, 10, 100, 1000}},
	{ir.OpLog1p, one(math.Log1p), 2, []float32{-0.99999994, 0.41421357, -0.29289323}},
	{ir.OpSin, one(math.Sin), 4, []float32{math.Pi, 2 * math.Pi, 199.99998, 200.00002, 1e4, 16367173 * (1 << 30), 8.9792e35}},
	{ir.OpCos, one(math.Cos), 4, []float32{math.Pi / 2, 2 * math.Pi, 199.99998, 200.00002, 1e4, 16367173 * (1 << 30)}},
	{ir.OpTan, one(math.Tan), 5, []float32{math.Pi / 2, math.Pi / 4, math.Pi, 1e4}},
	{ir.OpAsin, one(math.Asin), 4, []float32{0.5, 0.49999997, 0.99999994, 1.0000001}},
	{ir.OpAcos, one(math.Acos), 4, []float32{0.5, 0.49999997, 0.99999994, 1.0000001}},
	{ir.OpAtan, one(math.Atan), 5, []float32{0.4375, 0.6875, 1.1875, 2.4375}},
	{ir.OpSinh, one(math.Sinh), 4, []float32{88.8, 89.41598, 89.41599}},
	{ir.OpCosh, one(math.Cosh), 4, []float32{88.8, 89.41598, 89.41599}},
	{ir.OpTanh, one(math.Tanh), 5, []float32{0.625, 9, 10, 1e30}},
	{ir.OpErf, one(math.Erf), 16, []float32{0.9277344, 3.92, 4, 1e30}},
	{ir.OpAtan2, math.Atan2, 6, nil},
	{ir.OpPow, math.Pow, 16, nil},
}

// ulpError returns the distance of got from want in units in the last place of a float32 at want. It is infinite if one is
// NaN or infinite and the other is not, or if zeros differ in sign.
func ulpError(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case math.IsNaN(want):
		if got != got {
			return 0
		}
		return math.Inf(1)
	case got != got || math.IsInf(float64(got), 0) || math.IsInf(float64(w), 0):
		if got == w {
			return 0
		}
		// At the edge of overflow the neighbour of infinity is the largest finite number.
		if got == got && math.Abs(float64(got)) == math.MaxFloat32 || math.IsInf(float64(got), 0) && math.Abs(want) > math.MaxFloat32 {
			return 1
		}
		return math.Inf(1)
	case want == 0:
		if got == 0 && math.Signbit(float64(got)) == math.Signbit(want) {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

var specials = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1.5, float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), math.Float32frombits(0xffc00000), math.Float32frombits(0x7f800001), 1e-45, -1e-45, 1.1754942e-38, -1.1754942e-38,
	math.SmallestNonzeroFloat32 * 3, 1.17549435e-38, math.MaxFloat32, -math.MaxFloat32, 1e30, -1e30, 1e-30, -1e-30, 1e10, -1e10, 1 << 23,
	1<<23 + 1, 1 << 24, 1<<24 + 2, 8388607.5, -8388609, 0.99999994, 1.0000001, -0.99999994, -1.0000001, 100, -100, 1e-8, -1e-8, 3e-4}

// inputs returns arguments for f: edges, floats spread over all bit patterns, and numbers of everyday size.
func inputs(f mathFn, n int) (xs, ys []float32) {
	r := rand.New(rand.NewPCG(1, uint64(f.op)))
	if f.op == ir.OpAtan2 || f.op == ir.OpPow {
		for _, x := range specials {
			for _, y := range specials {
				xs, ys = append(xs, x), append(ys, y)
			}
		}
		for len(xs) < n {
			x, y := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
			switch len(xs) % 4 {
			case 0:
				x, y = float32(r.NormFloat64()*3), float32(r.NormFloat64()*3)
			case 1: // results of every size for pow
				x = float32(math.Exp(r.Float64()*170 - 85))
				y = float32((r.Float64()*2 - 1) * 150 / math.Max(math.Abs(math.Log2(float64(x))), 1e-3))
			case 2:
				x, y = 1+float32(r.NormFloat64()*1e-4), float32(r.NormFloat64()*1e5)
			}
			xs, ys = append(xs, x), append(ys, y)
		}
		return xs, ys
	}
	for _, x := range append(append([]float32(nil), specials...), f.edge...) {
		b := math.Float32bits(x)
		xs = append(xs, x, -x, math.Float32frombits(b+1), math.Float32frombits(b-1))
	}
	for i := 0; len(xs) < n; i++ {
		switch i % 4 {
		case 0, 1:
			xs = append(xs, math.Float32frombits(r.Uint32()))
		case 2:
			xs = append(xs, float32(r.NormFloat64()*4))
		case 3:
			xs = append(xs, float32((r.Float64()*2-1)*math.Exp2(float64(i/4%24)-6)))
		}
	}
	return xs, make([]float32, len(xs))
}

func floatBytes(xs []float32) []byte {
	out := make([]byte, 0, 4*len(xs))
	for _, x := range xs {
		out = binary.NativeEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// mathKernel computes op of the elements of one or two buffers, lanes at a time.
func mathKernel(t testing.TB, op ir.Op, lanes int) *ir.Kernel {
	b := ir.NewBuilder("math_"+op.String(), 64, 1, 1)
	x, y, out := b.Buffer("x", ir.F32, ir.Read), b.Buffer("y", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	i := b.Mul(b.LinearID(), b.U32(uint32(lanes)))
	args := []ir.Value{b.Load(x, i, lanes)}
	if op == ir.OpPow || op == ir.OpAtan2 {
		args = append(args, b.Load(y, i, lanes))
	}
	b.Store(out, i, b.Math(op, args...))
	return mustBuild(t, b)
}

// runMath runs op, lowered to caps, over the arguments; the number of arguments is a multiple of 64*lanes.
func runMath(t testing.TB, op ir.Op, caps ir.Caps, lanes int, xs, ys []float32) []float32 {
	t.Helper()
	return runLowered(t, mustLower(t, mathKernel(t, op, lanes), caps), lanes, xs, ys)
}

func runLowered(t testing.TB, k *ir.Kernel, lanes int, xs, ys []float32) []float32 {
	t.Helper()
	p, err := interp.Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 4*len(xs))
	if err := p.Run([3]int{len(xs) / (64 * lanes), 1, 1}, [][]byte{floatBytes(xs), floatBytes(ys), out}, nil, nil); err != nil {
		t.Fatal(err)
	}
	res := make([]float32, len(xs))
	for i := range res {
		res[i] = math.Float32frombits(binary.NativeEndian.Uint32(out[4*i:]))
	}
	return res
}

// worst returns the largest error and its arguments.
func worst(f mathFn, xs, ys, got []float32) (err float64, at int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	const parts = 4
	for p := range parts {
		wg.Go(func() {
			most, where := 0.0, 0
			for i := p; i < len(xs); i += parts {
				if e := ulpError(got[i], f.ref(float64(xs[i]), float64(ys[i]))); e > most {
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

func TestMathReplacements(t *testing.T) {
	n := 1 << 18
	if testing.Short() {
		n = 1 << 14
	}
	for _, f := range mathFns {
		t.Run(f.op.String(), func(t *testing.T) {
			xs, ys := inputs(f, n)
			xs, ys = xs[:n], ys[:n]
			got := runMath(t, f.op, swiftCaps(), 4, xs, ys)
			e, at := worst(f, xs, ys, got)
			arg := fmt.Sprintf("%v (%#x)", xs[at], math.Float32bits(xs[at]))
			if f.op == ir.OpPow || f.op == ir.OpAtan2 {
				arg += fmt.Sprintf(", %v (%#x)", ys[at], math.Float32bits(ys[at]))
			}
			t.Logf("%.2f ULP at %s: got %v, want %v", e, arg, got[at], f.ref(float64(xs[at]), float64(ys[at])))
			if bound := min(f.ulps, 3); e > bound { // where divisions are exact
				t.Errorf("%.2f ULP at %s: got %v, want %v within %v ULP", e, arg, got[at], f.ref(float64(xs[at]), float64(ys[at])), bound)
			}
		})
	}
}

// TestMathReplacementsOnLooseDevices measures with divisions and square roots that are wrong by 2 ULP, and with subnormal
// numbers flushed to zero: the bounds hold on any device that Vulkan allows, up to flushed results.
func TestMathReplacementsOnLooseDevices(t *testing.T) {
	const n = 1 << 15
	for _, f := range mathFns {
		for _, flush := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s flush=%v", f.op, flush), func(t *testing.T) {
				xs, ys := inputs(f, n)
				xs, ys = xs[:n], ys[:n]
				k, err := ir.PerturbQuotients(mustLower(t, mathKernel(t, f.op, 4), swiftCaps()), 2, flush)
				if err != nil {
					t.Fatal(err)
				}
				got := runLowered(t, k, 4, xs, ys)
				if flush {
					subnormal := func(x float32) bool { return x != 0 && math.Abs(float64(x)) < 0x1p-126 }
					for i := range got { // operands and results that may be flushed are not compared
						want := math.Abs(f.ref(float64(xs[i]), float64(ys[i])))
						if subnormal(xs[i]) || subnormal(ys[i]) || want < 0x1p-125 && math.Abs(float64(got[i])) < 0x1p-125 {
							xs[i], ys[i], got[i] = 1, 1, float32(f.ref(1, 1))
						}
					}
				}
				e, at := worst(f, xs, ys, got)
				t.Logf("%.2f ULP at %v, %v", e, xs[at], ys[at])
				if e > f.ulps {
					t.Errorf("%.2f ULP at %v (%#x), %v: got %v, want %v within %v ULP", e, xs[at], math.Float32bits(xs[at]), ys[at], got[at],
						f.ref(float64(xs[at]), float64(ys[at])), f.ulps)
				}
			})
		}
	}
}

// TestMathReplacementsInVectors checks that all widths give the same bits: the branch for large arguments, for example,
// must not touch the lanes that do not need it.
func TestMathReplacementsInVectors(t *testing.T) {
	const n = 1 << 12
	for _, f := range mathFns {
		xs, ys := inputs(f, n)
		xs, ys = xs[:n], ys[:n]
		wide := swiftCaps()
		wide.MaxLanes = 16
		want := runMath(t, f.op, swiftCaps(), 1, xs, ys)
		for lanes, caps := range map[int]ir.Caps{2: swiftCaps(), 8: swiftCaps(), 16: wide} {
			for i, y := range runMath(t, f.op, caps, lanes, xs, ys) {
				if math.Float32bits(y) != math.Float32bits(want[i]) && (y == y || want[i] == want[i]) {
					t.Errorf("%s of %v, %v with %d lanes is %v, and %v as a scalar", f.op, xs[i], ys[i], lanes, y, want[i])
					break
				}
			}
		}
	}
}
