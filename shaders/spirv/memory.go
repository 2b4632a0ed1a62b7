package spirv

import (
	"math/bits"

	"github.com/anygpu/anygpu/shaders/ir"
)

// memory is how one ir.Mem is declared.
type memory struct {
	vars   map[int]uint32 // variable by lanes of its elements
	class  storageClass
	lanes  int  // Shared and Private: lanes of an element of the array
	stored bool // some instruction writes it
	loaded bool
	widths [maxLanes + 1]bool // lanes of the accesses
}

// declare finds out how each memory is accessed and declares the variables.
func (e *emitter) declare() {
	e.mems = map[*ir.Mem]*memory{}
	e.builtins = map[builtIn]uint32{}
	e.declareTexels()
	barrier := false
	e.k.Walk(func(in *ir.Instr) {
		barrier = barrier || in.Op == ir.OpBarrier
		if in.Mem != nil && e.texelOf(in) == 0 {
			e.note(in)
		}
	})
	for _, m := range e.k.Mems {
		switch d := e.mems[m]; {
		case d == nil: // never accessed: needs no variable, and so no capability
		case m.Space == ir.Global:
			e.declareGlobal(m, d, barrier)
		default:
			e.declareArray(m, d)
		}
	}
}

// note records one access.
func (e *emitter) note(in *ir.Instr) {
	d := e.mems[in.Mem]
	if d == nil {
		d = &memory{vars: map[int]uint32{}}
		e.mems[in.Mem] = d
	}
	lanes := 1
	switch in.Op {
	case ir.OpLoad:
		lanes = in.Type.Lanes
		d.loaded = true
	case ir.OpStore:
		lanes = in.Args[1].Type.Lanes
		d.stored = true
	default:
		d.loaded, d.stored = true, true
	}
	switch {
	case lanes > maxLanes:
		e.fail(in, "%d lanes; SPIR-V vectors have at most %d (lower the kernel with MaxLanes %d)", lanes, maxLanes, maxLanes)
	case in.Mem.Kind == ir.BF16:
		e.fail(in, "bf16 memory does not exist in SPIR-V; lower the kernel")
	default:
		d.widths[lanes] = true
	}
}

func (d *memory) count() (n, widest int) {
	for lanes, used := range d.widths {
		if used {
			n++
			widest = lanes
		}
	}
	return n, widest
}

// declareGlobal declares a storage buffer: a variable for each width that the kernel accesses it with.
func (e *emitter) declareGlobal(m *ir.Mem, d *memory, barrier bool) {
	d.class = classStorageBuffer
	widths, _ := d.count()
	for lanes, used := range d.widths {
		if !used {
			continue
		}
		elem := e.storageType(m.Kind, lanes)
		array, fresh := e.typ(opTypeRuntimeArray, elem)
		if fresh {
			e.decorate(array, decoArrayStride, uint32(m.Kind.Size()*lanes))
		}
		block, fresh := e.typ(opTypeStruct, array)
		if fresh {
			e.decorate(block, decoBlock)
			e.decorateMember(block, 0, decoOffset, 0)
		}
		typ := e.pointer(classStorageBuffer, block)
		v := e.id()
		e.globals = appendInstr(e.globals, opVariable, typ, v, uint32(classStorageBuffer))
		d.vars[lanes] = v
		e.name(v, m.Name)
		e.decorate(v, decoDescriptorSet, 0)
		e.decorate(v, decoBinding, uint32(m.Index))
		if widths > 1 {
			e.decorate(v, decoAliased)
		}
		switch {
		case m.Access == ir.Read:
			e.decorate(v, decoNonWritable)
		case m.Access == ir.Write:
			e.decorate(v, decoNonReadable)
		case barrier && d.loaded && d.stored:
			// Without it a barrier does not make an invocation's writes to the buffer visible to the others.
			e.decorate(v, decoCoherent)
		}
	}
}

// declareArray declares a workgroup or private array. If all accesses have one width that divides the length, its
// elements are vectors; else vector accesses are made of scalar ones.
func (e *emitter) declareArray(m *ir.Mem, d *memory) {
	d.class, d.lanes = classWorkgroup, 1
	if n, widest := d.count(); n == 1 && m.Len%max(widest, 1) == 0 {
		d.lanes = widest
	}
	elem := e.valueType(ir.Vec(m.Kind, d.lanes))
	array, _ := e.typ(opTypeArray, elem, e.u32(uint32(m.Len/d.lanes)))
	v := e.id()
	if m.Space == ir.Private {
		d.class = classFunction
		e.locals = appendInstr(e.locals, opVariable, e.pointer(classFunction, array), v, uint32(classFunction))
	} else {
		e.globals = appendInstr(e.globals, opVariable, e.pointer(classWorkgroup, array), v, uint32(classWorkgroup))
	}
	d.vars[d.lanes] = v
	e.name(v, m.Name)
}

// element returns a pointer to the lanes elements from index on, and the type it points to.
func (e *emitter) element(m *ir.Mem, index ir.Value, lanes int) (ptr, typ uint32) {
	d := e.mems[m]
	return e.at(m, d, e.shifted(index, lanes), lanes)
}

// shifted returns the index of a vector of lanes elements whose first is element index.
func (e *emitter) shifted(index ir.Value, lanes int) uint32 {
	shift := uint64(bits.TrailingZeros(uint(lanes)))
	switch {
	case shift == 0:
		return e.val(index)
	case index.Op == ir.OpConst:
		return e.u32(uint32(index.Imm >> shift))
	}
	return e.result(opShiftRightLogical, e.valueType(index.Type), e.val(index), e.u32(uint32(shift)))
}

// at returns a pointer to element i of the variable whose elements have the given lanes.
func (e *emitter) at(m *ir.Mem, d *memory, i uint32, lanes int) (ptr, typ uint32) {
	if m.Space == ir.Global {
		typ = e.storageType(m.Kind, lanes)
		return e.result(opAccessChain, e.pointer(d.class, typ), d.vars[lanes], e.u32(0), i), typ
	}
	typ = e.valueType(ir.Vec(m.Kind, lanes))
	return e.result(opAccessChain, e.pointer(d.class, typ), d.vars[lanes], i), typ
}

// split reports whether an access to an array is made of scalar accesses.
func (e *emitter) split(m *ir.Mem, lanes int) bool {
	return m.Space != ir.Global && lanes != e.mems[m].lanes
}

// offset returns index + n.
func (e *emitter) offset(index ir.Value, n int) uint32 {
	switch {
	case n == 0:
		return e.val(index)
	case index.Op == ir.OpConst:
		return e.u32(uint32(index.Imm) + uint32(n))
	}
	return e.result(opIAdd, e.valueType(index.Type), e.val(index), e.u32(uint32(n)))
}

func (e *emitter) load(in *ir.Instr) uint32 {
	m, lanes := in.Mem, in.Type.Lanes
	if v := e.texelOf(in); v != 0 {
		return e.fetch(in, v)
	}
	if e.split(m, lanes) {
		parts := make([]uint32, lanes)
		for l := range parts {
			ptr, typ := e.at(m, e.mems[m], e.offset(in.Args[0], l), 1)
			parts[l] = e.fromStorage(m, in.Type, 1, e.result(opLoad, typ, ptr))
		}
		return e.result(opCompositeConstruct, e.valueType(in.Type), parts...)
	}
	ptr, typ := e.element(m, in.Args[0], lanes)
	return e.fromStorage(m, in.Type, lanes, e.result(opLoad, typ, ptr))
}

// fromStorage converts a loaded element to the value type.
func (e *emitter) fromStorage(m *ir.Mem, t ir.Type, lanes int, x uint32) uint32 {
	typ := e.valueType(ir.Vec(t.Kind, lanes))
	switch {
	case m.Kind == ir.F16 && t.Kind == ir.F32:
		return e.result(opFConvert, typ, x)
	case m.Space == ir.Global && (m.Kind == ir.U8 || m.Kind == ir.U16):
		return e.result(opUConvert, typ, x)
	}
	return x
}

func (e *emitter) store(in *ir.Instr) {
	m, value := in.Mem, in.Args[1]
	lanes := value.Type.Lanes
	x := e.val(value)
	if e.split(m, lanes) {
		scalar := e.valueType(ir.Scalar(value.Type.Kind))
		for l := range lanes {
			ptr, typ := e.at(m, e.mems[m], e.offset(in.Args[0], l), 1)
			e.emit(opStore, ptr, e.toStorage(m, value.Type.Kind, typ, e.result(opCompositeExtract, scalar, x, uint32(l))))
		}
		return
	}
	ptr, typ := e.element(m, in.Args[0], lanes)
	e.emit(opStore, ptr, e.toStorage(m, value.Type.Kind, typ, x))
}

// toStorage converts a value to the type that memory m keeps.
func (e *emitter) toStorage(m *ir.Mem, kind ir.Kind, typ, x uint32) uint32 {
	switch {
	case m.Kind == ir.F16 && kind == ir.F32:
		id := e.result(opFConvert, typ, x)
		if m.Space == ir.Global { // legal for the operand of a store to 16-bit storage only
			e.decorate(id, decoFPRoundingMode, roundRTE)
		}
		return id
	case m.Space == ir.Global && (m.Kind == ir.U8 || m.Kind == ir.U16):
		return e.result(opUConvert, typ, x)
	}
	return x
}

var atomicOps = map[ir.Op]byKind{
	ir.OpAtomicAdd: {0, opAtomicIAdd, opAtomicIAdd}, ir.OpAtomicMin: {0, opAtomicSMin, opAtomicUMin}, ir.OpAtomicMax: {0, opAtomicSMax, opAtomicUMax},
	ir.OpAtomicAnd: {0, opAtomicAnd, opAtomicAnd}, ir.OpAtomicOr: {0, opAtomicOr, opAtomicOr}, ir.OpAtomicXchg: {0, opAtomicExchange, opAtomicExchange},
}

// atomic emits an atomic operation. They are relaxed: ir promises order at barriers and launches only.
func (e *emitter) atomic(in *ir.Instr) uint32 {
	m := in.Mem
	scope := uint32(scopeDevice)
	if m.Space == ir.Shared {
		scope = scopeWorkgroup
	}
	ptr, typ := e.element(m, in.Args[0], 1)
	s, relaxed := e.u32(scope), e.u32(semRelaxed)
	if in.Op == ir.OpAtomicCAS {
		return e.result(opAtomicCompareExch, typ, ptr, s, relaxed, relaxed, e.val(in.Args[2]), e.val(in.Args[1]))
	}
	return e.result(atomicOps[in.Op].of(m.Kind), typ, ptr, s, relaxed, e.val(in.Args[1]))
}

// variable declares a variable of the function and assigns its initial value where it stands in the program.
func (e *emitter) variable(in *ir.Instr) uint32 {
	v := e.id()
	e.locals = appendInstr(e.locals, opVariable, e.pointer(classFunction, e.valueType(in.Type)), v, uint32(classFunction))
	e.emit(opStore, v, e.val(in.Args[0]))
	return v
}

// param loads a scalar parameter from the push constants.
func (e *emitter) param(in *ir.Instr) uint32 {
	if e.params == 0 {
		e.declareParams()
	}
	typ := e.valueType(in.Type)
	ptr := e.result(opAccessChain, e.pointer(classPushConstant, typ), e.params, e.u32(uint32(in.Imm)))
	return e.result(opLoad, typ, ptr)
}

func (e *emitter) declareParams() {
	members := make([]uint32, len(e.k.Params))
	for i, p := range e.k.Params {
		members[i] = e.valueType(ir.Scalar(p.Kind))
	}
	// Not shared with another struct type: this one has its own layout decorations.
	block := e.id()
	e.globals = appendInstr(e.globals, opTypeStruct, append([]uint32{block}, members...)...)
	e.decorate(block, decoBlock)
	e.name(block, "params")
	for i, p := range e.k.Params {
		e.decorateMember(block, uint32(i), decoOffset, uint32(4*i))
		e.names = appendInstr(e.names, opMemberName, append([]uint32{block, uint32(i)}, stringWords(p.Name)...)...)
	}
	e.params = e.id()
	e.globals = appendInstr(e.globals, opVariable, e.pointer(classPushConstant, block), e.params, uint32(classPushConstant))
}
