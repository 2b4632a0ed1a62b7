package conformance_test

import (
	"regexp"
	"testing"

	"github.com/anygpu/anygpu/backend/cpu"
	"github.com/anygpu/anygpu/conformance"
	"github.com/anygpu/anygpu/shaders/jit"
)

// TestInterpretedKernels: where there is machine code, all kernels of the operators have some. One that is interpreted computes math functions to other
// bits, so that results would depend on what is fused.
func TestInterpretedKernels(t *testing.T) {
	if err := jit.Available(); err != nil {
		t.Skip(err)
	}
	d := cpu.New()
	defer d.Close()
	_, err := conformance.Check(d, conformance.Options{Suite: regexp.MustCompile("^(operators|random)$"), Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range d.Interpreted() {
		t.Errorf("kernel %s is interpreted: %v", name, why)
	}
}
