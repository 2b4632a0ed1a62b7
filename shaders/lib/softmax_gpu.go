package lib

import (
	"github.com/anygpu/anygpu/shaders/ir"
)

// rowPerLanes: lanes of a workgroup share a row. Rows that fit are kept in registers, so that memory is read once.
func (m *softmaxEmitter) rowPerLanes() {
	b, h := m.b, m.h
	lid := b.LocalID(0)
	lanes, width := b.U32(uint32(h.lanes)), b.U32(uint32(h.width))
	rank := b.Rem(lid, lanes)
	row := b.Add(b.Mul(b.LinearGroup(), b.U32(uint32(h.local/h.lanes))), b.Div(lid, lanes))
	inside := b.Lt(row, m.rows)
	n := b.Select(inside, m.n, b.U32(0))
	start := b.Mul(b.Select(inside, row, b.U32(0)), m.n)
	first, step := b.Mul(rank, width), uint32(h.lanes*h.width)

	// share makes the partials of a row's lanes known to all of them.
	t := newTree(m.t, m.max, h.local, h.lanes, 1, "")
	share := func(r reducer, p partial) ir.Value {
		t.r = r
		v := t.all(r.lanes(p), lid, rank).value
		t.again()
		return v
	}

	if h.keep == 0 {
		largest := share(m.max, m.max.loop(h.width, first, n, step, func(i ir.Value) partial {
			return partial{value: m.load(b.Add(start, i), h.width, accessVector)}
		}))
		sum := share(m.sum, m.sum.loop(h.width, first, n, step, func(i ir.Value) partial {
			return partial{value: m.exp(b.Add(start, i), largest, h.width, accessVector)}
		}))
		scale := m.scale(largest, sum)
		b.For(first, n, b.U32(step), func(i ir.Value) { m.write(b.Add(start, i), largest, scale, h.width, accessVector) })
		return
	}

	low := m.max.neutral(h.width)
	places, kept := make([]ir.Value, h.keep), make([]ir.Value, h.keep)
	most := low
	for i := range kept {
		places[i] = b.Add(first, b.U32(uint32(i)*step))
		v := b.Var(low.value)
		b.If(b.Lt(places[i], n), func() { b.Set(v, m.load(b.Add(start, places[i]), h.width, accessVector)) }, nil)
		kept[i] = b.Get(v)
		most = m.max.combine(most, partial{value: kept[i]})
	}
	largest := share(m.max, most)
	total := m.sum.neutral(h.width)
	exps := make([]ir.Value, h.keep)
	for i, x := range kept {
		exps[i] = b.Exp(b.Sub(x, largest)) // 0 beyond the row's end
		total = m.sum.combine(total, partial{value: exps[i]})
	}
	scale := m.scale(largest, share(m.sum, total))
	for i, x := range kept {
		b.If(b.Lt(places[i], n), func() {
			v := b.Mul(exps[i], scale)
			if m.Log {
				v = m.result(x, largest, scale)
			}
			m.store(b.Add(start, places[i]), v, h.width, accessVector)
		}, nil)
	}
}
