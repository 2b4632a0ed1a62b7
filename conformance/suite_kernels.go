package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp/kerneltest"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// kernelCases run kernels of the kernel language on the device and with the checking executor, which defines them.
func kernelCases(e *env) ([]testCase, error) {
	if e.opts.Golden != nil {
		return nil, nil
	}
	widths := []int{1, 2, 4, 8, 16}
	random := 120
	if e.opts.Quick {
		widths, random = []int{1, 4}, 12
	}
	var out []testCase
	for _, g := range instructionGroups {
		for _, k := range g.kinds {
			for _, w := range widths {
				out = append(out, testCase{name: fmt.Sprintf("%s/%s", g.name, ir.Vec(k, w)), dtype: k.String(), run: func(x *run) error { return x.instructions(g, k, w) }})
			}
		}
	}
	for _, from := range conversionKinds {
		for _, w := range widths {
			if e.opts.Quick && w != 4 {
				continue
			}
			out = append(out, testCase{name: fmt.Sprintf("convert/%s", ir.Vec(from, w)), dtype: from.String(), run: func(x *run) error { return x.conversions(from, w) }})
		}
	}
	out = append(out, controlCases()...)
	for i := range random {
		out = append(out, testCase{name: fmt.Sprintf("random/%d", i), run: func(x *run) error { return x.randomKernel(uint64(i)) }})
	}
	return out, nil
}

// instruction is one operation on vectors of one type.
type instruction struct {
	name string
	args int
	f    func(b *ir.Builder, a ...ir.Value) ir.Value
	ulp  map[ir.Kind]float64 // 0: the same bits
}

type instructionGroup struct {
	name  string
	kinds []ir.Kind
	ins   []instruction
	// small says that the second operand is a divisor or a shift: never 0, and small.
	small bool
}

func two(f func(b *ir.Builder, x, y ir.Value) ir.Value) func(*ir.Builder, ...ir.Value) ir.Value {
	return func(b *ir.Builder, a ...ir.Value) ir.Value { return f(b, a[0], a[1]) }
}

func one(f func(b *ir.Builder, x ir.Value) ir.Value) func(*ir.Builder, ...ir.Value) ir.Value {
	return func(b *ir.Builder, a ...ir.Value) ir.Value { return f(b, a[0]) }
}

// compared stores a comparison as 0 or 1 of the operands' kind.
func compared(f func(b *ir.Builder, x, y ir.Value) ir.Value) func(*ir.Builder, ...ir.Value) ir.Value {
	return func(b *ir.Builder, a ...ir.Value) ir.Value {
		return b.Select(f(b, a[0], a[1]), b.ConstLike(a[0], 1), b.ConstLike(a[0], 0))
	}
}

func tested(f func(b *ir.Builder, x ir.Value) ir.Value) func(*ir.Builder, ...ir.Value) ir.Value {
	return func(b *ir.Builder, a ...ir.Value) ir.Value {
		return b.Select(f(b, a[0]), b.ConstLike(a[0], 1), b.ConstLike(a[0], 0))
	}
}

func mathIns(op ir.Op, name string) instruction {
	return instruction{name: op.String(), args: 1, f: func(b *ir.Builder, a ...ir.Value) ir.Value { return b.Math(op, a[0]) }, ulp: mathULP(name)}
}

// mathULP is the operator's bound for float32, and for float64, which has the same figures.
func mathULP(op string) map[ir.Kind]float64 {
	b := apiBounds[op]
	u := max(b.ulp, b.vulkan)
	return map[ir.Kind]float64{ir.F32: u, ir.F64: u, ir.F16: 1}
}

var instructionGroups = []instructionGroup{
	{name: "arithmetic", kinds: []ir.Kind{ir.F32, ir.I32, ir.U32, ir.I64, ir.F16, ir.F64}, ins: []instruction{
		{"add", 2, two((*ir.Builder).Add), nil}, {"sub", 2, two((*ir.Builder).Sub), nil}, {"mul", 2, two((*ir.Builder).Mul), nil},
		{"select", 2, func(b *ir.Builder, a ...ir.Value) ir.Value { return b.Select(b.Lt(a[0], a[1]), a[1], a[0]) }, nil},
		{"eq", 2, compared((*ir.Builder).Eq), nil}, {"ne", 2, compared((*ir.Builder).Ne), nil}, {"lt", 2, compared((*ir.Builder).Lt), nil},
		{"le", 2, compared((*ir.Builder).Le), nil}, {"gt", 2, compared((*ir.Builder).Gt), nil}, {"ge", 2, compared((*ir.Builder).Ge), nil},
	}},
	{name: "signed", kinds: []ir.Kind{ir.F32, ir.I32, ir.I64, ir.F16, ir.F64}, ins: []instruction{
		{"neg", 1, one((*ir.Builder).Neg), nil}, {"abs", 1, one((*ir.Builder).Abs), nil},
	}},
	{name: "integers", kinds: []ir.Kind{ir.I32, ir.U32, ir.I64}, ins: []instruction{
		{"min", 2, two((*ir.Builder).Min), nil}, {"max", 2, two((*ir.Builder).Max), nil},
		{"and", 2, two((*ir.Builder).And), nil}, {"or", 2, two((*ir.Builder).Or), nil}, {"xor", 2, two((*ir.Builder).Xor), nil}, {"not", 1, one((*ir.Builder).Not), nil},
	}},
	{name: "quotients", kinds: []ir.Kind{ir.I32, ir.U32, ir.I64}, small: true, ins: []instruction{
		{"div", 2, two((*ir.Builder).Div), nil}, {"rem", 2, two((*ir.Builder).Rem), nil}, {"shl", 2, two((*ir.Builder).Shl), nil}, {"shr", 2, two((*ir.Builder).Shr), nil},
	}},
	{name: "floats", kinds: []ir.Kind{ir.F32, ir.F16, ir.F64}, ins: []instruction{
		{"max_nan", 2, two((*ir.Builder).MaxNaN), nil}, {"min_nan", 2, two((*ir.Builder).MinNaN), nil},
		{"is_nan", 1, tested((*ir.Builder).IsNaN), nil}, {"is_inf", 1, tested((*ir.Builder).IsInf), nil}, {"is_finite", 1, tested((*ir.Builder).IsFinite), nil},
		{"floor", 1, one((*ir.Builder).Floor), nil}, {"ceil", 1, one((*ir.Builder).Ceil), nil}, {"trunc", 1, one((*ir.Builder).Trunc), nil}, {"round", 1, one((*ir.Builder).Round), nil},
	}},
	{name: "division", kinds: []ir.Kind{ir.F32, ir.F64}, ins: []instruction{{"div", 2, two((*ir.Builder).Div), mathULP("div")}, mathIns(ir.OpSqrt, "sqrt"), mathIns(ir.OpRsqrt, "rsqrt")}},
	{name: "exponentials", kinds: []ir.Kind{ir.F32}, ins: []instruction{
		mathIns(ir.OpExp, "exp"), mathIns(ir.OpExp2, "exp2"), mathIns(ir.OpExpm1, "expm1"), mathIns(ir.OpLog, "log"), mathIns(ir.OpLog2, "log2"), mathIns(ir.OpLog10, "log10"),
		mathIns(ir.OpLog1p, "log1p"), mathIns(ir.OpSinh, "sinh"), mathIns(ir.OpCosh, "cosh"), mathIns(ir.OpTanh, "tanh"), mathIns(ir.OpErf, "erf"),
		{"pow", 2, func(b *ir.Builder, a ...ir.Value) ir.Value { return b.Pow(b.Abs(a[0]), a[1]) }, mathULP("pow")},
	}},
	{name: "trigonometry", kinds: []ir.Kind{ir.F32}, ins: []instruction{
		mathIns(ir.OpSin, "sin"), mathIns(ir.OpCos, "cos"), mathIns(ir.OpTan, "tan"), mathIns(ir.OpAsin, "asin"), mathIns(ir.OpAcos, "acos"), mathIns(ir.OpAtan, "atan"),
		{"atan2", 2, two((*ir.Builder).Atan2), mathULP("atan2")},
	}},
}

// invocationsPerCase is the number of invocations that a case of instructions runs; the last workgroup is not full.
const invocationsPerCase = 100

// instructions runs all instructions of a group on random and special operands; each has its part of the output.
func (x *run) instructions(g instructionGroup, k ir.Kind, w int) error {
	if k == ir.F64 && !x.info.Caps.F64 {
		return notSupported("double precision")
	}
	rng := x.rng()
	n := invocationsPerCase * w
	b := ir.NewBuilder("conformance_"+g.name, 64, 1, 1)
	p, q, out := b.Buffer("p", k, ir.Read), b.Buffer("q", k, ir.Read), b.Buffer("out", k, ir.Write)
	count := b.Param("n", ir.U32)
	i := b.GlobalID(0)
	b.If(b.Lt(i, count), func() {
		at := b.Mul(i, b.U32(uint32(w)))
		a, c := b.Load(p, at, w), b.Load(q, at, w)
		for j, ins := range g.ins {
			b.Store(out, b.Add(at, b.U32(uint32(j*n))), ins.f(b, a, c))
		}
	}, nil)
	kernel, err := b.Build()
	if err != nil {
		return err
	}
	buffers := [][]byte{kindData(rng, k, n, false), kindData(rng, k, n, g.small), make([]byte, padded(n*len(g.ins)*k.Size()))}
	return x.compareKernel(kernel, [3]int{(invocationsPerCase + 63) / 64, 1, 1}, buffers, []uint32{invocationsPerCase}, []int{2}, func(_, e int) (string, float64, []string) {
		ins := g.ins[min(e/n, len(g.ins)-1)]
		in := []string{"p=" + number(elementAt(buffers[0], k, e%n))}
		if ins.args > 1 {
			in = append(in, "q="+number(elementAt(buffers[1], k, e%n)))
		}
		return fmt.Sprintf("%s of %s", ins.name, ir.Vec(k, w)), ins.ulp[k], in
	})
}

func padded(n int) int { return (n + 3) &^ 3 }

// kindData makes n random elements of a kind, one in four special for floats; small ones are 1 to 7.
func kindData(rng *rand.Rand, k ir.Kind, n int, small bool) []byte {
	out := make([]byte, padded(n*k.Size()))
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2, 3.5, -2.5, math.Inf(1), math.Inf(-1), math.NaN(), 65504, 1e4, 1e-3, 88, -88}
	for i := range n {
		var bits uint64
		switch {
		case small:
			bits = ir.ConstBits(k, float64(1+rng.IntN(7)))
		case k.IsFloat() && rng.IntN(4) == 0:
			bits = ir.ConstBits(k, special[rng.IntN(len(special))])
		case k.IsFloat():
			bits = ir.ConstBits(k, rng.NormFloat64()*math.Exp2(float64(rng.IntN(8)-4)))
		case rng.IntN(2) == 0:
			bits = rng.Uint64()
		default:
			bits = uint64(int64(rng.IntN(2001) - 1000))
		}
		switch k.Size() {
		case 1:
			out[i] = byte(bits)
		case 2:
			binary.NativeEndian.PutUint16(out[2*i:], uint16(bits))
		case 4:
			binary.NativeEndian.PutUint32(out[4*i:], uint32(bits))
		default:
			binary.NativeEndian.PutUint64(out[8*i:], bits)
		}
	}
	return out
}

var dtypeOfKind = map[ir.Kind]tensor.DType{ir.F32: tensor.Float32, ir.F16: tensor.Float16, ir.BF16: tensor.BFloat16, ir.F64: tensor.Float64}

// compareKernel runs a kernel on the device and with the checking executor. about names element e of binding m: what it
// is, the ULP it may be off, and its operands.
func (x *run) compareKernel(k *ir.Kernel, groups [3]int, buffers [][]byte, params []uint32, written []int, about func(m, e int) (string, float64, []string)) error {
	var uninit []int
	for _, m := range written {
		if k.Globals()[m].Access == ir.Write {
			uninit = append(uninit, m)
		}
	}
	want, err := reference(k, groups, buffers, params, uninit)
	if err != nil {
		return fmt.Errorf("the checking executor: %w", err)
	}
	got, err := x.runKernel(k, groups, buffers, params)
	if err != nil {
		return err
	}
	x.bound = "the checking executor's bits; math functions by the API's ULP"
	for _, m := range written {
		kind := k.Globals()[m].Kind
		var worst *Mismatch
		off := 0
		elems := len(want[m]) / kind.Size()
		for e := range elems {
			size := kind.Size()
			if bytes.Equal(got[m][e*size:(e+1)*size], want[m][e*size:(e+1)*size]) {
				continue
			}
			w, g := elementAt(want[m], kind, e), elementAt(got[m], kind, e)
			what, ulp, in := about(m, e)
			dist, ok := math.Abs(g-w), false
			if kind.IsFloat() {
				c := comparison{dtype: dtypeOfKind[kind], bound: bound{kind: ulpBound, ulp: ulp}}
				if ulp == 0 {
					c.bound = bound{kind: exactBound}
				}
				dist, _, ok = c.element(e, g, w)
				if !math.IsInf(dist, 0) && !math.IsNaN(dist) {
					x.add(measured{ulp: dist, has: true})
				}
			}
			if ok {
				continue
			}
			off++
			if worst == nil || dist > worst.ULP {
				text := "the same bits"
				if ulp > 0 {
					text = fmt.Sprintf("%g ULP", ulp)
				}
				worst = &Mismatch{What: what, DType: kind.String(), Elements: elems, Index: e, Input: in, Got: number(g), Want: number(w), ULP: dist, Bound: text}
			}
		}
		if worst != nil {
			worst.Off = off
			if math.IsInf(worst.ULP, 0) || math.IsNaN(worst.ULP) {
				worst.ULP = 0
			}
			return worst
		}
	}
	return nil
}

// conversionKinds are the kinds that values convert between.
var conversionKinds = []ir.Kind{ir.F32, ir.I32, ir.U32, ir.I64, ir.F16, ir.BF16, ir.U8, ir.U16, ir.F64}

// conversions converts from one kind to all others, in as few kernels as the device's number of buffers allows.
func (x *run) conversions(from ir.Kind, w int) error {
	if from == ir.F64 && !x.info.Caps.F64 {
		return notSupported("double precision")
	}
	most := len(conversionKinds)
	if n := x.info.Caps.MaxBuffers; n > 0 {
		most = min(most, n-1)
	}
	var to []ir.Kind
	for _, k := range conversionKinds {
		if k != from && (k != ir.F64 || x.info.Caps.F64) {
			to = append(to, k)
		}
	}
	var errs []error
	for part := range slices.Chunk(to, most) {
		errs = append(errs, x.convertTo(from, part, w))
	}
	return errors.Join(errs...)
}

// convertTo converts to several kinds in one kernel.
func (x *run) convertTo(from ir.Kind, to []ir.Kind, w int) error {
	b := ir.NewBuilder(fmt.Sprintf("conformance_from_%s", from), 64, 1, 1)
	p := b.Buffer("p", from, ir.Read)
	n := invocationsPerCase * w
	buffers := [][]byte{kindData(x.rng(), from, n, false)}
	var outs []*ir.Mem
	var written []int
	for i, k := range to {
		outs = append(outs, b.Buffer("out_"+k.String(), k, ir.Write))
		written = append(written, 1+i)
		buffers = append(buffers, make([]byte, padded(n*k.Size())))
	}
	count := b.Param("n", ir.U32)
	i := b.GlobalID(0)
	b.If(b.Lt(i, count), func() {
		at := b.Mul(i, b.U32(uint32(w)))
		v := b.Load(p, at, w)
		for i, k := range to {
			b.Store(outs[i], at, b.Convert(v, k))
		}
	}, nil)
	kernel, err := b.Build()
	if err != nil {
		return err
	}
	return x.compareKernel(kernel, [3]int{2, 1, 1}, buffers, []uint32{invocationsPerCase}, written, func(m, e int) (string, float64, []string) {
		return fmt.Sprintf("convert %s to %s", ir.Vec(from, w), to[m-1]), 0, []string{"p=" + number(elementAt(buffers[0], from, min(e, n-1)))}
	})
}

// randomKernel runs a random kernel whose results every device must have bit by bit.
func (x *run) randomKernel(i uint64) error {
	seed := x.opts.Seed*1_000_003 + i
	rng := rand.New(rand.NewPCG(seed, 7))
	more := []ir.Kind{ir.U8, ir.U16, ir.I32, ir.I64, ir.F16, ir.BF16}
	if x.info.Caps.F64 {
		more = append(more, ir.F64)
	}
	rng.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	c, err := kerneltest.New(seed, kerneltest.Config{Exact: true, Control: seed%2 == 0, Shared: seed%3 == 0, Steps: 16, Subgroup: x.info.Caps.Subgroup(64),
		Kinds: append([]ir.Kind{ir.Bool, ir.U32, ir.F32}, more[:2]...)})
	if err != nil {
		return err
	}
	if n := len(c.Kernel.Globals()); x.info.Caps.MaxBuffers > 0 && n > x.info.Caps.MaxBuffers {
		return notSupported("%d buffers in one kernel", n)
	}
	want, err := reference(c.Kernel, c.Groups, c.Data(), c.Params, c.Written)
	if err != nil {
		return fmt.Errorf("the checking executor: %w", err)
	}
	got, err := x.runKernel(c.Kernel, c.Groups, c.Data(), c.Params)
	if err != nil {
		if errors.Is(err, backend.ErrLimit) {
			return notSupported("%s", strings.SplitN(err.Error(), "\n", 2)[0])
		}
		return err
	}
	return c.Compare(want, got)
}
