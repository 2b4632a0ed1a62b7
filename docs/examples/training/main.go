// Training moves the model to the device once, and every batch when its turn comes. It is the loop that train.Loop has ready-made,
// written out:
//
//	model.to(device)
//	for x, y in loader:
//	    x, y = x.to(device), y.to(device)
//
// Usage: go run ./docs/examples/training [-device NAME] [-epochs N]
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

func main() {
	name := flag.String("device", backend.DefaultName(), "a device string")
	epochs := flag.Int("epochs", 3, "passes over the data")
	batch := flag.Int("batch", 128, "images a step")
	flag.Parse()
	if err := run(*name, *epochs, *batch); err != nil {
		log.Fatal(err)
	}
}

func run(name string, epochs, batch int) error {
	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()
	trainSet, testSet, err := data.FashionMNIST("") // 10,000 images that come with the library
	if err != nil {
		return err
	}
	model := nn.NewSequential(nn.NewFlatten(), nn.NewLinear(784, 128), nn.NewReLU(), nn.NewLinear(128, 10))
	defer model.Free()
	if err := model.To(dev); err != nil { // in place: optimizers keep what they were made with
		return err
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 1e-3})
	defer opt.Free()
	loader := data.NewLoader(trainSet, data.LoaderConfig{BatchSize: batch, Shuffle: true, Workers: 2})
	for epoch := range epochs {
		for b, err := range loader.Epoch(epoch) {
			if err != nil {
				return err
			}
			s := tensor.NewScope(dev)    // what this step makes
			x, y := s.To(b.X), s.To(b.Y) // the batch, on the device
			opt.ZeroGrad()
			nn.CrossEntropy(model.Forward(x), y).Backward()
			opt.Step()
			if err := s.Close(); err != nil { // frees the step, and has its first error
				return err
			}
		}
		accuracy, err := nn.Evaluate(model, testSet, nn.Accuracy)
		if err != nil {
			return err
		}
		fmt.Printf("epoch %d: test accuracy %.3f\n", epoch, accuracy)
	}
	return nil
}
