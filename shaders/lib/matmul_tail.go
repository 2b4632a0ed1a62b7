package lib

import (
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// TakesTail reports whether the kernel on a target can compute more than the product; see [MatMul.Tail].
func (s *MatMul) TakesTail(t Target) bool {
	if s.AccKind() != ir.F32 || s.Epilogue != nil || s.Out != ir.F32 && s.Out != ir.F16 && s.Out != ir.BF16 || s.M < 1 || s.N < 1 || s.Batch < 1 {
		return false
	}
	stages, _ := s.Stages(t)
	return len(stages) == 0
}

// tailKey identifies the tail.
func (s *MatMul) tailKey() string {
	if s.Tail == nil {
		return ""
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "|tail %s %s ", s.Tail.BodyKey, kindsKey(s.Tail.Scalars))
	for _, o := range s.Tail.In {
		sb.WriteString("i" + operandKey(o))
	}
	for _, o := range s.Tail.Out {
		sb.WriteString("o" + operandKey(o))
	}
	return sb.String()
}

// Flat returns the tail for n elements in a row, as a kernel of its own whose input 0 is the product as F32 in memory: native programs run it on
// parts of the result. What Launch says of it depends on n alone.
func (s *MatMul) Flat(n int) *Elementwise {
	e := *s.Tail
	e.Name, e.Shape = "matmul_tail", []int{n}
	e.In, e.Out = append([]Operand{}, e.In...), append([]Operand{}, e.Out...)
	for _, os := range [][]Operand{e.In, e.Out} {
		for i := range os {
			os[i].Strides, os[i].Offset = nil, 0
		}
	}
	e.In[0] = Operand{Kind: ir.F32}
	return &e
}

// matMulTail is the tail in a kernel.
type matMulTail struct {
	in, out []*ir.Mem // without the product
	scalars []ir.Value
}

// declareTail declares the tail's buffers.
func (e *matMulEmitter) declareTail() {
	for i, o := range e.s.Tail.In[1:] {
		e.tail.in = append(e.tail.in, e.b.Buffer(fmt.Sprintf("in%d", i+1), o.Kind, ir.Read))
	}
	for i, o := range e.s.Tail.Out {
		e.tail.out = append(e.tail.out, e.b.Buffer(fmt.Sprintf("out%d", i), o.Kind, ir.Write))
	}
}

// storeTail computes and writes what the tail makes of neighbours of a row. With whole they are all inside, and aligned.
func (e *matMulEmitter) storeTail(v, at, column ir.Value, whole bool) {
	b, t, lanes := e.b, e.s.Tail, v.Type.Lanes
	args := []ir.Value{v}
	last := b.Sub(e.n, b.U32(1))
	for i, o := range t.In[1:] {
		if whole {
			args = append(args, load(b, e.tail.in[i], o, b.Add(at, column), lanes, accessVector, nil))
			continue
		}
		parts := make([]ir.Value, lanes)
		for l := range parts {
			parts[l] = load(b, e.tail.in[i], o, b.Add(at, b.Min(advance(b, column, l, nil), last)), 1, accessVector, nil)
		}
		args = append(args, b.Vec(parts...))
	}
	out := t.Body(b, args, e.tail.scalars)
	if len(out) != len(t.Out) {
		b.Fail(fmt.Errorf("the tail returned %d values for %d outputs", len(out), len(t.Out)))
		return
	}
	for i, o := range t.Out {
		if whole || lanes == 1 {
			store(b, e.tail.out[i], o, b.Add(at, column), out[i], lanes, accessVector, nil)
			continue
		}
		x := b.Splat(out[i], lanes)
		for l := range lanes {
			c := advance(b, column, l, nil)
			b.If(b.Lt(c, e.n), func() { store(b, e.tail.out[i], o, b.Add(at, c), b.Extract(x, l), 1, accessVector, nil) }, nil)
		}
	}
}
