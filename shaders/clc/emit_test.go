package clc

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anygpu/anygpu/shaders/ir"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// kernels are built by functions that return a finished kernel; each has a golden text testdata/<name>.cl.
var kernels = map[string]func(b *ir.Builder){
	// A fused elementwise chain over vectors with a guard.
	"saxpy": func(b *ir.Builder) {
		b.SetOps("mul", "add")
		x, y := b.Buffer("x", ir.F32, ir.Read), b.Buffer("y", ir.F32, ir.ReadWrite)
		n, alpha := b.Param("n", ir.U32), b.Param("alpha", ir.F32)
		i := b.Named(b.Mul(b.LinearID(), b.U32(4)), "i")
		b.If(b.Lt(i, n), func() {
			b.Store(y, i, b.Named(b.Fma(b.Load(x, i, 4), alpha, b.Load(y, i, 4)), "axpy"))
		}, nil)
	},
	// Half memory without half values: converting loads and stores, scalar and vector, in all spaces.
	"half_storage": func(b *ir.Builder) {
		x, y := b.Buffer("x", ir.F16, ir.Read), b.Buffer("y", ir.F16, ir.Write)
		tile, reg := b.SharedArray("tile", ir.F16, 64), b.PrivateArray("reg", ir.F16, 8)
		i := b.LocalID(0)
		one := b.Emit(ir.OpLoad, ir.Scalar(ir.F32), 0, x, i)
		b.Emit(ir.OpStore, ir.Type{}, 0, tile, i, one)
		b.Barrier()
		eight := b.Emit(ir.OpLoad, ir.Vec(ir.F32, 8), 0, tile, b.U32(8))
		b.Emit(ir.OpStore, ir.Type{}, 0, reg, b.U32(0), eight)
		b.Emit(ir.OpStore, ir.Type{}, 0, y, i, b.Emit(ir.OpLoad, ir.Scalar(ir.F32), 0, reg, b.U32(3)))
		b.Emit(ir.OpStore, ir.Type{}, 0, y, b.U32(64), eight)
	},
	// Half values, for devices with cl_khr_fp16.
	"half_arith": func(b *ir.Builder) {
		x, y := b.Buffer("x", ir.F16, ir.Read), b.Buffer("y", ir.F16, ir.Write)
		v := b.Load(x, b.U32(0), 4)
		v = b.Select(b.Lt(v, b.ConstLike(v, 0.5)), b.Exp(v), b.Mul(v, b.ConstLike(v, -2)))
		b.Store(y, b.U32(0), v)
		b.Store(y, b.U32(4), b.Convert(b.Convert(b.Extract(v, 1), ir.I32), ir.F16))
	},
	// Masks: comparisons of every width, boolean algebra, conversions from and to Bool.
	"masks": func(b *ir.Builder) {
		f, d, l := b.Buffer("f", ir.F32, ir.ReadWrite), b.Buffer("d", ir.F64, ir.Read), b.Buffer("l", ir.I64, ir.ReadWrite)
		u := b.Buffer("u", ir.U8, ir.ReadWrite)
		i := b.U32(0)
		vf, vd, vl, vu := b.Load(f, i, 4), b.Load(d, i, 4), b.Load(l, i, 4), b.Load(u, i, 4)
		m := b.And(b.Lt(vf, b.ConstLike(vf, 1)), b.Not(b.Ge(vd, b.ConstLike(vd, 2))))
		m = b.Xor(m, b.Or(b.Eq(vl, b.ConstLike(vl, 3)), b.Convert(vu, ir.Bool)))
		m = b.Named(b.Eq(m, b.ConstBits(m.Type, 1)), "mask")
		b.Store(f, i, b.Select(m, vf, b.Convert(m, ir.F32)))
		b.Store(l, i, b.Select(m, vl, b.Convert(m, ir.I64)))
		b.Store(u, i, b.Select(m, vu, b.Convert(m, ir.U8)))
		s := b.Not(b.Extract(m, 2))
		b.Store(u, b.U32(4), b.Convert(b.Vec(s, b.Bool(true)), ir.U8))
		b.Store(f, b.U32(4), b.Convert(b.Convert(b.Splat(s, 2), ir.I32), ir.F32))
	},
	// Constants that C has no plain literal for.
	"constants": func(b *ir.Builder) {
		f, d, l, n := b.Buffer("f", ir.F32, ir.Write), b.Buffer("d", ir.F64, ir.Write), b.Buffer("l", ir.I64, ir.Write), b.Buffer("n", ir.I32, ir.Write)
		for i, v := range []float64{0.1, -1, math.Copysign(0, -1), math.Inf(1), math.NaN(), 1e-45, math.MaxFloat32} {
			b.Store(f, b.U32(uint32(i)), b.F32(v))
			b.Store(d, b.U32(uint32(i)), b.Const(ir.Scalar(ir.F64), v))
		}
		b.Store(l, b.U32(0), b.ConstBits(ir.Scalar(ir.I64), 1<<63))
		b.Store(l, b.U32(2), b.Const(ir.Vec(ir.I64, 2), -5))
		b.Store(n, b.U32(0), b.I32(math.MinInt32))
		b.Store(n, b.U32(1), b.I32(-7))
	},
	// Neighbours at any address are one access, if they are all there and in order, and nothing happens between the stores.
	"neighbours": func(b *ir.Builder) {
		x, h, y := b.Buffer("x", ir.F32, ir.Read), b.Buffer("h", ir.F16, ir.Read), b.Buffer("y", ir.F32, ir.ReadWrite)
		i := b.Named(b.LinearID(), "i")
		next := func(n uint32) ir.Value { return b.Add(i, b.U32(n)) }
		one := func(m *ir.Mem, n uint32) ir.Value { return b.Load(m, next(n), 1) }
		v := b.Vec(one(x, 3), one(x, 4), b.Load(x, b.Add(next(3), b.U32(2)), 1), one(x, 6))
		var halves []ir.Value
		for n := range uint32(4) {
			halves = append(halves, b.Emit(ir.OpLoad, ir.Scalar(ir.F32), 0, h, next(n+1)))
		}
		v = b.Add(v, b.Vec(halves...))
		v = b.Add(v, b.Vec(one(x, 0), one(x, 1), one(x, 3), one(x, 2)))
		v = b.Add(v, b.Vec(one(y, 0), one(y, 1), one(y, 2), one(y, 3))) // a memory that is written, too
		for n := range 4 {
			b.Store(y, next(uint32(n)), b.Extract(v, n))
		}
		b.Store(y, next(4), b.Extract(v, 0))
		b.Store(y, next(5), b.Extract(v, 1))
		b.Store(y, next(6), b.Load(y, next(5), 1))
		b.Store(y, next(6), b.Extract(v, 2))
		b.Store(y, next(7), b.Extract(v, 3))
	},
	// A tree reduction in workgroup memory, a loop with a variable, atomics, and wrapping integer arithmetic.
	"reduce": func(b *ir.Builder) {
		x, out := b.Buffer("x", ir.I32, ir.Read), b.Buffer("out", ir.I32, ir.ReadWrite)
		n := b.Param("n", ir.U32)
		tile := b.SharedArray("tile", ir.I32, 64)
		lid := b.LocalID(0)
		acc := b.Named(b.Var(b.I32(0)), "acc")
		b.For(lid, n, b.U32(64), func(i ir.Value) { b.Set(acc, b.Add(b.Get(acc), b.Load(x, i, 1))) })
		b.Store(tile, lid, b.Get(acc))
		b.Barrier()
		for s := uint32(32); s >= 16; s /= 2 {
			b.If(b.Lt(lid, b.U32(s)), func() {
				b.Store(tile, lid, b.Add(b.Load(tile, lid, 1), b.Load(tile, b.Add(lid, b.U32(s)), 1)))
			}, nil)
			b.Barrier()
		}
		b.If(b.Eq(lid, b.U32(0)), func() {
			old := b.Atomic(ir.OpAtomicAdd, out, b.U32(0), b.Load(tile, lid, 1))
			b.Atomic(ir.OpAtomicCAS, out, b.U32(1), old, b.Abs(b.Neg(old)))
		}, func() { b.Atomic(ir.OpAtomicMax, out, b.U32(2), b.Div(b.Get(acc), b.I32(3))) })
	},
}

func build(t *testing.T, name string, f func(*ir.Builder)) *ir.Kernel {
	t.Helper()
	b := ir.NewBuilder(name, 64, 1, 1)
	f(b)
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestGolden(t *testing.T) {
	for name, f := range kernels {
		t.Run(name, func(t *testing.T) {
			k := build(t, name, f)
			got, err := Emit(k, Options{})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".cl")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("text changed (-want +got); run with -update if that is intended:\n%s", d)
			}
			if again, _ := Emit(k, Options{}); again != got {
				t.Error("two emissions differ")
			}
		})
	}
}

func TestOptions(t *testing.T) {
	k := build(t, "saxpy", kernels["saxpy"])
	plain, err := Emit(k, Options{})
	if err != nil {
		t.Fatal(err)
	}
	split, err := Emit(k, Options{SplitFma: true, Annotate: true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plain, "fma(") || strings.Contains(split, "fma(") {
		t.Error("SplitFma must decide whether fma is called")
	}
	if strings.Contains(plain, "// %") || !strings.Contains(split, "// %") {
		t.Error("Annotate must decide whether the IR is printed")
	}
}

func TestLanewise(t *testing.T) {
	k := build(t, "trig", func(b *ir.Builder) {
		x, h := b.Buffer("x", ir.F32, ir.ReadWrite), b.Buffer("h", ir.F16, ir.ReadWrite)
		v := b.Named(b.Load(x, b.U32(0), 2), "v")
		b.Store(x, b.U32(0), b.Atan2(v, b.Sin(v)))
		b.Store(h, b.U32(0), b.Sin(b.Load(h, b.U32(0), 2)))
	})
	text, err := Emit(k, Options{Lanewise: ir.MathOps(ir.OpSin, ir.OpAtan2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(float2)(sin(v1_v.s0), sin(v1_v.s1))", "(float2)(atan2(v1_v.s0, v3.s0), atan2(v1_v.s1, v3.s1))", "convert_half2((float2)(sin(convert_float2("} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestNames(t *testing.T) {
	k := build(t, "exp.f16 /x", func(b *ir.Builder) {
		x := b.Buffer("int", ir.F32, ir.ReadWrite)
		b.Store(x, b.U32(0), b.Named(b.F32(1), "a-b*/\n"))
	})
	if got := EntryPoint(k); got != "k_exp_f16__x" {
		t.Errorf("entry point %q", got)
	}
	text, err := Emit(k, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "_a_b___ = 0x1p+00f") || !strings.Contains(text, "g0_int[") {
		t.Errorf("names are not made into identifiers:\n%s", text)
	}
}

func TestRejects(t *testing.T) {
	cases := map[string]struct {
		build func(b *ir.Builder)
		want  string
	}{
		"exchange": {func(b *ir.Builder) {
			b.SetSubgroup(b.Local()[0])
			b.Store(b.Buffer("x", ir.U32, ir.Write), b.LocalID(0), b.ShuffleXor(b.LocalID(0), 1))
		}, "exchange within a subgroup"},
		"bf16 memory": {func(b *ir.Builder) { b.Buffer("w", ir.BF16, ir.Read) }, "memory w holds bf16"},
		"bf16 value": {func(b *ir.Builder) {
			x := b.Buffer("x", ir.U16, ir.Write)
			b.Store(x, b.U32(0), b.BitCast(b.Const(ir.Scalar(ir.BF16), 1), ir.U16))
		}, "bf16 value"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Emit(build(t, "bad", c.build), Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "bad") {
				t.Errorf("got %v, want an error with the kernel's name and %q", err, c.want)
			}
		})
	}
}

func FuzzScalarConst(f *testing.F) {
	for _, bits := range []uint64{0, 1, 0x7f800000, 0x80000000, 0x7fc00001, 0x3dcccccd, 1 << 63, ^uint64(0)} {
		f.Add(bits)
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		for k := range scalarNames {
			s := scalarConst(k, bits)
			if s == "" || strings.ContainsAny(s, " NI") {
				t.Errorf("%s %#x: %q is no C constant", k, bits, s)
			}
		}
	})
}
