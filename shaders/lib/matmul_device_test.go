package lib_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// TestMatMulDevices runs the tiles of matrix products on every device of the machine, and the shapes for GPUs, with workgroup
// memory, also where there is none. The block executor takes seconds for those, so that the CPU device is left out.
func TestMatMulDevices(t *testing.T) {
	cases := matMulCases()
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
			for _, asGPU := range []bool{false, true} {
				d := real{Device: dev, programs: map[string]backend.Program{}, asGPU: asGPU}
				for i, c := range cases {
					if info.API == "opencl" && i%6 != b2i(asGPU) && os.Getenv("ANYGPU_TEST_ALL") == "" {
						continue // each program takes half a second to compile
					}
					if supports(d.target(), c) {
						runCase(t, d, c)
					}
				}
				for _, p := range d.programs {
					p.Free()
				}
			}
		})
	}
}

// BenchmarkMatMul times products on every device: MB/s are MFLOP/s. The buffers are not initialised.
func BenchmarkMatMul(b *testing.B) {
	for _, size := range [][3]int{{128, 512, 784}, {512, 512, 512}, {1024, 1024, 1024}} {
		for _, transB := range []bool{false, true} {
			s := f32MatMul(size[0], size[1], size[2], false, transB)
			b.Run(fmt.Sprintf("%dx%dx%d,transB=%v", size[0], size[1], size[2], transB), func(b *testing.B) { benchKernel(b, &s, int(s.Cost())) })
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
