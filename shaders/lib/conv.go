package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// ConvOp is one of the three products of a convolution: of images, weights and grids of windows each makes one from the
// other two, and is the gradient of the others.
type ConvOp int

// The products.
const (
	ConvForward ConvOp = iota // images and weights to grids: the convolution
	ConvInput                 // grids and weights to images: its gradient for the image, and the transposed convolution
	ConvWeight                // images and grids to weights: its gradient for the weight
)

// String returns the product's name.
func (o ConvOp) String() string {
	names := [...]string{"conv_forward", "conv_input", "conv_weight"}
	if o < 0 || int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// Conv computes a convolution, or one of its gradients, without a matrix of windows in memory: images are [N, C, Image…], weights
// [O, C/Groups, Kernel…] and grids [N, O, Grid…], all contiguous, of one to three dimensions. Window g takes, in each
// dimension, elements g*Stride - Pad + k*Dilation of the image for k < Kernel, and zeros outside it. Sums are in F32 (F64
// for F64). The kernel is a loop for each element of the result; where products of matrices are fast, unfolding the windows
// ([Window]) is the better way, unless the device has a native program ([Conv.Native]).
//
// Buffers: the two factors in the order above, the bias if there is one, the output; and for ConvWeight with a bias the
// sums of the grid for the bias, of O elements, in the output's kind.
type Conv struct {
	Op                                         ConvOp
	Ops                                        []string
	N, Groups, C, O                            int
	Image, Grid, Kernel, Stride, Pad, Dilation []int
	A, B, Out                                  ir.Kind // of the factors and of the result
	// Bias is the kind of numbers added to each channel of the result of ConvForward and ConvInput, Void for none. For
	// ConvWeight any other kind than Void asks for the gradient of the bias.
	Bias ir.Kind
}

// convHead is the number of launch parameters before those of the dimensions.
const convHead = 5

// Native reports whether the target has a fast program for the kernel: the CPU device its own, for all but F64, and devices that
// multiply by way of packed panels those ([Conv.Stages]).
func (c *Conv) Native(t Target) bool { return t.class() == blockCPU && c.A != ir.F64 || c.Panels(t) }

// Key identifies the kernel; sizes are launch parameters.
func (c *Conv) Key() string {
	if err := c.check(); err != nil {
		return "conv|invalid|" + err.Error()
	}
	return fmt.Sprintf("conv|%s|%dd|%s %s>%s|bias %s|ops %q", c.Op, len(c.Image), c.A, c.B, c.Out, c.Bias, c.Ops)
}

func (c *Conv) sizes() (image, weight, grid int) {
	image, grid = satMul(c.N, c.C), satMul(c.N, c.O)
	weight = satMul(c.O, c.C/max(c.Groups, 1))
	for i := range c.Image {
		image, weight, grid = satMul(image, c.Image[i]), satMul(weight, c.Kernel[i]), satMul(grid, c.Grid[i])
	}
	return image, weight, grid
}

// Elements returns the numbers of elements of the factors, of the output, and of the bias or its gradient.
func (c *Conv) Elements() (a, b, out, bias int) {
	image, weight, grid := c.sizes()
	switch c.Op {
	case ConvForward:
		return image, weight, grid, c.O
	case ConvInput:
		return grid, weight, image, c.C
	}
	return image, grid, weight, c.O
}

// Launch returns the grid and the parameters: invocations, N, groups, channels of images and of grids, then for each
// dimension the sizes of image, grid and kernel, stride, padding and dilation.
func (c *Conv) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := c.check(); err != nil {
		return groups, nil, err
	}
	if limit, trips := t.Caps.MaxLoopTrips, c.trips(); limit > 0 && trips > limit {
		return groups, nil, fmt.Errorf("%s: sums of up to %d terms need more loop iterations than the %d that the device allows", c.Op, trips, limit)
	}
	a, b, out, bias := c.Elements()
	for _, m := range []struct {
		n int
		k ir.Kind
	}{{a, c.A}, {b, c.B}, {out, c.Out}} {
		if limit := t.Caps.MaxBufferBytes; limit > 0 && int64(m.n)*int64(m.k.Size()) > limit {
			return groups, nil, fmt.Errorf("%s: %d elements of %s; the device binds at most %d bytes to a kernel; split the batch", c.Op, m.n, m.k, limit)
		}
	}
	n := out
	if c.biasGradient() {
		n += bias
	}
	params = []uint32{uint32(n), uint32(c.N), uint32(c.Groups), uint32(c.C), uint32(c.O)}
	for i := range c.Image {
		for _, v := range []int{c.Image[i], c.Grid[i], c.Kernel[i], c.Stride[i], c.Pad[i], c.Dilation[i]} {
			params = append(params, uint32(v))
		}
	}
	groups, err = t.fold(c.Op.String(), uint64(ceilDiv(n, t.config().local)))
	return groups, params, err
}

// ParseConv returns the spec of a launch, as [ParseWindow] does.
func ParseConv(template *Conv, params []uint32) (*Conv, error) {
	rank := len(template.Image)
	if len(params) != convHead+6*rank {
		return nil, fmt.Errorf("%s: %d launch parameters, want %d", template.Op, len(params), convHead+6*rank)
	}
	c := *template
	c.N, c.Groups, c.C, c.O = int(params[1]), int(params[2]), int(params[3]), int(params[4])
	sizes := make([][]int, 6)
	for i := range sizes {
		sizes[i] = make([]int, rank)
		for d := range rank {
			sizes[i][d] = int(params[convHead+6*d+i])
		}
	}
	c.Image, c.Grid, c.Kernel, c.Stride, c.Pad, c.Dilation = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]
	return &c, c.check()
}

// Products is the number of multiplications of a factor's element by one of the other.
func (c *Conv) Products() int {
	_, _, grid := c.sizes()
	n := satMul(grid, c.C/max(c.Groups, 1))
	for _, k := range c.Kernel {
		n = satMul(n, k)
	}
	return n
}

// Precise reports whether sums are few enough to be held to the bound of exact results (see [MatMulArgs.Precise]).
func (c *Conv) Precise() bool { return c.Products() <= preciseProducts }

// trips is a bound of the iterations of the loops of an invocation.
func (c *Conv) trips() int {
	n, sizes := c.C, c.Kernel
	switch c.Op {
	case ConvForward:
		n = c.C / c.Groups
	case ConvInput:
		n = c.O / c.Groups
	case ConvWeight:
		n, sizes = c.N, c.Grid
	}
	total := n
	for _, s := range sizes {
		n = satMul(n, s)
		total = satAdd(total, n)
	}
	return total
}

// Cost returns the floating-point operations.
func (c *Conv) Cost() float64 { return 2 * float64(c.Products()) }

func (c *Conv) biasGradient() bool { return c.Op == ConvWeight && c.Bias != ir.Void }

// check reports sizes and kinds that the kernel cannot serve.
func (c *Conv) check() error {
	rank := len(c.Image)
	for _, list := range [][]int{c.Image, c.Grid, c.Kernel, c.Stride, c.Pad, c.Dilation} {
		if rank < 1 || rank > 3 || len(list) != rank {
			return fmt.Errorf("%s: image %v, grid %v, kernel %v, stride %v, padding %v and dilation %v need one number for each of one to three dimensions", c.Op, c.Image, c.Grid, c.Kernel, c.Stride, c.Pad, c.Dilation)
		}
	}
	if c.N < 0 || c.Groups < 1 || c.C < 1 || c.O < 1 || c.C%c.Groups != 0 || c.O%c.Groups != 0 {
		return fmt.Errorf("%s: %d images from %d to %d channels in %d groups; groups must divide the channels", c.Op, c.N, c.C, c.O, c.Groups)
	}
	w := Window{Op: WindowSum, Outer: 1, Image: c.Image, Grid: c.Grid, Kernel: c.Kernel, Stride: c.Stride, Pad: c.Pad, Dilation: c.Dilation, In: ir.F32, Out: ir.F32}
	if err := w.check(); err != nil {
		return fmt.Errorf("%s: %w", c.Op, err)
	}
	for _, k := range []ir.Kind{c.A, c.B, c.Out, c.Bias} {
		if k == ir.Void && k == c.Bias {
			continue
		}
		if !k.IsFloat() || (k == ir.F64) != (c.A == ir.F64) {
			return fmt.Errorf("%s: from %s and %s to %s, bias %s; it takes floats, f64 only with f64", c.Op, c.A, c.B, c.Out, c.Bias)
		}
	}
	a, b, out, bias := c.Elements()
	if a > maxReduceElements || b > maxReduceElements || satAdd(out, bias) > maxReduceElements {
		return fmt.Errorf("%s: factors of %d and %d elements and a result of %d are more than %d; split the batch", c.Op, a, b, out, int64(maxReduceElements))
	}
	return nil
}
