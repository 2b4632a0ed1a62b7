package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// windowPad copies images [outer, from…] to padded ones [outer, size…] in F32: in each dimension, element i goes to place
// before + i*apart if that is below size, and all else is zero. Of more images, it copies outer from first on. Buffers: in, out.
type windowPad struct {
	first, outer              int
	from, before, apart, size []int
	kind                      ir.Kind
	ops                       []string
}

func (w *windowPad) elements() int { return satMul(w.outer, satVolume(w.size)) }

func satVolume(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n = satMul(n, s)
	}
	return n
}

// direct reports whether the images may be read where they are.
func (w *windowPad) direct() bool {
	if w.kind != ir.F32 {
		return false
	}
	for i := range w.from {
		if w.before[i] != 0 || w.apart[i] != 1 || w.size[i] > w.from[i] {
			return false
		}
	}
	return true
}

func (w *windowPad) Key() string {
	return fmt.Sprintf("window_pad|%dd|%s|apart %v|%d lanes|ops %q", len(w.from), w.kind, w.spread(), w.copyLanes(), w.ops)
}

// pitch returns the distances of a channel and of places in it where windows are read.
func (w *windowPad) pitch() []int {
	if w.direct() {
		return rowMajor(append([]int{w.outer}, w.from...))
	}
	return rowMajor(append([]int{w.outer}, w.size...))
}

// spread reports whether there are zeros between the elements of a row.
func (w *windowPad) spread() bool { return w.apart[len(w.apart)-1] > 1 }

// copyLanes is how many elements of a row are copied at once.
func (w *windowPad) copyLanes() int {
	if w.spread() {
		return 1
	}
	if n := min(floorPow2(w.from[len(w.from)-1]), ir.MaxLanes); n >= minRowVector {
		return n
	}
	return 1
}

func (w *windowPad) Cost() float64 { return 8 * float64(w.elements()) }

// rows is the number of rows of the padded images: an invocation makes one.
func (w *windowPad) rows() int { return w.outer * volume(w.size[:len(w.size)-1]) }

func (w *windowPad) Launch(t Target) (groups [3]int, params []uint32, err error) {
	params = []uint32{uint32(w.rows()), uint32(w.first)}
	for i := range w.from {
		for _, v := range []int{w.from[i], w.before[i], w.apart[i], w.size[i]} {
			params = append(params, uint32(v))
		}
	}
	local := t.config().local
	groups, err = t.fold("window_pad", uint64(ceilDiv(w.rows(), local)))
	return groups, params, err
}

func (w *windowPad) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("window_pad", t.config().local, 1, 1)
	b.SetOps(w.ops...)
	in, out := b.Buffer("in", w.kind, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	rows, first := b.Param("rows", ir.U32), b.Param("first", ir.U32)
	var from, before, apart, size []ir.Value
	for i := range w.from {
		for _, p := range []struct {
			list *[]ir.Value
			name string
		}{{&from, "from"}, {&before, "before"}, {&apart, "apart"}, {&size, "size"}} {
			*p.list = append(*p.list, b.Param(fmt.Sprintf("%s%d", p.name, i), ir.U32))
		}
	}
	last := len(w.from) - 1
	id := b.LinearID()
	b.If(b.Lt(id, rows), func() {
		rest, holds := id, b.Bool(true)
		places := make([]ir.Value, last)
		for i := last - 1; i >= 0; i-- {
			at := b.Sub(b.Rem(rest, size[i]), before[i]) // wraps around before the first element
			rest = b.Div(rest, size[i])
			places[i] = b.Div(at, apart[i])
			holds = b.And(holds, b.And(b.Lt(places[i], from[i]), b.Eq(b.Mul(places[i], apart[i]), at)))
		}
		rest = b.Add(rest, first)
		for i, p := range places {
			rest = b.Add(b.Mul(rest, from[i]), p)
		}
		source, to := b.Mul(rest, from[last]), b.Mul(id, size[last])
		zero := b.F32(0)
		// Elements of the row that lie before size.
		room := b.Sub(b.Max(size[last], before[last]), before[last])
		n := b.Select(holds, b.Min(from[last], b.Div(b.Sub(b.Add(room, apart[last]), b.U32(1)), apart[last])), b.U32(0))
		value := func(i ir.Value) ir.Value {
			return load(b, in, Operand{Kind: w.kind}, b.Add(source, i), 1, accessVector, nil)
		}
		begin := b.Add(to, before[last])
		if w.spread() {
			b.Range(size[last], func(i ir.Value) { b.Store(out, b.Add(to, i), zero) })
			b.Range(n, func(i ir.Value) { b.Store(out, b.Add(begin, b.Mul(i, apart[last])), value(i)) })
			return
		}
		b.Range(b.Min(before[last], size[last]), func(i ir.Value) { b.Store(out, b.Add(to, i), zero) })
		one := func(i ir.Value) { b.Store(out, b.Add(begin, i), value(i)) }
		if lanes := w.copyLanes(); lanes > 1 {
			// Whole vectors, of which the last goes back to the row's end.
			whole := b.Select(b.Ge(n, b.U32(uint32(lanes))), n, b.U32(0))
			end := b.Sub(n, b.U32(uint32(lanes)))
			b.For(b.U32(0), whole, b.U32(uint32(lanes)), func(i ir.Value) {
				i = b.Min(i, end)
				v := load(b, in, Operand{Kind: w.kind}, b.Add(source, i), lanes, accessGather, nil)
				store(b, out, Operand{Kind: ir.F32}, b.Add(begin, i), v, lanes, accessGather, nil)
			})
			b.For(whole, n, b.U32(1), one)
		} else {
			b.Range(n, one)
		}
		b.For(b.Add(before[last], n), size[last], b.U32(1), func(i ir.Value) { b.Store(out, b.Add(to, i), zero) })
	}, nil)
	return b.Build()
}

// offsetDim is a dimension of positions: how many there are, and what each adds to an offset.
type offsetDim struct{ n, stride int }

// offsetTable computes the offsets of positions in row-major order over some dimensions, and after them those of steps: the sums
// of coordinates times strides, and for steps also start. Buffer: the table, U32.
type offsetTable struct {
	positions, steps []offsetDim
	start            int
	ops              []string
}

func (o *offsetTable) count(dims []offsetDim) int {
	n := 1
	for _, d := range dims {
		n *= d.n
	}
	return n
}

func (o *offsetTable) elements() int { return o.count(o.positions) + o.count(o.steps) }

func (o *offsetTable) Key() string {
	return fmt.Sprintf("offset_table|%d,%d|ops %q", len(o.positions), len(o.steps), o.ops)
}

func (o *offsetTable) Cost() float64 { return 16 * float64(o.elements()) }

func (o *offsetTable) Launch(t Target) (groups [3]int, params []uint32, err error) {
	n := o.elements()
	params = []uint32{uint32(n), uint32(o.count(o.positions)), uint32(o.start)}
	for _, d := range append(o.positions[:len(o.positions):len(o.positions)], o.steps...) {
		params = append(params, uint32(d.n), uint32(d.stride))
	}
	groups, err = t.fold("offset_table", uint64(ceilDiv(n, t.config().local)))
	return groups, params, err
}

func (o *offsetTable) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("offset_table", t.config().local, 1, 1)
	b.SetOps(o.ops...)
	out := b.Buffer("table", ir.U32, ir.Write)
	n, positions, start := b.Param("n", ir.U32), b.Param("positions", ir.U32), b.Param("start", ir.U32)
	dims := func(name string, count int) (sizes, strides []ir.Value) {
		for i := range count {
			sizes = append(sizes, b.Param(fmt.Sprintf("%s_n%d", name, i), ir.U32))
			strides = append(strides, b.Param(fmt.Sprintf("%s_stride%d", name, i), ir.U32))
		}
		return sizes, strides
	}
	positionSizes, positionStrides := dims("position", len(o.positions))
	stepSizes, stepStrides := dims("step", len(o.steps))
	sum := func(rest, at ir.Value, sizes, strides []ir.Value) ir.Value {
		for i := len(sizes) - 1; i >= 0; i-- {
			at = b.Add(at, b.Mul(b.Rem(rest, sizes[i]), strides[i]))
			rest = b.Div(rest, sizes[i])
		}
		return at
	}
	id := b.LinearID()
	b.If(b.Lt(id, n), func() {
		b.If(b.Lt(id, positions), func() {
			b.Store(out, id, sum(id, b.U32(0), positionSizes, positionStrides))
		}, func() {
			b.Store(out, id, sum(b.Sub(id, positions), start, stepSizes, stepStrides))
		})
	}, nil)
	return b.Build()
}
