package interp_test

import (
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// elementwise builds a guarded kernel over three inputs and an output, lanes elements an invocation.
func elementwise(tb testing.TB, kind ir.Kind, lanes int, body func(b *ir.Builder, x, y, z ir.Value) ir.Value) *interp.Program {
	b := ir.NewBuilder("bench", 64, 1, 1)
	x, y, z, out := b.Buffer("x", kind, ir.Read), b.Buffer("y", kind, ir.Read), b.Buffer("z", kind, ir.Read), b.Buffer("out", kind, ir.Write)
	n := b.Param("n", ir.U32)
	i := b.Mul(b.LinearID(), b.U32(uint32(lanes)))
	load := func(m *ir.Mem) ir.Value {
		v := b.Load(m, i, lanes)
		if kind == ir.F16 {
			return b.Convert(v, ir.F32)
		}
		return v
	}
	b.If(b.Lt(i, n), func() { b.Store(out, i, b.Convert(body(b, load(x), load(y), load(z)), kind)) }, nil)
	k, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := interp.Compile(k)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func BenchmarkBlock(b *testing.B) {
	fma := func(b *ir.Builder, x, y, z ir.Value) ir.Value { return b.Add(b.Mul(x, y), z) }
	cases := []struct {
		name  string
		kind  ir.Kind
		lanes int
		body  func(b *ir.Builder, x, y, z ir.Value) ir.Value
	}{
		{"fma/f32", ir.F32, 1, fma},
		{"fma/f32x4", ir.F32, 4, fma},
		{"fma/f16x4", ir.F16, 4, fma},
		{"exp/f32", ir.F32, 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value { return b.Exp(x) }},
		{"tanh/f32", ir.F32, 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value { return b.Tanh(x) }},
		{"relu/f32", ir.F32, 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Select(b.Gt(x, b.F32(0)), x, b.F32(0))
		}},
	}
	for _, tc := range cases {
		b.Run(tc.name, func(b *testing.B) {
			const n = 1 << 18
			p := elementwise(b, tc.kind, tc.lanes, tc.body)
			bufs := make([][]byte, 4)
			for i := range bufs {
				bufs[i] = make([]byte, n*tc.kind.Size())
				for j := range bufs[i] {
					if j%4 != 3 {
						bufs[i][j] = byte(j * 7)
					} else {
						bufs[i][j] = 0x3f
					}
				}
			}
			pool := interp.NewPool(1)
			b.ResetTimer()
			for range b.N {
				if err := p.Run([3]int{n / 64 / tc.lanes, 1, 1}, bufs, []uint32{n}, pool); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelem/s")
		})
	}
}
