package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

func TestConvLayers(t *testing.T) {
	gen := nn.WithGenerator(tensor.NewGenerator(3))
	x2 := tensor.Ones(tensor.CPU(), tensor.Float32, 2, 4, 9, 8)
	for _, c := range []struct {
		name    string
		m       nn.Module
		x       *tensor.Tensor
		weight  []int // nil: a layer without parameters
		bias    []int
		fan     int
		outcome []int
	}{
		{"Conv1d", nn.NewConv1d(4, 6, nn.Square(3), tensor.ConvOptions{Stride: []int{2}}, gen), tensor.Ones(tensor.CPU(), tensor.Float32, 2, 4, 9), []int{6, 4, 3}, []int{6}, 12, []int{2, 6, 4}},
		{"Conv2d", nn.NewConv2d(4, 6, nn.Square(3), tensor.ConvOptions{Padding: []int{1}, Groups: 2}, gen), x2, []int{6, 2, 3, 3}, []int{6}, 18, []int{2, 6, 9, 8}},
		{"Conv2d without bias", nn.NewConv2d(4, 5, nn.Kernel{2, 3}, tensor.ConvOptions{}, gen, nn.NoBias()), x2, []int{5, 4, 2, 3}, nil, 24, []int{2, 5, 8, 6}},
		{"Conv3d", nn.NewConv3d(1, 2, nn.Square(2), tensor.ConvOptions{}, gen), tensor.Ones(tensor.CPU(), tensor.Float32, 1, 1, 3, 4, 5), []int{2, 1, 2, 2, 2}, []int{2}, 8, []int{1, 2, 2, 3, 4}},
		{"ConvTranspose2d", nn.NewConvTranspose2d(4, 6, nn.Square(3), tensor.ConvTransposeOptions{Stride: []int{2}, Padding: []int{1}, OutputPadding: []int{1}}, gen), x2, []int{4, 6, 3, 3}, []int{6}, 54, []int{2, 6, 18, 16}},
		{"ConvTranspose3d", nn.NewConvTranspose3d(1, 2, nn.Square(2), tensor.ConvTransposeOptions{}, gen), tensor.Ones(tensor.CPU(), tensor.Float32, 1, 1, 3, 4, 5), []int{1, 2, 2, 2, 2}, []int{2}, 16, []int{1, 2, 4, 5, 6}},
		{"MaxPool2d", nn.NewMaxPool2d(tensor.MaxPoolOptions{Kernel: []int{2}}), x2, nil, nil, 0, []int{2, 4, 4, 4}},
		{"AvgPool2d", nn.NewAvgPool2d(tensor.AvgPoolOptions{Kernel: []int{3}, Stride: []int{2}, Padding: []int{1}}), x2, nil, nil, 0, []int{2, 4, 5, 4}},
		{"AdaptiveAvgPool2d", nn.NewAdaptiveAvgPool2d(3, 2), x2, nil, nil, 0, []int{2, 4, 3, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := c.m.Forward(c.x)
			if err := y.Err(); err != nil || !slices.Equal(y.Shape(), c.outcome) {
				t.Fatalf("shape %v, %v; want %v", y.Shape(), err, c.outcome)
			}
			params := map[string]*tensor.Tensor{}
			for _, p := range parametersOf(c.m) {
				params[p.Name] = p.Tensor
			}
			for name, shape := range map[string][]int{"weight": c.weight, "bias": c.bias} {
				p := params[name]
				if shape == nil {
					if p != nil {
						t.Errorf("there is a parameter %s", name)
					}
					continue
				}
				if p == nil || !slices.Equal(p.Shape(), shape) {
					t.Fatalf("%s is %v, want shape %v", name, p, shape)
				}
				vs, err := p.Detach().Float32s()
				if err != nil {
					t.Fatal(err)
				}
				bound, largest := 1/math.Sqrt(float64(c.fan)), 0.0
				for _, v := range vs {
					largest = max(largest, math.Abs(float64(v)))
				}
				if largest > bound || len(vs) > 20 && largest < bound/2 {
					t.Errorf("%s reaches ±%v, want ±%v", name, largest, bound)
				}
			}
		})
	}
	bad := nn.NewConv2d(3, 4, nn.Kernel{3, 3, 3}, tensor.ConvOptions{}).Forward(x2)
	if bad.Err() == nil {
		t.Error("a kernel of three dimensions is no error in two")
	}
}

func parametersOf(m nn.Module) []nn.Named {
	return m.(interface{ NamedParameters() []nn.Named }).NamedParameters()
}
