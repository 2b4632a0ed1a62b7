package tensor_test

import (
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

// BenchmarkStep is a training step of a small classifier, without an optimizer: host overhead and kernels together.
func BenchmarkStep(b *testing.B) {
	dev := tensor.CPU()
	gen := tensor.NewGenerator(1)
	leaf := func(shape ...int) *tensor.Tensor {
		return tensor.Uniform(dev, gen, tensor.Float32, -0.1, 0.1, shape...).SetRequiresGrad(true)
	}
	for _, size := range []struct {
		name                string
		batch, in, hid, out int
	}{{"tiny", 2, 4, 4, 3}, {"mnist", 128, 784, 128, 10}} {
		b.Run(size.name, func(b *testing.B) {
			w1, b1, w2, b2 := leaf(size.hid, size.in), leaf(size.hid), leaf(size.out, size.hid), leaf(size.out)
			x, y := tensor.Uniform(dev, gen, tensor.Float32, 0, 1, size.batch, size.in), tensor.Zeros(dev, tensor.Int64, size.batch)
			start := tensor.Launches(dev).Launches
			for b.Loop() {
				s := tensor.NewScope(dev)
				h := tensor.Linear(tensor.Linear(s.To(x), w1, b1).ReLU(), w2, b2)
				loss := tensor.CrossEntropy(h, s.To(y), tensor.CrossEntropyOptions{})
				if err := loss.Backward(); err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				for _, p := range []*tensor.Tensor{w1, b1, w2, b2} {
					p.ZeroGrad()
				}
			}
			b.ReportMetric(float64(tensor.Launches(dev).Launches-start)/float64(b.N), "launches/op")
		})
	}
}
