package lib

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// RowsKernel returns the kernel of the rows of scores that a native program keeps in memory: a part of the attention between its matrix
// products. Buffers: scores [rows, keys], which become the weights, and lse, a number a row; with Backward also the gradients of
// the weights, which become those of the scores. All are F32. Parameters: rows, keys, the scale, and the number of the first row's
// query. With aligned the keys are a multiple of [ir.MaxLanes].
func (a *Attention) RowsKernel(t Target, aligned bool) (*ir.Kernel, error) {
	name := "attention_rows"
	if a.Backward {
		name = "attention_rows_backward"
	}
	c := t.config()
	m := attentionRows{b: ir.NewBuilder(name, c.row, 1, 1), causal: a.Causal, width: 1}
	if aligned {
		m.width = c.rowWide
	}
	b := m.b
	b.SetOps("attention")
	m.scores = b.Buffer("scores", ir.F32, ir.ReadWrite)
	if a.Backward {
		m.lse = b.Buffer("lse", ir.F32, ir.Read)
		m.grads = b.Buffer("grads", ir.F32, ir.ReadWrite)
	} else {
		m.lse = b.Buffer("lse", ir.F32, ir.Write)
	}
	rows := b.Param("rows", ir.U32)
	m.keys, m.scale, m.first = b.Param("keys", ir.U32), b.Param("scale", ir.F32), b.Param("first", ir.U32)
	row := b.LinearID()
	b.If(b.Lt(row, rows), func() {
		m.start, m.last = b.Mul(row, m.keys), b.Add(m.first, row)
		if a.Backward {
			m.backward(row)
		} else {
			m.forward(row)
		}
	}, nil)
	return b.Build()
}

// attentionRows builds a kernel in which an invocation has a row of scores. All keys of a row are visited, so that neighbours do the same.
type attentionRows struct {
	b                  *ir.Builder
	causal             bool
	width              int
	scores, lse, grads *ir.Mem
	keys, scale, first ir.Value
	start, last        ir.Value // where the row begins, and the last key that it sees with causal
}

// over runs f on vectors of the row and returns the sum or the maximum of its results. key is the number of the first of them.
func (m *attentionRows) over(op ReduceOp, f func(key, at ir.Value) ir.Value) ir.Value {
	r := reducer{b: m.b, op: op, kind: ir.F32}
	return r.lanes(r.loop(m.width, m.b.U32(0), m.keys, uint32(m.width), func(i ir.Value) partial {
		return partial{value: f(i, m.b.Add(m.start, i))}
	})).value
}

// seen replaces what the query does not see.
func (m *attentionRows) seen(key, x ir.Value, other float64) ir.Value {
	if !m.causal {
		return x
	}
	b := m.b
	return b.Select(b.Le(iota32(b, key, m.width), b.Splat(m.last, m.width)), x, b.ConstLike(x, other))
}

func (m *attentionRows) score(at ir.Value) ir.Value {
	return m.b.Mul(m.b.Load(m.scores, at, m.width), m.b.Splat(m.scale, m.width))
}

func (m *attentionRows) forward(row ir.Value) {
	b := m.b
	top := m.over(ReduceMax, func(key, at ir.Value) ir.Value { return m.seen(key, m.score(at), math.Inf(-1)) })
	sum := m.over(ReduceSum, func(key, at ir.Value) ir.Value {
		e := m.seen(key, b.Exp(b.Sub(m.score(at), b.Splat(top, m.width))), 0)
		b.Store(m.scores, at, e)
		return e
	})
	inv := b.Splat(b.Select(b.IsFinite(top), b.Div(b.F32(1), sum), b.F32(math.NaN())), m.width)
	b.For(b.U32(0), m.keys, b.U32(uint32(m.width)), func(i ir.Value) {
		at := b.Add(m.start, i)
		b.Store(m.scores, at, b.Mul(b.Load(m.scores, at, m.width), inv))
	})
	b.Store(m.lse, row, b.Add(top, b.Log(sum)))
}

func (m *attentionRows) backward(row ir.Value) {
	b := m.b
	lse := b.Splat(b.Load(m.lse, row, 1), m.width)
	delta := m.over(ReduceSum, func(key, at ir.Value) ir.Value {
		p := m.seen(key, b.Exp(b.Sub(m.score(at), lse)), 0)
		b.Store(m.scores, at, p)
		return b.Mul(p, b.Load(m.grads, at, m.width))
	})
	b.For(b.U32(0), m.keys, b.U32(uint32(m.width)), func(i ir.Value) {
		at := b.Add(m.start, i)
		ds := b.Mul(b.Load(m.scores, at, m.width), b.Sub(b.Load(m.grads, at, m.width), b.Splat(delta, m.width)))
		b.Store(m.grads, at, b.Mul(ds, b.Splat(m.scale, m.width)))
	})
}
