package ir

// lowerInt64 replaces I64 by pairs of U32 on devices without 64-bit integers. A value becomes its low and its high word;
// memory becomes U32 memory of twice as many elements, low word first. Addition and the like carry by comparisons,
// the product is built of 32-bit products, division is in lower_int64_div.go, conversions are in lower_int64_convert.go.
func lowerInt64(k *Kernel, caps Caps) (*Kernel, error) {
	if caps.I64 || !uses(k, I64) {
		return k, nil
	}
	redeclare := func(m *Mem) {
		if m.Kind == I64 {
			m.Kind, m.Len = U32, 2*m.Len
		}
	}
	return rewrite(k, caps, redeclare, func(r *rewriter, in *Instr) bool {
		switch {
		case in.Op == OpConvert || in.Op == OpBitCast:
			from := in.Args[0].Type.Kind
			if from != I64 && in.Type.Kind != I64 {
				return false
			}
			if from == F64 || in.Type.Kind == F64 {
				r.unsupported(in, "64-bit integers, which conversions of f64 need")
				return true
			}
			if from == I64 {
				r.set(in, r.fromPair(r.pair(in.Args[0]), in.Type.Kind))
			} else {
				r.setPair(in, r.toPair(r.val(in.Args[0])))
			}
		case in.Op == OpSet && in.Args[0].Type.Kind == I64:
			vars, x := r.vals[in.Args[0].ID], r.pair(in.Args[1])
			r.Set(vars[0], x.lo)
			r.Set(vars[1], x.hi)
		case in.Op == OpStore && in.Mem.Kind == I64:
			x := r.pair(in.Args[1])
			lo, hi := r.lanesOf(x.lo), r.lanesOf(x.hi)
			var words []Value
			for i := range lo {
				words = append(words, lo[i], hi[i])
			}
			r.storeWords(r.mems[in.Mem], r.Shl(r.val(in.Args[0]), r.U32(1)), words)
		case in.Op.IsCompare() && in.Args[0].Type.Kind == I64:
			r.set(in, r.compare64(in.Op, r.pair(in.Args[0]), r.pair(in.Args[1])))
		case in.Type.Kind == I64:
			r.setPair(in, r.int64(in))
		default:
			return false
		}
		return true
	})
}

// pair is a 64-bit integer: two U32 values, of any number of lanes.
type pair struct{ lo, hi Value }

func (r *rewriter) pair(old Value) pair {
	vs := r.vals[old.ID]
	return pair{vs[0], vs[1]}
}

func (r *rewriter) setPair(in *Instr, p pair) { r.vals[in.ID] = []Value{p.lo, p.hi} }

// int64 returns the pair for the I64 instruction in.
func (r *rewriter) int64(in *Instr) pair {
	t := in.Type.With(U32)
	arg := func(i int) pair { return r.pair(in.Args[i]) }
	each := func(f func(half func(pair) Value) Value) pair {
		return pair{f(func(p pair) Value { return p.lo }), f(func(p pair) Value { return p.hi })}
	}
	switch in.Op {
	case OpConst:
		return pair{r.ConstBits(t, in.Imm&0xffffffff), r.ConstBits(t, in.Imm>>32)}
	case OpAdd:
		return r.add64(arg(0), arg(1))
	case OpSub:
		return r.sub64(arg(0), arg(1))
	case OpMul:
		return r.mul64(arg(0), arg(1))
	case OpDiv, OpRem:
		return r.divRem64(in.Op, arg(0), arg(1))
	case OpNeg:
		return r.neg64(arg(0))
	case OpAbs:
		return r.select64(r.negative(arg(0)), r.neg64(arg(0)), arg(0))
	case OpMin:
		return r.select64(r.compare64(OpLt, arg(0), arg(1)), arg(0), arg(1))
	case OpMax:
		return r.select64(r.compare64(OpGt, arg(0), arg(1)), arg(0), arg(1))
	case OpShl:
		return r.shl64(arg(0), arg(1).lo)
	case OpShr:
		return r.shr64(arg(0), arg(1).lo)
	case OpSelect:
		return r.select64(r.val(in.Args[0]), arg(1), arg(2))
	case OpAnd, OpOr, OpXor, OpNot, OpSplat, OpExtract, OpVec, OpVar:
		return each(func(half func(pair) Value) Value {
			args := make([]Value, len(in.Args))
			for i := range args {
				args[i] = half(arg(i))
			}
			return r.Emit(in.Op, t, in.Imm, nil, args...)
		})
	case OpGet:
		vars := r.vals[in.Args[0].ID]
		return pair{r.Get(vars[0]), r.Get(vars[1])}
	case OpLoad:
		words := r.loadWords(r.mems[in.Mem], r.Shl(r.val(in.Args[0]), r.U32(1)), 2*in.Type.Lanes)
		var lo, hi []Value
		for i := 0; i < len(words); i += 2 {
			lo, hi = append(lo, words[i]), append(hi, words[i+1])
		}
		return pair{r.Vec(lo...), r.Vec(hi...)}
	}
	r.unsupported(in, "64-bit integers")
	zero := r.ConstBits(t, 0)
	return pair{zero, zero}
}

// bit returns 1 where cond holds and 0 elsewhere.
func (r *rewriter) bit(cond Value) Value {
	one := r.ConstBits(cond.Type.With(U32), 1)
	return r.Select(cond, one, r.ConstLike(one, 0))
}

func (r *rewriter) add64(x, y pair) pair {
	lo := r.Add(x.lo, y.lo)
	return pair{lo, r.Add(r.Add(x.hi, y.hi), r.bit(r.Lt(lo, x.lo)))}
}

func (r *rewriter) sub64(x, y pair) pair {
	return pair{r.Sub(x.lo, y.lo), r.Sub(r.Sub(x.hi, y.hi), r.bit(r.Lt(x.lo, y.lo)))}
}

func (r *rewriter) neg64(x pair) pair {
	zero := r.u(x.lo, 0)
	return r.sub64(pair{zero, zero}, x)
}

// mul64 keeps the low 64 bits of the product.
func (r *rewriter) mul64(x, y pair) pair {
	cross := r.Add(r.Mul(x.lo, y.hi), r.Mul(x.hi, y.lo))
	return pair{r.Mul(x.lo, y.lo), r.Add(r.MulHi(x.lo, y.lo), cross)}
}

func (r *rewriter) select64(cond Value, x, y pair) pair {
	return pair{r.Select(cond, x.lo, y.lo), r.Select(cond, x.hi, y.hi)}
}

func (r *rewriter) negative(x pair) Value { return r.Ge(x.hi, r.u(x.hi, 0x80000000)) }

// compare64 compares as signed numbers.
func (r *rewriter) compare64(op Op, x, y pair) Value {
	switch op {
	case OpEq:
		return r.And(r.Eq(x.hi, y.hi), r.Eq(x.lo, y.lo))
	case OpNe:
		return r.Or(r.Ne(x.hi, y.hi), r.Ne(x.lo, y.lo))
	case OpGt:
		return r.compare64(OpLt, y, x)
	case OpGe:
		return r.Not(r.compare64(OpLt, x, y))
	case OpLe:
		return r.Not(r.compare64(OpLt, y, x))
	}
	high := r.Lt(r.BitCast(x.hi, I32), r.BitCast(y.hi, I32))
	return r.Or(high, r.And(r.Eq(x.hi, y.hi), r.Lt(x.lo, y.lo)))
}

// less64 compares as unsigned numbers.
func (r *rewriter) less64(x, y pair) Value {
	return r.Or(r.Lt(x.hi, y.hi), r.And(r.Eq(x.hi, y.hi), r.Lt(x.lo, y.lo)))
}

// shl64 shifts by n < 64. A shift of a word by 32, which is a fault, is made of a shift by 1 and one by 31.
func (r *rewriter) shl64(x pair, n Value) pair {
	m := r.And(n, r.u(n, 31))
	lo := r.Shl(x.lo, m)
	carry := r.Shr(r.Shr(x.lo, r.u(n, 1)), r.Sub(r.u(n, 31), m))
	far := r.Ge(n, r.u(n, 32))
	return pair{r.Select(far, r.u(n, 0), lo), r.Select(far, lo, r.Or(r.Shl(x.hi, m), carry))}
}

// shr64 is the arithmetic shift by n < 64.
func (r *rewriter) shr64(x pair, n Value) pair {
	m := r.And(n, r.u(n, 31))
	signed := r.BitCast(x.hi, I32)
	hi := r.BitCast(r.Shr(signed, r.BitCast(m, I32)), U32)
	carry := r.Shl(r.Shl(x.hi, r.u(n, 1)), r.Sub(r.u(n, 31), m))
	far := r.Ge(n, r.u(n, 32))
	return pair{r.Select(far, hi, r.Or(r.Shr(x.lo, m), carry)), r.Select(far, r.signWord(x), hi)}
}

// signWord returns all ones where x is negative and 0 elsewhere.
func (r *rewriter) signWord(x pair) Value {
	i := r.BitCast(x.hi, I32)
	return r.BitCast(r.Shr(i, r.ConstLike(i, 31)), U32)
}
