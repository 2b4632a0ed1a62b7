package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// windowEmitter builds the kernel of a Window: one invocation for each element of the output.
type windowEmitter struct {
	w                *Window
	b                *ir.Builder
	value            ir.Kind // F32 or F64
	in, out, places  *ir.Mem
	inAt, outAt      ir.Value
	divisor          ir.Value
	image, grid      []ir.Value
	kernel, stride   []ir.Value
	padding, dilates []ir.Value

	// row and column are the number of the row and the place in it, where an invocation makes a whole row.
	row, column ir.Value
}

// Build makes the kernel.
func (w *Window) Build(t Target) (*ir.Kernel, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if err := t.checkBuffers(w.Op.String(), 3); err != nil {
		return nil, err
	}
	b := ir.NewBuilder(w.Op.String(), t.config().local, 1, 1)
	b.SetOps(w.Ops...)
	b.SetTemplate(w)
	m := &windowEmitter{w: w, b: b, value: Operand{Kind: w.In}.ValueKind()}
	m.in = b.Buffer("in", w.In, ir.Read)
	if w.Op == WindowPick || w.Op == WindowPlace {
		m.places = b.Buffer("places", ir.I32, ir.Read)
	}
	m.out = b.Buffer("out", w.Out, ir.Write)
	if w.Op == WindowMax {
		m.places = b.Buffer("places", ir.I32, ir.Write)
	}
	n := b.Param("n", ir.U32)
	m.inAt, m.outAt, m.divisor = b.Param("offset_in", ir.U32), b.Param("offset_out", ir.U32), b.Param("divisor", ir.U32)
	b.Param("outer", ir.U32) // for native programs
	for i := range w.Image {
		for _, p := range []struct {
			list *[]ir.Value
			name string
		}{{&m.image, "image"}, {&m.grid, "grid"}, {&m.kernel, "kernel"}, {&m.stride, "stride"}, {&m.padding, "padding"}, {&m.dilates, "dilation"}} {
			*p.list = append(*p.list, b.Param(fmt.Sprintf("%s%d", p.name, i), ir.U32))
		}
	}
	if w.unrolled() {
		m.bake()
	}
	element := func(id ir.Value) {
		var v ir.Value
		switch w.Op {
		case WindowUnfold:
			v = m.unfold(id)
		case WindowPick:
			v = m.pick(id)
		case WindowSum:
			v = m.sum(id)
		case WindowMax:
			v = m.max(id)
		default:
			v = m.gather(id)
		}
		store(b, m.out, Operand{Kind: w.Out}, b.Add(m.outAt, id), v, 1, accessVector, nil)
	}
	id := b.Named(b.LinearID(), "id")
	b.If(b.Lt(id, n), func() {
		if !w.byRows(t) {
			element(id)
			return
		}
		if w.rowVector() > 0 {
			m.vectorRow(id)
			return
		}
		sizes := m.grid
		if w.Op.backward() {
			sizes = m.image
		}
		length := sizes[len(sizes)-1]
		m.row = id
		b.Range(length, func(x ir.Value) {
			m.column = x
			element(b.Add(b.Mul(id, length), x))
		})
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.Op, err)
	}
	return k, nil
}

// at loads the element of in at a flat index.
func (m *windowEmitter) at(index ir.Value) ir.Value {
	return load(m.b, m.in, Operand{Kind: m.w.In}, m.b.Add(m.inAt, index), 1, accessVector, nil)
}

// splitID takes the coordinates of sizes off the number of an element of the output and returns what is left of it.
func (m *windowEmitter) splitID(id ir.Value, sizes []ir.Value) (coords []ir.Value, rest ir.Value) {
	if m.row == nil {
		return m.split(id, sizes)
	}
	coords, rest = m.split(m.row, sizes[:len(sizes)-1])
	return append(coords, m.column), rest
}

// split takes the coordinates of sizes off a flat index and returns what is left of it.
func (m *windowEmitter) split(index ir.Value, sizes []ir.Value) (coords []ir.Value, rest ir.Value) {
	coords = make([]ir.Value, len(sizes))
	for i := len(sizes) - 1; i >= 0; i-- {
		coords[i] = m.b.Rem(index, sizes[i])
		index = m.b.Div(index, sizes[i])
	}
	return coords, index
}

// flat is the inverse of split.
func (m *windowEmitter) flat(rest ir.Value, coords, sizes []ir.Value) ir.Value {
	for i, c := range coords {
		rest = m.b.Add(m.b.Mul(rest, sizes[i]), c)
	}
	return rest
}

func (m *windowEmitter) product(sizes []ir.Value) ir.Value {
	n := m.b.U32(1)
	for _, s := range sizes {
		n = m.b.Mul(n, s)
	}
	return n
}

func (m *windowEmitter) unfold(id ir.Value) ir.Value {
	b := m.b
	g, rest := m.splitID(id, m.grid)
	k, outer := m.split(rest, m.kernel)
	inside := b.Bool(true)
	at := make([]ir.Value, len(g))
	for i := range g {
		// A place before the image wraps around to a large number.
		at[i] = b.Sub(b.Add(b.Mul(g[i], m.stride[i]), b.Mul(k[i], m.dilates[i])), m.padding[i])
		inside = b.And(inside, b.Lt(at[i], m.image[i]))
	}
	v := b.Var(b.Const(ir.Scalar(m.value), 0))
	b.If(inside, func() { b.Set(v, m.at(m.flat(outer, at, m.image))) }, nil)
	return b.Get(v)
}

func (m *windowEmitter) pick(id ir.Value) ir.Value {
	b := m.b
	_, outer := m.splitID(id, m.grid)
	size := m.product(m.image)
	place := b.BitCast(b.Load(m.places, id, 1), ir.U32)
	v := b.Var(b.Const(ir.Scalar(m.value), 0))
	b.If(b.Lt(place, size), func() { b.Set(v, m.at(b.Add(b.Mul(outer, size), place))) }, nil)
	return b.Get(v)
}

// span returns the elements lo, lo+dilation, … before hi of window g in dimension i, and how many the divisor counts.
func (m *windowEmitter) span(i int, g ir.Value) (lo, hi, count ir.Value) {
	b, one := m.b, m.b.U32(1)
	if m.w.Adaptive {
		lo = b.Div(b.Mul(g, m.image[i]), m.grid[i])
		hi = b.Add(b.Div(b.Sub(b.Mul(b.Add(g, one), m.image[i]), one), m.grid[i]), one)
		return lo, hi, b.Sub(hi, lo)
	}
	pad := m.padding[i]
	start := b.Mul(g, m.stride[i]) // in the padded image
	reach := b.Mul(b.Sub(m.kernel[i], one), m.dilates[i])
	end := b.Add(b.Add(start, reach), one)
	first := b.Max(start, pad)
	if m.w.dilated() {
		skip := b.Sub(first, start)
		first = b.Add(start, b.Mul(b.Div(b.Sub(b.Add(skip, m.dilates[i]), one), m.dilates[i]), m.dilates[i]))
	}
	lo = b.Sub(first, pad)
	hi = b.Sub(b.Max(b.Min(end, b.Add(m.image[i], pad)), pad), pad)
	switch m.w.Divide {
	case DividePadded:
		count = b.Sub(b.Min(end, b.Add(b.Add(m.image[i], pad), pad)), start)
	case DivideInside:
		count = b.Sub(b.Max(hi, lo), lo)
	}
	return lo, hi, count
}

// walk visits the places lo, lo+step, … before hi in every dimension.
func (m *windowEmitter) walk(lo, hi, step []ir.Value, at []ir.Value, visit func(at []ir.Value)) {
	i := len(at)
	if i == len(lo) {
		visit(at)
		return
	}
	m.b.For(lo[i], hi[i], step[i], func(p ir.Value) { m.walk(lo, hi, step, append(at[:i:i], p), visit) })
}

// overWindow visits the elements of the window that id is the output of, and returns what the divisor counts. Where inside is not
// nil and false, the element does not count, and index is that of another one.
func (m *windowEmitter) overWindow(id ir.Value, visit func(place, index, inside ir.Value)) (count ir.Value) {
	b := m.b
	g, outer := m.splitID(id, m.grid)
	rank := len(g)
	lo, hi, step := make([]ir.Value, rank), make([]ir.Value, rank), make([]ir.Value, rank)
	count = b.U32(1)
	for i := range g {
		var c ir.Value
		lo[i], hi[i], c = m.span(i, g[i])
		if step[i] = b.U32(1); m.w.dilated() {
			step[i] = m.dilates[i]
		}
		if c != nil {
			count = b.Mul(count, c)
		}
	}
	base := b.Mul(outer, m.product(m.image))
	if m.w.unrolled() {
		m.overOffsets(g, base, visit)
		return count
	}
	m.walk(lo, hi, step, nil, func(at []ir.Value) {
		place := m.flat(b.U32(0), at, m.image)
		visit(place, b.Add(base, place), nil)
	})
	return count
}

func (m *windowEmitter) sum(id ir.Value) ir.Value {
	b := m.b
	acc := b.Var(b.Const(ir.Scalar(m.value), 0))
	count := m.overWindow(id, func(_, index, inside ir.Value) { b.Set(acc, b.Add(b.Get(acc), m.counted(m.at(index), inside))) })
	return m.divided(b.Get(acc), count)
}

// divided applies the divisor to a sum or to one window's share of it.
func (m *windowEmitter) divided(v, count ir.Value) ir.Value {
	switch m.w.Divide {
	case DivideNone:
		return v
	case DivideBy:
		count = m.divisor
	}
	return m.b.Div(v, m.b.Convert(count, m.value))
}

func (m *windowEmitter) max(id ir.Value) ir.Value {
	b := m.b
	best := b.Var(b.Const(ir.Scalar(m.value), math.Inf(-1)))
	where := b.Var(b.I32(-1))
	m.overWindow(id, func(place, index, inside ir.Value) {
		v := m.at(index)
		old := b.Get(where)
		take := b.Or(b.Or(b.Gt(v, b.Get(best)), b.IsNaN(v)), b.Lt(old, b.I32(0)))
		if inside != nil {
			take = b.And(take, inside)
		}
		b.Set(best, b.Select(take, v, b.Get(best)))
		b.Set(where, b.Select(take, b.BitCast(place, ir.I32), old))
	})
	b.Store(m.places, id, b.Get(where))
	return b.Get(best)
}

// gather sums, for an element of the image, over the windows that hold it.
func (m *windowEmitter) gather(id ir.Value) ir.Value {
	b, w, one := m.b, m.w, m.b.U32(1)
	h, outer := m.splitID(id, m.image)
	if w.unrolled() {
		return m.gatherUnrolled(h, outer)
	}
	rank := len(h)
	lo, hi, step := make([]ir.Value, rank), make([]ir.Value, rank), make([]ir.Value, rank)
	padded := make([]ir.Value, rank)
	for i := range h {
		step[i] = one
		if w.Adaptive {
			lo[i] = b.Div(b.Mul(h[i], m.grid[i]), m.image[i])
			hi[i] = b.Add(b.Div(b.Sub(b.Mul(b.Add(h[i], one), m.grid[i]), one), m.image[i]), one)
			// With no window at all the difference above wraps around.
			hi[i] = b.Min(hi[i], m.grid[i])
			continue
		}
		padded[i] = b.Add(h[i], m.padding[i])
		reach := b.Mul(b.Sub(m.kernel[i], one), m.dilates[i])
		over := b.Sub(b.Max(padded[i], reach), reach)
		lo[i] = b.Div(b.Sub(b.Add(over, m.stride[i]), one), m.stride[i])
		hi[i] = b.Min(m.grid[i], b.Add(b.Div(padded[i], m.stride[i]), one))
	}
	place := b.BitCast(m.flat(b.U32(0), h, m.image), ir.I32)
	acc := b.Var(b.Const(ir.Scalar(m.value), 0))
	m.walk(lo, hi, step, nil, func(g []ir.Value) {
		k := make([]ir.Value, rank)
		holds := b.Bool(true)
		if w.Op == WindowFold || w.dilated() {
			for i := range g {
				k[i] = b.Sub(padded[i], b.Mul(g[i], m.stride[i]))
				if w.dilated() {
					holds = b.And(holds, b.Eq(b.Rem(k[i], m.dilates[i]), b.U32(0)))
					k[i] = b.Div(k[i], m.dilates[i])
				}
			}
		}
		add := func() { b.Set(acc, b.Add(b.Get(acc), m.share(outer, g, k, place))) }
		if w.dilated() {
			b.If(holds, add, nil)
		} else {
			add()
		}
	})
	return b.Get(acc)
}

// share is what window g gives to an element of the image.
func (m *windowEmitter) share(outer ir.Value, g, k []ir.Value, place ir.Value) ir.Value {
	b := m.b
	switch m.w.Op {
	case WindowFold:
		return m.at(m.flat(m.flat(outer, k, m.kernel), g, m.grid))
	case WindowPlace:
		index := m.flat(outer, g, m.grid)
		return b.Select(b.Eq(b.Load(m.places, index, 1), place), m.at(index), b.Const(ir.Scalar(m.value), 0))
	}
	count := b.U32(1)
	if d := m.w.Divide; d == DividePadded || d == DivideInside {
		for i := range g {
			_, _, c := m.span(i, g[i])
			count = b.Mul(count, c)
		}
	}
	return m.divided(m.at(m.flat(outer, g, m.grid)), count)
}
