package lib_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// splitCases are products with few outputs that a GPU cuts along K, into as many parts as the sizes call for and as the tuner may try.
func splitCases(t lib.Target) []kcase {
	var all []kcase
	add := func(name string, s lib.MatMul, epilogue func(float64) float64) {
		all = append(all, matMulCase("split "+name, s, epilogue))
	}
	for trans := range 4 {
		s := f32MatMul(40, 36, 600, trans&1 != 0, trans&2 != 0)
		add(fmt.Sprint("sizes ", trans), s, nil)
	}
	s := f32MatMul(33, 31, 613, true, false) // a weight's gradient; the last part ends within a step
	s.Tile = t.MatMulTiles() - 2             // four parts
	add("odd", s, nil)
	s.Bias, s.EpilogueKey, s.Epilogue = ir.F16, "relu", relu
	add("odd, bias, relu", s, func(x float64) float64 { return max(x, 0) })
	s = f32MatMul(20, 24, 640, false, true)
	s.A, s.B, s.Out, s.Batch, s.BatchStrideA, s.BatchStrideB, s.Bias = ir.F16, ir.F16, ir.F16, 2, 20*640, 24*640, ir.F32
	add("half, batch", s, nil)
	return all
}

// TestMatMulSplit runs them in the checking executor, as kernels for GPUs, and on the devices of the machine.
func TestMatMulSplit(t *testing.T) {
	run := func(t *testing.T, d device) {
		for _, c := range splitCases(d.target()) {
			if stages, _, _ := staged(d.target(), c.steps(d.target()), nil, nil, nil); len(stages) != 2 {
				t.Errorf("%s is %d kernels, want 2", c.name, len(stages))
			}
			if supports(d.target(), c) {
				runCase(t, d, c)
			}
		}
	}
	for _, d := range targets() {
		if d.t.GPU {
			t.Run(d.name, func(t *testing.T) { run(t, d) })
			continue
		}
		s := f32MatMul(40, 36, 600, false, false)
		stages, _ := s.Stages(d.t)
		for _, stage := range stages {
			if strings.HasPrefix(stage.Gen.Key(), "split") {
				t.Errorf("%s cuts products along K", d.name)
			}
		}
	}
	for _, info := range backend.List() {
		if only := os.Getenv("ANYGPU_TEST_DEVICE"); info.API == "cpu" || info.Problem != "" || only != "" && only != info.String() {
			continue
		}
		t.Run(info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			d := real{Device: dev, programs: map[string]backend.Program{}, asGPU: true}
			run(t, d)
			for _, p := range d.programs {
				p.Free()
			}
		})
	}
}
