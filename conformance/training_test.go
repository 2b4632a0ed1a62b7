package conformance_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/anygpu/anygpu/conformance"
)

// shared returns a folder of the material beside the repository. A user's clone does not have it; CI always does.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", name)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing in CI: %v", dir, err)
		}
		t.Skipf("%s is not there: it comes with the project's development material, not with a clone", dir)
	}
	return dir
}

// trainingBounds are FORMAT.md's, relative, for the loss at every step.
var trainingBounds = map[string]float64{"cnn_adamw": 2e-3}

// mustRun are the cases whose models are built: they may not be passed over as not supported.
var mustRun = map[string]bool{"mlp_sgd": true, "mlp_adam": true}

func TestGoldenTraining(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(shared(t, "golden/training"), "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no training cases: %v", err)
	}
	for _, dir := range dirs {
		c, err := conformance.LoadTraining(dir)
		if err != nil {
			t.Fatal(err)
		}
		bound := trainingBounds[c.Name]
		if bound == 0 {
			bound = 1e-4
		}
		eachDevice(t, c.Name, func(t *testing.T, dev device) {
			got, err := c.Run(dev)
			var missing *conformance.NotSupportedError
			if errors.As(err, &missing) && !mustRun[c.Name] {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := c.Expected()
			worst := 0.0
			for i := range want.Loss {
				worst = max(worst, relDiff(t, "loss", i, got.Loss[i], want.Loss[i], bound))
				relDiff(t, "gradient norm", i, got.GradNorm[i], want.GradNorm[i], bound)
			}
			for name, w := range want.ParamNorm {
				relDiff(t, name, len(want.Loss), got.ParamNorm[name], w, 1e-4)
			}
			t.Logf("%d steps, largest relative difference of the loss %.2g, bound %.2g", len(want.Loss), worst, bound)
		})
	}
}

func relDiff(t *testing.T, what string, step int, got, want, bound float64) float64 {
	t.Helper()
	d := math.Abs(got-want) / math.Abs(want)
	if !(d <= bound) {
		t.Errorf("%s at step %d is %v, want %v: relative difference %.3g, bound %.3g", what, step, got, want, d, bound)
	}
	return d
}
