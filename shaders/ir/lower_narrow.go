package ir

// lowerNarrow removes values of the storage kinds, and F16 values where the device has no F16 arithmetic.
//
// U8, U16 and BF16 values are carried in U32 (zero-extended bits); only the load and the store themselves have a U8 or
// U16 value, so that a device with 8- or 16-bit storage needs no 8- or 16-bit arithmetic. Conversions to and from BF16
// are integer code, which rounds to nearest even and keeps NaN.
//
// Without F16Arith, F16 values are carried in F32, rounded to F16 by integer code after each operation that can make a
// value that F16 does not have. (F32 has more than twice the bits of F16 and two, so + - * / rounded twice are the same
// as rounded once.) Buffers of F16 are read and written with converting loads and stores; F16 arrays become F32 arrays.
//
// Without F16Storage or U8Storage, buffers of such elements become U32 buffers; see lower_packed.go.
func lowerNarrow(k *Kernel, caps Caps) (*Kernel, error) {
	if !uses(k, BF16) && !uses(k, U8) && !uses(k, U16) && (!uses(k, F16) || caps.F16Arith && caps.F16Storage) {
		return k, nil
	}
	redeclare := func(m *Mem) {
		switch {
		case packed(m, caps):
			m.Kind, m.Access = U32, packedAccess(k, m)
		case m.Kind == BF16:
			m.Kind = U16
		case m.Kind == F16 && m.Space != Global && !caps.F16Arith:
			m.Kind = F32
		}
	}
	return rewrite(k, caps, redeclare, visitNarrow)
}

// carrier returns the kind in which values of kind k are kept.
func carrier(k Kind, caps Caps) Kind {
	switch k {
	case U8, U16, BF16:
		return U32
	case F16:
		if !caps.F16Arith {
			return F32
		}
	}
	return k
}

func visitNarrow(r *rewriter, in *Instr) bool {
	if in.Op == OpLoad || in.Op == OpStore {
		return r.narrowMemory(in)
	}
	kind := in.Type.Kind
	if in.Op == OpConvert || in.Op == OpBitCast {
		kind = in.Args[0].Type.Kind
		if carrier(kind, r.caps) == kind {
			kind = in.Type.Kind
		}
	}
	c := carrier(kind, r.caps)
	if c == kind {
		return false
	}
	var v Value
	switch in.Op {
	case OpConst:
		if c == F32 {
			v = r.Const(in.Type.With(F32), ConstFloat(F16, in.Imm))
		} else {
			v = r.ConstBits(in.Type.With(c), in.Imm)
		}
	case OpConvert:
		v = r.narrowConvert(r.val(in.Args[0]), in.Args[0].Type.Kind, in.Type.Kind)
	case OpBitCast:
		v = r.narrowBitCast(r.val(in.Args[0]), in.Args[0].Type.Kind, in.Type.Kind)
	case OpAdd, OpSub, OpMul, OpDiv, OpFma:
		v = r.roundF16(r.Emit(in.Op, in.Type.With(c), in.Imm, nil, r.args(in)...))
	default: // choice, vectors, variables, and the arithmetic that only selects or changes a sign
		v = r.Emit(in.Op, in.Type.With(c), in.Imm, nil, r.args(in)...)
	}
	r.set(in, v)
	return true
}

// narrowConvert converts x, the carrier of a value of kind from, to the carrier of kind to.
func (r *rewriter) narrowConvert(x Value, from, to Kind) Value {
	switch {
	case from == U8 || from == U16: // to U32
		return x
	case to == U8:
		return r.And(x, r.u(x, 0xff))
	case to == U16:
		return r.And(x, r.u(x, 0xffff))
	case from == BF16:
		return r.BitCast(r.Shl(x, r.u(x, 16)), F32)
	case to == BF16:
		return r.encodeBF16(x)
	case from == F16: // to F32, which it is
		return x
	}
	return r.roundF16(x)
}

// narrowBitCast reinterprets x, the carrier of a 16-bit value of kind from.
func (r *rewriter) narrowBitCast(x Value, from, to Kind) Value {
	switch {
	case to == F16:
		return r.Convert(r.decodeF16(x), carrier(F16, r.caps))
	case from == F16:
		return r.encodeF16(r.Convert(x, F32))
	}
	return x
}

// narrowMemory rewrites a load or store of memory whose kind or values change.
func (r *rewriter) narrowMemory(in *Instr) bool {
	old, m := in.Mem, r.mems[in.Mem]
	if packed(old, r.caps) {
		if in.Op == OpLoad {
			r.set(in, r.loadPacked(in))
		} else {
			r.storePacked(in)
		}
		return true
	}
	wide := carrier(old.Kind, r.caps)
	if wide == old.Kind {
		return false
	}
	index := r.val(in.Args[0])
	if in.Op == OpLoad {
		if wide == F32 { // F16: a converting load, or an F32 array
			r.set(in, r.Emit(OpLoad, in.Type.With(F32), 0, m, index))
		} else {
			r.set(in, r.Convert(r.Emit(OpLoad, in.Type.With(m.Kind), 0, m, index), U32))
		}
		return true
	}
	x := r.val(in.Args[1])
	switch {
	case wide == U32:
		x = r.Convert(x, m.Kind)
	case m.Kind == F32 && in.Args[1].Type.Kind == F32: // a rounding store to what is now an F32 array
		x = r.roundF16(x)
	case m.Kind == F16: // a rounding store: no need to round first
		x = r.unrounded(in.Args[1])
	}
	r.Emit(OpStore, Type{}, 0, m, index, x)
	return true
}

// unrounded returns the F32 value whose rounding to F16 the old value v is, if it is one, else its carrier.
func (r *rewriter) unrounded(v Value) Value {
	if v.Op == OpConvert && v.Type.Kind == F16 && v.Args[0].Type.Kind == F32 {
		return r.val(v.Args[0])
	}
	return r.val(v)
}

// encodeBF16 returns the bits of F32 x rounded to the nearest BF16, ties to even; NaN becomes a quiet NaN.
func (r *rewriter) encodeBF16(x Value) Value {
	u := r.BitCast(x, U32)
	high := r.Shr(u, r.u(x, 16))
	rounded := r.Shr(r.Add(r.Add(u, r.u(x, 0x7fff)), r.And(high, r.u(x, 1))), r.u(x, 16))
	nan := r.Gt(r.And(u, r.u(x, 0x7fffffff)), r.u(x, 0x7f800000))
	return r.Select(nan, r.Or(high, r.u(x, 0x40)), rounded)
}

// f16 magnitudes as F32 bits, and the difference of the exponents' bias in place.
const (
	f16Rebias  = 112 << 23
	f16Normal  = 113 << 23 // 2^-14, the least normal F16 value
	f16TooHigh = 143 << 23 // 2^16, above which all rounds to infinity
)

// encodeF16 returns the bits of F32 x rounded to the nearest F16, ties to even, in a U32: subnormal results are rounded
// to multiples of 2^-24, magnitudes of 65520 and more become infinity, NaN becomes a quiet NaN with its first payload bits.
func (r *rewriter) encodeF16(x Value) Value {
	u := r.BitCast(x, U32)
	mag := r.And(u, r.u(x, 0x7fffffff))
	sign := r.And(r.Shr(u, r.u(x, 16)), r.u(x, 0x8000))
	m := r.Sub(mag, r.u(x, f16Rebias))
	odd := r.And(r.Shr(m, r.u(x, 13)), r.u(x, 1))
	h := r.Shr(r.Add(r.Add(m, r.u(x, 0xfff)), odd), r.u(x, 13))
	h = r.Select(r.Lt(mag, r.u(x, f16Normal)), r.f16Subnormal(mag), h)
	h = r.Select(r.Ge(mag, r.u(x, f16TooHigh)), r.u(x, 0x7c00), h)
	payload := r.Or(r.And(r.Shr(mag, r.u(x, 13)), r.u(x, 0x3ff)), r.u(x, 0x7e00))
	h = r.Select(r.Gt(mag, r.u(x, 0x7f800000)), payload, h)
	return r.Or(sign, h)
}

// f16Subnormal returns the F32 value with bits mag, below 2^-14, as a multiple of 2^-24, rounded to nearest even.
func (r *rewriter) f16Subnormal(mag Value) Value {
	// The significand is an integer m with value m*2^(e-150), so the result is m>>(126-e), rounded. From a shift of 26 on
	// it is 0. (Subnormal F32 values get a wrong leading bit here and are 0 all the same.)
	m := r.Or(r.And(mag, r.u(mag, 0x7fffff)), r.u(mag, 0x800000))
	e := r.Shr(mag, r.u(mag, 23))
	s := r.Min(r.Sub(r.u(mag, 126), r.Min(e, r.u(mag, 112))), r.u(mag, 31))
	odd := r.And(r.Shr(m, s), r.u(mag, 1))
	half := r.Sub(r.Shl(r.u(mag, 1), r.Sub(s, r.u(mag, 1))), r.u(mag, 1))
	return r.Shr(r.Add(r.Add(m, half), odd), s)
}

// decodeF16 returns the F32 value of the F16 bits in U32 h. It makes no subnormal F32 value on the way, which a device
// could flush to zero.
func (r *rewriter) decodeF16(h Value) Value {
	mag := r.And(h, r.u(h, 0x7fff))
	sign := r.Shl(r.And(h, r.u(h, 0x8000)), r.u(h, 16))
	normal := r.Add(r.Shl(mag, r.u(h, 13)), r.u(h, f16Rebias))
	small := r.BitCast(r.Mul(r.Convert(mag, F32), r.f(h, 1.0/(1<<24))), U32)
	bits := r.Select(r.Lt(mag, r.u(h, 0x400)), small, normal)
	bits = r.Select(r.Ge(mag, r.u(h, 0x7c00)), r.Add(normal, r.u(h, f16Rebias)), bits)
	return r.BitCast(r.Or(bits, sign), F32)
}

// roundF16 returns F32 x rounded to the nearest value that F16 has.
func (r *rewriter) roundF16(x Value) Value {
	u := r.BitCast(x, U32)
	mag := r.And(u, r.u(x, 0x7fffffff))
	sign := r.And(u, r.u(x, 0x80000000))
	odd := r.And(r.Shr(mag, r.u(x, 13)), r.u(x, 1))
	n := r.And(r.Add(r.Add(mag, r.u(x, 0xfff)), odd), r.u(x, 0xffffe000))
	n = r.Select(r.Ge(n, r.u(x, f16TooHigh)), r.u(x, 0x7f800000), n)
	small := r.BitCast(r.Mul(r.Convert(r.f16Subnormal(mag), F32), r.f(x, 1.0/(1<<24))), U32)
	n = r.Select(r.Lt(mag, r.u(x, f16Normal)), small, n)
	n = r.Select(r.Gt(mag, r.u(x, 0x7f800000)), r.Or(mag, r.u(x, 0x400000)), n)
	return r.BitCast(r.Or(n, sign), F32)
}
