package main

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
)

// demoModel is a model that the demo trains.
type demoModel interface {
	nn.Module
	Parameters() []*tensor.Tensor
	StateDict() map[string]*tensor.Tensor
	LoadStateDict(map[string]*tensor.Tensor) error
	To(backend.Device) error
	Train()
	Eval()
	Free()
}

// batches are the training data.
type batches interface {
	Steps() int
	EpochFrom(epoch, first int) iter.Seq2[data.Batch, error]
}

// demoTask is a model with its data.
type demoTask struct {
	title    string // what the data are
	unit     string // of an element of a batch's target
	score    string // what evaluate returns
	train    batches
	model    func() (demoModel, error)
	loss     func(output, target *tensor.Tensor) *tensor.Tensor
	clip     float64 // largest norm of the gradients; 0 is no limit
	evaluate func(demoModel, backend.Device) (float64, error)
	write    *writer // nil for a model that writes no text
}

// demoKind is a model by name, with the defaults of its flags.
type demoKind struct {
	doc           string
	epochs, batch int
	lr            float64
	sample        int // characters; 0 for a model that writes no text
	load          func(demoConfig) (*demoTask, error)
}

var demoKinds map[string]demoKind

func init() { // the functions refer to flags, whose help refers to the kinds
	demoKinds = map[string]demoKind{
		"mlp": {"784-512-256-10", 3, 128, 1e-3, 0, imageTask(newMLP)},
		"cnn": {"two 3x3 convolutions of 32 and 64 channels with pooling, 128 hidden", 3, 128, 1e-3, 0, imageTask(newCNN)},
		"gpt": {"a decoder of 4 layers, width 128, 4 heads, 64 characters", 1, 32, 3e-3, 300, textTask},
	}
}

// demoModels returns the names of the models, those of images first.
func demoModels() []string {
	names := slices.Sorted(maps.Keys(demoKinds))
	slices.SortStableFunc(names, func(a, b string) int { return demoKinds[a].sample - demoKinds[b].sample })
	return names
}

// imageTask trains on Fashion-MNIST.
func imageTask(model func(seed uint64) *nn.Sequential) func(demoConfig) (*demoTask, error) {
	return func(cfg demoConfig) (*demoTask, error) {
		trainSet, testSet, err := data.FashionMNIST(cfg.data)
		if err != nil {
			return nil, err
		}
		if cfg.batch > trainSet.Len() {
			return nil, fmt.Errorf("--batch %d is larger than the training data: choose at most %d", cfg.batch, trainSet.Len())
		}
		return &demoTask{
			title: fmt.Sprintf("Fashion-MNIST: %d images to train, %d to test", trainSet.Len(), testSet.Len()),
			unit:  "images",
			score: "test accuracy",
			train: data.NewLoader(trainSet, data.LoaderConfig{BatchSize: cfg.batch, Shuffle: true, Seed: cfg.seed}),
			model: func() (demoModel, error) { return model(cfg.seed), nil },
			loss:  nn.CrossEntropy,
			evaluate: func(m demoModel, _ backend.Device) (float64, error) {
				return nn.Evaluate(m, testSet, nn.Accuracy)
			},
		}, nil
	}
}

func newMLP(seed uint64) *nn.Sequential {
	gen := nn.WithGenerator(tensor.NewGenerator(seed))
	return nn.NewSequential(nn.NewFlatten(),
		nn.NewLinear(784, 512, gen), nn.NewReLU(),
		nn.NewLinear(512, 256, gen), nn.NewReLU(),
		nn.NewLinear(256, 10, gen))
}

func newCNN(seed uint64) *nn.Sequential {
	gen := nn.WithGenerator(tensor.NewGenerator(seed))
	conv := func(in, out int) nn.Module {
		return nn.NewConv2d(in, out, nn.Square(3), tensor.ConvOptions{Padding: []int{1}}, gen)
	}
	return nn.NewSequential(
		conv(1, 32), nn.NewReLU(), nn.NewMaxPool2d(tensor.MaxPoolOptions{Kernel: []int{2}}),
		conv(32, 64), nn.NewReLU(), nn.NewMaxPool2d(tensor.MaxPoolOptions{Kernel: []int{2}}),
		nn.NewFlatten(), nn.NewLinear(64*7*7, 128, gen), nn.NewReLU(), nn.NewLinear(128, 10, gen))
}
