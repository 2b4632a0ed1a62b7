package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// WindowOp is what a [Window] kernel does.
type WindowOp int

// The operations on windows. Those on an image's side gather from every window that reaches an element, in a fixed
// order, so that no two invocations write to one place.
const (
	WindowUnfold WindowOp = iota // in [Outer, Image] to out [Outer, Kernel, Grid], 0 outside the image
	WindowFold                   // its adjoint: in [Outer, Kernel, Grid] summed to out [Outer, Image]
	WindowSum                    // in [Outer, Image] summed (or averaged, see Divide) to out [Outer, Grid]
	WindowSpread                 // its adjoint: in [Outer, Grid] to out [Outer, Image]
	WindowMax                    // in [Outer, Image] to the largest element [Outer, Grid] and its place in the image, I32
	WindowPick                   // in [Outer, Image] and places [Outer, Grid] to the elements there, [Outer, Grid]
	WindowPlace                  // its adjoint: in [Outer, Grid] and places [Outer, Grid] to out [Outer, Image]
)

// String returns the operation's name.
func (o WindowOp) String() string {
	names := [...]string{"unfold", "fold", "window_sum", "window_spread", "window_max", "window_pick", "window_place"}
	if o < 0 || int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// backward reports whether an invocation makes an element of the image from the windows around it.
func (o WindowOp) backward() bool { return o == WindowFold || o == WindowSpread || o == WindowPlace }

// WindowDivide is what WindowSum and WindowSpread divide by.
type WindowDivide int

// The divisors.
const (
	DivideNone   WindowDivide = iota
	DividePadded              // the window's size within the padded image
	DivideInside              // the window's size within the image
	DivideBy                  // Divisor
)

// Window is a kernel over the windows of images of one to three dimensions, [Outer, Image…], all contiguous: the base of
// convolution, pooling, unfold and fold. Window g takes, in each dimension, the elements g*Stride - Pad + k*Dilation for
// k < Kernel that lie in the image; Grid is the number of windows. With Adaptive it takes those from floor(g*Image/Grid) up to
// ceil((g+1)*Image/Grid), and Kernel, Stride, Pad and Dilation do not count.
//
// Values are computed in F32 (F64 for F64). Max propagates NaN and gives the first of equal elements; of a window without
// elements it is -inf, at place -1. Buffers: in, places if they are read, out, places if they are written.
type Window struct {
	Op       WindowOp
	Ops      []string
	Outer    int
	Image    []int
	Grid     []int
	Kernel   []int
	Stride   []int
	Pad      []int
	Dilation []int
	Adaptive bool
	Divide   WindowDivide
	Divisor  int // of DivideBy, positive

	In, Out             ir.Kind
	OffsetIn, OffsetOut int // in elements
}

// windowHead is the number of launch parameters before those of the dimensions.
const windowHead = 5

// Key identifies the kernel; sizes and offsets are launch parameters.
func (w *Window) Key() string {
	if err := w.check(); err != nil {
		return "window|invalid|" + err.Error()
	}
	return fmt.Sprintf("window|%s|%dd|%s>%s|adaptive %v|dilated %v|divide %d|%s|ops %q", w.Op, len(w.Image), w.In, w.Out, w.Adaptive, w.dilated(), w.Divide, w.baked(), w.Ops)
}

// dilated reports whether neighbours in a window may be further apart than 1.
func (w *Window) dilated() bool {
	if w.Adaptive {
		return false
	}
	for _, d := range w.Dilation {
		if d > 1 {
			return true
		}
	}
	return false
}

// elements returns the numbers of elements of the input, of the output, and of invocations.
func (w *Window) elements() (in, out, n int) {
	image, grid, kernel := w.Outer, w.Outer, 1
	for i := range w.Image {
		image, grid = satMul(image, w.Image[i]), satMul(grid, w.Grid[i])
		if !w.Adaptive {
			kernel = satMul(kernel, w.Kernel[i])
		}
	}
	switch w.Op {
	case WindowUnfold:
		return image, satMul(grid, kernel), satMul(grid, kernel)
	case WindowFold:
		return satMul(grid, kernel), image, image
	case WindowSum, WindowMax, WindowPick:
		return image, grid, grid
	}
	return grid, image, image
}

// Elements returns the numbers of elements of the input (an image or grids) and of the output.
func (w *Window) Elements() (in, out int) {
	in, out, _ = w.elements()
	return in, out
}

// Launch returns the grid and the parameters: invocations, offsets, divisor, outer size, then for each dimension the
// sizes of image, grid and kernel, stride, padding and dilation.
func (w *Window) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := w.check(); err != nil {
		return groups, nil, err
	}
	if limit, trips := t.Caps.MaxLoopTrips, w.trips(); limit > 0 && trips > limit {
		return groups, nil, fmt.Errorf("%s: windows of up to %d elements (kernel %v over image %v) need more loop iterations than the %d that the device allows", w.Op, trips, w.Kernel, w.Image, limit)
	}
	in, out, n := w.elements()
	for _, m := range []struct {
		n int
		k ir.Kind
	}{{in, w.In}, {out, w.Out}} {
		if limit := t.Caps.MaxBufferBytes; limit > 0 && int64(m.n)*int64(m.k.Size()) > limit {
			return groups, nil, fmt.Errorf("%s: %d elements of %s; the device binds at most %d bytes to a kernel; split the batch", w.Op, m.n, m.k, limit)
		}
	}
	if w.byRows(t) {
		n /= max(w.rowLength(), 1)
	}
	params = []uint32{uint32(n), uint32(w.OffsetIn), uint32(w.OffsetOut), uint32(w.Divisor), uint32(w.Outer)}
	for i := range w.Image {
		d := [4]int{1, 1, 0, 1}
		if !w.Adaptive {
			d = [4]int{w.Kernel[i], w.Stride[i], w.Pad[i], w.Dilation[i]}
		}
		for _, v := range append([]int{w.Image[i], w.Grid[i]}, d[:]...) {
			params = append(params, uint32(v))
		}
	}
	groups, err = t.fold(w.Op.String(), uint64(ceilDiv(n, t.config().local)))
	if err == nil && uint64(groups[0])*uint64(groups[1])*uint64(t.config().local) > 1<<32 {
		err = fmt.Errorf("%s: %d elements are too many for 32-bit indices; split the batch", w.Op, n)
	}
	return groups, params, err
}

// ParseWindow returns the spec of a launch: kernels are shared between sizes, so a native program that stands in for
// one (Kernel.Template) takes the sizes from the launch parameters and the rest from the template.
func ParseWindow(template *Window, params []uint32) (*Window, error) {
	rank := len(template.Image)
	if len(params) != windowHead+6*rank {
		return nil, fmt.Errorf("%s: %d launch parameters, want %d", template.Op, len(params), windowHead+6*rank)
	}
	w := *template
	w.OffsetIn, w.OffsetOut, w.Divisor, w.Outer = int(params[1]), int(params[2]), int(params[3]), int(params[4])
	sizes := make([][]int, 6)
	for i := range sizes {
		sizes[i] = make([]int, rank)
		for d := range rank {
			sizes[i][d] = int(params[windowHead+6*d+i])
		}
	}
	w.Image, w.Grid, w.Kernel, w.Stride, w.Pad, w.Dilation = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]
	return &w, w.check()
}

// trips is a bound of the iterations of all loops of an invocation.
func (w *Window) trips() int {
	if w.Op == WindowUnfold || w.Op == WindowPick {
		return 0
	}
	total, nest := 0, 1
	for i, image := range w.Image {
		n := 0
		switch grid := w.Grid[i]; {
		case w.Adaptive && w.Op.backward():
			n = min(grid, ceilDiv(grid, max(image, 1))+1)
		case w.Adaptive:
			n = min(image, ceilDiv(image, max(grid, 1))+1)
		case w.Op.backward():
			n = min(grid, ((w.Kernel[i]-1)*w.Dilation[i])/w.Stride[i]+1)
		default:
			n = min(image, w.Kernel[i])
		}
		nest = satMul(nest, n)
		total = satAdd(total, nest)
	}
	return total
}

// Cost returns the bytes moved, or the loop iterations if those are more.
func (w *Window) Cost() float64 {
	in, out, n := w.elements()
	return max(float64(in)*float64(w.In.Size())+float64(out)*float64(w.Out.Size()), 4*float64(n)*float64(max(w.trips(), 1)))
}

// check reports sizes and kinds that the kernel cannot serve.
func (w *Window) check() error {
	rank := len(w.Image)
	if rank < 1 || rank > 3 || len(w.Grid) != rank {
		return fmt.Errorf("%s: images of one to three dimensions, got image %v and grid %v", w.Op, w.Image, w.Grid)
	}
	if !w.Adaptive && (len(w.Kernel) != rank || len(w.Stride) != rank || len(w.Pad) != rank || len(w.Dilation) != rank) {
		return fmt.Errorf("%s: kernel %v, stride %v, padding %v and dilation %v need one number for each dimension of image %v", w.Op, w.Kernel, w.Stride, w.Pad, w.Dilation, w.Image)
	}
	if w.Adaptive && (w.Op == WindowUnfold || w.Op == WindowFold) {
		return fmt.Errorf("%s: adaptive windows have no common size", w.Op)
	}
	if w.Outer < 0 || w.OffsetIn < 0 || w.OffsetOut < 0 || w.Divide == DivideBy && w.Divisor < 1 {
		return fmt.Errorf("%s: outer size %d and offsets %d, %d must not be negative, and a divisor (%d) positive", w.Op, w.Outer, w.OffsetIn, w.OffsetOut, w.Divisor)
	}
	const far = math.MaxInt32 // coordinates in a padded image fit 32 bits with room for a window
	for i, n := range w.Image {
		if n < 0 || w.Grid[i] < 0 {
			return fmt.Errorf("%s: image %v and grid %v must not be negative", w.Op, w.Image, w.Grid)
		}
		if w.Adaptive {
			if satMul(n+1, w.Grid[i]+1) >= far {
				return fmt.Errorf("%s: an image of %v with %v adaptive windows is too large for 32-bit indices", w.Op, w.Image, w.Grid)
			}
			continue
		}
		k, s, p, d := w.Kernel[i], w.Stride[i], w.Pad[i], w.Dilation[i]
		if k < 1 || s < 1 || d < 1 || p < 0 {
			return fmt.Errorf("%s: kernel %v, stride %v and dilation %v must be positive and padding %v not negative", w.Op, w.Kernel, w.Stride, w.Dilation, w.Pad)
		}
		if satAdd(satAdd(satMul(k, d), satMul(w.Grid[i], s)), satAdd(n, satMul(2, p))) >= far {
			return fmt.Errorf("%s: image %v, grid %v, kernel %v, stride %v, padding %v, dilation %v: too large for 32-bit indices", w.Op, w.Image, w.Grid, w.Kernel, w.Stride, w.Pad, w.Dilation)
		}
	}
	if !w.In.IsFloat() || !w.Out.IsFloat() || (w.In == ir.F64) != (w.Out == ir.F64) {
		return fmt.Errorf("%s: from %s to %s; it takes floats, f64 only with f64", w.Op, w.In, w.Out)
	}
	in, out, n := w.elements()
	if satAdd(in, w.OffsetIn) > maxReduceElements || satAdd(out, w.OffsetOut) > maxReduceElements || n > maxReduceElements {
		return fmt.Errorf("%s: %d elements in (offset %d) and %d out (offset %d) are more than %d; split the batch", w.Op, in, w.OffsetIn, out, w.OffsetOut, int64(maxReduceElements))
	}
	return nil
}
