package tensor

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// This file has elementwise operators of less use.

// The constants of SELU (Klambauer et al., "Self-Normalizing Neural Networks", 2017).
const (
	seluAlpha = 1.6732632423543772848170429916717
	seluScale = 1.0507009873554804934193349852946
)

var _ = DefineElementwise(Elementwise{Name: "selu", Doc: "scale*(x if x > 0, else alpha*(e^x - 1)), with the constants that keep mean 0 and variance 1", Inputs: []string{"x"}, DType: PromoteFloat,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		zero := b.ConstLike(x, 0)
		low := b.Mul(b.ConstLike(x, seluAlpha), b.Expm1(b.MinNaN(x, zero)))
		return b.Mul(b.ConstLike(x, seluScale), b.Select(b.Gt(x, zero), x, low))
	}),
	Ref: ref1(func(x float64) float64 {
		if x > 0 {
			return seluScale * x
		}
		return seluScale * seluAlpha * math.Expm1(x)
	}),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
		x := in[0]
		low := masked(x.LeScalar(0), x).Exp().MulScalar(seluAlpha)
		return []*Tensor{Where(x.GtScalar(0), dy, dy.Mul(low)).MulScalar(seluScale)}
	}})

// SELU returns the scaled exponential linear unit of t.
func (t *Tensor) SELU() *Tensor { return apply("selu", t) }

var _ = DefineElementwiseParams(Elementwise{Name: "addcdiv", Doc: "x + value*a/b", Inputs: []string{"x", "a", "b"}, Params: []string{"value"}, Default: []float64{1}, Class: Widest, DType: PromoteFloat,
	Domain: [2]float64{0.3, 3},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Add(in[0], b.Mul(in[3], b.Div(in[1], in[2])))
	},
	Ref: func(in ...float64) float64 { return in[0] + in[3]*in[1]/in[2] },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		a := dy.MulScalar(c.Params[0]).Div(c.In[2])
		out := []*Tensor{dy, a, nil}
		if c.Needs(2) {
			out[2] = a.Mul(c.In[1]).Div(c.In[2]).Neg()
		}
		return out
	}})

// AddCDiv returns t + value*a/b.
func (t *Tensor) AddCDiv(value float64, a, b *Tensor) *Tensor {
	return applyParams("addcdiv", []float64{value}, t, a, b)
}

var _ = DefineElementwiseParams(Elementwise{Name: "masked_fill", Doc: "x, and value where mask holds", Inputs: []string{"x", "mask"}, Bools: []int{1}, Params: []string{"value"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Select(in[1], in[2], in[0]) },
	Ref: func(in ...float64) float64 {
		if in[1] != 0 {
			return in[2]
		}
		return in[0]
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return []*Tensor{masked(c.In[1].LogicalNot(), dy), nil}
	}})

// MaskedFill returns t, and value where mask (bool, broadcast) holds.
func (t *Tensor) MaskedFill(mask *Tensor, value float64) *Tensor {
	return applyParams("masked_fill", []float64{value}, t, mask)
}

var _ = DefineElementwise(Elementwise{Name: "logical_xor", Doc: "whether just one of both is true (not zero)", Inputs: []string{"a", "b"}, DType: ToBool,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Xor(b.Convert(in[0], ir.Bool), b.Convert(in[1], ir.Bool))
	},
	Ref: func(in ...float64) float64 { return truth((in[0] != 0) != (in[1] != 0)) }})

// LogicalXor returns where just one of both is true.
func (t *Tensor) LogicalXor(u *Tensor) *Tensor { return apply("logical_xor", t, u) }

var _ = DefineElementwise(Elementwise{Name: "sqrt_or_zero", Doc: "square root whose gradient at 0 is 0: of sums of squares, as in std and norm", Inputs: []string{"x"}, DType: PromoteFloat,
	Domain: [2]float64{0.1, 4}, Body: body1((*ir.Builder).Sqrt), Ref: ref1(math.Sqrt),
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		zero := c.Out.EqScalar(0)
		return []*Tensor{masked(zero.LogicalNot(), dy.Div(Where(zero, Scalar(1), c.Out).MulScalar(2)))}
	}})
