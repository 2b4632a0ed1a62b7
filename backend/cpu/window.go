package cpu

import (
	"fmt"
	"math"
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
	workers := min(pool.Size(), (n+step-1)/step)
	split := interp.NewSplit(int64(n), workers, 1)
	pool.Do(workers, func() {
		share := split.Share()
		for first, count := share.Next(int64(step)); count > 0; first, count = share.Next(int64(step)) {
			for i := first; i < first+count; i++ {
				f(int(i))
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
	image, grid := product(w.Image), product(w.Grid)
	// The windows that lie in the image with all their elements, in each dimension.
	var inner [3]row
	for d := range inner {
		first, last := rowOf(w, d, 0), rowOf(w, d, w.Kernel[d]-1)
		inner[d] = row{lo: first.lo, hi: max(first.lo, last.hi)}
	}
	rows, columns := inner[1], inner[2]
	whole := gemm.MaxWindows{Rows: rows.hi - rows.lo, N: columns.hi - columns.lo, Stride: w.Stride[2], RowStep: w.Stride[1] * w.Image[2]}
	for k0 := range w.Kernel[0] {
		for k1 := range w.Kernel[1] {
			for k2 := range w.Kernel[2] {
				whole.Taps = append(whole.Taps, uintptr((k0*w.Dilation[0]*w.Image[1]+k1*w.Dilation[1])*w.Image[2]+k2*w.Dilation[2]))
			}
		}
	}
	each(pool, w.Outer, grid*product(w.Kernel), func(o int) {
		src, best, where := x[o*image:(o+1)*image], y[o*grid:(o+1)*grid], places[o*grid:(o+1)*grid]
		for g0 := range w.Grid[0] {
			inside := g0 >= inner[0].lo && g0 < inner[0].hi && whole.Rows > 0 && whole.N > 0
			if inside {
				m, at := whole, (g0*w.Grid[1]+rows.lo)*w.Grid[2]+columns.lo
				h := [3]int{g0*w.Stride[0] - w.Pad[0], rows.lo*w.Stride[1] - w.Pad[1], columns.lo*w.Stride[2] - w.Pad[2]}
				m.First = (h[0]*w.Image[1]+h[1])*w.Image[2] + h[2]
				m.Run(best[at:], where[at:], w.Grid[2], src)
			}
			for g1 := range w.Grid[1] {
				at := (g0*w.Grid[1] + g1) * w.Grid[2]
				for g2 := 0; g2 < w.Grid[2]; g2++ {
					if inside && g2 == columns.lo && g1 >= rows.lo && g1 < rows.hi {
						if g2 = columns.hi; g2 == w.Grid[2] {
							break
						}
					}
					best[at+g2], where[at+g2] = maxWindow(w, src, g0, g1, g2)
				}
			}
		}
	})
}

// maxWindow finds the largest element of a window that lies in part outside the image, and its place.
func maxWindow(w *lib.Window, src []float32, g0, g1, g2 int) (best float32, where int32) {
	best, where = float32(math.Inf(-1)), -1
	for k0 := range w.Kernel[0] {
		h0 := g0*w.Stride[0] - w.Pad[0] + k0*w.Dilation[0]
		if h0 < 0 || h0 >= w.Image[0] {
			continue
		}
		for k1 := range w.Kernel[1] {
			h1 := g1*w.Stride[1] - w.Pad[1] + k1*w.Dilation[1]
			if h1 < 0 || h1 >= w.Image[1] {
				continue
			}
			line := src[(h0*w.Image[1]+h1)*w.Image[2]:][:w.Image[2]]
			h2 := g2*w.Stride[2] - w.Pad[2]
			for range w.Kernel[2] {
				if h2 >= 0 && h2 < len(line) {
					if v := line[h2]; v > best || v != v || where < 0 {
						best, where = v, int32((h0*w.Image[1]+h1)*w.Image[2]+h2)
					}
				}
				h2 += w.Dilation[2]
			}
		}
	}
	return best, where
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
