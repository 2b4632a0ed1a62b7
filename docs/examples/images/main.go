// Images classifies the images of a folder that has a folder for each class, with a small convolutional network. The training images are
// mirrored and shifted at random, each time they are read.
//
// Usage: go run ./docs/examples/images [-device NAME] [-data FOLDER] [-epochs N]
// Without -data it draws discs and crosses.
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// size is the height and width that the images are scaled to.
const size = 16

func main() {
	name := flag.String("device", backend.DefaultName(), "a device string")
	folder := flag.String("data", "", "a folder with a folder of PNG, JPEG or GIF files for each class; drawn discs and crosses if empty")
	epochs := flag.Int("epochs", 10, "passes over the data")
	flag.Parse()
	if err := run(*name, *folder, *epochs); err != nil {
		log.Fatal(err)
	}
}

func run(name, folder string, epochs int) error {
	if folder == "" {
		dir, err := os.MkdirTemp("", "shapes")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := drawShapes(dir, 60); err != nil {
			return err
		}
		folder = dir
	}
	all, err := data.ImageFolder(folder, data.ImageOptions{Height: size, Width: size, Grey: true})
	if err != nil {
		return err
	}
	// Every fifth image is for testing.
	trainSet, testSet := data.Subset[data.Example]{Of: all}, data.Subset[data.Example]{Of: all}
	for i := range all.Len() {
		if i%5 == 4 {
			testSet.Indices = append(testSet.Indices, i)
		} else {
			trainSet.Indices = append(trainSet.Indices, i)
		}
	}

	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()
	model := nn.NewSequential(
		nn.NewConv2d(1, 8, nn.Square(3), tensor.ConvOptions{Padding: []int{1}}), nn.NewReLU(),
		nn.NewMaxPool2d(tensor.MaxPoolOptions{Kernel: []int{2}}),
		nn.NewConv2d(8, 16, nn.Square(3), tensor.ConvOptions{Padding: []int{1}}), nn.NewReLU(), nn.NewAdaptiveAvgPool2d(2),
		nn.NewFlatten(), nn.NewLinear(64, len(all.Classes)))
	defer model.Free()
	if err := model.To(dev); err != nil {
		return err
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 1e-2})
	defer opt.Free()
	loader := data.NewLoader(trainSet, data.LoaderConfig{BatchSize: min(16, trainSet.Len()), Shuffle: true, Workers: 4}).
		Transform(data.Compose(data.RandomFlip(0.5), data.RandomCrop(size, size, 2)))
	loop := &train.Loop[data.Batch]{
		Model: model, Optimizer: opt, Device: dev, Data: loader, Epochs: epochs,
		Validation: data.NewLoader(testSet, data.LoaderConfig{BatchSize: min(16, testSet.Len())}),
		Forward: func(s *tensor.Scope, b data.Batch) (output, target *tensor.Tensor) {
			return model.Forward(s.To(b.X)), s.To(b.Y)
		},
		Loss:    nn.CrossEntropy,
		Metrics: []train.Metric{train.Accuracy()},
	}
	history, err := loop.Run(context.Background())
	if err != nil {
		return err
	}
	last := history.Epochs[len(history.Epochs)-1]
	fmt.Printf("classes %v: %d images to train, test accuracy %.2f\n", all.Classes, trainSet.Len(), last.Metrics["accuracy"])
	return nil
}

// drawShapes makes n images of each class.
func drawShapes(dir string, n int) error {
	r := rand.New(rand.NewPCG(1, 2))
	for class, inside := range map[string]func(x, y, size int) bool{
		"disc":  func(x, y, size int) bool { return x*x+y*y <= size*size },
		"cross": func(x, y, size int) bool { return min(x*x, y*y) <= 1 && max(x*x, y*y) <= size*size },
	} {
		if err := os.MkdirAll(filepath.Join(dir, class), 0o755); err != nil {
			return err
		}
		for i := range n {
			img := image.NewGray(image.Rect(0, 0, 24, 24))
			cx, cy, half := 9+r.IntN(6), 9+r.IntN(6), 4+r.IntN(4)
			for y := range 24 {
				for x := range 24 {
					grey := r.IntN(60)
					if inside(x-cx, y-cy, half) {
						grey += 150
					}
					img.SetGray(x, y, color.Gray{Y: uint8(grey)})
				}
			}
			f, err := os.Create(filepath.Join(dir, class, fmt.Sprintf("%02d.png", i)))
			if err != nil {
				return err
			}
			if err := png.Encode(f, img); err != nil {
				f.Close()
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}
