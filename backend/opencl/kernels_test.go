//go:build cgo

package opencl

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// The tests of this file run emitted kernels and compare them with the checking executor on the kernel before lowering.

// putElem and getElem convert between an element's bits and memory.
func putElem(buf []byte, k ir.Kind, bits uint64) {
	switch k.Size() {
	case 1:
		buf[0] = byte(bits)
	case 2:
		binary.LittleEndian.PutUint16(buf, uint16(bits))
	case 4:
		binary.LittleEndian.PutUint32(buf, uint32(bits))
	case 8:
		binary.LittleEndian.PutUint64(buf, bits)
	}
}

func getElem(buf []byte, k ir.Kind) uint64 {
	switch k.Size() {
	case 1:
		return uint64(buf[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(buf))
	case 4:
		return uint64(binary.LittleEndian.Uint32(buf))
	}
	return binary.LittleEndian.Uint64(buf)
}

// runBoth runs a kernel with the checking executor and on the device, on copies of the buffers, and returns both results. It
// fails the test if the kernel has a fault.
func runBoth(t *testing.T, d *device, k *ir.Kernel, groups [3]int, buffers [][]byte, params []uint32) (want, got [][]byte) {
	t.Helper()
	for _, b := range buffers {
		want = append(want, append([]byte(nil), b...))
	}
	if err := interp.Check(k, groups, want, params, interp.CheckOptions{}); err != nil {
		t.Fatal(err)
	}
	p := compile(t, d, k)
	defer p.Free()
	l := backend.Launch{Program: p, Groups: groups, Params: params}
	for _, data := range buffers {
		b := alloc(t, d, int64(len(data)))
		defer b.Free()
		if err := b.Write(0, data); err != nil {
			t.Fatal(err)
		}
		l.Buffers = append(l.Buffers, backend.Region{Buffer: b, Size: b.Size()})
	}
	f, err := d.Submit([]backend.Launch{l})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, f)
	for i, r := range l.Buffers {
		data := make([]byte, len(buffers[i]))
		if err := r.Buffer.Read(0, data); err != nil {
			t.Fatal(err)
		}
		got = append(got, data)
	}
	return want, got
}

// distance returns how far two elements are apart in units of the last place; NaN equals NaN. Integers are equal or
// infinitely far apart.
func distance(k ir.Kind, a, b uint64) float64 {
	if a == b {
		return 0
	}
	if !k.IsFloat() {
		return math.Inf(1)
	}
	x, y := ir.ConstFloat(k, a), ir.ConstFloat(k, b)
	switch {
	case x == y || math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x) || math.IsNaN(y):
		return math.Inf(1)
	}
	order := func(bits uint64) int64 {
		sign := uint64(1) << (8*k.Size() - 1)
		if bits&sign != 0 {
			return -int64(bits &^ sign)
		}
		return int64(bits)
	}
	return math.Abs(float64(order(a) - order(b)))
}

// sampler makes values of a kind: edges first, then random ones.
type sampler struct{ r *rand.Rand }

var edges = map[ir.Kind][]float64{
	ir.F16:  {0, math.Copysign(0, -1), 1, -1, 0.5, 65504, math.Inf(1), math.Inf(-1), math.NaN(), 6e-8, 2048, -3.25},
	ir.BF16: {0, math.Copysign(0, -1), 1, -1, 0.5, 3e38, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, 256, -3.25},
	ir.F32:  {0, math.Copysign(0, -1), 1, -1, 0.5, 3e38, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, 1e10, -2.5, 1.5, 3e9, -3e9},
	ir.F64:  {0, math.Copysign(0, -1), 1, -1, 0.5, 1e308, math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, 1e10, -2.5, 1.5, 1e19, -1e19},
	ir.I32:  {0, 1, -1, math.MaxInt32, math.MinInt32, 7, -8},
	ir.U32:  {0, 1, math.MaxUint32, 1 << 31, 7},
	ir.I64:  {0, 1, -1, math.MinInt64, 1 << 62, 7, -8, 1 << 40},
	ir.U8:   {0, 1, 255, 128},
	ir.U16:  {0, 1, 65535, 0x7c00},
}

func (s sampler) bits(k ir.Kind, i int) uint64 {
	if e := edges[k]; i < len(e) {
		return ir.ConstBits(k, e[i])
	}
	if k.IsFloat() {
		return ir.ConstBits(k, s.r.NormFloat64()*math.Exp2(float64(s.r.IntN(12)-4)))
	}
	return s.r.Uint64() & (1<<(8*k.Size()) - 1)
}

func (s sampler) buffer(k ir.Kind, n int) []byte {
	buf := make([]byte, (n*k.Size()+3)/4*4)
	for i := range n {
		putElem(buf[i*k.Size():], k, s.bits(k, i))
	}
	return buf
}

// opCase is an operation under test on operands of one type; the kernel of a type runs all its cases.
type opCase struct {
	name string
	op   func(b *ir.Builder, x, y, z ir.Value) ir.Value
	ulps float64 // allowed distance
	free bool    // unspecified for NaN operands, which are replaced
}

const invocations = 16 // of a test kernel, in one workgroup

func opCases(k ir.Kind) []opCase {
	type bl = *ir.Builder
	type v = ir.Value
	num := func(b bl, c v) v { // a Bool as a number of the kind
		return b.Select(c, b.Const(c.Type.With(k), 1), b.Const(c.Type.With(k), 0))
	}
	cases := []opCase{
		{name: "add", op: func(b bl, x, y, _ v) v { return b.Add(x, y) }},
		{name: "sub", op: func(b bl, x, y, _ v) v { return b.Sub(x, y) }},
		{name: "mul", op: func(b bl, x, y, _ v) v { return b.Mul(x, y) }},
		{name: "min", op: func(b bl, x, y, _ v) v { return b.Min(x, y) }, free: true},
		{name: "max", op: func(b bl, x, y, _ v) v { return b.Max(x, y) }, free: true},
		{name: "eq", op: func(b bl, x, y, _ v) v { return num(b, b.Eq(x, y)) }},
		{name: "ne", op: func(b bl, x, y, _ v) v { return num(b, b.Ne(x, y)) }},
		{name: "lt", op: func(b bl, x, y, _ v) v { return num(b, b.Lt(x, y)) }},
		{name: "le", op: func(b bl, x, y, _ v) v { return num(b, b.Le(x, y)) }},
		{name: "gt", op: func(b bl, x, y, _ v) v { return num(b, b.Gt(x, y)) }},
		{name: "ge", op: func(b bl, x, y, _ v) v { return num(b, b.Ge(x, y)) }},
		{name: "select", op: func(b bl, x, y, z v) v {
			return b.Select(b.And(b.Or(b.Lt(x, y), b.Not(b.Eq(z, y))), b.Xor(b.Gt(x, z), b.Lt(z, y))), x, z)
		}},
		{name: "bool", op: func(b bl, x, y, z v) v { return b.Convert(b.Eq(b.Convert(x, ir.Bool), b.Lt(y, z)), k) }},
		{name: "lanes", op: func(b bl, x, y, z v) v {
			if x.Type.Lanes == 1 {
				return b.Splat(x, 1)
			}
			n := x.Type.Lanes
			parts, flags := make([]v, n), make([]v, n)
			for i := range n {
				parts[i] = b.Extract(x, n-1-i)
				flags[i] = b.Not(b.Extract(b.Lt(y, z), i))
			}
			return b.Select(b.Vec(flags...), b.Vec(parts...), b.Splat(b.Extract(y, n/2), n))
		}},
	}
	if k != ir.U32 {
		cases = append(cases,
			opCase{name: "neg", op: func(b bl, x, _, _ v) v { return b.Neg(x) }},
			opCase{name: "abs", op: func(b bl, x, _, _ v) v { return b.Abs(x) }})
	}
	if k.IsInt() {
		shift := func(b bl, y v) v { return b.And(y, b.ConstLike(y, float64(8*k.Size()-1))) }
		divisor := func(b bl, y v) v { // neither 0 nor -1: the least number has no negation
			y = b.Or(y, b.ConstLike(y, 1))
			if k == ir.U32 {
				return y
			}
			return b.Select(b.Eq(y, b.ConstLike(y, -1)), b.ConstLike(y, 3), y)
		}
		cases = append(cases,
			opCase{name: "div", op: func(b bl, x, y, _ v) v { return b.Div(x, divisor(b, y)) }},
			opCase{name: "rem", op: func(b bl, x, y, _ v) v { return b.Rem(x, divisor(b, y)) }},
			opCase{name: "and", op: func(b bl, x, y, _ v) v { return b.And(x, y) }},
			opCase{name: "or", op: func(b bl, x, y, _ v) v { return b.Or(x, y) }},
			opCase{name: "xor", op: func(b bl, x, y, _ v) v { return b.Xor(x, y) }},
			opCase{name: "not", op: func(b bl, x, _, _ v) v { return b.Not(x) }},
			opCase{name: "shl", op: func(b bl, x, y, _ v) v { return b.Shl(x, shift(b, y)) }},
			opCase{name: "shr", op: func(b bl, x, y, _ v) v { return b.Shr(x, shift(b, y)) }})
	}
	if k == ir.U32 {
		cases = append(cases, opCase{name: "mul_hi", op: func(b bl, x, y, _ v) v { return b.MulHi(x, y) }})
	}
	if k.IsFloat() {
		cases = append(cases,
			// A quotient may be off by 2.5 ULP where the device cannot round it correctly.
			opCase{name: "div", op: func(b bl, x, y, _ v) v { return b.Div(x, y) }, ulps: 2.5},
			opCase{name: "isnan", op: func(b bl, x, _, _ v) v { return num(b, b.IsNaN(x)) }},
			opCase{name: "isfinite", op: func(b bl, x, _, _ v) v { return num(b, b.IsFinite(x)) }},
			// Small integers: rounding once or twice is the same.
			opCase{name: "fma", op: func(b bl, x, y, z v) v {
				small := func(x v) v { return b.Select(b.Lt(b.Abs(x), b.ConstLike(x, 100)), b.Floor(x), b.ConstLike(x, 3)) }
				return b.Fma(small(x), small(y), small(z))
			}, free: true})
	}
	return cases
}

// mathBounds are OpenCL's bounds in ULP, and what the reference adds by rounding.
var mathBounds = map[ir.Op]float64{
	ir.OpSqrt: 3, ir.OpRsqrt: 2, ir.OpExp: 3, ir.OpExp2: 3, ir.OpExpm1: 3, ir.OpLog: 3, ir.OpLog2: 3, ir.OpLog10: 3, ir.OpLog1p: 2,
	ir.OpSin: 4, ir.OpCos: 4, ir.OpTan: 5, ir.OpAsin: 4, ir.OpAcos: 4, ir.OpAtan: 5, ir.OpAtan2: 6, ir.OpSinh: 4, ir.OpCosh: 4, ir.OpTanh: 5,
	ir.OpErf: 16, ir.OpPow: 16,
}

func mathCases(k ir.Kind) []opCase {
	var cases []opCase
	for op := ir.OpSqrt; op <= ir.OpRound; op++ {
		if k == ir.F64 && op == ir.OpErf { // there is no replacement in double precision
			continue
		}
		cases = append(cases, opCase{name: op.String(), ulps: mathBounds[op] + 1, op: func(b *ir.Builder, x, y, _ ir.Value) ir.Value {
			switch op {
			case ir.OpAtan2, ir.OpPow:
				return b.Math(op, x, y)
			}
			if k == ir.F64 {
				// The reference takes Go's math.Log, which is wrong for subnormal numbers on amd64.
				x = b.Select(b.And(b.Lt(b.Abs(x), b.ConstLike(x, 0x1p-1022)), b.Ne(x, b.ConstLike(x, 0))), b.ConstLike(x, 2), x)
			}
			return b.Math(op, x)
		}})
	}
	return cases
}

// runCases runs the cases on vectors of a type, as one kernel with an output for each case.
func runCases(t *testing.T, d *device, k ir.Kind, lanes int, cases []opCase) {
	total := invocations * lanes
	kern := kernel(t, fmt.Sprintf("ops_%s_%d", k, lanes), invocations, func(b *ir.Builder) {
		in := []*ir.Mem{b.Buffer("x", k, ir.Read), b.Buffer("y", k, ir.Read), b.Buffer("z", k, ir.Read)}
		out := b.Buffer("out", k, ir.Write)
		at := b.Mul(b.GlobalID(0), b.U32(uint32(lanes)))
		var vals []ir.Value
		for _, m := range in {
			vals = append(vals, b.Load(m, at, lanes))
		}
		for i, c := range cases {
			x, y, z := vals[0], vals[1], vals[2]
			if c.free && k.IsFloat() {
				number := func(x ir.Value) ir.Value { return b.Select(b.IsNaN(x), b.ConstLike(x, 2), x) }
				x, y, z = number(x), number(y), number(z)
			}
			b.Store(out, b.Add(at, b.U32(uint32(i*total))), b.Named(c.op(b, x, y, z), c.name))
		}
	})
	s := sampler{rand.New(rand.NewPCG(uint64(k), uint64(lanes)))}
	x, y, z := s.buffer(k, total), s.buffer(k, total), s.buffer(k, total)
	s.r.Shuffle(total, func(i, j int) { swapElems(y, k, i, j) })
	s.r.Shuffle(total, func(i, j int) { swapElems(z, k, i, j) })
	want, got := runBoth(t, d, kern, [3]int{1, 1, 1}, [][]byte{x, y, z, make([]byte, (len(cases)*total*k.Size()+3)/4*4)}, nil)
	size := k.Size()
	for i, c := range cases {
		for j := range total {
			at := (i*total + j) * size
			w, g := getElem(want[3][at:], k), getElem(got[3][at:], k)
			if distance(k, w, g) > c.ulps {
				t.Errorf("%s of %s: operands %v %v %v: got %v (%#x), want %v (%#x)", c.name, ir.Vec(k, lanes),
					elem(x, k, j), elem(y, k, j), elem(z, k, j), ir.ConstFloat(k, g), g, ir.ConstFloat(k, w), w)
				break
			}
		}
	}
}

func swapElems(buf []byte, k ir.Kind, i, j int) {
	a, b := getElem(buf[i*k.Size():], k), getElem(buf[j*k.Size():], k)
	putElem(buf[i*k.Size():], k, b)
	putElem(buf[j*k.Size():], k, a)
}

func elem(buf []byte, k ir.Kind, i int) float64 {
	return ir.ConstFloat(k, getElem(buf[i*k.Size():], k))
}

var widths = []int{1, 2, 4, 8, 16}

// widthsOf are the widths tested for each kind: all for the commonest, and fewer for the others, as each is a kernel to compile.
var widthsOf = map[ir.Kind][]int{
	ir.F32: widths, ir.I32: {1, 4, 8}, ir.U32: {1, 2, 16}, ir.I64: {1, 4}, ir.F16: {1, 8}, ir.F64: {1, 2},
}

func TestKernelOps(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		known(t, d)
		for _, k := range []ir.Kind{ir.I32, ir.U32, ir.I64, ir.F16, ir.F32, ir.F64} {
			if k == ir.F64 && !d.info.Caps.F64 {
				continue
			}
			for _, lanes := range widthsOf[k] {
				runCases(t, d, k, lanes, opCases(k))
			}
		}
	})
}

func TestKernelMath(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		known(t, d)
		kinds := []ir.Kind{ir.F32}
		if d.info.Caps.F64 {
			kinds = append(kinds, ir.F64)
		}
		for _, k := range kinds {
			for _, lanes := range []int{1, 4, 16} {
				if k == ir.F64 && lanes != 4 {
					continue
				}
				runCases(t, d, k, lanes, mathCases(k))
			}
		}
	})
}

// known passes over devices that are known to be wrong; they are listed with a note.
func known(t *testing.T, d *device) {
	if suspect(d.info) {
		t.Skipf("%s: %v", d.info.Name, d.info.Notes)
	}
}

// TestKernelConvert converts every kind to every other.
func TestKernelConvert(t *testing.T) {
	kinds := []ir.Kind{ir.U8, ir.U16, ir.I32, ir.U32, ir.I64, ir.F16, ir.BF16, ir.F32, ir.F64}
	eachDevice(t, func(t *testing.T, d *device) {
		known(t, d)
		for _, lanes := range []int{1, 4} {
			for _, to := range kinds {
				total := invocations * lanes
				k := kernel(t, fmt.Sprintf("to_%s_%d", to, lanes), invocations, func(b *ir.Builder) {
					at := b.Mul(b.GlobalID(0), b.U32(uint32(lanes)))
					for i, from := range kinds {
						if !d.info.Caps.F64 && (from == ir.F64 || to == ir.F64) {
							continue
						}
						in, out := b.Buffer("in_"+from.String(), from, ir.Read), b.Buffer("out_"+from.String(), to, ir.Write)
						x := b.Load(in, at, lanes)
						if i%2 == 0 {
							x = b.Select(b.Eq(b.Convert(x, ir.Bool), b.Splat(b.Bool(false), lanes)), x, x)
						}
						b.Store(out, at, b.Convert(x, to))
					}
				})
				s := sampler{rand.New(rand.NewPCG(uint64(to), uint64(lanes)))}
				var buffers [][]byte
				for _, m := range k.Globals() {
					if m.Access == ir.Read {
						buffers = append(buffers, s.buffer(m.Kind, total))
					} else {
						buffers = append(buffers, make([]byte, (total*to.Size()+3)/4*4))
					}
				}
				want, got := runBoth(t, d, k, [3]int{1, 1, 1}, buffers, nil)
				for i, m := range k.Globals() {
					if m.Access == ir.Read {
						continue
					}
					for j := range total {
						w, g := getElem(want[i][j*to.Size():], to), getElem(got[i][j*to.Size():], to)
						if distance(to, w, g) != 0 {
							from := k.Globals()[i-1].Kind
							t.Errorf("%s to %s, %d lanes: %v: got %#x, want %#x", from, to, lanes, elem(buffers[i-1], from, j), g, w)
							break
						}
					}
				}
			}
		}
	})
}

// TestKernelMemory exercises workgroup and private arrays, barriers, loops, variables and atomics.
func TestKernelMemory(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		known(t, d)
		for _, kind := range []ir.Kind{ir.I32, ir.U32, ir.I64, ir.F16, ir.F32} {
			k := kernel(t, "memory_"+kind.String(), 64, func(b *ir.Builder) {
				x, y := b.Buffer("x", kind, ir.Read), b.Buffer("y", kind, ir.ReadWrite)
				n := b.Param("n", ir.U32)
				tile, own := b.SharedArray("tile", kind, 128), b.PrivateArray("own", kind, 16)
				lid := b.LocalID(0)
				at := b.Mul(b.LinearID(), b.U32(2))
				b.Store(tile, b.Mul(lid, b.U32(2)), b.Load(x, at, 2))
				b.Barrier()
				b.For(b.U32(0), b.U32(16), b.U32(1), func(i ir.Value) {
					b.Store(own, i, b.Load(tile, b.Rem(b.Add(b.Mul(lid, b.U32(3)), i), b.U32(128)), 1))
				})
				acc := b.Var(b.Const(ir.Scalar(kind), 0))
				b.For(b.I32(-3), b.I32(9), b.I32(4), func(i ir.Value) {
					b.Set(acc, b.Add(b.Get(acc), b.Load(own, b.Convert(b.Add(i, b.I32(3)), ir.U32), 1)))
				})
				v := b.Load(own, b.U32(4), 4)
				b.If(b.Lt(at, n), func() {
					b.Store(y, at, b.Vec(b.Get(acc), b.Extract(v, 3)))
				}, func() { b.Store(y, at, b.Vec(b.Extract(v, 0), b.Get(acc))) })
			})
			s := sampler{rand.New(rand.NewPCG(7, uint64(kind)))}
			const total = 64 * 2 * 6
			in := make([]byte, total*kind.Size())
			for i := range total {
				putElem(in[i*kind.Size():], kind, ir.ConstBits(kind, float64(s.r.IntN(200))))
			}
			want, got := runBoth(t, d, k, [3]int{3, 2, 1}, [][]byte{in, make([]byte, total*kind.Size())}, []uint32{500})
			if string(want[1]) != string(got[1]) {
				t.Errorf("%s: results differ", kind)
			}
		}
		k := kernel(t, "atomics", 64, func(b *ir.Builder) {
			out, scratch := b.Buffer("out", ir.U32, ir.ReadWrite), b.SharedArray("scratch", ir.I32, 4)
			id := b.GlobalID(0)
			b.Atomic(ir.OpAtomicAdd, out, b.U32(0), id)
			b.Atomic(ir.OpAtomicMax, out, b.U32(1), id)
			b.Atomic(ir.OpAtomicMin, out, b.U32(2), b.Not(id))
			b.Atomic(ir.OpAtomicOr, out, b.U32(3), b.Shl(b.U32(1), b.Rem(id, b.U32(32))))
			b.Atomic(ir.OpAtomicAnd, out, b.U32(4), b.Not(id))
			b.Atomic(ir.OpAtomicCAS, out, b.Add(b.U32(8), id), b.U32(0), id)
			b.Atomic(ir.OpAtomicXchg, out, b.Add(b.U32(8), id), b.U32(9))
			b.If(b.Eq(b.LocalID(0), b.U32(0)), func() { b.Store(scratch, b.U32(0), b.I32(-5)) }, nil)
			b.Barrier()
			b.Atomic(ir.OpAtomicMin, scratch, b.U32(0), b.Neg(b.Convert(b.LocalID(0), ir.I32)))
			b.Barrier()
			b.If(b.Eq(b.LocalID(0), b.U32(0)), func() { b.Store(out, b.Add(b.U32(5), b.GroupID(0)), b.BitCast(b.Load(scratch, b.U32(0), 1), ir.U32)) }, nil)
		})
		want, got := runBoth(t, d, k, [3]int{3, 1, 1}, [][]byte{make([]byte, 4*(8+192))}, nil)
		if string(want[0]) != string(got[0]) {
			t.Errorf("atomics: got %v, want %v", words(got[0])[:10], words(want[0])[:10])
		}
	})
}
