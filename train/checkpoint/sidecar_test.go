package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// FuzzSidecar loads any JSON into a run: an error or a load, but no panic, and no file from another folder.
func FuzzSidecar(f *testing.F) {
	seed, err := os.ReadFile("testdata/run.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseSidecar(text)
		if err != nil {
			return
		}
		if filepath.Base(s.Weights.File) != s.Weights.File || filepath.Base(s.State.File) != s.State.File {
			t.Errorf("files %q and %q", s.Weights.File, s.State.File)
		}
		m := nn.NewSequential(nn.NewLinear(1, 1))
		r := &Run{Model: m, Optimizer: optim.NewSGD(m.Parameters(), optim.SGDConfig{LR: 0.1, Momentum: 0.9})}
		if s.fits(r) == nil {
			_ = s.apply(r, m.StateDict(), nil) // may fail, must not panic
		}
	})
}

// TestSidecarSeed holds the fuzzer's seed to the format: it loads.
func TestSidecarSeed(t *testing.T) {
	text, err := os.ReadFile("testdata/run.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSidecar(text)
	if err != nil {
		t.Fatal(err)
	}
	m := nn.NewSequential(nn.NewLinear(1, 1))
	r := &Run{Model: m, Optimizer: optim.NewSGD(m.Parameters(), optim.SGDConfig{LR: 0.1, Momentum: 0.9})}
	if err := s.fits(r); err != nil {
		t.Fatal(err)
	}
	seed, offset := tensor.DefaultGenerator().State()
	defer tensor.DefaultGenerator().SetState(seed, offset)
	if err := s.apply(r, m.StateDict(), nil); err != nil || r.Position.Step != 7 || r.Optimizer.LR() != 0.25 {
		t.Errorf("step %d, rate %v, %v", r.Position.Step, r.Optimizer.LR(), err)
	}
}

func ExampleSaveFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	model := nn.NewSequential(nn.NewLinear(3, 2))
	if err := SaveFile(path, model.StateDict(), nil); err != nil {
		fmt.Println(err)
		return
	}
	weights, _, err := LoadFile(path)
	fmt.Println(weights["0.weight"].Shape(), weights["0.bias"].Shape(), err)
	fmt.Println(nn.NewSequential(nn.NewLinear(3, 2)).LoadStateDict(weights))
	// Output:
	// [2 3] [2] <nil>
	// <nil>
}
