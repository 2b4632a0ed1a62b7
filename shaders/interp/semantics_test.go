package interp

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/ir"
)

// TestHalfConversions compares the fast conversions with those of package ir for every half and bfloat16, and for
// float32 values at and around every rounding boundary.
func TestHalfConversions(t *testing.T) {
	same := func(a, b float32) bool {
		return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b)) || a != a && b != b
	}
	var out [1]float32
	var half [1]uint16
	for h := range 1 << 16 {
		f16ToF32s(out[:], []uint16{uint16(h)})
		if want := ir.F16ToF32(uint16(h)); !same(out[0], want) {
			t.Fatalf("f16 %#x is %v, want %v", h, out[0], want)
		}
		bf16ToF32s(out[:], []uint16{uint16(h)})
		if want := ir.BF16ToF32(uint16(h)); !same(out[0], want) {
			t.Fatalf("bf16 %#x is %v, want %v", h, out[0], want)
		}
		for _, low := range []uint32{0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x := math.Float32frombits(uint32(h)<<16 | low)
			f32ToF16s(half[:], []float32{x})
			if want := ir.F32ToF16(x); half[0] != want && x == x {
				t.Fatalf("f32 %v is f16 %#x, want %#x", x, half[0], want)
			}
			if x != x && ir.F16ToF32(half[0]) == ir.F16ToF32(half[0]) {
				t.Fatalf("NaN %#x is f16 %#x", math.Float32bits(x), half[0])
			}
		}
	}
}

func TestDivideU32(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200_000 {
		a, b := r.Uint32()>>r.IntN(32), max(1, r.Uint32()>>r.IntN(32))
		if r.IntN(4) == 0 {
			a = a / b * b // a multiple, or one less
			a -= uint32(r.IntN(2))
		}
		var q, m [1]uint32
		divideU32(q[:], []uint32{a}, b, false)
		divideU32(m[:], []uint32{a}, b, true)
		if q[0] != a/b || m[0] != a%b {
			t.Fatalf("%d / %d = %d rest %d, want %d rest %d", a, b, q[0], m[0], a/b, a%b)
		}
	}
}

// TestScalarSemantics holds the definition of each operation against Go written out, on edge cases and random bits.
func TestScalarSemantics(t *testing.T) {
	i32 := func(f func(x, y int32) int32) func(a, b uint64) uint64 {
		return func(a, b uint64) uint64 { return uint64(uint32(f(int32(a), int32(b)))) }
	}
	u32 := func(f func(x, y uint32) uint32) func(a, b uint64) uint64 {
		return func(a, b uint64) uint64 { return uint64(f(uint32(a), uint32(b))) }
	}
	i64 := func(f func(x, y int64) int64) func(a, b uint64) uint64 {
		return func(a, b uint64) uint64 { return uint64(f(int64(a), int64(b))) }
	}
	f32 := func(f func(x, y float32) float32) func(a, b uint64) uint64 {
		return func(a, b uint64) uint64 {
			return uint64(math.Float32bits(f(math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b)))))
		}
	}
	type key struct {
		op   ir.Op
		kind ir.Kind
	}
	table := map[key]func(a, b uint64) uint64{
		{ir.OpAdd, ir.I32}: i32(func(x, y int32) int32 { return x + y }), {ir.OpSub, ir.U32}: u32(func(x, y uint32) uint32 { return x - y }),
		{ir.OpMul, ir.I64}: i64(func(x, y int64) int64 { return x * y }), {ir.OpMulHi, ir.U32}: u32(func(x, y uint32) uint32 { return uint32(uint64(x) * uint64(y) >> 32) }),
		{ir.OpMin, ir.I32}: i32(func(x, y int32) int32 { return min(x, y) }), {ir.OpMax, ir.U32}: u32(func(x, y uint32) uint32 { return max(x, y) }),
		{ir.OpNeg, ir.I32}: i32(func(x, _ int32) int32 { return -x }), {ir.OpAbs, ir.I64}: i64(func(x, _ int64) int64 { return max(x, -x) }),
		{ir.OpAnd, ir.U32}: u32(func(x, y uint32) uint32 { return x & y }), {ir.OpOr, ir.I32}: i32(func(x, y int32) int32 { return x | y }),
		{ir.OpXor, ir.I64}: i64(func(x, y int64) int64 { return x ^ y }), {ir.OpNot, ir.U32}: u32(func(x, _ uint32) uint32 { return ^x }),
		{ir.OpAdd, ir.F32}: f32(func(x, y float32) float32 { return x + y }), {ir.OpMul, ir.F32}: f32(func(x, y float32) float32 { return x * y }),
		{ir.OpDiv, ir.F32}: f32(func(x, y float32) float32 { return x / y }), {ir.OpNeg, ir.F32}: func(a, _ uint64) uint64 { return a ^ 1<<31 },
		{ir.OpAbs, ir.F32}: func(a, _ uint64) uint64 { return a &^ (1 << 31) }, {ir.OpNeg, ir.F16}: func(a, _ uint64) uint64 { return a ^ 1<<15 },
		{ir.OpAdd, ir.F16}: func(a, b uint64) uint64 {
			return uint64(ir.F32ToF16(ir.F16ToF32(uint16(a)) + ir.F16ToF32(uint16(b))))
		},
		{ir.OpSqrt, ir.F32}:  f32(func(x, _ float32) float32 { return float32(math.Sqrt(float64(x))) }),
		{ir.OpRound, ir.F32}: f32(func(x, _ float32) float32 { return float32(math.RoundToEven(float64(x))) }),
		{ir.OpPow, ir.F32}:   f32(func(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) }),
		{ir.OpErf, ir.F64}:   func(a, _ uint64) uint64 { return math.Float64bits(math.Erf(math.Float64frombits(a))) },
		{ir.OpLt, ir.F32}:    func(a, b uint64) uint64 { return bitsBool(f32of(a) < f32of(b)) }, {ir.OpNe, ir.F32}: func(a, b uint64) uint64 { return bitsBool(f32of(a) != f32of(b)) },
		{ir.OpGe, ir.I32}: func(a, b uint64) uint64 { return bitsBool(int32(a) >= int32(b)) }, {ir.OpGt, ir.U32}: func(a, b uint64) uint64 { return bitsBool(uint32(a) > uint32(b)) },
		{ir.OpNot, ir.Bool}: func(a, _ uint64) uint64 { return 1 - a },
	}
	edges := []uint64{0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xffffffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0x00000001, 0x7fffffffffffffff, 0x8000000000000000, ^uint64(0), 0x3c00, 0x7c00, 0x0001}
	r := rand.New(rand.NewPCG(7, 8))
	for len(edges) < 60 {
		edges = append(edges, r.Uint64()>>r.IntN(64))
	}
	for k, want := range table {
		for _, a := range edges {
			for _, b := range edges {
				m := uint64(1)
				if s := elemSize(k.kind); k.kind != ir.Bool {
					m = 1<<(8*s-1)<<1 - 1
				}
				x, y := a&m, b&m
				got, w := evalOp(k.op, k.kind, x, y, 0), want(x, y)
				out := k.kind
				if k.op.IsCompare() {
					out = ir.Bool
				}
				if got != w && !(out.IsFloat() && math.IsNaN(ir.ConstFloat(out, got)) && math.IsNaN(ir.ConstFloat(out, w))) {
					t.Errorf("%s %s of %#x, %#x is %#x, want %#x", k.op, k.kind, x, y, got, w)
				}
			}
		}
	}
}

func TestConversions(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	cases := []struct {
		from, to ir.Kind
		in, want float64
	}{
		{ir.F32, ir.I32, 2.9, 2}, {ir.F32, ir.I32, -2.9, -2}, {ir.F32, ir.I32, inf, math.MaxInt32}, {ir.F32, ir.I32, -inf, math.MinInt32}, {ir.F32, ir.I32, nan, 0},
		{ir.F32, ir.I32, 2147483648, math.MaxInt32}, {ir.F32, ir.I32, -2147483648, math.MinInt32},
		{ir.F32, ir.U32, -1, 0}, {ir.F32, ir.U32, 4294967296, math.MaxUint32}, {ir.F32, ir.U8, 300, 255}, {ir.F32, ir.U8, -3, 0}, {ir.F32, ir.U8, 255.9, 255},
		{ir.F32, ir.U16, 70000, 65535}, {ir.F64, ir.I64, 1e300, math.MaxInt64}, {ir.F64, ir.I64, -1e300, math.MinInt64}, {ir.F64, ir.I64, nan, 0},
		{ir.F16, ir.U8, inf, 255}, {ir.I32, ir.U8, 257, 1}, {ir.I32, ir.U8, -1, 255}, {ir.U32, ir.I32, 4294967295, -1}, {ir.I32, ir.I64, -5, -5}, {ir.U32, ir.I64, 4294967295, 4294967295},
		{ir.F32, ir.Bool, nan, 1}, {ir.F32, ir.Bool, math.Copysign(0, -1), 0}, {ir.I32, ir.Bool, 4, 1}, {ir.Bool, ir.F32, 1, 1}, {ir.Bool, ir.I64, 1, 1},
		{ir.F32, ir.F16, 65519, 65504}, {ir.F32, ir.F16, 65520, inf}, {ir.F32, ir.F16, 1.00048828125, 1}, {ir.F32, ir.F16, 1.0014648438, 1.001953125}, {ir.F32, ir.BF16, 1.00390625, 1}, {ir.F32, ir.BF16, 1.01171875, 1.015625},
		{ir.I32, ir.F32, 16777217, 16777216}, {ir.I64, ir.F16, 2049, 2048}, {ir.F64, ir.F32, 1e-60, 0}, {ir.U8, ir.F16, 200, 200}, {ir.U16, ir.F32, 65535, 65535},
	}
	for _, c := range cases {
		in := ir.ConstBits(c.from, c.in)
		got := ir.ConstFloat(c.to, convertBits(c.from, c.to, in))
		if got != c.want && !(got != got && c.want != c.want) {
			t.Errorf("%s %v as %s is %v, want %v", c.from, c.in, c.to, got, c.want)
		}
	}
}

// TestFastConversionsAgree compares every fast conversion with the scalar definition, through ConvertSlice.
func TestFastConversionsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for pair := range fastConverters {
		t.Run(fmt.Sprintf("%s to %s", pair.from, pair.to), func(t *testing.T) {
			in, out := make([]uint64, 64), make([]uint64, 64)
			for round := range 300 {
				bits64 := r.Uint64() >> r.IntN(64)
				if round%2 == 0 && pair.from.IsFloat() {
					bits64 = ir.ConstBits(pair.from, math.Ldexp(r.Float64()*2-1, r.IntN(70)))
				}
				switch pair.from {
				case ir.Bool:
					bits64 &= 1
				default:
					bits64 &= 1<<(8*pair.from.Size()-1)<<1 - 1
				}
				setElement(ptr(in), elemSize(pair.from), 0, bits64)
				ConvertSlice(asBytes(out)[:elemSize(pair.to)], pair.to, asBytes(in)[:elemSize(pair.from)], pair.from)
				got, want := element(ptr(out), elemSize(pair.to), 0), convertBits(pair.from, pair.to, bits64)
				if got != want && !(pair.to.IsFloat() && math.IsNaN(ir.ConstFloat(pair.to, got)) && math.IsNaN(ir.ConstFloat(pair.to, want))) {
					t.Fatalf("%#x is %#x, want %#x (leading zeros %d)", bits64, got, want, bits.LeadingZeros64(bits64))
				}
			}
		})
	}
}

func ptr(x []uint64) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }

func asBytes(x []uint64) []byte { return unsafe.Slice((*byte)(ptr(x)), 8*len(x)) }
