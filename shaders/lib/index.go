package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Gather takes elements along the middle dimension by index: out[o, j, i] = in[o, index, i], where in is [Outer, N, Inner]
// and out [Outer, J, Inner], both contiguous and of one kind. The index is [J], the same for each slice, or with Each
// [Outer, J, Inner]. Where it is not in 0 to N-1 the output is 0; callers report such an index.
// Buffers: in, index, out.
type Gather struct {
	Ops                []string
	Outer, N, J, Inner int
	Each               bool
	Kind               ir.Kind // of in and out: any memory kind
	Index              ir.Kind // I32 or I64
}

// Key identifies the kernel; sizes are launch parameters.
func (g *Gather) Key() string {
	return fmt.Sprintf("gather|%s|%s|each %v|align %d|ops %q", g.Kind, g.Index, g.Each, pow2Factor(g.Inner), g.Ops)
}

// lanes is how many neighbours one invocation copies.
func (g *Gather) lanes(t Target) int {
	if g.Each {
		return 1
	}
	return min(t.config().width, pow2Factor(g.Inner))
}

func (g *Gather) check() error {
	if g.Outer < 0 || g.N < 0 || g.J < 0 || g.Inner < 0 || g.N > maxIndexed || g.J > maxIndexed {
		return fmt.Errorf("gather: sizes [%d %d %d] by %d indices; each must be from 0 to %d", g.Outer, g.N, g.Inner, g.J, maxIndexed)
	}
	if g.Index != ir.I32 && g.Index != ir.I64 {
		return fmt.Errorf("gather: an index of kind %s; it takes i32 and i64", g.Index)
	}
	return checkOperand(Operand{Kind: g.Kind})
}

// maxIndexed bounds dimensions that are indexed: indices are I32 in kernels.
const maxIndexed = 1<<31 - 1

// Build makes the kernel.
func (g *Gather) Build(t Target) (*ir.Kernel, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	b := ir.NewBuilder("gather", t.config().local, 1, 1)
	b.SetOps(g.Ops...)
	in, index, out := b.Buffer("in", g.Kind, ir.Read), b.Buffer("index", g.Index, ir.Read), b.Buffer("out", g.Kind, ir.Write)
	total, n, j, inner := b.Param("total", ir.U32), b.Param("n", ir.U32), b.Param("j", ir.U32), b.Param("inner", ir.U32)
	lanes := g.lanes(t)
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		at := b.Mul(id, b.U32(uint32(lanes)))
		col, row := b.Rem(at, inner), b.Div(at, inner)
		outer, entry := b.Div(row, j), b.Rem(row, j)
		where := entry
		if g.Each {
			where = at
		}
		pick, ok := indexInRange(b, b.Load(index, where, 1), n)
		b.If(ok, func() {
			from := b.Add(b.Mul(b.Add(b.Mul(outer, n), pick), inner), col)
			b.Store(out, at, b.Load(in, from, lanes))
		}, func() {
			b.Store(out, at, b.ConstBits(ir.Vec(g.Kind, lanes), 0))
		})
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	return k, nil
}

// indexInRange returns an index as U32, and whether it is one of n.
func indexInRange(b *ir.Builder, v, n ir.Value) (index, ok ir.Value) {
	return b.Convert(v, ir.U32), b.And(b.Ge(v, b.ConstLike(v, 0)), b.Lt(v, b.Convert(n, v.Type.Kind)))
}

// Launch returns the grid and the parameters.
func (g *Gather) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := g.check(); err != nil {
		return groups, nil, err
	}
	total := satMul(satMul(g.Outer, g.J), g.Inner)
	if err := t.checkElements("gather", g.Kind, satMul(satMul(g.Outer, g.N), g.Inner), total); err != nil {
		return groups, nil, err
	}
	total /= g.lanes(t)
	groups, err = t.linear("gather", total)
	return groups, []uint32{uint32(total), uint32(g.N), uint32(g.J), uint32(g.Inner)}, err
}

// Cost returns the bytes moved.
func (g *Gather) Cost() float64 {
	return float64(g.Outer) * float64(g.J) * float64(g.Inner) * float64(2*g.Kind.Size())
}

// linear returns the grid of a kernel with one invocation for each of n elements.
func (t Target) linear(what string, n int) ([3]int, error) {
	local := t.config().local
	groups, err := t.fold(what, uint64(ceilDiv(n, local)))
	if err == nil && uint64(groups[0])*uint64(groups[1])*uint64(local) > 1<<32 {
		err = fmt.Errorf("%s: %d elements are too many for 32-bit indices; split the tensor", what, n)
	}
	return groups, err
}

// checkElements reports buffers of n elements that the device cannot bind, or that 32 bits cannot index.
func (t Target) checkElements(what string, k ir.Kind, ns ...int) error {
	for _, n := range ns {
		if n > maxReduceElements {
			return fmt.Errorf("%s: %d elements; kernels index with 32 bits, so at most %d: split the tensor", what, n, int64(maxReduceElements))
		}
		if limit := t.Caps.MaxBufferBytes; limit > 0 && int64(n)*int64(k.Size()) > limit {
			return fmt.Errorf("%s: %d elements of %s, but the device binds at most %d bytes to a kernel; split the tensor", what, n, k, limit)
		}
	}
	return nil
}

// ScatterSum adds slices by index, the adjoint of [Gather]: out[o, n, i] = base[o, n, i] + the sum of src[o, j, i] over
// the j whose index is n, in ascending order of j. With Set the last such element replaces base instead. The indices
// come sorted: Order has the j in order of their index, and Starts where those of each n begin ([IndexStarts]), both I32, for
// one row or with Each for Outer*Inner rows. No atomics, so the result is the same in every run.
// Buffers: base if HasBase, src, order [rows, J], starts [rows, N+1], out.
type ScatterSum struct {
	Ops                []string
	Outer, N, J, Inner int
	Each               bool
	HasBase            bool // else base is 0
	Set                bool
	Kind               ir.Kind // of base, src and out
}

// scatterUnroll is how many elements an iteration of the loop over a slice's contributions adds; it keeps the loop short on
// devices that bound iterations.
const scatterUnroll = 4

// Key identifies the kernel; sizes are launch parameters.
func (s *ScatterSum) Key() string {
	return fmt.Sprintf("scatter_sum|%s|each %v|base %v|set %v|align %d|ops %q", s.Kind, s.Each, s.HasBase, s.Set, pow2Factor(s.Inner), s.Ops)
}

func (s *ScatterSum) lanes(t Target) int {
	if s.Each {
		return 1
	}
	return min(t.config().width, pow2Factor(s.Inner))
}

func (s *ScatterSum) check() error {
	if s.Outer < 0 || s.N < 0 || s.J < 0 || s.Inner < 0 || s.N > maxIndexed || s.J > maxIndexed {
		return fmt.Errorf("scatter: sizes [%d %d %d] by %d indices; each must be from 0 to %d", s.Outer, s.N, s.Inner, s.J, maxIndexed)
	}
	return checkOperand(Operand{Kind: s.Kind})
}

// Build makes the kernel.
func (s *ScatterSum) Build(t Target) (*ir.Kernel, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	b := ir.NewBuilder("scatter_sum", t.config().local, 1, 1)
	b.SetOps(s.Ops...)
	var base *ir.Mem
	if s.HasBase {
		base = b.Buffer("base", s.Kind, ir.Read)
	}
	src, order, starts := b.Buffer("src", s.Kind, ir.Read), b.Buffer("order", ir.I32, ir.Read), b.Buffer("starts", ir.I32, ir.Read)
	out := b.Buffer("out", s.Kind, ir.Write)
	total, n, j, inner := b.Param("total", ir.U32), b.Param("n", ir.U32), b.Param("j", ir.U32), b.Param("inner", ir.U32)
	lanes := s.lanes(t)
	o := Operand{Kind: s.Kind}
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		at := b.Mul(id, b.U32(uint32(lanes)))
		col, row := b.Rem(at, inner), b.Div(at, inner)
		outer, bin := b.Div(row, n), b.Rem(row, n)
		first, entry := bin, b.U32(0)
		if s.Each {
			list := b.Add(b.Mul(outer, inner), col)
			first = b.Add(b.Mul(list, b.Add(n, b.U32(1))), bin)
			entry = b.Mul(list, j)
		}
		lo := b.Convert(b.Load(starts, first, 1), ir.U32)
		hi := b.Convert(b.Load(starts, b.Add(first, b.U32(1)), 1), ir.U32)
		read := func(k ir.Value) ir.Value {
			from := b.Convert(b.Load(order, b.Add(entry, k), 1), ir.U32)
			return load(b, src, o, b.Add(b.Mul(b.Add(b.Mul(outer, j), from), inner), col), lanes, accessVector, nil)
		}
		var acc ir.Value
		if s.HasBase {
			acc = b.Var(load(b, base, o, at, lanes, accessVector, nil))
		} else {
			acc = b.Var(b.ConstBits(ir.Vec(o.ValueKind(), lanes), 0))
		}
		if s.Set {
			b.If(b.Lt(lo, hi), func() { b.Set(acc, read(b.Sub(hi, b.U32(1)))) }, nil)
		} else {
			b.For(lo, hi, b.U32(scatterUnroll), func(k ir.Value) {
				b.Set(acc, b.Add(b.Get(acc), read(k)))
				for u := 1; u < scatterUnroll; u++ {
					next := b.Add(k, b.U32(uint32(u)))
					b.If(b.Lt(next, hi), func() { b.Set(acc, b.Add(b.Get(acc), read(next))) }, nil)
				}
			})
		}
		store(b, out, o, at, b.Get(acc), lanes, accessVector, nil)
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("scatter: %w", err)
	}
	return k, nil
}

// Launch returns the grid and the parameters.
func (s *ScatterSum) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := s.check(); err != nil {
		return groups, nil, err
	}
	if most := t.Caps.MaxLoopTrips; most > 0 && !s.Set && ceilDiv(s.J, scatterUnroll) > most {
		return groups, nil, fmt.Errorf("scatter: %d elements to one place may need %d loop iterations, and the device runs at most %d; split the index", s.J, ceilDiv(s.J, scatterUnroll), most)
	}
	total := satMul(satMul(s.Outer, s.N), s.Inner)
	if err := t.checkElements("scatter", s.Kind, satMul(satMul(s.Outer, s.J), s.Inner), total); err != nil {
		return groups, nil, err
	}
	total /= s.lanes(t)
	groups, err = t.linear("scatter", total)
	return groups, []uint32{uint32(total), uint32(s.N), uint32(s.J), uint32(s.Inner)}, err
}

// Cost returns the bytes moved.
func (s *ScatterSum) Cost() float64 {
	return float64(s.Outer) * (float64(s.N) + float64(s.J)) * float64(s.Inner) * float64(s.Kind.Size())
}
