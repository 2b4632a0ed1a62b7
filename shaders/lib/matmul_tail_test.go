package lib_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// tailCases are products whose kernel also computes x*s + y and its ReLU from the result x, with two outputs.
func tailCases() []kcase {
	var all []kcase
	add := func(m, n, k, trans, tile, ops int, kind, bias ir.Kind) {
		s := f32MatMul(m, n, k, trans&1 != 0, trans&2 != 0)
		s.Bias, s.Tile = bias, tile
		c := matMulCase(fmt.Sprintf("tail of %dx%dx%d, trans %d, tile %d, %d operators, bias %s", m, n, k, trans, tile, ops, bias), s, nil)
		out := c.bufs[len(c.bufs)-1]
		y := array{kind: kind, data: noise(kind, m*n, uint64(m+n))}
		half, relued := out, out
		half.want, relued.want = make([]float64, m*n), make([]float64, m*n)
		half.kind, half.rel, half.abs = kind, 1.0/1024, out.abs+1e-6
		for i, x := range out.want {
			v := x*0.5 + y.data[i]
			half.want[i], relued.want[i] = v, max(v, 0)
		}
		half.data, relued.data = make([]float64, m*n), make([]float64, m*n)
		s.Tail = &lib.Elementwise{BodyKey: fmt.Sprint("axpy, relu ", ops), Ops: make([]string, ops), Shape: []int{m, n},
			In: []lib.Operand{of(ir.F32), of(kind)}, Out: []lib.Operand{of(kind), of(ir.F32)}, Scalars: []ir.Kind{ir.F32}, ScalarBits: []uint32{0x3f000000},
			Body: func(b *ir.Builder, in, scalars []ir.Value) []ir.Value {
				v := b.Fma(in[0], b.Splat(scalars[0], in[0].Type.Lanes), in[1])
				return []ir.Value{v, b.Max(v, b.ConstLike(v, 0))}
			}}
		c.bufs = append(c.bufs[:len(c.bufs)-1], y, half, relued)
		all = append(all, kcase{name: c.name, bufs: c.bufs, steps: one(&s, len(c.bufs))})
	}
	for trans := range 4 {
		add(70, 130, 90, trans, 0, 2, ir.F32, ir.Void)
		add(65, 96, 128, trans, 0, 5, ir.F16, ir.F32)
	}
	add(40, 36, 30, 0, 0, 2, ir.F32, ir.F16)
	for tile := range 8 {
		add(33, 64, 48, tile&3, 1+tile, 2+tile, ir.F32, ir.Void)
	}
	return all
}

// TestMatMulTail runs them for every target that takes a tail, and on the OpenCL devices of the machine, where products of several kernels take none.
func TestMatMulTail(t *testing.T) {
	run := func(t *testing.T, d device, cases []kcase) (ran int) {
		for _, c := range cases {
			steps := c.steps(d.target())
			s := steps[0].gen.(*lib.MatMul)
			plain := *s
			plain.Tail = nil
			if !plain.TakesTail(d.target()) || s.Tile > d.target().MatMulTiles() {
				continue
			}
			if stages, _ := s.Stages(d.target()); len(stages) > 0 {
				t.Errorf("%s: several kernels", c.name)
			}
			runCase(t, d, c)
			ran++
		}
		return ran
	}
	for _, d := range targets() {
		if n := run(t, d, tailCases()); n < 1 || n < 9 && d.name != "pocl" {
			t.Errorf("%s: %d products take tails", d.name, n)
		}
	}
	for _, info := range backend.List() {
		if only := os.Getenv("ANYGPU_TEST_DEVICE"); info.API != "opencl" || info.Problem != "" || only != "" && only != info.String() {
			continue
		}
		t.Run(info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			d := real{Device: dev, programs: map[string]backend.Program{}}
			run(t, d, tailCases()[8:12])
			for _, p := range d.programs {
				p.Free()
			}
		})
	}
}
