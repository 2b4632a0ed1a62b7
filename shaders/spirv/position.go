package spirv

import "github.com/anygpu/anygpu/shaders/ir"

var builtIns = map[ir.Op]builtIn{ir.OpGlobalID: builtInGlobalInvocationID, ir.OpLocalID: builtInLocalInvocationID,
	ir.OpGroupID: builtInWorkgroupID, ir.OpNumGroups: builtInNumWorkgroups}

// position returns one dimension of an id of the invocation.
//
// Vulkan does not say which local ids are the lanes of a subgroup. In a kernel with exchanges an invocation therefore takes the
// place in its one-dimensional workgroup that its subgroup and its lane there have; whole subgroups of one size make that a permutation.
func (e *emitter) position(in *ir.Instr) uint32 {
	s := e.k.Subgroup
	if s == 0 || in.Imm > 0 || in.Op != ir.OpLocalID && in.Op != ir.OpGlobalID {
		return e.dimension(e.builtin(builtIns[in.Op], 3, in.Op.String()), in.Imm)
	}
	u32 := e.valueType(ir.Scalar(ir.U32))
	e.caps[capGroupNonUniform] = true
	first := e.result(opIMul, u32, e.result(opLoad, u32, e.builtin(builtInSubgroupID, 1, "subgroup_id")), e.u32(uint32(s)))
	place := e.result(opIAdd, u32, first, e.result(opLoad, u32, e.builtin(builtInSubgroupLocalInvocationID, 1, "subgroup_lane")))
	if in.Op == ir.OpLocalID {
		return place
	}
	group := e.dimension(e.builtin(builtInWorkgroupID, 3, ir.OpGroupID.String()), 0)
	return e.result(opIAdd, u32, e.result(opIMul, u32, group, e.u32(uint32(e.k.Local[0]))), place)
}

// dimension loads one dimension of an id.
func (e *emitter) dimension(id uint32, dim uint64) uint32 {
	u32 := e.valueType(ir.Scalar(ir.U32))
	return e.result(opLoad, u32, e.result(opAccessChain, e.pointer(classInput, u32), id, e.u32(uint32(dim))))
}

// builtin returns the variable of a built-in of unsigned words, declared at its first use.
func (e *emitter) builtin(which builtIn, lanes int, name string) uint32 {
	if v, ok := e.builtins[which]; ok {
		return v
	}
	ptr := e.pointer(classInput, e.vector(e.valueType(ir.Scalar(ir.U32)), lanes))
	v := e.id()
	e.globals = appendInstr(e.globals, opVariable, ptr, v, uint32(classInput))
	e.decorate(v, decoBuiltIn, uint32(which))
	e.name(v, name)
	e.inputs = append(e.inputs, v)
	e.builtins[which] = v
	return v
}

// exchange reads a value from another invocation of the subgroup.
func (e *emitter) exchange(in *ir.Instr) uint32 {
	e.caps[capGroupNonUniform], e.caps[capGroupNonUniformShuffle] = true, true
	return e.result(opGroupNonUniformShuffleXor, e.valueType(in.Type), e.u32(scopeSubgroup), e.val(in.Args[0]), e.u32(uint32(in.Imm)))
}
