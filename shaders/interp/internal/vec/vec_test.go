package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

var special = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32, 0x1p-126, 0x1.fffffep-127, 1.5, 0x1.fffffep0}

func values(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		switch r.IntN(4) {
		case 0:
			out[i] = special[r.IntN(len(special))]
		case 1:
			out[i] = math.Float32frombits(r.Uint32())
		default:
			out[i] = float32(r.NormFloat64())
		}
	}
	return out
}

// same says whether two values have the same bits or are both NaN.
func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

// The definitions, element by element.
var scalarArith = map[Op]func(a, b float32) float32{
	Add: func(a, b float32) float32 { return a + b },
	Sub: func(a, b float32) float32 { return a - b },
	Mul: func(a, b float32) float32 { return a * b },
	Div: func(a, b float32) float32 { return a / b },
	Min: func(a, b float32) float32 {
		if b < a {
			return b
		}
		return a
	},
	Max: func(a, b float32) float32 {
		if b > a {
			return b
		}
		return a
	},
}

var scalarCompare = map[Op]func(a, b float32) bool{
	Eq: func(a, b float32) bool { return a == b },
	Ne: func(a, b float32) bool { return a != b },
	Lt: func(a, b float32) bool { return a < b },
	Le: func(a, b float32) bool { return a <= b },
	Gt: func(a, b float32) bool { return a > b },
	Ge: func(a, b float32) bool { return a >= b },
}

// guard is a value that must stay where a loop has nothing to write.
const guard = 12345

// checkFloats runs a loop on a result with guards behind it, and compares.
func checkFloats(t *testing.T, name string, n, lanes int, run func(d []float32) int, want func(i int) float32) {
	t.Helper()
	check(t, name, n, lanes, same, run, want)
}

// sameBits holds for choices, which also keep which NaN a NaN is.
func sameBits(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }

func check(t *testing.T, name string, n, lanes int, same func(x, y float32) bool, run func(d []float32) int, want func(i int) float32) {
	t.Helper()
	d := make([]float32, n+20)
	for i := range d {
		d[i] = guard
	}
	done := run(d[:n])
	if done < n-lanes+1 || done > n {
		t.Fatalf("%s: %d of %d elements done", name, done, n)
	}
	for i, x := range d {
		if i >= done {
			if x != guard {
				t.Fatalf("%s, n=%d: element %d is overwritten", name, n, i)
			}
		} else if !same(x, want(i)) {
			t.Fatalf("%s, n=%d: element %d is %v, want %v", name, n, i, x, want(i))
		}
	}
}

func eachSize(t *testing.T, f func(t *testing.T, s *set, r *rand.Rand, n int)) {
	for _, s := range sets {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for n := range 150 {
				f(t, s, r, n)
			}
			f(t, s, r, 5000)
		})
	}
}

func TestArith(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a, b, x := values(r, n), values(r, n), values(r, 1)[0]
		for op, def := range scalarArith {
			f := s.arith[op]
			name := fmt.Sprint("op ", op)
			checkFloats(t, name+" VV", n, 16, func(d []float32) int { return f.VV(d, a, b) }, func(i int) float32 { return def(a[i], b[i]) })
			checkFloats(t, name+" VS", n, 16, func(d []float32) int { return f.VS(d, a, x) }, func(i int) float32 { return def(a[i], x) })
			checkFloats(t, name+" SV", n, 16, func(d []float32) int { return f.SV(d, x, b) }, func(i int) float32 { return def(x, b[i]) })
			checkFloats(t, name+" in place", n, 16, func(d []float32) int { copy(d, a); m := f.VV(d, d, b); restore(d[m:]); return m }, func(i int) float32 { return def(a[i], b[i]) })
			checkFloats(t, name+" over b", n, 16, func(d []float32) int { copy(d, b); m := f.VV(d, a, d); restore(d[m:]); return m }, func(i int) float32 { return def(a[i], b[i]) })
		}
	})
}

func restore(d []float32) {
	for i := range d {
		d[i] = guard
	}
}

func TestCompare(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a, b, x := values(r, n), values(r, n), values(r, 1)[0]
		copy(b[n/2:], a[n/2:]) // some are equal
		for op, def := range scalarCompare {
			for form, run := range map[string]func(d []uint8) (int, func(i int) bool){
				"VV": func(d []uint8) (int, func(i int) bool) {
					return s.compare[op].VV(d, a, b), func(i int) bool { return def(a[i], b[i]) }
				},
				"VS": func(d []uint8) (int, func(i int) bool) {
					return s.compare[op].VS(d, a, x), func(i int) bool { return def(a[i], x) }
				},
			} {
				d := make([]uint8, n+20)
				for i := range d {
					d[i] = 77
				}
				done, want := run(d[:n])
				for i, got := range d {
					w := uint8(77)
					if i < done {
						w = 0
						if want(i) {
							w = 1
						}
					}
					if got != w {
						t.Fatalf("op %d %s, n=%d: element %d is %d, want %d", op, form, n, i, got, w)
					}
				}
			}
		}
	})
}

func TestSelect(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a, b, x, c := values(r, n), values(r, n), values(r, 1)[0], make([]uint8, n)
		for i := range c {
			c[i] = [4]uint8{0, 1, 0, 200}[r.IntN(4)]
		}
		pick := func(i int, a, b float32) float32 {
			if c[i] != 0 {
				return a
			}
			return b
		}
		f := s.choose
		check(t, "VV", n, 16, sameBits, func(d []float32) int { return f.VV(d, c, a, b) }, func(i int) float32 { return pick(i, a[i], b[i]) })
		check(t, "VS", n, 16, sameBits, func(d []float32) int { return f.VS(d, c, a, x) }, func(i int) float32 { return pick(i, a[i], x) })
		check(t, "SV", n, 16, sameBits, func(d []float32) int { return f.SV(d, c, x, b) }, func(i int) float32 { return pick(i, x, b[i]) })
	})
}

func TestFmaAndUnary(t *testing.T) {
	eachSize(t, func(t *testing.T, s *set, r *rand.Rand, n int) {
		a, b, c := values(r, n), values(r, n), values(r, n)
		checkFloats(t, "fma", n, 16, func(d []float32) int { return s.fma(d, a, b, c) }, func(i int) float32 { return float32(a[i]*b[i]) + c[i] })
		for op, def := range map[Op]func(x float32) float32{
			Neg:   func(x float32) float32 { return -x },
			Abs:   func(x float32) float32 { return float32(math.Abs(float64(x))) },
			Round: func(x float32) float32 { return float32(math.RoundToEven(float64(x))) },
			Floor: func(x float32) float32 { return float32(math.Floor(float64(x))) },
			Ceil:  func(x float32) float32 { return float32(math.Ceil(float64(x))) },
			Trunc: func(x float32) float32 { return float32(math.Trunc(float64(x))) },
		} {
			checkFloats(t, fmt.Sprint("op ", op), n, 16, func(d []float32) int { return s.unary[op](d, a) }, func(i int) float32 { return def(a[i]) })
		}
	})
}

// TestHalves: all 16-bit patterns to float32, and many float32 back, bit by bit.
func TestHalves(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	r := rand.New(rand.NewPCG(3, 4))
	floats := make([]float32, 1<<18)
	for i := range floats {
		switch i % 4 {
		case 0:
			floats[i] = math.Float32frombits(r.Uint32())
		case 1: // in the range of float16, also subnormal, with ties
			floats[i] = math.Float32frombits(r.Uint32()&0x807fffff&^uint32(0xfff*(r.IntN(2))) | uint32(127-28+r.IntN(46))<<23)
		case 2: // NaN
			floats[i] = math.Float32frombits(r.Uint32() | 0x7f800000)
		default:
			floats[i] = math.Float32frombits(r.Uint32()&^0xffff | uint32(r.IntN(3)+0x7fff))
		}
	}
	copy(floats, special)
	for _, s := range sets {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range []struct {
				name string
				from func(d []float32, a []uint16) int
				to   func(d []uint16, a []float32) int
				ref  func(uint16) float32
				back func(float32) uint16
			}{
				{"float16", s.half.FromF16, s.half.ToF16, ir.F16ToF32, ir.F32ToF16},
				{"bfloat16", s.half.FromBF16, s.half.ToBF16, ir.BF16ToF32, ir.F32ToBF16},
			} {
				d := make([]float32, len(all))
				if n := c.from(d, all); n != len(all) {
					t.Fatalf("%s: %d elements done", c.name, n)
				}
				for i, x := range d {
					if w := c.ref(uint16(i)); !sameBits(x, w) {
						t.Fatalf("%s %#x is %v, want %v", c.name, i, x, w)
					}
				}
				h := make([]uint16, len(floats)+20)
				if n := c.to(h[:len(floats)], floats); n != len(floats) {
					t.Fatalf("%s: %d elements done", c.name, n)
				}
				for i, x := range floats {
					if w := c.back(x); h[i] != w {
						t.Fatalf("%v (%#x) is %s %#x, want %#x", x, math.Float32bits(x), c.name, h[i], w)
					}
				}
				// Sizes that do not fill vectors.
				for n := range 40 {
					h := make([]uint16, n+20)
					for i := n &^ 7; i < len(h); i++ {
						h[i] = 7
					}
					m := c.to(h[:n], floats[100:100+n])
					for i := m; i < len(h); i++ {
						if i >= n&^7 && h[i] != 7 {
							t.Fatalf("%s: %d elements: %d is overwritten", c.name, n, i)
						}
					}
				}
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, s := range sets {
		b.Run(s.name, func(b *testing.B) {
			x, y, d := make([]float32, 1024), make([]float32, 1024), make([]float32, 1024)
			for b.Loop() {
				s.arith[Add].VV(d, x, y)
			}
			b.ReportMetric(1024*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelem/s")
		})
	}
}
