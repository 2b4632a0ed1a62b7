package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// elementShape is how an elementwise kernel divides the work. A chunk is width consecutive elements of the inner
// dimension; an invocation does one chunk (vectors of them over one dimension).
type elementShape struct {
	width   int
	local   int
	vectors int
	tiled   bool // invocations go along the last but one dimension first
	blocked bool // a workgroup stays in one row, so that only group numbers are divided
	tail    bool // the inner dimension may end within a chunk
	mixed   int  // chunks that an invocation does at once, their instructions interleaved; 0 is one
}

// A CPU looks a few hundred instructions ahead. A long body alone fills that, and where each of its operators waits for the one
// before, as in a chain of nine tanh, the units idle: interleaving the instructions of four chunks made that chain 2.7 times
// as fast on PoCL. longBody is the number of operators of such a body, and longBuffers bounds the operands, which
// take registers.
const (
	longBody    = 6
	longBuffers = 8
	mixedChunks = 4
)

func (p *plan) long() bool {
	return len(p.dims) == 1 && len(p.e.Ops) >= longBody && len(p.operands) <= longBuffers
}

// shape chooses the division. It depends on the plan only through what is in the key.
func (p *plan) shape(t Target) elementShape {
	c := t.config()
	s := elementShape{width: c.width, local: c.local, vectors: 1}
	for _, o := range p.operands {
		if o.kind.Size() == 8 {
			s.width = min(s.width, 8) // registers
		}
	}
	units, align := 0, ir.MaxLanes
	for _, g := range p.groups {
		if g.inner() == 1 {
			units++
			align = min(align, g.align)
		}
	}
	onGPU := t.class() == gpu
	if onGPU {
		// Lanes side by side beat long lanes: without aligned vectors, neighbours read neighbours.
		s.width = min(s.width, align)
		if units == 0 {
			s.width = 1
		}
	}
	if len(p.dims) == 1 {
		s.vectors = c.vectors
		if p.long() && t.class() == openclCPU {
			s.mixed = mixedChunks
		}
		s.tail = s.width > 1 && p.inner()%ir.MaxLanes != 0
		return s
	}
	if t.class() == blockCPU {
		if s.blocked = p.sizeClass() >= longRow; !s.blocked && units > 0 {
			s.width = min(t.Caps.MaxLanes, align, pow2Factor(p.inner()))
		}
		return s
	}
	s.width = min(s.width, p.sizeClass())
	if onGPU {
		s.width = min(s.width, pow2Factor(p.inner()))
	}
	s.tail = pow2Factor(p.inner()) < s.width
	s.tiled = p.tiled && s.width > 1
	if chunks := p.sizeClass() / s.width; chunks >= 32 && !s.tiled {
		s.blocked = true
		s.local = min(s.local, chunks)
	}
	return s
}

// groups returns the number of workgroups.
func (s elementShape) groups(p *plan) uint64 {
	chunks := uint64(ceilDiv(p.inner(), s.width))
	local := uint64(s.local)
	if s.blocked {
		return (chunks + local - 1) / local * uint64(p.rows())
	}
	local *= uint64(s.vectors)
	local *= uint64(max(s.mixed, 1))
	return (chunks*uint64(p.rows()) + local - 1) / local
}

// emitter builds the kernel of a plan.
type emitter struct {
	*plan
	s       elementShape
	b       *ir.Builder
	mems    []*ir.Mem // of inputs and outputs
	geo     map[string]ir.Value
	scalars []ir.Value
}

func newEmitter(p *plan, t Target) *emitter { return &emitter{plan: p, s: p.shape(t)} }

func (m *emitter) build() (*ir.Kernel, error) {
	e := m.e
	m.b = ir.NewBuilder(kernelName(e.Name, "elementwise"), m.s.local, 1, 1)
	b := m.b
	b.SetOps(e.Ops...)
	for i, o := range e.In {
		m.mems = append(m.mems, b.Buffer(fmt.Sprintf("in%d", i), o.Kind, ir.Read))
	}
	for i, o := range e.Out {
		m.mems = append(m.mems, b.Buffer(fmt.Sprintf("out%d", i), o.Kind, ir.Write))
	}
	m.geo = map[string]ir.Value{}
	for i, g := range m.geometry {
		if i < m.params {
			m.geo[g.name] = b.Param(g.name, ir.U32)
		} else {
			m.geo[g.name] = b.Named(b.U32(g.value), g.name)
		}
	}
	m.scalars = scalarParams(b, e.Scalars)
	if len(m.dims) == 1 {
		m.contiguous()
	} else {
		m.general()
	}
	return b.Build()
}

// contiguous walks through one dimension.
func (m *emitter) contiguous() {
	b, s := m.b, m.s
	n := m.geo["n"]
	full := b.Div(n, b.U32(uint32(s.width)))
	bases := make([]ir.Value, len(m.groups))
	for i, g := range m.groups {
		if g.offset != 0 {
			bases[i] = m.geo[fmt.Sprintf("g%d_offset", i)]
		}
	}
	one := func(chunk ir.Value) {
		b.If(b.Lt(chunk, full), func() { m.chunk(bases, chunk, s.width) }, func() {
			if s.tail {
				b.If(b.Eq(chunk, full), func() { m.tailOf(bases, chunk) }, nil)
			}
		})
	}
	if s.mixed > 0 {
		count := b.U32(uint32(s.mixed))
		first := b.Mul(b.LinearID(), count)
		end := b.Add(first, count)
		b.If(b.Le(end, full), func() {
			var parts []func()
			for i := range s.mixed {
				parts = append(parts, func() { m.chunk(bases, advance(b, first, i, nil), s.width) })
			}
			b.Interleave(parts...)
		}, func() { b.For(first, end, b.U32(1), one) })
		return
	}
	if s.vectors == 1 {
		one(b.LinearID())
		return
	}
	local := uint32(s.local)
	first := b.Add(b.Mul(b.LinearGroup(), b.U32(local*uint32(s.vectors))), b.LocalID(0))
	b.Range(b.U32(uint32(s.vectors)), func(i ir.Value) { one(b.Add(first, b.Mul(i, b.U32(local)))) })
}

// general walks through several dimensions: the inner one in chunks, the others by dividing the row's number.
func (m *emitter) general() {
	b, s := m.b, m.s
	n := m.geo["n"]
	width := b.U32(uint32(s.width))
	chunks := b.Div(b.Add(n, b.U32(uint32(s.width-1))), width)
	var row, chunk ir.Value
	switch {
	case s.tiled:
		// row = outer*size + along, where size is that of the last but one dimension.
		id, size := b.LinearID(), m.geo["rows"]
		if d := len(m.dims) - 2; d > 0 {
			size = m.geo[fmt.Sprintf("d%d", d)]
		}
		along, rest := b.Rem(id, size), b.Div(id, size)
		chunk = b.Rem(rest, chunks)
		row = b.Add(b.Mul(b.Div(rest, chunks), size), along)
	case s.blocked:
		local := b.U32(uint32(s.local))
		blocks := b.Div(b.Add(chunks, b.U32(uint32(s.local-1))), local)
		group := b.LinearGroup()
		row = b.Div(group, blocks)
		chunk = b.Add(b.Mul(b.Rem(group, blocks), local), b.LocalID(0))
	default:
		id := b.LinearID()
		row, chunk = b.Div(id, chunks), b.Rem(id, chunks)
	}
	b.Named(row, "row")
	b.If(b.Lt(row, m.geo["rows"]), func() {
		bases := m.bases(row)
		whole := func() { m.chunk(bases, chunk, s.width) }
		end := b.Div(n, width)
		rest := func() {
			if s.tail {
				b.If(b.Eq(chunk, end), func() { m.tailOf(bases, chunk) }, nil)
			}
		}
		switch {
		case !s.blocked && !s.tail:
			whole()
		case !s.blocked:
			b.If(b.Lt(chunk, end), whole, func() { m.tailOf(bases, chunk) })
		default:
			b.If(b.Lt(chunk, end), whole, rest)
		}
	}, nil)
}

// bases returns where a row starts for each address; nil is 0.
func (m *emitter) bases(row ir.Value) []ir.Value {
	b := m.b
	out := make([]ir.Value, len(m.groups))
	add := func(i int, v ir.Value) {
		if out[i] == nil {
			out[i] = v
		} else {
			out[i] = b.Add(out[i], v)
		}
	}
	for i, g := range m.groups {
		if g.offset != 0 {
			add(i, m.geo[fmt.Sprintf("g%d_offset", i)])
		}
	}
	rest := row
	for d := len(m.dims) - 2; d >= 0; d-- {
		at := rest
		if d > 0 {
			size := m.geo[fmt.Sprintf("d%d", d)]
			at, rest = b.Rem(rest, size), b.Div(rest, size)
		}
		for i, g := range m.groups {
			if g.strides[d] != 0 {
				add(i, b.Mul(at, m.geo[fmt.Sprintf("g%d_stride%d", i, d)]))
			}
		}
	}
	return out
}

// tailOf does the elements of an incomplete chunk one by one.
func (m *emitter) tailOf(bases []ir.Value, chunk ir.Value) {
	b := m.b
	b.For(b.Mul(chunk, b.U32(uint32(m.s.width))), m.geo["n"], b.U32(1), func(col ir.Value) { m.elements(bases, col, 1) })
}

func (m *emitter) chunk(bases []ir.Value, chunk ir.Value, width int) {
	col := chunk
	if width > 1 {
		col = m.b.Mul(chunk, m.b.U32(uint32(width)))
	}
	m.elements(bases, col, width)
}

// elements computes lanes elements from column col of a row on.
func (m *emitter) elements(bases []ir.Value, col ir.Value, lanes int) {
	b, e := m.b, m.e
	index := make([]ir.Value, len(m.groups))
	stride := make([]ir.Value, len(m.groups))
	how := make([]access, len(m.groups))
	for i, g := range m.groups {
		at := col
		switch inner := g.inner(); {
		case inner == 0:
			at, how[i] = nil, accessSplat
		case inner != 1:
			stride[i], how[i] = m.geo[fmt.Sprintf("g%d_stride%d", i, len(m.dims)-1)], accessGather
			at = b.Mul(col, stride[i])
		case g.align < lanes:
			how[i] = accessGather
		}
		switch {
		case at == nil && bases[i] == nil:
			index[i] = b.U32(0)
		case at == nil:
			index[i] = bases[i]
		case bases[i] == nil:
			index[i] = at
		default:
			index[i] = b.Add(bases[i], at)
		}
	}
	var in []ir.Value
	for i, o := range e.In {
		g := m.operands[i].group
		in = append(in, b.Named(load(b, m.mems[i], o, index[g], lanes, how[g], stride[g]), fmt.Sprintf("x%d", i)))
	}
	if e.Index {
		g := m.operands[len(m.operands)-1].group
		v := index[g]
		if lanes > 1 {
			parts := make([]ir.Value, lanes)
			for i := range parts {
				parts[i] = advance(b, v, i, stride[g])
			}
			v = b.Vec(parts...)
		}
		in = append(in, b.Named(v, "index"))
	}
	out := e.Body(b, in, m.scalars)
	if len(out) != len(e.Out) {
		b.Fail(fmt.Errorf("the body returned %d values for %d outputs", len(out), len(e.Out)))
		return
	}
	for i, o := range e.Out {
		g := m.operands[len(e.In)+i].group
		store(b, m.mems[len(e.In)+i], o, index[g], out[i], lanes, how[g], stride[g])
	}
}
