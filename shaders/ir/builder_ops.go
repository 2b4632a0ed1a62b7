package ir

// --- arithmetic ---

// unify gives two operands one type by splatting a scalar, and checks them.
func (b *Builder) unify(op Op, x, y Value) (Value, Value, bool) {
	if x == nil || y == nil {
		b.fail("%s: operand is nil", op)
		return nil, nil, false
	}
	if x.Type.Kind == y.Type.Kind && x.Type.Lanes != y.Type.Lanes {
		if x.Type.Lanes == 1 {
			x = b.Splat(x, y.Type.Lanes)
		} else if y.Type.Lanes == 1 {
			y = b.Splat(y, x.Type.Lanes)
		}
	}
	if x.Type != y.Type {
		b.fail("%s: operands have types %s and %s; convert one", op, x.Type, y.Type)
		return nil, nil, false
	}
	return x, y, true
}

func (b *Builder) binary(op Op, x, y Value, ok func(Kind) bool) Value {
	x, y, good := b.unify(op, x, y)
	if !good {
		return b.placeholder(Scalar(F32))
	}
	if !ok(x.Type.Kind) {
		b.fail("%s: not defined for %s", op, x.Type)
	}
	return b.Emit(op, x.Type, 0, nil, x, y)
}

func (b *Builder) unary(op Op, x Value, ok func(Kind) bool) Value {
	if x == nil {
		b.fail("%s: operand is nil", op)
		return b.placeholder(Scalar(F32))
	}
	if !ok(x.Type.Kind) {
		b.fail("%s: not defined for %s", op, x.Type)
	}
	return b.Emit(op, x.Type, 0, nil, x)
}

func isArith(k Kind) bool   { return k.IsArith() }
func isIntOp(k Kind) bool   { return k == I32 || k == U32 || k == I64 }
func isBitsOp(k Kind) bool  { return isIntOp(k) || k == Bool }
func isFloatOp(k Kind) bool { return k == F16 || k == F32 || k == F64 }
func isNegOp(k Kind) bool   { return k.IsArith() && k != U32 }
func isU32(k Kind) bool     { return k == U32 }

// Add returns x + y.
func (b *Builder) Add(x, y Value) Value { return b.binary(OpAdd, x, y, isArith) }

// Sub returns x - y.
func (b *Builder) Sub(x, y Value) Value { return b.binary(OpSub, x, y, isArith) }

// Mul returns x * y.
func (b *Builder) Mul(x, y Value) Value { return b.binary(OpMul, x, y, isArith) }

// Div returns x / y; integers truncate, and division of an integer by zero is a fault.
func (b *Builder) Div(x, y Value) Value { return b.binary(OpDiv, x, y, isArith) }

// Rem returns the integer remainder with the sign of x.
func (b *Builder) Rem(x, y Value) Value { return b.binary(OpRem, x, y, isIntOp) }

// Min returns the smaller operand; unspecified if one is NaN.
func (b *Builder) Min(x, y Value) Value { return b.binary(OpMin, x, y, isArith) }

// Max returns the larger operand; unspecified if one is NaN.
func (b *Builder) Max(x, y Value) Value { return b.binary(OpMax, x, y, isArith) }

// MulHi returns the high 32 bits of the product of two U32.
func (b *Builder) MulHi(x, y Value) Value { return b.binary(OpMulHi, x, y, isU32) }

// Neg returns -x.
func (b *Builder) Neg(x Value) Value { return b.unary(OpNeg, x, isNegOp) }

// Abs returns |x|.
func (b *Builder) Abs(x Value) Value { return b.unary(OpAbs, x, isNegOp) }

// Fma returns x*y + z, rounded once or twice.
func (b *Builder) Fma(x, y, z Value) Value {
	x, y, ok := b.unify(OpFma, x, y)
	if ok {
		x, z, ok = b.unify(OpFma, x, z)
	}
	if ok {
		x, y, ok = b.unify(OpFma, x, y)
	}
	if !ok {
		return b.placeholder(Scalar(F32))
	}
	if !isFloatOp(x.Type.Kind) {
		b.fail("fma: not defined for %s", x.Type)
	}
	return b.Emit(OpFma, x.Type, 0, nil, x, y, z)
}

// And, Or, Xor and Not are bitwise for integers and logical for Bool.
func (b *Builder) And(x, y Value) Value { return b.binary(OpAnd, x, y, isBitsOp) }
func (b *Builder) Or(x, y Value) Value  { return b.binary(OpOr, x, y, isBitsOp) }
func (b *Builder) Xor(x, y Value) Value { return b.binary(OpXor, x, y, isBitsOp) }
func (b *Builder) Not(x Value) Value    { return b.unary(OpNot, x, isBitsOp) }

// Shl and Shr shift by an amount of the value's type, which must be less than its width; Shr keeps the sign of signed kinds.
func (b *Builder) Shl(x, n Value) Value { return b.binary(OpShl, x, n, isIntOp) }
func (b *Builder) Shr(x, n Value) Value { return b.binary(OpShr, x, n, isIntOp) }

func (b *Builder) compare(op Op, x, y Value) Value {
	x, y, ok := b.unify(op, x, y)
	if !ok {
		return b.placeholder(Scalar(Bool))
	}
	if !x.Type.Kind.IsArith() && !((op == OpEq || op == OpNe) && x.Type.Kind == Bool) {
		b.fail("%s: not defined for %s", op, x.Type)
	}
	return b.Emit(op, x.Type.With(Bool), 0, nil, x, y)
}

// Eq, Ne, Lt, Le, Gt and Ge compare lane by lane and give Bool. With a NaN operand all but Ne are false.
func (b *Builder) Eq(x, y Value) Value { return b.compare(OpEq, x, y) }
func (b *Builder) Ne(x, y Value) Value { return b.compare(OpNe, x, y) }
func (b *Builder) Lt(x, y Value) Value { return b.compare(OpLt, x, y) }
func (b *Builder) Le(x, y Value) Value { return b.compare(OpLe, x, y) }
func (b *Builder) Gt(x, y Value) Value { return b.compare(OpGt, x, y) }
func (b *Builder) Ge(x, y Value) Value { return b.compare(OpGe, x, y) }

// Select returns x where cond holds and y elsewhere, lane by lane. Both are evaluated.
func (b *Builder) Select(cond, x, y Value) Value {
	x, y, ok := b.unify(OpSelect, x, y)
	if !ok || cond == nil {
		b.fail("select: operand is nil")
		return b.placeholder(Scalar(F32))
	}
	if cond.Type.Kind != Bool {
		b.fail("select: condition has type %s, not bool", cond.Type)
		return x
	}
	switch {
	case cond.Type.Lanes == x.Type.Lanes:
	case cond.Type.Lanes == 1:
		cond = b.Splat(cond, x.Type.Lanes)
	case x.Type.Lanes == 1:
		x, y = b.Splat(x, cond.Type.Lanes), b.Splat(y, cond.Type.Lanes)
	default:
		b.fail("select: condition %s and operands %s differ in lanes", cond.Type, x.Type)
	}
	return b.Emit(OpSelect, x.Type, 0, nil, cond, x, y)
}

// Convert converts the value of x to kind k (see the package comment for rounding and saturation). It returns x if it has kind k.
func (b *Builder) Convert(x Value, k Kind) Value {
	if x == nil || k == Void {
		b.fail("convert: no operand or kind")
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Kind == k {
		return x
	}
	return b.Emit(OpConvert, x.Type.With(k), 0, nil, x)
}

// BitCast reinterprets the bits of x as kind k of the same size.
func (b *Builder) BitCast(x Value, k Kind) Value {
	if x == nil {
		b.fail("bitcast: operand is nil")
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Kind == k {
		return x
	}
	if x.Type.Kind.Size() != k.Size() || k.Size() == 0 {
		b.fail("bitcast: %s and %s differ in size", x.Type, k)
	}
	return b.Emit(OpBitCast, x.Type.With(k), 0, nil, x)
}

// --- vectors ---

// Splat returns x in each of lanes lanes.
func (b *Builder) Splat(x Value, lanes int) Value {
	if x == nil || !ValidLanes(lanes) {
		b.fail("splat: no operand, or %d lanes", lanes)
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Lanes == lanes {
		return x
	}
	if x.Type.Lanes != 1 {
		b.fail("splat: operand is the vector %s", x.Type)
	}
	return b.Emit(OpSplat, Vec(x.Type.Kind, lanes), 0, nil, x)
}

// Extract returns lane i of x.
func (b *Builder) Extract(x Value, i int) Value {
	if x == nil || i < 0 || i >= x.Type.Lanes {
		b.fail("extract: no operand, or no lane %d", i)
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Lanes == 1 {
		return x
	}
	return b.Emit(OpExtract, Scalar(x.Type.Kind), uint64(i), nil, x)
}

// Vec makes a vector of scalars of one kind.
func (b *Builder) Vec(xs ...Value) Value {
	if len(xs) == 1 {
		return xs[0]
	}
	if !ValidLanes(len(xs)) {
		b.fail("vec: %d lanes; there are vectors of 2, 4, 8 and 16", len(xs))
		return b.placeholder(Scalar(F32))
	}
	for _, x := range xs {
		if x == nil || x.Type != Scalar(xs[0].Type.Kind) {
			b.fail("vec: operands are not scalars of one kind")
			return b.placeholder(Scalar(F32))
		}
	}
	return b.Emit(OpVec, Vec(xs[0].Type.Kind, len(xs)), 0, nil, append([]Value(nil), xs...)...)
}

// --- math functions ---

// Math appends the math function op (OpSqrt to OpRound) of the operands.
func (b *Builder) Math(op Op, xs ...Value) Value {
	if !op.IsMath() || len(xs) != opInfos[op].args {
		b.fail("%s: not a math function of %d operands", op, len(xs))
		return b.placeholder(Scalar(F32))
	}
	if len(xs) == 2 {
		return b.binary(op, xs[0], xs[1], isFloatOp)
	}
	return b.unary(op, xs[0], isFloatOp)
}

// The math functions, lane by lane.
func (b *Builder) Sqrt(x Value) Value     { return b.Math(OpSqrt, x) }
func (b *Builder) Rsqrt(x Value) Value    { return b.Math(OpRsqrt, x) }
func (b *Builder) Exp(x Value) Value      { return b.Math(OpExp, x) }
func (b *Builder) Exp2(x Value) Value     { return b.Math(OpExp2, x) }
func (b *Builder) Expm1(x Value) Value    { return b.Math(OpExpm1, x) }
func (b *Builder) Log(x Value) Value      { return b.Math(OpLog, x) }
func (b *Builder) Log2(x Value) Value     { return b.Math(OpLog2, x) }
func (b *Builder) Log10(x Value) Value    { return b.Math(OpLog10, x) }
func (b *Builder) Log1p(x Value) Value    { return b.Math(OpLog1p, x) }
func (b *Builder) Sin(x Value) Value      { return b.Math(OpSin, x) }
func (b *Builder) Cos(x Value) Value      { return b.Math(OpCos, x) }
func (b *Builder) Tan(x Value) Value      { return b.Math(OpTan, x) }
func (b *Builder) Asin(x Value) Value     { return b.Math(OpAsin, x) }
func (b *Builder) Acos(x Value) Value     { return b.Math(OpAcos, x) }
func (b *Builder) Atan(x Value) Value     { return b.Math(OpAtan, x) }
func (b *Builder) Atan2(y, x Value) Value { return b.Math(OpAtan2, y, x) }
func (b *Builder) Sinh(x Value) Value     { return b.Math(OpSinh, x) }
func (b *Builder) Cosh(x Value) Value     { return b.Math(OpCosh, x) }
func (b *Builder) Tanh(x Value) Value     { return b.Math(OpTanh, x) }
func (b *Builder) Erf(x Value) Value      { return b.Math(OpErf, x) }
func (b *Builder) Pow(x, y Value) Value   { return b.Math(OpPow, x, y) }
func (b *Builder) Floor(x Value) Value    { return b.Math(OpFloor, x) }
func (b *Builder) Ceil(x Value) Value     { return b.Math(OpCeil, x) }
func (b *Builder) Trunc(x Value) Value    { return b.Math(OpTrunc, x) }
func (b *Builder) Round(x Value) Value    { return b.Math(OpRound, x) }

// --- compositions ---

// IsNaN returns whether x is NaN, by its bits.
func (b *Builder) IsNaN(x Value) Value { return b.Gt(b.magnitude(x), b.infBits(x)) }

// IsInf returns whether x is an infinity, by its bits.
func (b *Builder) IsInf(x Value) Value { return b.Eq(b.magnitude(x), b.infBits(x)) }

// IsFinite returns whether x is neither NaN nor an infinity, by its bits.
func (b *Builder) IsFinite(x Value) Value { return b.Lt(b.magnitude(x), b.infBits(x)) }

// magnitude returns the bits of |x| as an integer that orders like it: U32 for F32 and F16 (widened), I64 for F64.
func (b *Builder) magnitude(x Value) Value {
	if x == nil || !isFloatOp(x.Type.Kind) {
		b.fail("isnan, isinf, isfinite: need a float, got %v", x)
		return b.placeholder(Scalar(U32))
	}
	if x.Type.Kind == F64 {
		i := b.BitCast(x, I64)
		return b.And(i, b.ConstBits(i.Type, 0x7fffffffffffffff))
	}
	i := b.BitCast(b.Convert(x, F32), U32)
	return b.And(i, b.ConstBits(i.Type, 0x7fffffff))
}

func (b *Builder) infBits(x Value) Value {
	if x != nil && x.Type.Kind == F64 {
		return b.ConstBits(x.Type.With(I64), 0x7ff0000000000000)
	}
	lanes := 1
	if x != nil {
		lanes = x.Type.Lanes
	}
	return b.ConstBits(Vec(U32, lanes), 0x7f800000)
}

// MaxNaN returns the larger operand, or NaN if either is NaN (PyTorch's maximum); for integers it is Max.
func (b *Builder) MaxNaN(x, y Value) Value { return b.propagate(OpMax, x, y) }

// MinNaN returns the smaller operand, or NaN if either is NaN (PyTorch's minimum); for integers it is Min.
func (b *Builder) MinNaN(x, y Value) Value { return b.propagate(OpMin, x, y) }

func (b *Builder) propagate(op Op, x, y Value) Value {
	x, y, ok := b.unify(op, x, y)
	if !ok {
		return b.placeholder(Scalar(F32))
	}
	m := b.binary(op, x, y, isArith)
	if !x.Type.Kind.IsFloat() {
		return m
	}
	return b.Select(b.IsNaN(x), x, b.Select(b.IsNaN(y), y, m))
}

// Sigmoid returns 1/(1+exp(-x)).
func (b *Builder) Sigmoid(x Value) Value {
	return b.Div(b.ConstLike(x, 1), b.Add(b.ConstLike(x, 1), b.Exp(b.Neg(x))))
}
