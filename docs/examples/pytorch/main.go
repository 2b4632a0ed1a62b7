// Pytorch takes over the weights of a network that was trained in PyTorch, goes on training it, and writes weights that PyTorch loads.
// Names and layouts are PyTorch's, so that there is nothing to convert but the file: xor.py beside this program writes a safetensors
// file, and scripts/pytorch_safetensors.py makes one of a .pt file.
//
// Usage: go run ./docs/examples/pytorch [-device NAME] [-weights FILE.safetensors] [-o FILE.safetensors]
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

func main() {
	name := flag.String("device", backend.DefaultName(), "a device string")
	weights := flag.String("weights", "docs/examples/pytorch/xor.safetensors", "a state dict of PyTorch")
	out := flag.String("o", "", "where to write the weights after the training here; nowhere if empty")
	steps := flag.Int("steps", 100, "optimizer steps here")
	flag.Parse()
	if err := run(*name, *weights, *out, *steps); err != nil {
		log.Fatal(err)
	}
}

func run(name, weights, out string, steps int) error {
	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()

	// The same modules in the same order as in PyTorch, hence the same names: 0.weight, 0.bias, 2.weight, 2.bias.
	model := nn.NewSequential(nn.NewLinear(2, 8), nn.NewTanh(), nn.NewLinear(8, 1))
	defer model.Free()
	state, _, err := checkpoint.LoadFile(weights)
	if err != nil {
		return err
	}
	if err := model.LoadStateDict(state); err != nil { // strict: it names what is missing, unexpected or of another shape
		return err
	}
	if err := model.To(dev); err != nil {
		return err
	}

	s := tensor.NewScope(dev)
	defer s.Close()
	x := s.To(tensor.FromFloat32s([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2))
	y := s.To(tensor.FromFloat32s([]float32{0, 1, 1, 0}, 4, 1))
	if err := show("PyTorch's weights give", model.Forward(x)); err != nil {
		return err
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 0.05})
	defer opt.Free()
	for range steps {
		step := s.NewScope()
		opt.ZeroGrad()
		nn.BCEWithLogitsLoss(model.Forward(step.To(x)), y).Backward()
		opt.Step()
		if err := step.Close(); err != nil {
			return err
		}
	}
	if err := show("after more training", model.Forward(x)); err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	// In PyTorch: model.load_state_dict(load_file(out), strict=True)
	return checkpoint.SaveFile(out, model.StateDict(), map[string]string{"format": "pt"})
}

func show(what string, logits *tensor.Tensor) error {
	v, err := logits.Detach().Sigmoid().CPU().Float32s()
	if err != nil {
		return err
	}
	fmt.Printf("%s %.3f\n", what, v)
	return nil
}
