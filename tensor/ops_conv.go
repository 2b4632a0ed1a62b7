package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// ConvOptions are the options of [Conv1d], [Conv2d] and [Conv3d]. Lists have one number for each spatial dimension, or
// one for all; the zero value has PyTorch's defaults.
type ConvOptions struct {
	Stride   []int // nil: 1
	Padding  []int // zeros on both sides of each dimension; nil: 0
	Dilation []int // nil: 1
	Groups   int   // 0: 1
	Same     bool  // as PyTorch's padding="same": as much padding as keeps the size, for stride 1
}

// ConvTransposeOptions are the options of [ConvTranspose1d], [ConvTranspose2d] and [ConvTranspose3d].
type ConvTransposeOptions struct {
	Stride        []int // nil: 1
	Padding       []int // nil: 0
	OutputPadding []int // added to one side of the output's sizes; nil: 0
	Dilation      []int // nil: 1
	Groups        int   // 0: 1
}

func convOptionsOf(a Attrs) ConvOptions {
	o := ConvOptions{Stride: a.Ints("stride"), Padding: a.Ints("padding"), Dilation: a.Ints("dilation"), Groups: a.Int("groups", 1)}
	o.Same = a.String("padding", "") == "same"
	return o
}

func defineConv(rank int) int {
	diff := []bool{true, true, true}
	register(&OpInfo{Name: fmt.Sprintf("conv%dd", rank), Kind: KindTemplate, Class: Lower, Inputs: []string{"x", "weight", "bias"}, Differentiable: diff,
		Doc: "convolution (as cross-correlation) of x [n, c, …] with weight [o, c/groups, …] and bias [o]",
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			return []*Tensor{conv(rank, in[0], in[1], third(in), convOptionsOf(a))}
		},
		Ref: convRef, Samples: convSamples(rank)})
	register(&OpInfo{Name: fmt.Sprintf("conv_transpose%dd", rank), Kind: KindTemplate, Class: Lower, Inputs: []string{"x", "weight", "bias"}, Differentiable: diff,
		Doc: "transposed convolution of x [n, o, …] with weight [o, c/groups, …] and bias [c]: the adjoint of a convolution",
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			return []*Tensor{convTranspose(rank, in[0], in[1], third(in), ConvTransposeOptions{Stride: a.Ints("stride"), Padding: a.Ints("padding"),
				OutputPadding: a.Ints("output_padding"), Dilation: a.Ints("dilation"), Groups: a.Int("groups", 1)})}
		},
		Ref: convTransposeRef, Samples: convTransposeSamples(rank)})
	return 0
}

func third(in []*Tensor) *Tensor {
	if len(in) > 2 {
		return in[2]
	}
	return nil
}

var (
	_ = defineConv(1)
	_ = defineConv(2)
	_ = defineConv(3)

	_ = register(&OpInfo{Name: convWeightGrad, Kind: KindTemplate, Class: Lower, Inputs: []string{"x", "dy"}, Differentiable: []bool{true, true},
		Doc: "the gradient of a convolution of x for its weight, from the gradient dy of the result; kernel gives the weight's sizes",
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			return []*Tensor{convWeight(in[0], in[1], a.Ints("kernel"), convOptionsOf(a))}
		},
		Ref: convWeightRef, Samples: convWeightSamples()})
)

const convWeightGrad = "conv_weight_grad"

// Conv1d returns the convolution of x [n, c, length] (or [c, length]) with w [o, c/groups, k] and b [o], which may be nil: as
// torch.nn.functional.conv1d, a cross-correlation. The result is [n, o, (length + 2*padding - dilation*(k-1) - 1)/stride + 1].
// float16 and bfloat16 accumulate in float32.
func Conv1d(x, w, b *Tensor, opts ConvOptions) *Tensor { return conv(1, x, w, b, opts) }

// Conv2d is [Conv1d] for images: x is [n, c, h, w] (or [c, h, w]) and w [o, c/groups, kh, kw].
func Conv2d(x, w, b *Tensor, opts ConvOptions) *Tensor { return conv(2, x, w, b, opts) }

// Conv3d is [Conv1d] for volumes: x is [n, c, d, h, w] (or [c, d, h, w]) and w [o, c/groups, kd, kh, kw].
func Conv3d(x, w, b *Tensor, opts ConvOptions) *Tensor { return conv(3, x, w, b, opts) }

// ConvTranspose1d returns the transposed convolution of x [n, o, length] (or [o, length]) with w [o, c/groups, k] and b [c], which
// may be nil, as torch.nn.functional.conv_transpose1d: the gradient of a convolution for its input. The result is [n, c,
// (length-1)*stride - 2*padding + dilation*(k-1) + outputPadding + 1].
func ConvTranspose1d(x, w, b *Tensor, opts ConvTransposeOptions) *Tensor {
	return convTranspose(1, x, w, b, opts)
}

// ConvTranspose2d is [ConvTranspose1d] for images.
func ConvTranspose2d(x, w, b *Tensor, opts ConvTransposeOptions) *Tensor {
	return convTranspose(2, x, w, b, opts)
}

// ConvTranspose3d is [ConvTranspose1d] for volumes.
func ConvTranspose3d(x, w, b *Tensor, opts ConvTransposeOptions) *Tensor {
	return convTranspose(3, x, w, b, opts)
}

// spatial returns one number for each of rank dimensions: def where the list is empty, and its only number for all.
func spatial(what string, list []int, rank, def, least int) ([]int, error) {
	out := make([]int, rank)
	switch len(list) {
	case 0, 1, rank:
	default:
		return nil, errorOf(ErrShape, "%s %v needs %d numbers, one for each spatial dimension, or one for all", what, list, rank)
	}
	for i := range out {
		switch {
		case len(list) == 0:
			out[i] = def
		case len(list) == 1:
			out[i] = list[0]
		default:
			out[i] = list[i]
		}
		if out[i] < least || out[i] > math.MaxInt32 {
			return nil, errorOf(ErrShape, "%s %v: each number must be at least %d and less than 2^31", what, list, least)
		}
	}
	return out, nil
}

// fill reads the options that all convolutions have.
func (g *convGeometry) fill(rank int, stride, padding, dilation []int, groups int) error {
	g.groups = groups
	if groups == 0 {
		g.groups = 1
	}
	if g.groups < 1 {
		return errorOf(ErrShape, "groups must be positive, got %d", groups)
	}
	var err error
	if g.stride, err = spatial("stride", stride, rank, 1, 1); err != nil {
		return err
	}
	if g.padding, err = spatial("padding", padding, rank, 0, 0); err != nil {
		return err
	}
	g.dilation, err = spatial("dilation", dilation, rank, 1, 1)
	return err
}

// convOperands checks what all convolutions need of x and the weight.
func (c *call) convOperands(rank int) error {
	x, w := c.in[0], c.in[1]
	if !x.dtype.IsFloat() {
		return errorOf(ErrDType, "not implemented for %s; cast to float32", x.dtype)
	}
	for _, t := range c.in[1:] {
		if t.dtype != x.dtype {
			return errorOf(ErrDType, "expected all operands to have the same dtype, but got: %s != %s; cast one", x.dtype, t.dtype)
		}
	}
	switch {
	case len(x.shape) != rank+2:
		return errorOf(ErrShape, "expected %dD (unbatched) or %dD (batched) input, but got input of size %v", rank+1, rank+2, x.shape)
	case len(w.shape) != rank+2:
		return errorOf(ErrShape, "expected a %dD weight, but got weight of size %v", rank+2, w.shape)
	case slices.Contains(w.shape, 0):
		return errorOf(ErrShape, "weight of size %v has no elements", w.shape)
	}
	return nil
}

// batched runs f on x with a batch dimension, which it adds and takes away again where x has none.
func batched(rank int, x *Tensor, f func(x *Tensor) *Tensor) *Tensor {
	if x != nil && x.err == nil && len(x.shape) == rank+1 {
		return f(x.Unsqueeze(0)).Squeeze(0)
	}
	return f(x)
}

func convIn(x, w, b *Tensor) []*Tensor {
	if b == nil {
		return []*Tensor{x, w}
	}
	return []*Tensor{x, w, b}
}

func conv(rank int, x, w, b *Tensor, opts ConvOptions) *Tensor {
	return batched(rank, x, func(x *Tensor) *Tensor {
		c := begin(LookupOp(fmt.Sprintf("conv%dd", rank)), convIn(x, w, b)...)
		if c.err != nil {
			return c.failed()
		}
		if err := c.convOperands(rank); err != nil {
			return c.fail("", err)
		}
		x, w := c.in[0], c.in[1]
		g := &convGeometry{n: x.shape[0], c: x.shape[1], o: w.shape[0], image: x.shape[2:], kernel: w.shape[2:]}
		if err := g.fill(rank, opts.Stride, opts.Padding, opts.Dilation, opts.Groups); err != nil {
			return c.fail("", err)
		}
		switch {
		case g.c != w.shape[1]*g.groups:
			return c.shapeFail("given groups=%d, weight of size %v, expected input %v to have %d channels, but got %d channels instead", g.groups, w.shape, x.shape, w.shape[1]*g.groups, g.c)
		case g.o%g.groups != 0:
			return c.shapeFail("the %d output channels of weight %v must be divisible by groups=%d", g.o, w.shape, g.groups)
		case len(c.in) == 3 && !slices.Equal(c.in[2].shape, w.shape[:1]):
			return c.shapeFail("given weight of size %v, expected bias to be 1-dimensional with %d elements, but got bias of size %v instead", w.shape, g.o, c.in[2].shape)
		}
		if err := g.findGrid(opts); err != nil {
			return c.fail("", err)
		}
		if g.native(lib.ConvForward, c, x.dtype) {
			return g.nativeImages(lib.ConvForward, c, x, w, third(c.in))
		}
		return c.biased(g.inParts(c, x, w))
	})
}

// findGrid works out the number of windows.
func (g *convGeometry) findGrid(opts ConvOptions) error {
	g.grid = make([]int, len(g.image))
	if opts.Same {
		if len(opts.Padding) > 0 {
			return errorOf(ErrShape, "padding %v and Same exclude each other", opts.Padding)
		}
		for i, k := range g.kernel {
			if g.stride[i] != 1 {
				return errorOf(ErrShape, "padding 'same' is not supported for strided convolutions, got stride %v", g.stride)
			}
			// An odd number of zeros has one more behind than before the image.
			g.padding[i] = g.dilation[i] * (k - 1) / 2
			g.grid[i] = g.image[i]
		}
		return nil
	}
	padded, kernel := make([]int, len(g.image)), make([]int, len(g.image))
	for i, k := range g.kernel {
		padded[i] = g.image[i] + 2*g.padding[i]
		kernel[i] = g.dilation[i]*(k-1) + 1
		g.grid[i] = (padded[i]-kernel[i])/g.stride[i] + 1
	}
	for i := range padded {
		if padded[i] < kernel[i] {
			return errorOf(ErrShape, "calculated padded input size per channel: %v. Kernel size (with dilation): %v. Kernel size can't be greater than actual input size", padded, kernel)
		}
	}
	return nil
}

func convTranspose(rank int, x, w, b *Tensor, opts ConvTransposeOptions) *Tensor {
	return batched(rank, x, func(x *Tensor) *Tensor {
		c := begin(LookupOp(fmt.Sprintf("conv_transpose%dd", rank)), convIn(x, w, b)...)
		if c.err != nil {
			return c.failed()
		}
		if err := c.convOperands(rank); err != nil {
			return c.fail("", err)
		}
		x, w := c.in[0], c.in[1]
		g := &convGeometry{n: x.shape[0], o: x.shape[1], grid: x.shape[2:], kernel: w.shape[2:]}
		if err := g.fill(rank, opts.Stride, opts.Padding, opts.Dilation, opts.Groups); err != nil {
			return c.fail("", err)
		}
		extra, err := spatial("output padding", opts.OutputPadding, rank, 0, 0)
		if err != nil {
			return c.fail("", err)
		}
		g.c = w.shape[1] * g.groups
		switch {
		case g.o != w.shape[0]:
			return c.shapeFail("given transposed=1, weight of size %v, expected input %v to have %d channels, but got %d channels instead", w.shape, x.shape, w.shape[0], g.o)
		case g.o%g.groups != 0:
			return c.shapeFail("the %d input channels of weight %v must be divisible by groups=%d", g.o, w.shape, g.groups)
		case len(c.in) == 3 && !slices.Equal(c.in[2].shape, []int{g.c}):
			return c.shapeFail("given weight of size %v and groups=%d, expected bias to be 1-dimensional with %d elements, but got bias of size %v instead", w.shape, g.groups, g.c, c.in[2].shape)
		}
		g.image = make([]int, rank)
		for i, k := range g.kernel {
			if extra[i] >= max(g.stride[i], g.dilation[i]) {
				return c.shapeFail("output padding must be smaller than either stride or dilation, but got output padding %v, stride %v and dilation %v", extra, g.stride, g.dilation)
			}
			if g.grid[i] < 1 {
				return c.shapeFail("expected non-zero spatial sizes, but got input of size %v", x.shape)
			}
			g.image[i] = (g.grid[i]-1)*g.stride[i] - 2*g.padding[i] + g.dilation[i]*(k-1) + extra[i] + 1
			if g.image[i] < 1 {
				return c.shapeFail("given input size per channel: %v, calculated output size per channel: %v. Output size is too small; reduce padding %v", g.grid, g.image[:i+1], g.padding)
			}
		}
		if g.native(lib.ConvInput, c, x.dtype) {
			return g.nativeImages(lib.ConvInput, c, x, w, third(c.in))
		}
		return c.biased(g.backwardInParts(c, x, w))
	})
}

// biased adds the call's bias, one number for each channel, to a result.
func (c *call) biased(y *Tensor) *Tensor {
	if len(c.in) < 3 || y.err != nil {
		return y
	}
	shape := make([]int, len(y.shape)-1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = c.in[2].shape[0]
	return through(y, y.Add(c.in[2].Reshape(shape...)))
}

// convWeight is the gradient of a convolution for its weight.
func convWeight(x, dy *Tensor, kernel []int, opts ConvOptions) *Tensor {
	c := begin(LookupOp(convWeightGrad), x, dy)
	if c.err != nil {
		return c.failed()
	}
	x, dy = c.in[0], c.in[1]
	rank := len(x.shape) - 2
	if rank < 1 || rank > 3 {
		return c.shapeFail("expected 3D to 5D operands, but got x of size %v", x.shape)
	}
	if err := c.convOperands(rank); err != nil {
		return c.fail("", err)
	}
	g := &convGeometry{n: x.shape[0], c: x.shape[1], o: dy.shape[1], image: x.shape[2:]}
	err := g.fill(rank, opts.Stride, opts.Padding, opts.Dilation, opts.Groups)
	if err == nil {
		g.kernel, err = spatial("kernel", kernel, rank, 1, 1)
	}
	if err == nil {
		err = g.findGrid(opts)
	}
	switch {
	case err != nil:
		return c.fail("", err)
	case !slices.Equal(dy.shape[2:], g.grid) || dy.shape[0] != g.n:
		return c.shapeFail("x of size %v has %v windows of kernel %v, but dy has size %v", x.shape, g.grid, g.kernel, dy.shape)
	case g.c%g.groups != 0 || g.o%g.groups != 0:
		return c.shapeFail("%d and %d channels must be divisible by groups=%d", g.c, g.o, g.groups)
	}
	return g.weight(c, x, dy)
}
