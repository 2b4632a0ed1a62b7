package tensor

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/lib"
)

// The rows of the gradients of pooling.
const (
	avgPoolWindows = "avg_pool_windows"
	avgPoolSpread  = "avg_pool_spread"
	maxPoolPlace   = "max_pool_place"
	maxPoolPick    = "max_pool_pick"
)

func maxPoolOptionsOf(a Attrs) MaxPoolOptions {
	return MaxPoolOptions{Kernel: firstInts(a, "kernel_size", "kernel"), Stride: a.Ints("stride"), Padding: a.Ints("padding"), Dilation: a.Ints("dilation"), CeilMode: a.Bool("ceil_mode")}
}

func avgPoolOptionsOf(a Attrs) AvgPoolOptions {
	return AvgPoolOptions{Kernel: firstInts(a, "kernel_size", "kernel"), Stride: a.Ints("stride"), Padding: a.Ints("padding"), CeilMode: a.Bool("ceil_mode"),
		ExcludePad: a.Has("count_include_pad") && !a.Bool("count_include_pad"), Divisor: a.Int("divisor_override", 0)}
}

// maxResult returns the values of max pooling, and the places if return_indices asks for them.
func maxResult(a Attrs, values, places *Tensor) []*Tensor {
	if !a.Bool("return_indices") {
		return []*Tensor{valuesOnly(values, places)}
	}
	v, i := withIndices(values, places)
	return []*Tensor{v, i}
}

func definePool(rank int) int {
	row := func(name, doc string, call func(x *Tensor, a Attrs) []*Tensor, ref func(in []Array, a Attrs) ([]Array, error), samples []Sample) {
		register(&OpInfo{Name: fmt.Sprintf("%s%dd", name, rank), Doc: doc, Kind: KindReduction, Inputs: []string{"x"}, Differentiable: []bool{true},
			Call: func(in []*Tensor, a Attrs) []*Tensor { return call(in[0], a) }, Ref: ref, Samples: samples})
	}
	row("max_pool", "largest element of each window; with return_indices also where it is", func(x *Tensor, a Attrs) []*Tensor {
		v, p := maxPool(rank, x, maxPoolOptionsOf(a))
		return maxResult(a, v, p)
	}, poolRef(rank, true), maxPoolSamples(rank))
	row("avg_pool", "mean of each window", func(x *Tensor, a Attrs) []*Tensor { return []*Tensor{avgPool(rank, x, avgPoolOptionsOf(a))} },
		poolRef(rank, false), avgPoolSamples(rank))
	row("adaptive_avg_pool", "means of as many windows as output_size asks for", func(x *Tensor, a Attrs) []*Tensor {
		return []*Tensor{adaptiveAvgPool(rank, x, a.Ints("output_size"))}
	}, poolRef(rank, false), adaptiveSamples(rank))
	row("adaptive_max_pool", "largest elements of as many windows as output_size asks for", func(x *Tensor, a Attrs) []*Tensor {
		v, p := adaptiveMaxPool(rank, x, a.Ints("output_size"))
		return maxResult(a, v, p)
	}, poolRef(rank, true), adaptiveSamples(rank))
	return 0
}

// gradientWindow reads the windows of a gradient's row: image gives the sizes of the image, the rest is as in the pooling.
func gradientWindow(c *call, a Attrs, max bool) (lib.Window, error) {
	image := a.Ints("image")
	like := &call{op: c.op, in: []*Tensor{{shape: append([]int{1}, image...), dtype: c.in[0].dtype}}}
	if a.Has("output_size") {
		return like.adaptiveWindow(len(image), a.Ints("output_size"))
	}
	var w lib.Window
	var err error
	if max {
		o := maxPoolOptionsOf(a)
		w, err = like.poolWindow(len(image), o.Kernel, o.Stride, o.Padding, o.Dilation, o.CeilMode)
	} else {
		w, err = like.avgWindow(len(image), avgPoolOptionsOf(a))
	}
	return w, err
}

// windowOperand checks that an operand ends in the sizes that a gradient's row works on, and completes its windows.
func windowOperand(c *call, w *lib.Window, sizes []int) error {
	x := c.in[0]
	lead := len(x.shape) - len(sizes)
	if lead < 0 || fmt.Sprint(x.shape[lead:]) != fmt.Sprint(sizes) {
		return errorOf(ErrShape, "expected an operand that ends in %v, but got size %v", sizes, x.shape)
	}
	if !x.dtype.IsFloat() {
		return errorOf(ErrDType, "not implemented for %s; cast to float32", x.dtype)
	}
	w.Outer = Numel(x.shape[:lead])
	return nil
}

func defineAvgGradient(name, doc string, adjoint bool) int {
	register(&OpInfo{Name: name, Doc: doc, Kind: KindReduction, Inputs: []string{"x"}, Differentiable: []bool{true},
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			c := begin(LookupOp(name), in[0])
			if c.err != nil {
				return []*Tensor{c.failed()}
			}
			w, err := gradientWindow(c, a, false)
			if err == nil {
				sizes := w.Image
				if adjoint {
					sizes = w.Grid
				}
				err = windowOperand(c, &w, sizes)
			}
			if err != nil {
				return []*Tensor{c.fail("", err)}
			}
			return []*Tensor{sumWindows(c, w, adjoint)}
		}, Ref: avgGradientRef(adjoint), Samples: avgGradientSamples(adjoint)})
	return 0
}

func defineMaxGradient(name, doc string) int {
	register(&OpInfo{Name: name, Doc: doc, Kind: KindReduction, Inputs: []string{"x", "places"}, Differentiable: []bool{true, false},
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			c := begin(LookupOp(name), in...)
			if c.err != nil {
				return []*Tensor{c.failed()}
			}
			w, err := gradientWindow(c, a, true)
			if err == nil {
				sizes := w.Image
				if name == maxPoolPlace {
					sizes = w.Grid
				}
				err = windowOperand(c, &w, sizes)
			}
			if err == nil && (fmt.Sprint(c.in[1].shape) != fmt.Sprint(windowShape(c.in[0], &w, w.Grid)) || c.in[1].dtype != Int32) {
				err = errorOf(ErrShape, "expected int32 places of size %v, but got %s of size %v", windowShape(c.in[0], &w, w.Grid), c.in[1].dtype, c.in[1].shape)
			}
			if err != nil {
				return []*Tensor{c.fail("", err)}
			}
			w.Divide = lib.DivideNone
			return []*Tensor{placed(name, c.in[0], c.in[1], w)}
		}, Ref: maxGradientRef(name == maxPoolPick), Samples: maxGradientSamples(name == maxPoolPick)})
	return 0
}

var (
	_ = definePool(1)
	_ = definePool(2)
	_ = defineAvgGradient(avgPoolSpread, "the gradient of average pooling over an image", true)
	_ = defineAvgGradient(avgPoolWindows, "average pooling, as the gradient of avg_pool_spread", false)
	_ = defineMaxGradient(maxPoolPlace, "the gradient of max pooling: what windows give to an image at the places of their largest elements, which lie in the windows")
	_ = defineMaxGradient(maxPoolPick, "the elements of an image at the places of the largest elements of its windows")
)
