package ir

import (
	"errors"
	"strings"
	"testing"
)

// fixture is a kernel under construction with one of everything to misuse.
type fixture struct {
	*Builder
	ro, wo, rw, u8, bf, ints *Mem // global: f32 read, f32 write, f32, u8, bf16, i32
	sh, priv                 *Mem
	p                        Value // f32 parameter
	f, f4, u, i, cond, v, x8 Value
}

func newFixture() *fixture {
	b := NewBuilder("bad", 64, 1, 1)
	f := &fixture{Builder: b}
	f.ro, f.wo, f.rw = b.Buffer("ro", F32, Read), b.Buffer("wo", F32, Write), b.Buffer("rw", F32, ReadWrite)
	f.u8, f.bf, f.ints = b.Buffer("u8", U8, ReadWrite), b.Buffer("bf", BF16, ReadWrite), b.Buffer("ints", I32, ReadWrite)
	f.sh, f.priv = b.SharedArray("sh", U32, 64), b.PrivateArray("priv", I32, 4)
	f.p = b.Param("p", F32)
	f.f, f.u, f.i, f.cond = b.F32(1.5), b.U32(2), b.I32(-1), b.Bool(true)
	f.f4 = b.Splat(f.f, 4)
	f.v = b.Var(f.f)
	f.x8 = b.Load(f.u8, f.u, 1)
	return f
}

func f32() Type { return Scalar(F32) }

// illFormed has one kernel for each rule: what is built, and words that the error must have.
var illFormed = []struct {
	name  string
	build func(f *fixture)
	want  string
}{
	{"no operation", func(f *fixture) { f.Emit(OpInvalid, f32(), 0, nil) }, "no operation"},
	{"unknown operation", func(f *fixture) { f.Emit(Op(250), f32(), 0, nil) }, "no operation"},
	{"operand count", func(f *fixture) { f.Emit(OpAdd, f32(), 0, nil, f.f) }, "takes 2 operands, not 1"},
	{"type does not exist", func(f *fixture) { f.Emit(OpConst, Vec(F32, 3), 0, nil) }, "type f32x3 does not exist"},
	{"kind does not exist", func(f *fixture) { f.Emit(OpConst, Scalar(numKinds), 0, nil) }, "does not exist"},
	{"operand without value", func(f *fixture) {
		st := f.Emit(OpStore, Type{}, 0, f.rw, f.u, f.f)
		f.Emit(OpNeg, f32(), 0, nil, st)
	}, "has no value"},
	{"variable as value", func(f *fixture) { f.Emit(OpNeg, f32(), 0, nil, f.v) }, "only get and set"},
	{"variable set to variable", func(f *fixture) { f.Emit(OpSet, Type{}, 0, nil, f.v, f.v) }, "only get and set"},
	{"memory where there is none", func(f *fixture) { f.Emit(OpNeg, f32(), 0, f.ro, f.f) }, "no memory operand"},
	{"blocks where there are none", func(f *fixture) { f.Emit(OpNeg, f32(), 0, nil, f.f).Blocks = []*Block{{}} }, "has 0 blocks"},
	{"nil block", func(f *fixture) { f.Emit(OpIf, Type{}, 0, nil, f.cond).Blocks = []*Block{nil, nil} }, "block is nil"},
	{"id used twice", func(f *fixture) { f.Emit(OpNeg, f32(), 0, nil, f.f).ID = f.f.ID }, "used twice"},
	{"id out of range", func(f *fixture) { f.Emit(OpNeg, f32(), 0, nil, f.f).ID = 1 << 20 }, "not below"},

	{"use before definition", func(f *fixture) {
		n := &Instr{Op: OpNeg, Type: f32(), ID: f.k.NumInstr, Args: []Value{f.f}}
		f.k.NumInstr++
		f.Emit(OpNeg, f32(), 0, nil, n)
		f.cur.Instrs = append(f.cur.Instrs, n)
	}, "not defined here"},
	{"use out of scope", func(f *fixture) {
		var inner Value
		f.If(f.cond, func() { inner = f.Neg(f.f) }, nil)
		f.Emit(OpNeg, f32(), 0, nil, inner)
	}, "not defined here"},
	{"use in the other branch", func(f *fixture) {
		var inner Value
		f.If(f.cond, func() { inner = f.Neg(f.f) }, func() { f.Emit(OpNeg, f32(), 0, nil, inner) })
	}, "not defined here"},
	{"value of another kernel", func(f *fixture) {
		f.Emit(OpNeg, f32(), 0, nil, NewBuilder("other", 1, 1, 1).F32(1))
	}, "not defined here"},
	{"use of itself", func(f *fixture) { n := f.Emit(OpNeg, f32(), 0, nil, f.f); n.Args[0] = n }, "not defined here"},

	{"constant without type", func(f *fixture) { f.Emit(OpConst, Type{}, 0, nil) }, "needs a type"},
	{"constant too wide", func(f *fixture) { f.Emit(OpConst, Scalar(U8), 256, nil) }, "more bits"},
	{"bool constant too wide", func(f *fixture) { f.Emit(OpConst, Scalar(Bool), 2, nil) }, "more bits"},
	{"no such parameter", func(f *fixture) { f.Emit(OpParam, f32(), 7, nil) }, "no parameter 7"},
	{"parameter of another kind", func(f *fixture) { f.Emit(OpParam, Scalar(U32), 0, nil) }, "must be f32"},
	{"dimension", func(f *fixture) { f.Emit(OpGlobalID, Scalar(U32), 3, nil) }, "dimension 3"},
	{"type of an id", func(f *fixture) { f.Emit(OpLocalID, Scalar(I32), 0, nil) }, "must be u32"},

	{"kinds differ", func(f *fixture) { f.Emit(OpAdd, f32(), 0, nil, f.f, f.u) }, "operand 1 of add has type u32: want f32"},
	{"lanes differ", func(f *fixture) { f.Emit(OpMul, Vec(F32, 4), 0, nil, f.f4, f.f) }, "want f32x4"},
	{"result differs", func(f *fixture) { f.Emit(OpSub, Scalar(U32), 0, nil, f.f, f.f) }, "want u32"},
	{"arithmetic of u8", func(f *fixture) { f.Emit(OpAdd, Scalar(U8), 0, nil, f.x8, f.x8) }, "storage kind"},
	{"arithmetic of bf16", func(f *fixture) {
		x := f.Load(f.bf, f.u, 1)
		f.Emit(OpMul, Scalar(BF16), 0, nil, x, x)
	}, "storage kind"},
	{"arithmetic of bool", func(f *fixture) { f.Emit(OpAdd, Scalar(Bool), 0, nil, f.cond, f.cond) }, "not defined for bool"},
	{"remainder of floats", func(f *fixture) { f.Emit(OpRem, f32(), 0, nil, f.f, f.f) }, "not defined for f32"},
	{"negated u32", func(f *fixture) { f.Emit(OpNeg, Scalar(U32), 0, nil, f.u) }, "not defined for u32"},
	{"fma of integers", func(f *fixture) { f.Emit(OpFma, Scalar(I32), 0, nil, f.i, f.i, f.i) }, "not defined for i32"},
	{"high product of i32", func(f *fixture) { f.Emit(OpMulHi, Scalar(I32), 0, nil, f.i, f.i) }, "not defined for i32"},
	{"bits of floats", func(f *fixture) { f.Emit(OpAnd, f32(), 0, nil, f.f, f.f) }, "not defined for f32"},
	{"shift of bool", func(f *fixture) { f.Emit(OpShl, Scalar(Bool), 0, nil, f.cond, f.cond) }, "not defined for bool"},
	{"math of integers", func(f *fixture) { f.Emit(OpExp, Scalar(U32), 0, nil, f.u) }, "not defined for u32"},
	{"math of bf16", func(f *fixture) { f.Emit(OpExp, Scalar(BF16), 0, nil, f.Load(f.bf, f.u, 1)) }, "storage kind"},
	{"math operand count", func(f *fixture) { f.Emit(OpPow, f32(), 0, nil, f.f) }, "takes 2 operands"},

	{"comparison result", func(f *fixture) { f.Emit(OpLt, Scalar(U32), 0, nil, f.f, f.f) }, "must be bool"},
	{"comparison lanes", func(f *fixture) { f.Emit(OpLt, Scalar(Bool), 0, nil, f.f4, f.f4) }, "must be boolx4"},
	{"comparison kinds", func(f *fixture) { f.Emit(OpEq, Scalar(Bool), 0, nil, f.f, f.u) }, "want f32"},
	{"comparison of u8", func(f *fixture) { f.Emit(OpEq, Scalar(Bool), 0, nil, f.x8, f.x8) }, "storage kind"},
	{"order of bool", func(f *fixture) { f.Emit(OpLt, Scalar(Bool), 0, nil, f.cond, f.cond) }, "not defined for bool"},

	{"selection condition", func(f *fixture) { f.Emit(OpSelect, f32(), 0, nil, f.u, f.f, f.f) }, "want bool"},
	{"selection lanes", func(f *fixture) { f.Emit(OpSelect, Vec(F32, 4), 0, nil, f.cond, f.f4, f.f4) }, "want boolx4"},
	{"selection operands", func(f *fixture) { f.Emit(OpSelect, f32(), 0, nil, f.cond, f.f, f.u) }, "want f32"},
	{"selection without type", func(f *fixture) { f.Emit(OpSelect, Type{}, 0, nil, f.cond, f.f, f.f) }, "needs a type"},
	{"conversion lanes", func(f *fixture) { f.Emit(OpConvert, Scalar(U32), 0, nil, f.f4) }, "changes the lanes"},
	{"conversion to itself", func(f *fixture) { f.Emit(OpConvert, f32(), 0, nil, f.f) }, "to itself"},
	{"conversion to void", func(f *fixture) { f.Emit(OpConvert, Type{}, 0, nil, f.f) }, "needs a kind"},
	{"bitcast size", func(f *fixture) { f.Emit(OpBitCast, Scalar(I64), 0, nil, f.f) }, "same size"},
	{"bitcast lanes", func(f *fixture) { f.Emit(OpBitCast, Scalar(U32), 0, nil, f.f4) }, "same lanes"},
	{"bitcast of bool", func(f *fixture) { f.Emit(OpBitCast, Scalar(U8), 0, nil, f.cond) }, "same size"},

	{"splat of a vector", func(f *fixture) { f.Emit(OpSplat, Vec(F32, 8), 0, nil, f.f4) }, "splat"},
	{"splat to a scalar", func(f *fixture) { f.Emit(OpSplat, f32(), 0, nil, f.f) }, "splat"},
	{"splat of another kind", func(f *fixture) { f.Emit(OpSplat, Vec(F32, 4), 0, nil, f.u) }, "splat"},
	{"no such lane", func(f *fixture) { f.Emit(OpExtract, f32(), 4, nil, f.f4) }, "no lane 4"},
	{"lane of a scalar", func(f *fixture) { f.Emit(OpExtract, f32(), 0, nil, f.f) }, "no lane"},
	{"type of a lane", func(f *fixture) { f.Emit(OpExtract, Scalar(U32), 0, nil, f.f4) }, "must be f32"},
	{"vector of too few", func(f *fixture) { f.Emit(OpVec, Vec(F32, 4), 0, nil, f.f, f.f) }, "2 operands"},
	{"vector of vectors", func(f *fixture) { f.Emit(OpVec, Vec(F32, 2), 0, nil, f.f4, f.f4) }, "want f32"},

	{"type of a variable", func(f *fixture) { f.Emit(OpVar, Scalar(U32), 0, nil, f.f) }, "want u32"},
	{"get of a value", func(f *fixture) { f.Emit(OpGet, f32(), 0, nil, f.f) }, "reads a variable"},
	{"type of a get", func(f *fixture) { f.Emit(OpGet, Scalar(U32), 0, nil, f.v) }, "want u32"},
	{"set of a value", func(f *fixture) { f.Emit(OpSet, Type{}, 0, nil, f.f, f.f) }, "writes a variable"},
	{"type of a set", func(f *fixture) { f.Emit(OpSet, Type{}, 0, nil, f.v, f.u) }, "want f32"},
	{"set with a result", func(f *fixture) { f.Emit(OpSet, f32(), 0, nil, f.v, f.f) }, "no result"},

	{"load without memory", func(f *fixture) { f.Emit(OpLoad, f32(), 0, nil, f.u) }, "needs memory"},
	{"load of a write-only buffer", func(f *fixture) { f.Emit(OpLoad, f32(), 0, f.wo, f.u) }, "needs read access"},
	{"load of another kind", func(f *fixture) { f.Emit(OpLoad, Scalar(U32), 0, f.ro, f.u) }, "memory of f32"},
	{"index kind", func(f *fixture) { f.Emit(OpLoad, f32(), 0, f.ro, f.i) }, "want u32"},
	{"index vector", func(f *fixture) { f.Emit(OpLoad, f32(), 0, f.ro, f.Splat(f.u, 2)) }, "want u32"},
	{"memory of another kernel", func(f *fixture) {
		f.Emit(OpLoad, f32(), 0, &Mem{Name: "ro", Kind: F32, Access: Read}, f.u)
	}, "not declared in this kernel"},
	{"store to a read-only buffer", func(f *fixture) { f.Emit(OpStore, Type{}, 0, f.ro, f.u, f.f) }, "needs write access"},
	{"store of another kind", func(f *fixture) { f.Emit(OpStore, Type{}, 0, f.rw, f.u, f.u) }, "memory of f32"},
	{"store with a result", func(f *fixture) { f.Emit(OpStore, f32(), 0, f.rw, f.u, f.f) }, "no result"},

	{"atomic on floats", func(f *fixture) { f.Emit(OpAtomicAdd, f32(), 0, f.rw, f.u, f.f) }, "needs u32 or i32"},
	{"atomic on private memory", func(f *fixture) { f.Emit(OpAtomicMax, Scalar(I32), 0, f.priv, f.u, f.i) }, "in global or shared"},
	{"atomic without read access", func(f *fixture) {
		f.Emit(OpAtomicOr, Scalar(U32), 0, f.Buffer("flags", U32, Write), f.u, f.u)
	}, "needs readwrite access"},
	{"atomic result", func(f *fixture) { f.Emit(OpAtomicAdd, Scalar(I32), 0, f.sh, f.u, f.u) }, "must be u32"},
	{"atomic value", func(f *fixture) { f.Emit(OpAtomicAdd, Scalar(U32), 0, f.sh, f.u, f.i) }, "want u32"},
	{"atomic value count", func(f *fixture) { f.Emit(OpAtomicCAS, Scalar(U32), 0, f.sh, f.u, f.u) }, "takes 3 operands"},
	{"atomic index", func(f *fixture) { f.Emit(OpAtomicAdd, Scalar(I32), 0, f.ints, f.i, f.i) }, "want u32"},

	{"if on a number", func(f *fixture) { f.Emit(OpIf, Type{}, 0, nil, f.u).Blocks = []*Block{{}, {}} }, "want a bool scalar"},
	{"if with one block", func(f *fixture) { f.Emit(OpIf, Type{}, 0, nil, f.cond).Blocks = []*Block{{}} }, "has 2 blocks"},
	{"loop over floats", func(f *fixture) { emitLoop(f, f32(), f.f, f.f, f.f) }, "want i32 or u32"},
	{"loop bounds differ", func(f *fixture) { emitLoop(f, Scalar(U32), f.u, f.i, f.u) }, "want u32"},
	{"loop step zero", func(f *fixture) { emitLoop(f, Scalar(U32), f.u, f.u, f.U32(0)) }, "step must be positive"},
	{"loop step negative", func(f *fixture) { emitLoop(f, Scalar(I32), f.i, f.i, f.i) }, "step must be positive"},
	{"loop without counter", func(f *fixture) {
		f.Emit(OpFor, Type{}, 0, nil, f.u, f.u, f.u).Blocks = []*Block{{}}
	}, "begin with its loop_var"},
	{"counter of another type", func(f *fixture) { emitLoop(f, Scalar(I32), f.u, f.u, f.u) }, "type of the loop's bounds"},
	{"counter outside a loop", func(f *fixture) { f.Emit(OpLoopVar, Scalar(U32), 0, nil) }, "first instruction of a loop"},
	{"second counter", func(f *fixture) {
		f.Range(f.u, func(Value) { f.Emit(OpLoopVar, Scalar(U32), 0, nil) })
	}, "first instruction of a loop"},

	{"barrier under a local id", func(f *fixture) {
		f.If(f.Lt(f.LocalID(0), f.u), f.Barrier, nil)
	}, "divergent control flow"},
	{"barrier in an else branch", func(f *fixture) { f.If(f.Lt(f.GlobalID(0), f.u), nil, f.Barrier) }, "divergent"},
	{"barrier under a load", func(f *fixture) { f.If(f.Gt(f.Load(f.ro, f.u, 1), f.f), f.Barrier, nil) }, "divergent"},
	{"barrier under an atomic", func(f *fixture) {
		f.If(f.Eq(f.Atomic(OpAtomicAdd, f.sh, f.u, f.u), f.u), f.Barrier, nil)
	}, "divergent"},
	{"barrier in a loop of divergent length", func(f *fixture) {
		f.Range(f.LocalID(0), func(Value) { f.Barrier() })
	}, "divergent"},
	{"barrier under the counter of such a loop", func(f *fixture) {
		n := f.Var(f.u)
		f.Range(f.LocalID(0), func(i Value) { f.Set(n, i) })
		f.If(f.Eq(f.Get(n), f.u), f.Barrier, nil)
	}, "divergent"},
	{"barrier under a variable set to a divergent value", func(f *fixture) {
		n := f.Var(f.u)
		f.Set(n, f.LocalID(0))
		f.If(f.Eq(f.Get(n), f.u), f.Barrier, nil)
	}, "divergent"},
	{"barrier under a variable set under divergent control flow", func(f *fixture) {
		n := f.Var(f.u)
		f.If(f.Lt(f.LocalID(0), f.u), func() { f.Set(n, f.U32(7)) }, nil)
		f.If(f.Eq(f.Get(n), f.u), f.Barrier, nil)
	}, "divergent"},
	{"barrier under a variable that diverges in the next iteration", func(f *fixture) {
		a, b := f.Var(f.u), f.Var(f.u)
		f.Range(f.U32(4), func(Value) {
			f.If(f.Eq(f.Get(a), f.u), f.Barrier, nil)
			f.Set(a, f.Get(b))
			f.Set(b, f.LocalID(0))
		})
	}, "divergent"},

	{"exchange without subgroups", func(f *fixture) { f.ShuffleXor(f.f, 1) }, "how large a subgroup is"},
	{"exchange with itself", func(f *fixture) { f.SetSubgroup(8); f.ShuffleXor(f.f, 0) }, "mask 0 leads to no other"},
	{"exchange with another subgroup", func(f *fixture) { f.SetSubgroup(8); f.ShuffleXor(f.f, 8) }, "mask 8 leads to no other"},
	{"exchange of vectors", func(f *fixture) { f.SetSubgroup(8); f.ShuffleXor(f.f4, 1) }, "not defined for f32x4"},
	{"exchange of wide values", func(f *fixture) { f.SetSubgroup(8); f.ShuffleXor(f.Convert(f.i, I64), 1) }, "not defined for i64"},
	{"exchange of another type", func(f *fixture) { f.SetSubgroup(8); f.Emit(OpShuffleXor, f32(), 1, nil, f.u) }, "want f32"},
	{"exchange under a local id", func(f *fixture) {
		f.SetSubgroup(8)
		f.If(f.Lt(f.LocalID(0), f.u), func() { f.ShuffleXor(f.f, 1) }, nil)
	}, "shuffle_xor under divergent control flow"},
	{"barrier under an exchanged value", func(f *fixture) {
		f.SetSubgroup(8)
		f.If(f.Lt(f.ShuffleXor(f.u, 1), f.u), f.Barrier, nil)
	}, "barrier under divergent control flow"},
	{"subgroup of three", func(f *fixture) { f.SetSubgroup(3) }, "subgroups of 3"},
	{"part of a subgroup", func(f *fixture) { f.SetSubgroup(128) }, "subgroups of 128 in a workgroup of 64x1x1"},
	{"subgroups in two dimensions", func(f *fixture) { f.k.Local[1] = 2; f.SetSubgroup(8) }, "one-dimensional"},

	{"no name", func(f *fixture) { f.k.Name = "" }, "needs a name"},
	{"no body", func(f *fixture) { f.k.Body = nil }, "needs a body"},
	{"workgroup size", func(f *fixture) { f.k.Local[1] = 0 }, "workgroup size 64x0x1"},
	{"too many parameters", func(f *fixture) { f.k.Params = make([]Param, MaxParams+1) }, "at most 32"},
	{"parameter kind", func(f *fixture) { f.k.Params[0].Kind = I64 }, "i32, u32 and f32 are allowed"},
	{"memory names", func(f *fixture) { f.wo.Name = "ro" }, "declared twice"},
	{"memory without name", func(f *fixture) { f.wo.Name = "" }, "needs a name"},
	{"memory index", func(f *fixture) { f.rw.Index = 5 }, "has index 5"},
	{"memory space", func(f *fixture) { f.rw.Space = 9 }, "does not exist"},
	{"nil memory", func(f *fixture) { f.k.Mems[2] = nil }, "is nil"},
	{"bool memory", func(f *fixture) { f.rw.Kind = Bool }, "no memory form"},
	{"buffer without access", func(f *fixture) { f.rw.Access = 0 }, "needs read access"},
	{"array of bf16", func(f *fixture) { f.sh.Kind = BF16 }, "arithmetic kind"},
	{"empty array", func(f *fixture) { f.priv.Len = 0 }, "at least 1"},
	{"nil instruction", func(f *fixture) { f.cur.Instrs = append(f.cur.Instrs, nil) }, "is nil"},
	{"nil operand", func(f *fixture) { f.Emit(OpNeg, f32(), 0, nil, f.f).Args[0] = nil }, "is nil"},
}

func emitLoop(f *fixture, counter Type, lo, hi, step Value) {
	in := f.Emit(OpFor, Type{}, 0, nil, lo, hi, step)
	in.Blocks = []*Block{f.block(func() { f.Emit(OpLoopVar, counter, 0, nil) })}
}

func TestVerifyRejects(t *testing.T) {
	for _, c := range illFormed {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture()
			if err := Verify(f.k); err != nil {
				t.Fatalf("the fixture itself is ill-formed: %v", err)
			}
			c.build(f)
			err := Verify(f.k)
			if err == nil {
				t.Fatalf("accepted:\n%s", f.k)
			}
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v does not match ErrInvalid", err)
			}
			var ve *VerifyError
			if !errors.As(err, &ve) || ve.Kernel != f.k.Name {
				t.Errorf("%v does not name the kernel", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q: want %q in it", err, c.want)
			}
		})
	}
}

func TestVerifyErrorText(t *testing.T) {
	f := newFixture()
	f.Emit(OpAdd, f32(), 0, nil, f.f, f.u).Name = "sum"
	want := `ir: kernel bad: in "%` // then the number
	err := Verify(f.k)
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), `:f32 = add %1, %2  ; sum": operand 1 of add has type u32: want f32`) {
		t.Errorf("got %v", err)
	}
	if err := Verify(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("nil kernel: %v", err)
	}
}

// wellFormed has kernels that the rules must allow.
var wellFormed = []struct {
	name  string
	build func(f *fixture)
}{
	{"storage kinds where allowed", func(f *fixture) {
		for _, m := range []*Mem{f.u8, f.bf} {
			x := f.Load(m, f.U32(4), 4)
			v := f.Var(x)
			y := f.Select(f.cond, x, f.Get(v))
			f.Set(v, f.Splat(f.Extract(y, 3), 4))
			c := f.Const(Scalar(m.Kind), 1)
			f.Store(m, f.U32(8), f.Vec(c, f.Extract(f.Get(v), 0)))
			f.Store(m, f.u, f.Convert(f.Convert(c, F32), m.Kind))
		}
		f.Store(f.bf, f.u, f.BitCast(f.BitCast(f.Load(f.bf, f.u, 1), U16), BF16))
	}},
	{"converting accesses", func(f *fixture) {
		h := f.Buffer("h", F16, ReadWrite)
		f.Emit(OpStore, Type{}, 0, h, f.u, f.Emit(OpLoad, f32(), 0, h, f.u))
	}},
	{"bool", func(f *fixture) {
		c := f.Or(f.And(f.cond, f.Not(f.cond)), f.Xor(f.Eq(f.cond, f.cond), f.Ne(f.cond, f.cond)))
		f.If(f.Extract(f.Splat(c, 2), 1), func() { f.Store(f.rw, f.u, f.Convert(c, F32)) }, nil)
		f.Convert(f.f4, Bool)
	}},
	{"barriers where all come", func(f *fixture) {
		f.If(f.Gt(f.p, f.f), f.Barrier, f.Barrier)
		f.If(f.Eq(f.GroupID(0), f.NumGroups(0)), f.Barrier, nil)
		f.Range(f.GroupID(1), func(i Value) {
			f.Barrier()
			f.If(f.Eq(f.Rem(i, f.u), f.U32(0)), f.Barrier, nil)
		})
		n := f.Var(f.u)
		f.For(f.I32(8), f.I32(16), f.I32(2), func(Value) {
			f.If(f.Lt(f.LocalID(0), f.Get(n)), func() { f.Store(f.rw, f.u, f.f) }, nil)
			f.Barrier()
			f.Set(n, f.Shr(f.Get(n), f.U32(1)))
		})
		f.If(f.Eq(f.Get(n), f.u), f.Barrier, nil)
		f.If(f.Eq(f.LocalID(1), f.GlobalID(2)), f.Barrier, nil) // dimensions of size 1
	}},
	{"exchanges", func(f *fixture) {
		f.SetSubgroup(64)
		f.If(f.Gt(f.p, f.f), func() { f.Store(f.rw, f.LocalID(0), f.ShuffleXor(f.p, 63)) }, nil)
		f.Store(f.ints, f.LocalID(0), f.ShuffleXor(f.i, 1))
	}},
	{"values in inner blocks", func(f *fixture) {
		f.If(f.cond, func() {
			f.Range(f.u, func(i Value) { f.Store(f.rw, i, f.Add(f.f, f.p)) })
		}, nil)
	}},
	{"atomics", func(f *fixture) {
		f.Atomic(OpAtomicCAS, f.sh, f.u, f.u, f.u)
		f.Atomic(OpAtomicMin, f.ints, f.u, f.i)
	}},
}

func TestVerifyAccepts(t *testing.T) {
	for _, c := range wellFormed {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture()
			c.build(f)
			if _, err := f.Build(); err != nil {
				t.Errorf("%v\n%s", err, f.k)
			}
		})
	}
}

func TestEveryOpHasARule(t *testing.T) {
	for op := OpInvalid + 1; op < numOps; op++ {
		if rules[op] == nil {
			t.Errorf("%s has no rule", op)
		}
		if opInfos[op].name == "" {
			t.Errorf("operation %d has no name", op)
		}
	}
}
