package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// rowsEmitter builds a rows kernel.
type rowsEmitter struct {
	*Rows
	*rowsPlan
	t       Target
	b       *ir.Builder
	mems    []*ir.Mem
	geo     map[string]ir.Value
	scalars [][]ir.Value // of each step

	first  []int // each step's first value
	step   []int // the step of each value
	level  []bool
	depth  []int // of each value: reductions that it waits for, one after the other
	needed []bool
	last   int // the depth of the last pass

	bases  []ir.Value // of each operand in the current row
	values []ir.Value // of the row, as far as they are computed
	ops    []Operand  // of values: how they are stored
	inside ir.Value   // whether the row exists; nil: it does
	rank   ir.Value   // the lane's number among those of a row; nil: there is one
}

func newRowsEmitter(r *Rows, p *rowsPlan, t Target) *rowsEmitter {
	return &rowsEmitter{Rows: r, rowsPlan: p, t: t, b: ir.NewBuilder(kernelName(r.Name, "rows"), p.shape.local, 1, 1), geo: map[string]ir.Value{}}
}

func (m *rowsEmitter) build() (*ir.Kernel, error) {
	b := m.b
	b.SetOps(m.Ops...)
	for i, o := range m.In {
		m.mems = append(m.mems, b.Buffer(fmt.Sprintf("in%d", i), o.Kind, ir.Read))
	}
	for i, o := range m.Results {
		m.mems = append(m.mems, b.Buffer(fmt.Sprintf("out%d", i), o.Out.Kind, ir.Write))
	}
	for i, g := range m.geometry {
		if i < m.params {
			m.geo[g.name] = b.Param(g.name, ir.U32)
		} else {
			m.geo[g.name] = b.Named(b.U32(g.value), g.name)
		}
	}
	scalars := scalarParams(b, m.Scalars)
	for _, s := range m.Steps {
		n := 0
		if s.Reduce != nil {
			n = len(s.Reduce.Scalars)
		} else {
			n = len(s.Elementwise.Scalars)
		}
		if n > len(scalars) {
			return nil, fmt.Errorf("the steps have more scalars than the kernel's %d", len(m.Scalars))
		}
		m.scalars, scalars = append(m.scalars, scalars[:n:n]), scalars[n:]
	}
	if err := m.analyse(); err != nil {
		return nil, err
	}
	if m.shape.lanes > 1 {
		m.rowPerLanes()
	} else {
		row := b.LinearID()
		b.If(b.Lt(row, m.geo["rows"]), func() { m.row(row, nil) }, nil)
	}
	return b.Build()
}

// analyse finds the depth of each value and which values are needed.
func (m *rowsEmitter) analyse() error {
	m.level = m.levels()
	for i, s := range m.Steps {
		m.first = append(m.first, len(m.depth))
		d := 0
		for _, w := range s.Wires {
			if w < 0 {
				if ^w >= len(m.depth) {
					return fmt.Errorf("step %d uses a value that is computed later", i)
				}
				d = max(d, m.depth[^w])
			}
		}
		outs := []Operand{}
		if s.Reduce != nil {
			d, outs = d+1, append(outs, s.Reduce.Out)
		} else {
			outs = append(outs, s.Elementwise.Out...)
		}
		for _, o := range outs {
			m.depth, m.step, m.ops = append(m.depth, d), append(m.step, i), append(m.ops, o)
		}
	}
	m.needed = make([]bool, len(m.depth))
	var need func(v int)
	need = func(v int) {
		if m.needed[v] {
			return
		}
		m.needed[v] = true
		for _, w := range m.Steps[m.step[v]].Wires {
			if w < 0 {
				need(^w)
			}
		}
	}
	for _, r := range m.Results {
		need(r.Value)
	}
	for v, d := range m.depth {
		if m.needed[v] {
			m.last = max(m.last, d)
		}
	}
	return nil
}

func (m *rowsEmitter) rowPerLanes() {
	b, lanes := m.b, b32(m.b, m.shape.lanes)
	lid := b.LocalID(0)
	m.rank = b.Rem(lid, lanes)
	row := b.Add(b.Mul(b.LinearGroup(), b32(b, m.shape.local/m.shape.lanes)), b.Div(lid, lanes))
	m.inside = b.Lt(row, m.geo["rows"])
	m.row(b.Select(m.inside, row, b.U32(0)), lid)
}

func b32(b *ir.Builder, n int) ir.Value { return b.U32(uint32(n)) }

// row computes a row: pass after pass, each up to the reductions of one depth.
func (m *rowsEmitter) row(row, lid ir.Value) {
	b := m.b
	m.findBases(row)
	m.values = make([]ir.Value, len(m.depth))
	for pass := 0; pass <= m.last; pass++ {
		var reds []int
		for i, s := range m.Steps {
			if s.Reduce != nil && m.needed[m.first[i]] && m.depth[m.first[i]] == pass+1 {
				reds = append(reds, i)
			}
		}
		var outs []int // results that are complete with this pass
		for i, r := range m.Results {
			if !m.level[r.Value] && m.depth[r.Value] == pass {
				outs = append(outs, i)
			}
		}
		m.ofRow(pass)
		if len(reds)+len(outs) > 0 {
			m.pass(reds, outs, lid)
		}
	}
	m.ofRow(m.last)
	write := func() {
		for i, r := range m.Results {
			if m.level[r.Value] {
				k := len(m.In) + i
				store(b, m.mems[k], r.Out, m.bases[k], m.values[r.Value], 1, accessVector, nil)
			}
		}
	}
	if m.rank == nil {
		write()
		return
	}
	b.If(b.And(m.inside, b.Eq(m.rank, b.U32(0))), write, nil)
}

// findBases works out where the row's elements start in each operand.
func (m *rowsEmitter) findBases(row ir.Value) {
	b := m.b
	m.bases = make([]ir.Value, len(m.places))
	at := make([]ir.Value, len(m.dims))
	rest := row
	for d := len(m.dims) - 1; d >= 0; d-- {
		if at[d] = rest; d > 0 {
			size := m.geo[fmt.Sprintf("d%d", d)]
			at[d], rest = b.Rem(rest, size), b.Div(rest, size)
		}
	}
	for i, g := range m.places {
		base := b.U32(0)
		if g.offset != 0 {
			base = m.geo[fmt.Sprintf("g%d_offset", i)]
		}
		for d, s := range g.lead {
			switch {
			case s == 0:
			case len(m.dims) == 1 && s == 1:
				base = b.Add(base, at[d])
			case len(m.dims) == 1 && s == m.n:
				base = b.Add(base, b.Mul(at[d], m.geo["n"]))
			default:
				base = b.Add(base, b.Mul(at[d], m.geo[fmt.Sprintf("g%d_stride%d", i, d)]))
			}
		}
		m.bases[i] = base
	}
}

// ofRow computes the elementwise values of the row that wait for no more than depth reductions.
func (m *rowsEmitter) ofRow(depth int) {
	for v := range m.values {
		s := m.Steps[m.step[v]]
		if m.values[v] != nil || !m.needed[v] || !m.level[v] || s.Reduce != nil || m.depth[v] > depth || v != m.first[m.step[v]] && m.values[m.first[m.step[v]]] != nil {
			continue
		}
		out := m.apply(m.step[v], func(w int) ir.Value {
			if w < 0 {
				return m.values[^w]
			}
			return load(m.b, m.mems[w], m.In[w], m.bases[w], 1, accessVector, nil)
		}, func() ir.Value { return m.b.U32(0) }, 1)
		copy(m.values[m.first[m.step[v]]:], out)
	}
}

// apply runs an elementwise step and returns its values as they would be read again after they were stored.
func (m *rowsEmitter) apply(step int, operand func(w int) ir.Value, index func() ir.Value, lanes int) []ir.Value {
	b, s := m.b, m.Steps[step]
	var args []ir.Value
	for _, w := range s.Wires {
		args = append(args, operand(w))
	}
	if s.Elementwise.Index {
		args = append(args, index())
	}
	out := s.Elementwise.Body(b, args, m.scalars[step])
	if len(out) != len(s.Elementwise.Out) {
		b.Fail(fmt.Errorf("the body of %s returned %d values for %d outputs", s.Elementwise.Name, len(out), len(s.Elementwise.Out)))
		return make([]ir.Value, len(s.Elementwise.Out))
	}
	for i, v := range out {
		if v = Remembered(b, v, s.Elementwise.Out[i]); v == nil {
			b.Fail(fmt.Errorf("the body of %s returned no value of kind %s", s.Elementwise.Name, s.Elementwise.Out[i].ValueKind()))
			return out
		}
		out[i] = b.Splat(v, lanes)
	}
	return out
}

// Remembered returns a value as it would be read again after it was stored: rounded to the operand's kind. It returns nil for a value that
// could not be stored.
func Remembered(b *ir.Builder, v ir.Value, o Operand) ir.Value {
	if v == nil {
		return nil
	}
	kind := o.ValueKind()
	if v.Type.Kind == ir.Bool && o.Kind == ir.U8 && !o.Bool {
		i32 := v.Type.With(ir.I32)
		return b.Select(v, b.ConstBits(i32, 1), b.ConstBits(i32, 0))
	}
	if v.Type.Kind != kind {
		return nil
	}
	switch {
	case o.Kind == ir.F16 || o.Kind == ir.BF16:
		return b.Convert(b.Convert(v, o.Kind), kind)
	case o.Kind == ir.U8 && !o.Bool:
		return b.And(v, b.ConstLike(v, 255))
	}
	return v
}

// chunk is some neighbouring elements of the row while a pass visits them.
type chunk struct {
	m      *rowsEmitter
	col    ir.Value // of the first one
	lanes  int
	values map[int][]ir.Value // of steps
	loaded map[int]ir.Value
}

func (c *chunk) operand(w int) ir.Value {
	m := c.m
	if w < 0 {
		v := ^w
		if m.level[v] {
			return m.b.Splat(m.values[v], c.lanes)
		}
		return c.value(v)
	}
	if v := c.loaded[w]; v != nil {
		return v
	}
	v := load(m.b, m.mems[w], m.In[w], c.at(w), c.lanes, c.how(w), m.geo[fmt.Sprintf("g%d_inner", w)])
	c.loaded[w] = v
	return v
}

func (c *chunk) how(i int) access {
	g := c.m.places[i]
	switch {
	case c.lanes == 1:
		return accessVector
	case g.inner == 0:
		return accessSplat
	case g.inner != 1 || !c.m.aligned(g):
		return accessGather
	}
	return accessVector
}

func (c *chunk) at(i int) ir.Value {
	b, g := c.m.b, c.m.places[i]
	switch g.inner {
	case 0:
		return c.m.bases[i]
	case 1:
		return b.Add(c.m.bases[i], c.col)
	}
	return b.Add(c.m.bases[i], b.Mul(c.col, c.m.geo[fmt.Sprintf("g%d_inner", i)]))
}

// value computes a value of elements, with what it needs.
func (c *chunk) value(v int) ir.Value {
	m := c.m
	step := m.step[v]
	out := c.values[step]
	if out == nil {
		out = m.apply(step, c.operand, func() ir.Value { return iota32(m.b, c.at(len(m.places)-1), c.lanes) }, c.lanes)
		c.values[step] = out
	}
	return out[v-m.first[step]]
}

// partial is the element of a reduction.
func (c *chunk) partial(red reducer, step int) partial {
	m, s := c.m, c.m.Steps[step]
	var args []ir.Value
	for _, w := range s.Wires {
		args = append(args, c.operand(w))
	}
	x := args[0]
	if s.Reduce.Prologue != nil {
		if x = s.Reduce.Prologue(m.b, args, m.scalars[step]); x == nil {
			m.b.Fail(fmt.Errorf("the prologue of %s returned no value", s.Reduce.Name))
			x = args[0]
		}
		x = m.b.Splat(x, c.lanes)
	}
	return red.element(x, c.col, false)
}

// pass visits the row: it reduces, and writes the results that can be computed by now.
func (m *rowsEmitter) pass(steps, outs []int, lid ir.Value) {
	b := m.b
	width, n := m.shape.width, m.geo["n"]
	var reds []reducer
	var emitters []*reduceEmitter
	for _, i := range steps {
		r := m.Steps[i].Reduce
		e := &reduceEmitter{Reduce: r, reducePlan: r.plan(), b: b, geo: map[string]ir.Value{}, scalars: m.scalars[i]}
		kind, err := e.elementKind()
		if err != nil {
			b.Fail(err)
			return
		}
		e.red = reducer{b: b, op: r.Op, kind: r.Op.accumulatorKind(kind, r.Out.Kind), anyNaN: r.anyNaN && m.t.missesNaN()}
		e.geo["count"] = b.Convert(n, ir.F32)
		reds, emitters = append(reds, e.red), append(emitters, e)
	}
	visit := func(col ir.Value, lanes int) []partial {
		c := &chunk{m: m, col: col, lanes: lanes, values: map[int][]ir.Value{}, loaded: map[int]ir.Value{}}
		var parts []partial
		for j, i := range steps {
			parts = append(parts, c.partial(reds[j], i))
		}
		for _, i := range outs {
			k := len(m.In) + i
			store(b, m.mems[k], m.Results[i].Out, c.at(k), c.value(m.Results[i].Value), lanes, c.how(k), nil)
		}
		return parts
	}
	lo, hi, stride := b.U32(0), n, uint32(width)
	if m.rank != nil {
		lo, hi, stride = b.Mul(m.rank, b32(b, width)), b.Select(m.inside, n, b.U32(0)), uint32(width*m.shape.lanes)
	}
	tail := m.rank == nil && width > 1 && pow2Factor(m.n) < width
	if tail {
		hi = b.Mul(b.Div(n, b32(b, width)), b32(b, width))
	}
	parts := loopAll(b, reds, width, lo, hi, stride, m.sums, func(i ir.Value) []partial { return visit(i, width) })
	for j := range parts {
		parts[j] = reds[j].lanes(parts[j])
	}
	if tail {
		vars := make([]partialVar, len(parts))
		for j, p := range parts {
			vars[j] = reds[j].variable(p)
		}
		b.For(hi, n, b.U32(1), func(i ir.Value) {
			for j, p := range visit(i, 1) {
				reds[j].fold(vars[j], p)
			}
		})
		for j := range parts {
			parts[j] = reds[j].get(vars[j])
		}
	}
	for j, i := range steps {
		if m.rank != nil {
			parts[j] = newTree(m.t, reds[j], m.shape.local, m.shape.lanes, 1, fmt.Sprint(i)).all(parts[j], lid, m.rank)
		}
		v := Remembered(b, emitters[j].result(parts[j]), m.Steps[i].Reduce.Out)
		if v == nil {
			b.Fail(fmt.Errorf("%s returned no value of kind %s", m.Steps[i].Reduce.Name, m.Steps[i].Reduce.Out.ValueKind()))
			return
		}
		m.values[m.first[i]] = v
	}
}

// loopAll is [reducer.loop] for several reductions at once. Each has some partial results (a divisor of sumBlock) that elements go to in turn, so that
// they do not wait for each other; hi-lo is a multiple of step*sums.
func loopAll(b *ir.Builder, reds []reducer, lanes int, lo, hi ir.Value, step uint32, sums int, f func(i ir.Value) []partial) []partial {
	neutral := func(r reducer) []partialVar {
		vars := make([]partialVar, sums)
		for k := range vars {
			vars[k] = r.variable(r.neutral(lanes))
		}
		return vars
	}
	over := func(lo, hi ir.Value, vars [][]partialVar) {
		b.For(lo, hi, b.U32(step*uint32(sums)), func(i ir.Value) {
			for k := range sums {
				at := i
				if k > 0 {
					at = b.Add(i, b.U32(step*uint32(k)))
				}
				for j, p := range f(at) {
					reds[j].fold(vars[j][k], p)
				}
			}
		})
	}
	join := func(r reducer, vars []partialVar) partial {
		for n := len(vars) / 2; n > 0; n /= 2 {
			for k := range n {
				r.fold(vars[k], r.get(vars[k+n]))
			}
		}
		return r.get(vars[0])
	}

	vars, totals, lost := make([][]partialVar, len(reds)), make([]partialVar, len(reds)), make([]ir.Value, len(reds))
	blocked := false
	for j, r := range reds {
		if r.op == ReduceSum && r.kind.IsFloat() {
			totals[j], lost[j], blocked = r.variable(r.neutral(lanes)), b.Var(r.neutral(lanes).value), true
		} else {
			vars[j] = neutral(r)
		}
	}
	if !blocked {
		over(lo, hi, vars)
	} else {
		block := b.U32(step * sumBlock)
		b.For(lo, hi, block, func(first ir.Value) {
			for j, r := range reds {
				if lost[j] != nil {
					vars[j] = neutral(r)
				}
			}
			over(first, b.Add(first, b.Min(block, b.Sub(hi, first))), vars)
			for j, r := range reds {
				if lost[j] != nil {
					r.compensate(totals[j], lost[j], join(r, vars[j]).value)
				}
			}
		})
	}
	out := make([]partial, len(reds))
	for j, r := range reds {
		if lost[j] != nil {
			out[j] = r.get(totals[j])
		} else {
			out[j] = join(r, vars[j])
		}
	}
	return out
}
