package conformance_test

import (
	"regexp"
	"testing"

	"github.com/anygpu/anygpu/backend/cpu"
	"github.com/anygpu/anygpu/conformance"
	"github.com/anygpu/anygpu/shaders/jit"
)

// interpreted are the reasons for which the CPU device interprets kernels of operators. The list is to shrink.
var interpreted = regexp.MustCompile(`(the device has no \w+ of f64|exp of f64(x\d+)?|(div|rem) of i64(x\d+)?)$`)

// TestInterpretedKernels: where there is machine code, all kernels of the operators have some but those of the list.
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
		if !interpreted.MatchString(why.Error()) {
			t.Errorf("kernel %s is interpreted: %v", name, why)
		}
	}
	if len(d.Interpreted()) == 0 {
		t.Error("no kernel is interpreted: shorten the list")
	}
}
