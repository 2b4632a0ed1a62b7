package lib

import "github.com/anygpu/anygpu/shaders/ir"

// Windows that lie side by side without padding, as those of most pooling do, are made a vector at a time on CPU devices with wide
// vectors: an invocation makes a row of the output, and a step of it as many windows as a vector has lanes. Their elements are read and
// written in whole vectors, and sorted in registers. The last step of a row goes back so far that it is a whole one.

// minRowVector is the least number of windows in a vector.
const minRowVector = 4

// sideBySide reports whether the windows cover the image, up to a margin at the end that is smaller than a window, and do not overlap.
func (w *Window) sideBySide() bool {
	if !w.unrolled() {
		return false
	}
	for i := range w.Image {
		if w.Pad[i] != 0 || w.Kernel[i] != w.Stride[i] || w.Grid[i] != w.Image[i]/w.Stride[i] {
			return false
		}
	}
	return true
}

// rowVector is the number of windows of a vector, or 0 where rows are made element by element.
func (w *Window) rowVector() int {
	switch w.Op {
	case WindowMax, WindowSum, WindowPlace, WindowSpread:
	default:
		return 0
	}
	if !w.sideBySide() {
		return 0
	}
	last := len(w.Grid) - 1
	if n := min(floorPow2(w.Grid[last]), ir.MaxLanes); n >= minRowVector && w.Kernel[last] <= maxRowKernel {
		return n
	}
	return 0
}

// maxRowKernel bounds the vectors that one step of a row holds.
const maxRowKernel = 4

// vectorRow makes the row of the given number.
func (m *windowEmitter) vectorRow(row ir.Value) {
	b, w := m.b, m.w
	lanes, last := w.rowVector(), len(w.Grid)-1
	windows := m.grid[last]
	steps := func(step func(g ir.Value)) { // g is the first window
		most := b.Sub(windows, b.U32(uint32(lanes)))
		b.For(b.U32(0), windows, b.U32(uint32(lanes)), func(g ir.Value) { step(b.Min(g, most)) })
	}
	if !w.Op.backward() {
		lead, outer := m.split(row, m.grid[:last])
		steps(func(g ir.Value) { m.reduceRow(lead, outer, g, b.Add(b.Mul(row, windows), g), lanes) })
		return
	}
	lead, outer := m.split(row, m.image[:last])
	to := b.Add(m.outAt, b.Mul(row, m.image[last]))
	held := b.Bool(true)
	cells := make([]ir.Value, last) // the windows that hold the row
	for i := range lead {
		cells[i] = b.Div(lead[i], m.stride[i])
		held = b.And(held, b.Lt(cells[i], m.grid[i]))
	}
	zeros := func(from ir.Value) {
		b.For(from, m.image[last], b.U32(1), func(x ir.Value) { m.put(b.Add(to, x), b.Const(ir.Scalar(m.value), 0)) })
	}
	b.If(held, func() {
		from := b.Mul(m.flat(outer, cells, m.grid[:last]), windows)
		place := b.Mul(m.flat(b.U32(0), lead, m.image[:last]), m.image[last])
		steps(func(g ir.Value) { m.spreadRow(b.Add(from, g), place, to, g, lanes) })
		zeros(b.Mul(windows, m.stride[last]))
	}, func() { zeros(b.U32(0)) })
}

// put writes neighbours of the output.
func (m *windowEmitter) put(at, v ir.Value) {
	store(m.b, m.out, Operand{Kind: m.w.Out}, at, v, v.Type.Lanes, accessGather, nil)
}

// run loads neighbours of the input.
func (m *windowEmitter) run(at ir.Value, lanes int) ir.Value {
	return load(m.b, m.in, Operand{Kind: m.w.In}, m.b.Add(m.inAt, at), lanes, accessGather, nil)
}

// lanesAt returns first + step*lane as I32.
func (m *windowEmitter) lanesAt(first ir.Value, step, lanes int) ir.Value {
	b := m.b
	parts := make([]ir.Value, lanes)
	for i := range parts {
		parts[i] = b.U32(uint32(i * step))
	}
	v := b.Add(b.Splat(first, lanes), b.Vec(parts...))
	return b.BitCast(v, ir.I32)
}

// reduceRow makes the outputs of the windows from g on, at index out; lead and outer are the place of their row.
func (m *windowEmitter) reduceRow(lead []ir.Value, outer, g, out ir.Value, lanes int) {
	b, w := m.b, m.w
	last := len(w.Grid) - 1
	size := w.Kernel[last]
	var best, where ir.Value
	offsets(w.Kernel[:last], nil, func(k []int) {
		at := make([]ir.Value, last)
		for i := range at {
			at[i] = advance(b, b.Mul(lead[i], m.stride[i]), k[i], nil)
		}
		first := b.Mul(g, m.stride[last])
		place := b.Add(b.Mul(m.flat(b.U32(0), at, m.image[:last]), m.image[last]), first)
		index := b.Add(b.Mul(m.flat(outer, at, m.image[:last]), m.image[last]), first)
		var loaded []ir.Value
		for i := range size {
			loaded = append(loaded, m.run(advance(b, index, i*lanes, nil), lanes))
		}
		for i := range size {
			parts := make([]ir.Value, lanes)
			for l := range parts {
				e := l*size + i
				parts[l] = b.Extract(loaded[e/lanes], e%lanes)
			}
			v := b.Vec(parts...)
			if w.Op == WindowSum {
				if best == nil {
					best = b.ConstLike(v, 0)
				}
				best = b.Add(best, v)
				continue
			}
			p := m.lanesAt(advance(b, place, i, nil), size, lanes)
			if best == nil {
				best, where = v, p
				continue
			}
			take := b.Or(b.Gt(v, best), b.IsNaN(v))
			best, where = b.Select(take, v, best), b.Select(take, p, where)
		}
	})
	if w.Op == WindowSum {
		m.put(b.Add(m.outAt, out), m.shared(best))
		return
	}
	m.put(b.Add(m.outAt, out), best)
	store(b, m.places, Operand{Kind: ir.I32}, out, where, lanes, accessGather, nil)
}

// shared applies the divisor, which is the same for all windows: none reaches over the image's edge.
func (m *windowEmitter) shared(v ir.Value) ir.Value {
	b := m.b
	count := b.U32(uint32(volume(m.w.Kernel)))
	switch m.w.Divide {
	case DivideNone:
		return v
	case DivideBy:
		count = m.divisor
	}
	return b.Div(v, b.Splat(b.Convert(count, m.value), v.Type.Lanes))
}

// spreadRow writes what the windows from g on, whose inputs begin at index in, give to a row of the image that begins at address to
// and with the given place.
func (m *windowEmitter) spreadRow(in, place, to, g ir.Value, lanes int) {
	b, w := m.b, m.w
	last := len(w.Grid) - 1
	size := w.Kernel[last]
	v := m.run(in, lanes)
	column := b.Mul(g, m.stride[last])
	values := make([]ir.Value, size)
	if w.Op == WindowSpread {
		v = m.shared(v)
		for i := range values {
			values[i] = v
		}
	} else {
		places := load(b, m.places, Operand{Kind: ir.I32}, in, lanes, accessGather, nil)
		for i := range values {
			here := m.lanesAt(advance(b, b.Add(place, column), i, nil), size, lanes)
			values[i] = b.Select(b.Eq(places, here), v, b.ConstLike(v, 0))
		}
	}
	for j := range size {
		parts := make([]ir.Value, lanes)
		for l := range parts {
			e := j*lanes + l
			parts[l] = b.Extract(values[e%size], e/size)
		}
		m.put(advance(b, b.Add(to, column), j*lanes, nil), b.Vec(parts...))
	}
}
