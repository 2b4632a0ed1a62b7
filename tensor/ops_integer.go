package tensor

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// This file has remainders, bitwise and other operators with rules for integers, and elementwise operators of less use.

// quotient returns x/y for integers, as C does, and x where y is 0, which is an error found elsewhere; the most negative
// number divided by -1 wraps.
func quotient(b *ir.Builder, x, y ir.Value) ir.Value {
	one := b.ConstLike(y, 1)
	trap := b.Or(b.Eq(y, b.ConstLike(y, 0)), b.Eq(y, b.ConstLike(y, -1)))
	return b.Select(b.Eq(y, b.ConstLike(y, -1)), b.Neg(x), b.Div(x, b.Select(trap, one, y)))
}

// floatMod returns the exact remainder of x/y with the sign of x: a long division of the significands in integers, a few bits
// at a time. No quotient in floating point would do, as it may have more digits than fit.
func floatMod(b *ir.Builder, x, y ir.Value) ir.Value {
	f := struct {
		kind           ir.Kind
		fraction, step int // bits
		exponents      int // the largest difference, with that of subnormal numbers
	}{ir.I32, 23, 7, 254 + 23}
	if x.Type.Kind == ir.F64 {
		f.kind, f.fraction, f.step, f.exponents = ir.I64, 52, 10, 2046+52
	}
	raw := b.BitCast(x, f.kind)
	word := func(v uint64) ir.Value { return b.ConstBits(raw.Type, v) }
	split := func(v ir.Value) (significand, exponent ir.Value) {
		e := b.Shr(v, word(uint64(f.fraction)))
		m := b.And(v, word(1<<f.fraction-1))
		return b.Select(b.Gt(e, word(0)), b.Or(m, word(1<<f.fraction)), m), b.Max(e, word(1))
	}
	largest := word(1<<(8*uint(x.Type.Kind.Size())-1) - 1)
	ax, ay := b.And(raw, largest), b.And(b.BitCast(y, f.kind), largest)
	mx, ex := split(ax)
	my, ey := split(ay)
	my = b.Max(my, word(1))
	rest, left := b.Var(b.Rem(mx, my)), b.Var(b.Max(b.Sub(ex, ey), word(0)))
	b.Range(b.U32(uint32((f.exponents+f.step-1)/f.step)), func(ir.Value) {
		n := b.Min(b.Get(left), word(uint64(f.step)))
		b.Set(rest, b.Rem(b.Shl(b.Get(rest), n), my))
		b.Set(left, b.Sub(b.Get(left), n))
	})
	kind := x.Type.Kind
	r := b.Mul(b.Convert(b.Get(rest), kind), b.Const(x.Type, math.Ldexp(1, -f.fraction)))
	r = b.Mul(r, b.BitCast(b.Shl(ey, word(uint64(f.fraction))), kind))
	r = b.BitCast(b.Or(b.BitCast(r, f.kind), b.And(raw, b.Not(largest))), kind) // the sign of x
	r = b.Select(b.Lt(ax, ay), x, r)
	bad := b.Or(b.Not(b.IsFinite(x)), b.Or(b.IsNaN(y), b.Eq(ay, word(0))))
	return b.Select(bad, b.Const(x.Type, math.NaN()), r)
}

func fmodBody(b *ir.Builder, in ...ir.Value) ir.Value {
	x, y := in[0], in[1]
	if x.Type.Kind.IsFloat() {
		return floatMod(b, x, y)
	}
	return b.Sub(x, b.Mul(quotient(b, x, y), y))
}

// remainderBody has the sign of the divisor, as in Python.
func remainderBody(b *ir.Builder, in ...ir.Value) ir.Value {
	r := fmodBody(b, in...)
	zero := b.ConstLike(r, 0)
	other := b.Xor(b.Lt(r, zero), b.Lt(in[1], zero))
	return b.Select(b.And(b.Ne(r, zero), other), b.Add(r, in[1]), r)
}

func floorDivideBody(b *ir.Builder, in ...ir.Value) ir.Value {
	x, y := in[0], in[1]
	if !x.Type.Kind.IsFloat() {
		q := quotient(b, x, y)
		zero := b.ConstLike(x, 0)
		inexact := b.Ne(b.Mul(q, y), x)
		return b.Select(b.And(inexact, b.Xor(b.Lt(x, zero), b.Lt(y, zero))), b.Sub(q, b.ConstLike(q, 1)), q)
	}
	// PyTorch's and Python's way: x less the remainder is a multiple of y, but for rounding.
	zero, one := b.ConstLike(x, 0), b.ConstLike(x, 1)
	m := floatMod(b, x, y)
	q := b.Div(b.Sub(x, m), y)
	other := b.And(b.Ne(m, zero), b.Xor(b.Lt(m, zero), b.Lt(y, zero)))
	q = b.Select(other, b.Sub(q, one), q)
	f := b.Floor(q)
	f = b.Select(b.Gt(b.Sub(q, f), b.ConstLike(q, 0.5)), b.Add(f, one), f)
	return b.Select(b.Eq(y, zero), b.Div(x, y), f)
}

func refFloorDivide(x, y float64) float64 {
	if y == 0 {
		return x / y
	}
	m := math.Mod(x, y)
	q := (x - m) / y
	if m != 0 && (m < 0) != (y < 0) {
		q--
	}
	f := math.Floor(q)
	if q-f > 0.5 {
		f++
	}
	return f
}

func refRemainder(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

// divisionSamples are samples for integer division.
var divisionSamples = []Sample{
	valid("floats", nil, sampleArray(3, 4), positiveArray(4)),
	valid("signs", nil, ints64([]int{4}, 7, -7, 7, -7), ints64([]int{4}, 3, 3, -3, -3)),
	invalid("ZeroDivisionError", nil, ints64([]int{2}, 7, 5), ints64([]int{2}, 3, 0)),
}

// divides makes the operator report a zero among integer divisors.
func divides(e Elementwise) *OpInfo {
	e.Inputs, e.Samples, e.Domain = []string{"a", "b"}, divisionSamples, [2]float64{0.5, 3}
	op := defineElementwise(e)
	op.Call = func(in []*Tensor, _ Attrs) []*Tensor { return one(divide(op.Name, in...)) }
	return op
}

var (
	_ = divides(Elementwise{Name: "fmod", Doc: "the remainder of a/b with the sign of a", Body: fmodBody,
		Ref: func(in ...float64) float64 { return math.Mod(in[0], in[1]) },
		GradCall: func(c *Call, dy *Tensor) []*Tensor {
			return c.pick(func() *Tensor { return dy }, func() *Tensor { return dy.Mul(c.In[0].Div(c.In[1]).Trunc()).Neg() })
		}})
	_ = divides(Elementwise{Name: "remainder", Doc: "the remainder of a/b with the sign of b", Body: remainderBody,
		Ref: func(in ...float64) float64 { return refRemainder(in[0], in[1]) },
		GradCall: func(c *Call, dy *Tensor) []*Tensor {
			return c.pick(func() *Tensor { return dy }, func() *Tensor { return dy.Mul(c.In[0].Div(c.In[1]).Floor()).Neg() })
		}})
	_ = divides(Elementwise{Name: "floor_divide", Doc: "the largest integer not above a/b", Body: floorDivideBody,
		Ref: func(in ...float64) float64 { return refFloorDivide(in[0], in[1]) }})
)

// divide applies an operator and asserts that no integer divisor is 0.
func divide(name string, in ...*Tensor) *Tensor {
	out := apply(name, in...)
	if len(in) != 2 || out.err != nil || out.dtype.IsFloat() || Numel(out.shape) == 0 {
		return out
	}
	c := begin(LookupOp(name), in...)
	if c.err != nil {
		return c.failed()
	}
	y := c.in[1]
	val := newTensor(c.eng.newStorage(Int64, 1), nil, nil, 0, Int64, nil)
	k := &lib.Reduce{Name: "zeros", Ops: []string{"zeros"}, BodyKey: "zeros", Op: lib.ReduceSum, Outer: 1, N: Numel(y.shape), Inner: 1,
		In: []lib.Operand{y.dtype.operand()}, Out: Int64.operand(),
		Prologue: func(b *ir.Builder, in, _ []ir.Value) ir.Value {
			x := b.Convert(in[0], ir.I64)
			return b.Select(b.Eq(x, b.ConstLike(x, 0)), b.ConstLike(x, 1), b.ConstLike(x, 0))
		}}
	c.run(k, []binding{c.dense(y)}, val)
	op, operands, where := c.op, describeOperands(c.op.Inputs, c.in), c.site
	c.assert(out, val, func(v int64) error {
		if v == 0 {
			return nil
		}
		e := &Error{Op: op.Name, Operands: operands, Err: fmt.Errorf("ZeroDivisionError: %d of the integer divisors are 0", v)}
		e.File, e.Line = where.resolve()
		return trap(e)
	})
	return out
}

// Fmod returns the remainder of t/u with the sign of t, as C's fmod. An integer divisor of 0 is an error, which comes with the value.
func (t *Tensor) Fmod(u *Tensor) *Tensor { return divide("fmod", t, u) }

// Remainder returns the remainder of t/u with the sign of u, as Python's %. An integer divisor of 0 is an error.
func (t *Tensor) Remainder(u *Tensor) *Tensor { return divide("remainder", t, u) }

// FloorDivide returns the largest integer not above t/u. An integer divisor of 0 is an error.
func (t *Tensor) FloorDivide(u *Tensor) *Tensor { return divide("floor_divide", t, u) }

// --- bits ---

// bits defines an operator for integers, and if logical for bool.
func bits(name, doc string, arity int, logical bool, body func(b *ir.Builder, in ...ir.Value) ir.Value, ref func(x, y int64) int64) *OpInfo {
	inputs := []string{"a", "b"}[:arity]
	e := &Elementwise{Name: name, Doc: doc, Arity: arity, Inputs: inputs}
	boolean := &Elementwise{Name: name + "_bool", Doc: doc, Arity: arity, Inputs: inputs, DType: ToBool}
	e.Body = body
	boolean.Body = func(b *ir.Builder, in ...ir.Value) ir.Value {
		for i := range in {
			in[i] = b.Convert(in[i], ir.Bool)
		}
		return body(b, in...)
	}
	row := &OpInfo{Name: name, Kind: KindElementwise, Inputs: inputs, Differentiable: make([]bool, arity), elementwise: e}
	rowBool := &OpInfo{Name: name, Kind: KindElementwise, Inputs: inputs, Differentiable: make([]bool, arity), elementwise: boolean}
	in := []Array{ints64([]int{5}, 12, -7, 0, 1, 255), ints64([]int{5}, 3, 5, 2, 1, 4)}[:arity]
	bad := []Array{sampleArray(2), sampleArray(2)}[:arity]
	op := &OpInfo{Name: name, Doc: doc, Kind: KindElementwise, Inputs: inputs, Differentiable: make([]bool, arity)}
	op.Samples = []Sample{valid("int64", nil, in...), invalid("not implemented for float32", nil, bad...)}
	if logical {
		op.Samples = append(op.Samples, valid("bool", nil, []Array{boolArray([]int{4}, 0, 0, 1, 1), boolArray([]int{4}, 0, 1, 0, 1)}[:arity]...))
	}
	op.Ref = func(in []Array, a Attrs) ([]Array, error) {
		r := Elementwise{Arity: arity, Ref: func(v ...float64) float64 {
			y := int64(0)
			if len(v) > 1 {
				y = int64(v[1])
			}
			out := ref(int64(v[0]), y)
			if in[0].DType == Bool {
				out &= 1
			}
			return float64(out)
		}}
		return r.reference(in, a)
	}
	op.Call = func(in []*Tensor, _ Attrs) []*Tensor {
		c := begin(op, in...)
		if c.err != nil {
			return one(c.failed())
		}
		d := ResultType(c.in...)
		if d.IsFloat() || d == Bool && !logical {
			return one(c.fail("cast to an integer dtype", errorOf(ErrDType, "not implemented for %s", d)))
		}
		if d == Bool {
			return one(applyElementwise(rowBool, nil, in))
		}
		return one(applyElementwise(row, nil, in))
	}
	return register(op)
}

func body2(f func(b *ir.Builder, x, y ir.Value) ir.Value) func(b *ir.Builder, in ...ir.Value) ir.Value {
	return func(b *ir.Builder, in ...ir.Value) ir.Value { return f(b, in[0], in[1]) }
}

// shift limits the amount, by which a device could not shift.
func shift(f func(b *ir.Builder, x, n ir.Value) ir.Value, past func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in ...ir.Value) ir.Value {
	return func(b *ir.Builder, in ...ir.Value) ir.Value {
		x, n := in[0], in[1]
		width := float64(8 * x.Type.Kind.Size())
		outside := b.Or(b.Lt(n, b.ConstLike(n, 0)), b.Ge(n, b.ConstLike(n, width)))
		return b.Select(outside, past(b, x), f(b, x, b.Select(outside, b.ConstLike(n, 0), n)))
	}
}

var (
	_ = bits("bitwise_and", "the bits set in both; logical for bool", 2, true, body2((*ir.Builder).And), func(x, y int64) int64 { return x & y })
	_ = bits("bitwise_or", "the bits set in either; logical for bool", 2, true, body2((*ir.Builder).Or), func(x, y int64) int64 { return x | y })
	_ = bits("bitwise_xor", "the bits set in one of both; logical for bool", 2, true, body2((*ir.Builder).Xor), func(x, y int64) int64 { return x ^ y })
	_ = bits("bitwise_not", "the bits inverted; logical for bool", 1, true, body1((*ir.Builder).Not), func(x, _ int64) int64 { return ^x })
	_ = bits("bitwise_left_shift", "a times 2^b; 0 for b past the width", 2, false,
		shift((*ir.Builder).Shl, func(b *ir.Builder, x ir.Value) ir.Value { return b.ConstLike(x, 0) }), func(x, y int64) int64 { return x << y })
	_ = bits("bitwise_right_shift", "a divided by 2^b, rounded down", 2, false,
		shift((*ir.Builder).Shr, func(b *ir.Builder, x ir.Value) ir.Value {
			return b.Shr(x, b.ConstLike(x, float64(8*x.Type.Kind.Size()-1)))
		}), func(x, y int64) int64 { return x >> y })
)

func callOp(name string, in ...*Tensor) *Tensor { return LookupOp(name).Call(in, nil)[0] }

// BitwiseAnd returns the bits set in both integers, or where both bools hold.
func (t *Tensor) BitwiseAnd(u *Tensor) *Tensor { return callOp("bitwise_and", t, u) }

// BitwiseOr returns the bits set in either integer, or where either bool holds.
func (t *Tensor) BitwiseOr(u *Tensor) *Tensor { return callOp("bitwise_or", t, u) }

// BitwiseXor returns the bits set in one of both integers, or where one of both bools holds.
func (t *Tensor) BitwiseXor(u *Tensor) *Tensor { return callOp("bitwise_xor", t, u) }

// BitwiseNot returns the bits of an integer inverted, or where a bool does not hold.
func (t *Tensor) BitwiseNot() *Tensor { return callOp("bitwise_not", t) }

// LeftShift returns t times 2^u, for integers.
func (t *Tensor) LeftShift(u *Tensor) *Tensor { return callOp("bitwise_left_shift", t, u) }

// RightShift returns t divided by 2^u and rounded down, for integers.
func (t *Tensor) RightShift(u *Tensor) *Tensor { return callOp("bitwise_right_shift", t, u) }
