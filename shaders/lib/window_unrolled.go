package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Small windows without dilation, such as those of pooling, are part of the kernel's code: their loops are unrolled and divisions by
// the stride are shifts. On CPU devices an invocation makes a row, so that it works out the row's place once and the
// driver's compiler makes vectors along it.

// maxUnrolledWindow bounds the elements of a window, or windows of an element, that are unrolled.
const maxUnrolledWindow = 16

// unrolled reports whether the window's geometry is part of the kernel.
func (w *Window) unrolled() bool {
	if w.Adaptive || w.dilated() {
		return false
	}
	for i := range w.Image {
		if w.Image[i] == 0 || w.Grid[i] == 0 {
			return false // elements that do not count are read from the first place
		}
	}
	n := 1
	switch w.Op {
	case WindowSum, WindowMax:
		for _, k := range w.Kernel {
			n = satMul(n, k)
		}
	case WindowSpread, WindowPlace, WindowFold:
		for i, k := range w.Kernel {
			n = satMul(n, ceilDiv(k, w.Stride[i]))
		}
	default:
		return false
	}
	return n <= maxUnrolledWindow
}

// baked is the part of the key that says what geometry the kernel has in its code.
func (w *Window) baked() string {
	if !w.unrolled() {
		return "any"
	}
	return fmt.Sprintf("%v by %v, %d a step", w.Kernel, w.Stride, w.rowVector())
}

// rowLength is the last dimension of what an invocation makes an element of.
func (w *Window) rowLength() int {
	if w.Op.backward() {
		return w.Image[len(w.Image)-1]
	}
	return w.Grid[len(w.Grid)-1]
}

// byRows reports whether an invocation makes a row.
func (w *Window) byRows(t Target) bool { return t.class() == openclCPU }

// bake makes constants of the parameters that the key has.
func (m *windowEmitter) bake() {
	for i := range m.kernel {
		m.kernel[i], m.stride[i] = m.b.U32(uint32(m.w.Kernel[i])), m.b.U32(uint32(m.w.Stride[i]))
		m.dilates[i] = m.b.U32(1)
	}
}

// counted is v, or zero where an element does not count.
func (m *windowEmitter) counted(v, inside ir.Value) ir.Value {
	if inside == nil {
		return v
	}
	return m.b.Select(inside, v, m.b.ConstLike(v, 0))
}

// offsets visits the coordinates of sizes in row-major order, at build time.
func offsets(sizes []int, at []int, visit func(at []int)) {
	if len(at) == len(sizes) {
		visit(at)
		return
	}
	for i := range sizes[len(at)] {
		offsets(sizes, append(at[:len(at):len(at)], i), visit)
	}
}

// overOffsets visits the elements of window g, those outside the image with an index of the image's first element.
func (m *windowEmitter) overOffsets(g []ir.Value, base ir.Value, visit func(place, index, inside ir.Value)) {
	b := m.b
	offsets(m.w.Kernel, nil, func(k []int) {
		inside := b.Bool(true)
		at := make([]ir.Value, len(g))
		for i := range g {
			// A place before the image wraps around to a large number.
			at[i] = b.Sub(b.Add(b.Mul(g[i], m.stride[i]), b.U32(uint32(k[i]))), m.padding[i])
			inside = b.And(inside, b.Lt(at[i], m.image[i]))
		}
		place := b.Select(inside, m.flat(b.U32(0), at, m.image), b.U32(0))
		visit(place, b.Add(base, place), inside)
	})
}

// gatherUnrolled sums, for the element of the image at h, over the windows that hold it.
func (m *windowEmitter) gatherUnrolled(h []ir.Value, outer ir.Value) ir.Value {
	b, w := m.b, m.w
	most := make([]int, len(h)) // windows that may hold an element
	padded, last := make([]ir.Value, len(h)), make([]ir.Value, len(h))
	for i := range h {
		most[i] = ceilDiv(w.Kernel[i], w.Stride[i])
		padded[i] = b.Add(h[i], m.padding[i])
		last[i] = b.Div(padded[i], m.stride[i])
	}
	place := b.BitCast(m.flat(b.U32(0), h, m.image), ir.I32)
	sum := b.Const(ir.Scalar(m.value), 0)
	offsets(most, nil, func(j []int) {
		inside := b.Bool(true)
		g, k := make([]ir.Value, len(h)), make([]ir.Value, len(h))
		for i := range h {
			// In ascending order; before the first window it wraps around.
			g[i] = b.Sub(last[i], b.U32(uint32(most[i]-1-j[i])))
			inside = b.And(inside, b.Lt(g[i], m.grid[i]))
			g[i] = b.Select(b.Lt(g[i], m.grid[i]), g[i], b.U32(0))
			k[i] = b.Sub(padded[i], b.Mul(g[i], m.stride[i]))
			inside = b.And(inside, b.Lt(k[i], m.kernel[i]))
			k[i] = b.Min(k[i], b.U32(uint32(w.Kernel[i]-1)))
		}
		sum = b.Add(sum, m.counted(m.share(outer, g, k, place), inside))
	})
	return sum
}
