package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// IndexSum is [ScatterSum] without Each, HasBase and Set from an index as it is: one kernel, in which every element of the result goes through
// the whole index. For few results and short indices that is less work than sorting. The sums have the same order, so that the results
// have the same bits. Indices that are not in 0 to N-1 do not count.
// Buffers: src [Outer, J, Inner], index [J], out [Outer, N, Inner].
type IndexSum struct {
	Ops                []string
	Outer, N, J, Inner int
	Kind               ir.Kind // of src and out
	Index              ir.Kind // I32 or I64
}

// Bounds within which IndexSum is worth it: of comparisons, and of indices, because an invocation goes through them one after another.
const (
	maxIndexSum  = 1 << 24
	maxIndexList = 1 << 12
)

// Worth reports whether the kernel is less work than sorting the index.
func (s *IndexSum) Worth() bool {
	return satMul(satMul(s.Outer, s.N), satMul(s.Inner, s.J)) <= maxIndexSum && s.J <= maxIndexList
}

// Key identifies the kernel; sizes are launch parameters.
func (s *IndexSum) Key() string {
	return fmt.Sprintf("index_sum|%s|%s|align %d|ops %q", s.Kind, s.Index, pow2Factor(s.Inner), s.Ops)
}

func (s *IndexSum) lanes(t Target) int { return min(t.config().width, pow2Factor(s.Inner)) }

func (s *IndexSum) check() error {
	if s.Outer < 0 || s.N < 0 || s.J < 0 || s.Inner < 0 || s.N > maxIndexed || s.J > maxIndexed {
		return fmt.Errorf("index sum: sizes [%d %d %d] by %d indices; each must be from 0 to %d", s.Outer, s.N, s.Inner, s.J, maxIndexed)
	}
	if s.Index != ir.I32 && s.Index != ir.I64 {
		return fmt.Errorf("index sum: an index of kind %s; it takes i32 and i64", s.Index)
	}
	return checkOperand(Operand{Kind: s.Kind})
}

// Build makes the kernel.
func (s *IndexSum) Build(t Target) (*ir.Kernel, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	b := ir.NewBuilder("index_sum", t.config().local, 1, 1)
	b.SetOps(s.Ops...)
	src, index, out := b.Buffer("src", s.Kind, ir.Read), b.Buffer("index", s.Index, ir.Read), b.Buffer("out", s.Kind, ir.Write)
	total, n, j, inner := b.Param("total", ir.U32), b.Param("n", ir.U32), b.Param("j", ir.U32), b.Param("inner", ir.U32)
	lanes := s.lanes(t)
	o := Operand{Kind: s.Kind}
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		at := b.Mul(id, b.U32(uint32(lanes)))
		col, row := b.Rem(at, inner), b.Div(at, inner)
		first := b.Add(b.Mul(b.Mul(b.Div(row, n), j), inner), col)
		bin := b.Convert(b.Rem(row, n), s.Index)
		acc := b.Var(b.ConstBits(ir.Vec(o.ValueKind(), lanes), 0))
		hit := func(k ir.Value) ir.Value { return b.Eq(b.Load(index, k, 1), bin) }
		add := func(k ir.Value) {
			b.Set(acc, b.Add(b.Get(acc), load(b, src, o, b.Add(first, b.Mul(k, inner)), lanes, accessVector, nil)))
		}
		whole := b.Sub(j, b.Rem(j, b.U32(scatterUnroll)))
		b.For(b.U32(0), whole, b.U32(scatterUnroll), func(k ir.Value) {
			var at, hits [scatterUnroll]ir.Value
			for u := range at {
				at[u] = b.Add(k, b.U32(uint32(u)))
				hits[u] = hit(at[u])
			}
			some := hits[0]
			for _, h := range hits[1:] {
				some = b.Or(some, h)
			}
			b.If(some, func() { // most indices are of other places
				for u, h := range hits {
					b.If(h, func() { add(at[u]) }, nil)
				}
			}, nil)
		})
		b.For(whole, j, b.U32(1), func(k ir.Value) { b.If(hit(k), func() { add(k) }, nil) })
		store(b, out, o, at, b.Get(acc), lanes, accessVector, nil)
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("index sum: %w", err)
	}
	return k, nil
}

// Launch returns the grid and the parameters.
func (s *IndexSum) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := s.check(); err != nil {
		return groups, nil, err
	}
	if trips, most := s.J/scatterUnroll+scatterUnroll, t.Caps.MaxLoopTrips; most > 0 && trips > most {
		return groups, nil, fmt.Errorf("index sum: %d indices need %d loop iterations, and the device runs at most %d", s.J, trips, most)
	}
	total := satMul(satMul(s.Outer, s.N), s.Inner)
	if err := t.checkElements("index sum", s.Kind, satMul(satMul(s.Outer, s.J), s.Inner), total); err != nil {
		return groups, nil, err
	}
	total /= s.lanes(t)
	groups, err = t.linear("index sum", total)
	return groups, []uint32{uint32(total), uint32(s.N), uint32(s.J), uint32(s.Inner)}, err
}

// Cost returns the comparisons and the bytes moved.
func (s *IndexSum) Cost() float64 {
	return float64(s.Outer) * float64(s.Inner) * (float64(s.N)*float64(s.J)/4 + float64(s.N+s.J)*float64(s.Kind.Size()))
}
