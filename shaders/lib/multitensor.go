package lib

import (
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Key identifies the kernel. The tensors' sizes are constants of it: the set of a model's parameters does not change.
func (m *MultiTensor) Key() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "multitensor|%s|%v|", m.BodyKey, m.Flag)
	for _, p := range m.PerTensor {
		fmt.Fprintf(&sb, "%s:%s ", p.Kind, p.Access)
	}
	fmt.Fprintf(&sb, "|%s|%s|%v", kindsKey(m.Shared), kindsKey(m.Scalars), m.Sizes)
	return sb.String()
}

// Launch returns the grid and the parameters, which are the scalars.
func (m *MultiTensor) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := m.check(t); err != nil {
		return groups, nil, err
	}
	s := m.shape(t)
	total := uint64(0)
	for _, n := range m.Sizes {
		total += uint64(ceilDiv(n, s.chunk()))
	}
	groups, err = t.fold(m.what(), total)
	return groups, append(params, m.ScalarBits...), err
}

// Cost returns the bytes that the kernel reads and writes.
func (m *MultiTensor) Cost() float64 {
	bytes := 0
	for _, p := range m.PerTensor {
		if p.Access&ir.Read != 0 {
			bytes += p.Kind.Size()
		}
		if p.Access&ir.Write != 0 {
			bytes += p.Kind.Size()
		}
	}
	total := 0.0
	for _, n := range m.Sizes {
		total += float64(n) * float64(max(bytes, 1))
	}
	return total
}

func (m *MultiTensor) what() string {
	return "multi-tensor kernel " + kernelName(m.Name, "multitensor")
}

func (m *MultiTensor) check(t Target) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", m.what(), fmt.Errorf(format, args...))
	}
	if len(m.PerTensor) == 0 || m.Body == nil {
		return fail("an array per tensor and a body are needed")
	}
	for i, p := range m.PerTensor {
		if err := checkOperand(Operand{Kind: p.Kind}); err != nil {
			return fail("array %d of each tensor: %w", i, err)
		}
		if p.Access&ir.ReadWrite == 0 {
			return fail("array %d of each tensor is neither read nor written", i)
		}
	}
	for i, k := range m.Shared {
		if err := checkOperand(Operand{Kind: k}); err != nil {
			return fail("shared value %d: %w", i, err)
		}
	}
	for i, n := range m.Sizes {
		if n < 0 || n > maxReduceElements {
			return fail("tensor %d has %d elements; at most %d are possible", i, n, maxReduceElements)
		}
	}
	if err := checkScalars(m.Scalars, m.ScalarBits); err != nil {
		return fail("%w", err)
	}
	buffers := len(m.Sizes)*len(m.PerTensor) + len(m.Shared)
	if m.Flag {
		buffers++
	}
	if t.Caps.MaxBuffers > 0 && buffers > t.Caps.MaxBuffers {
		return fail("%d tensors need %d buffers; the device binds %d to one kernel: at most %d tensors at a time",
			len(m.Sizes), buffers, t.Caps.MaxBuffers, MultiTensorMax(t, len(m.PerTensor), len(m.Shared), m.Flag))
	}
	return nil
}

// multiShape is how the work is divided: a workgroup has local*vectors accesses of width elements of one tensor.
type multiShape struct{ width, local, vectors int }

func (s multiShape) chunk() int { return s.width * s.local * s.vectors }

func (m *MultiTensor) shape(t Target) multiShape {
	c := t.config()
	s := multiShape{width: c.width, local: c.local, vectors: 2}
	for _, p := range m.PerTensor {
		if p.Kind.Size() == 8 {
			s.width = min(s.width, 8)
		}
	}
	return s
}

// Build makes the kernel: a range of workgroups for each tensor.
func (m *MultiTensor) Build(t Target) (*ir.Kernel, error) {
	if err := m.check(t); err != nil {
		return nil, err
	}
	e := multiEmitter{MultiTensor: m, s: m.shape(t)}
	k, err := e.build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.what(), err)
	}
	return k, nil
}

type multiEmitter struct {
	*MultiTensor
	s       multiShape
	b       *ir.Builder
	arrays  [][]*ir.Mem // of each tensor
	shared  []ir.Value
	scalars []ir.Value
	flag    *ir.Mem
	raised  ir.Value // variable: this invocation has seen a reason to raise the flag
}

func (e *multiEmitter) build() (*ir.Kernel, error) {
	e.b = ir.NewBuilder(kernelName(e.Name, "multitensor"), e.s.local, 1, 1)
	b := e.b
	b.SetOps(e.Ops...)
	for i := range e.Sizes {
		var arrays []*ir.Mem
		for j, p := range e.PerTensor {
			arrays = append(arrays, b.Buffer(fmt.Sprintf("t%d_%d", i, j), p.Kind, p.Access))
		}
		e.arrays = append(e.arrays, arrays)
	}
	var shared []*ir.Mem
	for i, k := range e.Shared {
		shared = append(shared, b.Buffer(fmt.Sprintf("shared%d", i), k, ir.Read))
	}
	if e.Flag {
		e.flag = b.Buffer("flag", ir.U32, ir.ReadWrite)
	}
	e.scalars = scalarParams(b, e.Scalars)
	for i, k := range e.Shared {
		e.shared = append(e.shared, load(b, shared[i], Operand{Kind: k}, b.U32(0), 1, accessVector, nil))
	}
	if e.Flag {
		e.raised = b.Var(b.Bool(false))
	}
	findTensor(b, groupRanges(e.Sizes, e.s.chunk()), b.LinearGroup(), e.tensor)
	if e.Flag {
		b.If(b.Get(e.raised), func() { b.Atomic(ir.OpAtomicOr, e.flag, b.U32(0), b.U32(1)) }, nil)
	}
	return b.Build()
}

// findTensor finds the tensor of a workgroup by bisection among ranges, the first workgroup of each of which is known.
func findTensor(b *ir.Builder, ranges []groupRange, group ir.Value, f func(tensor int, group ir.Value)) {
	switch len(ranges) {
	case 0:
	case 1:
		// Workgroups that only fill the grid come to the last tensor; they are past its end.
		f(ranges[0].tensor, b.Sub(group, b.U32(uint32(ranges[0].first))))
	default:
		mid := len(ranges) / 2
		b.If(b.Lt(group, b.U32(uint32(ranges[mid].first))),
			func() { findTensor(b, ranges[:mid], group, f) }, func() { findTensor(b, ranges[mid:], group, f) })
	}
}

// groupRange is the workgroups of one tensor, up to the next one's first.
type groupRange struct{ tensor, first int }

// groupRanges gives each tensor that is not empty as many workgroups as it has chunks.
func groupRanges(sizes []int, chunk int) []groupRange {
	var out []groupRange
	first := 0
	for i, n := range sizes {
		if n > 0 {
			out = append(out, groupRange{i, first})
			first += ceilDiv(n, chunk)
		}
	}
	return out
}

// tensor updates the group-th chunk of tensor i.
func (e *multiEmitter) tensor(i int, group ir.Value) {
	b, s := e.b, e.s
	n := e.Sizes[i]
	full := b.U32(uint32(n / s.width))
	first := b.Add(b.Mul(group, b.U32(uint32(s.local*s.vectors))), b.LocalID(0))
	b.Range(b.U32(uint32(s.vectors)), func(v ir.Value) {
		at := b.Add(first, b.Mul(v, b.U32(uint32(s.local))))
		if n >= s.width {
			b.If(b.Lt(at, full), func() { e.elements(i, b.Mul(at, b.U32(uint32(s.width))), s.width) }, nil)
		}
		if n%s.width != 0 {
			b.If(b.Eq(at, full), func() {
				b.For(b.U32(uint32(n/s.width*s.width)), b.U32(uint32(n)), b.U32(1), func(j ir.Value) { e.elements(i, j, 1) })
			}, nil)
		}
	})
}

func (e *multiEmitter) elements(i int, at ir.Value, lanes int) {
	b := e.b
	var vals []ir.Value
	for j, p := range e.PerTensor {
		o := Operand{Kind: p.Kind}
		if p.Access&ir.Read == 0 {
			vals = append(vals, b.Const(ir.Vec(o.ValueKind(), lanes), 0)) // keeps Body's numbering
			continue
		}
		vals = append(vals, load(b, e.arrays[i][j], o, at, lanes, accessVector, nil))
	}
	out, flag := e.Body(b, vals, e.shared, e.scalars)
	k := 0
	for j, p := range e.PerTensor {
		if p.Access&ir.Write == 0 {
			continue
		}
		if k >= len(out) {
			b.Fail(fmt.Errorf("the body returned %d values for more writable arrays", len(out)))
			return
		}
		store(b, e.arrays[i][j], Operand{Kind: p.Kind}, at, out[k], lanes, accessVector, nil)
		k++
	}
	if k != len(out) {
		b.Fail(fmt.Errorf("the body returned %d values for %d writable arrays", len(out), k))
	}
	if !e.Flag {
		return
	}
	raise(b, e.raised, flag)
}
