package conformance_test

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// TestThousandSteps trains a small model for 1,000 steps, with mixed precision: the allocated memory must be flat after
// the second step, the loss must fall, and no goroutine may be left.
func TestThousandSteps(t *testing.T) {
	trainSet, _, err := data.FashionMNIST("")
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	eachDevice(t, "mlp", func(t *testing.T, dev device) {
		gen := nn.WithGenerator(tensor.NewGenerator(3))
		model := nn.NewSequential(nn.NewFlatten(), nn.NewLinear(784, 16, gen), nn.NewReLU(), nn.NewDropout(0.1, gen), nn.NewLinear(16, 10, gen))
		defer model.Free()
		if err := model.To(dev); err != nil {
			t.Fatal(err)
		}
		opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{})
		defer opt.Free()
		scaler := amp.NewGradScaler(amp.GradScalerConfig{GrowthInterval: 100})
		loader := data.NewLoader(trainSet, data.LoaderConfig{BatchSize: 8, Shuffle: true})
		var flat int64
		var first, last float64
		step := 0
		for batch, err := range loader.Epoch(0) {
			if err != nil {
				t.Fatal(err)
			}
			s := tensor.NewScope(dev)
			x, y := s.To(batch.X), s.To(batch.Y)
			var loss *tensor.Tensor
			amp.Autocast(s, func() { loss = nn.CrossEntropy(model.Forward(x), y) })
			opt.ZeroGrad()
			scaler.Scale(loss).Backward()
			scaler.Step(opt)
			scaler.Update()
			if step < 50 || step >= 950 {
				v, err := loss.Item()
				if err != nil {
					t.Fatal(err)
				}
				if step < 50 {
					first += v / 50
				} else {
					last += v / 50
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			batch.X.Free()
			batch.Y.Free()
			switch current := tensor.MemoryStats(dev).AllocatedBytes.Current; {
			case step == 1:
				flat = current
			case step > 1 && current > flat:
				// Batches that the loader has prepared ahead are in the CPU's memory too.
				if dev.Info().API != "cpu" || current > flat+4*int64(8*785*8) {
					t.Fatalf("step %d: %d bytes are allocated, %d after the second step", step, current, flat)
				}
			}
			if step++; step == 1000 {
				break
			}
		}
		if step != 1000 || math.IsNaN(last) || last > 0.8*first {
			t.Errorf("%d steps, loss %.3f at first, %.3f at last", step, first, last)
		}
		t.Logf("loss %.3f -> %.3f, %d bytes allocated, scale %g, %d skipped", first, last, flat, scaler.GetScale(), scaler.Skipped())
	})
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines before, %d after:\n%s", before, n, buf[:runtime.Stack(buf, true)])
	}
}
