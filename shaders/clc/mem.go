package clc

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// addressSpace returns the qualifier of pointers to m.
func addressSpace(m *ir.Mem) string {
	return [...]string{"__global ", "__local ", "__private "}[m.Space]
}

// halfPtr returns a pointer to half for the conversion functions; arrays may be declared as ushort.
func (e *emitter) halfPtr(m *ir.Mem) string {
	if m.Space == ir.Global {
		return memName(m)
	}
	return fmt.Sprintf("(%shalf*)%s", addressSpace(m), memName(m))
}

// place returns the lvalue of lanes elements of m from index on.
func place(m *ir.Mem, index string, lanes int) string {
	if lanes == 1 {
		return fmt.Sprintf("%s[%s]", memName(m), index)
	}
	return fmt.Sprintf("*(%s%s%s*)(%s + %s)", constOf(m), addressSpace(m), typeName(ir.Vec(m.Kind, lanes)), memName(m), index)
}

func (e *emitter) load(in *ir.Instr) string {
	m, index, lanes := in.Mem, ref(in.Args[0]), in.Type.Lanes
	if in.Type.Kind == m.Kind {
		return place(m, index, lanes)
	}
	if m.Kind != ir.F16 || in.Type.Kind != ir.F32 {
		e.fail(in, "load of %s from memory of %s", in.Type, m.Kind)
		return ""
	}
	if lanes == 1 {
		return fmt.Sprintf("vload_half(%s, %s)", index, e.halfPtr(m))
	}
	return fmt.Sprintf("vloada_half%d(0, %s + %s)", lanes, e.halfPtr(m), index)
}

func (e *emitter) store(in *ir.Instr) {
	m, index, x := in.Mem, ref(in.Args[0]), in.Args[1]
	if x.Type.Kind == m.Kind {
		e.line("%s = %s;", place(m, index, x.Type.Lanes), ref(x))
		return
	}
	if m.Kind != ir.F16 || x.Type.Kind != ir.F32 {
		e.fail(in, "store of %s to memory of %s", x.Type, m.Kind)
		return
	}
	if x.Type.Lanes == 1 {
		e.line("vstore_half_rte(%s, %s, %s);", ref(x), index, e.halfPtr(m))
		return
	}
	e.line("vstorea_half%d_rte(%s, 0, %s + %s);", x.Type.Lanes, ref(x), e.halfPtr(m), index)
}

var atomics = map[ir.Op]string{
	ir.OpAtomicAdd: "atomic_add", ir.OpAtomicMin: "atomic_min", ir.OpAtomicMax: "atomic_max", ir.OpAtomicAnd: "atomic_and",
	ir.OpAtomicOr: "atomic_or", ir.OpAtomicXchg: "atomic_xchg", ir.OpAtomicCAS: "atomic_cmpxchg",
}

func (e *emitter) atomic(in *ir.Instr) string {
	m := in.Mem
	if m.Space == ir.Private || m.Kind != ir.U32 && m.Kind != ir.I32 {
		e.fail(in, "atomics work on u32 and i32 in global or shared memory, not on %s of %s", m.Space, m.Kind)
		return ""
	}
	s := fmt.Sprintf("%s(%s + %s", atomics[in.Op], memName(m), ref(in.Args[0]))
	for _, v := range in.Args[1:] {
		s += ", " + ref(v)
	}
	return s + ")"
}
