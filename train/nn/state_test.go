package nn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

func TestStateDict(t *testing.T) {
	gen := nn.WithGenerator(tensor.NewGenerator(1))
	make2 := func() *nn.Sequential {
		return nn.NewSequential(nn.NewLinear(2, 3, gen), nn.NewReLU(), nn.NewLinear(3, 1, gen))
	}
	a, b := make2(), make2()
	if err := b.LoadStateDict(a.StateDict()); err != nil {
		t.Fatal(err)
	}
	for name, p := range a.StateDict() {
		x, _ := p.Detach().Float32s()
		y, err := b.StateDict()[name].Detach().Float32s()
		if err != nil || !slices.Equal(x, y) {
			t.Errorf("%s: %v %v, want %v", name, y, err, x)
		}
	}
	spoilt := a.StateDict()
	delete(spoilt, "0.bias")
	spoilt["9.weight"] = tensor.Scalar(1)
	spoilt["2.bias"] = tensor.FromFloat32s([]float32{1, 2}, 2)
	err := b.LoadStateDict(spoilt)
	for _, want := range []string{"missing key(s): 0.bias", "unexpected key(s): 9.weight", "size mismatch for 2.bias: the state has shape [2], the shape in the model is [1]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	delete(spoilt, "2.bias")
	missing, unexpected, err := b.LoadStateDictLoose(spoilt)
	if err != nil || !slices.Equal(missing, []string{"0.bias", "2.bias"}) || !slices.Equal(unexpected, []string{"9.weight"}) {
		t.Errorf("%v, %v, %v", missing, unexpected, err)
	}
}

// TestStateDictShared loads a state that has one of two names of a tied weight.
func TestStateDictShared(t *testing.T) {
	first, second := nn.NewLinear(2, 2), nn.NewLinear(2, 2)
	tied := &struct{ nn.Base }{}
	tied.Register("a", first)
	head := &struct{ nn.Base }{}
	head.RegisterParameter("weight", first.Weight)
	tied.Register("head", head)
	if len(tied.StateDict()) != 3 {
		t.Errorf("%d names, want 3", len(tied.StateDict()))
	}
	if err := tied.LoadStateDict(map[string]*tensor.Tensor{"a.weight": second.Weight, "a.bias": second.Bias}); err != nil {
		t.Error(err)
	}
}
