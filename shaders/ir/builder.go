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

// --- arithmetic ---

// binary gives two operands one type by splatting a scalar, and checks them.
func (b *Builder) unify(op Op, x, y Value) (Value, Value, bool) {
	if x == nil || y == nil {
		b.fail("%s: operand is nil", op)
		return nil, nil, false
	}
	if x.Type.Kind == y.Type.Kind && x.Type.Lanes != y.Type.Lanes {
		if x.Type.Lanes == 1 {
			x = b.Splat(x, y.Type.Lanes)
		} else if y.Type.Lanes == 1 {
			y = b.Splat(y, x.Type.Lanes)
		}
	}
	if x.Type != y.Type {
		b.fail("%s: operands have types %s and %s; convert one", op, x.Type, y.Type)
		return nil, nil, false
	}
	return x, y, true
}

func (b *Builder) binary(op Op, x, y Value, ok func(Kind) bool) Value {
	x, y, good := b.unify(op, x, y)
	if !good {
		return b.placeholder(Scalar(F32))
	}
	if !ok(x.Type.Kind) {
		b.fail("%s: not defined for %s", op, x.Type)
	}
	return b.Emit(op, x.Type, 0, nil, x, y)
}

func (b *Builder) unary(op Op, x Value, ok func(Kind) bool) Value {
	if x == nil {
		b.fail("%s: operand is nil", op)
		return b.placeholder(Scalar(F32))
	}
	if !ok(x.Type.Kind) {
		b.fail("%s: not defined for %s", op, x.Type)
	}
	return b.Emit(op, x.Type, 0, nil, x)
}

func isArith(k Kind) bool   { return k.IsArith() }
func isIntOp(k Kind) bool   { return k == I32 || k == U32 || k == I64 }
func isBitsOp(k Kind) bool  { return isIntOp(k) || k == Bool }
func isFloatOp(k Kind) bool { return k == F16 || k == F32 || k == F64 }
func isNegOp(k Kind) bool   { return k.IsArith() && k != U32 }
func isU32(k Kind) bool     { return k == U32 }

// Add returns x + y.
func (b *Builder) Add(x, y Value) Value { return b.binary(OpAdd, x, y, isArith) }

// Sub returns x - y.
func (b *Builder) Sub(x, y Value) Value { return b.binary(OpSub, x, y, isArith) }

// Mul returns x * y.
func (b *Builder) Mul(x, y Value) Value { return b.binary(OpMul, x, y, isArith) }

// Div returns x / y; integers truncate, and division of an integer by zero is a fault.
func (b *Builder) Div(x, y Value) Value { return b.binary(OpDiv, x, y, isArith) }

// Rem returns the integer remainder with the sign of x.
func (b *Builder) Rem(x, y Value) Value { return b.binary(OpRem, x, y, isIntOp) }

// Min returns the smaller operand; unspecified if one is NaN.
func (b *Builder) Min(x, y Value) Value { return b.binary(OpMin, x, y, isArith) }

// Max returns the larger operand; unspecified if one is NaN.
func (b *Builder) Max(x, y Value) Value { return b.binary(OpMax, x, y, isArith) }

// MulHi returns the high 32 bits of the product of two U32.
func (b *Builder) MulHi(x, y Value) Value { return b.binary(OpMulHi, x, y, isU32) }

// Neg returns -x.
func (b *Builder) Neg(x Value) Value { return b.unary(OpNeg, x, isNegOp) }

// Abs returns |x|.
func (b *Builder) Abs(x Value) Value { return b.unary(OpAbs, x, isNegOp) }

// Fma returns x*y + z, rounded once or twice.
func (b *Builder) Fma(x, y, z Value) Value {
	x, y, ok := b.unify(OpFma, x, y)
	if ok {
		x, z, ok = b.unify(OpFma, x, z)
	}
	if ok {
		x, y, ok = b.unify(OpFma, x, y)
	}
	if !ok {
		return b.placeholder(Scalar(F32))
	}
	if !isFloatOp(x.Type.Kind) {
		b.fail("fma: not defined for %s", x.Type)
	}
	return b.Emit(OpFma, x.Type, 0, nil, x, y, z)
}

// And, Or, Xor and Not are bitwise for integers and logical for Bool.
func (b *Builder) And(x, y Value) Value { return b.binary(OpAnd, x, y, isBitsOp) }
func (b *Builder) Or(x, y Value) Value  { return b.binary(OpOr, x, y, isBitsOp) }
func (b *Builder) Xor(x, y Value) Value { return b.binary(OpXor, x, y, isBitsOp) }
func (b *Builder) Not(x Value) Value    { return b.unary(OpNot, x, isBitsOp) }

// Shl and Shr shift by an amount of the value's type, which must be less than its width; Shr keeps the sign of signed kinds.
func (b *Builder) Shl(x, n Value) Value { return b.binary(OpShl, x, n, isIntOp) }
func (b *Builder) Shr(x, n Value) Value { return b.binary(OpShr, x, n, isIntOp) }

func (b *Builder) compare(op Op, x, y Value) Value {
	x, y, ok := b.unify(op, x, y)
	if !ok {
		return b.placeholder(Scalar(Bool))
	}
	if !x.Type.Kind.IsArith() && !((op == OpEq || op == OpNe) && x.Type.Kind == Bool) {
		b.fail("%s: not defined for %s", op, x.Type)
	}
	return b.Emit(op, x.Type.With(Bool), 0, nil, x, y)
}

// Eq, Ne, Lt, Le, Gt and Ge compare lane by lane and give Bool. With a NaN operand all but Ne are false.
func (b *Builder) Eq(x, y Value) Value { return b.compare(OpEq, x, y) }
func (b *Builder) Ne(x, y Value) Value { return b.compare(OpNe, x, y) }
func (b *Builder) Lt(x, y Value) Value { return b.compare(OpLt, x, y) }
func (b *Builder) Le(x, y Value) Value { return b.compare(OpLe, x, y) }
func (b *Builder) Gt(x, y Value) Value { return b.compare(OpGt, x, y) }
func (b *Builder) Ge(x, y Value) Value { return b.compare(OpGe, x, y) }

// Select returns x where cond holds and y elsewhere, lane by lane. Both are evaluated.
func (b *Builder) Select(cond, x, y Value) Value {
	x, y, ok := b.unify(OpSelect, x, y)
	if !ok || cond == nil {
		b.fail("select: operand is nil")
		return b.placeholder(Scalar(F32))
	}
	if cond.Type.Kind != Bool {
		b.fail("select: condition has type %s, not bool", cond.Type)
		return x
	}
	switch {
	case cond.Type.Lanes == x.Type.Lanes:
	case cond.Type.Lanes == 1:
		cond = b.Splat(cond, x.Type.Lanes)
	case x.Type.Lanes == 1:
		x, y = b.Splat(x, cond.Type.Lanes), b.Splat(y, cond.Type.Lanes)
	default:
		b.fail("select: condition %s and operands %s differ in lanes", cond.Type, x.Type)
	}
	return b.Emit(OpSelect, x.Type, 0, nil, cond, x, y)
}

// Convert converts the value of x to kind k (see the package comment for rounding and saturation). It returns x if it has kind k.
func (b *Builder) Convert(x Value, k Kind) Value {
	if x == nil || k == Void {
		b.fail("convert: no operand or kind")
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Kind == k {
		return x
	}
	return b.Emit(OpConvert, x.Type.With(k), 0, nil, x)
}

// BitCast reinterprets the bits of x as kind k of the same size.
func (b *Builder) BitCast(x Value, k Kind) Value {
	if x == nil {
		b.fail("bitcast: operand is nil")
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Kind == k {
		return x
	}
	if x.Type.Kind.Size() != k.Size() || k.Size() == 0 {
		b.fail("bitcast: %s and %s differ in size", x.Type, k)
	}
	return b.Emit(OpBitCast, x.Type.With(k), 0, nil, x)
}

// --- vectors ---

// Splat returns x in each of lanes lanes.
func (b *Builder) Splat(x Value, lanes int) Value {
	if x == nil || !ValidLanes(lanes) {
		b.fail("splat: no operand, or %d lanes", lanes)
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Lanes == lanes {
		return x
	}
	if x.Type.Lanes != 1 {
		b.fail("splat: operand is the vector %s", x.Type)
	}
	return b.Emit(OpSplat, Vec(x.Type.Kind, lanes), 0, nil, x)
}

// Extract returns lane i of x.
func (b *Builder) Extract(x Value, i int) Value {
	if x == nil || i < 0 || i >= x.Type.Lanes {
		b.fail("extract: no operand, or no lane %d", i)
		return b.placeholder(Scalar(F32))
	}
	if x.Type.Lanes == 1 {
		return x
	}
	return b.Emit(OpExtract, Scalar(x.Type.Kind), uint64(i), nil, x)
}

// Vec makes a vector of scalars of one kind.
func (b *Builder) Vec(xs ...Value) Value {
	if len(xs) == 1 {
		return xs[0]
	}
	if !ValidLanes(len(xs)) {
		b.fail("vec: %d lanes; there are vectors of 2, 4, 8 and 16", len(xs))
		return b.placeholder(Scalar(F32))
	}
	for _, x := range xs {
		if x == nil || x.Type != Scalar(xs[0].Type.Kind) {
			b.fail("vec: operands are not scalars of one kind")
			return b.placeholder(Scalar(F32))
		}
	}
	return b.Emit(OpVec, Vec(xs[0].Type.Kind, len(xs)), 0, nil, append([]Value(nil), xs...)...)
}

// --- math functions ---

// Math appends the math function op (OpSqrt to OpRound) of the operands.
func (b *Builder) Math(op Op, xs ...Value) Value {
	if !op.IsMath() || len(xs) != opInfos[op].args {
		b.fail("%s: not a math function of %d operands", op, len(xs))
		return b.placeholder(Scalar(F32))
	}
	if len(xs) == 2 {
		return b.binary(op, xs[0], xs[1], isFloatOp)
	}
	return b.unary(op, xs[0], isFloatOp)
}

// The math functions, lane by lane.
func (b *Builder) Sqrt(x Value) Value     { return b.Math(OpSqrt, x) }
func (b *Builder) Rsqrt(x Value) Value    { return b.Math(OpRsqrt, x) }
func (b *Builder) Exp(x Value) Value      { return b.Math(OpExp, x) }
func (b *Builder) Exp2(x Value) Value     { return b.Math(OpExp2, x) }
func (b *Builder) Expm1(x Value) Value    { return b.Math(OpExpm1, x) }
func (b *Builder) Log(x Value) Value      { return b.Math(OpLog, x) }
func (b *Builder) Log2(x Value) Value     { return b.Math(OpLog2, x) }
func (b *Builder) Log10(x Value) Value    { return b.Math(OpLog10, x) }
func (b *Builder) Log1p(x Value) Value    { return b.Math(OpLog1p, x) }
func (b *Builder) Sin(x Value) Value      { return b.Math(OpSin, x) }
func (b *Builder) Cos(x Value) Value      { return b.Math(OpCos, x) }
func (b *Builder) Tan(x Value) Value      { return b.Math(OpTan, x) }
func (b *Builder) Asin(x Value) Value     { return b.Math(OpAsin, x) }
func (b *Builder) Acos(x Value) Value     { return b.Math(OpAcos, x) }
func (b *Builder) Atan(x Value) Value     { return b.Math(OpAtan, x) }
func (b *Builder) Atan2(y, x Value) Value { return b.Math(OpAtan2, y, x) }
func (b *Builder) Sinh(x Value) Value     { return b.Math(OpSinh, x) }
func (b *Builder) Cosh(x Value) Value     { return b.Math(OpCosh, x) }
func (b *Builder) Tanh(x Value) Value     { return b.Math(OpTanh, x) }
func (b *Builder) Erf(x Value) Value      { return b.Math(OpErf, x) }
func (b *Builder) Pow(x, y Value) Value   { return b.Math(OpPow, x, y) }
func (b *Builder) Floor(x Value) Value    { return b.Math(OpFloor, x) }
func (b *Builder) Ceil(x Value) Value     { return b.Math(OpCeil, x) }
func (b *Builder) Trunc(x Value) Value    { return b.Math(OpTrunc, x) }
func (b *Builder) Round(x Value) Value    { return b.Math(OpRound, x) }

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

// Barrier waits until every invocation of the workgroup is here; their writes to shared and global memory are then
// visible to each other.
func (b *Builder) Barrier() { b.Emit(OpBarrier, Type{}, 0, nil) }

// --- compositions ---

// IsNaN returns whether x is NaN, by its bits.
func (b *Builder) IsNaN(x Value) Value { return b.Gt(b.magnitude(x), b.infBits(x)) }

// IsInf returns whether x is an infinity, by its bits.
func (b *Builder) IsInf(x Value) Value { return b.Eq(b.magnitude(x), b.infBits(x)) }

// IsFinite returns whether x is neither NaN nor an infinity, by its bits.
func (b *Builder) IsFinite(x Value) Value { return b.Lt(b.magnitude(x), b.infBits(x)) }

// magnitude returns the bits of |x| as an integer that orders like it: U32 for F32 and F16 (widened), I64 for F64.
func (b *Builder) magnitude(x Value) Value {
	if x == nil || !isFloatOp(x.Type.Kind) {
		b.fail("isnan, isinf, isfinite: need a float, got %v", x)
		return b.placeholder(Scalar(U32))
	}
	if x.Type.Kind == F64 {
		i := b.BitCast(x, I64)
		return b.And(i, b.ConstBits(i.Type, 0x7fffffffffffffff))
	}
	i := b.BitCast(b.Convert(x, F32), U32)
	return b.And(i, b.ConstBits(i.Type, 0x7fffffff))
}

func (b *Builder) infBits(x Value) Value {
	if x != nil && x.Type.Kind == F64 {
		return b.ConstBits(x.Type.With(I64), 0x7ff0000000000000)
	}
	lanes := 1
	if x != nil {
		lanes = x.Type.Lanes
	}
	return b.ConstBits(Vec(U32, lanes), 0x7f800000)
}

// MaxNaN returns the larger operand, or NaN if either is NaN (PyTorch's maximum); for integers it is Max.
func (b *Builder) MaxNaN(x, y Value) Value { return b.propagate(OpMax, x, y) }

// MinNaN returns the smaller operand, or NaN if either is NaN (PyTorch's minimum); for integers it is Min.
func (b *Builder) MinNaN(x, y Value) Value { return b.propagate(OpMin, x, y) }

func (b *Builder) propagate(op Op, x, y Value) Value {
	x, y, ok := b.unify(op, x, y)
	if !ok {
		return b.placeholder(Scalar(F32))
	}
	m := b.binary(op, x, y, isArith)
	if !x.Type.Kind.IsFloat() {
		return m
	}
	return b.Select(b.IsNaN(x), x, b.Select(b.IsNaN(y), y, m))
}

// Sigmoid returns 1/(1+exp(-x)).
func (b *Builder) Sigmoid(x Value) Value {
	return b.Div(b.ConstLike(x, 1), b.Add(b.ConstLike(x, 1), b.Exp(b.Neg(x))))
}
