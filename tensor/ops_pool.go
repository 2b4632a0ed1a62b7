package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// MaxPoolOptions are the options of [MaxPool1d] and [MaxPool2d]. Lists have one number for each spatial dimension, or one for all.
type MaxPoolOptions struct {
	Kernel   []int // the window's sizes; needed
	Stride   []int // nil: Kernel
	Padding  []int // with -inf, at most half the window; nil: 0
	Dilation []int // nil: 1
	CeilMode bool  // also take windows that reach beyond the end
}

// AvgPoolOptions are the options of [AvgPool1d] and [AvgPool2d].
type AvgPoolOptions struct {
	Kernel     []int // the window's sizes; needed
	Stride     []int // nil: Kernel
	Padding    []int // with zeros, at most half the window; nil: 0
	CeilMode   bool  // also take windows that reach beyond the end
	ExcludePad bool  // divide by the number of elements without the padding: PyTorch's count_include_pad=False
	Divisor    int   // divide by this, PyTorch's divisor_override; 0: by the window's size
}

// poolWindow checks a pooling's options and returns its windows on x, whose last dimensions are the image.
func (c *call) poolWindow(rank int, kernel, stride, padding, dilation []int, ceil bool) (lib.Window, error) {
	x := c.in[0]
	w := lib.Window{}
	if err := c.imageOperand(rank); err != nil {
		return w, err
	}
	if len(kernel) == 0 {
		return w, errorOf(ErrShape, "the options need a kernel size")
	}
	if len(stride) == 0 {
		stride = kernel
	}
	var err error
	for _, o := range []struct {
		what       string
		list       []int
		def, least int
		to         *[]int
	}{{"kernel size", kernel, 1, 1, &w.Kernel}, {"stride", stride, 1, 1, &w.Stride}, {"padding", padding, 0, 0, &w.Pad}, {"dilation", dilation, 1, 1, &w.Dilation}} {
		if *o.to, err = spatial(o.what, o.list, rank, o.def, o.least); err != nil {
			return w, err
		}
	}
	lead := len(x.shape) - rank
	w.Outer, w.Image = Numel(x.shape[:lead]), x.shape[lead:]
	for i, n := range w.Image {
		k, s, p := w.Kernel[i], w.Stride[i], w.Pad[i]
		if p > k/2 {
			return w, errorOf(ErrShape, "pad should be at most half of effective kernel size, but got padding %v and kernel size %v", w.Pad, w.Kernel)
		}
		room := n + 2*p - w.Dilation[i]*(k-1) - 1
		size := 0
		if room >= 0 {
			size = room/s + 1
		}
		// A window more if it begins within the image or the padding before it.
		if ceil && room > -s && room%s != 0 && size*s < n+p {
			size++
		}
		if size < 1 {
			return w, errorOf(ErrShape, "input of size %v, kernel size %v, stride %v, padding %v and dilation %v give no output: the kernel is larger than the padded image", x.shape, w.Kernel, w.Stride, w.Pad, w.Dilation)
		}
		w.Grid = append(w.Grid, size)
	}
	return w, nil
}

// imageOperand checks that x is a float image, [c, image…] or [n, c, image…].
func (c *call) imageOperand(rank int) error {
	x := c.in[0]
	switch {
	case !x.dtype.IsFloat():
		return errorOf(ErrDType, "not implemented for %s; cast to float32", x.dtype)
	case len(x.shape) != rank+1 && len(x.shape) != rank+2:
		return errorOf(ErrShape, "expected %dD or %dD input, but got input of size %v", rank+1, rank+2, x.shape)
	case slices.Contains(x.shape[len(x.shape)-rank:], 0):
		return errorOf(ErrShape, "expected input with non-zero spatial sizes, but got input of size %v", x.shape)
	}
	return nil
}

// adaptiveWindow returns the windows that make size elements of each dimension; -1 keeps a dimension as it is.
func (c *call) adaptiveWindow(rank int, size []int) (lib.Window, error) {
	w := lib.Window{Adaptive: true, Divide: lib.DivideInside}
	if err := c.imageOperand(rank); err != nil {
		return w, err
	}
	x := c.in[0]
	lead := len(x.shape) - rank
	w.Outer, w.Image = Numel(x.shape[:lead]), x.shape[lead:]
	if len(size) == 0 {
		return w, errorOf(ErrShape, "an output size is needed")
	}
	var err error
	if w.Grid, err = spatial("output size", size, rank, 1, -1); err != nil {
		return w, err
	}
	for i, n := range w.Grid {
		if n == -1 {
			w.Grid[i] = w.Image[i]
		}
	}
	return w, nil
}

// windowShape is the shape of a result: x's leading dimensions, then sizes.
func windowShape(x *Tensor, w *lib.Window, sizes []int) []int {
	return append(slices.Clone(x.shape[:len(x.shape)-len(w.Image)]), sizes...)
}

// sumWindows is the linear map of average pooling: from images to grids, or its adjoint. Each is the other's gradient.
func sumWindows(c *call, w lib.Window, adjoint bool) *Tensor {
	x := c.in[0]
	w.Op, w.Ops, w.In, w.Out = lib.WindowSum, []string{c.op.Name}, x.dtype.Kind(), x.dtype.Kind()
	shape := windowShape(x, &w, w.Grid)
	if adjoint {
		w.Op, shape = lib.WindowSpread, windowShape(x, &w, w.Image)
	}
	out := c.output(shape, x.dtype)
	if out.err != nil {
		return out
	}
	c.run(&w, []binding{c.dense(x)}, out)
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor {
		name := avgPoolSpread
		if adjoint {
			name = avgPoolWindows
		}
		return []*Tensor{sumWindowsOf(name, dy, w, !adjoint)}
	})
	return out
}

func sumWindowsOf(name string, x *Tensor, w lib.Window, adjoint bool) *Tensor {
	c := begin(LookupOp(name), x)
	if c.err != nil {
		return c.failed()
	}
	return sumWindows(c, w, adjoint)
}

func avgPool(rank int, x *Tensor, o AvgPoolOptions) *Tensor {
	c := begin(LookupOp(fmt.Sprintf("avg_pool%dd", rank)), x)
	if c.err != nil {
		return c.failed()
	}
	w, err := c.avgWindow(rank, o)
	if err != nil {
		return c.fail("", err)
	}
	return sumWindows(c, w, false)
}

func (c *call) avgWindow(rank int, o AvgPoolOptions) (lib.Window, error) {
	w, err := c.poolWindow(rank, o.Kernel, o.Stride, o.Padding, nil, o.CeilMode)
	switch {
	case err != nil:
	case o.Divisor != 0:
		w.Divide, w.Divisor = lib.DivideBy, o.Divisor
		if o.Divisor < 0 {
			err = errorOf(ErrShape, "divisor %d must be positive", o.Divisor)
		}
	case o.ExcludePad:
		w.Divide = lib.DivideInside
	case !o.CeilMode: // all windows have the same size
		w.Divide, w.Divisor = lib.DivideBy, Numel(w.Kernel)
	default:
		w.Divide = lib.DividePadded
	}
	return w, err
}

func adaptiveAvgPool(rank int, x *Tensor, size []int) *Tensor {
	c := begin(LookupOp(fmt.Sprintf("adaptive_avg_pool%dd", rank)), x)
	if c.err != nil {
		return c.failed()
	}
	w, err := c.adaptiveWindow(rank, size)
	if err != nil {
		return c.fail("", err)
	}
	if Numel(w.Grid) == 1 { // a reduction does this with more than one invocation for a mean
		dims := []int{-1, -2, -3}[:rank]
		return c.in[0].MeanKeep(dims...)
	}
	return sumWindows(c, w, false)
}

// maxWindows returns the largest elements of windows and their places in the image, int32.
func maxWindows(c *call, w lib.Window) (values, places *Tensor) {
	x := c.in[0]
	w.Op, w.Ops, w.In, w.Out = lib.WindowMax, []string{c.op.Name}, x.dtype.Kind(), x.dtype.Kind()
	if Numel(w.Image) > math.MaxInt32 {
		t := c.shapeFail("an image of %v has too many elements for 32-bit places", w.Image)
		return t, t
	}
	shape := windowShape(x, &w, w.Grid)
	values = c.output(shape, x.dtype)
	if values.err != nil {
		return values, values
	}
	places = c.output(shape, Int32)
	c.run(&w, []binding{c.dense(x)}, values, places)
	c.differentiable([]*Tensor{values}, nil, func(_ *Call, dy *Tensor) []*Tensor {
		return []*Tensor{placed(maxPoolPlace, dy, places, w)}
	})
	return values, places
}

// placed is the gradient of max pooling, or with maxPoolPick that gradient's own.
func placed(name string, x, places *Tensor, w lib.Window) *Tensor {
	c := begin(LookupOp(name), x, places)
	if c.err != nil {
		return c.failed()
	}
	x = c.in[0]
	w.Op, w.Ops, w.In, w.Out = lib.WindowPlace, []string{name}, x.dtype.Kind(), x.dtype.Kind()
	shape, other := windowShape(x, &w, w.Image), maxPoolPick
	if name == maxPoolPick {
		w.Op, shape, other = lib.WindowPick, windowShape(x, &w, w.Grid), maxPoolPlace
	}
	out := c.output(shape, x.dtype)
	if out.err != nil {
		return out
	}
	c.run(&w, []binding{c.dense(x), c.dense(places)}, out)
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor {
		return []*Tensor{placed(other, dy, places, w), nil}
	})
	return out
}

func maxPool(rank int, x *Tensor, o MaxPoolOptions) (values, places *Tensor) {
	c := begin(LookupOp(fmt.Sprintf("max_pool%dd", rank)), x)
	if c.err != nil {
		return c.failed(), c.failed()
	}
	w, err := c.poolWindow(rank, o.Kernel, o.Stride, o.Padding, o.Dilation, o.CeilMode)
	if err != nil {
		t := c.fail("", err)
		return t, t
	}
	return maxWindows(c, w)
}

func adaptiveMaxPool(rank int, x *Tensor, size []int) (values, places *Tensor) {
	c := begin(LookupOp(fmt.Sprintf("adaptive_max_pool%dd", rank)), x)
	if c.err != nil {
		return c.failed(), c.failed()
	}
	w, err := c.adaptiveWindow(rank, size)
	if err != nil {
		t := c.fail("", err)
		return t, t
	}
	w.Divide = lib.DivideNone
	return maxWindows(c, w)
}

// valuesOnly gives up the places where only the gradient may need them.
func valuesOnly(values, places *Tensor) *Tensor {
	if values.err == nil && values.fn == nil {
		places.Free()
	}
	return values
}

func withIndices(values, places *Tensor) (v, indices *Tensor) {
	if values.err != nil {
		return values, values
	}
	return values, places.Cast(Int64)
}

// MaxPool1d returns the largest element of each window of x [n, c, length] (or [c, length]), as torch.nn.functional.max_pool1d.
// The first of equal elements gets the gradient; NaN counts as largest.
func MaxPool1d(x *Tensor, o MaxPoolOptions) *Tensor { return valuesOnly(maxPool(1, x, o)) }

// MaxPool2d is [MaxPool1d] for images: x is [n, c, h, w] or [c, h, w].
func MaxPool2d(x *Tensor, o MaxPoolOptions) *Tensor { return valuesOnly(maxPool(2, x, o)) }

// MaxPool1dIndices is [MaxPool1d] that also returns where each element came from: int64, counted within its channel.
func MaxPool1dIndices(x *Tensor, o MaxPoolOptions) (values, indices *Tensor) {
	return withIndices(maxPool(1, x, o))
}

// MaxPool2dIndices is [MaxPool2d] that also returns where each element came from: int64, row*w + column in its channel's image.
func MaxPool2dIndices(x *Tensor, o MaxPoolOptions) (values, indices *Tensor) {
	return withIndices(maxPool(2, x, o))
}

// AvgPool1d returns the mean of each window of x [n, c, length] (or [c, length]), as torch.nn.functional.avg_pool1d.
func AvgPool1d(x *Tensor, o AvgPoolOptions) *Tensor { return avgPool(1, x, o) }

// AvgPool2d is [AvgPool1d] for images: x is [n, c, h, w] or [c, h, w].
func AvgPool2d(x *Tensor, o AvgPoolOptions) *Tensor { return avgPool(2, x, o) }

// AdaptiveAvgPool1d returns size means of x's last dimension: mean i is over elements floor(i*length/size) up to
// ceil((i+1)*length/size).
func AdaptiveAvgPool1d(x *Tensor, size int) *Tensor { return adaptiveAvgPool(1, x, []int{size}) }

// AdaptiveAvgPool2d is [AdaptiveAvgPool1d] for images: size is h, w, or one number for both; -1 keeps a size.
func AdaptiveAvgPool2d(x *Tensor, size ...int) *Tensor { return adaptiveAvgPool(2, x, size) }

// AdaptiveMaxPool1d returns the largest elements of the windows of [AdaptiveAvgPool1d].
func AdaptiveMaxPool1d(x *Tensor, size int) *Tensor {
	return valuesOnly(adaptiveMaxPool(1, x, []int{size}))
}

// AdaptiveMaxPool2d returns the largest elements of the windows of [AdaptiveAvgPool2d].
func AdaptiveMaxPool2d(x *Tensor, size ...int) *Tensor {
	return valuesOnly(adaptiveMaxPool(2, x, size))
}

// AdaptiveMaxPool2dIndices is [AdaptiveMaxPool2d] that also returns where each element came from (int64).
func AdaptiveMaxPool2dIndices(x *Tensor, size ...int) (values, indices *Tensor) {
	return withIndices(adaptiveMaxPool(2, x, size))
}
