package conformance

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

func gptCase(t *testing.T) *TrainingCase {
	t.Helper()
	sub, err := fs.Sub(GoldenData(), "training/gpt_adamw_clip_cosine")
	if err != nil {
		t.Fatal(err)
	}
	c, err := LoadTraining(sub, "gpt_adamw_clip_cosine")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGPTNames holds the model's names and shapes against those that PyTorch saved.
func TestGPTNames(t *testing.T) {
	c := gptCase(t)
	m, err := parseTrained(c.expect.Model)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.NamedParameters()); n != len(c.init) {
		t.Errorf("%d parameters, PyTorch has %d", n, len(c.init))
	}
	for _, p := range m.NamedParameters() {
		if want := c.init[p.Name]; want == nil || !slices.Equal(want.Shape(), p.Tensor.Shape()) {
			t.Errorf("%s %v: PyTorch has %v", p.Name, p.Tensor.Shape(), want)
		}
	}
}

func TestTrainingSchedule(t *testing.T) {
	c := gptCase(t)
	opt, err := c.optimizer([]*tensor.Tensor{tensor.Scalar(1).SetRequiresGrad(true)})
	if err != nil {
		t.Fatal(err)
	}
	sched, err := c.scheduler(opt)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		sched.Step()
	}
	if lr := opt.LR(); lr < 1.4999e-3 || lr > 1.5001e-3 {
		t.Errorf("learning rate %v after half of the steps, want 1.5e-3", lr)
	}
	for _, text := range []string{"lr(step) = 1", "lr(step) = 1e-3 * 0.5 * (1 + cos(pi * step / 40))"} {
		c.expect.LRSchedule = &text
		_, err := c.scheduler(opt)
		if err == nil {
			t.Errorf("schedule %q is no error", text)
		}
		if missing := new(NotSupportedError); text == "lr(step) = 1" && !errors.As(err, &missing) {
			t.Errorf("schedule %q: %v, want not supported", text, err)
		}
	}
}
