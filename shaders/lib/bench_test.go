package lib_test

import (
	"context"
	"os"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// BenchmarkKernels times the memory-bound kernels on every device. Throughput counts the bytes that must be moved at
// least: each input read once, each output written once.
func BenchmarkKernels(b *testing.B) {
	const n = 1 << 23
	gelu := func(b *ir.Builder, in, _ vals) vals {
		x := b.Add(b.Mul(in[0], in[1]), in[2])
		inner := b.Mul(b.ConstLike(x, 0.7978845608), b.Add(x, b.Mul(b.ConstLike(x, 0.044715), b.Mul(x, b.Mul(x, x)))))
		return vals{b.Mul(b.Mul(b.ConstLike(x, 0.5), x), b.Add(b.ConstLike(x, 1), b.Tanh(inner)))}
	}
	f32 := of(ir.F32)
	total := lib.Reduce{Op: lib.ReduceSum, Outer: 1, N: n, Inner: 1, In: []lib.Operand{f32}, Out: f32}
	rows, columns := total, total
	rows.Outer, rows.N = 8192, 1024
	columns.N, columns.Inner = 8192, 1024
	for _, c := range []struct {
		name    string
		gen     lib.Generator
		in, out int // elements
	}{
		{"add", &lib.Elementwise{BodyKey: "add", Shape: []int{n}, In: []lib.Operand{f32, f32}, Out: []lib.Operand{f32}, Body: add}, 2 * n, n},
		{"gelu", &lib.Elementwise{BodyKey: "gelu", Shape: []int{n}, In: []lib.Operand{f32, f32, f32}, Out: []lib.Operand{f32}, Body: gelu}, 3 * n, n},
		{"bias", &lib.Elementwise{BodyKey: "add", Shape: []int{8192, 1024}, In: []lib.Operand{f32, strided(ir.F32, 0, 0, 1)}, Out: []lib.Operand{f32}, Body: add}, n, n},
		{"transpose", &lib.Elementwise{BodyKey: "copy", Shape: []int{4096, 2048}, In: []lib.Operand{strided(ir.F32, 0, 1, 4096)}, Out: []lib.Operand{f32},
			Body: func(_ *ir.Builder, in, _ vals) vals { return in }}, n, n},
		{"total", &total, n, 0},
		{"rows", &rows, n, 0},
		{"columns", &columns, n, 0},
		{"softmax", &lib.Softmax{Outer: 8192, N: 1024, Inner: 1, In: ir.F32, Out: ir.F32}, n, n},
		{"uniform", &lib.Random{Dist: lib.RandomUniform, N: n, Out: ir.F32}, 0, n},
		{"normal", &lib.Random{Dist: lib.RandomNormal, N: n, Out: ir.F32}, 0, n},
	} {
		b.Run(c.name, func(b *testing.B) { benchKernel(b, c.gen, 4*(c.in+c.out)) })
	}
}

func benchKernel(b *testing.B, gen lib.Generator, bytes int) {
	for _, info := range backend.List() {
		if only := os.Getenv("ANYGPU_TEST_DEVICE"); info.Problem != "" || only != "" && only != info.String() {
			continue
		}
		b.Run(info.String(), func(b *testing.B) {
			dev, err := backend.Open(info.String())
			if err != nil {
				b.Fatal(err)
			}
			defer dev.Close()
			k, err := gen.Build(info.Target())
			if err != nil {
				b.Fatal(err)
			}
			stages, scratch := lib.Stages(gen, info.Target(), len(k.Globals()))
			alloc := func(n int64) backend.Region {
				buf, err := dev.Alloc(n)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(buf.Free)
				return backend.Region{Buffer: buf, Size: n}
			}
			var bufs, temps []backend.Region
			for range k.Globals() {
				bufs = append(bufs, alloc(1<<25))
			}
			for _, n := range scratch {
				temps = append(temps, alloc(n))
			}
			var batch []backend.Launch
			for _, s := range stages {
				k, err := s.Gen.Build(info.Target())
				if err != nil {
					b.Fatal(err)
				}
				p, err := dev.Compile(k)
				if err != nil {
					b.Fatal(err)
				}
				defer p.Free()
				groups, params, err := s.Gen.Launch(info.Target())
				if err != nil {
					b.Fatal(err)
				}
				l := backend.Launch{Program: p, Groups: groups, Params: params, Cost: s.Gen.Cost()}
				for _, j := range s.Buffers {
					if j < 0 {
						l.Buffers = append(l.Buffers, temps[^j])
					} else {
						l.Buffers = append(l.Buffers, bufs[j])
					}
				}
				batch = append(batch, l)
			}
			run := func() {
				f, err := dev.Submit(batch)
				if err == nil {
					err = f.Wait(context.Background())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			run()
			b.SetBytes(int64(bytes))
			for b.Loop() {
				run()
			}
		})
	}
}
