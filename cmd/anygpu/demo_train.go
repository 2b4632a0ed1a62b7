package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// warmupSteps are left out of the speed: kernels are compiled at their first use.
const warmupSteps = 3

// models are the demo's models by name, with weights from a seed.
var models = map[string]struct {
	doc  string
	make func(seed uint64) *nn.Sequential
}{
	"mlp": {"784-512-256-10", newMLP},
	"cnn": {"two 3x3 convolutions of 32 and 64 channels with pooling, 128 hidden", newCNN},
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

// trainOn trains the model on one device with one precision.
func trainOn(ctx context.Context, name, precision string, cfg demoConfig, trainSet, testSet data.Dataset[data.Example], bars *progress) (row demoRow, err error) {
	dev, err := backend.Open(name)
	if err != nil {
		return row, err
	}
	defer dev.Close()
	tensor.ResetPeakMemory(dev)

	model := models[cfg.model].make(cfg.seed)
	defer model.Free()
	if err := model.To(dev); err != nil {
		return row, err
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: cfg.lr})
	defer opt.Free()
	useAMP := precision == precisionAMP
	scaler := amp.NewGradScaler(amp.GradScalerConfig{Disabled: !useAMP})
	loader := data.NewLoader(trainSet, data.LoaderConfig{BatchSize: cfg.batch, Shuffle: true, Seed: cfg.seed})

	info := dev.Info()
	row = demoRow{Device: name, Driver: driverText(info), Precision: precision}
	total := cfg.epochs * loader.Steps()
	bar := bars.add(name+" "+precision, total)
	var (
		started time.Time
		images  int
		last    []float64
	)
	for epoch := range cfg.epochs {
		for batch, err := range loader.Epoch(epoch) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				bar.abort()
				return row, err
			}
			// Reading a loss waits for the device, so it is done only where the value is used.
			wanted := row.Steps < max(comparedSteps, warmupSteps) || row.Steps >= total-comparedSteps
			loss, err := trainStep(dev, model, opt, scaler, batch, useAMP, wanted)
			if err != nil {
				bar.abort()
				return row, fmt.Errorf("step %d: %w", row.Steps, err)
			}
			row.Steps++
			images += batch.Len()
			if wanted {
				if len(row.losses) < comparedSteps {
					row.losses = append(row.losses, loss)
				}
				last = append(last, loss)
				bar.loss(loss)
			}
			if row.Steps == min(warmupSteps, total-1) {
				started, images = time.Now(), 0
			}
			bar.increment()
		}
	}
	if !started.IsZero() {
		row.ImagesPerSecond = float64(images) / time.Since(started).Seconds()
	}
	last = last[max(0, len(last)-comparedSteps):]
	for _, l := range last {
		row.Loss += l / float64(len(last))
	}
	row.Scale, row.SkippedSteps = scaler.GetScale(), scaler.Skipped()
	row.PeakBytes = tensor.MemoryStats(dev).AllocatedBytes.Peak
	row.TestAccuracy, err = nn.Evaluate(model, testSet, nn.Accuracy)
	return row, err
}

// trainStep runs one step and returns the loss if it is wanted.
func trainStep(dev backend.Device, model nn.Module, opt *optim.Adam, scaler *amp.GradScaler, batch data.Batch, useAMP, wanted bool) (value float64, err error) {
	s := tensor.NewScope(dev)
	defer func() {
		if cerr := s.Close(); cerr != nil {
			err = cerr
		}
	}()
	x, y := s.To(batch.X), s.To(batch.Y)
	var loss *tensor.Tensor
	amp.Autocast(s, func() { loss = nn.CrossEntropy(model.Forward(x), y) }, amp.Enabled(useAMP))
	opt.ZeroGrad()
	if err := scaler.Scale(loss).Backward(); err != nil {
		return 0, err
	}
	if _, err := scaler.Step(opt); err != nil {
		return 0, err
	}
	if err := scaler.Update(); err != nil {
		return 0, err
	}
	if wanted {
		return loss.Item()
	}
	return 0, nil
}

func driverText(i backend.Info) string {
	return strings.Join(nonEmpty(i.Driver, i.DriverVersion), " ")
}
