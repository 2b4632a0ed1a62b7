package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func words(r *rand.Rand, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = r.Uint32() >> r.IntN(32)
		switch r.IntN(8) {
		case 0:
			out[i] = []uint32{0, 1, math.MaxInt32, 1 << 31, math.MaxUint32}[r.IntN(5)]
		case 1:
			out[i] = -out[i]
		}
	}
	return out
}

const guardWord = 0xabcd1234

// checkWords runs a loop on a result with guards behind it, and compares.
func checkWords[T uint32 | uint8](t *testing.T, name string, n int, run func(d []T) int, want func(i int) T) {
	t.Helper()
	d := make([]T, n+20)
	for i := range d {
		d[i] = T(guardWord & 0xff)
	}
	done := run(d[:n])
	if done < n-15 || done > n {
		t.Fatalf("%s: %d of %d elements done", name, done, n)
	}
	for i, x := range d {
		w := T(guardWord & 0xff)
		if i < done {
			w = want(i)
		}
		if x != w {
			t.Fatalf("%s, n=%d (%d done): element %d is %#x, want %#x", name, n, done, i, x, w)
		}
	}
}

type intOp struct {
	op     Op
	signed bool
}

var scalarInteger = map[intOp]func(a, b uint32) uint32{
	{Add, true}: func(a, b uint32) uint32 { return a + b }, {Sub, true}: func(a, b uint32) uint32 { return a - b },
	{Mul, true}: func(a, b uint32) uint32 { return a * b }, {And, true}: func(a, b uint32) uint32 { return a & b },
	{Or, true}: func(a, b uint32) uint32 { return a | b }, {Xor, true}: func(a, b uint32) uint32 { return a ^ b },
	{Min, true}:  func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) },
	{Max, true}:  func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) },
	{Min, false}: func(a, b uint32) uint32 { return min(a, b) }, {Max, false}: func(a, b uint32) uint32 { return max(a, b) },
	{MulHi, false}: func(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) },
	{Add, false}:   func(a, b uint32) uint32 { return a + b },
}

func TestIntegers(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a, b, x := words(r, n), words(r, n), words(r, 1)[0]
		for op, def := range scalarInteger {
			f, name := s.integer(op.op, op.signed), fmt.Sprint(op)
			checkWords(t, name+" VV", n, func(d []uint32) int { return f.VV(d, a, b) }, func(i int) uint32 { return def(a[i], b[i]) })
			checkWords(t, name+" VS", n, func(d []uint32) int { return f.VS(d, a, x) }, func(i int) uint32 { return def(a[i], x) })
			checkWords(t, name+" SV", n, func(d []uint32) int { return f.SV(d, x, b) }, func(i int) uint32 { return def(x, b[i]) })
		}
		for op, def := range map[intOp]func(a uint32, n uint32) uint32{
			{Shl, false}: func(a, n uint32) uint32 { return a << n }, {Shr, false}: func(a, n uint32) uint32 { return a >> n },
			{Shr, true}: func(a, n uint32) uint32 { return uint32(int32(a) >> n) },
		} {
			f, by := s.shift(op.op, op.signed), uint32(r.IntN(32))
			checkWords(t, fmt.Sprint(op), n, func(d []uint32) int { return f(d, a, by) }, func(i int) uint32 { return def(a[i], by) })
		}
		div := max(2, x)
		for i := range a {
			if r.IntN(4) == 0 { // a multiple, or one less
				a[i] = a[i]/div*div - uint32(r.IntN(2))
			}
		}
		checkWords(t, "quotient", n, func(d []uint32) int { return s.divide(d, a, div, false) }, func(i int) uint32 { return a[i] / div })
		checkWords(t, "remainder", n, func(d []uint32) int { return s.divide(d, a, div, true) }, func(i int) uint32 { return a[i] % div })
	})
}

func compareAs[T uint32 | int32](op Op, a, b T) uint8 {
	yes := map[Op]bool{Eq: a == b, Ne: a != b, Lt: a < b, Le: a <= b, Gt: a > b, Ge: a >= b}[op]
	if yes {
		return 1
	}
	return 0
}

func TestCompareIntegers(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a, b, x := words(r, n), words(r, n), words(r, 1)[0]
		copy(b[n/2:], a[n/2:]) // some are equal
		for _, op := range []Op{Eq, Ne, Lt, Le, Gt, Ge} {
			for _, signed := range []bool{false, true} {
				def := func(a, b uint32) uint8 {
					if signed {
						return compareAs(op, int32(a), int32(b))
					}
					return compareAs(op, a, b)
				}
				f, name := s.compareInteger(op, signed), fmt.Sprint(op, signed)
				checkWords(t, name+" VV", n, func(d []uint8) int { return f.VV(d, a, b) }, func(i int) uint8 { return def(a[i], b[i]) })
				checkWords(t, name+" VS", n, func(d []uint8) int { return f.VS(d, a, x) }, func(i int) uint8 { return def(a[i], x) })
			}
		}
	})
}

func TestNumbers(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a, f, u := words(r, n), values(r, n), make([]uint8, n)
		for i := range f {
			u[i] = uint8(r.Uint32())
			if r.IntN(2) == 0 {
				f[i] *= float32(math.Ldexp(1, r.IntN(36)))
			}
		}
		signed := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(a))), n)
		checkFloats(t, "i32ToF32", n, 16, func(d []float32) int { return s.numbers.I32ToF32(d, signed) }, func(i int) float32 { return float32(signed[i]) })
		checkFloats(t, "u8ToF32", n, 16, func(d []float32) int { return s.numbers.U8ToF32(d, u) }, func(i int) float32 { return float32(u[i]) })
		checkWords(t, "u8ToU32", n, func(d []uint32) int { return s.numbers.U8ToU32(d, u) }, func(i int) uint32 { return uint32(u[i]) })
		asInts := func(d []uint32) []int32 { return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(d))), len(d)) }
		checkWords(t, "f32ToI32", n, func(d []uint32) int { return s.numbers.F32ToI32(asInts(d), f) }, func(i int) uint32 {
			switch x := float64(f[i]); {
			case x != x:
				return 0
			case x >= math.MaxInt32:
				return math.MaxInt32
			case x <= math.MinInt32:
				return 1 << 31
			default:
				return uint32(int32(x))
			}
		})
	})
}

func TestRowsAndSplat(t *testing.T) {
	for _, s := range sets {
		r := rand.New(rand.NewPCG(7, 8))
		for range 200 {
			n, from := 1+r.IntN(20), words(r, 2000)
			for size, f := range s.rows {
				lanes := size / 4
				dstep, astep := lanes+r.IntN(5), r.IntN(30)
				d := make([]uint32, 2000)
				f((*byte)(unsafe.Pointer(&d[0])), (*byte)(unsafe.Pointer(&from[0])), uintptr(n), uintptr(4*dstep), uintptr(4*astep))
				want := make([]uint32, 2000)
				for i := range n {
					copy(want[i*dstep:i*dstep+lanes], from[i*astep:])
				}
				for i := range d {
					if d[i] != want[i] {
						t.Fatalf("%s: %d rows of %d bytes: element %d is %#x, want %#x", s.name, n, size, i, d[i], want[i])
					}
				}
			}
			d := make([]uint32, 16*n+3)
			s.splat(&d[0], &from[0], uintptr(n))
			for i, x := range d {
				if i < 16*n && x != from[i/16] || i >= 16*n && x != 0 {
					t.Fatalf("%s: element %d of a splat is %#x", s.name, i, x)
				}
			}
		}
	}
}
