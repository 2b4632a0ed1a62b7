package ir

import (
	"fmt"
)

// Builder makes a kernel. Its methods append an instruction at the current place and return its value. The first
// mistake sticks: later calls go on with placeholder values and Build returns the error.
type Builder struct {
	k   *Kernel
	cur *Block
	err error
}

// NewBuilder starts a kernel with a workgroup size of x by y by z invocations.
func NewBuilder(name string, x, y, z int) *Builder {
	body := &Block{}
	b := &Builder{k: &Kernel{Name: name, Local: [3]int{x, y, z}, Body: body}, cur: body}
	if x < 1 || y < 1 || z < 1 {
		b.fail("workgroup size %dx%dx%d: each dimension must be at least 1", x, y, z)
	}
	return b
}

// Build verifies the kernel and returns it.
func (b *Builder) Build() (*Kernel, error) {
	if b.err != nil {
		return nil, fmt.Errorf("ir: kernel %s: %w", b.k.Name, b.err)
	}
	if err := Verify(b.k); err != nil {
		return nil, err
	}
	return b.k, nil
}

// Err returns the first mistake so far.
func (b *Builder) Err() error { return b.err }

// Fail records a mistake found by the caller, such as a kernel generator given a configuration it cannot serve.
func (b *Builder) Fail(err error) {
	if b.err == nil && err != nil {
		b.err = err
	}
}

// SetOps records the names of the operators that the kernel computes.
func (b *Builder) SetOps(names ...string) { b.k.Ops = append([]string(nil), names...) }

// SetSubgroup declares that each n invocations of neighbouring local ids, from a multiple of n on, are a subgroup and may exchange values
// ([Builder.ShuffleXor]). n is a power of two, the workgroup one-dimensional and a multiple of it. The device must have subgroups of that size.
func (b *Builder) SetSubgroup(n int) { b.k.Subgroup = n }

// SetTemplate records what the kernel computes as a whole (see Kernel.Template).
func (b *Builder) SetTemplate(t any) { b.k.Template = t }

// Local returns the workgroup size.
func (b *Builder) Local() [3]int { return b.k.Local }

func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// Emit appends an instruction as it is. It is for passes that copy kernels; kernels use the typed methods.
func (b *Builder) Emit(op Op, t Type, imm uint64, mem *Mem, args ...Value) Value {
	in := &Instr{Op: op, Type: t, ID: b.k.NumInstr, Imm: imm, Mem: mem, Args: args}
	b.k.NumInstr++
	for i, a := range args {
		if a == nil {
			b.fail("%s: operand %d is nil", op, i)
			in.Args[i] = b.placeholder(t)
		}
	}
	b.cur.Instrs = append(b.cur.Instrs, in)
	return in
}

func (b *Builder) placeholder(t Type) Value {
	if t.Kind == Void {
		t = Scalar(U32)
	}
	in := &Instr{Op: OpConst, Type: t, ID: b.k.NumInstr}
	b.k.NumInstr++
	b.cur.Instrs = append(b.cur.Instrs, in)
	return in
}

// Named gives v a name for people and returns it.
func (b *Builder) Named(v Value, name string) Value {
	if v != nil && v.Name == "" {
		v.Name = name
	}
	return v
}

// --- declarations ---

// Buffer declares a global buffer of scalars of kind kind; bindings are numbered in order of declaration.
func (b *Builder) Buffer(name string, kind Kind, access Access) *Mem {
	if kind.Size() == 0 {
		b.fail("buffer %s: %s has no memory form (Bool is kept as U8)", name, kind)
	}
	if access&ReadWrite == 0 {
		b.fail("buffer %s: no access given", name)
	}
	return b.mem(&Mem{Name: name, Space: Global, Kind: kind, Access: access})
}

// SharedArray declares n scalars of workgroup memory.
func (b *Builder) SharedArray(name string, kind Kind, n int) *Mem {
	return b.array(&Mem{Name: name, Space: Shared, Kind: kind, Len: n})
}

// PrivateArray declares n scalars that each invocation has for itself.
func (b *Builder) PrivateArray(name string, kind Kind, n int) *Mem {
	return b.array(&Mem{Name: name, Space: Private, Kind: kind, Len: n})
}

func (b *Builder) array(m *Mem) *Mem {
	if !m.Kind.IsArith() || m.Len < 1 {
		b.fail("%s array %s: needs an arithmetic kind and at least one element, got %s[%d]", m.Space, m.Name, m.Kind, m.Len)
	}
	return b.mem(m)
}

func (b *Builder) mem(m *Mem) *Mem {
	for _, o := range b.k.Mems {
		if o.Space == m.Space {
			m.Index++
		}
		if o.Name == m.Name {
			b.fail("memory %s is declared twice", m.Name)
		}
	}
	b.k.Mems = append(b.k.Mems, m)
	return m
}

// Param declares the next scalar parameter (I32, U32 or F32) and returns its value.
func (b *Builder) Param(name string, kind Kind) Value {
	if kind != I32 && kind != U32 && kind != F32 {
		b.fail("parameter %s: kind must be i32, u32 or f32, got %s", name, kind)
		kind = U32
	}
	if len(b.k.Params) >= MaxParams {
		b.fail("parameter %s: a kernel has at most %d parameters", name, MaxParams)
	}
	b.k.Params = append(b.k.Params, Param{name, kind})
	return b.Named(b.Emit(OpParam, Scalar(kind), uint64(len(b.k.Params)-1), nil), name)
}

// --- leaves ---

// Const returns a constant of type t, the same in every lane (rounded or truncated to the kind).
func (b *Builder) Const(t Type, v float64) Value { return b.ConstBits(t, ConstBits(t.Kind, v)) }

// ConstBits returns a constant of type t from its bits.
func (b *Builder) ConstBits(t Type, bits uint64) Value {
	if t.Kind == Void || !ValidLanes(t.Lanes) {
		b.fail("constant of invalid type %s", t)
		t = Scalar(U32)
	}
	return b.Emit(OpConst, t, bits, nil)
}

// ConstLike returns a constant of x's type.
func (b *Builder) ConstLike(x Value, v float64) Value {
	if x == nil {
		b.fail("const: operand is nil")
		return b.placeholder(Scalar(F32))
	}
	return b.Const(x.Type, v)
}

// U32, I32, F32 and Bool return scalar constants.
func (b *Builder) U32(v uint32) Value  { return b.ConstBits(Scalar(U32), uint64(v)) }
func (b *Builder) I32(v int32) Value   { return b.ConstBits(Scalar(I32), uint64(uint32(v))) }
func (b *Builder) F32(v float64) Value { return b.Const(Scalar(F32), v) }
func (b *Builder) Bool(v bool) Value {
	if v {
		return b.ConstBits(Scalar(Bool), 1)
	}
	return b.ConstBits(Scalar(Bool), 0)
}

// GlobalID returns the invocation's position in the whole grid in dimension dim (0 to 2).
func (b *Builder) GlobalID(dim int) Value { return b.idOp(OpGlobalID, dim) }

// LocalID returns the invocation's position in its workgroup.
func (b *Builder) LocalID(dim int) Value { return b.idOp(OpLocalID, dim) }

// GroupID returns the workgroup's position in the grid.
func (b *Builder) GroupID(dim int) Value { return b.idOp(OpGroupID, dim) }

// NumGroups returns the number of workgroups launched.
func (b *Builder) NumGroups(dim int) Value { return b.idOp(OpNumGroups, dim) }

func (b *Builder) idOp(op Op, dim int) Value {
	if dim < 0 || dim > 2 {
		b.fail("%s: dimension %d is not 0, 1 or 2", op, dim)
		dim = 0
	}
	return b.Emit(op, Scalar(U32), uint64(dim), nil)
}

// LinearGroup returns GroupID(0) + GroupID(1)*NumGroups(0): the number of the workgroup in a grid made by [FoldGroups].
// The grid may have more groups than the work; kernels guard against it.
func (b *Builder) LinearGroup() Value {
	return b.Add(b.GroupID(0), b.Mul(b.GroupID(1), b.NumGroups(0)))
}

// LinearID returns LinearGroup*workgroup size + LocalID for a one-dimensional workgroup.
func (b *Builder) LinearID() Value {
	if b.k.Local[1] != 1 || b.k.Local[2] != 1 {
		b.fail("linear id: the workgroup is %v, not one-dimensional", b.k.Local)
	}
	return b.Add(b.Mul(b.LinearGroup(), b.U32(uint32(b.k.Local[0]))), b.LocalID(0))
}

// FoldGroups returns a grid of at least n workgroups that a device allows: n in the first dimension, or folded into
// the second where n is over the device's limit. Kernels find their number with [Builder.LinearGroup].
func FoldGroups(n int, max [3]int) ([3]int, error) {
	if n <= 0 {
		return [3]int{0, 1, 1}, nil
	}
	if max[0] <= 0 || n <= max[0] {
		return [3]int{n, 1, 1}, nil
	}
	y := (n + max[0] - 1) / max[0]
	if max[1] > 0 && y > max[1] {
		return [3]int{}, fmt.Errorf("%d workgroups are more than the device's limit of %d x %d", n, max[0], max[1])
	}
	return [3]int{(n + y - 1) / y, y, 1}, nil
}

// --- state and memory ---

// Var declares a mutable variable with an initial value. Read it with Get and write it with Set.
func (b *Builder) Var(init Value) Value {
	if init == nil {
		b.fail("var: no initial value")
		init = b.placeholder(Scalar(F32))
	}
	return b.Emit(OpVar, init.Type, 0, nil, init)
}

// Get returns the current value of variable v.
func (b *Builder) Get(v Value) Value {
	if v == nil || v.Op != OpVar {
		b.fail("get: operand is no variable")
		return b.placeholder(Scalar(F32))
	}
	return b.Emit(OpGet, v.Type, 0, nil, v)
}

// Set assigns x to variable v.
func (b *Builder) Set(v, x Value) {
	if v == nil || v.Op != OpVar || x == nil {
		b.fail("set: operand is no variable, or no value")
		return
	}
	if x.Type.Kind == v.Type.Kind && x.Type.Lanes == 1 {
		x = b.Splat(x, v.Type.Lanes)
	}
	if x.Type != v.Type {
		b.fail("set: value of type %s to variable of type %s", x.Type, v.Type)
	}
	b.Emit(OpSet, Type{}, 0, nil, v, x)
}

// Load reads lanes consecutive elements of m, from element index on (U32, a multiple of lanes).
func (b *Builder) Load(m *Mem, index Value, lanes int) Value {
	if m == nil || index == nil || index.Type != Scalar(U32) || !ValidLanes(lanes) {
		b.fail("load: needs memory, a u32 scalar index and 1, 2, 4, 8 or 16 lanes")
		return b.placeholder(Scalar(F32))
	}
	if m.Space == Global && m.Access&Read == 0 {
		b.fail("load: buffer %s was declared without read access", m.Name)
	}
	return b.Emit(OpLoad, Vec(m.Kind, lanes), 0, m, index)
}

// Store writes x to consecutive elements of m, from element index on (U32, a multiple of x's lanes).
func (b *Builder) Store(m *Mem, index, x Value) {
	if m == nil || index == nil || x == nil || index.Type != Scalar(U32) {
		b.fail("store: needs memory, a u32 scalar index and a value")
		return
	}
	if m.Space == Global && m.Access&Write == 0 {
		b.fail("store: buffer %s was declared without write access", m.Name)
	}
	if x.Type.Kind != m.Kind {
		b.fail("store: value of type %s to %s of %s; convert it", x.Type, m.Name, m.Kind)
	}
	b.Emit(OpStore, Type{}, 0, m, index, x)
}

// Atomic appends the atomic op on element index of m and returns the old value. For OpAtomicCAS the values are the
// expected and the new one.
func (b *Builder) Atomic(op Op, m *Mem, index Value, vals ...Value) Value {
	if !op.IsAtomic() || m == nil || index == nil || len(vals) != opInfos[op].args-1 {
		b.fail("%s: not an atomic of %d values", op, len(vals))
		return b.placeholder(Scalar(U32))
	}
	if m.Kind != U32 && m.Kind != I32 || m.Space == Private {
		b.fail("%s: needs u32 or i32 in global or shared memory, not %s of %s", op, m.Space, m.Kind)
	}
	if m.Space == Global && m.Access != ReadWrite {
		b.fail("%s: buffer %s needs read and write access", op, m.Name)
	}
	return b.Emit(op, Scalar(m.Kind), 0, m, append([]Value{index}, vals...)...)
}

// --- structure ---

// If runs then where cond (a Bool scalar) holds, and els elsewhere; els may be nil.
func (b *Builder) If(cond Value, then, els func()) {
	if cond == nil || cond.Type != Scalar(Bool) {
		b.fail("if: condition must be a bool scalar")
		cond = b.Bool(true)
	}
	in := b.Emit(OpIf, Type{}, 0, nil, cond)
	in.Blocks = []*Block{b.block(then), b.block(els)}
}

// For runs body with a counter from lo up to but not including hi in steps of step; all are I32 or U32 scalars of one
// kind, and step is positive.
func (b *Builder) For(lo, hi, step Value, body func(i Value)) {
	for _, v := range []Value{lo, hi, step} {
		if v == nil || v.Type.Lanes != 1 || v.Type != lo.Type || v.Type.Kind != I32 && v.Type.Kind != U32 {
			b.fail("for: bounds and step must be i32 or u32 scalars of one kind")
			return
		}
	}
	in := b.Emit(OpFor, Type{}, 0, nil, lo, hi, step)
	in.Blocks = []*Block{b.block(func() { body(b.Emit(OpLoopVar, lo.Type, 0, nil)) })}
}

// Interleave runs the functions and mixes the instructions that they append, taking one of each in turn: work on several
// independent values then waits for itself less on a CPU, whose view of the instructions ahead is bounded.
func (b *Builder) Interleave(parts ...func()) {
	blocks := make([]*Block, len(parts))
	most := 0
	for i, f := range parts {
		blocks[i] = b.block(f)
		most = max(most, len(blocks[i].Instrs))
	}
	for i := range most {
		for _, p := range blocks {
			if i < len(p.Instrs) {
				b.cur.Instrs = append(b.cur.Instrs, p.Instrs[i])
			}
		}
	}
}

// Range is For from 0 to n (U32) in steps of 1.
func (b *Builder) Range(n Value, body func(i Value)) { b.For(b.U32(0), n, b.U32(1), body) }

func (b *Builder) block(f func()) *Block {
	outer := b.cur
	b.cur = &Block{}
	inner := b.cur
	if f != nil {
		f()
	}
	b.cur = outer
	return inner
}

// ShuffleXor returns x (a scalar of F32, I32 or U32) of the invocation of the subgroup whose local id is this one's XOR mask. Every
// invocation of the workgroup must be there.
func (b *Builder) ShuffleXor(x Value, mask int) Value {
	if x == nil {
		b.fail("shuffle_xor of nil")
		return nil
	}
	return b.Emit(OpShuffleXor, x.Type, uint64(mask), nil, x)
}

// Barrier waits until every invocation of the workgroup is here; their writes to shared and global memory are then
// visible to each other.
func (b *Builder) Barrier() { b.Emit(OpBarrier, Type{}, 0, nil) }
