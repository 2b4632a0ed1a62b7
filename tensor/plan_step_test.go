package tensor_test

import (
	"testing"

	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/tensor"
)

// stepAllocations bounds the Go heap allocations of a steady step for each operator that it calls, gradients included. See
// docs/performance.md.
const stepAllocations = 16

// TestStepAllocations holds a steady step to plans, to no device allocation, and to a bounded number of allocations on Go's heap.
func TestStepAllocations(t *testing.T) {
	dev := null.New(null.Config{NoRecord: true})
	defer dev.Close()
	c := newClassifier(dev, 128, 32, 24, 16, 10)
	step := func() {
		if err := c.step(); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		step()
	}
	const runs = 20
	before, buffers := tensor.Launches(dev), dev.Counts().Allocs
	allocs := testing.AllocsPerRun(runs-1, step) // which calls it once more
	after := tensor.Launches(dev)
	operators := float64(after.Nodes-before.Nodes) / runs
	t.Logf("%.0f allocations for %.0f operators: %.1f each", allocs, operators, allocs/operators)
	if allocs > stepAllocations*operators {
		t.Errorf("a step of %.0f operators makes %.0f allocations, more than %d for each", operators, allocs, stepAllocations)
	}
	if n := dev.Counts().Allocs - buffers; n != 0 {
		t.Errorf("%d buffers were allocated in %d steady steps", n, runs)
	}
	if flushes, planned := after.Flushes-before.Flushes, after.Planned-before.Planned; planned != flushes {
		t.Errorf("%d of %d flushes went by plans", planned, flushes)
	}
	if after.Programs != before.Programs {
		t.Errorf("%d kernels were compiled", after.Programs-before.Programs)
	}
}

// TestChainAllocations bounds the allocations of an operator that needs no gradient: the tensor, the list of operands, and a part of those
// that operators share.
func TestChainAllocations(t *testing.T) {
	dev := null.New(null.Config{NoRecord: true})
	defer dev.Close()
	x, b := tensor.Ones(dev, tensor.Float32, 4), tensor.Ones(dev, tensor.Float32, 4)
	const n = 1000
	step := func() {
		s := tensor.NewScope(dev)
		y := s.To(x)
		for range n {
			y = y.Add(b)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		step()
	}
	if allocs := testing.AllocsPerRun(10, step) / n; allocs > 2.5 {
		t.Errorf("%.1f allocations for an addition, more than 2.5", allocs)
	} else {
		t.Logf("%.1f allocations for an addition", allocs)
	}
}
