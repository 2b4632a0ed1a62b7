package nn

import (
	"fmt"
	"math"
	"strconv"

	"github.com/anygpu/anygpu/tensor"
)

// Linear is y = x W^T + b. Weight has shape [out, in] and Bias [out], as in PyTorch.
type Linear struct {
	Base
	Weight *tensor.Tensor
	Bias   *tensor.Tensor // nil without bias
}

// Option changes how a layer is made.
type Option func(*options)

type options struct {
	gen    *tensor.Generator
	noBias bool
}

// WithGenerator draws a layer's initial values (or a dropout's masks) from gen instead of the default generator.
func WithGenerator(gen *tensor.Generator) Option { return func(o *options) { o.gen = gen } }

// NoBias leaves the bias out.
func NoBias() Option { return func(o *options) { o.noBias = true } }

func apply(opts []Option) options {
	o := options{}
	for _, f := range opts {
		f(&o)
	}
	if o.gen == nil {
		o.gen = tensor.DefaultGenerator()
	}
	return o
}

// NewLinear returns a layer of in inputs and out outputs on the CPU. Weight and bias are uniform in ±1/sqrt(in), PyTorch's default
// (kaiming_uniform with a = sqrt(5)).
func NewLinear(in, out int, opts ...Option) *Linear {
	o := apply(opts)
	bound := 1 / math.Sqrt(float64(max(in, 1)))
	l := &Linear{}
	l.Weight = l.RegisterParameter("weight", uniform(o.gen, bound, out, in))
	if !o.noBias {
		l.Bias = l.RegisterParameter("bias", uniform(o.gen, bound, out))
	}
	return l
}

// uniform returns a float32 CPU tensor with values in [-bound, bound).
func uniform(gen *tensor.Generator, bound float64, shape ...int) *tensor.Tensor {
	return tensor.Uniform(tensor.CPU(), gen, tensor.Float32, -bound, bound, shape...)
}

// Forward maps [..., in] to [..., out].
func (l *Linear) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer l.Enter(x)()
	return tensor.Linear(x, l.Weight, l.Bias)
}

// Activation is a module without state that applies a function.
type Activation struct {
	Base
	name string
	f    func(*tensor.Tensor) *tensor.Tensor
}

// Forward applies the function.
func (a *Activation) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer a.Enter(x)()
	return a.f(x)
}

// String returns the function's name.
func (a *Activation) String() string { return a.name }

// NewReLU returns max(x, 0).
func NewReLU() *Activation { return &Activation{name: "ReLU", f: (*tensor.Tensor).ReLU} }

// NewGELU returns the exact Gaussian error linear unit, x Φ(x) (Hendrycks and Gimpel, 2016).
func NewGELU() *Activation { return &Activation{name: "GELU", f: (*tensor.Tensor).GELU} }

// NewTanh returns tanh(x).
func NewTanh() *Activation { return &Activation{name: "Tanh", f: (*tensor.Tensor).Tanh} }

// NewSigmoid returns 1/(1+exp(-x)).
func NewSigmoid() *Activation { return &Activation{name: "Sigmoid", f: (*tensor.Tensor).Sigmoid} }

// NewFlatten flattens all dimensions but the first: [n, a, b, …] to [n, a*b*…].
func NewFlatten() *Activation {
	return &Activation{name: "Flatten", f: func(x *tensor.Tensor) *tensor.Tensor { return x.Flatten(1, -1) }}
}

// Dropout zeroes elements with probability P in training mode and scales the others by 1/(1-P) (Srivastava et al., 2014);
// in evaluation mode it is the identity.
type Dropout struct {
	Base
	P   float64
	gen *tensor.Generator
}

// NewDropout returns a dropout of probability p in [0, 1].
func NewDropout(p float64, opts ...Option) *Dropout { return &Dropout{P: p, gen: apply(opts).gen} }

// Forward drops, in training mode.
func (d *Dropout) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer d.Enter(x)()
	return x.Dropout(d.P, d.Training(), d.gen)
}

// Sequential applies modules one after the other. Their parameters are named "0.weight" and so on.
type Sequential struct {
	Base
	modules []Module
}

// NewSequential returns the chain of modules.
func NewSequential(modules ...Module) *Sequential {
	s := &Sequential{modules: modules}
	for i, m := range modules {
		s.Register(strconv.Itoa(i), m)
	}
	return s
}

// Forward applies the chain. What a layer of this package hands to another one is discarded once gradients do not need it
// ([tensor.Tensor.Discard]).
func (s *Sequential) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer s.Enter(x)()
	given := true // x is the caller's, or a module of somebody else may have kept it
	for _, m := range s.modules {
		y := m.Forward(x)
		if !given && forgets(m) {
			through(x, y)
		}
		x, given = y, !forgets(m) || given && y == x
	}
	return x
}

// forgets reports whether a module is known not to keep its input or output.
func forgets(m Module) bool {
	switch m.(type) {
	case *Linear, *Conv, *ConvTranspose, *Activation, *Dropout, *LayerNorm, *RMSNorm, *GroupNorm, *BatchNorm:
		return true
	}
	return false
}

// through discards x once y was computed of it, and returns y. Some operators return their operand.
func through(x, y *tensor.Tensor) *tensor.Tensor {
	if x != y {
		x.Discard()
	}
	return y
}

// Len returns the number of modules.
func (s *Sequential) Len() int { return len(s.modules) }

// At returns module i.
func (s *Sequential) At(i int) Module { return s.modules[i] }

// CopyParameters copies the values of src's parameters and buffers to dst's of the same path, across devices. Paths,
// shapes and dtypes must agree.
func CopyParameters(dst, src Component) error {
	d := append(dst.component().NamedParameters(), dst.component().NamedBuffers()...)
	s := append(src.component().NamedParameters(), src.component().NamedBuffers()...)
	if len(d) != len(s) {
		return fmt.Errorf("nn: copy of parameters: %d tensors to %d", len(s), len(d))
	}
	for i := range d {
		if d[i].Name != s[i].Name {
			return fmt.Errorf("nn: copy of parameters: %s and %s do not correspond", s[i].Name, d[i].Name)
		}
		if err := d[i].Tensor.CopyFrom(s[i].Tensor); err != nil {
			return fmt.Errorf("nn: copy of %s: %w", d[i].Name, err)
		}
	}
	return nil
}
