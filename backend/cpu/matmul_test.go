package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// reals makes n elements of a kind as bytes, and their values.
func reals(r *rand.Rand, kind ir.Kind, n int) ([]byte, []float64) {
	vals := make([]float64, n)
	raw := make([]float64, n)
	for i := range raw {
		raw[i] = float64(r.IntN(41)-20) / 8
		if kind.IsInt() {
			raw[i] = float64(r.IntN(10))
		}
	}
	f64 := bytesOf(raw)
	out := make([]byte, (n*kind.Size()+7)&^3+4)
	interp.ConvertSlice(out, kind, f64, ir.F64)
	interp.ConvertSlice(bytesOf(vals), ir.F64, out[:n*kind.Size()], kind)
	return out[:(n*kind.Size()+3)&^3], vals
}

type matMulCase struct {
	spec lib.MatMul
	epi  func(x float64) float64
}

func (c matMulCase) String() string {
	s := c.spec
	return fmt.Sprintf("%dx%dx%d batch %d %s,%s>%s bias %s t%v%v off %d,%d stride %d,%d epilogue %q", s.M, s.N, s.K, s.Batch, s.A, s.B, s.Out, s.Bias, s.TransA, s.TransB, s.OffsetA, s.OffsetB, s.BatchStrideA, s.BatchStrideB, s.EpilogueKey)
}

func relu(b *ir.Builder, x ir.Value) ir.Value {
	return b.Select(b.Gt(x, b.ConstLike(x, 0)), x, b.ConstLike(x, 0))
}

func matMulCases() []matMulCase {
	var out []matMulCase
	add := func(s lib.MatMul) { out = append(out, matMulCase{spec: s}) }
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			for _, k := range []ir.Kind{ir.F32, ir.F16, ir.BF16, ir.F64, ir.I32, ir.I64, ir.U8, ir.U32} {
				o := k
				if k == ir.U8 {
					o = ir.I32
				}
				add(lib.MatMul{M: 37, N: 70, K: 45, Batch: 1, TransA: ta, TransB: tb, A: k, B: k, Out: o})
			}
			add(lib.MatMul{M: 33, N: 65, K: 17, Batch: 3, TransA: ta, TransB: tb, A: ir.F32, B: ir.F32, Out: ir.F32, BatchStrideA: 33*17 + 3, BatchStrideB: 0, OffsetA: 5, OffsetB: 2})
			add(lib.MatMul{M: 4, N: 5, K: 6, Batch: 40, TransA: ta, TransB: tb, A: ir.F16, B: ir.F32, Out: ir.F16, BatchStrideA: 24, BatchStrideB: 30, Bias: ir.F32})
			s := lib.MatMul{M: 20, N: 66, K: 1100, Batch: 1, TransA: ta, TransB: tb, A: ir.F32, B: ir.F16, Out: ir.F32, Bias: ir.F16, EpilogueKey: "relu", Epilogue: relu}
			out = append(out, matMulCase{spec: s, epi: func(x float64) float64 { return max(x, 0) }})
			s.Out, s.K = ir.BF16, 9
			out = append(out, matMulCase{spec: s, epi: func(x float64) float64 { return max(x, 0) }})
		}
	}
	add(lib.MatMul{M: 1, N: 300, K: 200, Batch: 1, A: ir.F32, B: ir.F32, Out: ir.F32})
	add(lib.MatMul{M: 300, N: 1, K: 3, Batch: 1, A: ir.F32, B: ir.F32, Out: ir.F32})
	add(lib.MatMul{M: 3, N: 4, K: 0, Batch: 2, A: ir.F32, B: ir.F32, Out: ir.F32, Bias: ir.F32})
	add(lib.MatMul{M: 0, N: 4, K: 5, Batch: 1, A: ir.F32, B: ir.F32, Out: ir.F32})
	return out
}

// extent returns how many elements an operand's buffer needs.
func extent(offset, stride, batch, size int) int { return offset + max(batch-1, 0)*stride + size }

func at(trans bool, rows, columns, i, j int) int {
	if trans {
		return j*rows + i
	}
	return i*columns + j
}

// runMatMul runs a product on the device, natively, and returns the output.
func runMatMul(t *testing.T, d *Device, s *lib.MatMul, a, b, bias []byte) []byte {
	t.Helper()
	k := must(s.Build(d.Info().Target()))(t)
	p := must(d.Override(k))(t)
	if p == nil {
		t.Fatal("no native program")
	}
	groups, params, err := s.Launch(d.Info().Target())
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, max(4, (s.Batch*s.M*s.N*s.Out.Size()+3)&^3))
	bufs := []backend.Buffer{upload(t, d, a), upload(t, d, b)}
	if s.Bias != ir.Void {
		bufs = append(bufs, upload(t, d, bias))
	}
	bufs = append(bufs, upload(t, d, out))
	var regions []backend.Region
	for _, b := range bufs {
		regions = append(regions, whole(b))
	}
	must(d.Submit([]backend.Launch{{Program: p, Groups: groups, Params: params, Buffers: regions}}))(t)
	if err := bufs[len(bufs)-1].Read(0, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMatMul(t *testing.T) {
	d := New()
	defer d.Close()
	for _, tc := range matMulCases() {
		t.Run(tc.String(), func(t *testing.T) {
			s := tc.spec
			r := rand.New(rand.NewPCG(1, 2))
			a, av := reals(r, s.A, max(1, extent(s.OffsetA, s.BatchStrideA, s.Batch, s.M*s.K)))
			b, bv := reals(r, s.B, max(1, extent(s.OffsetB, s.BatchStrideB, s.Batch, s.K*s.N)))
			var bias []byte
			biasV := make([]float64, s.N)
			if s.Bias != ir.Void {
				bias, biasV = reals(r, s.Bias, s.N)
			}
			out := runMatMul(t, d, &s, a, b, bias)
			got := make([]float64, s.Batch*s.M*s.N)
			interp.ConvertSlice(bytesOf(got), ir.F64, out, s.Out)
			eps := map[ir.Kind]float64{ir.F16: 1e-3, ir.BF16: 8e-3, ir.F32: 1e-6, ir.F64: 1e-15}[s.Out]
			for n := range s.Batch {
				for i := range s.M {
					for j := range s.N {
						want, scale := biasV[j], math.Abs(biasV[j])
						for k := range s.K {
							p := av[s.OffsetA+n*s.BatchStrideA+at(s.TransA, s.M, s.K, i, k)] * bv[s.OffsetB+n*s.BatchStrideB+at(s.TransB, s.K, s.N, k, j)]
							want, scale = want+p, scale+math.Abs(p)
						}
						if tc.epi != nil {
							want = tc.epi(want)
						}
						if g := got[(n*s.M+i)*s.N+j]; !(math.Abs(g-want) <= eps*scale) {
							t.Fatalf("matrix %d, element %d,%d is %v, want %v", n, i, j, g, want)
						}
					}
				}
			}
		})
	}
}

// TestMatMulNaN: a zero times NaN or infinity is NaN, also where a library would leave out products with zeros.
func TestMatMulNaN(t *testing.T) {
	d := New()
	defer d.Close()
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		for flags := range 8 {
			s := lib.MatMul{M: 5, N: 6, K: 7, Batch: 1, A: ir.F32, B: ir.F32, Out: ir.F32, TransA: flags&1 != 0, TransB: flags&2 != 0}
			a, b := make([]float32, 35), make([]float32, 42) // zeros
			row, column := 2, 3
			inA := flags&4 != 0
			if inA {
				a[at(s.TransA, 5, 7, row, 4)] = bad
			} else {
				b[at(s.TransB, 7, 6, 4, column)] = bad
			}
			out := sliceOf[float32](runMatMul(t, d, &s, bytesOf(a), bytesOf(b), nil))
			for i := range 5 {
				for j := range 6 {
					want := inA && i == row || !inA && j == column
					if got := out[i*6+j] != out[i*6+j]; got != want {
						t.Errorf("%v, case %d: element %d,%d is %v", bad, flags, i, j, out[i*6+j])
					}
				}
			}
		}
	}
}

func TestOverrideDeclines(t *testing.T) {
	d := New()
	defer d.Close()
	for _, k := range []*ir.Kernel{nil, addKernel(t)} {
		if p, err := d.Override(k); p != nil || err != nil {
			t.Errorf("got %v, %v, want nothing", p, err)
		}
	}
}

func TestMatMulShortBuffer(t *testing.T) {
	s := lib.MatMul{M: 4, N: 4, K: 4, Batch: 1, A: ir.F32, B: ir.F32, Out: ir.F32}
	run, err := newMatMul(&s, interp.DefaultPool(), New())
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := s.Launch(lib.Target{API: "cpu", Caps: ir.InterpCaps()})
	if err != nil {
		t.Fatal(err)
	}
	if err := run([][]byte{make([]byte, 64), make([]byte, 60), make([]byte, 64)}, params); err == nil {
		t.Error("no error for a short operand")
	}
}

func BenchmarkMatMul(b *testing.B) {
	const n = 512
	for _, k := range []ir.Kind{ir.F32, ir.F16} {
		for _, tb := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/transB=%v", k, tb), func(b *testing.B) {
				s := lib.MatMul{M: n, N: n, K: n, Batch: 1, A: k, B: k, Out: k, TransB: tb}
				run, err := newMatMul(&s, interp.NewPool(1), New())
				if err != nil {
					b.Fatal(err)
				}
				_, params, _ := s.Launch(lib.Target{API: "cpu", Caps: ir.InterpCaps()})
				x := make([]byte, n*n*k.Size())
				y, z := make([]byte, len(x)), make([]byte, len(x))
				for b.Loop() {
					if err := run([][]byte{x, y, z}, params); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(2*n*n*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOPS")
			})
		}
	}
}
