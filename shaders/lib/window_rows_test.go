package lib_test

import (
	"os"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// windowRowCases are pooling kernels whose windows lie side by side, with whole and overlapping steps of a row and with margins.
func windowRowCases() []kcase {
	var out []kcase
	add := func(outer int, image, kernel []int, kinds ...ir.Kind) {
		w := lib.Window{Outer: outer, Image: image, Kernel: kernel, Stride: kernel}
		for i, n := range image {
			w.Grid, w.Pad, w.Dilation = append(w.Grid, n/kernel[i]), append(w.Pad, 0), append(w.Dilation, 1)
		}
		for _, w.In = range kinds {
			w.Out = w.In
			for _, w.Op = range []lib.WindowOp{lib.WindowMax, lib.WindowPlace} {
				out = append(out, windowCase(w))
			}
			for i, op := range []lib.WindowOp{lib.WindowSum, lib.WindowSpread} {
				a := w
				a.Op, a.Divide, a.Divisor = op, []lib.WindowDivide{lib.DivideInside, lib.DivideBy}[(i+outer)%2], 3
				out = append(out, windowCase(a))
			}
		}
	}
	add(3, []int{37}, []int{3}, ir.F32)
	add(2, []int{9, 29}, []int{2, 2}, ir.F32, ir.F16, ir.BF16, ir.F64)
	add(2, []int{4, 5, 9}, []int{2, 3, 2}, ir.F32)
	add(1, []int{6, 16}, []int{2, 4}, ir.F32)
	return out
}

// TestWindowRows runs them in the checking executor, and on the OpenCL devices of the machine.
func TestWindowRows(t *testing.T) {
	for _, c := range windowRowCases() {
		runCase(t, pocl(), c)
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
			for _, c := range windowRowCases() {
				if supports(d.target(), c) {
					runCase(t, d, c)
				}
			}
			for _, p := range d.programs {
				p.Free()
			}
		})
	}
}
