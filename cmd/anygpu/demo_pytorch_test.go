package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
)

// TestDemoModelsInPyTorch loads the weights of the demo's models, as --save writes them, in PyTorch with strict=True.
func TestDemoModelsInPyTorch(t *testing.T) {
	const python, script = "/usr/bin/python3", "../../train/checkpoint/testdata/pytorch/exchange.py"
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("PyTorch (Debian package python3-torch) is not installed")
	}
	load := func(args ...string) (string, error) {
		out, err := exec.Command(python, append([]string{script, "load"}, args...)...).CombinedOutput()
		return string(out), err
	}
	dir := t.TempDir()
	var all []string
	for kind, name := range map[string]string{"mlp": "mlp", "cnn": "cnn", "gpt": "decoder"} {
		task, err := demoKinds[kind].load(demoConfig{batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		model, err := task.model()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, kind+".safetensors")
		if err := checkpoint.SaveFile(path, model.StateDict(), map[string]string{"format": "pt"}); err != nil {
			t.Fatal(err)
		}
		all = append(all, name, path)
	}
	if out, err := load(all...); err != nil || strings.Count(out, "All keys matched") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	other := filepath.Join(dir, "other.safetensors")
	if err := checkpoint.SaveFile(other, map[string]*tensor.Tensor{"more": tensor.Scalar(1)}, nil); err != nil {
		t.Fatal(err)
	}
	if out, err := load("mlp", other); err == nil || !strings.Contains(out, "Unexpected key") { // it is strict
		t.Errorf("a tensor of no layer: %v\n%s", err, out)
	}
}
