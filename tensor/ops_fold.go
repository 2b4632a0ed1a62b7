package tensor

import (
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// UnfoldOptions are the options of [Unfold] and [Fold]. Lists have one number for each of the two dimensions, or one for both.
type UnfoldOptions struct {
	Kernel   []int // the window's sizes; needed
	Stride   []int // nil: 1
	Padding  []int // nil: 0
	Dilation []int // nil: 1
}

func unfoldOptionsOf(a Attrs) UnfoldOptions {
	return UnfoldOptions{Kernel: firstInts(a, "kernel_size", "kernel"), Stride: a.Ints("stride"), Padding: a.Ints("padding"), Dilation: a.Ints("dilation")}
}

var (
	_ = register(&OpInfo{Name: "unfold", Doc: "the windows of an image as columns, [n, c, h, w] to [n, c*kernel, windows] (im2col)", Kind: KindMove, Inputs: []string{"x"}, Differentiable: []bool{true},
		Call: func(in []*Tensor, a Attrs) []*Tensor { return []*Tensor{Unfold(in[0], unfoldOptionsOf(a))} },
		Ref:  unfoldRef, Samples: unfoldSamples()})
	_ = register(&OpInfo{Name: "fold", Doc: "the sum of columns at their places in an image of output_size, [n, c*kernel, windows] to [n, c, h, w] (col2im)", Kind: KindReduction, Inputs: []string{"x"}, Differentiable: []bool{true},
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			return []*Tensor{Fold(in[0], a.Ints("output_size"), unfoldOptionsOf(a))}
		}, Ref: foldRef, Samples: foldSamples()})
)

// windows returns the windows on an image of two dimensions.
func (o UnfoldOptions) windows(image []int) (lib.Window, error) {
	w := lib.Window{Image: image}
	if len(o.Kernel) == 0 {
		return w, errorOf(ErrShape, "the options need a kernel size")
	}
	var err error
	for _, l := range []struct {
		what       string
		list       []int
		def, least int
		to         *[]int
	}{{"kernel size", o.Kernel, 1, 1, &w.Kernel}, {"stride", o.Stride, 1, 1, &w.Stride}, {"padding", o.Padding, 0, 0, &w.Pad}, {"dilation", o.Dilation, 1, 1, &w.Dilation}} {
		if *l.to, err = spatial(l.what, l.list, len(image), l.def, l.least); err != nil {
			return w, err
		}
	}
	for i, n := range image {
		room := n + 2*w.Pad[i] - w.Dilation[i]*(w.Kernel[i]-1) - 1
		if room < 0 || n < 1 {
			return w, errorOf(ErrShape, "image %v with kernel size %v, dilation %v, padding %v and stride %v has no windows: its blocks must be positive in number", image, w.Kernel, w.Dilation, w.Pad, w.Stride)
		}
		w.Grid = append(w.Grid, room/w.Stride[i]+1)
	}
	return w, nil
}

// Unfold returns the windows of x [n, c, h, w] (or [c, h, w]) as columns [n, c*kh*kw, windows], as torch.nn.functional.unfold.
func Unfold(x *Tensor, o UnfoldOptions) *Tensor {
	c := begin(LookupOp("unfold"), x)
	if c.err != nil {
		return c.failed()
	}
	x = c.in[0]
	if !x.dtype.IsFloat() {
		return c.fail("cast to float32", errorOf(ErrDType, "not implemented for %s", x.dtype))
	}
	if len(x.shape) != 3 && len(x.shape) != 4 {
		return c.shapeFail("expected 3D or 4D input, but got input of size %v", x.shape)
	}
	lead := len(x.shape) - 2
	w, err := o.windows(x.shape[lead:])
	if err != nil {
		return c.fail("", err)
	}
	channels := x.shape[lead-1]
	w.Op, w.Ops, w.Outer, w.In, w.Out = lib.WindowUnfold, []string{"unfold"}, Numel(x.shape[:lead]), x.dtype.Kind(), x.dtype.Kind()
	shape := append(slices.Clone(x.shape[:lead-1]), channels*Numel(w.Kernel), Numel(w.Grid))
	out := c.output(shape, x.dtype)
	if out.err != nil {
		return out
	}
	c.run(&w, []binding{c.dense(x)}, out)
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor { return []*Tensor{Fold(dy, w.Image, o)} })
	return out
}

// Fold returns the sums of the columns of x [n, c*kh*kw, windows] (or without n) at their places in images of size [h, w], as
// torch.nn.functional.fold: the adjoint of [Unfold]. The result is [n, c, h, w].
func Fold(x *Tensor, size []int, o UnfoldOptions) *Tensor {
	c := begin(LookupOp("fold"), x)
	if c.err != nil {
		return c.failed()
	}
	x = c.in[0]
	if !x.dtype.IsFloat() {
		return c.fail("cast to float32", errorOf(ErrDType, "not implemented for %s", x.dtype))
	}
	if len(x.shape) != 2 && len(x.shape) != 3 {
		return c.shapeFail("expected 2D or 3D input, but got input of size %v", x.shape)
	}
	if len(size) == 0 {
		return c.shapeFail("an output size is needed")
	}
	image, err := spatial("output size", size, 2, 1, 1)
	if err != nil {
		return c.fail("", err)
	}
	w, err := o.windows(image)
	if err != nil {
		return c.fail("", err)
	}
	rank := len(x.shape)
	rows, columns, per := x.shape[rank-2], x.shape[rank-1], Numel(w.Kernel)
	switch {
	case rows%per != 0:
		return c.shapeFail("expected size of input's dimension %d to be divisible by the product of kernel size %v, but got input of size %v", rank-2, w.Kernel, x.shape)
	case columns != Numel(w.Grid):
		return c.shapeFail("given output size %v, kernel size %v, dilation %v, padding %v and stride %v, expected size of input's dimension %d to match the calculated number of sliding blocks %d * %d = %d, but got %d",
			image, w.Kernel, w.Dilation, w.Pad, w.Stride, rank-1, w.Grid[0], w.Grid[1], Numel(w.Grid), columns)
	}
	shape := append(slices.Clone(x.shape[:rank-2]), rows/per, image[0], image[1])
	w.Op, w.Ops, w.Outer, w.In, w.Out = lib.WindowFold, []string{"fold"}, Numel(shape[:rank-1]), x.dtype.Kind(), x.dtype.Kind()
	out := c.output(shape, x.dtype)
	if out.err != nil {
		return out
	}
	c.run(&w, []binding{c.dense(x)}, out)
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor { return []*Tensor{Unfold(dy, o)} })
	return out
}

// foldPairs visits the pairs of an element of images [c, h, w] and one of their columns, from the definition.
func foldPairs(channels int, image []int, a Attrs, visit func(image, column int)) (rows, columns int, err error) {
	g, err := refGeometry(2, a)
	if err != nil {
		return 0, 0, err
	}
	if g.kernel, err = spatial("kernel_size", firstInts(a, "kernel_size", "kernel"), 2, 1, 1); err != nil {
		return 0, 0, err
	}
	g.n, g.c, g.o, g.groups, g.image = 1, channels, 1, 1, image
	for i, k := range g.kernel {
		g.grid = append(g.grid, (image[i]+2*g.padding[i]-g.dilation[i]*(k-1)-1)/g.stride[i]+1)
	}
	rows, columns = channels*Numel(g.kernel), Numel(g.grid)
	convSum(g, func(image, weight, grid int) { visit(image, weight*columns+grid) })
	return rows, columns, nil
}

func unfoldRef(in []Array, a Attrs) ([]Array, error) {
	x := in[0]
	lead := len(x.Shape) - 3
	per := Numel(x.Shape[lead:])
	var pairs [][2]int
	rows, columns, err := foldPairs(x.Shape[lead], x.Shape[lead+1:], a, func(i, c int) { pairs = append(pairs, [2]int{i, c}) })
	if err != nil {
		return nil, err
	}
	shape := append(slices.Clone(x.Shape[:lead]), rows, columns)
	out := Array{Shape: shape, Data: make([]float64, Numel(shape))}
	for n := range Numel(x.Shape[:lead]) {
		for _, p := range pairs {
			out.Data[n*rows*columns+p[1]] = x.Data[n*per+p[0]]
		}
	}
	return []Array{out}, nil
}

func foldRef(in []Array, a Attrs) ([]Array, error) {
	x := in[0]
	lead := len(x.Shape) - 2
	kernel, err := spatial("kernel_size", firstInts(a, "kernel_size", "kernel"), 2, 1, 1)
	if err != nil {
		return nil, err
	}
	image, err := spatial("output_size", a.Ints("output_size"), 2, 1, 1)
	if err != nil {
		return nil, err
	}
	channels := x.Shape[lead] / Numel(kernel)
	var pairs [][2]int
	rows, columns, err := foldPairs(channels, image, a, func(i, c int) { pairs = append(pairs, [2]int{i, c}) })
	if err != nil {
		return nil, err
	}
	shape := append(slices.Clone(x.Shape[:lead]), channels, image[0], image[1])
	out := Array{Shape: shape, Data: make([]float64, Numel(shape))}
	per := channels * Numel(image)
	for n := range Numel(x.Shape[:lead]) {
		for _, p := range pairs {
			out.Data[n*per+p[0]] += x.Data[n*rows*columns+p[1]]
		}
	}
	return []Array{out}, nil
}

func unfoldSamples() []Sample {
	x := windowArray(2, 2, 3, 5, 6)
	return []Sample{
		{Name: "plain", In: []Array{x}, Attrs: Attrs{"kernel_size": []int{2, 3}}},
		{Name: "all", In: []Array{x}, Attrs: Attrs{"kernel_size": 2, "stride": 2, "padding": 1, "dilation": []int{1, 2}}},
		{Name: "unbatched", In: []Array{windowArray(2, 3, 5, 6)}, Attrs: Attrs{"kernel_size": 3, "padding": 1}},
		{Name: "kernel", In: []Array{x}, Attrs: Attrs{"kernel_size": 7}, Err: "has no windows"},
		{Name: "rank", In: []Array{windowArray(1, 5, 6)}, Attrs: Attrs{"kernel_size": 2}, Err: "expected 3D or 4D input"},
	}
}

func foldSamples() []Sample {
	return []Sample{
		{Name: "plain", In: []Array{windowArray(2, 2, 18, 16)}, Attrs: Attrs{"output_size": []int{5, 6}, "kernel_size": []int{2, 3}}},
		{Name: "all", In: []Array{windowArray(2, 1, 12, 9)}, Attrs: Attrs{"output_size": []int{5, 6}, "kernel_size": 2, "stride": 2, "padding": 1, "dilation": []int{1, 2}}},
		{Name: "unbatched", In: []Array{windowArray(2, 4, 9)}, Attrs: Attrs{"output_size": 4, "kernel_size": 2}},
		{Name: "rows", In: []Array{windowArray(2, 2, 17, 16)}, Attrs: Attrs{"output_size": []int{5, 6}, "kernel_size": []int{2, 3}}, Err: "divisible by the product of kernel size [2 3]"},
		{Name: "columns", In: []Array{windowArray(2, 2, 18, 15)}, Attrs: Attrs{"output_size": []int{5, 6}, "kernel_size": []int{2, 3}}, Err: "sliding blocks 4 * 4 = 16, but got 15"},
		{Name: "size", In: []Array{windowArray(2, 2, 18, 15)}, Attrs: Attrs{"kernel_size": 2}, Err: "an output size is needed"},
	}
}
