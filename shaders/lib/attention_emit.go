package lib

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

func float32frombits(v uint32) float32 { return math.Float32frombits(v) }

// attentionEmitter builds the kernel: an invocation has a query, or with Backward a query or a key, in registers, and goes over the
// keys or queries that it meets.
type attentionEmitter struct {
	*Attention
	b     *ir.Builder
	width int
	local int
	mems  map[string]*ir.Mem
	geo   map[string]ir.Value
	lse   *ir.Mem
	scale ir.Value
}

func newAttentionEmitter(a *Attention, t Target) *attentionEmitter {
	name := "attention"
	if a.Backward {
		name += "_backward"
	}
	local := t.config().attention()
	return &attentionEmitter{Attention: a, b: ir.NewBuilder(name, local, 1, 1), width: a.width(t), local: local, mems: map[string]*ir.Mem{}, geo: map[string]ir.Value{}}
}

func (m *attentionEmitter) build() (*ir.Kernel, error) {
	b := m.b
	ops := m.Ops
	if len(ops) == 0 {
		ops = []string{"attention"}
	}
	b.SetOps(ops...)
	template := *m.Attention
	b.SetTemplate(&template)
	access := ir.Write
	if m.Backward {
		access = ir.Read
	}
	for _, name := range []string{"q", "k", "v"} {
		m.mems[name] = b.Buffer(name, m.Kind, ir.Read)
	}
	m.mems["out"] = b.Buffer("out", m.Kind, access)
	m.lse = b.Buffer("lse", ir.F32, access)
	if m.Backward {
		m.mems["dout"] = b.Buffer("dout", m.Kind, ir.Read)
		grads := b.Buffer("grads", m.Kind, ir.Write)
		m.mems["dq"], m.mems["dk"], m.mems["dv"] = grads, grads, grads
	}
	for i, g := range m.geometry() {
		kind := ir.U32
		if i == 0 {
			kind = ir.F32
		}
		m.geo[g.name] = b.Param(g.name, kind)
	}
	m.scale = m.geo["scale"]
	if m.Backward {
		for _, o := range m.layouts() {
			for _, g := range []geom{{"_offset", uint32(o.l.Offset)}, {"_batch", uint32(o.l.Batch)}, {"_head", uint32(o.l.Head)}, {"_row", uint32(o.l.Row)}} {
				m.geo[o.name+g.name] = b.U32(g.value)
			}
		}
	}
	heads := b.Mul(m.geo["batch"], m.geo["heads"])
	group, local := b.LinearGroup(), b.U32(uint32(m.local))
	total := b.Mul(heads, m.geo["queries"])
	if !m.Backward {
		m.each(b.LinearID(), total, "queries", m.forward)
		return b.Build()
	}
	first := b.Div(b.Add(total, b.U32(uint32(m.local-1))), local) // workgroups of queries
	b.If(b.Lt(group, first), func() { m.each(b.Add(b.Mul(group, local), b.LocalID(0)), total, "queries", m.query) }, func() {
		m.each(b.Add(b.Mul(b.Sub(group, first), local), b.LocalID(0)), b.Mul(heads, m.geo["keys"]), "keys", m.key)
	})
	return b.Build()
}

// each runs f for row id of all heads, if there is one.
func (m *attentionEmitter) each(id, total ir.Value, rows string, f func(head attentionHead, row ir.Value)) {
	b := m.b
	b.If(b.Lt(id, total), func() {
		n := m.geo[rows]
		head := b.Div(id, n)
		batch := b.Div(head, m.geo["heads"])
		f(attentionHead{batch, b.Sub(head, b.Mul(batch, m.geo["heads"])), b.Mul(head, m.geo["queries"])}, b.Sub(id, b.Mul(head, n)))
	}, nil)
}

// attentionHead is a head of a batch; lse is where its queries' sums begin.
type attentionHead struct{ batch, head, lse ir.Value }

// rows returns where the head's rows of an operand begin.
func (m *attentionEmitter) rows(h attentionHead, name string) ir.Value {
	b := m.b
	return b.Add(m.geo[name+"_offset"], b.Add(b.Mul(h.batch, m.geo[name+"_batch"]), b.Mul(h.head, m.geo[name+"_head"])))
}

func (m *attentionEmitter) row(base ir.Value, name string, i ir.Value) ir.Value {
	return m.b.Add(base, m.b.Mul(i, m.geo[name+"_row"]))
}

// load reads n features.
func (m *attentionEmitter) load(name string, at ir.Value, n int) []ir.Value {
	b := m.b
	out := make([]ir.Value, n/m.width)
	for c := range out {
		out[c] = b.Convert(b.Load(m.mems[name], advance(b, at, c*m.width, nil), m.width), ir.F32)
	}
	return out
}

func (m *attentionEmitter) store(name string, at ir.Value, vals []ir.Value) {
	b := m.b
	for c, v := range vals {
		b.Store(m.mems[name], advance(b, at, c*m.width, nil), b.Convert(v, m.Kind))
	}
}

// dot returns the scalar product of two rows.
func (m *attentionEmitter) dot(x, y []ir.Value) ir.Value {
	b := m.b
	sum := b.Mul(x[0], y[0])
	for c := 1; c < len(x); c++ {
		sum = b.Fma(x[c], y[c], sum)
	}
	return sumLanes(b, sum)
}

func (m *attentionEmitter) scaled(x []ir.Value, by ir.Value) []ir.Value {
	out := make([]ir.Value, len(x))
	for c := range x {
		out[c] = m.b.Mul(x[c], m.b.Splat(by, m.width))
	}
	return out
}

// sums are the accumulators of a row.
type sums []ir.Value

func (m *attentionEmitter) newSums(n int) sums {
	s := make(sums, n/m.width)
	for c := range s {
		s[c] = m.b.Var(m.b.Const(ir.Vec(ir.F32, m.width), 0))
	}
	return s
}

// add sets s to s*keep + x*by; a nil keep is 1.
func (m *attentionEmitter) add(s sums, keep ir.Value, x []ir.Value, by ir.Value) {
	b := m.b
	by = b.Splat(by, m.width)
	for c, v := range s {
		old := b.Get(v)
		if keep != nil {
			old = b.Mul(old, b.Splat(keep, m.width))
		}
		b.Set(v, b.Fma(x[c], by, old))
	}
}

func (m *attentionEmitter) get(s sums) []ir.Value {
	out := make([]ir.Value, len(s))
	for c, v := range s {
		out[c] = m.b.Get(v)
	}
	return out
}

// seen is the number of keys that a query sees.
func (m *attentionEmitter) seen(query ir.Value) ir.Value {
	if !m.Causal {
		return m.geo["keys"]
	}
	return m.b.Min(m.geo["keys"], m.b.Add(query, m.b.U32(1)))
}

// forward computes the result of a query, with the sum and the maximum so far corrected as keys come in.
func (m *attentionEmitter) forward(h attentionHead, query ir.Value) {
	b := m.b
	keys, values := m.rows(h, "k"), m.rows(h, "v")
	q := m.scaled(m.load("q", m.row(m.rows(h, "q"), "q", query), m.D), m.scale)
	top, sum, acc := b.Var(b.F32(math.Inf(-1))), b.Var(b.F32(0)), m.newSums(m.E)
	b.Range(m.seen(query), func(j ir.Value) {
		s := m.dot(q, m.load("k", m.row(keys, "k", j), m.D))
		old := b.Get(top)
		now := b.MaxNaN(old, s)
		keep, p := b.Exp(b.Sub(old, now)), b.Exp(b.Sub(s, now))
		b.Set(sum, b.Fma(b.Get(sum), keep, p))
		m.add(acc, keep, m.load("v", m.row(values, "v", j), m.E), p)
		b.Set(top, now)
	})
	total := b.Get(sum)
	m.store("out", m.row(m.rows(h, "out"), "out", query), m.scaled(m.get(acc), b.Div(b.F32(1), total)))
	b.Store(m.lse, b.Add(h.lse, query), b.Add(b.Get(top), b.Log(total)))
}

// query computes the gradient of a query.
func (m *attentionEmitter) query(h attentionHead, query ir.Value) {
	b := m.b
	keys, values := m.rows(h, "k"), m.rows(h, "v")
	q := m.scaled(m.load("q", m.row(m.rows(h, "q"), "q", query), m.D), m.scale)
	dy := m.load("dout", m.row(m.rows(h, "dout"), "dout", query), m.E)
	delta := m.dot(dy, m.load("out", m.row(m.rows(h, "out"), "out", query), m.E))
	lse := b.Load(m.lse, b.Add(h.lse, query), 1)
	acc := m.newSums(m.D)
	b.Range(m.seen(query), func(j ir.Value) {
		k := m.load("k", m.row(keys, "k", j), m.D)
		p := b.Exp(b.Sub(m.dot(q, k), lse))
		ds := b.Mul(p, b.Sub(m.dot(dy, m.load("v", m.row(values, "v", j), m.E)), delta))
		m.add(acc, nil, k, ds)
	})
	m.store("dq", m.row(m.rows(h, "dq"), "dq", query), m.scaled(m.get(acc), m.scale))
}

// key computes the gradients of a key and its value.
func (m *attentionEmitter) key(h attentionHead, key ir.Value) {
	b := m.b
	queries, results, gradients := m.rows(h, "q"), m.rows(h, "out"), m.rows(h, "dout")
	k := m.scaled(m.load("k", m.row(m.rows(h, "k"), "k", key), m.D), m.scale)
	v := m.load("v", m.row(m.rows(h, "v"), "v", key), m.E)
	dk, dv := m.newSums(m.D), m.newSums(m.E)
	first := b.U32(0)
	if m.Causal {
		first = key
	}
	b.For(first, m.geo["queries"], b.U32(1), func(i ir.Value) {
		q := m.load("q", m.row(queries, "q", i), m.D)
		dy := m.load("dout", m.row(gradients, "dout", i), m.E)
		delta := m.dot(dy, m.load("out", m.row(results, "out", i), m.E))
		p := b.Exp(b.Sub(m.dot(q, k), b.Load(m.lse, b.Add(h.lse, i), 1)))
		m.add(dv, nil, dy, p)
		m.add(dk, nil, q, b.Mul(p, b.Sub(m.dot(dy, v), delta)))
	})
	m.store("dk", m.row(m.rows(h, "dk"), "dk", key), m.scaled(m.get(dk), m.scale))
	m.store("dv", m.row(m.rows(h, "dv"), "dv", key), m.get(dv))
}
