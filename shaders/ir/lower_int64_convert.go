package ir

// toPair converts U32, I32 or F32 (in range) to a pair.
func (r *rewriter) toPair(x Value) pair {
	switch x.Type.Kind {
	case I32:
		u := r.BitCast(x, U32)
		return pair{u, r.signWord(pair{hi: u})}
	case F32:
		// A float has 24 bits, so both words of its magnitude are exact.
		mag := r.Abs(x)
		high := r.Trunc(r.Mul(mag, r.f(x, 1.0/(1<<32))))
		low := r.Sub(mag, r.Mul(high, r.f(x, 1<<32)))
		p := pair{r.Convert(low, U32), r.Convert(high, U32)}
		return r.select64(r.Lt(x, r.f(x, 0)), r.neg64(p), p)
	}
	return pair{x, r.u(x, 0)}
}

// fromPair converts a pair to U32, I32 (which wrap) or F32.
func (r *rewriter) fromPair(p pair, to Kind) Value {
	switch to {
	case I32:
		return r.BitCast(p.lo, I32)
	case F32:
		return r.float64Bits(p)
	}
	return p.lo
}

// float64Bits rounds a signed 64-bit integer to the nearest F32, ties to even.
func (r *rewriter) float64Bits(p pair) Value {
	neg := r.negative(p)
	m := r.select64(neg, r.neg64(p), p)
	// The position of the high word's first bit, from the exponent of its float. Clearing the bit after each bit keeps
	// the first bit and prevents a rounding up to the next power of two; half of it is a number that I32 has, too.
	high := r.Shr(r.And(m.hi, r.Not(r.Shr(m.hi, r.u(m.hi, 1)))), r.u(m.hi, 1))
	e := r.Sub(r.Shr(r.BitCast(r.Convert(high, F32), U32), r.u(m.hi, 23)), r.u(m.hi, 126))
	e = r.Select(r.Lt(m.hi, r.u(m.hi, 2)), r.u(m.hi, 0), e)
	zero := r.Eq(m.hi, r.u(m.hi, 0))
	// Shift the first bit to the top. Of the low word only whether it is zero matters to the rounding of the high word.
	s := r.Sub(r.u(m.hi, 31), e)
	top := r.Or(r.Shl(m.hi, s), r.Shr(r.Shr(m.lo, r.u(m.hi, 1)), r.Sub(r.u(m.hi, 31), s)))
	top = r.Or(top, r.bit(r.Ne(r.Shl(m.lo, s), r.u(m.hi, 0))))
	scale := r.BitCast(r.Shl(r.Add(e, r.u(m.hi, 128)), r.u(m.hi, 23)), F32) // 2^(e+1)
	x := r.Mul(r.u32ToF32(r.Select(zero, m.lo, top)), r.Select(zero, r.f(m.hi, 1), scale))
	return r.Select(neg, r.Neg(x), x)
}
