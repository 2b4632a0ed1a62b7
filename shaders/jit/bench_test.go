package jit

import (
	"os"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// elementwise returns a kernel that maps F32 elements.
func elementwise(t testing.TB, f func(b *ir.Builder, x ir.Value) ir.Value) *ir.Kernel {
	t.Helper()
	b := ir.NewBuilder("map", 1024, 1, 1)
	in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	n := b.Param("n", ir.U32)
	i := b.LinearID()
	b.If(b.Lt(i, n), func() { b.Store(out, i, f(b, b.Load(in, i, 1))) }, nil)
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var maps = []struct {
	name string
	f    func(b *ir.Builder, x ir.Value) ir.Value
}{
	{"copy", func(_ *ir.Builder, x ir.Value) ir.Value { return x }},
	{"exp", (*ir.Builder).Exp},
	{"tanh", (*ir.Builder).Tanh},
	{"sigmoid", (*ir.Builder).Sigmoid},
	{"log", (*ir.Builder).Log},
	{"erf", (*ir.Builder).Erf},
	{"sin", (*ir.Builder).Sin},
	{"expm1", (*ir.Builder).Expm1},
	{"log1p", (*ir.Builder).Log1p},
	{"rsqrt", (*ir.Builder).Rsqrt},
	{"pow", func(b *ir.Builder, x ir.Value) ir.Value { return b.Pow(x, b.F32(1.7)) }},
	{"atan", (*ir.Builder).Atan},
}

// BenchmarkMap measures functions on elements in the second-level cache, on one core.
func BenchmarkMap(b *testing.B) {
	needCode(b)
	const n = 1 << 16
	pool := interp.NewPool(1)
	for _, m := range maps {
		b.Run(m.name, func(b *testing.B) {
			k := elementwise(b, m.f)
			p, err := Compile(k)
			if err != nil {
				b.Fatal(err)
			}
			if dir := os.Getenv("JIT_DUMP"); dir != "" {
				mc, _ := generate(k)
				os.WriteFile(dir+"/"+m.name, mc.code, 0o644)
			}
			bufs := aligned([][]byte{make([]byte, 4*n), make([]byte, 4*n)})
			for b.Loop() {
				if err := p.Run([3]int{n / 1024, 1, 1}, bufs, []uint32{n}, pool); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/elem")
		})
	}
}
