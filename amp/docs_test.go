package amp_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// documented are the scaler's errors with what docs/mixed-precision.md says about them.
var documented = []struct {
	err  error
	text string
}{
	{amp.ErrNotScaled, "`Unscale`, `Step` or `Update` came before any `Scale`: the loss went to `Backward` without its scale"},
	{amp.ErrAlreadyUnscaled, "gradients would be divided by the scale twice: `Unscale` once, and `Update` at the end of each iteration"},
	{amp.ErrUnscaleAfter, "clipping comes after `Unscale` and before `Step`"},
	{amp.ErrAlreadyStepped, "an iteration has one `Step` for each optimizer, and `Update` at its end: it was forgotten, or the loop steps twice"},
	{amp.ErrNoInfChecks, "`Backward` was not called, or the loss does not depend on the optimizer's parameters"},
	{amp.ErrNoInfRecorded, "`Update` came without a `Step` or `Unscale` that found gradients"},
	{amp.ErrFP16Gradients, "the model was cast to float16 as a whole; leave its parameters in float32, and let autocast cast them"},
	{amp.ErrOptimizer, "give the scaler the same pointer each time"},
	{amp.ErrGradientsGone, "`LastOverflow` looks at the gradients of the skipped step, which `ZeroGrad` frees"},
	{amp.ErrEmptyState, "the run that saved the state had its scaler disabled"},
}

// TestDocs holds docs/mixed-precision.md against what the library prints.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../docs/mixed-precision.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := gradientTable()
	if err != nil {
		t.Fatal(err)
	}
	gen := tensor.NewGenerator(1)
	model := nn.NewSequential(nn.NewLinear(8, 64, nn.WithGenerator(gen)), nn.NewReLU(), nn.NewLinear(64, 4, nn.WithGenerator(gen)))
	report, err := amp.Explain(func(x *tensor.Tensor) *tensor.Tensor { return model.Forward(x).LogSoftmax(1) },
		tensor.Ones(tensor.CPU(), tensor.Float32, 16, 8), amp.DType(tensor.Float16))
	if err != nil {
		t.Fatal(err)
	}
	explained := regexp.MustCompile(`docs_test\.go:\d+`).ReplaceAllString(report.String(), "train.go:31")
	wants := []string{table, explained}
	for _, d := range documented {
		wants = append(wants, fmt.Sprintf("| %v | %s |\n", d.err, d.text))
	}
	for _, w := range wants {
		if !strings.Contains(string(doc), w) {
			t.Errorf("docs/mixed-precision.md does not have\n%s", w)
		}
	}
}
