package tensor

import (
	"math"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// This file has the mathematical functions of one operand. A row is all there is to an operator;
// the method after it is its name in Go.

func ref1(f func(float64) float64) func(in ...float64) float64 {
	return func(in ...float64) float64 { return f(in[0]) }
}

func body1(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in ...ir.Value) ir.Value {
	return func(b *ir.Builder, in ...ir.Value) ir.Value { return f(b, in[0]) }
}

// zeroGrad is the gradient of piecewise constant functions.
func zeroGrad(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{zerosLike(dy)} }

var _ = DefineElementwise(Elementwise{Name: "neg", Doc: "-x", Inputs: []string{"x"},
	Body: body1((*ir.Builder).Neg), Ref: ref1(func(x float64) float64 { return -x }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Neg()} }})

// Neg returns -t.
func (t *Tensor) Neg() *Tensor { return apply("neg", t) }

var _ = DefineElementwise(Elementwise{Name: "abs", Doc: "|x|", Inputs: []string{"x"},
	Body: body1((*ir.Builder).Abs), Ref: ref1(math.Abs),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Sign())} }})

// Abs returns |t|.
func (t *Tensor) Abs() *Tensor { return apply("abs", t) }

var _ = DefineElementwise(Elementwise{Name: "exp", Doc: "e^x", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Body: body1((*ir.Builder).Exp), Ref: ref1(math.Exp),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.Mul(c.Out)} }})

// Exp returns e^t.
func (t *Tensor) Exp() *Tensor { return apply("exp", t) }

var _ = DefineElementwise(Elementwise{Name: "exp2", Doc: "2^x", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1((*ir.Builder).Exp2), Ref: ref1(math.Exp2),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.Mul(c.Out).MulScalar(math.Ln2)} }})

// Exp2 returns 2^t.
func (t *Tensor) Exp2() *Tensor { return apply("exp2", t) }

var _ = DefineElementwise(Elementwise{Name: "expm1", Doc: "e^x - 1, exact near 0", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Body: body1((*ir.Builder).Expm1), Ref: ref1(math.Expm1),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.Mul(c.Out.AddScalar(1))} }})

// Expm1 returns e^t - 1, exact near 0.
func (t *Tensor) Expm1() *Tensor { return apply("expm1", t) }

var _ = DefineElementwise(Elementwise{Name: "log", Doc: "natural logarithm", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{0.1, 4}, Body: body1((*ir.Builder).Log), Ref: ref1(math.Log),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Div(in[0])} }})

// Log returns the natural logarithm of t.
func (t *Tensor) Log() *Tensor { return apply("log", t) }

var _ = DefineElementwise(Elementwise{Name: "log1p", Doc: "log(1 + x), exact near 0", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{-0.9, 4}, Body: body1((*ir.Builder).Log1p), Ref: ref1(math.Log1p),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Div(in[0].AddScalar(1))} }})

// Log1p returns log(1 + t), exact near 0.
func (t *Tensor) Log1p() *Tensor { return apply("log1p", t) }

var _ = DefineElementwise(Elementwise{Name: "log2", Doc: "logarithm to base 2", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{0.1, 4}, Body: body1((*ir.Builder).Log2), Ref: ref1(interp.Log2),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Div(in[0].MulScalar(math.Ln2))} }})

// Log2 returns the logarithm of t to base 2.
func (t *Tensor) Log2() *Tensor { return apply("log2", t) }

var _ = DefineElementwise(Elementwise{Name: "log10", Doc: "logarithm to base 10", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{0.1, 4}, Body: body1((*ir.Builder).Log10), Ref: ref1(interp.Log10),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Div(in[0].MulScalar(math.Ln10))} }})

// Log10 returns the logarithm of t to base 10.
func (t *Tensor) Log10() *Tensor { return apply("log10", t) }

var _ = DefineElementwise(Elementwise{Name: "sqrt", Doc: "square root", Inputs: []string{"x"}, DType: PromoteFloat,
	Domain: [2]float64{0.1, 4}, Body: body1((*ir.Builder).Sqrt), Ref: ref1(math.Sqrt),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.Div(c.Out.MulScalar(2))} }})

// Sqrt returns the square root of t.
func (t *Tensor) Sqrt() *Tensor { return apply("sqrt", t) }

var _ = DefineElementwise(Elementwise{Name: "rsqrt", Doc: "1/sqrt(x)", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{0.1, 4}, Body: body1((*ir.Builder).Rsqrt), Ref: ref1(func(x float64) float64 { return 1 / math.Sqrt(x) }),
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return []*Tensor{dy.Mul(c.Out.Square()).Mul(c.Out).MulScalar(-0.5)}
	}})

// Rsqrt returns 1/sqrt(t).
func (t *Tensor) Rsqrt() *Tensor { return apply("rsqrt", t) }

var _ = DefineElementwise(Elementwise{Name: "reciprocal", Doc: "1/x", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{0.3, 4}, Body: body1(func(b *ir.Builder, x ir.Value) ir.Value { return b.Div(b.ConstLike(x, 1), x) }),
	Ref:      ref1(func(x float64) float64 { return 1 / x }),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.Mul(c.Out.Square()).Neg()} }})

// Reciprocal returns 1/t.
func (t *Tensor) Reciprocal() *Tensor { return apply("reciprocal", t) }

var _ = DefineElementwise(Elementwise{Name: "square", Doc: "x^2", Inputs: []string{"x"},
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value { return b.Mul(x, x) }),
	Ref:  ref1(func(x float64) float64 { return x * x }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0]).MulScalar(2)} }})

// Square returns t*t.
func (t *Tensor) Square() *Tensor { return apply("square", t) }

var _ = DefineElementwise(Elementwise{Name: "sin", Doc: "sine", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1((*ir.Builder).Sin), Ref: ref1(math.Sin),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Cos())} }})

// Sin returns the sine of t.
func (t *Tensor) Sin() *Tensor { return apply("sin", t) }

var _ = DefineElementwise(Elementwise{Name: "cos", Doc: "cosine", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1((*ir.Builder).Cos), Ref: ref1(math.Cos),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Sin()).Neg()} }})

// Cos returns the cosine of t.
func (t *Tensor) Cos() *Tensor { return apply("cos", t) }

var _ = DefineElementwise(Elementwise{Name: "tan", Doc: "tangent", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{-1.2, 1.2}, Body: body1((*ir.Builder).Tan), Ref: ref1(math.Tan),
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.Mul(c.Out.Square().AddScalar(1))} }})

// Tan returns the tangent of t.
func (t *Tensor) Tan() *Tensor { return apply("tan", t) }

var _ = DefineElementwise(Elementwise{Name: "asin", Doc: "arcsine", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{-0.9, 0.9}, Body: body1((*ir.Builder).Asin), Ref: ref1(math.Asin),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{dy.Mul(in[0].Square().Neg().AddScalar(1).Rsqrt())}
	}})

// Asin returns the arcsine of t.
func (t *Tensor) Asin() *Tensor { return apply("asin", t) }

var _ = DefineElementwise(Elementwise{Name: "acos", Doc: "arccosine", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Domain: [2]float64{-0.9, 0.9}, Body: body1((*ir.Builder).Acos), Ref: ref1(math.Acos),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{dy.Mul(in[0].Square().Neg().AddScalar(1).Rsqrt()).Neg()}
	}})

// Acos returns the arccosine of t.
func (t *Tensor) Acos() *Tensor { return apply("acos", t) }

var _ = DefineElementwise(Elementwise{Name: "atan", Doc: "arctangent", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1((*ir.Builder).Atan), Ref: ref1(math.Atan),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Div(in[0].Square().AddScalar(1))} }})

// Atan returns the arctangent of t.
func (t *Tensor) Atan() *Tensor { return apply("atan", t) }

var _ = DefineElementwise(Elementwise{Name: "sinh", Doc: "hyperbolic sine", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Body: body1((*ir.Builder).Sinh), Ref: ref1(math.Sinh),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Cosh())} }})

// Sinh returns the hyperbolic sine of t.
func (t *Tensor) Sinh() *Tensor { return apply("sinh", t) }

var _ = DefineElementwise(Elementwise{Name: "cosh", Doc: "hyperbolic cosine", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Body: body1((*ir.Builder).Cosh), Ref: ref1(math.Cosh),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Sinh())} }})

// Cosh returns the hyperbolic cosine of t.
func (t *Tensor) Cosh() *Tensor { return apply("cosh", t) }

var _ = DefineElementwise(Elementwise{Name: "erf", Doc: "error function", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1((*ir.Builder).Erf), Ref: ref1(math.Erf),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		return []*Tensor{dy.Mul(in[0].Square().Neg().Exp()).MulScalar(2 / math.Sqrt(math.Pi))}
	}})

// Erf returns the error function of t.
func (t *Tensor) Erf() *Tensor { return apply("erf", t) }

// roundBody rounds floats and leaves integers as they are.
func roundBody(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in ...ir.Value) ir.Value {
	return func(b *ir.Builder, in ...ir.Value) ir.Value {
		if !in[0].Type.Kind.IsFloat() {
			return in[0]
		}
		return f(b, in[0])
	}
}

var _ = DefineElementwise(Elementwise{Name: "floor", Doc: "largest integer not above x", Inputs: []string{"x"},
	Body: roundBody((*ir.Builder).Floor), Ref: ref1(math.Floor), Grad: zeroGrad})

// Floor returns the largest integers not above t; integers stay as they are.
func (t *Tensor) Floor() *Tensor { return apply("floor", t) }

var _ = DefineElementwise(Elementwise{Name: "ceil", Doc: "smallest integer not below x", Inputs: []string{"x"},
	Body: roundBody((*ir.Builder).Ceil), Ref: ref1(math.Ceil), Grad: zeroGrad})

// Ceil returns the smallest integers not below t.
func (t *Tensor) Ceil() *Tensor { return apply("ceil", t) }

var _ = DefineElementwise(Elementwise{Name: "trunc", Doc: "x without its fraction", Inputs: []string{"x"},
	Body: roundBody((*ir.Builder).Trunc), Ref: ref1(math.Trunc), Grad: zeroGrad})

// Trunc returns t without its fraction.
func (t *Tensor) Trunc() *Tensor { return apply("trunc", t) }

var _ = DefineElementwise(Elementwise{Name: "round", Doc: "nearest integer, half to even", Inputs: []string{"x"},
	Body: roundBody((*ir.Builder).Round), Ref: ref1(math.RoundToEven), Grad: zeroGrad})

// Round returns the nearest integers, half to even.
func (t *Tensor) Round() *Tensor { return apply("round", t) }

var _ = DefineElementwise(Elementwise{Name: "sign", Doc: "-1, 0 or 1", Inputs: []string{"x"}, Grad: zeroGrad,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		zero, one, minus := b.ConstLike(x, 0), b.ConstLike(x, 1), b.ConstLike(x, -1)
		return b.Select(b.Gt(x, zero), one, b.Select(b.Lt(x, zero), minus, zero))
	}),
	Ref: ref1(func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	})})

// Sign returns -1, 0 or 1 by the sign of t.
func (t *Tensor) Sign() *Tensor { return apply("sign", t) }

// classBody is a test of floats; integers give what def says.
func classBody(f func(b *ir.Builder, x ir.Value) ir.Value, def bool) func(b *ir.Builder, in ...ir.Value) ir.Value {
	return func(b *ir.Builder, in ...ir.Value) ir.Value {
		if in[0].Type.Kind.IsFloat() {
			return f(b, in[0])
		}
		if def {
			return b.Eq(in[0], in[0])
		}
		return b.Ne(in[0], in[0])
	}
}

func refBool(f func(x float64) bool) func(in ...float64) float64 {
	return func(in ...float64) float64 { return truth(f(in[0])) }
}

func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

var _ = DefineElementwise(Elementwise{Name: "isfinite", Doc: "whether x is neither NaN nor infinite", Inputs: []string{"x"}, DType: ToBool,
	Body: classBody((*ir.Builder).IsFinite, true), Ref: refBool(func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) })})

// IsFinite returns which elements are neither NaN nor infinite, as bool.
func (t *Tensor) IsFinite() *Tensor { return apply("isfinite", t) }

var _ = DefineElementwise(Elementwise{Name: "isnan", Doc: "whether x is NaN", Inputs: []string{"x"}, DType: ToBool,
	Body: classBody((*ir.Builder).IsNaN, false), Ref: refBool(math.IsNaN)})

// IsNaN returns which elements are NaN, as bool.
func (t *Tensor) IsNaN() *Tensor { return apply("isnan", t) }

var _ = DefineElementwise(Elementwise{Name: "isinf", Doc: "whether x is an infinity", Inputs: []string{"x"}, DType: ToBool,
	Body: classBody((*ir.Builder).IsInf, false), Ref: refBool(func(x float64) bool { return math.IsInf(x, 0) })})

// IsInf returns which elements are infinite, as bool.
func (t *Tensor) IsInf() *Tensor { return apply("isinf", t) }

var _ = DefineElementwise(Elementwise{Name: "logical_not", Doc: "whether x is zero", Inputs: []string{"x"}, DType: ToBool,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value { return b.Eq(x, b.ConstLike(x, 0)) }),
	Ref:  refBool(func(x float64) bool { return x == 0 })})

// LogicalNot returns which elements are zero, as bool.
func (t *Tensor) LogicalNot() *Tensor { return apply("logical_not", t) }
