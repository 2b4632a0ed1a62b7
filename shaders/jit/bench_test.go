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

// BenchmarkColumns measures sums of columns of a matrix in the second-level cache, on one core.
func BenchmarkColumns(b *testing.B) {
	needCode(b)
	const rows, columns = 64, 1024
	k := build(b, "columns", 1024, func(b *ir.Builder) {
		in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
		n, inner := b.Param("n", ir.U32), b.Param("inner", ir.U32)
		i := b.GlobalID(0)
		b.If(b.Lt(i, inner), func() {
			total := b.Var(b.F32(0))
			b.For(b.U32(0), n, b.U32(16), func(first ir.Value) {
				sum := b.Var(b.F32(0))
				b.For(first, b.Add(first, b.Min(b.U32(16), b.Sub(n, first))), b.U32(1), func(j ir.Value) {
					b.Set(sum, b.Add(b.Get(sum), b.Load(in, b.Add(i, b.Mul(j, inner)), 1)))
				})
				b.Set(total, b.Add(b.Get(total), b.Get(sum)))
			})
			b.Store(out, i, b.Get(total))
		}, nil)
	})
	p, err := Compile(k)
	if err != nil {
		b.Fatal(err)
	}
	if dir := os.Getenv("JIT_DUMP"); dir != "" {
		mc, _ := generate(k)
		os.WriteFile(dir+"/columns", mc.code, 0o644)
	}
	bufs := aligned([][]byte{make([]byte, 4*rows*columns), make([]byte, 4*columns)})
	pool := interp.NewPool(1)
	for b.Loop() {
		if err := p.Run([3]int{columns / 1024, 1, 1}, bufs, []uint32{rows, columns}, pool); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*columns), "ns/elem")
}
