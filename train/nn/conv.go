package nn

import (
	"math"

	"github.com/anygpu/anygpu/tensor"
)

// Conv is a convolution of one to three spatial dimensions. Weight has shape [out, in/groups, kernel…] and Bias [out], as in
// PyTorch.
type Conv struct {
	Base
	Weight  *tensor.Tensor
	Bias    *tensor.Tensor // nil without bias
	Options tensor.ConvOptions
	f       func(x, w, b *tensor.Tensor, o tensor.ConvOptions) *tensor.Tensor
}

// Kernel is the size of a layer's windows: one number for each spatial dimension, or one for all.
type Kernel []int

// Square is the kernel of size k in every dimension.
func Square(k int) Kernel { return Kernel{k} }

// sizes returns rank numbers.
func (k Kernel) sizes(rank int) []int {
	if len(k) != 1 {
		return k // of another length than rank, the operator's error
	}
	out := make([]int, rank)
	for i := range out {
		out[i] = k[0]
	}
	return out
}

// parameters makes the weight of a convolution and its bias: uniform in ±1/sqrt(fan in), PyTorch's default
// (kaiming_uniform with a = sqrt(5)). The fan in is the size of weight[0].
func (b *Base) parameters(opts []Option, bias int, shape ...int) (w, bi *tensor.Tensor) {
	o := apply(opts)
	fan := 1
	for _, n := range shape[1:] {
		fan *= n
	}
	bound := 1 / math.Sqrt(float64(max(fan, 1)))
	w = b.RegisterParameter("weight", uniform(o.gen, bound, shape...))
	if !o.noBias {
		bi = b.RegisterParameter("bias", uniform(o.gen, bound, bias))
	}
	return w, bi
}

func newConv(rank, in, out int, kernel Kernel, o tensor.ConvOptions, opts []Option) *Conv {
	c := &Conv{Options: o}
	shape := append([]int{out, in / max(o.Groups, 1)}, kernel.sizes(rank)...)
	c.Weight, c.Bias = c.parameters(opts, out, shape...)
	return c
}

// NewConv1d returns a convolution of in channels to out channels on the CPU: [n, in, length] to [n, out, …].
func NewConv1d(in, out int, kernel Kernel, o tensor.ConvOptions, opts ...Option) *Conv {
	c := newConv(1, in, out, kernel, o, opts)
	c.f = tensor.Conv1d
	return c
}

// NewConv2d returns a convolution of in channels to out channels on the CPU: [n, in, h, w] to [n, out, …].
//
//	nn.NewConv2d(1, 32, nn.Square(3), tensor.ConvOptions{Padding: []int{1}})
func NewConv2d(in, out int, kernel Kernel, o tensor.ConvOptions, opts ...Option) *Conv {
	c := newConv(2, in, out, kernel, o, opts)
	c.f = tensor.Conv2d
	return c
}

// NewConv3d returns a convolution of in channels to out channels on the CPU: [n, in, d, h, w] to [n, out, …].
func NewConv3d(in, out int, kernel Kernel, o tensor.ConvOptions, opts ...Option) *Conv {
	c := newConv(3, in, out, kernel, o, opts)
	c.f = tensor.Conv3d
	return c
}

// Forward convolves.
func (c *Conv) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer c.Enter(x)()
	return c.f(x, c.Weight, c.Bias, c.Options)
}

// ConvTranspose is a transposed convolution. Weight has shape [in, out/groups, kernel…] and Bias [out], as in PyTorch.
type ConvTranspose struct {
	Base
	Weight  *tensor.Tensor
	Bias    *tensor.Tensor // nil without bias
	Options tensor.ConvTransposeOptions
	f       func(x, w, b *tensor.Tensor, o tensor.ConvTransposeOptions) *tensor.Tensor
}

func newConvTranspose(rank, in, out int, kernel Kernel, o tensor.ConvTransposeOptions, opts []Option) *ConvTranspose {
	c := &ConvTranspose{Options: o}
	shape := append([]int{in, out / max(o.Groups, 1)}, kernel.sizes(rank)...)
	c.Weight, c.Bias = c.parameters(opts, out, shape...)
	return c
}

// NewConvTranspose1d returns a transposed convolution of in channels to out channels on the CPU: [n, in, length] to [n, out, …].
func NewConvTranspose1d(in, out int, kernel Kernel, o tensor.ConvTransposeOptions, opts ...Option) *ConvTranspose {
	c := newConvTranspose(1, in, out, kernel, o, opts)
	c.f = tensor.ConvTranspose1d
	return c
}

// NewConvTranspose2d returns a transposed convolution of in channels to out channels on the CPU: [n, in, h, w] to [n, out, …].
func NewConvTranspose2d(in, out int, kernel Kernel, o tensor.ConvTransposeOptions, opts ...Option) *ConvTranspose {
	c := newConvTranspose(2, in, out, kernel, o, opts)
	c.f = tensor.ConvTranspose2d
	return c
}

// NewConvTranspose3d returns a transposed convolution of in channels to out channels on the CPU: [n, in, d, h, w] to [n, out, …].
func NewConvTranspose3d(in, out int, kernel Kernel, o tensor.ConvTransposeOptions, opts ...Option) *ConvTranspose {
	c := newConvTranspose(3, in, out, kernel, o, opts)
	c.f = tensor.ConvTranspose3d
	return c
}

// Forward convolves.
func (c *ConvTranspose) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer c.Enter(x)()
	return c.f(x, c.Weight, c.Bias, c.Options)
}

// NewMaxPool1d returns the largest elements of windows: [n, c, length] to [n, c, …].
func NewMaxPool1d(o tensor.MaxPoolOptions) *Activation {
	return &Activation{name: "MaxPool1d", f: func(x *tensor.Tensor) *tensor.Tensor { return tensor.MaxPool1d(x, o) }}
}

// NewMaxPool2d returns the largest elements of windows: [n, c, h, w] to [n, c, …].
func NewMaxPool2d(o tensor.MaxPoolOptions) *Activation {
	return &Activation{name: "MaxPool2d", f: func(x *tensor.Tensor) *tensor.Tensor { return tensor.MaxPool2d(x, o) }}
}

// NewAvgPool1d returns the means of windows: [n, c, length] to [n, c, …].
func NewAvgPool1d(o tensor.AvgPoolOptions) *Activation {
	return &Activation{name: "AvgPool1d", f: func(x *tensor.Tensor) *tensor.Tensor { return tensor.AvgPool1d(x, o) }}
}

// NewAvgPool2d returns the means of windows: [n, c, h, w] to [n, c, …].
func NewAvgPool2d(o tensor.AvgPoolOptions) *Activation {
	return &Activation{name: "AvgPool2d", f: func(x *tensor.Tensor) *tensor.Tensor { return tensor.AvgPool2d(x, o) }}
}

// NewAdaptiveAvgPool2d returns size (h, w, or one number for both) means of each channel: [n, c, h, w] to [n, c, size…].
func NewAdaptiveAvgPool2d(size ...int) *Activation {
	return &Activation{name: "AdaptiveAvgPool2d", f: func(x *tensor.Tensor) *tensor.Tensor { return tensor.AdaptiveAvgPool2d(x, size...) }}
}
