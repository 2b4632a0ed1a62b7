package cpu

import (
	"github.com/anygpu/anygpu/backend/cpu/internal/gemm"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// floatMatMul is a matrix product that accumulates in float32.
type floatMatMul struct {
	spec   *lib.MatMul
	pool   *interp.Pool
	finish *interp.Program // from float32 to the output; nil if there is no epilogue
	tail   runner          // nil if there is none
	target lib.Target
}

func newFloatMatMul(spec *lib.MatMul, pool *interp.Pool, d *Device) (native, error) {
	m := &floatMatMul{spec: spec, pool: pool, target: d.info.Target()}
	if spec.Tail != nil {
		k, err := spec.Flat(chunk).Build(m.target)
		if err != nil {
			return nil, err
		}
		if m.tail, err = d.compileOn(k, pool); err != nil {
			return nil, err
		}
	}
	if spec.Epilogue != nil {
		k, err := finishKernel(spec, ir.F32)
		if err != nil {
			return nil, err
		}
		if m.finish, err = d.program(k); err != nil {
			return nil, err
		}
	}
	return m.run, nil
}

// operand describes an operand of rows by columns, stored transposed if trans is set. Integers are converted to float32
// first, in mem.
func (m *floatMatMul) operand(mem *[]uint64, kind ir.Kind, b []byte, offset, stride, batch, rows, columns int, trans bool) gemm.Matrix {
	out := gemm.Matrix{Row: columns, Col: 1, Batch: stride}
	if trans {
		out.Row, out.Col = 1, rows
	}
	if rows*columns == 0 {
		return out
	}
	b = b[offset*kind.Size() : (offset+(batch-1)*stride+rows*columns)*kind.Size()]
	switch kind {
	case ir.F32:
	case ir.F16:
		out.Kind = gemm.F16
	case ir.BF16:
		out.Kind = gemm.BF16
	default:
		n := len(b) / kind.Size()
		to := bytesOf(take[float32](mem, n))
		m.convert(to, ir.F32, b, kind, n)
		b = to
	}
	out.Data = b
	return out
}

// convert converts n elements.
func (m *floatMatMul) convert(dst []byte, to ir.Kind, src []byte, from ir.Kind, n int) {
	parallel(m.pool, (n+chunk-1)/chunk, chunk, func(i int) {
		e0, e1 := i*chunk, min((i+1)*chunk, n)
		interp.ConvertSlice(dst[e0*to.Size():e1*to.Size()], to, src[e0*from.Size():e1*from.Size()], from)
	})
}

// run computes the product.
func (m *floatMatMul) run(buffers [][]byte, params []uint32) error {
	a, err := matMulArgs(m.spec, buffers, params)
	n := a.Batch * a.M * a.N
	if err != nil || n == 0 {
		return err
	}
	s := getScratch()
	defer s.put()
	// Small products are summed in float64: kernels compensate the rounding of their sums.
	p := gemm.Product{M: a.M, N: a.N, K: a.K, Batch: a.Batch, Precise: a.Precise(),
		A: m.operand(&s.a, m.spec.A, buffers[0], a.OffsetA, a.BatchStrideA, a.Batch, a.M, a.K, m.spec.TransA),
		B: m.operand(&s.b, m.spec.B, buffers[1], a.OffsetB, a.BatchStrideB, a.Batch, a.K, a.N, m.spec.TransB),
	}
	switch m.spec.Bias {
	case ir.Void:
	case ir.F32:
		p.Bias = sliceOf[float32](buffers[2])[:a.N]
	default:
		p.Bias = make([]float32, a.N)
		interp.ConvertSlice(bytesOf(p.Bias), ir.F32, buffers[2], m.spec.Bias)
	}
	if m.tail != nil {
		return m.runTail(&p, &s.c, buffers, n, params)
	}
	kind := m.spec.Out
	out := buffers[len(buffers)-1][:n*kind.Size()]
	if kind == ir.F32 { // an epilogue then works in place
		p.C = sliceOf[float32](out)
	} else {
		p.C = take[float32](&s.c, n)
	}
	sums := bytesOf(p.C)
	if m.finish == nil && kind != ir.F32 {
		p.Done = func(from, to int) { // while the sums are in the cache
			interp.ConvertSlice(out[from*kind.Size():to*kind.Size()], kind, sums[4*from:4*to], ir.F32)
		}
	}
	if err := p.Run(m.pool); err != nil {
		return err
	}
	if m.finish == nil {
		return nil
	}
	return runFinish(m.finish, m.pool, sums, ir.F32, out, kind, n)
}

// runTail computes the product and then what is made of it.
func (m *floatMatMul) runTail(p *gemm.Product, mem *[]uint64, buffers [][]byte, n int, params []uint32) error {
	t := m.spec.Tail
	p.C = take[float32](mem, n)
	if err := p.Run(m.pool); err != nil {
		return err
	}
	groups, geometry, err := m.spec.Flat(n).Launch(m.target)
	if err != nil {
		return err
	}
	bufs := append([][]byte{bytesOf(p.C)}, buffers[len(buffers)-len(t.In)-len(t.Out)+1:]...)
	scalars := params[len(params)-len(t.Scalars):]
	return m.tail(groups, bufs, append(geometry[:len(geometry)-len(scalars)], scalars...))
}
