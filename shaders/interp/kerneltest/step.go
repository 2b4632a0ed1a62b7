package kerneltest

import "github.com/anygpu/anygpu/shaders/ir"

// step adds one random operation.
func (g *maker) step(width int) {
	lanes := []int{1, width}[g.r.IntN(2)]
	t := ir.Vec(g.cfg.Kinds[g.r.IntN(len(g.cfg.Kinds))], lanes)
	choice := g.r.IntN(16)
	switch {
	case choice < 6 && t.Kind.IsArith():
		g.arith(t)
	case choice < 8:
		g.compare(t)
	case choice < 9:
		g.add(g.b.Select(g.pick(t.With(ir.Bool)), g.pick(t), g.pick(t)))
	case choice < 10:
		g.add(g.b.Convert(g.source(lanes, t.Kind), t.Kind))
	case choice < 11:
		g.cast(lanes)
	case choice < 12:
		g.vector(t.Kind, width)
	case g.cfg.Control && g.nesting < 3:
		g.control(t, width)
	case g.cfg.Math && (t.Kind == ir.F16 || t.Kind == ir.F32 || t.Kind == ir.F64):
		g.math(t)
	case t.Kind.IsArith():
		g.arith(t)
	default:
		g.logic(lanes)
	}
}

// source returns a value to convert to kind k. Exact cases avoid conversions that round or whose result is large.
func (g *maker) source(lanes int, k ir.Kind) ir.Value {
	from := g.cfg.Kinds[g.r.IntN(len(g.cfg.Kinds))]
	v := g.pick(ir.Vec(from, lanes))
	if g.cfg.Exact && k.IsFloat() && from.IsInt() { // keep floats small
		v = g.b.Convert(v, ir.I32)
		return g.b.And(v, g.b.ConstLike(v, 15))
	}
	return v
}

// bounded keeps floats of exact cases small: integers of at most 32, whose products and sums F16 holds exactly.
func (g *maker) bounded(v ir.Value) ir.Value {
	if !g.cfg.Exact || !v.Type.Kind.IsFloat() {
		return v
	}
	return g.b.Min(g.b.Max(v, g.b.ConstLike(v, -32)), g.b.ConstLike(v, 32))
}

func (g *maker) arith(t ir.Type) {
	b, x, y := g.b, g.pick(t), g.pick(t)
	if t.Kind.IsFloat() {
		x, y = g.bounded(x), g.bounded(y)
		switch n := g.r.IntN(8); {
		case n == 0:
			g.add(g.bounded(b.Add(x, y)))
		case n == 1:
			g.add(g.bounded(b.Sub(x, y)))
		case n == 2:
			g.add(g.bounded(b.Mul(x, y)))
		case n == 3:
			g.add(b.Min(x, y))
		case n == 4:
			g.add(b.Max(x, y))
		case n == 5:
			g.add(b.Neg(x))
		case n == 6:
			g.add(b.Abs(x))
		default:
			g.add(g.bounded(b.Fma(x, y, g.bounded(g.pick(t)))))
		}
		return
	}
	ops := []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpDiv, ir.OpRem, ir.OpMin, ir.OpMax, ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShl, ir.OpShr, ir.OpNot, ir.OpNeg, ir.OpAbs, ir.OpMulHi}
	switch op := ops[g.r.IntN(len(ops))]; op {
	case ir.OpDiv, ir.OpRem: // a positive divisor: the smallest integer by -1 is no number
		y = b.Or(b.And(y, b.ConstLike(y, 0x3ff)), b.ConstLike(y, 1))
		if op == ir.OpDiv {
			g.add(b.Div(x, y))
		} else {
			g.add(b.Rem(x, y))
		}
	case ir.OpShl:
		g.add(b.Shl(x, b.And(y, b.ConstLike(y, float64(8*t.Kind.Size()-1)))))
	case ir.OpShr:
		g.add(b.Shr(x, b.And(y, b.ConstLike(y, float64(8*t.Kind.Size()-1)))))
	case ir.OpNot:
		g.add(b.Not(x))
	case ir.OpNeg, ir.OpAbs:
		if t.Kind == ir.U32 {
			g.add(b.Add(x, y))
		} else if op == ir.OpNeg {
			g.add(b.Neg(x))
		} else {
			g.add(b.Abs(x))
		}
	case ir.OpMulHi:
		if t.Kind == ir.U32 {
			g.add(b.MulHi(x, y))
		} else {
			g.add(b.Mul(x, y))
		}
	default:
		g.add(map[ir.Op]func(x, y ir.Value) ir.Value{ir.OpAdd: b.Add, ir.OpSub: b.Sub, ir.OpMul: b.Mul, ir.OpMin: b.Min, ir.OpMax: b.Max,
			ir.OpAnd: b.And, ir.OpOr: b.Or, ir.OpXor: b.Xor}[op](x, y))
	}
}

func (g *maker) compare(t ir.Type) {
	b, x, y := g.b, g.pick(t), g.pick(t)
	if !t.Kind.IsArith() {
		g.logic(t.Lanes)
		return
	}
	fs := []func(x, y ir.Value) ir.Value{b.Eq, b.Ne, b.Lt, b.Le, b.Gt, b.Ge}
	g.add(fs[g.r.IntN(len(fs))](x, y))
	if t.Kind.IsFloat() && g.r.IntN(4) == 0 {
		fs := []func(x ir.Value) ir.Value{b.IsNaN, b.IsInf, b.IsFinite}
		g.add(fs[g.r.IntN(len(fs))](x))
	}
}

func (g *maker) logic(lanes int) {
	b, t := g.b, ir.Vec(ir.Bool, lanes)
	x, y := g.pick(t), g.pick(t)
	switch g.r.IntN(6) {
	case 0:
		g.add(b.And(x, y))
	case 1:
		g.add(b.Or(x, y))
	case 2:
		g.add(b.Xor(x, y))
	case 3:
		g.add(b.Eq(x, y))
	case 4:
		g.add(b.Ne(x, y))
	default:
		g.add(b.Not(x))
	}
}

// cast reinterprets bits; exact cases only those of floats, because any bits may be a NaN.
func (g *maker) cast(lanes int) {
	pairs := [][2]ir.Kind{{ir.F32, ir.U32}, {ir.F32, ir.I32}, {ir.I32, ir.U32}, {ir.U32, ir.I32}, {ir.F64, ir.I64}, {ir.F16, ir.U16}, {ir.BF16, ir.U16}}
	if !g.cfg.Exact {
		pairs = append(pairs, [2]ir.Kind{ir.U32, ir.F32}, [2]ir.Kind{ir.I32, ir.F32}, [2]ir.Kind{ir.I64, ir.F64}, [2]ir.Kind{ir.U16, ir.F16}, [2]ir.Kind{ir.U16, ir.BF16})
	}
	p := pairs[g.r.IntN(len(pairs))]
	if !g.has(p[0]) || !g.has(p[1]) {
		return
	}
	x := g.pick(ir.Vec(p[0], lanes))
	if g.cfg.Exact && p[0].IsFloat() { // the sign of a zero is not exact
		x = g.b.Select(g.zero(x), g.b.ConstLike(x, 0), x)
	}
	g.add(g.b.BitCast(x, p[1]))
}

func (g *maker) zero(x ir.Value) ir.Value {
	return g.b.Not(g.b.Convert(x, ir.Bool))
}

func (g *maker) vector(k ir.Kind, width int) {
	s, v := ir.Scalar(k), ir.Vec(k, width)
	switch g.r.IntN(3) {
	case 0:
		g.add(g.b.Splat(g.pick(s), width))
	case 1:
		g.add(g.b.Extract(g.pick(v), g.r.IntN(width)))
	default:
		xs := make([]ir.Value, width)
		for i := range xs {
			xs[i] = g.pick(s)
		}
		g.add(g.b.Vec(xs...))
	}
}

func (g *maker) math(t ir.Type) {
	if g.r.IntN(4) == 0 {
		g.add(g.b.Div(g.pick(t), g.pick(t)))
		return
	}
	op := ir.OpSqrt + ir.Op(g.r.IntN(int(ir.OpRound-ir.OpSqrt)+1))
	if op == ir.OpAtan2 || op == ir.OpPow {
		g.add(g.b.Math(op, g.pick(t), g.pick(t)))
		return
	}
	g.add(g.b.Math(op, g.pick(t)))
}

// scoped runs f with a pool whose additions are forgotten afterwards.
func (g *maker) scoped(f func()) func() {
	return func() {
		outer := g.pool
		g.pool = make(map[ir.Type][]ir.Value, len(outer))
		for t, vs := range outer {
			g.pool[t] = vs[:len(vs):len(vs)]
		}
		g.nesting++
		f()
		g.nesting--
		g.pool = outer
	}
}

// control adds a variable that a branch or a loop changes, or a private array.
func (g *maker) control(t ir.Type, width int) {
	b := g.b
	if g.r.IntN(4) == 0 && t.Kind.IsArith() {
		g.private(t.Kind)
		return
	}
	v := b.Var(g.pick(t))
	body := func(steps int) func() {
		return g.scoped(func() {
			g.add(b.Get(v))
			for range steps {
				g.step(width)
			}
			b.Set(v, g.pick(t))
		})
	}
	if g.r.IntN(2) == 0 {
		var els func()
		if g.r.IntN(2) == 0 {
			els = body(2)
		}
		b.If(g.pick(ir.Scalar(ir.Bool)), body(3), els)
	} else {
		g.loop(body(2))
	}
	g.add(b.Get(v))
}

// loop runs body a few times: as often for all invocations or not.
func (g *maker) loop(body func()) {
	b := g.b
	k := []ir.Kind{ir.U32, ir.I32}[g.r.IntN(2)]
	konst := func(n int) ir.Value { return b.ConstBits(ir.Scalar(k), uint64(n)) }
	small := func() ir.Value { // 0 to 7
		switch g.r.IntN(4) {
		case 0:
			return b.And(b.Convert(g.pick(ir.Scalar(ir.U32)), k), konst(7))
		case 1:
			return b.Convert(b.Rem(g.lid, b.U32(5)), k)
		}
		return konst(g.r.IntN(6))
	}
	lo, hi := small(), small()
	if g.r.IntN(4) == 0 { // from the position in the workgroup to its size
		lo, hi = b.Convert(g.lid, k), konst(g.local)
	}
	step := konst(1 + g.r.IntN(3))
	if g.local > 8 {
		step = konst(g.local/4 + g.r.IntN(3))
	}
	b.For(lo, hi, step, func(i ir.Value) {
		g.scoped(func() {
			if g.has(k) {
				g.add(i)
			}
			body()
		})()
	})
}

func (g *maker) private(k ir.Kind) {
	b, n := g.b, 4
	g.arrays++
	m := b.PrivateArray("private"+string(rune('a'+g.arrays%26))+string(rune('a'+g.arrays/26)), k, n)
	for i := range n {
		b.Store(m, b.U32(uint32(i)), g.pick(ir.Scalar(k)))
	}
	b.Store(m, g.index(n), g.pick(ir.Scalar(k)))
	b.Store(m, b.U32(2), g.pick(ir.Vec(k, 2)))
	g.add(b.Load(m, g.index(n), 1))
	g.add(b.Load(m, b.U32(uint32(g.r.IntN(n))), 1))
}

// shuffle exchanges values between the invocations of a workgroup, and counts with atomics.
func (g *maker) shuffle() {
	b := g.b
	for i, k := range g.cfg.Kinds {
		if !k.IsArith() || g.r.IntN(3) == 0 {
			continue
		}
		m := b.SharedArray("shared"+string(rune('a'+i)), k, g.local)
		v := g.mixed(k)
		b.Store(m, g.lid, v)
		b.Barrier()
		other := b.Rem(b.Add(g.lid, b.U32(uint32(1+g.r.IntN(5)))), b.U32(uint32(g.local)))
		g.add(b.Load(m, other, 1))
		b.Barrier()
		b.If(b.Lt(g.lid, b.U32(uint32(g.local/2))), func() { b.Store(m, g.lid, b.Load(m, b.Add(g.lid, b.U32(uint32(g.local/2))), 1)) }, nil)
		b.Barrier()
		g.add(b.Load(m, b.U32(0), 1))
	}
	if !g.has(ir.U32) {
		return
	}
	m := b.SharedArray("counter", ir.U32, 2)
	b.If(b.Eq(g.lid, b.U32(0)), func() { b.Store(m, b.U32(0), b.U32(5)); b.Store(m, b.U32(1), b.U32(0)) }, nil)
	b.Barrier()
	ops := []ir.Op{ir.OpAtomicAdd, ir.OpAtomicMin, ir.OpAtomicMax, ir.OpAtomicAnd, ir.OpAtomicOr}
	b.Atomic(ops[g.r.IntN(len(ops))], m, b.U32(0), b.Add(g.lid, b.U32(1)))
	b.Atomic(ir.OpAtomicCAS, m, b.U32(1), b.U32(0), b.U32(9))
	b.Barrier()
	g.add(b.Load(m, b.U32(0), 1))
	g.add(b.Load(m, b.U32(1), 1))
}

// mixed is a small number, another one for most invocations.
func (g *maker) mixed(k ir.Kind) ir.Value {
	return g.b.Convert(g.b.Rem(g.b.Mul(g.gid, g.b.U32(7)), g.b.U32(31)), k)
}

// exchange exchanges values within subgroups of n invocations.
func (g *maker) exchange(n int) {
	b := g.b
	b.SetSubgroup(n)
	for _, k := range []ir.Kind{ir.U32, ir.I32, ir.F32} {
		if !g.has(k) {
			continue
		}
		v := b.Add(g.mixed(k), b.ConstBits(ir.Scalar(k), g.constBits(k)))
		for range 1 + g.r.IntN(3) {
			v = b.ShuffleXor(v, 1+g.r.IntN(n-1))
			g.add(v)
		}
	}
}
