package tensor_test

import (
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

// TestEmbeddingGradientIsOneKernel holds the gradient of a small embedding to one kernel, where sorting the index takes several.
func TestEmbeddingGradientIsOneKernel(t *testing.T) {
	dev := tensor.CPU()
	weight := tensor.Ones(dev, tensor.Float32, 65, 128).SetRequiresGrad(true)
	index := tensor.Randint(dev, tensor.NewGenerator(1), 0, 65, 16, 64)
	run := func(backward bool) uint64 {
		s := tensor.NewScope(dev)
		y := tensor.Embedding(weight, s.To(index))
		if err := tensor.Synchronize(dev); err != nil {
			t.Fatal(err)
		}
		before := tensor.Launches(dev).Launches
		if backward {
			if err := y.BackwardWith(y.Detach()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		n := tensor.Launches(dev).Launches - before
		weight.ZeroGrad()
		return n
	}
	run(true)
	if n := run(true) - run(false); n != 1 {
		t.Errorf("the gradient took %d launches, not 1", n)
	}
}
