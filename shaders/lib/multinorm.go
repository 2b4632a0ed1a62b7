package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// MultiNorm starts the norm of many tensors, taken as one vector: a gradient norm. Each workgroup (on CPU devices each
// invocation) reduces a piece of one tensor to a partial result; a [Reduce] over the partial results with the same operation, and a root where the norm has one,
// completes it. Buffers: the tensors of Sizes[i] contiguous elements of Kind, then the array of partial results (F32, or F64 with Double), of which
// the kernel writes [MultiNorm.Partials] elements from First on. More tensors than the device can bind need a [PackedNorm].
type MultiNorm struct {
	Name   string
	Ops    []string
	Sizes  []int
	Kind   ir.Kind
	Order  NormOrder
	Power  float32 // NormPower
	Double bool    // sums, and partial results, in F64
	First  int
	Length int // of the array of partial results
}

// NormOrder is what the elements of a norm are mapped to and how they are joined.
type NormOrder int

// The norms.
const (
	NormSquares NormOrder = iota // sum of x*x
	NormAbs                      // sum of |x|
	NormMax                      // largest |x|, NaN if there is one
	NormPower                    // sum of |x|^Power
)

// normElements is how many elements each invocation reduces by itself: enough that the tree costs little.
const normElements = 16

// String returns the order's name.
func (o NormOrder) String() string {
	return [...]string{"squares", "abs", "max", "power"}[o]
}

// chunk is how many elements a workgroup reduces.
func (m *MultiNorm) chunk(t Target) int { return t.config().local * normElements }

// kind is what the norm is computed in.
func (m *MultiNorm) kind() ir.Kind {
	if m.Double {
		return ir.F64
	}
	return ir.F32
}

// Partials returns how many partial results the kernel writes on a target.
func (m *MultiNorm) Partials(t Target) int {
	total := 0
	for _, n := range m.Sizes {
		total += ceilDiv(n, m.chunk(t))
	}
	if !t.config().tree {
		total *= t.config().local // each invocation has its own
	}
	return total
}

// Key identifies the kernel.
func (m *MultiNorm) Key() string {
	return fmt.Sprintf("multinorm|%s|%s|%v|%v", m.Order, m.Kind, m.Double, m.Sizes)
}

// Launch returns the grid and the parameters: the first partial result's place, their end, and the power.
func (m *MultiNorm) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := m.check(t); err != nil {
		return groups, nil, err
	}
	n := m.Partials(t)
	per := 1
	if !t.config().tree {
		per = t.config().local
	}
	groups, err = t.fold(m.what(), uint64(n/per))
	return groups, m.normParams(n), err
}

// Cost returns the bytes that the kernel reads.
func (m *MultiNorm) Cost() float64 {
	total := 0.0
	for _, n := range m.Sizes {
		total += float64(n) * float64(m.Kind.Size())
	}
	return total
}

func (m *MultiNorm) what() string { return "norm of many tensors " + kernelName(m.Name, "multinorm") }

func (m *MultiNorm) check(t Target) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", m.what(), fmt.Errorf(format, args...))
	}
	if !m.Kind.IsFloat() {
		return fail("elements of kind %s; it must be a float kind", m.Kind)
	}
	if m.Order < NormSquares || m.Order > NormPower {
		return fail("unknown order %d", int(m.Order))
	}
	for i, n := range m.Sizes {
		if n < 0 || n > maxReduceElements {
			return fail("tensor %d has %d elements; at most %d are possible", i, n, maxReduceElements)
		}
	}
	if n := m.Partials(t); m.First < 0 || m.First+n > m.Length {
		return fail("%d partial results from %d on, in an array of %d", n, m.First, m.Length)
	}
	if most := t.Caps.MaxBuffers; most > 0 && len(m.Sizes)+1 > most {
		return fail("%d tensors need %d buffers; the device binds %d to one kernel", len(m.Sizes), len(m.Sizes)+1, most)
	}
	return nil
}

// Build makes the kernel: a range of workgroups for each tensor, as in [MultiTensor]. All that the tensors do not share is a load:
// drivers take long to compile more, times 32.
func (m *MultiNorm) Build(t Target) (*ir.Kernel, error) {
	if err := m.check(t); err != nil {
		return nil, err
	}
	local := t.config().local
	b := ir.NewBuilder(kernelName(m.Name, "multinorm"), local, 1, 1)
	b.SetOps(m.Ops...)
	var in []*ir.Mem
	for i := range m.Sizes {
		in = append(in, b.Buffer(fmt.Sprintf("t%d", i), m.Kind, ir.Read))
	}
	first, end, power := normDeclare(b, m.Order)
	out := normOut{out: b.Buffer("out", m.kind(), ir.Write), first: first, end: end, power: power, group: b.LinearGroup(), lid: b.LocalID(0), t: t}
	operand := Operand{Kind: m.Kind}
	ranges := groupRanges(m.Sizes, m.chunk(t))
	m.reduce(b, local, out, func(offset, x ir.Value) {
		findTensor(b, ranges, out.group, func(i int, group ir.Value) {
			at := b.Add(b.Mul(group, b.U32(uint32(m.chunk(t)))), offset)
			b.If(b.Lt(at, b.U32(uint32(m.Sizes[i]))), func() {
				b.Set(x, b.Convert(load(b, in[i], operand, at, 1, accessVector, nil), m.kind()))
			}, nil)
		})
	})
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.what(), err)
	}
	return k, nil
}

// normOut is where and how a norm kernel leaves its partial results.
type normOut struct {
	out               *ir.Mem
	first, end, power ir.Value
	group, lid        ir.Value
	t                 Target
}

// normDeclare declares the parameters of a norm kernel; power is nil where the order has none.
func normDeclare(b *ir.Builder, order NormOrder) (first, end, power ir.Value) {
	first, end = b.Param("first", ir.U32), b.Param("end", ir.U32)
	if order == NormPower {
		power = b.Param("power", ir.F32)
	}
	return first, end, power
}

// normParams are their values, for n partial results.
func (m *MultiNorm) normParams(n int) []uint32 {
	params := []uint32{uint32(m.First), uint32(m.First + n)}
	if m.Order == NormPower {
		params = append(params, math.Float32bits(m.Power))
	}
	return params
}

// reduce joins the elements of a workgroup (on CPU devices of an invocation) and stores the result. set sets the variable x, which is 0,
// to the element at an offset in the workgroup's piece, if there is one.
func (m *MultiNorm) reduce(b *ir.Builder, local int, o normOut, set func(offset, x ir.Value)) {
	zero := func() ir.Value { return b.Const(ir.Scalar(m.kind()), 0) }
	r := reducer{b: b, op: ReduceSum, kind: m.kind()}
	if m.Order == NormMax {
		r.op = ReduceMax
	}
	sum := b.Var(zero()) // 0 is neutral for the largest |x| as well
	b.Range(b.U32(normElements), func(v ir.Value) {
		x := b.Var(zero())
		set(b.Add(b.Mul(v, b.U32(uint32(local))), o.lid), x)
		y := b.Abs(b.Get(x))
		switch m.Order {
		case NormSquares:
			y = b.Mul(y, y)
		case NormPower:
			y = b.Pow(y, b.Convert(o.power, m.kind()))
		}
		b.Set(sum, r.combine(partial{value: b.Get(sum)}, partial{value: y}).value)
	})
	if o.t.config().tree {
		sum := newTree(o.t, r, local, local, 1, "").first(partial{value: b.Get(sum)}, o.lid, o.lid).value
		at := b.Add(o.first, o.group)
		b.If(b.And(b.Eq(o.lid, b.U32(0)), b.Lt(at, o.end)), func() { b.Store(o.out, at, sum) }, nil)
		return
	}
	at := b.Add(o.first, b.LinearID())
	b.If(b.Lt(at, o.end), func() { b.Store(o.out, at, b.Get(sum)) }, nil)
}
