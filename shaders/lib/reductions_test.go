package lib_test

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// reductionsCases are kernels of several reductions, each with the check of its own kernel; where a target does one of them in stages,
// each is a kernel.
func reductionsCases() []kcase {
	var out []kcase
	shapes := [][3]int{{1, 40, 130}, {2, 100, 16}, {1, 128, 64}, {3, 33, 5}, {7, 64, 1}, {1, 10, 10}}
	for i := range shapes[:len(shapes)-1] {
		for _, op := range []lib.ReduceOp{lib.ReduceSum, lib.ReduceMax} {
			out = append(out, reductionsCase(op, shapes[i], shapes[i+1]))
		}
	}
	return append(out, reductionsCase(lib.ReduceSum, shapes[0], shapes[2], shapes[5]), reductionsCase(lib.ReduceSum, shapes[1]))
}

func reductionsCase(op lib.ReduceOp, shapes ...[3]int) kcase {
	c := kcase{name: fmt.Sprintf("reductions %s %v", op, shapes)}
	all := &lib.Reductions{}
	for i, s := range shapes {
		r := lib.Reduce{Name: "part", Op: op, Outer: s[0], N: s[1], Inner: s[2], In: []lib.Operand{of(ir.F32)}, Out: of(ir.F32)}
		alone := reduction("part", r, [][]float64{noise(ir.F32, s[0]*s[1]*s[2], uint64(i))}, nil, nil, 2e-5)
		c.bufs = append(c.bufs, alone.bufs[:2]...)
		all.List = append(all.List, &r)
	}
	c.steps = func(t lib.Target) []step {
		bufs := make([]int, len(c.bufs))
		joined := true
		for i := range bufs {
			bufs[i] = i
			joined = joined && all.List[i/2].Joins(t)
		}
		if joined && all.Fits(t) {
			return []step{{all, bufs}}
		}
		var steps []step
		for i, r := range all.List {
			steps = append(steps, step{r, []int{2 * i, 2*i + 1}})
		}
		return steps
	}
	return c
}
