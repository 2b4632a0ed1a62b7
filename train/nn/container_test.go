package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

func TestModuleListAndResidual(t *testing.T) {
	list := nn.NewModuleList(nn.NewLinear(2, 2), nn.NewLinear(2, 2, nn.NoBias()))
	list.Append(nn.NewLinear(2, 1))
	model := nn.NewSequential(nn.NewResidual(nn.NewSequential(nn.NewLinear(2, 2), nn.NewReLU())))
	model.Register("layers", list)
	want := []string{"0.0.weight", "0.0.bias", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.2.weight", "layers.2.bias"}
	if got := names(model.NamedParameters()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if list.Len() != 3 || list.At(1).Bias != nil || len(list.All()) != 3 {
		t.Error("the list does not give its modules back")
	}
	model.Eval()
	if list.At(2).Training() {
		t.Error("the mode does not reach a listed module")
	}
	double := nn.NewResidual(nn.NewIdentity())
	if v, err := double.Forward(tensor.FromFloat32s([]float32{1, -3}, 2)).Float32s(); err != nil || !slices.Equal(v, []float32{2, -6}) {
		t.Errorf("x + x = %v, %v", v, err)
	}
}

func TestActivations(t *testing.T) {
	for _, c := range []struct {
		m    *nn.Activation
		name string
		f    func(float64) float64
	}{
		{nn.NewReLU(), "ReLU", func(x float64) float64 { return max(x, 0) }},
		{nn.NewGELU(), "GELU", func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }},
		{nn.NewGELUTanh(), "GELUTanh", func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}},
		{nn.NewReLU6(), "ReLU6", func(x float64) float64 { return min(max(x, 0), 6) }},
		{nn.NewLeakyReLU(0.2), "LeakyReLU", func(x float64) float64 { return max(x, 0.2*x) }},
		{nn.NewELU(1.5), "ELU", func(x float64) float64 { return max(x, 0) + 1.5*min(math.Expm1(x), 0) }},
		{nn.NewSELU(), "SELU", func(x float64) float64 {
			return 1.0507009873554805 * (max(x, 0) + 1.6732632423543772*min(math.Expm1(x), 0))
		}},
		{nn.NewSiLU(), "SiLU", func(x float64) float64 { return x * sigmoid(x) }},
		{nn.NewMish(), "Mish", func(x float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) }},
		{nn.NewSoftplus(), "Softplus", func(x float64) float64 { return math.Log1p(math.Exp(x)) }},
		{nn.NewSoftsign(), "Softsign", func(x float64) float64 { return x / (1 + math.Abs(x)) }},
		{nn.NewLogSigmoid(), "LogSigmoid", func(x float64) float64 { return math.Log(sigmoid(x)) }},
		{nn.NewHardsigmoid(), "Hardsigmoid", func(x float64) float64 { return min(max(x+3, 0), 6) / 6 }},
		{nn.NewHardswish(), "Hardswish", func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }},
		{nn.NewHardtanh(-1, 2), "Hardtanh", func(x float64) float64 { return min(max(x, -1), 2) }},
		{nn.NewIdentity(), "Identity", func(x float64) float64 { return x }},
	} {
		xs := []float64{-4, -1.25, -0.5, 0.75, 2.5, 7}
		y, err := c.m.Forward(tensor.FromFloat64s(xs, len(xs)).Cast(tensor.Float32)).Float64s()
		if err != nil || c.m.String() != c.name {
			t.Errorf("%s (called %s): %v", c.name, c.m, err)
			continue
		}
		for i, x := range xs {
			if want := c.f(x); !(math.Abs(y[i]-want) <= 2e-6*(1+math.Abs(want))) {
				t.Errorf("%s(%v) = %v, want %v", c.name, x, y[i], want)
			}
		}
	}
	y, err := nn.NewSoftmax(1).Forward(tensor.FromFloat32s([]float32{0, 0, 0, 0}, 2, 2)).Float32s()
	if err != nil || !slices.Equal(y, []float32{0.5, 0.5, 0.5, 0.5}) {
		t.Errorf("softmax %v, %v", y, err)
	}
	y, err = nn.NewLogSoftmax(0).Forward(tensor.FromFloat32s([]float32{1, 1}, 2)).Float32s()
	if err != nil || math.Abs(float64(y[0])+math.Ln2) > 1e-6 {
		t.Errorf("log softmax %v, %v", y, err)
	}
}

func TestPath(t *testing.T) {
	inner := nn.NewLinear(2, 2)
	list := nn.NewModuleList(nn.NewSequential(nn.NewReLU(), nn.NewResidual(inner)))
	m := struct{ nn.Base }{}
	m.Register("blocks", list)
	if got := inner.Path(); got != "blocks.0.1" {
		t.Errorf("path %q", got)
	}
	other := nn.NewSequential(inner)
	if got := inner.Path(); got != "blocks.0.1" || other.Path() != "" {
		t.Errorf("after another registration path %q, of the outermost %q", got, other.Path())
	}
}
