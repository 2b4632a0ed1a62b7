package gemm

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/interp"
)

// Kind is a type of element in memory.
type Kind uint8

// The kinds. Arithmetic is in float32 for all.
const (
	F32 Kind = iota
	F16
	BF16
)

// Size returns the bytes of an element.
func (k Kind) Size() int {
	if k == F32 {
		return 4
	}
	return 2
}

// Matrix is an operand: element i,j of matrix n is at Data[n*Batch + i*Row + j*Col], counted in elements.
type Matrix struct {
	Kind            Kind
	Data            []byte // aligned to its elements
	Row, Col, Batch int    // strides, none negative
}

// Product computes C[n] = A[n] B[n] + bias for each n below Batch, where A[n] is M by K, B[n] K by N and C[n] M by N.
type Product struct {
	M, N, K, Batch int
	A, B           Matrix
	C              []float32 // contiguous, row by row; it must not overlap the operands
	Bias           []float32 // N values, added to each row; nil: none
	Precise        bool      // sum in float64
	// Done, if not nil, is called when elements from to to-1 of C are final, for each element once, from several
	// goroutines.
	Done func(from, to int)
}

// Workers runs functions on several goroutines; [interp.Pool] is one.
//
// [interp.Pool]: https://pkg.go.dev/github.com/anygpu/anygpu/shaders/interp#Pool
type Workers interface {
	Size() int
	// Do calls f from the caller's goroutine and from up to n-1 others.
	Do(n int, f func())
}

// Run computes the product. An error says which operand is too short for the shape.
func (p *Product) Run(w Workers) error { return p.run(w, sets[0]) }

func (p *Product) run(w Workers, s *isa) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.M == 0 || p.N == 0 || p.Batch == 0 {
		return nil
	}
	if p.Precise {
		s = s.precise
	}
	j := jobs.Get().(*job)
	defer j.put()
	q := &j.own
	*q = *p
	q.fold()
	j.Product, j.isa, j.workers = q, s, w
	if q.Batch > 1 && (q.work() <= alone || q.Batch >= 4*w.Size()) {
		j.workers = one{}
		parallel(w, q.Batch, q.work(), j.item)
		return nil
	}
	for n := range q.Batch {
		j.item(n)
	}
	return nil
}

// check reports operands that are too short.
func (p *Product) check() error {
	if p.M < 0 || p.N < 0 || p.K < 0 || p.Batch < 0 {
		return fmt.Errorf("gemm: M=%d, N=%d, K=%d, batch=%d: sizes must not be negative", p.M, p.N, p.K, p.Batch)
	}
	if p.M == 0 || p.N == 0 || p.Batch == 0 {
		return nil
	}
	for _, o := range []struct {
		name       string
		m          *Matrix
		rows, cols int
	}{{"A", &p.A, p.M, p.K}, {"B", &p.B, p.K, p.N}} {
		if o.m.Row < 0 || o.m.Col < 0 || o.m.Batch < 0 {
			return fmt.Errorf("gemm: %s has strides %d, %d, batch %d: they must not be negative", o.name, o.m.Row, o.m.Col, o.m.Batch)
		}
		if p.K == 0 {
			continue
		}
		need := (o.rows-1)*o.m.Row + (o.cols-1)*o.m.Col + (p.Batch-1)*o.m.Batch + 1
		if have := len(o.m.Data) / o.m.Kind.Size(); have < need {
			return fmt.Errorf("gemm: M=%d, N=%d, K=%d, batch=%d: %s needs %d elements, has %d", p.M, p.N, p.K, p.Batch, o.name, need, have)
		}
	}
	if need := p.Batch * p.M * p.N; len(p.C) < need {
		return fmt.Errorf("gemm: M=%d, N=%d, batch=%d: C needs %d elements, has %d", p.M, p.N, p.Batch, need, len(p.C))
	}
	if p.Bias != nil && len(p.Bias) < p.N {
		return fmt.Errorf("gemm: N=%d: the bias has %d elements", p.N, len(p.Bias))
	}
	return nil
}

// fold brings the product to a shape that is easier to compute, with the same C.
func (p *Product) fold() {
	if p.Batch > 1 && p.B.Batch == 0 && p.A.Batch == p.M*p.A.Row { // one tall matrix
		p.M, p.Batch = p.M*p.Batch, 1
	}
	if p.N == 1 && p.A.Row == 1 && p.A.Col != 1 && p.Bias == nil { // a matrix whose columns are contiguous times a vector
		p.A, p.B = p.B.transposed(), p.A.transposed()
		p.M, p.N = p.N, p.M
	}
}

func (m Matrix) transposed() Matrix {
	m.Row, m.Col = m.Col, m.Row
	return m
}

// work is the number of multiply-adds of one matrix of the batch.
func (p *Product) work() int { return p.M * p.N * max(p.K, 1) }

const (
	alone  = 1 << 22 // work up to which a matrix of a batch is left to one worker
	little = 1 << 18 // work in all below which another goroutine costs more than it saves
)

// one is a single worker.
type one struct{}

func (one) Size() int          { return 1 }
func (one) Do(_ int, f func()) { f() }

// parallel calls f for each i below n, of about the given work each.
func parallel(w Workers, n, work int, f func(i int)) {
	workers := workersFor(w, n, work)
	if workers == 1 {
		for i := range n {
			f(i)
		}
		return
	}
	split := interp.NewSplit(int64(n), workers, 1)
	w.Do(workers, func() {
		share := split.Share()
		for i, count := share.Next(1); count > 0; i, count = share.Next(1) {
			f(int(i))
		}
	})
}

// workersFor returns how many workers are worth it.
func workersFor(w Workers, n, work int) int {
	if n*work < little {
		return 1
	}
	return min(n, w.Size())
}

// view is one matrix of an operand: its rows are those that a panel has side by side.
type view struct {
	kind          Kind
	base          *byte
	across, along int // strides in elements: from row to row and along K
}

// at returns the address of an element.
func (v view) at(row, k int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(v.base), (row*v.across+k*v.along)*v.kind.Size()))
}

func (v view) float(row, k int) *float32 { return (*float32)(unsafe.Pointer(v.at(row, k))) }

// view returns matrix n of an operand, with the given strides.
func (m *Matrix) view(n, across, along int) view {
	v := view{kind: m.Kind, across: across, along: along}
	if len(m.Data) > 0 { // else K is 0
		v.base = unsafe.SliceData(m.Data[n*m.Batch*m.Kind.Size():])
	}
	return v
}

// contiguous says whether the rows are contiguous along K.
func (v view) contiguous(k int) bool { return v.along == 1 || k == 1 }

// job is a product with what it is computed by.
type job struct {
	*Product
	isa     *isa
	workers Workers

	own Product
}

// Jobs and tasks are kept for the next products: attention computes many small ones.
var (
	jobs  = sync.Pool{New: func() any { return new(job) }}
	tasks = sync.Pool{New: func() any { return new(task) }}
)

// put keeps a job, without the operands.
func (j *job) put() {
	*j = job{}
	jobs.Put(j)
}

func (t *task) put() {
	*t = task{}
	tasks.Put(t)
}

// item computes matrix n of the batch.
func (j *job) item(n int) {
	t := tasks.Get().(*task)
	defer t.put()
	t.job, t.a, t.b = j, j.A.view(n, j.A.Row, j.A.Col), j.B.view(n, j.B.Col, j.B.Row)
	t.c, t.first = j.C[n*j.M*j.N:(n+1)*j.M*j.N], n*j.M*j.N
	switch {
	case t.dotShape():
		t.dots()
	case j.Precise:
		mem := getScratch()
		defer mem.put()
		t.sums = mem.takeDoubles(j.M * j.N)
		t.blocks()
	default:
		t.blocks()
	}
}

// task is one matrix of the batch.
type task struct {
	*job
	a, b  view // b's rows are columns of the matrix B
	c     []float32
	sums  []float64 // what C is rounded from, if the product is precise and made of tiles
	first int       // index of c in C

	block block // that is computed now, of outer products
}

// out returns where kernels write element i.
func (t *task) out(i int) *float32 {
	if t.Precise {
		return (*float32)(unsafe.Pointer(&t.sums[i]))
	}
	return &t.c[i]
}

// round converts as many values as dst has.
func round(dst []float32, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = float32(v)
	}
}

// done reports the part of the result in the given rows and columns.
func (t *task) done(row0, row1, col0, col1 int) {
	if t.sums != nil {
		for r := row0; r < row1; r++ {
			round(t.c[r*t.N+col0:r*t.N+col1], t.sums[r*t.N+col0:])
		}
	}
	if t.Done == nil {
		return
	}
	if col0 == 0 && col1 == t.N {
		t.Done(t.first+row0*t.N, t.first+row1*t.N)
		return
	}
	for r := row0; r < row1; r++ {
		t.Done(t.first+r*t.N+col0, t.first+r*t.N+col1)
	}
}
