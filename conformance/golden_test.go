package conformance_test

import (
	"io/fs"
	"regexp"
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
	// By Check, which has the kernels of several cases compiled together where the compiler takes long to start.
	want := regexp.MustCompile(`^operators/golden/.*/float32$`)
	eachDevice(t, "golden", func(t *testing.T, dev device) {
		r, err := conformance.Check(dev, conformance.Options{Suite: regexp.MustCompile("^operators$"), Case: want, Context: t.Context()})
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range r.Results {
			if res.Status != conformance.Pass {
				t.Errorf("%s: %s: %s", res.Name, res.Status, res.Message)
			}
		}
		if len(r.Results) != len(cases) {
			t.Errorf("%d of %d cases ran", len(r.Results), len(cases))
		}
	})
}
