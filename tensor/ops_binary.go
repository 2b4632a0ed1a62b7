package tensor

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// This file has the arithmetic and the comparisons of two operands, and of one operand and a number.

var _ = DefineElementwise(Elementwise{Name: "add", Doc: "a + b", Inputs: []string{"a", "b"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Add(in[0], in[1]) },
	Ref:  func(in ...float64) float64 { return in[0] + in[1] },
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy, dy} }})

// Add returns t + u, broadcast and promoted.
func (t *Tensor) Add(u *Tensor) *Tensor { return apply("add", t, u) }

var _ = DefineElementwise(Elementwise{Name: "sub", Doc: "a - b", Inputs: []string{"a", "b"},
	Body:     func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Sub(in[0], in[1]) },
	Ref:      func(in ...float64) float64 { return in[0] - in[1] },
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return c.pick(func() *Tensor { return dy }, dy.Neg) }})

// Sub returns t - u.
func (t *Tensor) Sub(u *Tensor) *Tensor { return apply("sub", t, u) }

var _ = DefineElementwise(Elementwise{Name: "mul", Doc: "a * b", Inputs: []string{"a", "b"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Mul(in[0], in[1]) },
	Ref:  func(in ...float64) float64 { return in[0] * in[1] },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return c.pick(func() *Tensor { return dy.Mul(c.In[1]) }, func() *Tensor { return dy.Mul(c.In[0]) })
	}})

// Mul returns t * u.
func (t *Tensor) Mul(u *Tensor) *Tensor { return apply("mul", t, u) }

var _ = DefineElementwise(Elementwise{Name: "div", Doc: "a / b; integers divide as float32", Inputs: []string{"a", "b"}, DType: PromoteFloat,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Div(in[0], in[1]) },
	Ref:  func(in ...float64) float64 { return in[0] / in[1] },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return c.pick(func() *Tensor { return dy.Div(c.In[1]) }, func() *Tensor { return dy.Mul(c.Out).Div(c.In[1]).Neg() })
	}})

// Div returns t / u; integers divide as float32.
func (t *Tensor) Div(u *Tensor) *Tensor { return apply("div", t, u) }

// powBody is a^b; for integers by squaring, and a negative exponent gives 0 except for 1 and -1.
func powBody(b *ir.Builder, in ...ir.Value) ir.Value {
	x, y := in[0], in[1]
	if x.Type.Kind.IsFloat() {
		return b.Pow(x, y)
	}
	zero, one, minus := b.ConstLike(x, 0), b.ConstLike(x, 1), b.ConstLike(x, -1)
	r, base, e := one, x, y
	for range 6 { // 2^63 is the largest power that fits
		odd := b.Ne(b.And(e, one), zero)
		r = b.Select(odd, b.Mul(r, base), r)
		base, e = b.Mul(base, base), b.Shr(e, one)
	}
	odd := b.Ne(b.And(y, one), zero)
	inverse := b.Select(b.Eq(x, one), one, b.Select(b.Eq(x, minus), b.Select(odd, minus, one), zero))
	return b.Select(b.Lt(y, zero), inverse, r)
}

var _ = DefineElementwise(Elementwise{Name: "pow", Doc: "a^b", Inputs: []string{"a", "b"}, Class: F32, Domain: [2]float64{0.2, 3},
	Body: powBody, Ref: func(in ...float64) float64 { return math.Pow(in[0], in[1]) },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		a, b := c.In[0], c.In[1]
		return c.pick(
			func() *Tensor { return masked(b.NeScalar(0), dy.Mul(b.Mul(a.Pow(b.AddScalar(-1))))) },
			func() *Tensor {
				// At a = 0 and b >= 0 the limit is 0, where log gives -inf.
				return masked(a.EqScalar(0).LogicalAnd(b.GeScalar(0)).LogicalNot(), dy.Mul(c.Out.Mul(a.Log())))
			})
	}})

// Pow returns t^u.
func (t *Tensor) Pow(u *Tensor) *Tensor { return apply("pow", t, u) }

var _ = DefineElementwise(Elementwise{Name: "atan2", Doc: "the angle of the point (b, a)", Inputs: []string{"a", "b"}, DType: PromoteFloat, Class: Widest,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Atan2(in[0], in[1]) },
	Ref:  func(in ...float64) float64 { return math.Atan2(in[0], in[1]) },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		a, b := c.In[0], c.In[1]
		q := dy.Div(a.Square().Add(b.Square()))
		return c.pick(func() *Tensor { return q.Mul(b) }, func() *Tensor { return q.Mul(a).Neg() })
	}})

// Atan2 returns the angle of the point (u, t).
func (t *Tensor) Atan2(u *Tensor) *Tensor { return apply("atan2", t, u) }

// pick returns the gradients that are needed of two.
func (c *Call) pick(f0, f1 func() *Tensor) []*Tensor {
	out := make([]*Tensor, 2)
	if c.Needs(0) {
		out[0] = f0()
	}
	if c.Needs(1) {
		out[1] = f1()
	}
	return out
}

// share is the part of a maximum's gradient that operand a gets: 1 where it is larger, half where they are equal.
var _ = DefineElementwise(Elementwise{Name: "max_share", Doc: "1 where a > b, 1/2 where a = b, else 0: a's part of the gradient of a maximum", Inputs: []string{"a", "b"}, DType: PromoteFloat,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		x := in[0]
		return b.Select(b.Gt(x, in[1]), b.ConstLike(x, 1), b.Select(b.Eq(x, in[1]), b.ConstLike(x, 0.5), b.ConstLike(x, 0)))
	},
	Ref: func(in ...float64) float64 {
		switch {
		case in[0] > in[1]:
			return 1
		case in[0] == in[1]:
			return 0.5
		}
		return 0
	}})

// refMax and refMin are built in, not of package math, whose Max prefers an infinity to NaN.
func refMax(in ...float64) float64 { return max(in[0], in[1]) }
func refMin(in ...float64) float64 { return min(in[0], in[1]) }

var _ = DefineElementwise(Elementwise{Name: "maximum", Doc: "the larger of a and b; NaN if either is", Inputs: []string{"a", "b"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.MaxNaN(in[0], in[1]) }, Ref: refMax,
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return c.pick(func() *Tensor { return dy.Mul(apply("max_share", c.In[0], c.In[1])) },
			func() *Tensor { return dy.Mul(apply("max_share", c.In[1], c.In[0])) })
	}})

// Maximum returns the larger of t and u; NaN if either is NaN.
func (t *Tensor) Maximum(u *Tensor) *Tensor { return apply("maximum", t, u) }

var _ = DefineElementwise(Elementwise{Name: "minimum", Doc: "the smaller of a and b; NaN if either is", Inputs: []string{"a", "b"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.MinNaN(in[0], in[1]) }, Ref: refMin,
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return c.pick(func() *Tensor { return dy.Mul(apply("max_share", c.In[1], c.In[0])) },
			func() *Tensor { return dy.Mul(apply("max_share", c.In[0], c.In[1])) })
	}})

// Minimum returns the smaller of t and u; NaN if either is NaN.
func (t *Tensor) Minimum(u *Tensor) *Tensor { return apply("minimum", t, u) }

// comparison defines a comparison of two tensors, and of a tensor and a number.
func comparison(name, sign string, body func(b *ir.Builder, x, y ir.Value) ir.Value, ref func(x, y float64) bool) int {
	e := Elementwise{Name: name, Doc: "whether a " + sign + " b", Inputs: []string{"a", "b"}, DType: ToBool,
		Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return body(b, in[0], in[1]) },
		Ref:  func(in ...float64) float64 { return truth(ref(in[0], in[1])) }}
	defineElementwise(e)
	e.Name, e.Doc = name+"_scalar", "whether a "+sign+" value"
	e.Inputs, e.Params = []string{"a"}, []string{"value"}
	defineElementwise(e)
	return 0
}

var (
	_ = comparison("eq", "==", (*ir.Builder).Eq, func(x, y float64) bool { return x == y })
	_ = comparison("ne", "!=", (*ir.Builder).Ne, func(x, y float64) bool { return x != y })
	_ = comparison("lt", "<", (*ir.Builder).Lt, func(x, y float64) bool { return x < y })
	_ = comparison("le", "<=", (*ir.Builder).Le, func(x, y float64) bool { return x <= y })
	_ = comparison("gt", ">", (*ir.Builder).Gt, func(x, y float64) bool { return x > y })
	_ = comparison("ge", ">=", (*ir.Builder).Ge, func(x, y float64) bool { return x >= y })
)

// Eq returns where t == u, as bool. Comparisons with NaN are false, except Ne.
func (t *Tensor) Eq(u *Tensor) *Tensor { return apply("eq", t, u) }

// Ne returns where t != u.
func (t *Tensor) Ne(u *Tensor) *Tensor { return apply("ne", t, u) }

// Lt returns where t < u.
func (t *Tensor) Lt(u *Tensor) *Tensor { return apply("lt", t, u) }

// Le returns where t <= u.
func (t *Tensor) Le(u *Tensor) *Tensor { return apply("le", t, u) }

// Gt returns where t > u.
func (t *Tensor) Gt(u *Tensor) *Tensor { return apply("gt", t, u) }

// Ge returns where t >= u.
func (t *Tensor) Ge(u *Tensor) *Tensor { return apply("ge", t, u) }

// EqScalar returns where t == v.
func (t *Tensor) EqScalar(v float64) *Tensor { return applyParams("eq_scalar", []float64{v}, t) }

// NeScalar returns where t != v.
func (t *Tensor) NeScalar(v float64) *Tensor { return applyParams("ne_scalar", []float64{v}, t) }

// LtScalar returns where t < v.
func (t *Tensor) LtScalar(v float64) *Tensor { return applyParams("lt_scalar", []float64{v}, t) }

// LeScalar returns where t <= v.
func (t *Tensor) LeScalar(v float64) *Tensor { return applyParams("le_scalar", []float64{v}, t) }

// GtScalar returns where t > v.
func (t *Tensor) GtScalar(v float64) *Tensor { return applyParams("gt_scalar", []float64{v}, t) }

// GeScalar returns where t >= v.
func (t *Tensor) GeScalar(v float64) *Tensor { return applyParams("ge_scalar", []float64{v}, t) }

var _ = DefineElementwise(Elementwise{Name: "logical_and", Doc: "whether both are true (not zero)", Inputs: []string{"a", "b"}, DType: ToBool,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.And(b.Convert(in[0], ir.Bool), b.Convert(in[1], ir.Bool))
	},
	Ref: func(in ...float64) float64 { return truth(in[0] != 0 && in[1] != 0) }})

// LogicalAnd returns where both are true.
func (t *Tensor) LogicalAnd(u *Tensor) *Tensor { return apply("logical_and", t, u) }

var _ = DefineElementwise(Elementwise{Name: "logical_or", Doc: "whether one of both is true (not zero)", Inputs: []string{"a", "b"}, DType: ToBool,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Or(b.Convert(in[0], ir.Bool), b.Convert(in[1], ir.Bool))
	},
	Ref: func(in ...float64) float64 { return truth(in[0] != 0 || in[1] != 0) }})

// LogicalOr returns where one of both is true.
func (t *Tensor) LogicalOr(u *Tensor) *Tensor { return apply("logical_or", t, u) }

// --- one operand and a number ---
// Numbers are launch parameters: a new value needs no new kernel. Integers stay integers if the number has no fraction.

var _ = DefineElementwiseParams(Elementwise{Name: "add_scalar", Doc: "a + value", Inputs: []string{"a"}, Params: []string{"value"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Add(in[0], in[1]) },
	Ref:  func(in ...float64) float64 { return in[0] + in[1] },
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy} }})

// AddScalar returns t + v.
func (t *Tensor) AddScalar(v float64) *Tensor { return applyParams("add_scalar", []float64{v}, t) }

// SubScalar returns t - v.
func (t *Tensor) SubScalar(v float64) *Tensor { return t.AddScalar(-v) }

var _ = DefineElementwiseParams(Elementwise{Name: "mul_scalar", Doc: "a * value", Inputs: []string{"a"}, Params: []string{"value"},
	Body:     func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Mul(in[0], in[1]) },
	Ref:      func(in ...float64) float64 { return in[0] * in[1] },
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.MulScalar(c.Params[0])} }})

// MulScalar returns t * v.
func (t *Tensor) MulScalar(v float64) *Tensor { return applyParams("mul_scalar", []float64{v}, t) }

var _ = DefineElementwiseParams(Elementwise{Name: "div_scalar", Doc: "a / value; integers divide as float32", Inputs: []string{"a"}, Params: []string{"value"}, DType: PromoteFloat,
	Body:     func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Div(in[0], in[1]) },
	Ref:      func(in ...float64) float64 { return in[0] / in[1] },
	GradCall: func(c *Call, dy *Tensor) []*Tensor { return []*Tensor{dy.DivScalar(c.Params[0])} }})

// DivScalar returns t / v; integers divide as float32.
func (t *Tensor) DivScalar(v float64) *Tensor { return applyParams("div_scalar", []float64{v}, t) }

var _ = DefineElementwiseParams(Elementwise{Name: "pow_scalar", Doc: "a^exponent", Inputs: []string{"a"}, Params: []string{"exponent"}, Class: F32,
	Domain: [2]float64{0.2, 3}, Body: powBody, Ref: func(in ...float64) float64 { return math.Pow(in[0], in[1]) },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		p := c.Params[0]
		if p == 0 {
			return []*Tensor{zerosLike(dy)}
		}
		return []*Tensor{dy.Mul(c.In[0].PowScalar(p - 1)).MulScalar(p)}
	}})

// PowScalar returns t^v.
func (t *Tensor) PowScalar(v float64) *Tensor {
	if v == 2 {
		return t.Square()
	}
	return applyParams("pow_scalar", []float64{v}, t)
}

var _ = DefineElementwiseParams(Elementwise{Name: "clamp", Doc: "x, at least min and at most max; NaN stays NaN", Inputs: []string{"x"}, Params: []string{"min", "max"}, Default: []float64{math.Inf(-1), math.Inf(1)},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.MinNaN(b.MaxNaN(in[0], in[1]), in[2]) },
	Ref:  func(in ...float64) float64 { return math.Min(math.Max(in[0], in[1]), in[2]) },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		x := c.In[0]
		return []*Tensor{masked(x.GeScalar(c.Params[0]).LogicalAnd(x.LeScalar(c.Params[1])), dy)}
	}})

// Clamp returns t, at least lo and at most hi, which may be infinite.
func (t *Tensor) Clamp(lo, hi float64) *Tensor { return applyParams("clamp", []float64{lo, hi}, t) }

// MaximumScalar returns the larger of t and v.
func (t *Tensor) MaximumScalar(v float64) *Tensor { return t.Clamp(v, math.Inf(1)) }

// MinimumScalar returns the smaller of t and v.
func (t *Tensor) MinimumScalar(v float64) *Tensor { return t.Clamp(math.Inf(-1), v) }

// --- three operands ---

var _ = DefineElementwise(Elementwise{Name: "where", Doc: "a where cond holds, else b", Inputs: []string{"cond", "a", "b"}, Bools: []int{0},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Select(in[0], in[1], in[2]) },
	Ref: func(in ...float64) float64 {
		if in[0] != 0 {
			return in[1]
		}
		return in[2]
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		out := make([]*Tensor, 3)
		if c.Needs(1) {
			out[1] = masked(c.In[0], dy)
		}
		if c.Needs(2) {
			out[2] = masked(c.In[0].LogicalNot(), dy)
		}
		return out
	}})

// Where returns a where cond (bool) holds and b elsewhere, broadcast and promoted.
func Where(cond, a, b *Tensor) *Tensor { return apply("where", cond, a, b) }

var _ = DefineElementwise(Elementwise{Name: "masked", Doc: "x where mask holds, else 0", Inputs: []string{"mask", "x"}, Bools: []int{0},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Select(in[0], in[1], b.ConstLike(in[1], 0)) },
	Ref: func(in ...float64) float64 {
		if in[0] != 0 {
			return in[1]
		}
		return 0
	},
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{nil, masked(in[0], dy)} }})

// masked returns x where mask holds and 0 elsewhere, also where x is not finite.
func masked(mask, x *Tensor) *Tensor { return apply("masked", mask, x) }

var _ = DefineElementwiseParams(Elementwise{Name: "addcmul", Doc: "x + value*a*b", Inputs: []string{"x", "a", "b"}, Params: []string{"value"}, Default: []float64{1}, Class: Widest,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Add(in[0], b.Mul(in[3], b.Mul(in[1], in[2]))) },
	Ref:  func(in ...float64) float64 { return in[0] + in[3]*in[1]*in[2] },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		v := dy.MulScalar(c.Params[0])
		return []*Tensor{dy, v.Mul(c.In[2]), v.Mul(c.In[1])}
	}})

// AddCMul returns t + value*a*b.
func (t *Tensor) AddCMul(value float64, a, b *Tensor) *Tensor {
	return applyParams("addcmul", []float64{value}, t, a, b)
}

var _ = DefineElementwiseParams(Elementwise{Name: "lerp", Doc: "a + weight*(b - a)", Inputs: []string{"a", "b"}, Params: []string{"weight"},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Add(in[0], b.Mul(in[2], b.Sub(in[1], in[0]))) },
	Ref:  func(in ...float64) float64 { return in[0] + in[2]*(in[1]-in[0]) },
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return c.pick(func() *Tensor { return dy.MulScalar(1 - c.Params[0]) }, func() *Tensor { return dy.MulScalar(c.Params[0]) })
	}})

// Lerp returns t + weight*(u - t).
func (t *Tensor) Lerp(u *Tensor, weight float64) *Tensor {
	return applyParams("lerp", []float64{weight}, t, u)
}
