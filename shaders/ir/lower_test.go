package ir_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// memoryKinds are the kinds of buffers that every device takes.
var memoryKinds = []ir.Kind{ir.U8, ir.U16, ir.I32, ir.U32, ir.I64, ir.F16, ir.BF16, ir.F32}

// devices are capabilities to lower to, from SwiftShader's up.
func devices() map[string]ir.Caps {
	m := map[string]ir.Caps{"swiftshader": swiftCaps()}
	add := func(name string, f func(c *ir.Caps)) {
		c := swiftCaps()
		f(&c)
		m[name] = c
	}
	add("f16 storage", func(c *ir.Caps) { c.F16Storage = true })
	add("f16 arithmetic", func(c *ir.Caps) { c.F16Arith = true; c.MaxLanes = 2 })
	add("f16 both", func(c *ir.Caps) { c.F16Storage, c.F16Arith, c.U8Storage = true, true, true })
	add("int64, scalars", func(c *ir.Caps) { c.I64 = true; c.MaxLanes = 1 })
	add("opencl", func(c *ir.Caps) {
		c.F16Storage, c.U8Storage, c.I64, c.F64 = true, true, true, true
		c.MaxLanes, c.NativeMath, c.NativeMath64 = 16, ir.OpenCLMath(), ir.OpenCLMath()
	})
	return m
}

// allowed checks that a lowered kernel has only what the device can do, as the documentation of Lower promises.
func allowed(k *ir.Kernel, c ir.Caps) error {
	kinds := map[ir.Kind]bool{ir.U8: c.U8Storage, ir.U16: c.F16Storage, ir.F16: c.F16Storage, ir.I64: c.I64, ir.F64: c.F64, ir.BF16: false}
	for _, m := range k.Mems {
		if ok, limited := kinds[m.Kind]; limited && !ok && !(m.Space != ir.Global && m.Kind == ir.F16 && c.F16Arith) {
			return fmt.Errorf("memory %s of %s", m.Name, m.Kind)
		}
	}
	uses := map[ir.Value][]*ir.Instr{}
	k.Walk(func(in *ir.Instr) {
		for _, a := range in.Args {
			uses[a] = append(uses[a], in)
		}
	})
	var err error
	k.Walk(func(in *ir.Instr) {
		bad := func(what string) {
			if err == nil {
				err = fmt.Errorf("%s: %s", in, what)
			}
		}
		if in.Type.Lanes > c.MaxLanes {
			bad("too wide")
		}
		native := c.NativeMath
		if in.Type.Kind == ir.F64 {
			native = c.NativeMath64
		}
		if in.Op.IsMath() && (!native.Has(in.Op) || in.Type.Kind == ir.F16) {
			bad("math function is not native")
		}
		switch in.Type.Kind {
		case ir.BF16:
			bad("bf16 value")
		case ir.I64:
			if !c.I64 {
				bad("i64 value")
			}
		case ir.F16:
			if !c.F16Arith {
				bad("f16 value")
			}
		case ir.U8, ir.U16:
			for _, u := range uses[in] {
				if !(in.Op == ir.OpLoad && u.Op == ir.OpConvert && u.Type.Kind == ir.U32 || in.Op == ir.OpConvert && u.Op == ir.OpStore) {
					bad("narrow value used by " + u.String())
				}
			}
			if in.Op != ir.OpLoad && in.Op != ir.OpConvert {
				bad("narrow value is computed")
			}
		}
		if in.Op == ir.OpConvert {
			from, to := in.Args[0].Type.Kind, in.Type.Kind
			core := func(k ir.Kind) bool { return k == ir.I32 || k == ir.U32 || k == ir.I64 || k == ir.F32 || k == ir.F64 }
			pair := func(narrow, wide ir.Kind) bool { return from == narrow && to == wide || from == wide && to == narrow }
			if !(core(from) && core(to)) && !pair(ir.F16, ir.F32) && !pair(ir.U8, ir.U32) && !pair(ir.U16, ir.U32) {
				bad("conversion")
			}
		}
	})
	return err
}

// randomBytes fills a buffer of n elements of kind with values of all sorts: special values, small ones, and any bits.
func randomBytes(r *rand.Rand, kind ir.Kind, n int) []byte {
	size := kind.Size()
	out := make([]byte, (n*size+3)/4*4)
	for i := range n {
		bits := r.Uint64()
		switch {
		case kind.IsFloat() && r.IntN(4) > 0:
			v := r.NormFloat64() * math.Exp2(float64(r.IntN(40)-16))
			if r.IntN(4) == 0 {
				v = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 0.5, 65504, 65520, 2147483648, -2147483648,
					4294967296, 9.3e18, 255.5, -0.75, 5.9604645e-08, 6.1e-5, 2147483520, 4294967040}[r.IntN(20)]
			}
			bits = ir.ConstBits(kind, v)
		case !kind.IsFloat() && r.IntN(2) == 0:
			bits = uint64(int64(r.IntN(600) - 300))
		case r.IntN(4) == 0:
			bits = []uint64{0, 1, ^uint64(0), 1 << 31, 1<<31 - 1, 1 << 63, 1<<63 - 1, 1 << 32, 1<<32 - 1, 1<<24 + 1, 1<<53 + 1}[r.IntN(11)]
		case r.IntN(3) == 0:
			bits >>= r.IntN(64)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], bits)
		copy(out[i*size:], b[:size])
	}
	return out
}

// sameBits compares buffers of kind; any NaN is as good as another.
func sameBits(kind ir.Kind, n int, want, got []byte) error {
	size := kind.Size()
	for i := range n {
		var w, g [8]byte
		copy(w[:], want[i*size:(i+1)*size])
		copy(g[:], got[i*size:(i+1)*size])
		wb, gb := binary.LittleEndian.Uint64(w[:]), binary.LittleEndian.Uint64(g[:])
		wf, gf := ir.ConstFloat(kind, wb), ir.ConstFloat(kind, gb)
		if wb != gb && !(kind.IsFloat() && math.IsNaN(wf) && math.IsNaN(gf)) {
			return fmt.Errorf("element %d is %v (%#x): want %v (%#x)", i, gf, gb, wf, wb)
		}
	}
	return nil
}

// agree runs the kernel and its lowerings on the same buffers and compares all written buffers. The lowered kernels run
// in the checking executor.
func agree(t *testing.T, k *ir.Kernel, groups int, bufs [][]byte, params ...uint32) {
	t.Helper()
	run := func(k *ir.Kernel) [][]byte {
		out := make([][]byte, len(bufs))
		for i, b := range bufs {
			out[i] = append([]byte(nil), b...)
		}
		if err := interp.Check(k, [3]int{groups, 1, 1}, out, params, interp.CheckOptions{}); err != nil {
			t.Fatalf("%v\n%s", err, k)
		}
		return out
	}
	want := run(k)
	for name, caps := range devices() {
		l := mustLower(t, k, caps)
		if err := allowed(l, caps); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, l)
		}
		got := run(l)
		for _, m := range k.Globals() {
			if err := sameBits(m.Kind, len(bufs[m.Index])/m.Kind.Size(), want[m.Index], got[m.Index]); err != nil {
				t.Errorf("%s: buffer %s: %v\n%s", name, m.Name, err, k)
				return
			}
		}
	}
}

// mapKernel stores f of the elements of inputs of the given kinds, lanes at a time.
func mapKernel(t *testing.T, lanes int, out ir.Kind, in []ir.Kind, f func(b *ir.Builder, xs []ir.Value) ir.Value) *ir.Kernel {
	b := ir.NewBuilder("map", 8, 1, 1)
	var mems []*ir.Mem
	for i, kind := range in {
		mems = append(mems, b.Buffer(fmt.Sprintf("in%d", i), kind, ir.Read))
	}
	o := b.Buffer("out", out, ir.Write)
	index := b.Mul(b.GlobalID(0), b.U32(uint32(lanes)))
	var xs []ir.Value
	for _, m := range mems {
		xs = append(xs, b.Load(m, index, lanes))
	}
	b.Store(o, index, f(b, xs))
	return mustBuild(t, b)
}

// agreeMap builds a mapKernel and compares it with its lowerings on random data.
func agreeMap(t *testing.T, lanes int, out ir.Kind, in []ir.Kind, f func(b *ir.Builder, xs []ir.Value) ir.Value) {
	t.Helper()
	k := mapKernel(t, lanes, out, in, f)
	r := rand.New(rand.NewPCG(7, uint64(lanes)))
	const groups = 4
	n := groups * 8 * lanes
	var bufs [][]byte
	for _, kind := range in {
		bufs = append(bufs, randomBytes(r, kind, n))
	}
	agree(t, k, groups, append(bufs, randomBytes(r, out, n)))
}

func TestLowerConversions(t *testing.T) {
	lanes := []int{1, 2, 4, 8, 16}
	i := 0
	for _, from := range memoryKinds {
		for _, to := range memoryKinds {
			i++
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				for _, n := range []int{1, lanes[i%len(lanes)]} {
					agreeMap(t, n, to, []ir.Kind{from}, func(b *ir.Builder, xs []ir.Value) ir.Value { return b.Convert(xs[0], to) })
				}
			})
		}
		t.Run(from.String()+" to bool and back", func(t *testing.T) {
			agreeMap(t, 4, from, []ir.Kind{from}, func(b *ir.Builder, xs []ir.Value) ir.Value {
				return b.Convert(b.Convert(xs[0], ir.Bool), from)
			})
		})
	}
}

// TestLowerSaturation compares with Go's own arithmetic, not with another execution.
func TestLowerSaturation(t *testing.T) {
	saturate := func(x float64, lo, hi float64) float64 {
		if x != x {
			return 0
		}
		return math.Trunc(math.Max(lo, math.Min(hi, x)))
	}
	xs := append(append([]float32(nil), specials...), 127.5, 128, 255, 255.99, 256, 65535.5, 65536, 2147483648, 2147483520, -2147483648, -2147483904,
		4294967296, 4294967040, 9223372036854775808, 9223371487098961920, -9223372036854775808, -0.99, 123456789, -123456789, 5e9, -5e9)
	for len(xs)%8 != 0 {
		xs = append(xs, 7)
	}
	bounds := map[ir.Kind][2]float64{ir.U8: {0, 255}, ir.U16: {0, 65535}, ir.I32: {math.MinInt32, math.MaxInt32}, ir.U32: {0, math.MaxUint32}}
	for kind, lim := range bounds {
		k := mapKernel(t, 1, kind, []ir.Kind{ir.F32}, func(b *ir.Builder, xs []ir.Value) ir.Value { return b.Convert(xs[0], kind) })
		l := mustLower(t, k, swiftCaps())
		out := make([]byte, len(xs)*4)
		if err := interp.Check(l, [3]int{len(xs) / 8, 1, 1}, [][]byte{floatBytes(xs), out[:len(xs)*kind.Size()]}, nil, interp.CheckOptions{}); err != nil {
			t.Fatal(err)
		}
		for i, x := range xs {
			var w [8]byte
			copy(w[:], out[i*kind.Size():(i+1)*kind.Size()])
			got := ir.ConstFloat(kind, binary.LittleEndian.Uint64(w[:]))
			if want := saturate(float64(x), lim[0], lim[1]); got != want {
				t.Errorf("%v to %s is %v: want %v", x, kind, got, want)
			}
		}
	}
}

func TestLowerInt64(t *testing.T) {
	two := []ir.Kind{ir.I64, ir.I64}
	nonzero := func(b *ir.Builder, y ir.Value) ir.Value {
		return b.Select(b.Eq(y, b.ConstLike(y, 0)), b.ConstLike(y, 3), y)
	}
	amount := func(b *ir.Builder, y ir.Value) ir.Value { return b.And(y, b.ConstLike(y, 63)) }
	type fn = func(b *ir.Builder, x, y ir.Value) ir.Value
	ops := []struct {
		name string
		f    fn
	}{
		{"add", (*ir.Builder).Add}, {"sub", (*ir.Builder).Sub}, {"mul", (*ir.Builder).Mul}, {"min", (*ir.Builder).Min},
		{"max", (*ir.Builder).Max}, {"and", (*ir.Builder).And}, {"or", (*ir.Builder).Or}, {"xor", (*ir.Builder).Xor},
		{"div", func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Div(x, nonzero(b, y)) }},
		{"rem", func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Rem(x, nonzero(b, y)) }},
		{"shl", func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Shl(x, amount(b, y)) }},
		{"shr", func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Shr(x, amount(b, y)) }},
		{"neg abs not", func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add(b.Neg(x), b.Abs(b.Not(y))) }},
		{"select", func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Select(b.Lt(x, y), x, b.ConstLike(y, -5)) }},
		{"vectors", func(b *ir.Builder, x, y ir.Value) ir.Value {
			z := b.Extract(y, y.Type.Lanes-1)
			if x.Type.Lanes == 1 {
				return b.Add(x, z)
			}
			return b.Add(b.Splat(z, x.Type.Lanes), b.Splat(b.Extract(b.Vec(b.Extract(x, 0), z), 1), x.Type.Lanes))
		}},
		{"loop", func(b *ir.Builder, x, y ir.Value) ir.Value {
			v := b.Var(x)
			b.Range(b.U32(5), func(i ir.Value) {
				b.If(b.Lt(b.Extract(b.Get(v), 0), b.Extract(y, 0)), func() { b.Set(v, b.Add(b.Get(v), b.Convert(i, ir.I64))) },
					func() { b.Set(v, b.Sub(b.Get(v), y)) })
			})
			return b.Get(v)
		}},
	}
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			for _, lanes := range []int{1, 2, 8} {
				agreeMap(t, lanes, ir.I64, two, func(b *ir.Builder, xs []ir.Value) ir.Value { return op.f(b, xs[0], xs[1]) })
			}
		})
	}
	for _, cmp := range []fn{(*ir.Builder).Eq, (*ir.Builder).Ne, (*ir.Builder).Lt, (*ir.Builder).Le, (*ir.Builder).Gt, (*ir.Builder).Ge} {
		agreeMap(t, 4, ir.U8, two, func(b *ir.Builder, xs []ir.Value) ir.Value {
			low := func(x ir.Value) ir.Value { return b.And(x, b.ConstLike(x, 3)) } // so that some are equal
			return b.Convert(b.Xor(cmp(b, xs[0], xs[1]), cmp(b, low(xs[0]), low(xs[1]))), ir.U8)
		})
	}
}

func TestLowerF16Arithmetic(t *testing.T) {
	two := []ir.Kind{ir.F16, ir.F16}
	for name, f := range map[string]func(b *ir.Builder, x, y ir.Value) ir.Value{
		"add": (*ir.Builder).Add, "sub": (*ir.Builder).Sub, "mul": (*ir.Builder).Mul, "div": (*ir.Builder).Div, "min": (*ir.Builder).Min,
		"max":   (*ir.Builder).Max,
		"signs": func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Sub(b.Neg(x), b.Abs(y)) },
		"chain": func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Mul(b.Add(x, b.ConstLike(x, 1.5)), b.Sub(y, x)) },
		"compare": func(b *ir.Builder, x, y ir.Value) ir.Value {
			return b.Select(b.Le(x, y), b.Convert(b.Ge(x, y), ir.F16), b.ConstLike(x, -65504))
		},
		"floor": func(b *ir.Builder, x, _ ir.Value) ir.Value { return b.Floor(x) },
		"bits": func(b *ir.Builder, x, y ir.Value) ir.Value {
			finite := b.Select(b.IsFinite(x), x, b.ConstLike(x, 2))
			return b.BitCast(b.BitCast(b.BitCast(finite, ir.U16), ir.BF16), ir.F16)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lanes := range []int{1, 2, 16} {
				agreeMap(t, lanes, ir.F16, two, func(b *ir.Builder, xs []ir.Value) ir.Value { return f(b, xs[0], xs[1]) })
			}
		})
	}
}

// TestLowerMovesNarrowValues takes values of storage kinds through everything that they may go through.
func TestLowerMovesNarrowValues(t *testing.T) {
	for _, kind := range []ir.Kind{ir.U8, ir.U16, ir.BF16, ir.F16} {
		t.Run(kind.String(), func(t *testing.T) {
			for _, lanes := range []int{2, 4, 16} {
				agreeMap(t, lanes, kind, []ir.Kind{kind, kind, ir.F32}, func(b *ir.Builder, xs []ir.Value) ir.Value {
					v := b.Var(xs[0])
					b.If(b.Gt(b.Extract(xs[2], 0), b.F32(0)), func() { b.Set(v, b.Select(b.Lt(xs[2], b.ConstLike(xs[2], 1)), xs[1], b.Get(v))) },
						func() { b.Set(v, b.Splat(b.Extract(xs[1], 1), lanes)) })
					parts := []ir.Value{b.Const(ir.Scalar(kind), 3)}
					for i := 1; i < lanes; i++ {
						parts = append(parts, b.Extract(b.Get(v), i))
					}
					return b.Vec(parts...)
				})
			}
		})
	}
}

// TestLowerPackedNeighbours has every invocation write one element of a word that four share, and then read its neighbour's.
func TestLowerPackedNeighbours(t *testing.T) {
	for _, kind := range []ir.Kind{ir.U8, ir.U16, ir.F16, ir.BF16} {
		b := ir.NewBuilder("neighbours", 32, 1, 1)
		in, out, back := b.Buffer("in", kind, ir.Read), b.Buffer("out", kind, ir.ReadWrite), b.Buffer("back", kind, ir.Write)
		i := b.GlobalID(0)
		n := b.U32(61) // the last word of a byte buffer has one element
		b.If(b.Lt(i, n), func() { b.Store(out, b.Sub(b.Sub(n, b.U32(1)), i), b.Load(in, i, 1)) }, nil)
		b.Barrier()
		b.If(b.Lt(b.LocalID(0), b.U32(28)), func() {
			b.If(b.Eq(b.GroupID(0), b.U32(0)), func() {
				j := b.Sub(b.U32(60), b.Xor(i, b.U32(1)))
				b.Store(back, i, b.Load(out, j, 1))
			}, nil)
		}, nil)
		r := rand.New(rand.NewPCG(3, uint64(kind)))
		agree(t, mustBuild(t, b), 2, [][]byte{randomBytes(r, kind, 64), randomBytes(r, kind, 64), randomBytes(r, kind, 64)})
	}
}

// TestLowerArrays uses shared and private arrays of the kinds that change.
func TestLowerArrays(t *testing.T) {
	for _, kind := range []ir.Kind{ir.F16, ir.I64} {
		b := ir.NewBuilder("arrays", 16, 1, 1)
		in, out := b.Buffer("in", kind, ir.Read), b.Buffer("out", kind, ir.Write)
		sh, priv := b.SharedArray("sh", kind, 64), b.PrivateArray("priv", kind, 4)
		i := b.Mul(b.LocalID(0), b.U32(4))
		b.Store(sh, i, b.Load(in, b.Mul(b.GlobalID(0), b.U32(4)), 4))
		b.Barrier()
		other := b.Xor(i, b.U32(4))
		for j := range uint32(4) {
			x := b.Load(sh, b.Add(other, b.U32(3-j)), 1)
			b.Store(priv, b.U32(j), b.Add(x, b.ConstLike(x, 1)))
		}
		b.Store(out, b.Mul(b.GlobalID(0), b.U32(4)), b.Load(priv, b.U32(0), 4))
		r := rand.New(rand.NewPCG(4, uint64(kind)))
		agree(t, mustBuild(t, b), 3, [][]byte{randomBytes(r, kind, 192), randomBytes(r, kind, 192)})
	}
}

func TestLowerF64(t *testing.T) {
	k := mapKernel(t, 2, ir.F64, []ir.Kind{ir.F64}, func(b *ir.Builder, xs []ir.Value) ir.Value {
		x := b.Sqrt(xs[0])
		for _, kind := range []ir.Kind{ir.I32, ir.U32, ir.I64, ir.F16, ir.BF16, ir.U8, ir.Bool} {
			x = b.Add(x, b.Convert(b.Convert(xs[0], kind), ir.F64))
		}
		return x
	})
	caps := ir.InterpCaps()
	caps.NativeMath, caps.NativeMath64 = ir.VulkanMath(), ir.VulkanMath()
	l := mustLower(t, k, caps)
	in := randomBytes(rand.New(rand.NewPCG(5, 5)), ir.F64, 16)
	want, got := make([]byte, 128), make([]byte, 128)
	for k, out := range map[*ir.Kernel][]byte{k: want, l: got} {
		if err := interp.Check(k, [3]int{1, 1, 1}, [][]byte{in, out}, nil, interp.CheckOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sameBits(ir.F64, 16, want, got); err != nil {
		t.Error(err)
	}
}

func TestLowerErrors(t *testing.T) {
	f64 := func(t *testing.T) *ir.Kernel {
		return mapKernel(t, 1, ir.F64, []ir.Kind{ir.F64}, func(b *ir.Builder, xs []ir.Value) ir.Value { return b.Exp(xs[0]) })
	}
	plain := func(t *testing.T) *ir.Kernel {
		b := ir.NewBuilder("plain", 16, 8, 2)
		out := b.Buffer("out", ir.F32, ir.Write)
		sh := b.SharedArray("sh", ir.F16, 512)
		b.Store(sh, b.LocalID(0), b.Const(ir.Scalar(ir.F16), 1))
		b.Barrier()
		b.Store(out, b.GlobalID(0), b.Convert(b.Load(sh, b.LocalID(0), 1), ir.F32))
		return mustBuild(t, b)
	}
	exchange := func(t *testing.T) *ir.Kernel {
		b := ir.NewBuilder("exchange", 32, 1, 1)
		b.SetSubgroup(8)
		b.Store(b.Buffer("out", ir.U32, ir.Write), b.GlobalID(0), b.ShuffleXor(b.LocalID(0), 3))
		return mustBuild(t, b)
	}
	cases := []struct {
		name  string
		build func(*testing.T) *ir.Kernel
		caps  func(c *ir.Caps)
		is    error
		want  []string
	}{
		{"no f64", f64, func(c *ir.Caps) { c.F64 = false }, ir.ErrUnsupported, []string{"double precision", "in0"}},
		{"f64 math", f64, func(c *ir.Caps) { c.NativeMath64, c.I64 = ir.VulkanMath(), false }, ir.ErrUnsupported, []string{"64-bit integers", "exp of f64"}},
		{"invocations", plain, func(c *ir.Caps) { c.MaxInvocations = 128 }, ir.ErrLimit, []string{"invocations", "256", "128"}},
		{"dimension", plain, func(c *ir.Caps) { c.MaxLocal[2] = 1 }, ir.ErrLimit, []string{"dimension 2", "wants 2", "allows 1"}},
		{"workgroup memory", plain, func(c *ir.Caps) { c.SharedBytes = 1000 }, ir.ErrLimit, []string{"workgroup memory", "1024", "1000"}},
		{"workgroup memory when widened", plain, func(c *ir.Caps) { c.SharedBytes, c.F16Arith = 1500, false }, ir.ErrLimit, []string{"2048", "1500"}},
		{"no exchanges", exchange, func(c *ir.Caps) { c.MaxSubgroups = 0 }, ir.ErrUnsupported, []string{"exchange within subgroups of 8"}},
		{"exchanges in other subgroups", exchange, func(c *ir.Caps) { c.SubgroupSize = 16 }, ir.ErrUnsupported, []string{"subgroups of 8"}},
		{"subgroups", exchange, func(c *ir.Caps) { c.SubgroupSize, c.MaxSubgroups = 8, 3 }, ir.ErrLimit, []string{"subgroups in a workgroup", "wants 4", "allows 3"}},
		{"buffers", f64, func(c *ir.Caps) { c.MaxBuffers = 1 }, ir.ErrLimit, []string{"global buffers", "wants 2", "allows 1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			caps := ir.InterpCaps()
			c.caps(&caps)
			_, err := ir.Lower(c.build(t), caps)
			if !errors.Is(err, c.is) {
				t.Fatalf("error is %v: want one that matches %v", err, c.is)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error is %q: want %q in it", err, w)
				}
			}
		})
	}
	if _, err := ir.Lower(nil, ir.InterpCaps()); !errors.Is(err, ir.ErrInvalid) {
		t.Errorf("nil kernel: %v", err)
	}
	if _, err := ir.Lower(plain(t), ir.Caps{MaxLanes: 3}); err == nil {
		t.Error("MaxLanes of 3 was accepted")
	}
}

// TestLowerKeeps checks that Lower leaves the kernel alone, keeps what identifies it, and has nothing to do a second time.
func TestLowerKeeps(t *testing.T) {
	k := mapKernel(t, 4, ir.BF16, []ir.Kind{ir.F16, ir.I64}, func(b *ir.Builder, xs []ir.Value) ir.Value {
		b.SetOps("one", "two")
		b.SetTemplate(42)
		return b.Convert(b.Named(b.Add(b.Convert(xs[0], ir.F32), b.Convert(xs[1], ir.F32)), "sum"), ir.BF16)
	})
	before := k.String()
	l := mustLower(t, k, swiftCaps())
	if k.String() != before {
		t.Error("Lower changed its argument")
	}
	if strings.Join(l.Ops, ",") != "one,two" || l.Template != 42 || l.Name != k.Name || !strings.Contains(l.String(), "; sum") {
		t.Errorf("Lower lost operators, template or names:\n%s", l)
	}
	if len(l.Globals()) != 3 || l.Globals()[2].Name != "out" || l.Globals()[2].Index != 2 {
		t.Errorf("Lower changed the bindings:\n%s", l)
	}
	if again := mustLower(t, l, swiftCaps()); len(again.String()) > len(l.String()) {
		t.Errorf("lowering again grew the kernel from\n%s\nto\n%s", l, again)
	}
}
