package backend

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Restricter is a device whose description can lose capabilities until its first kernel for somebody else is compiled. [Open] tests
// the optional paths of such a device, once for each version of its driver, and takes those out that compute wrong numbers.
type Restricter interface {
	Restrict(change func(*Info))
}

// pathTest is a kernel that takes an optional path, with its operands and what it must make of them. It runs one invocation for each of
// pathElements.
type pathTest struct {
	feature  string // of [EnvDisable]
	has      func(ir.Caps) bool
	kernel   func(b *ir.Builder, i ir.Value)
	subgroup int // that the kernel needs
	in, want []byte
}

const (
	pathElements = 128 // a subgroup of any device at least
	pathVersion  = 2   // of the tests: changes with them
)

// pathTests are in the order in which they run: storage before arithmetic, which reports the more general failure first.
func pathTests(caps ir.Caps) []pathTest {
	return []pathTest{f16StorageTest(), f16ArithTest(), u8Test(), i64Test(), f64Test(), subgroupTest(caps.SubgroupSize)}
}

// halfSamples are float32 numbers around the places where conversions to float16 go wrong: ties, the largest number, infinities, NaN.
func halfSamples() []float32 {
	v := []float32{0, 1, 1 + 1.0/2048, 1 + 3.0/2048, 1 + 1.0/2048 + 1.0/(1<<20), 65504, 65519, 65520, 1e6, 0.1, 3.14159, 2.0 / 3, 6.2e-5, 255.9,
		float32(math.Inf(1)), float32(math.NaN())}
	for len(v) < pathElements {
		v = append(v, -v[len(v)-16]*(1+float32(len(v))/1024))
	}
	return v
}

// f16ArithTest rounds to float16 and squares there.
func f16ArithTest() pathTest {
	t := pathTest{feature: "f16arith", has: func(c ir.Caps) bool { return c.F16Arith }}
	for _, x := range halfSamples() {
		t.in = binary.LittleEndian.AppendUint32(t.in, math.Float32bits(x))
		h := ir.F16ToF32(ir.F32ToF16(x))
		y := ir.F16ToF32(ir.F32ToF16(h * h))
		for _, r := range []float32{h, y} {
			bits := math.Float32bits(r)
			if r != r {
				bits = 1 // any NaN
			}
			t.want = binary.LittleEndian.AppendUint32(t.want, bits)
		}
	}
	t.kernel = func(b *ir.Builder, i ir.Value) {
		in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.U32, ir.Write)
		h := b.Convert(b.Load(in, i, 1), ir.F16)
		for k, v := range []ir.Value{h, b.Mul(h, h)} {
			f := b.Convert(v, ir.F32)
			b.Store(out, b.Add(b.Mul(i, b.U32(2)), b.U32(uint32(k))), b.Select(b.IsNaN(f), b.U32(1), b.BitCast(f, ir.U32)))
		}
	}
	return t
}

// f16StorageTest turns an array around, one element at a time, which must leave the neighbour in its word alone.
func f16StorageTest() pathTest {
	t := pathTest{feature: "f16", has: func(c ir.Caps) bool { return c.F16Storage }}
	for i := range pathElements {
		t.in = binary.LittleEndian.AppendUint16(t.in, uint16(0x3c00+i*37))
		t.want = binary.LittleEndian.AppendUint16(t.want, uint16(0x3c00+(pathElements-1-i)*37))
	}
	t.kernel = reversed(ir.F16)
	return t
}

func u8Test() pathTest {
	t := pathTest{feature: "u8", has: func(c ir.Caps) bool { return c.U8Storage }}
	for i := range pathElements {
		t.in = append(t.in, byte(i*5+131))
		t.want = append(t.want, byte((pathElements-1-i)*5+131))
	}
	t.kernel = reversed(ir.U8)
	return t
}

func reversed(kind ir.Kind) func(b *ir.Builder, i ir.Value) {
	return func(b *ir.Builder, i ir.Value) {
		in, out := b.Buffer("in", kind, ir.Read), b.Buffer("out", kind, ir.Write)
		b.Store(out, b.Sub(b.U32(pathElements-1), i), b.Load(in, i, 1))
	}
}

// i64Test has a product and a sum with carries between the halves.
func i64Test() pathTest {
	t := pathTest{feature: "i64", has: func(c ir.Caps) bool { return c.I64 }}
	for i := range pathElements {
		x := int64(i-30) * 0x1_2345_6789
		t.in = binary.LittleEndian.AppendUint64(t.in, uint64(x))
		t.want = binary.LittleEndian.AppendUint64(t.want, uint64(x*x+x))
	}
	t.kernel = func(b *ir.Builder, i ir.Value) {
		in, out := b.Buffer("in", ir.I64, ir.Read), b.Buffer("out", ir.I64, ir.Write)
		x := b.Load(in, i, 1)
		b.Store(out, i, b.Add(b.Mul(x, x), x))
	}
	return t
}

// f64Test needs more bits than float32 has.
func f64Test() pathTest {
	t := pathTest{feature: "f64", has: func(c ir.Caps) bool { return c.F64 }}
	for i := range pathElements {
		x := 1 + float64(i)/(1<<40)
		t.in = binary.LittleEndian.AppendUint64(t.in, math.Float64bits(x))
		t.want = binary.LittleEndian.AppendUint64(t.want, math.Float64bits(x*3-1))
	}
	t.kernel = func(b *ir.Builder, i ir.Value) {
		in, out := b.Buffer("in", ir.F64, ir.Read), b.Buffer("out", ir.F64, ir.Write)
		x := b.Load(in, i, 1)
		b.Store(out, i, b.Sub(b.Mul(x, b.ConstLike(x, 3)), b.ConstLike(x, 1))) // exact, so that it may be fused
	}
	return t
}

// subgroupTest sums a number over the invocations of each subgroup, by exchanges at all distances.
func subgroupTest(size int) pathTest {
	t := pathTest{feature: "subgroup", has: func(c ir.Caps) bool { return c.MaxSubgroups > 0 && c.SubgroupSize > 1 }, subgroup: size}
	var masks []int
	for m := 1; m < size; m *= 2 {
		masks = append(masks, m)
	}
	value := func(i int) uint32 { return uint32(i*i + 7) }
	for i := range pathElements {
		t.in = binary.LittleEndian.AppendUint32(t.in, value(i))
		sum := uint32(0)
		for k := range size {
			sum += value(i&^(size-1) + k)
		}
		t.want = binary.LittleEndian.AppendUint32(t.want, sum)
	}
	t.kernel = func(b *ir.Builder, i ir.Value) {
		in, out := b.Buffer("in", ir.U32, ir.Read), b.Buffer("out", ir.U32, ir.Write)
		x := b.Load(in, i, 1)
		for _, m := range masks {
			x = b.Add(x, b.ShuffleXor(x, m))
		}
		b.Store(out, i, x)
	}
	return t
}

// pathFailure is an optional path that a device does not compute right.
type pathFailure struct {
	Feature string `json:"feature"`
	Reason  string `json:"reason"`
}

// testPaths runs the tests of the paths that the device has. The error is that of a device that was lost.
func testPaths(dev Device) ([]pathFailure, error) {
	var out []pathFailure
	for _, t := range pathTests(dev.Info().Caps) {
		if !t.has(dev.Info().Caps) {
			continue
		}
		reason, err := t.run(dev)
		if err != nil && (errors.Is(err, ErrDeviceLost) || errors.Is(err, ErrClosed)) {
			return nil, fmt.Errorf("self-test of %s: %w", t.feature, err)
		}
		if err != nil {
			reason = err.Error()
		}
		if reason != "" {
			out = append(out, pathFailure{t.feature, reason})
		}
	}
	return out, nil
}

// run returns what is wrong with the result, or why there is none.
func (t *pathTest) run(dev Device) (wrong string, err error) {
	local := max(32, t.subgroup)
	b := ir.NewBuilder("selftest_"+t.feature, local, 1, 1)
	b.SetSubgroup(t.subgroup)
	t.kernel(b, b.GlobalID(0))
	k, err := b.Build()
	if err != nil {
		return "", err
	}
	prog, err := dev.Compile(k)
	if err != nil {
		return "", err
	}
	defer prog.Free()
	var regions []Region
	for _, n := range []int{len(t.in), len(t.want)} {
		buf, err := dev.Alloc(int64(n))
		if err != nil {
			return "", err
		}
		defer buf.Free()
		regions = append(regions, Region{buf, 0, int64(n)})
	}
	got := make([]byte, len(t.want))
	if err := errors.Join(regions[0].Buffer.Write(0, t.in), regions[1].Buffer.Write(0, got)); err != nil {
		return "", err
	}
	fence, err := dev.Submit([]Launch{{Program: prog, Groups: [3]int{pathElements / local, 1, 1}, Buffers: regions}})
	if err != nil {
		return "", err
	}
	if err := fence.Wait(context.Background()); err != nil {
		return "", err
	}
	if err := regions[1].Buffer.Read(0, got); err != nil {
		return "", err
	}
	if bytes.Equal(got, t.want) {
		return "", nil
	}
	at := 0
	for got[at] == t.want[at] {
		at++
	}
	return fmt.Sprintf("byte %d of the result is %#02x instead of %#02x", at, got[at], t.want[at]), nil
}

// restrict takes out the failed paths and notes it.
func restrict(info *Info, failures []pathFailure) {
	for _, f := range failures {
		for _, known := range features {
			if known.name == f.Feature && known.off(info) {
				info.Notes = append(info.Notes, fmt.Sprintf("%s was switched off: the driver fails the self-test of it (%s)", f.Feature, f.Reason))
			}
		}
	}
}

// selfTest tests a device that was opened, and switches off what it computes wrong.
func selfTest(dev Device, info *Info) error {
	r, ok := As[Restricter](dev)
	if !ok {
		return nil
	}
	failures, known := knownFailures(dev.Info())
	if !known {
		var err error
		if failures, err = testPaths(dev); err != nil {
			return err
		}
		rememberFailures(dev.Info(), failures)
	}
	if len(failures) == 0 {
		return nil
	}
	for _, f := range failures {
		slog.Warn("a device fails a self-test; the path is switched off", "device", info.String(), "name", info.Name, "driver", info.Driver+" "+info.DriverVersion, "path", f.Feature, "reason", f.Reason)
	}
	r.Restrict(func(i *Info) { restrict(i, failures) })
	restrict(info, failures)
	return nil
}
