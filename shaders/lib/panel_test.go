package lib_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// pocl is the target whose products go by way of packed panels.
func pocl() checked { return targets()[3] }

const panelPlans = 8 // the last ones of a target's shapes

// panelCases are products in every plan: whole and ragged tiles, all transpositions, batches with and without a repeated
// operand, offsets, biases, epilogues and kinds.
func panelCases(t lib.Target) []kcase {
	var all []kcase
	first := t.MatMulTiles() - panelPlans + 1
	for plan := range panelPlans {
		for i, size := range [][3]int{{16, 64, 32}, {13, 45, 21}, {45, 13, 16}, {64, 16, 5}, {1, 16, 1}} {
			for trans := range 4 {
				if (plan+i+trans)%2 != 0 {
					continue // each pair of a plan and a transposition still meets two sizes or more
				}
				s := f32MatMul(size[0], size[1], size[2], trans&1 != 0, trans&2 != 0)
				s.Tile = first + plan
				name := fmt.Sprintf("panels %d, %v, trans %d", plan, size, trans)
				switch (plan/2 + i + trans) % 4 {
				case 0:
					s.A, s.B, s.Out = ir.F16, ir.F16, ir.F16
				case 1:
					s.Batch, s.BatchStrideA, s.BatchStrideB, s.OffsetA, s.OffsetB = 3, s.M*s.K, 0, 16, 32
				case 2:
					s.Batch, s.BatchStrideA, s.BatchStrideB, s.OffsetB = 2, 0, s.N*s.K+7, 3
					s.Bias, s.Out = ir.F32, ir.BF16
				}
				if trans == 3 {
					s.Bias, s.EpilogueKey, s.Epilogue = ir.F32, "relu", relu
					all = append(all, matMulCase(name, s, func(x float64) float64 { return max(x, 0) }))
					continue
				}
				all = append(all, matMulCase(name, s, nil))
			}
		}
	}
	return all
}

func TestPanels(t *testing.T) {
	d := pocl()
	packed := 0
	for _, c := range panelCases(d.t) {
		runCase(t, d, c)
		steps, _, _ := staged(d.t, c.steps(d.t), nil, nil, nil)
		if len(steps) > 1 {
			packed++
		}
	}
	if packed < 40 {
		t.Errorf("%d cases had packed operands, want at least 40", packed)
	}
}

// TestPanelMemory: panels across the lanes take 16 bits where the operand does, those that are broadcast 32.
func TestPanelMemory(t *testing.T) {
	d := pocl()
	for plan, across := range map[int]int{3: 64 * 32, 7: 32 * 32} { // both operands are packed, B or A across the lanes
		for _, kind := range []ir.Kind{ir.F32, ir.F16, ir.BF16} {
			s := f32MatMul(32, 64, 32, false, false)
			s.A, s.B, s.Out, s.Tile = kind, kind, kind, d.t.MatMulTiles()-panelPlans+1+plan
			_, scratch := s.Stages(d.t)
			total := int64(0)
			for _, n := range scratch {
				total += n
			}
			if want := int64(across*kind.Size() + (64+32)*32*4 - across*4); total != want {
				t.Errorf("plan %d of %s: %d bytes of panels, want %d", plan, kind, total, want)
			}
		}
	}
}

// TestPanelsDevices runs products that choose panels by their sizes on the OpenCL devices of the machine.
func TestPanelsDevices(t *testing.T) {
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
			if d.target().GPU {
				t.Skip("a GPU multiplies in workgroup memory")
			}
			for i, size := range [][3]int{{70, 130, 90}, {128, 64, 100}, {130, 65, 71}} {
				for trans := range 4 {
					s := f32MatMul(size[0], size[1], size[2], trans&1 != 0, trans&2 != 0)
					if i == 2 {
						s.A, s.B = ir.F16, ir.F16
					}
					if stages, _ := s.Stages(d.target()); len(stages) == 0 {
						t.Errorf("%v does not go by way of panels", size)
					}
					runCase(t, d, matMulCase(fmt.Sprint(size, trans), s, nil))
				}
			}
			for _, p := range d.programs {
				p.Free()
			}
		})
	}
}
