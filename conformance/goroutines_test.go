package conformance_test

import (
	"math"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// TestManyGoroutines trains equal models from several goroutines on one device at once: each must reach the loss that one
// alone reaches. scripts/test runs it under the race detector.
func TestManyGoroutines(t *testing.T) {
	eachDevice(t, "train", func(t *testing.T, dev device) {
		train := func() (loss float64) {
			gen := nn.WithGenerator(tensor.NewGenerator(1))
			model := nn.NewSequential(nn.NewLinear(8, 16, gen), nn.NewTanh(), nn.NewLinear(16, 3, gen))
			defer model.Free()
			if err := model.To(dev); err != nil {
				t.Error(err)
			}
			opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 0.05})
			defer opt.Free()
			for step := range 10 {
				s := tensor.NewScope(dev)
				values := make([]float32, 6*8)
				for i := range values {
					values[i] = float32(math.Sin(float64(i * (step + 1))))
				}
				x := s.To(tensor.FromFloat32s(values, 6, 8))
				y := s.To(tensor.FromInt64s([]int64{0, 1, 2, 0, 1, 2}, 6))
				l := nn.CrossEntropy(model.Forward(x), y)
				opt.ZeroGrad()
				if err := l.Backward(); err != nil {
					t.Error(err)
				}
				if err := opt.Step(); err != nil {
					t.Error(err)
				}
				v, err := l.Item()
				if err != nil {
					t.Error(err)
				}
				loss = v
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			return loss
		}
		want := train()
		got := make([]float64, 6)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = train() })
		}
		wg.Wait()
		for i, g := range got {
			if g != want { // the same program on the same device gives the same bits
				t.Errorf("goroutine %d reached the loss %v, one alone %v", i, g, want)
			}
		}
	})
}
