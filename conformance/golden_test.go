package conformance_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/anygpu/anygpu/conformance"
)

func TestGoldenOps(t *testing.T) {
	dir, err := fs.Sub(conformance.GoldenData(), "ops")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := conformance.LoadGolden(dir)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, c := range cases {
		if !c.Supported() {
			missing[c.Op] = true
		}
	}
	// The operators that an MLP classifier needs must be there.
	for _, op := range []string{"add", "sub", "mul", "div", "exp", "log", "sqrt", "tanh", "relu", "gelu", "sigmoid", "where", "matmul", "linear", "sum", "mean", "amax",
		"argmax", "softmax", "log_softmax", "cross_entropy", "reshape", "permute", "transpose", "expand", "slice", "cat", "eq", "lt"} {
		if missing[op] {
			t.Errorf("operator %s is missing", op)
		}
	}
	eachDevice(t, "golden", func(t *testing.T, dev device) {
		passed := 0
		for _, c := range cases {
			err := c.Run(dev)
			var not *conformance.NotSupportedError
			switch {
			case errors.As(err, &not):
			case err != nil:
				t.Error(err)
			default:
				passed++
			}
		}
		t.Logf("%d of %d cases passed; operators not built yet: %d", passed, len(cases), len(missing))
		if passed < 120 {
			t.Errorf("only %d cases passed", passed)
		}
	})
}
