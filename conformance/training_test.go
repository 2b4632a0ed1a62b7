package conformance_test

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"testing"

	"github.com/anygpu/anygpu/conformance"
)

// mustRun are the cases whose models are built: they may not be passed over as not supported.
var mustRun = map[string]bool{"mlp_sgd": true, "mlp_adam": true, "cnn_adamw": true, "gpt_adamw_clip_cosine": true}

func TestGoldenTraining(t *testing.T) {
	dirs, err := fs.Glob(conformance.GoldenData(), "training/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no training cases: %v", err)
	}
	for _, dir := range dirs {
		sub, err := fs.Sub(conformance.GoldenData(), dir)
		if err != nil {
			t.Fatal(err)
		}
		c, err := conformance.LoadTraining(sub, path.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		bound := conformance.TrainingBound(c.Name)
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
			worstNorm, compared := 0.0, 0
			for name, w := range want.ParamNorm {
				if !c.Determined(name) {
					continue
				}
				compared++
				worstNorm = max(worstNorm, relDiff(t, "norm of "+name, len(want.Loss), got.ParamNorm[name], w, 1e-4))
			}
			if compared < 6 || len(want.ParamNorm)-compared > 4 || len(got.ParamNorm) != len(want.ParamNorm) {
				t.Errorf("%d norms of parameters were compared; PyTorch has %d, the run %d", compared, len(want.ParamNorm), len(got.ParamNorm))
			}
			t.Logf("%d steps, largest relative difference of the loss %.2g, bound %.2g; of %d final norms %.2g, bound 1e-4", len(want.Loss), worst, bound, compared, worstNorm)
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
