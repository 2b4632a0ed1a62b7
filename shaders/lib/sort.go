package lib

import (
	"fmt"
	"math/bits"

	"github.com/anygpu/anygpu/shaders/ir"
)

// A sort is stable and runs in passes: [SortRuns] turns values into integer keys of their order and sorts short runs,
// then each [MergeRuns] makes runs twice as long. Every element finds its place by counting: in a run by comparison with
// each other element, in a merge by binary search in the other run. Nothing is shared between invocations.

// SortRun is the length of the runs that [SortRuns] makes.
const SortRun = 32

// SortRuns reads rows of N values and writes their keys, sorted in runs of [SortRun], and for each key the place in the
// row where it was (I32). Keys are I64 for I64 and F64 and else I32; they have the order of the values, NaN the largest and
// -0 equal to 0, or with Descending the reverse. With Bins the values are indices: those outside 0 to Bins-1 get the key -1.
// Buffers: in [Rows, N], keys, order.
type SortRuns struct {
	Ops        []string
	Rows, N    int
	In         ir.Kind
	Descending bool
	Bins       int // 0: none
}

// KeyKind is the kind of the keys.
func (s *SortRuns) KeyKind() ir.Kind {
	if s.Bins == 0 && (s.In == ir.I64 || s.In == ir.F64) {
		return ir.I64
	}
	return ir.I32
}

// Key identifies the kernel.
func (s *SortRuns) Key() string {
	return fmt.Sprintf("sort_runs|%s|descending %v|bins %v|ops %q", s.In, s.Descending, s.Bins > 0, s.Ops)
}

// key maps a value to its key.
func (s *SortRuns) key(b *ir.Builder, v, bins ir.Value) ir.Value {
	if s.Bins > 0 {
		index, ok := indexInRange(b, v, bins)
		return b.Select(ok, b.Convert(index, ir.I32), b.I32(-1))
	}
	key := v
	if v.Type.Kind.IsFloat() {
		width := 8 * v.Type.Kind.Size()
		kind := ir.I32
		if width == 64 {
			kind = ir.I64
		}
		raw := b.BitCast(b.Select(b.Eq(v, b.ConstLike(v, 0)), b.ConstLike(v, 0), v), kind)
		// Negative floats are ordered like their magnitude; their other bits are inverted.
		largest := b.ConstBits(raw.Type, 1<<(width-1)-1)
		key = b.Xor(raw, b.And(b.Shr(raw, b.ConstLike(raw, float64(width-1))), largest))
		key = b.Select(b.IsNaN(v), largest, key)
	}
	if s.Descending {
		key = b.Not(key)
	}
	return key
}

// Build makes the kernel.
func (s *SortRuns) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("sort_runs", t.config().local, 1, 1)
	b.SetOps(s.Ops...)
	in := b.Buffer("in", s.In, ir.Read)
	keys, order := b.Buffer("keys", s.KeyKind(), ir.Write), b.Buffer("order", ir.I32, ir.Write)
	total, n, bins := b.Param("total", ir.U32), b.Param("n", ir.U32), b.Param("bins", ir.U32)
	read := func(at ir.Value) ir.Value {
		return s.key(b, load(b, in, Operand{Kind: s.In}, at, 1, accessVector, nil), bins)
	}
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		at := b.Rem(id, n)
		row := b.Sub(id, at)
		start := b.And(at, b.U32(^uint32(SortRun-1)))
		end := b.Min(n, b.Add(start, b.U32(SortRun)))
		mine := read(id)
		rank := b.Var(start)
		b.For(start, end, b.U32(1), func(i ir.Value) {
			other := read(b.Add(row, i))
			before := b.Or(b.Lt(other, mine), b.And(b.Eq(other, mine), b.Lt(i, at)))
			b.Set(rank, b.Add(b.Get(rank), b.Select(before, b.U32(1), b.U32(0))))
		})
		to := b.Add(row, b.Get(rank))
		b.Store(keys, to, mine)
		b.Store(order, to, b.Convert(at, ir.I32))
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	return k, nil
}

// Launch returns the grid and the parameters.
func (s *SortRuns) Launch(t Target) (groups [3]int, params []uint32, err error) {
	total := satMul(s.Rows, s.N)
	if err := checkSort(t, s.Rows, s.N, s.KeyKind()); err != nil {
		return groups, nil, err
	}
	groups, err = t.linear("sort", total)
	return groups, []uint32{uint32(total), uint32(s.N), uint32(s.Bins)}, err
}

func checkSort(t Target, rows, n int, key ir.Kind) error {
	if rows < 0 || n < 0 || n > maxIndexed {
		return fmt.Errorf("sort: %d rows of %d elements; a row has at most %d", rows, n, maxIndexed)
	}
	return t.checkElements("sort", key, satMul(rows, n))
}

// Cost returns the number of comparisons.
func (s *SortRuns) Cost() float64 { return 4 * SortRun * float64(s.Rows) * float64(s.N) }

// MergeRuns merges neighbouring runs of Width sorted keys in rows of N; of equal keys those of the first run come first.
// Buffers: keys, order, merged keys, merged order.
type MergeRuns struct {
	Ops            []string
	Rows, N, Width int
	KeyKind        ir.Kind // I32 or I64
}

// Key identifies the kernel.
func (m *MergeRuns) Key() string { return fmt.Sprintf("merge_runs|%s|ops %q", m.KeyKind, m.Ops) }

// Build makes the kernel.
func (m *MergeRuns) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("merge_runs", t.config().local, 1, 1)
	b.SetOps(m.Ops...)
	keys, order := b.Buffer("keys", m.KeyKind, ir.Read), b.Buffer("order", ir.I32, ir.Read)
	keysOut, orderOut := b.Buffer("keys_out", m.KeyKind, ir.Write), b.Buffer("order_out", ir.I32, ir.Write)
	total, n, width, steps := b.Param("total", ir.U32), b.Param("n", ir.U32), b.Param("width", ir.U32), b.Param("steps", ir.U32)
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		at := b.Rem(id, n)
		row := b.Sub(id, at)
		mine := b.Load(keys, id, 1)
		within := b.Rem(at, b.Add(width, width))
		start := b.Sub(at, within)
		second := b.Ge(within, width)
		middle := b.Min(n, b.Add(start, width))
		from := b.Select(second, start, middle)
		to := b.Select(second, middle, b.Min(n, b.Add(middle, width)))
		// The number of elements of the other run that come before this one.
		lo := search(b, keys, row, from, to, steps, func(key ir.Value) ir.Value {
			return b.Or(b.Lt(key, mine), b.And(second, b.Eq(key, mine)))
		})
		// at counts the elements before in its own run, and for the second run also the whole first one.
		place := b.Add(b.Sub(at, b.Select(second, width, b.U32(0))), b.Sub(lo, from))
		place = b.Add(row, place)
		b.Store(keysOut, place, mine)
		b.Store(orderOut, place, b.Load(order, id, 1))
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	return k, nil
}

// search returns the first place from lo to hi whose key does not come before, in steps halvings.
func search(b *ir.Builder, keys *ir.Mem, row, lo, hi, steps ir.Value, before func(key ir.Value) ir.Value) ir.Value {
	low, high := b.Var(lo), b.Var(hi)
	b.Range(steps, func(ir.Value) {
		b.If(b.Lt(b.Get(low), b.Get(high)), func() {
			mid := b.Add(b.Get(low), b.Shr(b.Sub(b.Get(high), b.Get(low)), b.U32(1)))
			b.If(before(b.Load(keys, b.Add(row, mid), 1)), func() { b.Set(low, b.Add(mid, b.U32(1))) }, func() { b.Set(high, mid) })
		}, nil)
	})
	return b.Get(low)
}

// Launch returns the grid and the parameters.
func (m *MergeRuns) Launch(t Target) (groups [3]int, params []uint32, err error) {
	total := satMul(m.Rows, m.N)
	if m.Width < 1 || m.Width > maxIndexed/2 {
		return groups, nil, fmt.Errorf("sort: runs of %d elements", m.Width)
	}
	if err := checkSort(t, m.Rows, m.N, m.KeyKind); err != nil {
		return groups, nil, err
	}
	groups, err = t.linear("sort", total)
	return groups, []uint32{uint32(total), uint32(m.N), uint32(m.Width), uint32(bits.Len(uint(m.Width)))}, err
}

// Cost returns the number of comparisons and bytes.
func (m *MergeRuns) Cost() float64 {
	return float64(m.Rows) * float64(m.N) * float64(16+8*bits.Len(uint(m.Width)))
}

// IndexStarts finds, in rows of J sorted I32 keys, where the keys that are at least n begin, for n from 0 to Bins.
// Buffers: keys [Rows, J], starts [Rows, Bins+1] (I32).
type IndexStarts struct {
	Ops           []string
	Rows, J, Bins int
}

// Key identifies the kernel.
func (s *IndexStarts) Key() string { return fmt.Sprintf("index_starts|ops %q", s.Ops) }

// Build makes the kernel.
func (s *IndexStarts) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("index_starts", t.config().local, 1, 1)
	b.SetOps(s.Ops...)
	keys, starts := b.Buffer("keys", ir.I32, ir.Read), b.Buffer("starts", ir.I32, ir.Write)
	total, j, places, steps := b.Param("total", ir.U32), b.Param("j", ir.U32), b.Param("places", ir.U32), b.Param("steps", ir.U32)
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		bin := b.Convert(b.Rem(id, places), ir.I32)
		row := b.Mul(b.Div(id, places), j)
		lo := search(b, keys, row, b.U32(0), j, steps, func(key ir.Value) ir.Value { return b.Lt(key, bin) })
		b.Store(starts, id, b.Convert(lo, ir.I32))
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("index starts: %w", err)
	}
	return k, nil
}

// Launch returns the grid and the parameters.
func (s *IndexStarts) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if s.Rows < 0 || s.J < 0 || s.Bins < 0 || s.Bins >= maxIndexed {
		return groups, nil, fmt.Errorf("index starts: %d rows of %d keys in %d bins", s.Rows, s.J, s.Bins)
	}
	total := satMul(s.Rows, s.Bins+1)
	if err := t.checkElements("index starts", ir.I32, satMul(s.Rows, s.J), total); err != nil {
		return groups, nil, err
	}
	groups, err = t.linear("index starts", total)
	return groups, []uint32{uint32(total), uint32(s.J), uint32(s.Bins + 1), uint32(bits.Len(uint(s.J)))}, err
}

// Cost returns the number of comparisons.
func (s *IndexStarts) Cost() float64 {
	return float64(s.Rows) * float64(s.Bins+1) * float64(4+4*bits.Len(uint(s.J)))
}
