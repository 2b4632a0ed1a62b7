package tensor_test

import (
	"slices"
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

// TestLinearBiasGradientOfOneRow: it is the upstream gradient, without a launch.
func TestLinearBiasGradientOfOneRow(t *testing.T) {
	dev := tensor.CPU()
	x, w := tensor.Ones(dev, tensor.Float32, 1, 3), tensor.Ones(dev, tensor.Float32, 2, 3)
	b := tensor.Zeros(dev, tensor.Float32, 2).SetRequiresGrad(true)
	up := tensor.FromFloat32s([]float32{2, -5}, 1, 2)
	y := tensor.Linear(x, w, b)
	if err := tensor.Synchronize(dev); err != nil {
		t.Fatal(err)
	}
	before := tensor.Launches(dev).Launches
	gs, err := tensor.Grad([]*tensor.Tensor{y}, []*tensor.Tensor{b}, up)
	if err != nil {
		t.Fatal(err)
	}
	if err := tensor.Synchronize(dev); err != nil {
		t.Fatal(err)
	}
	if n := tensor.Launches(dev).Launches - before; n != 0 {
		t.Errorf("the gradient of the bias took %d launches", n)
	}
	got, err := gs[0].Float64s()
	if err != nil || !slices.Equal(got, []float64{2, -5}) || !slices.Equal(gs[0].Shape(), []int{2}) {
		t.Errorf("the gradient of the bias is %v of shape %v, %v", got, gs[0].Shape(), err)
	}
}
