package main

import (
	"runtime"
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

// TestTextStep bounds the kernels and the allocations on Go's heap of a steady training step of the gpt workload on the CPU device. See
// docs/performance.md.
func TestTextStep(t *testing.T) {
	const kernels, allocations = 109, 12000
	w, err := findWorkload("gpt_adamw_step")
	if err != nil {
		t.Fatal(err)
	}
	dev := tensor.CPU()
	run, err := w.prepare(dev, benchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		step()
	}
	const runs = 4
	before := tensor.Launches(dev).Launches
	allocs := testing.AllocsPerRun(runs-1, step) // which calls it once more
	launches := (tensor.Launches(dev).Launches - before) / runs
	t.Logf("%d kernels, %.0f allocations", launches, allocs)
	if launches > kernels {
		t.Errorf("a step launches %d kernels, more than %d", launches, kernels)
	}
	if allocs > allocations && runtime.GOARCH == "amd64" { // where kernels are machine code
		t.Errorf("a step makes %.0f allocations, more than %d", allocs, allocations)
	}
}
