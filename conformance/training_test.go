package conformance_test

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"testing"

	"github.com/anygpu/anygpu/conformance"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
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
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
			eachDevice(t, c.Name+" "+dtype.String(), func(t *testing.T, dev device) { repeatTraining(t, c, dev, dtype) })
		}
	}
}

// repeatTraining holds a run against the recorded one: every loss, gradient norm and final norm of a parameter.
func repeatTraining(t *testing.T, c *conformance.TrainingCase, dev device, dtype tensor.DType) {
	got, err := c.Run(dev, dtype)
	var missing *conformance.NotSupportedError
	if errors.As(err, &missing) && !mustRun[c.Name] {
		t.Skip(err)
	}
	if dtype == tensor.Float64 && (errors.Is(err, ir.ErrUnsupported) || errors.Is(err, tensor.ErrDType) && !dev.Info().Caps.F64) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	want, bound := c.Expected(), conformance.TrainingBound(c.Name, dtype)
	worst := 0.0
	for i := range want.Loss {
		worst = max(worst, relDiff(t, "loss", i, got.Loss[i], want.Loss[i], bound))
		relDiff(t, "gradient norm", i, got.GradNorm[i], want.GradNorm[i], bound)
	}
	worstNorm, exempt := 0.0, 0
	for name, w := range want.ParamNorm {
		if !c.Determined(name, dtype) {
			exempt++
			continue
		}
		worstNorm = max(worstNorm, relDiff(t, "norm of "+name, len(want.Loss), got.ParamNorm[name], w, 1e-4))
	}
	if most := map[string]int{"cnn_adamw float32": 4}[c.Name+" "+dtype.String()]; exempt > most || len(got.ParamNorm) != len(want.ParamNorm) {
		t.Errorf("%d norms of parameters were not compared, at most %d may; PyTorch has %d, the run %d", exempt, most, len(want.ParamNorm), len(got.ParamNorm))
	}
	t.Logf("%d steps, largest relative difference of the loss %.2g, bound %.2g; of %d final norms %.2g, bound 1e-4", len(want.Loss), worst, bound, len(want.ParamNorm)-exempt, worstNorm)
}

func relDiff(t *testing.T, what string, step int, got, want, bound float64) float64 {
	t.Helper()
	d := math.Abs(got-want) / math.Abs(want)
	if !(d <= bound) {
		t.Errorf("%s at step %d is %v, want %v: relative difference %.3g, bound %.3g", what, step, got, want, d, bound)
	}
	return d
}
