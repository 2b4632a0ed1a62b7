package tensor

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// This file has the activation functions. Those that training uses most have a kernel for their gradient, a row of its own.

var _ = DefineElementwise(Elementwise{Name: "relu", Doc: "max(x, 0); NaN stays NaN", Inputs: []string{"x"},
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value { return b.MaxNaN(x, b.ConstLike(x, 0)) }),
	Ref: ref1(func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	}),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{apply("relu_grad", dy, c.Out)} }})

// ReLU returns max(t, 0).
func (t *Tensor) ReLU() *Tensor { return apply("relu", t) }

var _ = DefineElementwise(Elementwise{Name: "relu_grad", Doc: "dy where x > 0, else 0: the gradient of relu, for its operand or its result x", Inputs: []string{"dy", "x"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Select(b.Gt(in[1], b.ConstLike(in[1], 0)), in[0], b.ConstLike(in[0], 0))
	},
	Ref: func(in ...float64) float64 {
		if in[1] > 0 {
			return in[0]
		}
		return 0
	},
	Grad: func(d *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{apply("relu_grad", d, in[1]), nil} }})

var _ = DefineElementwise(Elementwise{Name: "relu6", Doc: "min(max(x, 0), 6)", Inputs: []string{"x"},
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		return b.MinNaN(b.MaxNaN(x, b.ConstLike(x, 0)), b.ConstLike(x, 6))
	}),
	Ref: ref1(func(x float64) float64 { return min(max(x, 0), 6) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{masked(in[0].GtScalar(0).LogicalAnd(in[0].LtScalar(6)), dy)}
	}})

// ReLU6 returns min(max(t, 0), 6).
func (t *Tensor) ReLU6() *Tensor { return apply("relu6", t) }

var _ = DefineElementwiseParams(Elementwise{Name: "leaky_relu", Doc: "x if x > 0, else negative_slope*x", Inputs: []string{"x"}, Params: []string{"negative_slope"}, Default: []float64{0.01},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Select(b.Gt(in[0], b.ConstLike(in[0], 0)), in[0], b.Mul(in[0], in[1]))
	},
	Ref: func(in ...float64) float64 {
		if in[0] > 0 {
			return in[0]
		}
		return in[0] * in[1]
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return []*Tensor{Where(c.In[0].GtScalar(0), dy, dy.MulScalar(c.Params[0]))}
	}})

// LeakyReLU returns t where it is positive, and slope*t elsewhere.
func (t *Tensor) LeakyReLU(slope float64) *Tensor {
	return applyParams("leaky_relu", []float64{slope}, t)
}

var _ = DefineElementwiseParams(Elementwise{Name: "elu", Doc: "x if x > 0, else alpha*(e^x - 1)", Inputs: []string{"x"}, Params: []string{"alpha"}, Default: []float64{1}, DType: PromoteFloat,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		x := in[0]
		// exp of the negative part only, so that a large x cannot overflow in the branch not taken.
		return b.Select(b.Gt(x, b.ConstLike(x, 0)), x, b.Mul(in[1], b.Expm1(b.MinNaN(x, b.ConstLike(x, 0)))))
	},
	Ref: func(in ...float64) float64 {
		if in[0] > 0 {
			return in[0]
		}
		return in[1] * math.Expm1(in[0])
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		x := c.In[0]
		return []*Tensor{Where(x.GtScalar(0), dy, dy.Mul(masked(x.LeScalar(0), x).Exp()).MulScalar(c.Params[0]))}
	}})

// ELU returns t where it is positive, and alpha*(e^t - 1) elsewhere.
func (t *Tensor) ELU(alpha float64) *Tensor { return applyParams("elu", []float64{alpha}, t) }

var _ = DefineElementwise(Elementwise{Name: "tanh", Doc: "hyperbolic tangent", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1((*ir.Builder).Tanh), Ref: ref1(math.Tanh),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{apply("tanh_grad", dy, c.Out)} }})

// Tanh returns the hyperbolic tangent of t.
func (t *Tensor) Tanh() *Tensor { return apply("tanh", t) }

var _ = DefineElementwise(Elementwise{Name: "tanh_grad", Doc: "dy*(1 - y^2): the gradient of y = tanh(x)", Inputs: []string{"dy", "y"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Mul(in[0], b.Sub(b.ConstLike(in[1], 1), b.Mul(in[1], in[1])))
	},
	Ref: func(in ...float64) float64 { return in[0] * (1 - in[1]*in[1]) },
	Grad: func(d *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{apply("tanh_grad", d, in[1]), d.Mul(in[0]).Mul(in[1]).MulScalar(-2)}
	}})

var _ = DefineElementwise(Elementwise{Name: "sigmoid", Doc: "1/(1 + e^-x)", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1((*ir.Builder).Sigmoid), Ref: ref1(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{apply("sigmoid_grad", dy, c.Out)} }})

// Sigmoid returns 1/(1 + e^-t).
func (t *Tensor) Sigmoid() *Tensor { return apply("sigmoid", t) }

var _ = DefineElementwise(Elementwise{Name: "sigmoid_grad", Doc: "dy*y*(1 - y): the gradient of y = sigmoid(x)", Inputs: []string{"dy", "y"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Mul(in[0], b.Mul(in[1], b.Sub(b.ConstLike(in[1], 1), in[1])))
	},
	Ref: func(in ...float64) float64 { return in[0] * in[1] * (1 - in[1]) },
	Grad: func(d *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{apply("sigmoid_grad", d, in[1]), d.Mul(in[0]).Mul(in[1].MulScalar(-2).AddScalar(1))}
	}})

var _ = DefineElementwise(Elementwise{Name: "logsigmoid", Doc: "log(sigmoid(x))", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Sub(b.MinNaN(x, b.ConstLike(x, 0)), b.Log1p(b.Exp(b.Neg(b.Abs(x)))))
	}),
	Ref:  ref1(func(x float64) float64 { return min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Neg().Sigmoid())} }})

// LogSigmoid returns log(sigmoid(t)).
func (t *Tensor) LogSigmoid() *Tensor { return apply("logsigmoid", t) }

var _ = DefineElementwise(Elementwise{Name: "silu", Doc: "x*sigmoid(x)", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value { return b.Mul(x, b.Sigmoid(x)) }),
	Ref:  ref1(func(x float64) float64 { return x / (1 + math.Exp(-x)) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		s := in[0].Sigmoid()
		return []*Tensor{dy.Mul(s.Mul(in[0].Mul(s.Neg().AddScalar(1)).AddScalar(1)))}
	}})

// SiLU returns t*sigmoid(t).
func (t *Tensor) SiLU() *Tensor { return apply("silu", t) }

// softplusBody is log(1 + e^x), or x itself above 20, where they agree in float32 (PyTorch's threshold).
func softplusBody(b *ir.Builder, x ir.Value) ir.Value {
	twenty := b.ConstLike(x, 20)
	return b.Select(b.Gt(x, twenty), x, b.Log1p(b.Exp(b.MinNaN(x, twenty))))
}

func refSoftplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

var _ = DefineElementwise(Elementwise{Name: "softplus", Doc: "log(1 + e^x)", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Body: body1(softplusBody), Ref: ref1(refSoftplus),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Sigmoid())} }})

// Softplus returns log(1 + e^t).
func (t *Tensor) Softplus() *Tensor { return apply("softplus", t) }

var _ = DefineElementwise(Elementwise{Name: "mish", Doc: "x*tanh(softplus(x))", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value { return b.Mul(x, b.Tanh(softplusBody(b, x))) }),
	Ref:  ref1(func(x float64) float64 { return x * math.Tanh(refSoftplus(x)) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		x := in[0]
		t := x.Softplus().Tanh()
		return []*Tensor{dy.Mul(t.Add(x.Mul(x.Sigmoid()).Mul(t.Square().Neg().AddScalar(1))))}
	}})

// Mish returns t*tanh(softplus(t)).
func (t *Tensor) Mish() *Tensor { return apply("mish", t) }

var _ = DefineElementwise(Elementwise{Name: "hardsigmoid", Doc: "min(max(x + 3, 0), 6)/6", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		six := b.ConstLike(x, 6)
		return b.Div(b.MinNaN(b.MaxNaN(b.Add(x, b.ConstLike(x, 3)), b.ConstLike(x, 0)), six), six)
	}),
	Ref: ref1(func(x float64) float64 { return min(max(x+3, 0), 6) / 6 }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{masked(in[0].GtScalar(-3).LogicalAnd(in[0].LtScalar(3)), dy).MulScalar(1.0 / 6)}
	}})

// Hardsigmoid returns min(max(t + 3, 0), 6)/6.
func (t *Tensor) Hardsigmoid() *Tensor { return apply("hardsigmoid", t) }

var _ = DefineElementwise(Elementwise{Name: "hardswish", Doc: "x*hardsigmoid(x)", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		six := b.ConstLike(x, 6)
		return b.Div(b.Mul(x, b.MinNaN(b.MaxNaN(b.Add(x, b.ConstLike(x, 3)), b.ConstLike(x, 0)), six)), six)
	}),
	Ref: ref1(func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		x := in[0]
		slope := Where(x.LeScalar(3), x.MulScalar(1.0/3).AddScalar(0.5), Scalar(1))
		return []*Tensor{masked(x.GeScalar(-3), dy.Mul(slope))}
	}})

// Hardswish returns t*hardsigmoid(t).
func (t *Tensor) Hardswish() *Tensor { return apply("hardswish", t) }

// The constants of gelu's approximation by tanh (Hendrycks and Gimpel, "Gaussian error linear units", 2016).
const (
	geluK = 0.7978845608028654 // sqrt(2/pi)
	geluA = 0.044715
)

var _ = DefineElementwise(Elementwise{Name: "gelu_erf", Doc: "x*(1 + erf(x/sqrt(2)))/2: exact gelu", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Mul(b.Mul(x, b.ConstLike(x, 0.5)), b.Add(b.ConstLike(x, 1), b.Erf(b.Mul(x, b.ConstLike(x, math.Sqrt2/2)))))
	}),
	Ref:  ref1(func(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{apply("gelu_erf_grad", dy, in[0])} }})

// GELU returns the exact Gaussian error linear unit, t*(1 + erf(t/sqrt(2)))/2.
func (t *Tensor) GELU() *Tensor { return apply("gelu_erf", t) }

var _ = DefineElementwise(Elementwise{Name: "gelu_erf_grad", Doc: "dy*(Φ(x) + x*φ(x)): the gradient of exact gelu", Inputs: []string{"dy", "x"}, DType: PromoteFloat,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		x := in[1]
		half := b.ConstLike(x, 0.5)
		cdf := b.Mul(half, b.Add(b.ConstLike(x, 1), b.Erf(b.Mul(x, b.ConstLike(x, math.Sqrt2/2)))))
		pdf := b.Mul(b.ConstLike(x, 1/math.Sqrt(2*math.Pi)), b.Exp(b.Neg(b.Mul(half, b.Mul(x, x)))))
		return b.Mul(in[0], b.Add(cdf, b.Mul(x, pdf)))
	},
	Ref: func(in ...float64) float64 {
		x := in[1]
		return in[0] * (0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
	},
	Grad: func(d *Tensor, in ...*Tensor) []*Tensor {
		x := in[1] // the second derivative is φ(x)(2 - x²)
		pdf := x.Square().MulScalar(-0.5).Exp().MulScalar(1 / math.Sqrt(2*math.Pi))
		return []*Tensor{apply("gelu_erf_grad", d, x), d.Mul(in[0]).Mul(pdf.Mul(x.Square().Neg().AddScalar(2)))}
	}})

// geluTanhArg returns 2k(x + a x³). The approximation (1 + tanh(u))/2 is computed as sigmoid(2u), which neither cancels at
// the negative end nor depends on how exact a device's tanh is.
func geluTanhArg(b *ir.Builder, x ir.Value) ir.Value {
	x2 := b.Mul(x, x)
	return b.Mul(b.Mul(x, b.ConstLike(x, 2*geluK)), b.Add(b.ConstLike(x, 1), b.Mul(b.ConstLike(x, geluA), x2)))
}

var _ = DefineElementwise(Elementwise{Name: "gelu_tanh", Doc: "x*(1 + tanh(k*(x + a*x^3)))/2: gelu's approximation by tanh", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Div(x, b.Add(b.ConstLike(x, 1), b.Exp(b.Neg(geluTanhArg(b, x)))))
	}),
	Ref:  ref1(func(x float64) float64 { return 0.5 * x * (1 + math.Tanh(geluK*(x+geluA*x*x*x))) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{apply("gelu_tanh_grad", dy, in[0])} }})

// GELUTanh returns the Gaussian error linear unit in its approximation by tanh.
func (t *Tensor) GELUTanh() *Tensor { return apply("gelu_tanh", t) }

var _ = DefineElementwise(Elementwise{Name: "gelu_tanh_grad", Doc: "the gradient of gelu's approximation by tanh", Inputs: []string{"dy", "x"}, DType: PromoteFloat,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		x := in[1]
		arg := geluTanhArg(b, x)
		one := b.ConstLike(x, 1)
		s := b.Sigmoid(arg)
		du := b.Mul(b.ConstLike(x, 2*geluK), b.Add(one, b.Mul(b.ConstLike(x, 3*geluA), b.Mul(x, x))))
		z := b.Exp(b.Neg(b.Abs(arg)))
		// s(1-s) = z/(1+z)². At the far ends it is 0 and du may be infinite; their product is 0.
		z1 := b.Add(one, z)
		slope := b.Mul(b.Mul(x, b.Div(z, b.Mul(z1, z1))), du)
		slope = b.Select(b.Eq(z, b.ConstLike(x, 0)), b.ConstLike(x, 0), slope)
		return b.Mul(in[0], b.Add(s, slope))
	},
	Ref: func(in ...float64) float64 {
		x := in[1]
		t := math.Tanh(geluK * (x + geluA*x*x*x))
		return in[0] * 0.5 * (1 + t + x*(1-t*t)*geluK*(1+3*geluA*x*x))
	},
	Grad: func(d *Tensor, in ...*Tensor) []*Tensor {
		x := in[1]
		x2 := x.Square()
		t := x.Mul(x2.MulScalar(geluA).AddScalar(1)).MulScalar(geluK).Tanh()
		du := x2.MulScalar(3 * geluA).AddScalar(1).MulScalar(geluK)
		// (1-t²)(u' + x u''/2 - x t u'²) with u'' = 6 a k x
		second := t.Square().Neg().AddScalar(1).Mul(du.Add(x2.MulScalar(3 * geluA * geluK)).Sub(x.Mul(t).Mul(du.Square())))
		return []*Tensor{apply("gelu_tanh_grad", d, x), d.Mul(in[0]).Mul(second)}
	}})

// gelu is the operator by PyTorch's name, with its attribute approximate.
var _ = register(&OpInfo{Name: "gelu", Kind: KindComposite, Inputs: []string{"x"},
	Doc: "Gaussian error linear unit; approximate is \"none\" or \"tanh\"",
	Call: func(in []*Tensor, attrs Attrs) []*Tensor {
		switch approximate := attrs.String("approximate", "none"); approximate {
		case "none":
			return []*Tensor{in[0].GELU()}
		case "tanh":
			return []*Tensor{in[0].GELUTanh()}
		default:
			return []*Tensor{begin(LookupOp("gelu"), in[0]).fail("", fmt.Errorf("approximate argument must be either none or tanh, got %q", approximate))}
		}
	}})

var _ = DefineElementwise(Elementwise{Name: "softsign", Doc: "x/(1+|x|)", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value { return b.Div(x, b.Add(b.ConstLike(x, 1), b.Abs(x))) }),
	Ref:  ref1(func(x float64) float64 { return x / (1 + math.Abs(x)) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{dy.Div(in[0].Abs().AddScalar(1).Square())}
	}})

// Softsign returns t/(1+|t|).
func (t *Tensor) Softsign() *Tensor { return apply("softsign", t) }
