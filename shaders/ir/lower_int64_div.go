package ir

// divRem64 divides as C does: the quotient truncates and the remainder has the sign of x. Division by zero is a fault, as
// in the original. Lanes are divided one by one, because the common case, magnitudes below 2^32, is a branch.
func (r *rewriter) divRem64(op Op, x, y pair) pair {
	var lo, hi []Value
	for i := range x.lo.Type.Lanes {
		lane := r.divRem1(op, pair{r.Extract(x.lo, i), r.Extract(x.hi, i)}, pair{r.Extract(y.lo, i), r.Extract(y.hi, i)})
		lo, hi = append(lo, lane.lo), append(hi, lane.hi)
	}
	return pair{r.Vec(lo...), r.Vec(hi...)}
}

// divRem1 divides scalars.
func (r *rewriter) divRem1(op Op, x, y pair) pair {
	xNeg, yNeg := r.negative(x), r.negative(y)
	n, d := r.select64(xNeg, r.neg64(x), x), r.select64(yNeg, r.neg64(y), y)
	zero := r.U32(0)
	lo, hi := r.Var(zero), r.Var(zero)
	r.If(r.Eq(r.Or(n.hi, d.hi), zero), func() {
		r.Set(lo, r.Emit(op, Scalar(U32), 0, nil, n.lo, d.lo))
	}, func() {
		q, rem := r.longDivision(n, d)
		if op == OpRem {
			q = rem
		}
		r.Set(lo, q.lo)
		r.Set(hi, q.hi)
	})
	res := pair{r.Get(lo), r.Get(hi)}
	neg := xNeg
	if op == OpDiv {
		neg = r.Ne(xNeg, yNeg)
	}
	return r.select64(neg, r.neg64(res), res)
}

// longDivision divides unsigned scalars bit by bit: the dividend's bits are shifted into the remainder from the top, and
// the quotient's bits take their place.
func (r *rewriter) longDivision(n, d pair) (quotient, remainder pair) {
	zero := r.U32(0)
	qlo, qhi := r.Var(n.lo), r.Var(n.hi)
	rlo, rhi := r.Var(zero), r.Var(zero)
	r.Range(r.U32(64), func(Value) {
		one, top := r.U32(1), r.U32(31)
		q, m := pair{r.Get(qlo), r.Get(qhi)}, pair{r.Get(rlo), r.Get(rhi)}
		out := r.Shr(m.hi, top) // the divisor can have 64 bits (that of -2^63), so the remainder can need 65
		m = pair{r.Or(r.Shl(m.lo, one), r.Shr(q.hi, top)), r.Or(r.Shl(m.hi, one), r.Shr(m.lo, top))}
		q = pair{r.Shl(q.lo, one), r.Or(r.Shl(q.hi, one), r.Shr(q.lo, top))}
		fits := r.Or(r.Ne(out, r.U32(0)), r.Not(r.less64(m, d)))
		m = r.select64(fits, r.sub64(m, d), m)
		r.Set(rlo, m.lo)
		r.Set(rhi, m.hi)
		r.Set(qlo, r.Or(q.lo, r.bit(fits)))
		r.Set(qhi, q.hi)
	})
	return pair{r.Get(qlo), r.Get(qhi)}, pair{r.Get(rlo), r.Get(rhi)}
}
