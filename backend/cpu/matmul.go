package cpu

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
	"gonum.org/v1/gonum/blas/gonum"
)

// element is a kind that packed operands and sums have.
type element interface {
	float32 | float64 | int32 | uint32 | int64
}

// native runs a template on buffers in order of binding.
type native func(buffers [][]byte, params []uint32) error

// newMatMul returns the native program of a matrix product, or nil if it has none.
func newMatMul(spec *lib.MatMul, pool *interp.Pool, d *Device) (native, error) {
	switch acc := spec.AccKind(); acc {
	case ir.F32:
		return newFloatMatMul(spec, pool, d)
	case ir.F64:
		return matMulOf(spec, pool, d, acc, ddot)
	case ir.I32:
		return matMulOf(spec, pool, d, acc, dot[int32])
	case ir.U32:
		return matMulOf(spec, pool, d, acc, dot[uint32])
	case ir.I64:
		return matMulOf(spec, pool, d, acc, dot[int64])
	}
	return nil, nil
}

// ddot is a dot product. gonum's Gemm leaves out products with a zero of the first matrix, so that 0*NaN would be 0; its
// Dot leaves out nothing, and is the faster way to a product whose operands are packed row by row.
func ddot(x, y []float64) float64 { return gonum.Implementation{}.Ddot(len(x), x, 1, y, 1) }

func dot[T int32 | uint32 | int64](x, y []T) (sum T) {
	y = y[:len(x)]
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// matMul is a matrix product whose products accumulate in T, which is not float32 (see floatMatMul).
type matMul[T element] struct {
	spec   *lib.MatMul
	acc    ir.Kind
	pool   *interp.Pool
	dot    func(x, y []T) T
	finish *interp.Program // from the accumulated kind to the output: epilogue and conversion; nil if there are none
}

func matMulOf[T element](spec *lib.MatMul, pool *interp.Pool, d *Device, acc ir.Kind, dot func(x, y []T) T) (native, error) {
	m := &matMul[T]{spec: spec, acc: acc, pool: pool, dot: dot}
	if spec.Epilogue != nil || spec.Out != acc {
		k, err := finishKernel(spec, acc)
		if err != nil {
			return nil, err
		}
		if m.finish, err = d.program(k); err != nil {
			return nil, err
		}
	}
	return m.run, nil
}

// finishKernel maps accumulated results to the output, element by element.
func finishKernel(spec *lib.MatMul, acc ir.Kind) (*ir.Kernel, error) {
	b := ir.NewBuilder("matmul_epilogue", 64, 1, 1)
	x, out := b.Buffer("sums", acc, ir.Read), b.Buffer("out", spec.Out, ir.Write)
	n, i := b.Param("n", ir.U32), b.GlobalID(0)
	b.If(b.Lt(i, n), func() {
		v := b.Load(x, i, 1)
		if spec.Epilogue != nil {
			v = spec.Epilogue(b, b.Convert(v, spec.AccKind()))
		}
		b.Store(out, i, b.Convert(v, spec.Out))
	}, nil)
	return b.Build()
}

// matMulArgs reads the parameters and checks that the buffers are long enough for them.
func matMulArgs(s *lib.MatMul, buffers [][]byte, params []uint32) (a lib.MatMulArgs, err error) {
	if a, err = lib.ParseMatMulArgs(params); err != nil {
		return a, err
	}
	want := 3
	if s.Bias != ir.Void {
		want = 4
	}
	results := []ir.Kind{s.Out}
	if s.Tail != nil {
		results = results[:0]
		for _, o := range append(s.Tail.In[1:len(s.Tail.In):len(s.Tail.In)], s.Tail.Out...) {
			results = append(results, o.Kind)
		}
		want += len(results) - 1
	}
	if len(buffers) != want {
		return a, fmt.Errorf("matmul: %d buffers, want %d", len(buffers), want)
	}
	if a.M == 0 || a.N == 0 || a.Batch == 0 {
		return a, nil
	}
	last := a.Batch - 1
	for _, c := range []struct {
		name  string
		kind  ir.Kind
		bytes []byte
		elems int
	}{
		{"A", s.A, buffers[0], a.OffsetA + last*a.BatchStrideA + a.M*a.K},
		{"B", s.B, buffers[1], a.OffsetB + last*a.BatchStrideB + a.K*a.N},
		{"the bias", s.Bias, buffers[2], a.N},
	} {
		if c.kind == ir.Void || a.K == 0 && (c.name == "A" || c.name == "B") {
			continue
		}
		if have := len(c.bytes) / c.kind.Size(); have < c.elems {
			return a, fmt.Errorf("matmul: M=%d, N=%d, K=%d, batch=%d: %s needs %d elements, its buffer has %d", a.M, a.N, a.K, a.Batch, c.name, c.elems, have)
		}
	}
	for i, kind := range results {
		if need, have := a.Batch*a.M*a.N, len(buffers[want-len(results)+i])/kind.Size(); have < need {
			return a, fmt.Errorf("matmul: M=%d, N=%d, batch=%d: buffer %d needs %d elements, it has %d", a.M, a.N, a.Batch, want-len(results)+i, need, have)
		}
	}
	return a, nil
}

// run computes the product.
func (m *matMul[T]) run(buffers [][]byte, params []uint32) error {
	a, err := matMulArgs(m.spec, buffers, params)
	if err != nil || a.M == 0 || a.N == 0 || a.Batch == 0 {
		return err
	}
	var bias []T
	if m.spec.Bias != ir.Void {
		bias = make([]T, a.N)
		interp.ConvertSlice(bytesOf(bias), m.acc, buffers[2], m.spec.Bias)
	}
	s := getScratch()
	defer s.put()
	out := buffers[len(buffers)-1]
	for first := 0; first < a.Batch; {
		count := m.batchesAtOnce(a, a.Batch-first)
		if err := m.batches(a, s, buffers[0], buffers[1], out, bias, first, count); err != nil {
			return err
		}
		first += count
	}
	return nil
}

// scratchBytes bounds the memory for packed operands and sums, beyond that of a single matrix.
const scratchBytes = 32 << 20

func (m *matMul[T]) batchesAtOnce(a lib.MatMulArgs, left int) int {
	one := (a.M*a.K + a.K*a.N + a.M*a.N) * m.acc.Size()
	return min(left, max(1, scratchBytes/max(one, 1)))
}

// batches computes count matrices of the batch from the given one on.
func (m *matMul[T]) batches(a lib.MatMulArgs, s *scratch, bufA, bufB, out []byte, bias []T, first, count int) error {
	x := operand[T]{kind: m.spec.A, acc: m.acc, src: bufA, offset: a.OffsetA, stride: a.BatchStrideA, rows: a.M, columns: a.K, trans: m.spec.TransA}
	y := operand[T]{kind: m.spec.B, acc: m.acc, src: bufB, offset: a.OffsetB, stride: a.BatchStrideB, rows: a.N, columns: a.K, trans: !m.spec.TransB}
	x.pack(m.pool, &s.a, first, count)
	y.pack(m.pool, &s.b, first, count)

	size := a.M * a.N
	var sums []T
	results := out[first*size*m.spec.Out.Size() : (first+count)*size*m.spec.Out.Size()]
	if m.spec.Out == m.acc { // an epilogue then works in place
		sums = sliceOf[T](results)
	} else {
		sums = take[T](&s.c, count*size)
	}
	m.multiply(a, x, y, sums, bias, count)
	if m.finish == nil {
		return nil
	}
	return runFinish(m.finish, m.pool, bytesOf(sums), m.acc, results, m.spec.Out, count*size)
}

// runFinish runs the epilogue in pieces that a launch can count.
func runFinish(finish *interp.Program, pool *interp.Pool, sums []byte, acc ir.Kind, results []byte, out ir.Kind, n int) error {
	const piece = 1 << 30
	size, outSize := acc.Size(), out.Size()
	for from := 0; from < n; from += piece {
		to := min(n, from+piece)
		err := finish.Run([3]int{(to - from + 63) / 64, 1, 1}, [][]byte{sums[from*size : to*size], results[from*outSize : to*outSize]}, []uint32{uint32(to - from)}, pool)
		if err != nil {
			return err
		}
	}
	return nil
}

// The tile of results that a worker takes at a time, and the part of a dot product: rows of both operands stay in the
// second-level cache.
const (
	tileRows    = 32
	tileColumns = 64
	tileDepth   = 1024
)

// multiply computes the products of packed operands.
func (m *matMul[T]) multiply(a lib.MatMulArgs, x, y operand[T], sums, bias []T, count int) {
	down, across := (a.M+tileRows-1)/tileRows, (a.N+tileColumns-1)/tileColumns
	perTile := float64(min(a.M, tileRows)) * float64(min(a.N, tileColumns)) * float64(a.K+8)
	parallel(m.pool, count*down*across, perTile, func(i int) {
		matrix, tile := i/(down*across), i%(down*across)
		row, column := tile/across*tileRows, tile%across*tileColumns
		m.tile(a.K, x.matrix(matrix), y.matrix(matrix), sums[matrix*a.M*a.N:(matrix+1)*a.M*a.N], bias,
			row, min(row+tileRows, a.M), column, min(column+tileColumns, a.N), a.N)
	})
}

func (m *matMul[T]) tile(k int, x, y, sums, bias []T, row0, row1, column0, column1, width int) {
	for i := row0; i < row1; i++ {
		clear(sums[i*width+column0 : i*width+column1])
	}
	for from := 0; from < k; from += tileDepth {
		to := min(k, from+tileDepth)
		for j := column0; j < column1; j++ {
			yj := y[j*k+from : j*k+to]
			for i := row0; i < row1; i++ {
				sums[i*width+j] += m.dot(x[i*k+from:i*k+to], yj)
			}
		}
	}
	if bias == nil {
		return
	}
	for i := row0; i < row1; i++ {
		row := sums[i*width+column0 : i*width+column1]
		for j, v := range bias[column0:column1] {
			row[j] += v
		}
	}
}
