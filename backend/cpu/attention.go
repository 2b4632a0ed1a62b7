package cpu

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/anygpu/anygpu/backend/cpu/internal/gemm"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// attention is the native program of attention: a worker takes some queries of a head at a time, and their scores stay in its cache.
type attention struct {
	spec *lib.Attention
	pool *interp.Pool
	rows [2]func() (runner, error) // for any number of keys, and for multiples of ir.MaxLanes
}

func newAttention(spec *lib.Attention, d *Device) native {
	t := d.info.Target()
	m := &attention{spec: spec, pool: d.pool}
	for i := range m.rows {
		m.rows[i] = sync.OnceValues(func() (runner, error) {
			k, err := spec.RowsKernel(t, i == 1)
			if err != nil {
				return nil, err
			}
			local := k.Local[0]
			run, err := d.compileOn(k, serialPool)
			return func(groups [3]int, buffers [][]byte, params []uint32) error {
				groups[0] = (int(params[0]) + local - 1) / local
				return run(groups, buffers, params)
			}, err
		})
	}
	return m.run
}

// attentionRows bounds the queries of a block: with a thousand keys the scores take half of a second-level cache.
const attentionRows = 128

// alone runs a product on the worker that calls it.
type aloneWorkers struct{}

func (aloneWorkers) Size() int          { return 1 }
func (aloneWorkers) Do(_ int, f func()) { f() }

var serialPool = interp.NewPool(1)

func (m *attention) run(b [][]byte, params []uint32) error {
	a, err := lib.ParseAttention(m.spec, params)
	if err != nil {
		return err
	}
	if err := checkAttention(a, b); err != nil {
		return err
	}
	heads := a.Batch * a.Heads
	blocks := 1
	if !a.Backward {
		blocks = (a.Queries + attentionRows - 1) / attentionRows
	}
	var failed atomic.Pointer[error]
	work := float64(a.Queries) / float64(blocks) * float64(a.Keys) * float64(a.D+a.E)
	parallel(m.pool, heads*blocks, work, func(i int) {
		h := attentionHeads.Get().(*attentionHead)
		*h = attentionHead{Attention: a, m: m, buffers: b, batch: i / blocks / a.Heads, head: i / blocks % a.Heads, s: getScratch()}
		defer func() {
			h.s.put()
			*h = attentionHead{}
			attentionHeads.Put(h)
		}()
		var err error
		if a.Backward {
			err = h.backward()
		} else {
			first := i % blocks * attentionRows
			err = h.forward(first, min(attentionRows, a.Queries-first))
		}
		if err != nil {
			failed.Store(&err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// checkAttention reports buffers that are too short for the launch.
func checkAttention(a *lib.Attention, b [][]byte) error {
	type operand struct {
		name       string
		l          lib.AttentionLayout
		rows, cols int
		buffer     int
	}
	ops := []operand{{"q", a.Q, a.Queries, a.D, 0}, {"k", a.K, a.Keys, a.D, 1}, {"v", a.V, a.Keys, a.E, 2}, {"out", a.Out, a.Queries, a.E, 3}}
	want := 5
	if a.Backward {
		want = 7
		ops = append(ops, operand{"dout", a.DOut, a.Queries, a.E, 5}, operand{"dq", a.DQ, a.Queries, a.D, 6}, operand{"dk", a.DK, a.Keys, a.D, 6}, operand{"dv", a.DV, a.Keys, a.E, 6})
	}
	if len(b) != want {
		return fmt.Errorf("attention: %d buffers, want %d", len(b), want)
	}
	for _, o := range ops {
		need := o.l.Offset + (a.Batch-1)*o.l.Batch + (a.Heads-1)*o.l.Head + (o.rows-1)*o.l.Row + o.cols
		if have := len(b[o.buffer]) / a.Kind.Size(); have < need {
			return fmt.Errorf("attention: %s needs %d elements, its buffer has %d", o.name, need, have)
		}
	}
	if need := a.Batch * a.Heads * a.Queries; len(b[4])/4 < need {
		return fmt.Errorf("attention: lse needs %d elements, its buffer has %d", need, len(b[4])/4)
	}
	return nil
}

// attentionHead is a head of a batch, with the memory of a worker.
type attentionHead struct {
	*lib.Attention
	m           *attention
	buffers     [][]byte
	batch, head int
	s           *scratch

	operands [3][]byte // of the rows' kernel, and its parameters
	numbers  [4]uint32
}

// attentionHeads are kept for other heads.
var attentionHeads = sync.Pool{New: func() any { return new(attentionHead) }}

// from returns where row i of an operand is, in elements.
func (h *attentionHead) from(l lib.AttentionLayout, row int) int {
	return l.Offset + h.batch*l.Batch + h.head*l.Head + row*l.Row
}

// matrix describes an operand's rows from the given one on.
func (h *attentionHead) matrix(buffer int, l lib.AttentionLayout, row int) gemm.Matrix {
	kind := gemm.F32
	switch h.Kind {
	case ir.F16:
		kind = gemm.F16
	case ir.BF16:
		kind = gemm.BF16
	}
	return gemm.Matrix{Kind: kind, Data: h.buffers[buffer][h.from(l, row)*h.Kind.Size():], Row: l.Row, Col: 1}
}

// own describes contiguous float32 rows.
func own(x []float32, columns int) gemm.Matrix {
	return gemm.Matrix{Data: bytesOf(x), Row: columns, Col: 1}
}

func flipped(m gemm.Matrix) gemm.Matrix {
	m.Row, m.Col = m.Col, m.Row
	return m
}

var products = sync.Pool{New: func() any { return new(gemm.Product) }}

// rowProduct computes c = a b for matrices m by k and k by n.
func rowProduct(c []float32, a, b gemm.Matrix, m, n, k int) error {
	p := products.Get().(*gemm.Product)
	defer products.Put(p)
	*p = gemm.Product{M: m, N: n, K: k, Batch: 1, A: a, B: b, C: c}
	err := p.Run(aloneWorkers{})
	*p = gemm.Product{}
	return err
}

// finish runs the rows' kernel on scores of queries from the given one on.
func (h *attentionHead) finish(first, rows, keys int, buffers ...[]byte) error {
	which := 0
	if keys%ir.MaxLanes == 0 {
		which = 1
	}
	p, err := h.m.rows[which]()
	if err != nil {
		return err
	}
	h.numbers = [4]uint32{uint32(rows), uint32(keys), math.Float32bits(h.Scale), uint32(first)}
	return p([3]int{1, 1, 1}, append(h.operands[:0], buffers...), h.numbers[:])
}

// write stores rows of float32 as an operand's.
func (h *attentionHead) write(buffer int, l lib.AttentionLayout, first, rows, columns int, x []float32) {
	size := h.Kind.Size()
	for i := range rows {
		at := h.from(l, first+i) * size
		interp.ConvertSlice(h.buffers[buffer][at:at+columns*size], h.Kind, bytesOf(x[i*columns:(i+1)*columns]), ir.F32)
	}
}

func (h *attentionHead) lse(first, rows int) []byte {
	at := (h.batch*h.Heads+h.head)*h.Queries + first
	return h.buffers[4][4*at : 4*(at+rows)]
}

// seen is the number of keys that the queries before the given one see.
func (h *attentionHead) seen(end int) int {
	if h.Causal {
		return min(h.Keys, end)
	}
	return h.Keys
}

func (h *attentionHead) forward(first, rows int) error {
	keys := h.seen(first + rows)
	scores := take[float32](&h.s.a, rows*keys)
	if err := rowProduct(scores, h.matrix(0, h.Q, first), flipped(h.matrix(1, h.K, 0)), rows, keys, h.D); err != nil {
		return err
	}
	if err := h.finish(first, rows, keys, bytesOf(scores), h.lse(first, rows)); err != nil {
		return err
	}
	out := take[float32](&h.s.b, rows*h.E)
	if err := rowProduct(out, own(scores, keys), h.matrix(2, h.V, 0), rows, h.E, keys); err != nil {
		return err
	}
	h.write(3, h.Out, first, rows, h.E, out)
	return nil
}

func (h *attentionHead) backward() error {
	d, e := h.D, h.E
	sums := take[float32](&h.s.c, h.Keys*(d+e))
	dk, dv := sums[:h.Keys*d], sums[h.Keys*d:]
	clear(sums)
	for first := 0; first < h.Queries; first += attentionRows {
		rows := min(attentionRows, h.Queries-first)
		keys := h.seen(first + rows)
		mem := take[float32](&h.s.a, 2*rows*keys+rows*d)
		scores, grads, dq := mem[:rows*keys], mem[rows*keys:2*rows*keys], mem[2*rows*keys:]
		part := take[float32](&h.s.b, h.Keys*max(d, e))
		q, k, v, dy := h.matrix(0, h.Q, first), h.matrix(1, h.K, 0), h.matrix(2, h.V, 0), h.matrix(5, h.DOut, first)
		if err := rowProduct(scores, q, flipped(k), rows, keys, d); err != nil {
			return err
		}
		if err := rowProduct(grads, dy, flipped(v), rows, keys, e); err != nil {
			return err
		}
		if err := h.finish(first, rows, keys, bytesOf(scores), h.lse(first, rows), bytesOf(grads)); err != nil {
			return err
		}
		if err := rowProduct(dq, own(grads, keys), k, rows, d, keys); err != nil {
			return err
		}
		h.write(6, h.DQ, first, rows, d, dq)
		for _, p := range []struct {
			sum    []float32
			a, b   gemm.Matrix
			width  int
			factor string
		}{{dv, own(scores, keys), dy, e, "values"}, {dk, own(grads, keys), q, d, "keys"}} {
			if err := rowProduct(part[:keys*p.width], flipped(p.a), p.b, keys, p.width, rows); err != nil {
				return fmt.Errorf("gradient of %s: %w", p.factor, err)
			}
			for i, x := range part[:keys*p.width] {
				p.sum[i] += x
			}
		}
	}
	h.write(6, h.DK, 0, h.Keys, d, dk)
	h.write(6, h.DV, 0, h.Keys, e, dv)
	return nil
}
