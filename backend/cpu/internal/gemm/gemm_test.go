package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/x448/float16"
)

// threads is n workers.
type threads int

func (n threads) Size() int { return int(n) }

func (n threads) Do(workers int, f func()) {
	var wg sync.WaitGroup
	for range min(workers, int(n)) - 1 {
		wg.Go(f)
	}
	f()
	wg.Wait()
}

// layout says how an operand of rows by columns lies in memory.
type layout int

const (
	rowMajor layout = iota
	columnMajor
	padded // row-major, with a gap between rows
	sparse // no stride is 1
)

func (l layout) strides(rows, cols int) (row, col int) {
	switch l {
	case columnMajor:
		return 1, max(rows, 1)
	case padded:
		return cols + 3, 1
	case sparse:
		return 2*cols + 1, 2
	}
	return max(cols, 1), 1
}

// fixture is a product on random values and its operands as float64.
type fixture struct {
	p    Product
	a, b []float64 // the whole of the operands' memory
}

// encode stores values as elements and returns them as read back.
func encode(kind Kind, vals []float64, mem []byte) []float64 {
	out := make([]float64, len(vals))
	p := unsafe.SliceData(mem)
	for i, v := range vals {
		at := unsafe.Add(unsafe.Pointer(p), i*kind.Size())
		switch kind {
		case F32:
			*(*float32)(at) = float32(v)
		case F16:
			*(*uint16)(at) = float16.Fromfloat32(float32(v)).Bits()
		case BF16:
			*(*uint16)(at) = uint16(math.Float32bits(float32(v)) >> 16)
		}
		out[i] = float64(element(kind, p, i))
	}
	return out
}

type shape struct {
	m, n, k, batch int
	la, lb         layout
	ka, kb         Kind
	bias, shared   bool // shared: one B for the whole batch
	precise        bool
}

func (s shape) String() string {
	return fmt.Sprintf("%dx%dx%d batch %d layouts %d,%d kinds %d,%d bias %v shared %v precise %v", s.m, s.n, s.k, s.batch, s.la, s.lb, s.ka, s.kb, s.bias, s.shared, s.precise)
}

// newFixture makes a product whose memory comes from alloc.
func newFixture(r *rand.Rand, s shape, alloc func(bytes int) []byte) *fixture {
	f := &fixture{p: Product{M: s.m, N: s.n, K: s.k, Batch: s.batch, Precise: s.precise}}
	operand := func(m *Matrix, kind Kind, l layout, rows, cols int, shared bool) []float64 {
		m.Kind = kind
		m.Row, m.Col = l.strides(rows, cols)
		size := 0
		if rows > 0 && cols > 0 {
			size = (rows-1)*m.Row + (cols-1)*m.Col + 1
		}
		m.Batch = size + int(r.IntN(2))*5
		if r.IntN(2) == 0 {
			m.Batch = rows * m.Row // as in a contiguous batch
		}
		if l == columnMajor {
			m.Batch = size
		}
		if shared {
			m.Batch = 0
		}
		n := 0
		if size > 0 && s.batch > 0 {
			n = (s.batch-1)*m.Batch + size
		}
		vals := make([]float64, n)
		for i := range vals {
			vals[i] = r.NormFloat64()
		}
		m.Data = alloc(n * kind.Size())
		return encode(kind, vals, m.Data)
	}
	f.a = operand(&f.p.A, s.ka, s.la, s.m, s.k, false)
	f.b = operand(&f.p.B, s.kb, s.lb, s.k, s.n, s.shared)
	f.p.C = floatsOf(alloc(4 * s.batch * s.m * s.n))
	if s.bias {
		f.p.Bias = floatsOf(alloc(4 * s.n))
		for i := range f.p.Bias {
			f.p.Bias[i] = float32(r.NormFloat64())
		}
	}
	for i := range f.p.C {
		f.p.C[i] = float32(math.NaN()) // must be overwritten
	}
	return f
}

func floatsOf(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// check compares C with the definition, in float64.
func (f *fixture) check(t *testing.T) {
	t.Helper()
	p := &f.p
	// Of large results, rows and columns at some distance and the last ones: panels have 4 to 32 rows or columns.
	step := 1
	if p.Batch*p.M*p.N*p.K > 1<<22 {
		step = 7
	}
	for n := range p.Batch {
		for i := 0; i < p.M; i = next(i, step, p.M) {
			for j := 0; j < p.N; j = next(j, step, p.N) {
				sum, scale := 0.0, 0.0
				for k := range p.K {
					v := f.a[n*p.A.Batch+i*p.A.Row+k*p.A.Col] * f.b[n*p.B.Batch+k*p.B.Row+j*p.B.Col]
					sum, scale = sum+v, scale+math.Abs(v)
				}
				if p.Bias != nil {
					sum, scale = sum+float64(p.Bias[j]), scale+math.Abs(float64(p.Bias[j]))
				}
				// Rounding errors of a sum of k terms grow like sqrt(k) at random; this is above what is seen and far below an error of one term.
				tol := scale * 0x1p-24 * (4 + math.Sqrt(float64(p.K)))
				if p.Precise {
					tol = math.Abs(sum)*0x1p-24 + scale*0x1p-52*math.Sqrt(float64(p.K))
				}
				if got := float64(p.C[(n*p.M+i)*p.N+j]); !(math.Abs(got-sum) <= tol) {
					t.Fatalf("matrix %d, element %d,%d is %v, want %v", n, i, j, got, sum)
				}
			}
		}
	}
}

// next returns the index after i, at a distance of step, but not without the last.
func next(i, step, n int) int {
	if i < n-1 {
		return min(i+step, n-1)
	}
	return n
}

func heap(n int) []byte { // aligned to 8
	m := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m))), n)
}

// eachSet runs a test with every instruction set of this processor.
func eachSet(t *testing.T, f func(t *testing.T, s *isa)) {
	for _, s := range sets {
		t.Run(s.name, func(t *testing.T) { f(t, s) })
	}
}

func TestSmallShapes(t *testing.T) {
	eachSet(t, func(t *testing.T, s *isa) {
		r := rand.New(rand.NewPCG(1, 2))
		for m := 1; m <= 40; m++ {
			for n := 1; n <= 40; n++ {
				sh := shape{m: m, n: n, k: 1 + r.IntN(40), batch: 1, la: layout(r.IntN(4)), lb: layout(r.IntN(4)), ka: Kind(r.IntN(3)), kb: Kind(r.IntN(3)), bias: r.IntN(2) == 0, precise: r.IntN(3) == 0}
				if r.IntN(2) == 0 {
					sh.ka, sh.kb = F32, F32
				}
				f := newFixture(r, sh, heap)
				if err := f.p.run(one{}, s); err != nil {
					t.Fatal(sh, err)
				}
				f.check(t)
				if t.Failed() {
					t.Fatal(sh)
				}
			}
		}
	})
}

func TestShapes(t *testing.T) {
	var shapes []shape
	for _, la := range []layout{rowMajor, columnMajor, padded} {
		for _, lb := range []layout{rowMajor, columnMajor, padded} {
			for _, k := range []Kind{F32, F16, BF16} {
				shapes = append(shapes,
					shape{m: 70, n: 130, k: 300, batch: 1, la: la, lb: lb, ka: k, kb: k, bias: true},
					shape{m: 130, n: 45, k: 33, batch: 3, la: la, lb: lb, ka: k, kb: F32},
					shape{m: 9, n: 10, k: 515, batch: 5, la: la, lb: lb, ka: F32, kb: k, bias: true},
					shape{m: 7, n: 21, k: 40, batch: 30, la: la, lb: lb, ka: k, kb: k, shared: true},
				)
			}
			shapes = append(shapes,
				shape{m: 1, n: 700, k: 300, batch: 1, la: la, lb: lb, bias: true},
				shape{m: 2, n: 517, k: 65, batch: 2, la: la, lb: lb},
				shape{m: 700, n: 1, k: 300, batch: 1, la: la, lb: lb, bias: true},
				shape{m: 700, n: 1, k: 300, batch: 2, la: la, lb: lb},
				shape{m: 1, n: 1, k: 5000, batch: 1, la: la, lb: lb},
				shape{m: 128, n: 10, k: 784, batch: 1, la: la, lb: lb, bias: true},
			)
		}
	}
	shapes = append(shapes,
		shape{m: 5, n: 6, k: 0, batch: 2, bias: true}, shape{m: 5, n: 6, k: 0, batch: 1}, shape{m: 0, n: 6, k: 3, batch: 1},
		shape{m: 5, n: 0, k: 3, batch: 1}, shape{m: 5, n: 6, k: 3, batch: 0},
		shape{m: 70, n: 130, k: 300, batch: 2, bias: true, precise: true}, shape{m: 3, n: 5, k: 900, batch: 5, lb: columnMajor, ka: F16, precise: true},
		shape{m: 2100, n: 20, k: 2000, batch: 1}, shape{m: 20, n: 2100, k: 2005, batch: 1, la: columnMajor, lb: columnMajor, bias: true}, // several blocks
	)
	eachSet(t, func(t *testing.T, s *isa) {
		for i, sh := range shapes {
			t.Run(sh.String(), func(t *testing.T) {
				if s == plain && sh.m*sh.n*sh.k > 1<<24 {
					sh.m, sh.n = min(sh.m, 40), min(sh.n, 40)
				}
				f := newFixture(rand.New(rand.NewPCG(3, uint64(i))), sh, heap)
				var mu sync.Mutex
				var done []int
				f.p.Done = func(from, to int) {
					mu.Lock()
					defer mu.Unlock()
					for e := from; e < to; e++ {
						done = append(done, e)
					}
				}
				if err := f.p.run(threads(3), s); err != nil {
					t.Fatal(err)
				}
				f.check(t)
				slices.Sort(done)
				for e, v := range done {
					if e != v {
						t.Fatalf("element %d was not reported once", e)
					}
				}
				if len(done) != len(f.p.C) {
					t.Errorf("%d of %d elements were reported", len(done), len(f.p.C))
				}
			})
		}
	})
}

// TestSameBits: the number of workers does not change a bit, nor does AVX2 instead of AVX-512 in outer products.
func TestSameBits(t *testing.T) {
	for _, sh := range []shape{
		{m: 150, n: 200, k: 700, batch: 1}, {m: 60, n: 333, k: 1100, batch: 2, la: columnMajor, lb: columnMajor, bias: true},
		{m: 10, n: 500, k: 800, batch: 1, lb: columnMajor}, {m: 1, n: 900, k: 900, batch: 1}, {m: 40, n: 50, k: 60, batch: 20},
		{m: 3000, n: 40, k: 1500, batch: 1}, {m: 33, n: 47, k: 600, batch: 3, bias: true, precise: true},
	} {
		var outer []float32
		eachSet(t, func(t *testing.T, s *isa) {
			if s == plain && sh.m > 1000 {
				return
			}
			var first []float32
			for _, n := range []int{1, 2, 5} {
				f := newFixture(rand.New(rand.NewPCG(7, 8)), sh, heap)
				if err := f.p.run(threads(n), s); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = f.p.C
				} else if !slices.Equal(first, f.p.C) {
					t.Errorf("%v: %d workers give other bits", sh, n)
				}
			}
			dots := sh.lb == columnMajor && sh.m <= 24 || sh.m == 1 && sh.n == 1
			if s == plain || dots {
				return
			}
			if outer == nil {
				outer = first
			} else if !slices.Equal(outer, first) {
				t.Errorf("%v: %s gives other bits", sh, s.name)
			}
		})
	}
}

// TestNaN: a zero times NaN or infinity is NaN, and reaches only the elements that it should.
func TestNaN(t *testing.T) {
	eachSet(t, func(t *testing.T, s *isa) {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			for _, d := range [][3]int{{5, 6, 7}, {1, 50, 9}, {50, 1, 40}, {13, 45, 300}, {3, 3, 50}, {100, 70, 260}} {
				for flags := range 8 {
					m, n, k := d[0], d[1], d[2]
					la, lb, inA := layout(flags&1), layout(flags>>1&1), flags&4 != 0
					p := Product{M: m, N: n, K: k, Batch: 1, C: make([]float32, m*n)}
					a, b := make([]float32, m*k), make([]float32, k*n)
					p.A.Row, p.A.Col = la.strides(m, k)
					p.B.Row, p.B.Col = lb.strides(k, n)
					row, col, at := m-1, n/2, k-2
					if inA {
						a[row*p.A.Row+at*p.A.Col] = bad
					} else {
						b[at*p.B.Row+col*p.B.Col] = bad
					}
					p.A.Data, p.B.Data = bytesOf(a), bytesOf(b)
					if err := p.run(one{}, s); err != nil {
						t.Fatal(err)
					}
					for i := range m {
						for j := range n {
							want := inA && i == row || !inA && j == col
							if got := p.C[i*n+j]; (got != got) != want {
								t.Fatalf("%v, case %d, %v: element %d,%d is %v", d, flags, bad, i, j, got)
							}
						}
					}
				}
			}
		}
	})
}

func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

func TestRandomShapes(t *testing.T) {
	eachSet(t, func(t *testing.T, s *isa) {
		r := rand.New(rand.NewPCG(9, 10))
		for range 80 {
			dim := func() int { return 1 + int(math.Exp(r.Float64()*math.Log(200))) }
			sh := shape{m: dim(), n: dim(), k: 2 * dim(), batch: 1 + r.IntN(3), la: layout(r.IntN(4)), lb: layout(r.IntN(4)), ka: Kind(r.IntN(3)), kb: Kind(r.IntN(3)), bias: r.IntN(2) == 0, shared: r.IntN(3) == 0}
			f := newFixture(r, sh, heap)
			if err := f.p.run(threads(2), s); err != nil {
				t.Fatal(sh, err)
			}
			t.Run(sh.String(), f.check)
		}
	})
}

func TestErrors(t *testing.T) {
	ok := func() Product {
		return Product{M: 2, N: 3, K: 4, Batch: 2, A: Matrix{Data: heap(64), Row: 4, Col: 1, Batch: 8}, B: Matrix{Data: heap(96), Row: 3, Col: 1, Batch: 12}, C: make([]float32, 12), Bias: make([]float32, 3)}
	}
	p := ok()
	if err := p.Run(one{}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *Product){
		"A short":         func(p *Product) { p.A.Data = p.A.Data[:63] },
		"B short":         func(p *Product) { p.B.Data = p.B.Data[:92] },
		"C short":         func(p *Product) { p.C = p.C[:11] },
		"bias short":      func(p *Product) { p.Bias = p.Bias[:2] },
		"negative size":   func(p *Product) { p.K = -1 },
		"negative stride": func(p *Product) { p.B.Row = -3 },
	} {
		p := ok()
		change(&p)
		if err := p.Run(one{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
