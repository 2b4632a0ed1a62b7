package cpu

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/anygpu/anygpu/backend/cpu/internal/gemm"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// newWindow returns the native program of a kernel over windows, or nil if it has none. Rows of an image are copied or added
// as a whole, where the kernel divides the index of each element.
func newWindow(spec *lib.Window, pool *interp.Pool) native {
	var run func(w *lib.Window, b [][]byte, pool *interp.Pool)
	buffers := 2
	switch same := spec.In == spec.Out; {
	case spec.Op == lib.WindowUnfold && same && spec.In.Size() == 2:
		run = unfold[uint16]
	case spec.Op == lib.WindowUnfold && same && spec.In.Size() == 4:
		run = unfold[uint32]
	case spec.Op == lib.WindowUnfold && same:
		run = unfold[uint64]
	case spec.Op == lib.WindowFold && same && spec.In == ir.F32:
		run = fold[float32]
	case spec.Op == lib.WindowFold && same && spec.In == ir.F64:
		run = fold[float64]
	case spec.Op == lib.WindowMax && same && spec.In == ir.F32 && !spec.Adaptive:
		run, buffers = maxWindows, 3
	case spec.Op == lib.WindowPlace && same && spec.In == ir.F32:
		run, buffers = place, 3
	default:
		return nil
	}
	return func(b [][]byte, params []uint32) error {
		w, err := lib.ParseWindow(spec, params)
		if err != nil {
			return err
		}
		if len(b) != buffers {
			return fmt.Errorf("%s: %d buffers, want %d", spec.Op, len(b), buffers)
		}
		if err := checkWindow(w, b); err != nil {
			return err
		}
		run(widen(w), b, pool)
		return nil
	}
}

// checkWindow reports buffers that are too small for the launch.
func checkWindow(w *lib.Window, b [][]byte) error {
	in, out := w.Elements()
	places := w.Outer * product(w.Grid)
	need := []int{(w.OffsetIn + in) * w.In.Size(), (w.OffsetOut + out) * w.Out.Size()}
	switch w.Op {
	case lib.WindowMax:
		need = append(need, 4*places)
	case lib.WindowPlace:
		need = []int{need[0], 4 * places, need[1]}
	}
	for i, n := range need {
		if len(b[i]) < n {
			return fmt.Errorf("%s: buffer %d has %d bytes, the launch needs %d", w.Op, i, len(b[i]), n)
		}
	}
	return nil
}

// widen gives an image three dimensions.
func widen(w *lib.Window) *lib.Window {
	for len(w.Image) < 3 {
		w.Image, w.Grid = append([]int{1}, w.Image...), append([]int{1}, w.Grid...)
		w.Kernel, w.Stride = append([]int{1}, w.Kernel...), append([]int{1}, w.Stride...)
		w.Pad, w.Dilation = append([]int{0}, w.Pad...), append([]int{1}, w.Dilation...)
	}
	return w
}

// wordsOf is sliceOf for elements that are only copied.
func wordsOf[T uint16 | uint32 | uint64](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}

func product(x []int) int {
	n := 1
	for _, v := range x {
		n *= v
	}
	return n
}

// each runs f for 0 to n-1 on the pool's workers, in pieces of at least work of about a chunk.
func each(pool *interp.Pool, n, work int, f func(i int)) {
	if n == 0 {
		return
	}
	step := max(1, chunk/max(work, 1))
	var next atomic.Int64
	pool.Do(min(pool.Size(), (n+step-1)/step), func() {
		for {
			first := int(next.Add(int64(step))) - step
			if first >= n {
				return
			}
			for i := first; i < min(n, first+step); i++ {
				f(i)
			}
		}
	})
}

// row describes what a row of windows takes from a row of the image for one element of the kernel: windows lo to hi-1 take
// elements first, first+stride, …; the others lie outside.
type row struct{ lo, hi, first int }

// rowOf describes dimension d for element k of the kernel.
func rowOf(w *lib.Window, d, k int) row {
	image, s, shift := w.Image[d], w.Stride[d], k*w.Dilation[d]-w.Pad[d]
	r := row{hi: w.Grid[d]}
	if shift < 0 {
		r.lo = min((-shift+s-1)/s, r.hi)
	}
	if last := image - 1 - shift; last < 0 {
		r.hi = 0
	} else {
		r.hi = min(r.hi, last/s+1)
	}
	r.hi = max(r.hi, r.lo)
	r.first = r.lo*s + shift
	return r
}

// eachRow visits the rows of windows of element k of the kernel: where a row of the grid begins, and the row of the image,
// or -1 outside it.
func eachRow(w *lib.Window, k0, k1 int, visit func(grid, image int)) {
	at := 0
	for g0 := range w.Grid[0] {
		h0 := g0*w.Stride[0] - w.Pad[0] + k0*w.Dilation[0]
		for g1 := range w.Grid[1] {
			h1 := g1*w.Stride[1] - w.Pad[1] + k1*w.Dilation[1]
			if h0 < 0 || h0 >= w.Image[0] || h1 < 0 || h1 >= w.Image[1] {
				visit(at, -1)
			} else {
				visit(at, (h0*w.Image[1]+h1)*w.Image[2])
			}
			at += w.Grid[2]
		}
	}
}

func unfold[T uint16 | uint32 | uint64](w *lib.Window, b [][]byte, pool *interp.Pool) {
	x, y := wordsOf[T](b[0])[w.OffsetIn:], wordsOf[T](b[1])[w.OffsetOut:]
	image, grid, kernel := product(w.Image), product(w.Grid), product(w.Kernel)
	each(pool, w.Outer*kernel, grid, func(i int) {
		k := i % kernel
		src, dst := x[i/kernel*image:], y[i*grid:]
		r := rowOf(w, 2, k%w.Kernel[2])
		eachRow(w, k/w.Kernel[2]/w.Kernel[1], k/w.Kernel[2]%w.Kernel[1], func(g, h int) {
			d := dst[g : g+w.Grid[2]]
			if h < 0 {
				clear(d)
				return
			}
			clear(d[:r.lo])
			clear(d[r.hi:])
			if r.lo == r.hi {
				return
			}
			s := src[h+r.first:]
			if w.Stride[2] == 1 {
				copy(d[r.lo:r.hi], s)
				return
			}
			for j := range d[r.lo:r.hi] {
				d[r.lo+j] = s[j*w.Stride[2]]
			}
		})
	})
}

func fold[T float32 | float64](w *lib.Window, b [][]byte, pool *interp.Pool) {
	x, y := sliceOf[T](b[0])[w.OffsetIn:], sliceOf[T](b[1])[w.OffsetOut:]
	image, grid, kernel := product(w.Image), product(w.Grid), product(w.Kernel)
	each(pool, w.Outer, grid*kernel, func(o int) {
		dst := y[o*image : (o+1)*image]
		clear(dst)
		for k := range kernel {
			src := x[(o*kernel+k)*grid:]
			r := rowOf(w, 2, k%w.Kernel[2])
			if r.lo == r.hi {
				continue
			}
			eachRow(w, k/w.Kernel[2]/w.Kernel[1], k/w.Kernel[2]%w.Kernel[1], func(g, h int) {
				if h < 0 {
					return
				}
				s := src[g+r.lo : g+r.hi]
				if w.Stride[2] == 1 {
					d := dst[h+r.first:][:len(s)]
					for j, v := range s {
						d[j] += v
					}
					return
				}
				at := h + r.first
				for _, v := range s {
					dst[at] += v
					at += w.Stride[2]
				}
			})
		}
	})
}

func maxWindows(w *lib.Window, b [][]byte, pool *interp.Pool) {
	x, y, places := sliceOf[float32](b[0]), sliceOf[float32](b[1]), sliceOf[int32](b[2])
	image, grid, slab := product(w.Image), product(w.Grid), w.Grid[1]*w.Grid[2]
	rows, columns := make([]row, w.Kernel[1]), make([]row, w.Kernel[2])
	for k := range rows {
		rows[k] = rowOf(w, 1, k)
	}
	for k := range columns {
		columns[k] = rowOf(w, 2, k)
	}
	each(pool, w.Outer, grid*product(w.Kernel), func(o int) {
		src := x[o*image : (o+1)*image]
		for g0 := range w.Grid[0] {
			from := o*grid + g0*slab
			best, where := y[from:from+slab], places[from:from+slab]
			fresh := true
			for k0 := range w.Kernel[0] {
				h0 := g0*w.Stride[0] - w.Pad[0] + k0*w.Dilation[0]
				if h0 < 0 || h0 >= w.Image[0] {
					continue
				}
				for _, r := range rows {
					for _, c := range columns {
						n := r.hi - r.lo
						all := n == w.Grid[1] && c.hi-c.lo == w.Grid[2]
						if fresh && !all {
							noValues(best, where)
						}
						if n > 0 && c.hi > c.lo {
							gemm.MaxTap(best[r.lo*w.Grid[2]+c.lo:], where[r.lo*w.Grid[2]+c.lo:], w.Grid[2], src, gemm.Tap{Rows: n, N: c.hi - c.lo, Stride: w.Stride[2],
								First: (h0*w.Image[1]+r.first)*w.Image[2] + c.first, RowStep: w.Stride[1] * w.Image[2]}, fresh && all)
						}
						fresh = false
					}
				}
			}
			if fresh {
				noValues(best, where)
			}
		}
	})
}

// noValues makes windows that have no elements so far.
func noValues(best []float32, where []int32) {
	for i := range best {
		best[i], where[i] = float32(math.Inf(-1)), -1
	}
}

func place(w *lib.Window, b [][]byte, pool *interp.Pool) {
	x, places, y := sliceOf[float32](b[0]), sliceOf[int32](b[1]), sliceOf[float32](b[2])
	image, grid := product(w.Image), product(w.Grid)
	each(pool, w.Outer, image, func(o int) {
		dst := y[o*image : (o+1)*image]
		clear(dst)
		for i := o * grid; i < (o+1)*grid; i++ {
			if p := places[i]; uint32(p) < uint32(image) {
				dst[p] += x[i]
			}
		}
	})
}
