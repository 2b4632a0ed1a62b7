package lib

import (
	"github.com/anygpu/anygpu/shaders/ir"
)

// reducer builds the arithmetic of a reduction.
type reducer struct {
	b    *ir.Builder
	op   ReduceOp
	kind ir.Kind // of the accumulator
	// anyNaN: the maximum of values with a NaN among them may be any of them, which saves most of its instructions (see missesNaN).
	anyNaN bool
}

// partial is the reduction of some elements: a value, and for the Arg reductions the index it was found at.
type partial struct {
	value ir.Value
	index ir.Value // U32; nil for other reductions
}

func (o ReduceOp) isArg() bool { return o == ReduceArgMax || o == ReduceArgMin }

func (o ReduceOp) isLogic() bool { return o == ReduceAny || o == ReduceAll }

// needsElements reports whether the reduction of nothing has no value.
func (o ReduceOp) needsElements() bool {
	return o == ReduceMax || o == ReduceMin || o.isArg()
}

// String returns the reduction's name as in PyTorch.
func (o ReduceOp) String() string {
	names := [...]string{"sum", "prod", "max", "min", "argmax", "argmin", "any", "all"}
	if o < 0 || int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// accumulatorKind returns the kind that elements of kind k are reduced in.
func (o ReduceOp) accumulatorKind(k, out ir.Kind) ir.Kind {
	switch {
	case o.isLogic():
		return ir.I32 // 0 or 1
	case k == ir.F16 || k == ir.BF16:
		return ir.F32
	case k.IsFloat():
		return k
	case (o == ReduceSum || o == ReduceProd) && out == ir.I64:
		return ir.I64
	case k == ir.U32 || k == ir.I64:
		return k
	}
	return ir.I32
}

// element makes the partial of one element in each lane. index is the position of the first lane's element; the others
// follow it, or with sameRow are at the same one.
func (r reducer) element(x, index ir.Value, sameRow bool) partial {
	b := r.b
	switch {
	case r.op.isLogic():
		if x.Type.Kind != ir.Bool {
			x = b.Ne(x, b.ConstLike(x, 0))
		}
		x = r.fromBool(x)
	case x.Type.Kind == ir.Bool:
		x = b.Convert(r.fromBool(x), r.kind)
	default:
		x = b.Convert(x, r.kind)
	}
	p := partial{value: x}
	if r.op.isArg() {
		if sameRow {
			p.index = b.Splat(index, x.Type.Lanes)
		} else {
			p.index = iota32(b, index, x.Type.Lanes)
		}
	}
	return p
}

func (r reducer) fromBool(x ir.Value) ir.Value {
	t := x.Type.With(ir.I32)
	return r.b.Select(x, r.b.Const(t, 1), r.b.Const(t, 0))
}

// neutral returns the partial of no elements.
func (r reducer) neutral(lanes int) partial {
	b, t := r.b, ir.Vec(r.kind, lanes)
	switch r.op {
	case ReduceProd, ReduceAll:
		return partial{value: b.Const(t, 1)}
	case ReduceMax:
		return partial{value: lowest(b, t)}
	case ReduceMin:
		return partial{value: highest(b, t)}
	case ReduceArgMax:
		return partial{lowest(b, t), b.ConstBits(t.With(ir.U32), 0xffffffff)}
	case ReduceArgMin:
		return partial{highest(b, t), b.ConstBits(t.With(ir.U32), 0xffffffff)}
	}
	return partial{value: b.Const(t, 0)}
}

// combine joins two partials. It is associative but for rounding, and for the Arg reductions commutative: of equal
// elements the one with the smaller index stays.
func (r reducer) combine(x, y partial) partial {
	b := r.b
	switch r.op {
	case ReduceSum:
		return partial{value: b.Add(x.value, y.value)}
	case ReduceProd:
		return partial{value: b.Mul(x.value, y.value)}
	case ReduceMax:
		if r.anyNaN {
			return partial{value: b.Max(x.value, y.value)}
		}
		return partial{value: b.MaxNaN(x.value, y.value)}
	case ReduceMin:
		return partial{value: b.MinNaN(x.value, y.value)}
	case ReduceAny:
		return partial{value: b.Or(x.value, y.value)}
	case ReduceAll:
		return partial{value: b.And(x.value, y.value)}
	}
	better := b.Gt
	if r.op == ReduceArgMin {
		better = b.Lt
	}
	earlier := b.Lt(y.index, x.index)
	take := b.Or(better(y.value, x.value), b.And(b.Eq(y.value, x.value), earlier))
	if r.kind.IsFloat() {
		nx, ny := b.IsNaN(x.value), b.IsNaN(y.value)
		take = b.Or(b.And(b.Not(nx), b.Or(ny, take)), b.And(b.And(nx, ny), earlier))
	}
	return partial{b.Select(take, y.value, x.value), b.Select(take, y.index, x.index)}
}

// partialVar is a mutable partial.
type partialVar struct{ value, index ir.Value }

func (r reducer) variable(p partial) partialVar {
	v := partialVar{value: r.b.Var(p.value)}
	if p.index != nil {
		v.index = r.b.Var(p.index)
	}
	return v
}

func (r reducer) get(v partialVar) partial {
	p := partial{value: r.b.Get(v.value)}
	if v.index != nil {
		p.index = r.b.Get(v.index)
	}
	return p
}

func (r reducer) set(v partialVar, p partial) {
	r.b.Set(v.value, p.value)
	if v.index != nil {
		r.b.Set(v.index, p.index)
	}
}

// fold combines p into v.
func (r reducer) fold(v partialVar, p partial) { r.set(v, r.combine(r.get(v), p)) }

// sumBlock is how many elements a lane adds plainly before the sum goes to a compensated total.
const sumBlock = 16

// loop reduces f(i) for i = lo, lo+step, … below hi. Float sums are made of blocks of sumBlock elements, which are
// added with Kahan's compensation, so that the error does not grow with the length.
func (r reducer) loop(lanes int, lo, hi ir.Value, step uint32, f func(i ir.Value) partial) partial {
	return r.loopSums(lanes, lo, hi, step, 1, f)
}

// loopSums is loop with some partial results (see [loopAll]).
func (r reducer) loopSums(lanes int, lo, hi ir.Value, step uint32, sums int, f func(i ir.Value) partial) partial {
	return loopAll(r.b, []reducer{r}, lanes, lo, hi, step, sums, func(i ir.Value) []partial { return []partial{f(i)} })[0]
}

// compensate adds a block's sum to the total, by what earlier additions lost.
func (r reducer) compensate(total partialVar, lost, sum ir.Value) {
	b := r.b
	old := b.Get(total.value)
	add := b.Sub(sum, b.Get(lost))
	now := b.Add(old, add)
	rest := b.Sub(b.Sub(now, old), add)
	// An infinite or NaN total has no rest worth keeping: inf-inf would turn it into NaN.
	b.Set(lost, b.Select(b.IsFinite(rest), rest, b.ConstLike(rest, 0)))
	b.Set(total.value, now)
}

// lanes reduces the lanes of a vector by halves.
func (r reducer) lanes(p partial) partial {
	n := p.value.Type.Lanes
	parts := make([]partial, n)
	for i := range parts {
		parts[i].value = r.b.Extract(p.value, i)
		if p.index != nil {
			parts[i].index = r.b.Extract(p.index, i)
		}
	}
	for n > 1 {
		n /= 2
		for i := range n {
			parts[i] = r.combine(parts[i], parts[i+n])
		}
	}
	return parts[0]
}
