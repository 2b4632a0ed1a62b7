package spirv

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// maxLanes is the widest vector of SPIR-V without the Kernel capability.
const maxLanes = 4

// Emit turns a lowered kernel into a module of SPIR-V words. The kernel is verified first. The error names the kernel
// and the instruction, and what ir.Lower should have replaced.
func Emit(k *ir.Kernel, opt Options) ([]uint32, error) {
	if err := ir.Verify(k); err != nil {
		return nil, err
	}
	e := &emitter{module: newModule(), k: k, opt: opt, ids: make([]uint32, k.NumInstr)}
	e.label = e.entry
	e.declare()
	e.block(k.Body)
	if e.err != nil {
		return nil, fmt.Errorf("spirv: kernel %s: %w", k.Name, e.err)
	}
	return e.finish(k.Name, k.Local, opt), nil
}

// emitter walks a kernel and appends to a module.
type emitter struct {
	*module
	k   *ir.Kernel
	opt Options
	ids []uint32 // value of each instruction by ID; 0 if not emitted
	err error

	label    uint32 // of the block that code is appended to
	mems     map[*ir.Mem]*memory
	texels   map[Texel]uint32   // variables
	params   uint32             // the push-constant block
	builtins map[builtIn]uint32 // variables of the invocation's ids
}

func (e *emitter) fail(in *ir.Instr, format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: %s", in, fmt.Sprintf(format, args...))
	}
}

// emit appends an instruction without a result.
func (e *emitter) emit(op opcode, operands ...uint32) {
	e.code = appendInstr(e.code, op, operands...)
}

// result appends an instruction with a result of type typ and returns its id.
func (e *emitter) result(op opcode, typ uint32, operands ...uint32) uint32 {
	id := e.id()
	e.code = append(e.code, uint32(len(operands)+3)<<16|uint32(op), typ, id)
	e.code = append(e.code, operands...)
	return id
}

// extended appends an instruction of GLSL.std.450.
func (e *emitter) extended(g glsl, typ uint32, operands ...uint32) uint32 {
	return e.result(opExtInst, typ, append([]uint32{e.glslSet(), uint32(g)}, operands...)...)
}

// val returns the id of a value. Constants are declared where they are first used.
func (e *emitter) val(v ir.Value) uint32 {
	switch {
	case v.Op == ir.OpConst:
		return e.constBits(v.Type, v.Imm)
	case v.Op == ir.OpSplat && v.Args[0].Op == ir.OpConst:
		return e.constBits(v.Type, v.Args[0].Imm)
	}
	id := e.ids[v.ID]
	if id == 0 {
		e.fail(v, "used before it is computed")
	}
	return id
}

func (e *emitter) block(b *ir.Block) {
	for _, in := range b.Instrs {
		if e.err != nil {
			return
		}
		e.instr(in)
	}
}

func (e *emitter) instr(in *ir.Instr) {
	if in.Type.Lanes > maxLanes {
		e.fail(in, "%d lanes; SPIR-V vectors have at most %d (lower the kernel with MaxLanes %d)", in.Type.Lanes, maxLanes, maxLanes)
		return
	}
	if in.Type.Kind == ir.BF16 {
		e.fail(in, "bf16 values do not exist in SPIR-V; lower the kernel")
		return
	}
	var id uint32
	switch in.Op {
	case ir.OpConst, ir.OpLoopVar:
		return // declared at use; the loop's header made it
	case ir.OpIf:
		e.branch(in)
	case ir.OpFor:
		e.loop(in)
	case ir.OpBarrier:
		scope := e.u32(scopeWorkgroup)
		e.emit(opControlBarrier, scope, scope, e.u32(semBarrier))
	case ir.OpParam:
		id = e.param(in)
	case ir.OpGlobalID, ir.OpLocalID, ir.OpGroupID, ir.OpNumGroups:
		id = e.position(in)
	case ir.OpShuffleXor:
		id = e.exchange(in)
	case ir.OpVar:
		id = e.variable(in)
	case ir.OpGet:
		id = e.result(opLoad, e.valueType(in.Type), e.val(in.Args[0]))
	case ir.OpSet:
		e.emit(opStore, e.val(in.Args[0]), e.val(in.Args[1]))
	case ir.OpLoad:
		id = e.load(in)
	case ir.OpStore:
		e.store(in)
	case ir.OpSplat, ir.OpExtract, ir.OpVec, ir.OpSelect, ir.OpConvert, ir.OpBitCast:
		id = e.move(in)
	default:
		switch {
		case in.Op.IsAtomic():
			id = e.atomic(in)
		case in.Op.IsCompare():
			id = e.compare(in)
		case in.Op.IsMath():
			id = e.math(in)
		case in.Op.IsArith() || in.Op.IsBits():
			id = e.arith(in)
		default:
			e.fail(in, "no SPIR-V for this operation")
		}
	}
	if id != 0 {
		e.ids[in.ID] = id
		e.name(id, in.Name)
	}
}

// startBlock begins the block with a label handed out before.
func (e *emitter) startBlock(label uint32) {
	e.emit(opLabel, label)
	e.label = label
}

func (e *emitter) branch(in *ir.Instr) {
	cond := e.val(in.Args[0])
	then, merge := e.id(), e.id()
	els := merge
	if len(in.Blocks[1].Instrs) > 0 {
		els = e.id()
	}
	e.emit(opSelectionMerge, merge, 0)
	e.emit(opBranchConditional, cond, then, els)
	e.startBlock(then)
	e.block(in.Blocks[0])
	e.emit(opBranch, merge)
	if els != merge {
		e.startBlock(els)
		e.block(in.Blocks[1])
		e.emit(opBranch, merge)
	}
	e.startBlock(merge)
}

// loop emits the header (counter and test), the body, and the continue block that steps the counter.
func (e *emitter) loop(in *ir.Instr) {
	lo, hi, step := e.val(in.Args[0]), e.val(in.Args[1]), e.val(in.Args[2])
	typ := e.valueType(in.Args[0].Type)
	header, body, cont, merge, next := e.id(), e.id(), e.id(), e.id(), e.id()
	before := e.label
	e.emit(opBranch, header)
	e.startBlock(header)
	counter := e.result(opPhi, typ, lo, before, next, cont)
	less := opULessThan
	if in.Args[0].Type.Kind.IsSigned() {
		less = opSLessThan
	}
	more := e.result(less, e.valueType(ir.Scalar(ir.Bool)), counter, hi)
	e.emit(opLoopMerge, merge, cont, 0)
	e.emit(opBranchConditional, more, body, merge)
	e.startBlock(body)
	if v := in.Blocks[0].Instrs; len(v) > 0 && v[0].Op == ir.OpLoopVar {
		e.ids[v[0].ID] = counter
		e.name(counter, v[0].Name)
	}
	e.block(in.Blocks[0])
	e.emit(opBranch, cont)
	e.startBlock(cont)
	e.emit(opIAdd, typ, next, counter, step)
	e.emit(opBranch, header)
	e.startBlock(merge)
}
