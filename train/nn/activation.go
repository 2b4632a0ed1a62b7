package nn

import "github.com/anygpu/anygpu/tensor"

// This file has the activations besides ReLU, GELU, Tanh and Sigmoid as modules.

func activation(name string, f func(*tensor.Tensor) *tensor.Tensor) *Activation {
	return &Activation{name: name, f: f}
}

// NewGELUTanh returns gelu in its approximation by tanh, PyTorch's GELU(approximate="tanh").
func NewGELUTanh() *Activation { return activation("GELUTanh", (*tensor.Tensor).GELUTanh) }

// NewReLU6 returns min(max(x, 0), 6).
func NewReLU6() *Activation { return activation("ReLU6", (*tensor.Tensor).ReLU6) }

// NewLeakyReLU returns x where it is positive, else slope*x. PyTorch's default slope is 0.01.
func NewLeakyReLU(slope float64) *Activation {
	return activation("LeakyReLU", func(x *tensor.Tensor) *tensor.Tensor { return x.LeakyReLU(slope) })
}

// NewELU returns x where it is positive, else alpha*(e^x - 1) (Clevert et al., 2015). PyTorch's default alpha is 1.
func NewELU(alpha float64) *Activation {
	return activation("ELU", func(x *tensor.Tensor) *tensor.Tensor { return x.ELU(alpha) })
}

// NewSELU returns the scaled exponential linear unit (Klambauer et al., "Self-Normalizing Neural Networks", 2017).
func NewSELU() *Activation { return activation("SELU", (*tensor.Tensor).SELU) }

// NewSiLU returns x*sigmoid(x), also called swish.
func NewSiLU() *Activation { return activation("SiLU", (*tensor.Tensor).SiLU) }

// NewMish returns x*tanh(softplus(x)) (Misra, 2019).
func NewMish() *Activation { return activation("Mish", (*tensor.Tensor).Mish) }

// NewSoftplus returns log(1 + e^x).
func NewSoftplus() *Activation { return activation("Softplus", (*tensor.Tensor).Softplus) }

// NewSoftsign returns x/(1+|x|).
func NewSoftsign() *Activation { return activation("Softsign", (*tensor.Tensor).Softsign) }

// NewLogSigmoid returns log(sigmoid(x)).
func NewLogSigmoid() *Activation { return activation("LogSigmoid", (*tensor.Tensor).LogSigmoid) }

// NewHardsigmoid returns min(max(x + 3, 0), 6)/6.
func NewHardsigmoid() *Activation { return activation("Hardsigmoid", (*tensor.Tensor).Hardsigmoid) }

// NewHardswish returns x*hardsigmoid(x) (Howard et al., "Searching for MobileNetV3", 2019).
func NewHardswish() *Activation { return activation("Hardswish", (*tensor.Tensor).Hardswish) }

// NewHardtanh returns x limited to [lo, hi]. PyTorch's defaults are -1 and 1.
func NewHardtanh(lo, hi float64) *Activation {
	return activation("Hardtanh", func(x *tensor.Tensor) *tensor.Tensor { return x.Clamp(lo, hi) })
}

// NewSoftmax returns e^x divided by its sum over dimension dim.
func NewSoftmax(dim int) *Activation {
	return activation("Softmax", func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(dim) })
}

// NewLogSoftmax returns the logarithm of [NewSoftmax]'s result.
func NewLogSoftmax(dim int) *Activation {
	return activation("LogSoftmax", func(x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(dim) })
}

// NewIdentity returns x.
func NewIdentity() *Activation {
	return activation("Identity", func(x *tensor.Tensor) *tensor.Tensor { return x })
}
