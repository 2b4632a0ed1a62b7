package conformance

import (
	"slices"
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

func TestParseWindowModules(t *testing.T) {
	m, err := parseModel(`Sequential(
  (0): Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
  (1): ReLU()
  (2): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
  (3): Conv2d(8, 6, kernel_size=(3, 3), stride=(2, 2), padding=same, groups=2, bias=False)
  (4): ConvTranspose2d(6, 2, kernel_size=(2, 2), stride=(2, 2))
  (5): AvgPool2d(kernel_size=3, stride=2, padding=1)
  (6): AdaptiveAvgPool2d(output_size=(3, 2))
  (7): Flatten(start_dim=1, end_dim=-1)
  (8): Linear(in_features=12, out_features=10, bias=True)
)`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int{"0.weight": {8, 1, 3, 3}, "0.bias": {8}, "3.weight": {6, 4, 3, 3}, "4.weight": {6, 2, 2, 2}, "4.bias": {2}, "8.weight": {10, 12}, "8.bias": {10}}
	for _, p := range m.NamedParameters() {
		if !slices.Equal(p.Tensor.Shape(), want[p.Name]) {
			t.Errorf("%s has shape %v, want %v", p.Name, p.Tensor.Shape(), want[p.Name])
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if _, err := parseModel("Sequential(\n  (0): Conv2d(1, 8, kernel_size=(3, x))\n)"); err == nil {
		t.Error("a kernel that is no number is no error")
	}
	// Module 3 is strided with padding 'same', which only the call can refuse.
	if y := m.Forward(tensor.Zeros(tensor.CPU(), tensor.Float32, 2, 1, 28, 28)); y.Err() == nil {
		t.Error("padding 'same' with a stride is no error")
	}
}
