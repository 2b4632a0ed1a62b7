package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Packed is a [MultiTensor] for any number of tensors. Tensors are pieces of a few large allocations, which are bound as a whole
// (windows), and a table says for each workgroup where its elements are. So the number of kernels does not depend on the number of
// tensors, and neither does the kernel's code. Buffers: the windows of array 0, those of array 1, …, the table, then Shared, then the flag.
//
// The table has a row of U32 for each of Chunks workgroups: the number of elements, at most [Packed.Chunk], and for each array its window
// and the first element there, a multiple of 16.
type Packed struct {
	*MultiTensor       // of which Sizes does not count
	Windows      []int // how many windows each array has
	Chunks       int
}

// Chunk is how many elements a workgroup has at most.
func (p *Packed) Chunk(t Target) int { return p.shape(t).chunk() }

// packedRow is the number of words in a row of the table.
func packedRow(arrays int) int { return 1 + 2*arrays }

// Key identifies the kernel.
func (p *Packed) Key() string {
	m := *p.MultiTensor
	m.Sizes = nil
	return fmt.Sprintf("packed|%v|%s", p.Windows, m.Key())
}

// Launch returns the grid and the parameters: the number of chunks and the scalars.
func (p *Packed) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := p.check(t); err != nil {
		return groups, nil, err
	}
	groups, err = t.fold(p.what(), uint64(p.Chunks))
	return groups, append([]uint32{uint32(p.Chunks)}, p.ScalarBits...), err
}

func (p *Packed) check(t Target) error {
	m := *p.MultiTensor
	m.Sizes = nil
	if err := m.check(t); err != nil {
		return err
	}
	if len(p.Windows) != len(p.PerTensor) {
		return fmt.Errorf("%s: %d numbers of windows for %d arrays", p.what(), len(p.Windows), len(p.PerTensor))
	}
	buffers := 1 + len(p.Shared)
	for _, n := range p.Windows {
		if n < 1 {
			return fmt.Errorf("%s: an array without windows", p.what())
		}
		buffers += n
	}
	if p.Flag {
		buffers++
	}
	return t.checkBuffers(p.what(), buffers)
}

// Build makes the kernel.
func (p *Packed) Build(t Target) (*ir.Kernel, error) {
	if err := p.check(t); err != nil {
		return nil, err
	}
	e := packedEmitter{Packed: p, s: p.shape(t)}
	k, err := e.build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.what(), err)
	}
	return k, nil
}

type packedEmitter struct {
	*Packed
	s       multiShape
	b       *ir.Builder
	windows [][]*ir.Mem
	at      []ir.Value // of each array: window and first element of the workgroup
	shared  []ir.Value
	scalars []ir.Value
	raised  ir.Value
}

func (e *packedEmitter) build() (*ir.Kernel, error) {
	e.b = ir.NewBuilder(kernelName(e.Name, "packed"), e.s.local, 1, 1)
	b := e.b
	b.SetOps(e.Ops...)
	for j, a := range e.PerTensor {
		e.windows = append(e.windows, packedWindows(b, j, e.Windows[j], a))
	}
	table := b.Buffer("table", ir.U32, ir.Read)
	var shared []*ir.Mem
	for i, k := range e.Shared {
		shared = append(shared, b.Buffer(fmt.Sprintf("shared%d", i), k, ir.Read))
	}
	var flag *ir.Mem
	if e.Flag {
		flag = b.Buffer("flag", ir.U32, ir.ReadWrite)
		e.raised = b.Var(b.Bool(false))
	}
	chunks := b.Param("chunks", ir.U32)
	e.scalars = scalarParams(b, e.Scalars)
	for i, k := range e.Shared {
		e.shared = append(e.shared, load(b, shared[i], Operand{Kind: k}, b.U32(0), 1, accessVector, nil))
	}
	group := b.LinearGroup()
	b.If(b.Lt(group, chunks), func() {
		row := b.Mul(group, b.U32(uint32(packedRow(len(e.PerTensor)))))
		word := func(i int) ir.Value { return b.Load(table, b.Add(row, b.U32(uint32(i))), 1) }
		n := word(0)
		for i := range 2 * len(e.PerTensor) {
			e.at = append(e.at, word(1+i))
		}
		full := b.Div(n, b.U32(uint32(e.s.width)))
		b.Range(b.U32(uint32(e.s.vectors)), func(v ir.Value) {
			at := b.Add(b.Mul(v, b.U32(uint32(e.s.local))), b.LocalID(0))
			b.If(b.Lt(at, full), func() { e.elements(b.Mul(at, b.U32(uint32(e.s.width))), e.s.width) }, nil)
			b.If(b.Eq(at, full), func() {
				b.For(b.Mul(full, b.U32(uint32(e.s.width))), n, b.U32(1), func(j ir.Value) { e.elements(j, 1) })
			}, nil)
		})
	}, nil)
	if e.Flag {
		b.If(b.Get(e.raised), func() { b.Atomic(ir.OpAtomicOr, flag, b.U32(0), b.U32(1)) }, nil)
	}
	return b.Build()
}

func packedWindows(b *ir.Builder, array, n int, a TensorBuffer) []*ir.Mem {
	var out []*ir.Mem
	for w := range n {
		out = append(out, b.Buffer(fmt.Sprintf("a%d_%d", array, w), a.Kind, a.Access))
	}
	return out
}

// inWindow calls f with the window of a workgroup's array.
func inWindow(b *ir.Builder, windows []*ir.Mem, number ir.Value, f func(m *ir.Mem)) {
	if len(windows) == 1 {
		f(windows[0])
		return
	}
	for w, m := range windows {
		b.If(b.Eq(number, b.U32(uint32(w))), func() { f(m) }, nil)
	}
}

// packedLoad reads lanes elements of a workgroup's array.
func packedLoad(b *ir.Builder, windows []*ir.Mem, number, index ir.Value, o Operand, lanes int) ir.Value {
	if len(windows) == 1 {
		return load(b, windows[0], o, index, lanes, accessVector, nil)
	}
	v := b.Var(b.Const(ir.Vec(o.ValueKind(), lanes), 0))
	inWindow(b, windows, number, func(m *ir.Mem) { b.Set(v, load(b, m, o, index, lanes, accessVector, nil)) })
	return b.Get(v)
}

// elements updates lanes elements from element at of the workgroup on.
func (e *packedEmitter) elements(at ir.Value, lanes int) {
	b := e.b
	place := func(j int) (window, index ir.Value) { return e.at[2*j], b.Add(e.at[2*j+1], at) }
	var vals []ir.Value
	for j, a := range e.PerTensor {
		o := Operand{Kind: a.Kind}
		if a.Access&ir.Read == 0 {
			vals = append(vals, b.Const(ir.Vec(o.ValueKind(), lanes), 0))
			continue
		}
		window, index := place(j)
		vals = append(vals, packedLoad(b, e.windows[j], window, index, o, lanes))
	}
	out, flag := e.Body(b, vals, e.shared, e.scalars)
	k := 0
	for j, a := range e.PerTensor {
		if a.Access&ir.Write == 0 {
			continue
		}
		if k >= len(out) {
			b.Fail(fmt.Errorf("the body returned %d values for more writable arrays", len(out)))
			return
		}
		window, index := place(j)
		v := out[k]
		inWindow(b, e.windows[j], window, func(m *ir.Mem) { store(b, m, Operand{Kind: a.Kind}, index, v, lanes, accessVector, nil) })
		k++
	}
	if k != len(out) {
		b.Fail(fmt.Errorf("the body returned %d values for %d writable arrays", len(out), k))
	}
	if e.Flag {
		raise(b, e.raised, flag)
	}
}

// raise joins a body's flag, of any number of lanes, to the invocation's.
func raise(b *ir.Builder, raised, flag ir.Value) {
	if flag == nil || flag.Type.Kind != ir.Bool {
		b.Fail(fmt.Errorf("the body returned no truth value for the flag"))
		return
	}
	any := b.Extract(flag, 0)
	for l := 1; l < flag.Type.Lanes; l++ {
		any = b.Or(any, b.Extract(flag, l))
	}
	b.Set(raised, b.Or(b.Get(raised), any))
}

// PackedNorm is a [MultiNorm] for any number of tensors, as [Packed] is a MultiTensor. Buffers: the windows, the table, the partial results.
type PackedNorm struct {
	*MultiNorm     // of which Sizes does not count
	Windows    int // of the tensors
	Chunks     int
}

// Chunk is how many elements a workgroup has at most.
func (p *PackedNorm) Chunk(t Target) int { return p.chunk(t) }

// Partials returns how many partial results the kernel writes.
func (p *PackedNorm) Partials(t Target) int {
	if t.config().tree {
		return p.Chunks
	}
	return p.Chunks * t.config().local
}

// Key identifies the kernel.
func (p *PackedNorm) Key() string {
	return fmt.Sprintf("packednorm|%s|%s|%v|%d", p.Order, p.Kind, p.Double, p.Windows)
}

// Launch returns the grid and the parameters.
func (p *PackedNorm) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := t.checkBuffers(p.what(), p.Windows+2); err != nil {
		return groups, nil, err
	}
	groups, err = t.fold(p.what(), uint64(p.Chunks))
	return groups, append(p.normParams(p.Partials(t)), uint32(p.Chunks)), err
}

// Build makes the kernel.
func (p *PackedNorm) Build(t Target) (*ir.Kernel, error) {
	if err := t.checkBuffers(p.what(), p.Windows+2); err != nil {
		return nil, err
	}
	local := t.config().local
	b := ir.NewBuilder(kernelName(p.Name, "packednorm"), local, 1, 1)
	b.SetOps(p.Ops...)
	windows := packedWindows(b, 0, p.Windows, TensorBuffer{p.Kind, ir.Read})
	table := b.Buffer("table", ir.U32, ir.Read)
	first, end, power := normDeclare(b, p.Order)
	out := normOut{out: b.Buffer("out", p.kind(), ir.Write), first: first, end: end, power: power, group: b.LinearGroup(), lid: b.LocalID(0), t: t}
	chunks := b.Param("chunks", ir.U32)
	// Workgroups that only fill the grid repeat the last chunk; their results are past the end.
	row := b.Mul(b.Min(out.group, b.Sub(chunks, b.U32(1))), b.U32(uint32(packedRow(1))))
	word := func(i uint32) ir.Value { return b.Load(table, b.Add(row, b.U32(i)), 1) }
	n, window, from := word(0), word(1), word(2)
	p.reduce(b, local, out, func(offset, x ir.Value) {
		b.If(b.Lt(offset, n), func() {
			b.Set(x, b.Convert(packedLoad(b, windows, window, b.Add(from, offset), Operand{Kind: p.Kind}, 1), p.kind()))
		}, nil)
	})
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.what(), err)
	}
	return k, nil
}
