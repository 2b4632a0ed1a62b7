package ir

// lowerConvert reduces conversions to few kinds. Afterwards they are between I32, U32, I64, F32 and F64; between F16 or
// BF16 and F32; between U8 or U16 and U32. Others go by way of F32 or U32 (so F64 to F16 rounds twice, as PyTorch's
// does). Truth values become selections and comparisons. The operand of a conversion from a float to an integer is in
// range: out-of-range values are replaced by bits tests, because SPIR-V and OpenCL C leave such conversions undefined and
// compilers may assume that there is no NaN.
func lowerConvert(k *Kernel, caps Caps) (*Kernel, error) {
	if !contains(k, func(in *Instr) bool { return in.Op == OpConvert }) {
		return k, nil
	}
	return rewrite(k, caps, nil, func(r *rewriter, in *Instr) bool {
		if in.Op != OpConvert {
			return false
		}
		r.set(in, r.convert(in, r.val(in.Args[0]), in.Type.Kind))
		return true
	})
}

// convert returns x converted to kind to by conversions that lowerConvert allows. in is the original instruction.
func (r *rewriter) convert(in *Instr, x Value, to Kind) Value {
	from := x.Type.Kind
	switch {
	case from == to:
		return x
	case from == Bool:
		return r.Select(x, r.Const(x.Type.With(to), 1), r.Const(x.Type.With(to), 0))
	case from == U8 || from == U16:
		return r.convert(in, r.Convert(x, U32), to)
	case (from == F16 || from == BF16) && to != F32:
		return r.convert(in, r.Convert(x, F32), to)
	case to == Bool:
		return r.truth(in, x)
	case to == U8 || to == U16:
		y := r.convert(in, x, U32)
		if from.IsFloat() { // saturate; integers wrap
			y = r.Min(y, r.u(y, uint32(1)<<(8*to.Size())-1))
		}
		return r.Convert(y, to)
	case (to == F16 || to == BF16) && from != F32:
		return r.Convert(r.convert(in, x, F32), to)
	case from == U32 && to == F32 && !below31(in.Args[0]):
		return r.u32ToF32(x)
	case from == F32 && to.IsInt():
		return r.f32ToInt(x, to)
	case from == F64 && to.IsInt():
		return r.f64ToInt(in, x, to)
	}
	return r.Convert(x, to)
}

// truth returns x != 0, by bits for floats: NaN and subnormal values are true.
func (r *rewriter) truth(in *Instr, x Value) Value {
	switch x.Type.Kind {
	case F32:
		return r.Ne(r.And(r.BitCast(x, U32), r.u(x, 0x7fffffff)), r.u(x, 0))
	case F64:
		if !r.caps.I64 {
			r.unsupported(in, "64-bit integers, which conversions of f64 need")
			return r.Ne(x, r.ConstLike(x, 0))
		}
		i := r.BitCast(x, I64)
		return r.Ne(r.And(i, r.ConstBits(i.Type, 0x7fffffffffffffff)), r.ConstLike(i, 0))
	}
	return r.Ne(x, r.ConstLike(x, 0))
}

// u32ToF32 converts by way of I32, because SwiftShader rounds numbers of 2^31 and more wrongly: such numbers are halved,
// keeping the last bit for the rounding, and the result is doubled.
func (r *rewriter) u32ToF32(x Value) Value {
	big := r.Ge(x, r.u(x, 1<<31))
	half := r.Or(r.Shr(x, r.u(x, 1)), r.And(x, r.u(x, 1)))
	f := r.Convert(r.BitCast(r.Select(big, half, x), I32), F32)
	return r.Select(big, r.Add(f, f), f)
}

// below31 reports whether x is certainly below 2^31: shifted right, masked, or a narrow number.
func below31(x Value) bool {
	constant := func(v Value) (uint64, bool) {
		if v.Op == OpSplat {
			v = v.Args[0]
		}
		return v.Imm, v.Op == OpConst
	}
	switch x.Op {
	case OpConvert:
		return x.Args[0].Type.Kind == U8 || x.Args[0].Type.Kind == U16 || x.Args[0].Type.Kind == Bool
	case OpShr:
		n, ok := constant(x.Args[1])
		return ok && n > 0
	case OpAnd:
		a, aok := constant(x.Args[0])
		b, bok := constant(x.Args[1])
		return aok && a < 1<<31 || bok && b < 1<<31
	case OpLocalID:
		return true
	}
	return false
}

// f32ToInt truncates and saturates; NaN gives 0.
func (r *rewriter) f32ToInt(x Value, to Kind) Value {
	bits := r.BitCast(x, U32)
	zero := r.ConstLike(x, 0)
	if to == U32 {
		// As unsigned numbers the bits of [0, 2^32) are below those of 2^32, infinity, NaN, and all negative values.
		in := r.Lt(bits, r.u(x, f32Bits(1<<32)))
		over := r.Le(bits, r.u(x, 0x7f800000))
		return r.Select(in, r.Convert(r.Select(in, x, zero), to), r.Select(over, r.u(x, 0xffffffff), r.u(x, 0)))
	}
	limit, least, most := f32Bits(1<<31), uint64(1)<<31, uint64(1)<<31-1
	if to == I64 {
		limit, least, most = f32Bits(1<<63), 1<<63, 1<<63-1
	}
	t := x.Type.With(to)
	mag := r.And(bits, r.u(x, 0x7fffffff))
	in := r.Lt(mag, r.u(x, limit))
	nan := r.Gt(mag, r.u(x, 0x7f800000))
	over := r.Select(r.Eq(bits, mag), r.ConstBits(t, most), r.ConstBits(t, least))
	return r.Select(in, r.Convert(r.Select(in, x, zero), to), r.Select(nan, r.ConstLike(over, 0), over))
}

// f64ToInt is f32ToInt for doubles; U32 goes by way of I64, which holds all of its values.
func (r *rewriter) f64ToInt(in *Instr, x Value, to Kind) Value {
	if !r.caps.I64 {
		r.unsupported(in, "64-bit integers, which conversions of f64 need")
		return r.Const(x.Type.With(to), 0)
	}
	bits := r.BitCast(x, I64)
	mag := r.And(bits, r.ConstBits(bits.Type, 0x7fffffffffffffff))
	ok := r.Lt(mag, r.ConstBits(bits.Type, ConstBits(F64, 1<<63)))
	nan := r.Gt(mag, r.ConstBits(bits.Type, ConstBits(F64, inf)))
	over := r.Select(r.Eq(bits, mag), r.ConstBits(bits.Type, 1<<63-1), r.ConstBits(bits.Type, 1<<63))
	y := r.Select(ok, r.Convert(r.Select(ok, x, r.ConstLike(x, 0)), I64), r.Select(nan, r.ConstLike(over, 0), over))
	switch to {
	case I64:
		return y
	case U32:
		y = r.Min(r.Max(y, r.ConstLike(y, 0)), r.ConstBits(y.Type, 1<<32-1))
	default:
		y = r.Min(r.Max(y, r.ConstLike(y, -(1<<31))), r.ConstBits(y.Type, 1<<31-1))
	}
	return r.Convert(y, to)
}
