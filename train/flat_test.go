package train_test

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// flatSteps is the length of the runs whose memory must not grow.
const flatSteps = 2000

// repeated gives the same batches in every epoch: the memory that changes is the loop's.
type repeated []data.Batch

func (r repeated) Steps() int { return 100 }

func (r repeated) EpochFrom(_, batch int) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		for i := batch; i < r.Steps(); i++ {
			if !yield(r[i%len(r)], nil) {
				return
			}
		}
	}
}

// flatModel is what the runs need of a model.
type flatModel interface {
	nn.Module
	train.Model
	To(backend.Device) error
	Free()
}

// flatCase is a kind of model with its batches.
type flatCase struct {
	kind    string
	batches repeated
	model   func(nn.Option) (flatModel, error)
}

func flatCases() []flatCase {
	g, cpu := tensor.NewGenerator(5), tensor.CPU()
	images := func(shape ...int) *tensor.Tensor { return tensor.Normal(cpu, g, tensor.Float32, 0, 1, shape...) }
	labels := func(classes int64, shape ...int) *tensor.Tensor {
		return tensor.Randint(cpu, g, 0, classes, shape...)
	}
	return []flatCase{
		{"mlp", repeated{{X: images(8, 4, 4), Y: labels(4, 8)}, {X: images(5, 4, 4), Y: labels(4, 5)}}, func(o nn.Option) (flatModel, error) {
			return nn.NewSequential(nn.NewFlatten(), nn.NewLinear(16, 12, o), nn.NewReLU(), nn.NewDropout(0.1, o), nn.NewLinear(12, 4, o)), nil
		}},
		{"cnn", repeated{{X: images(4, 1, 8, 8), Y: labels(4, 4)}}, func(o nn.Option) (flatModel, error) {
			return nn.NewSequential(nn.NewConv2d(1, 4, nn.Square(3), tensor.ConvOptions{Padding: []int{1}}, o), nn.NewBatchNorm2d(4), nn.NewReLU(),
				nn.NewMaxPool2d(tensor.MaxPoolOptions{Kernel: []int{2}}), nn.NewFlatten(), nn.NewLinear(64, 4, o)), nil
		}},
		{"gpt", repeated{{X: labels(11, 3, 8), Y: labels(11, 24)}}, func(o nn.Option) (flatModel, error) {
			return nn.NewDecoder(nn.DecoderConfig{Vocab: 11, Block: 8, Width: 8, Heads: 2, Layers: 1}, o)
		}},
	}
}

// flatWatch holds the memory of later steps to that of earlier ones.
type flatWatch struct {
	t                 *testing.T
	dev               backend.Device
	bytes, peak, heap int64
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what cleanups let go
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (w *flatWatch) OnSteps(i train.StepInfo) error {
	stats := tensor.MemoryStats(w.dev)
	switch {
	case i.Step == 200:
		tensor.ResetPeakMemory(w.dev)
	case i.Step == 400:
		w.bytes, w.peak, w.heap = stats.AllocatedBytes.Current, stats.AllocatedBytes.Peak, heap()
	case i.Step > 400 && (stats.AllocatedBytes.Current != w.bytes || stats.AllocatedBytes.Peak != w.peak):
		w.t.Errorf("step %d: %d bytes of device memory, at most %d; after 400 steps %d, at most %d", i.Step, stats.AllocatedBytes.Current, stats.AllocatedBytes.Peak, w.bytes, w.peak)
		w.bytes, w.peak = stats.AllocatedBytes.Current, stats.AllocatedBytes.Peak
	}
	if i.Step == flatSteps {
		// An object of 100 bytes a step would be 160 KB.
		if grown := heap() - w.heap; grown > 128<<10 {
			w.t.Errorf("Go's heap has grown by %d bytes in %d steps", grown, flatSteps-400)
		}
	}
	return nil
}
func (w *flatWatch) OnEpoch(train.EpochInfo) error { return nil }
func (w *flatWatch) OnEnd(error) error             { return nil }

// TestMemoryIsFlat trains each kind of model for 2,000 steps, one with clipping, averages, a schedule and mixed precision, on the CPU and
// on a device of another API: memory does not grow from step to step, and at the end nothing is left.
func TestMemoryIsFlat(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes the steps ten times as long, and keeps memory of its own")
	}
	cases := flatCases()
	if err := tensor.Synchronize(tensor.CPU()); err != nil { // the batches have their memory
		t.Fatal(err)
	}
	for _, name := range []string{"cpu", "vulkan"} {
		dev, err := backend.Open(name)
		if err != nil {
			if name == "cpu" {
				t.Fatal(err)
			}
			t.Logf("%s: %v", name, err)
			continue
		}
		warm := tensor.NewScope(dev) // the device's own goroutines are there from now on
		if _, err := warm.Full(tensor.Float32, 1, 4).Sum().Item(); err != nil {
			t.Fatal(err)
		}
		if err := warm.Close(); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			t.Run(name+"/"+c.kind, func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				runFlat(t, dev, c)
			})
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

func runFlat(t *testing.T, dev backend.Device, c flatCase) {
	heap()
	empty := tensor.MemoryStats(dev)
	model, err := c.model(nn.WithGenerator(tensor.NewGenerator(3)))
	if err != nil {
		t.Fatal(err)
	}
	if err := model.To(dev); err != nil {
		t.Fatal(err)
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{})
	ema, err := optim.NewEMA(model.Parameters(), 0.9)
	if err != nil {
		t.Fatal(err)
	}
	var made, collected atomic.Int64
	loop := &train.Loop[data.Batch]{
		Model: model, Optimizer: opt, Device: dev, Data: c.batches, Epochs: flatSteps / c.batches.Steps(),
		Forward: func(s *tensor.Scope, b data.Batch) (output, target *tensor.Tensor) {
			y := model.Forward(s.To(b.X))
			if y.Dim() == 3 {
				y = y.Flatten(0, 1)
			}
			for _, x := range []any{s, y} {
				made.Add(1)
				switch x := x.(type) {
				case *tensor.Scope:
					runtime.AddCleanup(x, func(n *atomic.Int64) { n.Add(1) }, &collected)
				case *tensor.Tensor:
					runtime.AddCleanup(x, func(n *atomic.Int64) { n.Add(1) }, &collected)
				}
			}
			return y, s.To(b.Y)
		},
		Loss: nn.CrossEntropy, ReportEvery: 100, Observers: []train.Observer{&flatWatch{t: t, dev: dev}},
	}
	if c.kind == "mlp" { // one with everything, the others as plain as they are quick
		scaler := amp.NewGradScaler(amp.GradScalerConfig{GrowthInterval: 100})
		loop.Precision = amp.ForLoop(scaler, opt)
		loop.ClipNorm, loop.EMA = 1, ema
		loop.Schedule = optim.NewScheduler(opt, optim.Warmup(20, 0.1, optim.Constant()))
	}
	history, err := loop.Run(context.Background())
	if err != nil || history.Steps != flatSteps {
		t.Fatalf("%d steps, %v", history.Steps, err)
	}
	if first, last := history.Epochs[0].Loss, history.Epochs[len(history.Epochs)-1].Loss; !(last < 0.8*first) {
		t.Errorf("the loss is %v at first, %v at last: nothing was trained", first, last)
	}
	model.Free()
	opt.Free()
	ema.Free()
	left := tensor.MemoryStats(dev)
	for range 100 { // cleanups run in a goroutine of their own
		heap()
		if err := tensor.EmptyCache(dev); err != nil { // the table of the optimizer's tensors
			t.Fatal(err)
		}
		if left = tensor.MemoryStats(dev); collected.Load() == made.Load() && left.Allocations.Current == empty.Allocations.Current {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := made.Load() - collected.Load(); n != 0 {
		t.Errorf("%d of %d scopes and outputs are still held", n, made.Load())
	}
	if left.Allocations.Current != empty.Allocations.Current || left.AllocatedBytes.Current != empty.AllocatedBytes.Current {
		t.Errorf("%d blocks of %d bytes are left, %d of %d were there before", left.Allocations.Current, left.AllocatedBytes.Current, empty.Allocations.Current, empty.AllocatedBytes.Current)
	}
}
