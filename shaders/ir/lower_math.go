package ir

// lowerMath computes math functions of F16 in F32, and replaces the functions of F32 and F64 that are not in caps.NativeMath and
// caps.NativeMath64 by arithmetic (the math_*.go files). Those of F64 need 64-bit integers. The square root and the
// roundings to an integer are native on every device and have no replacement.
func lowerMath(k *Kernel, caps Caps) (*Kernel, error) {
	native := func(in *Instr) bool {
		if in.Type.Kind == F64 {
			return caps.NativeMath64.Has(in.Op)
		}
		return caps.NativeMath.Has(in.Op)
	}
	if !contains(k, func(in *Instr) bool { return in.Op.IsMath() && (in.Type.Kind == F16 || !native(in)) }) {
		return k, nil
	}
	return rewrite(k, caps, nil, func(r *rewriter, in *Instr) bool {
		if !in.Op.IsMath() || in.Type.Kind != F16 && native(in) {
			return false
		}
		if in.Type.Kind == F64 {
			r.set(in, r.math64(in))
			return true
		}
		fill := polyfills[in.Op]
		switch {
		case native(in):
			fill = func(m mathBuilder, xs ...Value) Value { return m.Math(in.Op, xs...) }
		case fill == nil:
			r.unsupported(in, in.Op.String()+" of "+in.Type.Kind.String())
			return true
		}
		xs := r.args(in)
		for i, x := range xs {
			xs[i] = r.Convert(x, F32)
		}
		m := mathBuilder{Builder: r.Builder, lanes: in.Type.Lanes, fma: r.caps.FMA, exact: r.caps.FMA && r.caps.NativeMath.Has(OpExp)}
		r.set(in, r.Convert(fill(m, xs...), in.Type.Kind))
		return true
	})
}

// math64 returns the replacement of a function of F64.
func (r *rewriter) math64(in *Instr) Value {
	fill, xs := polyfills64[in.Op], r.args(in)
	switch {
	case fill == nil:
		r.unsupported(in, in.Op.String()+" of f64")
		return xs[0]
	case !r.caps.I64:
		r.unsupported(in, "64-bit integers, which "+in.Op.String()+" of f64 needs")
		return xs[0]
	}
	return fill(mathBuilder64{Builder: r.Builder, lanes: in.Type.Lanes}, xs...)
}

// polyfills has the replacements, of F32 with any number of lanes.
var polyfills = map[Op]func(m mathBuilder, xs ...Value) Value{
	OpRsqrt: func(m mathBuilder, xs ...Value) Value { return m.Div(m.c(1), m.Sqrt(xs[0])) },
	OpExp:   unaryFill(mathBuilder.exp),
	OpExp2:  unaryFill(mathBuilder.exp2),
	OpExpm1: unaryFill(mathBuilder.expm1),
	OpLog:   unaryFill(mathBuilder.log),
	OpLog2:  unaryFill(mathBuilder.log2),
	OpLog10: unaryFill(mathBuilder.log10),
	OpLog1p: unaryFill(mathBuilder.log1p),
	OpSin:   unaryFill(mathBuilder.sin),
	OpCos:   unaryFill(mathBuilder.cos),
	OpTan:   unaryFill(mathBuilder.tan),
	OpAsin:  unaryFill(mathBuilder.asin),
	OpAcos:  unaryFill(mathBuilder.acos),
	OpAtan:  unaryFill(mathBuilder.atan),
	OpSinh:  unaryFill(mathBuilder.sinh),
	OpCosh:  unaryFill(mathBuilder.cosh),
	OpTanh:  unaryFill(mathBuilder.tanh),
	OpErf:   unaryFill(mathBuilder.erf),
	OpAtan2: func(m mathBuilder, xs ...Value) Value { return m.atan2(xs[0], xs[1]) },
	OpPow:   func(m mathBuilder, xs ...Value) Value { return m.pow(xs[0], xs[1]) },
}

// polyfills64 has the replacements of F64.
var polyfills64 = map[Op]func(m mathBuilder64, xs ...Value) Value{
	OpRsqrt: func(m mathBuilder64, xs ...Value) Value { return m.Div(m.c(1), m.Sqrt(xs[0])) },
	OpExp:   unaryFill(mathBuilder64.exp),
	OpExp2:  unaryFill(mathBuilder64.exp2),
	OpExpm1: unaryFill(mathBuilder64.expm1),
	OpLog:   unaryFill(mathBuilder64.log),
	OpLog2:  unaryFill(mathBuilder64.log2),
	OpLog10: unaryFill(mathBuilder64.log10),
	OpLog1p: unaryFill(mathBuilder64.log1p),
	OpSin:   unaryFill(mathBuilder64.sin),
	OpCos:   unaryFill(mathBuilder64.cos),
	OpTan:   unaryFill(mathBuilder64.tan),
	OpAsin:  unaryFill(mathBuilder64.asin),
	OpAcos:  unaryFill(mathBuilder64.acos),
	OpAtan:  unaryFill(mathBuilder64.atan),
	OpSinh:  unaryFill(mathBuilder64.sinh),
	OpCosh:  unaryFill(mathBuilder64.cosh),
	OpTanh:  unaryFill(mathBuilder64.tanh),
	OpErf:   unaryFill(mathBuilder64.erf),
	OpAtan2: func(m mathBuilder64, xs ...Value) Value { return m.atan2(xs[0], xs[1]) },
	OpPow:   func(m mathBuilder64, xs ...Value) Value { return m.pow(xs[0], xs[1]) },
}

func unaryFill[M any](f func(M, Value) Value) func(M, ...Value) Value {
	return func(m M, xs ...Value) Value { return f(m, xs[0]) }
}

// VulkanMath is what Vulkan devices compute natively: the square root and its inverse, and roundings to an integer. The
// rest of GLSL.std.450 has bounds too loose for training (atan 4,096 ULP, sin and cos an absolute 2^-11, exp 3+2|x| ULP,
// pow by way of exp2 and log2, tanh by way of sinh and cosh with NaN where they overflow; log is good to an absolute 2^-21
// near 1 only), has no function of F64 besides, and differs between drivers; the replacements give every Vulkan device the same results within OpenCL's bounds.
func VulkanMath() MathSet {
	return MathOps(OpSqrt, OpRsqrt, OpFloor, OpCeil, OpTrunc, OpRound)
}

// OpenCLMath is what OpenCL devices compute natively: everything, because OpenCL C has bounds of a few ULP for each
// function, except erf, whose bound is 16 ULP and which is slow where it is exact (PoCL calls a scalar function for each
// lane).
func OpenCLMath() MathSet { return AllMath().Without(OpErf) }
