package jit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/interp/kerneltest"
	"github.com/anygpu/anygpu/shaders/ir"
)

func needCode(t testing.TB) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skip(err)
	}
}

// aligned returns copies of buffers at multiples of 64 bytes.
func aligned(buffers [][]byte) [][]byte {
	out := make([][]byte, len(buffers))
	for i, b := range buffers {
		f := newFrame(len(b) + 8)
		out[i] = append(unsafeBytes(f, len(b))[:0], b...)
	}
	return out
}

// TestRandomKernels holds random kernels against the checking executor, bit for bit.
func TestRandomKernels(t *testing.T) {
	needCode(t)
	roundProducts = true
	defer func() { roundProducts = false }()
	configs := []kerneltest.Config{
		{Kinds: []ir.Kind{ir.Bool, ir.U32, ir.I32, ir.F32}, Lanes: []int{1}},
		{Kinds: []ir.Kind{ir.Bool, ir.U32, ir.I32, ir.F32}, Lanes: []int{1}, Control: true},
		{Kinds: []ir.Kind{ir.Bool, ir.U32, ir.U8, ir.U16, ir.F32, ir.F16, ir.BF16}, Lanes: []int{1}, Control: true},
		{Kinds: []ir.Kind{ir.Bool, ir.U32, ir.I64, ir.F32, ir.F64}, Lanes: []int{1}, Control: true},
		{Kinds: []ir.Kind{ir.Bool, ir.U32, ir.I32, ir.F32}, Control: true},
		{Kinds: []ir.Kind{ir.Bool, ir.U32, ir.U8, ir.F16, ir.BF16, ir.F32}, Control: true},
		{Kinds: []ir.Kind{ir.Bool, ir.U32, ir.I64, ir.F64}, Control: true},
	}
	for n, cfg := range configs {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			compiled := 0
			reasons := map[string]int{}
			for seed := range uint64(150) {
				cfg := cfg
				cfg.Exact = seed%2 == 0
				cfg.Steps = 4 + rand.New(rand.NewPCG(seed, 3)).IntN(30)
				c, err := kerneltest.New(seed, cfg)
				if err != nil {
					t.Fatal(err)
				}
				p, err := Compile(c.Kernel)
				if errors.Is(err, ErrUnsupported) {
					reasons[err.Error()]++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				compiled++
				want := c.Data()
				if err := interp.Check(c.Kernel, c.Groups, want, c.Params, interp.CheckOptions{Uninit: c.Written}); err != nil {
					t.Fatal(err)
				}
				got := aligned(c.Data())
				err = p.Run(c.Groups, got, c.Params, interp.DefaultPool())
				if err == nil {
					err = c.Compare(want, got)
				}
				if err != nil {
					low, _ := ir.Lower(c.Kernel, caps(c.Kernel))
					t.Fatalf("seed %d: %v\n%s\n%s", seed, err, c.Kernel, low)
				}
			}
			t.Logf("%d compiled, not: %v", compiled, reasons)
		})
	}
}
