package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// reduceEmitter builds the kernel of a reduction.
type reduceEmitter struct {
	*Reduce
	reducePlan
	t       Target
	s       reduceShape
	b       *ir.Builder
	red     reducer
	in      []*ir.Mem
	out     *ir.Mem
	group   ir.Value // the workgroup's number among those of this reduction
	prefix  string   // of the names of buffers and parameters
	suffix  string   // of the names of workgroup memory
	from    ir.Value // where in its row the current piece starts; nil is 0
	geo     map[string]ir.Value
	scalars []ir.Value
}

func (m *reduceEmitter) build() (*ir.Kernel, error) {
	m.s = m.shape(m.Reduce, m.t)
	m.b = ir.NewBuilder(kernelName(m.Name, "reduce_"+m.Op.String()), m.s.local, 1, 1)
	m.b.SetOps(m.Ops...)
	if err := m.prepare(); err != nil {
		return nil, err
	}
	m.emit()
	return m.b.Build()
}

// prepare declares buffers and parameters in m.b.
func (m *reduceEmitter) prepare() error {
	kind, err := m.elementKind()
	if err != nil {
		return err
	}
	m.red = reducer{b: m.b, op: m.Op, kind: m.Op.accumulatorKind(kind, m.Out.Kind)}
	m.declare()
	return nil
}

// linearGroup is the workgroup's number among those of this reduction.
func (m *reduceEmitter) linearGroup() ir.Value {
	if m.group != nil {
		return m.group
	}
	return m.b.LinearGroup()
}

// linearID is the invocation's number among those of this reduction.
func (m *reduceEmitter) linearID() ir.Value {
	if m.group != nil {
		return m.b.Add(m.b.Mul(m.group, m.b.U32(uint32(m.s.local))), m.b.LocalID(0))
	}
	return m.b.LinearID()
}

// emit appends the reduction's instructions.
func (m *reduceEmitter) emit() {
	switch {
	case m.Inner == 1 && m.s.lanes == 1:
		m.rowPerInvocation()
	case m.Inner == 1:
		m.rowPerLanes()
	case m.s.lanes == 1:
		m.columnPerInvocation()
	default:
		m.columnPerLanes()
	}
}

func (m *reduceEmitter) declare() {
	b := m.b
	m.in = nil
	for i, o := range m.In {
		kind := o.Kind
		if m.pairs.read != ir.Void {
			kind = ir.U32
		}
		m.in = append(m.in, b.Buffer(fmt.Sprintf("%sin%d", m.prefix, i), kind, ir.Read))
	}
	kind := m.Out.Kind
	if m.pairs.write {
		kind = ir.U32
	}
	m.out = b.Buffer(m.prefix+"out", kind, ir.Write)
	m.geo = map[string]ir.Value{}
	for _, g := range m.values(m.Reduce) {
		kind := ir.U32
		if g.name == "count" {
			kind = ir.F32
		}
		m.geo[g.name] = b.Param(m.prefix+g.name, kind)
	}
	m.scalars = scalarParams(b, m.Scalars)
}

// elementKind finds the kind of the values that are reduced by building one of them in a scratch kernel.
func (m *reduceEmitter) elementKind() (ir.Kind, error) {
	switch {
	case m.pairs.read != ir.Void:
		return m.pairs.read, nil
	case m.Prologue == nil:
		return m.In[0].ValueKind(), nil
	}
	scratch := reduceEmitter{Reduce: m.Reduce, reducePlan: m.reducePlan, b: ir.NewBuilder("scratch", 1, 1, 1)}
	scratch.declare()
	v := scratch.input(scratch.b.U32(0), 1, accessVector)
	if err := scratch.b.Err(); err != nil {
		return ir.Void, err
	}
	if v == nil {
		return ir.Void, fmt.Errorf("the prologue returned no value")
	}
	return v.Type.Kind, nil
}

// input loads and maps lanes elements from index on.
func (m *reduceEmitter) input(index ir.Value, lanes int, how access) ir.Value {
	in := make([]ir.Value, len(m.In))
	for i, o := range m.In {
		in[i] = load(m.b, m.in[i], o, index, lanes, how, nil)
	}
	if m.Prologue == nil {
		return in[0]
	}
	v := m.Prologue(m.b, in, m.scalars)
	if v == nil {
		m.b.Fail(fmt.Errorf("the prologue returned no value"))
		return in[0]
	}
	return m.b.Splat(v, lanes)
}

// element makes the partial of lanes elements from index on; position is their place in the row (see reducer.element).
func (m *reduceEmitter) element(index ir.Value, lanes int, how access, position ir.Value, sameRow bool) partial {
	if m.pairs.read != ir.Void {
		return m.readPair(index)
	}
	return m.red.element(m.input(index, lanes, how), position, sameRow)
}

// piece returns where a row's elements start (before the column is added) and how many there are, for row number row.
func (m *reduceEmitter) piece(row ir.Value) (start, length ir.Value) {
	b := m.b
	length = m.geo["n"]
	if m.pieces > 1 {
		m.from = b.Mul(b.Rem(row, m.geo["pieces"]), length)
		start = b.Add(b.Mul(b.Div(row, m.geo["pieces"]), m.geo["whole"]), m.from)
		length = b.Min(length, b.Sub(m.geo["whole"], m.from))
	} else {
		start = b.Mul(row, length)
	}
	if m.Inner != 1 {
		start = b.Mul(start, m.geo["inner"])
	}
	return start, length
}

// finish maps the reduced value and stores it.
func (m *reduceEmitter) finish(index ir.Value, p partial, lanes int, how access) {
	if m.pairs.write {
		m.writePair(index, p, lanes)
		return
	}
	store(m.b, m.out, m.Out, index, m.result(p), lanes, how, nil)
}

// result maps the reduced value to what is stored.
func (m *reduceEmitter) result(p partial) ir.Value {
	b, v := m.b, p.value
	switch {
	case m.Op.isArg():
		v = b.Convert(p.index, ir.I64)
	case m.Op.isLogic():
		v = b.Ne(v, b.ConstLike(v, 0))
	}
	if m.Epilogue != nil {
		return m.Epilogue(b, v, m.geo["count"], m.scalars)
	}
	return m.toOutput(v)
}

// toOutput converts a reduced value to the kind of the output.
func (m *reduceEmitter) toOutput(v ir.Value) ir.Value {
	b, want := m.b, m.Out.ValueKind()
	switch {
	case v.Type.Kind == want:
		return v
	case want == ir.Bool:
		return b.Ne(v, b.ConstLike(v, 0))
	case v.Type.Kind == ir.Bool:
		v = m.red.fromBool(v)
	}
	return b.Convert(v, want)
}

// rowPerInvocation: an invocation reduces a row by itself, with a vector of accumulators.
func (m *reduceEmitter) rowPerInvocation() {
	b, r, width := m.b, m.red, m.s.width
	row := m.linearID()
	how := accessVector
	if m.align < width {
		how = accessGather
	}
	b.If(b.Lt(row, m.geo["rows"]), func() {
		start, n := m.piece(row)
		full := n
		tail := width > 1 && pow2Factor(m.N) < width
		if tail {
			full = b.Mul(b.Div(n, b.U32(uint32(width))), b.U32(uint32(width)))
		}
		p := r.lanes(r.loopSums(width, b.U32(0), full, uint32(width), m.t.rowSums(m.N, width), func(i ir.Value) partial {
			return m.element(b.Add(start, i), width, how, i, false)
		}))
		if tail {
			v := r.variable(p)
			b.For(full, n, b.U32(1), func(i ir.Value) {
				r.fold(v, m.element(b.Add(start, i), 1, accessVector, i, false))
			})
			p = r.get(v)
		}
		m.finish(row, p, 1, accessVector)
	}, nil)
}

// rowPerLanes: lanes of a workgroup share a row and join their partials in workgroup memory.
func (m *reduceEmitter) rowPerLanes() {
	b, r, s := m.b, m.red, m.s
	lid := b.LocalID(0)
	lanes := b.U32(uint32(s.lanes))
	rank := b.Rem(lid, lanes)
	row := b.Add(b.Mul(m.linearGroup(), b.U32(uint32(s.local/s.lanes))), b.Div(lid, lanes))
	inside := b.Lt(row, m.geo["rows"])
	start, n := m.piece(b.Select(inside, row, b.U32(0)))
	n = b.Select(inside, n, b.U32(0))
	width := uint32(s.width)
	p := r.loop(s.width, b.Mul(rank, b.U32(width)), n, uint32(s.lanes)*width, func(i ir.Value) partial {
		return m.element(b.Add(start, i), s.width, accessVector, i, false)
	})
	p = newTree(m.t, r, s.local, s.lanes, 1, m.suffix).first(r.lanes(p), lid, rank)
	b.If(b.And(inside, b.Eq(rank, b.U32(0))), func() { m.finish(row, p, 1, accessVector) }, nil)
}

// columnPerInvocation: an invocation reduces a vector of neighbouring columns.
func (m *reduceEmitter) columnPerInvocation() {
	b, r, width := m.b, m.red, m.s.width
	inner := m.geo["inner"]
	w := b.U32(uint32(width))
	chunks := b.Div(b.Add(inner, b.U32(uint32(width-1))), w)
	var row, chunk ir.Value
	if m.s.blocked {
		local := b.U32(uint32(m.s.local))
		blocks := b.Div(b.Add(chunks, b.U32(uint32(m.s.local-1))), local)
		group := m.linearGroup()
		row = b.Div(group, blocks)
		chunk = b.Add(b.Mul(b.Rem(group, blocks), local), b.LocalID(0))
	} else {
		id := m.linearID()
		row, chunk = b.Div(id, chunks), b.Rem(id, chunks)
	}
	how := accessVector
	if m.align < width {
		how = accessGather
	}
	b.If(b.Lt(row, m.geo["rows"]), func() {
		start, n := m.piece(row)
		first := b.Mul(chunk, w)
		outRow := b.Mul(row, inner)
		columns := func(col ir.Value, lanes int, how access) {
			at := b.Add(start, col)
			p := r.loop(lanes, b.U32(0), n, 1, func(j ir.Value) partial {
				return m.element(b.Add(at, b.Mul(j, inner)), lanes, how, j, true)
			})
			m.finish(b.Add(outRow, col), p, lanes, how)
		}
		if m.s.blocked {
			b.If(b.Lt(chunk, chunks), func() { columns(first, width, how) }, nil)
			return
		}
		if width == 1 || m.align >= width {
			columns(first, width, how)
			return
		}
		b.If(b.Le(b.Add(first, w), inner), func() { columns(first, width, how) }, func() {
			b.For(first, inner, b.U32(1), func(col ir.Value) { columns(col, 1, accessVector) })
		})
	}, nil)
}

// columnPerLanes: a workgroup has some neighbouring columns; several lanes share each and join in workgroup memory.
func (m *reduceEmitter) columnPerLanes() {
	b, r, s := m.b, m.red, m.s
	perGroup := s.local / s.lanes
	width := b.U32(uint32(perGroup))
	inner := m.geo["inner"]
	lid, group := b.LocalID(0), m.linearGroup()
	blocks := b.Div(b.Add(inner, b.U32(uint32(perGroup-1))), width)
	row := b.Div(group, blocks)
	col := b.Add(b.Mul(b.Rem(group, blocks), width), b.Rem(lid, width))
	rank := b.Div(lid, width)
	inside := b.And(b.Lt(row, m.geo["rows"]), b.Lt(col, inner))
	start, n := m.piece(b.Select(inside, row, b.U32(0)))
	n = b.Select(inside, n, b.U32(0))
	at := b.Add(start, col)
	p := r.loop(1, rank, n, uint32(s.lanes), func(j ir.Value) partial {
		return m.element(b.Add(at, b.Mul(j, inner)), 1, accessVector, j, true)
	})
	p = newTree(m.t, r, s.local, s.lanes, perGroup, m.suffix).first(p, lid, rank)
	b.If(b.And(inside, b.Eq(rank, b.U32(0))), func() {
		m.finish(b.Add(b.Mul(row, inner), col), p, 1, accessVector)
	}, nil)
}
