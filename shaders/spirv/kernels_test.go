package spirv

import (
	"fmt"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

// testKernels returns kernels that together use every operation, kind, width and control structure that Emit takes.
func testKernels(t *testing.T) map[string]*ir.Kernel {
	t.Helper()
	out := map[string]*ir.Kernel{}
	add := func(name string, x, y int, body func(b *ir.Builder)) {
		b := ir.NewBuilder(name, x, y, 1)
		body(b)
		k, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = k
	}
	for _, kind := range []ir.Kind{ir.I32, ir.U32, ir.I64, ir.F16, ir.F32, ir.F64} {
		for _, lanes := range []int{1, 2, 4} {
			typ := ir.Vec(kind, lanes)
			add(fmt.Sprintf("arith_%s", typ), 64, 1, func(b *ir.Builder) { arithKernel(b, kind, lanes) })
			add(fmt.Sprintf("convert_%s", typ), 8, 8, func(b *ir.Builder) { convertKernel(b, kind, lanes) })
		}
	}
	for _, lanes := range []int{1, 2, 4} {
		add(fmt.Sprintf("math_f32x%d", lanes), 64, 1, func(b *ir.Builder) { mathKernel(b, ir.F32, lanes, NativeMath()) })
		add(fmt.Sprintf("math_f64x%d", lanes), 64, 1, func(b *ir.Builder) { mathKernel(b, ir.F64, lanes, native64) })
		add(fmt.Sprintf("storage_x%d", lanes), 64, 1, func(b *ir.Builder) { storageKernel(b, lanes) })
		add(fmt.Sprintf("bitcast_x%d", lanes), 64, 1, func(b *ir.Builder) { bitCastKernel(b, lanes) })
		add(fmt.Sprintf("half_storage_x%d", lanes), 64, 1, func(b *ir.Builder) { halfStorageKernel(b, lanes) })
		add(fmt.Sprintf("arrays_x%d", lanes), 16, 1, func(b *ir.Builder) { arrayKernel(b, lanes, false) })
	}
	add("math_f16", 64, 1, func(b *ir.Builder) { mathKernel(b, ir.F16, 1, NativeMath()) })
	add("arrays_mixed", 16, 1, func(b *ir.Builder) { arrayKernel(b, 4, true) })
	add("control", 32, 2, controlKernel)
	add("atomics_u32", 64, 1, func(b *ir.Builder) { atomicKernel(b, ir.U32) })
	add("atomics_i32", 64, 1, func(b *ir.Builder) { atomicKernel(b, ir.I32) })
	add("reduce", 64, 1, reduceKernel)
	add("subgroups", 128, 1, subgroupKernel)
	add("constants", 1, 1, constantKernel)
	add("empty", 1, 1, func(*ir.Builder) {})
	return out
}

// store writes v to element i*lanes of a new buffer, Bool as a U32 of 0 or 1.
func store(b *ir.Builder, n int, i, v ir.Value) {
	if v.Type.Kind == ir.Bool {
		v = b.Convert(v, ir.U32)
	}
	m := b.Buffer(fmt.Sprintf("out%d", n), v.Type.Kind, ir.Write)
	b.Store(m, b.Mul(i, b.U32(uint32(v.Type.Lanes))), v)
}

// fold adds up values of one type, so that a kernel has few buffers.
func fold(b *ir.Builder, op func(x, y ir.Value) ir.Value, vs []ir.Value) ir.Value {
	acc := vs[0]
	for _, v := range vs[1:] {
		acc = op(acc, v)
	}
	return acc
}

func arithKernel(b *ir.Builder, kind ir.Kind, lanes int) {
	in := b.Buffer("in", kind, ir.Read)
	i := b.GlobalID(0)
	x := b.Named(b.Load(in, b.Mul(i, b.U32(uint32(lanes))), lanes), "x")
	y := b.Load(in, b.U32(0), lanes)
	vs := []ir.Value{b.Add(x, y), b.Sub(x, y), b.Mul(x, y), b.Div(x, y), b.Min(x, y), b.Max(x, y), b.Mul(x, b.Const(ir.Scalar(kind), 3))}
	if kind != ir.U32 {
		vs = append(vs, b.Neg(x), b.Abs(y))
	}
	if kind.IsFloat() {
		vs = append(vs, b.Fma(x, y, x))
	} else {
		one := b.ConstLike(x, 1)
		vs = append(vs, b.Rem(x, y), b.And(x, y), b.Or(x, y), b.Xor(x, y), b.Not(x), b.Shl(x, one), b.Shr(x, one))
	}
	if kind == ir.U32 {
		vs = append(vs, b.MulHi(x, y))
	}
	cs := []ir.Value{b.Eq(x, y), b.Ne(x, y), b.Lt(x, y), b.Le(x, y), b.Gt(x, y), b.Ge(x, y)}
	cs = append(cs, b.Not(cs[0]), b.And(cs[1], cs[2]), b.Or(cs[3], cs[4]), b.Eq(cs[0], cs[5]), b.Ne(cs[1], b.Bool(true)))
	c := fold(b, b.Xor, cs)
	store(b, 0, i, b.Select(c, fold(b, b.Add, vs), b.Splat(b.Extract(x, lanes-1), lanes)))
	store(b, 1, i, c)
}

func convertKernel(b *ir.Builder, kind ir.Kind, lanes int) {
	in := b.Buffer("in", kind, ir.Read)
	i := b.Add(b.GlobalID(0), b.Mul(b.GlobalID(1), b.NumGroups(0)))
	x := b.Load(in, b.Mul(i, b.U32(uint32(lanes))), lanes)
	for n, to := range []ir.Kind{ir.Bool, ir.I32, ir.U32, ir.I64, ir.F16, ir.F32, ir.F64} {
		y := b.Convert(x, to)
		store(b, n, i, y)
		if to == ir.Bool {
			store(b, 7, i, b.Convert(y, kind))
		}
	}
}

func mathKernel(b *ir.Builder, kind ir.Kind, lanes int, ops ir.MathSet) {
	in := b.Buffer("in", kind, ir.Read)
	i := b.LinearID()
	x := b.Load(in, b.Mul(i, b.U32(uint32(lanes))), lanes)
	var vs []ir.Value
	for o := ir.OpSqrt; o.IsMath(); o++ {
		switch {
		case !ops.Has(o):
		case o == ir.OpPow || o == ir.OpAtan2:
			vs = append(vs, b.Math(o, x, x))
		default:
			vs = append(vs, b.Math(o, x))
		}
	}
	store(b, 0, i, fold(b, b.Add, vs))
}

// storageKernel moves the storage kinds: U8, U16 and Bool as U8.
func storageKernel(b *ir.Builder, lanes int) {
	u8 := b.Buffer("u8", ir.U8, ir.ReadWrite)
	u16 := b.Buffer("u16", ir.U16, ir.ReadWrite)
	i := b.Mul(b.GlobalID(0), b.U32(uint32(lanes)))
	x, y := b.Load(u8, i, lanes), b.Load(u16, i, lanes)
	store(b, 0, b.GlobalID(0), b.Add(b.Convert(x, ir.I32), b.Convert(y, ir.I32)))
	store(b, 1, b.GlobalID(0), b.Add(b.Convert(x, ir.F32), b.Convert(y, ir.F32)))
	store(b, 2, b.GlobalID(0), b.Convert(x, ir.I64))
	sel := b.Select(b.Convert(x, ir.Bool), b.Convert(b.Convert(y, ir.I32), ir.U8), b.ConstLike(x, 7))
	b.Store(u8, i, sel)
	b.Store(u8, i, b.Convert(b.Convert(x, ir.Bool), ir.U8))
	b.Store(u16, i, b.Convert(b.Convert(y, ir.F32), ir.U16))
	b.Store(u16, i, b.Convert(x, ir.U16))
	b.Store(u16, i, b.Convert(b.Convert(x, ir.I64), ir.U16))
}

func bitCastKernel(b *ir.Builder, lanes int) {
	i := b.GlobalID(0)
	at := b.Mul(i, b.U32(uint32(lanes)))
	f16, u16 := b.Buffer("f16", ir.F16, ir.ReadWrite), b.Buffer("u16", ir.U16, ir.ReadWrite)
	h := b.Load(f16, at, lanes)
	b.Store(u16, at, b.BitCast(h, ir.U16))
	b.Store(f16, at, b.BitCast(b.Load(u16, at, lanes), ir.F16))
	f, d := b.Convert(h, ir.F32), b.Convert(h, ir.F64)
	store(b, 0, i, b.Add(b.BitCast(f, ir.I32), b.BitCast(b.BitCast(f, ir.U32), ir.I32)))
	store(b, 1, i, b.BitCast(d, ir.I64))
	store(b, 2, i, b.BitCast(b.Convert(b.BitCast(f, ir.U32), ir.F32), ir.U32))
	store(b, 3, i, b.BitCast(b.Convert(f, ir.I64), ir.F64))
}

// halfStorageKernel uses F16 memory as ir.Lower leaves it on a device that has 16-bit storage and no F16 arithmetic.
func halfStorageKernel(b *ir.Builder, lanes int) {
	in, out := b.Buffer("in", ir.F16, ir.Read), b.Buffer("out", ir.F16, ir.Write)
	i := b.Mul(b.GlobalID(0), b.U32(uint32(lanes)))
	x := b.Emit(ir.OpLoad, ir.Vec(ir.F32, lanes), 0, in, i)
	b.Emit(ir.OpStore, ir.Type{}, 0, out, i, b.Add(x, b.ConstLike(x, 1)))
}

// arrayKernel uses workgroup and private arrays, and buffers with one or several widths.
func arrayKernel(b *ir.Builder, lanes int, mixed bool) {
	n := b.Param("n", ir.U32)
	buf := b.Buffer("buf", ir.F32, ir.ReadWrite)
	shared := b.SharedArray("tile", ir.F32, 16*lanes)
	private := b.PrivateArray("regs", ir.I32, 2*lanes)
	l := b.LocalID(0)
	at := b.Mul(l, b.U32(uint32(lanes)))
	b.Store(shared, at, b.Load(buf, at, lanes))
	b.Barrier()
	other := b.Mul(b.Sub(b.U32(15), l), b.U32(uint32(lanes)))
	x := b.Load(shared, other, lanes)
	b.Store(private, b.U32(0), b.Convert(x, ir.I32))
	b.Store(private, b.U32(uint32(lanes)), b.Convert(x, ir.I32))
	if mixed {
		b.Store(private, b.And(l, b.U32(1)), b.I32(7))
		x = b.Add(x, b.Load(shared, l, 1))
		x = b.Add(x, b.Load(buf, l, 1))
	}
	y := b.Load(private, b.Mul(b.And(l, b.U32(1)), b.U32(uint32(lanes))), lanes)
	b.If(b.Lt(l, n), func() { b.Store(buf, at, b.Add(x, b.Convert(y, ir.F32))) }, nil)
}

// controlKernel nests loops and branches, with variables and all ids.
func controlKernel(b *ir.Builder) {
	n, m, s := b.Param("n", ir.U32), b.Param("m", ir.I32), b.Param("scale", ir.F32)
	out := b.Buffer("out", ir.F32, ir.Write)
	acc := b.Named(b.Var(b.Const(ir.Vec(ir.F32, 4), 0)), "acc")
	flag := b.Var(b.Bool(false))
	b.For(b.LocalID(0), n, b.U32(32), func(i ir.Value) {
		b.Named(i, "i")
		b.If(b.Eq(b.Rem(i, b.U32(3)), b.U32(0)), func() {
			b.For(b.I32(-4), m, b.I32(2), func(j ir.Value) {
				b.If(b.Lt(j, b.I32(0)), func() { b.Set(flag, b.Not(b.Get(flag))) }, nil)
				b.Set(acc, b.Add(b.Get(acc), b.Mul(b.Convert(j, ir.F32), s)))
			})
		}, func() {
			local := b.Var(b.Convert(i, ir.F32))
			b.Range(b.U32(4), func(ir.Value) { b.Set(local, b.Mul(b.Get(local), s)) })
			v := b.Get(local)
			b.Set(acc, b.Add(b.Get(acc), b.Vec(v, s, v, s)))
		})
		b.If(b.Get(flag), func() {}, func() { b.Set(acc, b.Neg(b.Get(acc))) })
		b.If(b.Get(flag), func() {}, nil)
	})
	v := b.Get(acc)
	sum := b.Add(b.Add(b.Extract(v, 0), b.Extract(v, 1)), b.Add(b.Extract(v, 2), b.Extract(v, 3)))
	id := b.Add(b.GroupID(1), b.Add(b.LocalID(1), b.LinearGroup()))
	b.If(b.Lt(id, n), func() { b.Store(out, b.GlobalID(0), b.Select(b.Get(flag), sum, s)) }, nil)
}

func atomicKernel(b *ir.Builder, kind ir.Kind) {
	buf := b.Buffer("buf", kind, ir.ReadWrite)
	shared := b.SharedArray("shared", kind, 4)
	l := b.LocalID(0)
	b.If(b.Lt(l, b.U32(4)), func() { b.Store(shared, l, b.Const(ir.Scalar(kind), 0)) }, nil)
	b.Barrier()
	v := b.Convert(l, kind)
	for _, m := range []*ir.Mem{buf, shared} {
		for _, op := range []ir.Op{ir.OpAtomicAdd, ir.OpAtomicMin, ir.OpAtomicMax, ir.OpAtomicAnd, ir.OpAtomicOr, ir.OpAtomicXchg} {
			v = b.Atomic(op, m, b.U32(1), v)
		}
		v = b.Atomic(ir.OpAtomicCAS, m, b.U32(2), v, b.Const(v.Type, 5))
	}
	b.Barrier()
	b.Atomic(ir.OpAtomicAdd, buf, b.U32(0), v)
}

// reduceKernel sums 64 elements by a tree in workgroup memory.
func reduceKernel(b *ir.Builder) {
	b.SetOps("sum")
	in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	n := b.Param("n", ir.U32)
	part := b.SharedArray("part", ir.F32, 64)
	l := b.Named(b.LocalID(0), "lane")
	acc := b.Named(b.Var(b.F32(0)), "acc")
	b.For(l, n, b.U32(64), func(i ir.Value) {
		at := b.Add(b.Mul(b.LinearGroup(), n), i)
		b.Set(acc, b.Add(b.Get(acc), b.Load(in, at, 1)))
	})
	b.Store(part, l, b.Get(acc))
	b.Barrier()
	for half := uint32(32); half > 0; half /= 2 {
		b.If(b.Lt(l, b.U32(half)), func() {
			b.Store(part, l, b.Add(b.Load(part, l, 1), b.Load(part, b.Add(l, b.U32(half)), 1)))
		}, nil)
		b.Barrier()
	}
	b.If(b.Eq(l, b.U32(0)), func() { b.Store(out, b.LinearGroup(), b.Load(part, b.U32(0), 1)) }, nil)
}

// subgroupKernel sums in subgroups of 32.
func subgroupKernel(b *ir.Builder) {
	b.SetSubgroup(32)
	in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	x := b.Load(in, b.GlobalID(0), 1)
	for mask := 1; mask < 32; mask *= 2 {
		x = b.Add(x, b.ShuffleXor(x, mask))
	}
	n := b.BitCast(b.ShuffleXor(b.ShuffleXor(b.Convert(b.LocalID(0), ir.I32), 5), 31), ir.U32)
	b.Store(out, b.Add(n, b.Mul(b.GroupID(0), b.U32(128))), x)
}

// constantKernel has constants that are hard to print.
func constantKernel(b *ir.Builder) {
	floats := map[ir.Kind][]uint64{
		ir.F16: {0x0001, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0x7e01, 0x8000},
		ir.F32: {0x00000001, 0x3dcccccd, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00001, 0x80000000},
		ir.F64: {1, 0x3fb999999999999a, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 1 << 63},
	}
	n := 0
	for _, kind := range []ir.Kind{ir.F16, ir.F32, ir.F64} {
		for _, bits := range floats[kind] {
			store(b, n, b.U32(0), b.ConstBits(ir.Scalar(kind), bits))
			n++
		}
	}
	store(b, n, b.U32(1), b.ConstBits(ir.Vec(ir.I64, 4), 0x8000000000000000))
	store(b, n+1, b.U32(1), b.ConstBits(ir.Vec(ir.I32, 2), 0x80000000))
	store(b, n+2, b.U32(1), b.Splat(b.U32(0xffffffff), 4))
	store(b, n+3, b.U32(1), b.Bool(true))
}
