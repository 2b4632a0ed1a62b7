// Mixedprecision trains with autocast and a gradient scaler: matrix products and convolutions run in float16, sums and losses in
// float32, the weights stay float32. It is torch.amp's pattern
//
//	with torch.autocast("cuda"):
//	    loss = loss_fn(model(x), y)
//	scaler.scale(loss).backward()
//	scaler.step(optimizer)
//	scaler.update()
//
// Usage: go run ./docs/examples/mixedprecision [-device NAME] [-epochs N] [-bfloat16]
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/anygpu/anygpu/amp"
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
	bfloat16 := flag.Bool("bfloat16", false, "bfloat16 instead of float16; it needs no scaler")
	flag.Parse()
	dtype := tensor.Float16
	if *bfloat16 {
		dtype = tensor.BFloat16
	}
	if err := run(*name, *epochs, *batch, dtype); err != nil {
		log.Fatal(err)
	}
}

func run(name string, epochs, batch int, dtype tensor.DType) error {
	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()
	trainSet, testSet, err := data.FashionMNIST("")
	if err != nil {
		return err
	}
	model := nn.NewSequential(nn.NewFlatten(), nn.NewLinear(784, 128), nn.NewReLU(), nn.NewLinear(128, 10))
	defer model.Free()
	if err := model.To(dev); err != nil {
		return err
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 1e-3})
	defer opt.Free()
	// The scaler multiplies the loss, so that small gradients do not vanish in float16; a disabled one does nothing.
	scaler := amp.NewGradScaler(amp.GradScalerConfig{Disabled: dtype == tensor.BFloat16})
	loader := data.NewLoader(trainSet, data.LoaderConfig{BatchSize: batch, Shuffle: true})
	for epoch := range epochs {
		for b, err := range loader.Epoch(epoch) {
			if err != nil {
				return err
			}
			s := tensor.NewScope(dev)
			x, y := s.To(b.X), s.To(b.Y)
			var loss *tensor.Tensor
			amp.Autocast(s, func() { loss = nn.CrossEntropy(model.Forward(x), y) }, amp.DType(dtype))
			opt.ZeroGrad()
			scaler.Scale(loss).Backward()
			if err := scaler.Unscale(opt); err != nil { // only because gradients are clipped before the step
				return err
			}
			norm, err := optim.ClipGradNorm(model.Parameters(), 1, optim.ClipOptions{})
			if err != nil {
				return err
			}
			norm.Free()
			scaler.Step(opt) // left out if a gradient overflowed
			scaler.Update()
			if err := s.Close(); err != nil {
				return err
			}
		}
		accuracy, err := nn.Evaluate(model, testSet, nn.Accuracy)
		if err != nil {
			return err
		}
		fmt.Printf("epoch %d: test accuracy %.3f, scale %g, %d steps skipped\n", epoch, accuracy, scaler.GetScale(), scaler.Skipped())
	}
	return nil
}
