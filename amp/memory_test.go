package amp_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// trainee is a model with a batch and its loss.
type trainee interface {
	nn.Module
	Parameters() []*tensor.Tensor
	To(backend.Device) error
	Free()
}

// activationBytes returns the peak of the device's memory in a training step over what is there before it: parameters, their gradients and
// the optimizer's state. It is the batch, activations, cast weights and temporaries.
func activationBytes(t *testing.T, dev backend.Device, half bool, model trainee, x, y *tensor.Tensor, loss func(out, y *tensor.Tensor) *tensor.Tensor) int64 {
	t.Helper()
	if err := model.To(dev); err != nil {
		t.Fatal(err)
	}
	defer model.Free()
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 1e-3})
	defer opt.Free()
	scaler := amp.NewGradScaler(amp.GradScalerConfig{Disabled: !half, InitScale: 256})
	var peak int64
	for range 2 { // the first makes gradients and the optimizer's state
		runtime.GC() // tensors without a scope that nobody has any more, and what only they held
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
		if err := tensor.EmptyCache(dev); err != nil {
			t.Fatal(err)
		}
		tensor.ResetPeakMemory(dev)
		before := tensor.MemoryStats(dev).AllocatedBytes.Current
		s := tensor.NewScope(dev)
		bx, by := s.To(x), s.To(y)
		var l *tensor.Tensor
		amp.Autocast(s, func() { l = loss(model.Forward(bx), by) }, amp.Enabled(half), amp.DType(tensor.Float16))
		opt.ZeroGrad()
		if err := scaler.Scale(l).Backward(); err != nil {
			t.Fatal(err)
		}
		if skipped, err := scaler.Step(opt); err != nil || skipped {
			t.Fatalf("skipped %t, %v", skipped, err)
		}
		if err := scaler.Update(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		peak = tensor.MemoryStats(dev).AllocatedBytes.Peak - before
	}
	return peak
}

// TestActivationMemory: activations take at most 0.6 of what they take in float32 on the CPU and OpenCL devices and, with ANYGPU_LONG=1 because it
// takes minutes, through Vulkan. 0.56 to 0.57 (cnn) and 0.59 (gpt) were measured on the CPU, PoCL, lavapipe and SwiftShader.
func TestActivationMemory(t *testing.T) {
	models := map[string]func(dev backend.Device, half bool) int64{
		"cnn": func(dev backend.Device, half bool) int64 {
			gen := tensor.NewGenerator(1)
			g := nn.WithGenerator(gen)
			conv := func(in, out int) nn.Module {
				return nn.NewConv2d(in, out, nn.Square(3), tensor.ConvOptions{Padding: []int{1}}, g)
			}
			pool := tensor.MaxPoolOptions{Kernel: []int{2}}
			m := nn.NewSequential(conv(1, 32), nn.NewReLU(), nn.NewMaxPool2d(pool), conv(32, 64), nn.NewReLU(), nn.NewMaxPool2d(pool),
				nn.NewFlatten(), nn.NewLinear(64*7*7, 128, g), nn.NewReLU(), nn.NewLinear(128, 10, g))
			const batch = 128
			labels := make([]int64, batch)
			for i := range labels {
				labels[i] = int64(i % 10)
			}
			return activationBytes(t, dev, half, m, tensor.Uniform(tensor.CPU(), gen, tensor.Float32, 0, 1, batch, 1, 28, 28), tensor.FromInt64s(labels, batch), nn.CrossEntropy)
		},
		"gpt": func(dev backend.Device, half bool) int64 {
			m, err := nn.NewDecoder(nn.DecoderConfig{Vocab: 64, Block: 64, Width: 128, Heads: 4, Layers: 4}, nn.WithGenerator(tensor.NewGenerator(1)))
			if err != nil {
				t.Fatal(err)
			}
			const batch = 16
			tokens := make([]int64, batch*64)
			for i := range tokens {
				tokens[i] = int64(i * 7 % 61)
			}
			x := tensor.FromInt64s(tokens, batch, 64)
			return activationBytes(t, dev, half, m, x, x, func(out, y *tensor.Tensor) *tensor.Tensor {
				return nn.CrossEntropy(out.Flatten(0, 1), y.Flatten(0, 1))
			})
		},
	}
	for _, info := range backend.List() {
		long := info.API == "vulkan" && os.Getenv("ANYGPU_LONG") != ""
		if info.Problem != "" || info.API != "cpu" && !long && (info.API != "opencl" || strings.Contains(strings.ToLower(info.Driver), "rusticl")) {
			continue
		}
		if testing.Short() && info.API != "cpu" {
			continue // compiling takes a minute
		}
		for name, run := range models {
			t.Run(info.String()+"/"+name, func(t *testing.T) {
				dev, err := backend.Open(info.String())
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				full, half := run(dev, false), run(dev, true)
				t.Logf("float32 %s, mixed %s: %.2f", backend.FormatBytes(full), backend.FormatBytes(half), float64(half)/float64(full))
				if float64(half) > 0.6*float64(full) {
					t.Errorf("activations take %s, and in float32 %s", backend.FormatBytes(half), backend.FormatBytes(full))
				}
			})
		}
	}
}
