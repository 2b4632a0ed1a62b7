package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
)

func names(ps []nn.Named) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Name)
	}
	return out
}

func TestParameterNames(t *testing.T) {
	inner := nn.NewSequential(nn.NewLinear(3, 4), nn.NewReLU(), nn.NewLinear(4, 2, nn.NoBias()))
	model := nn.NewSequential(nn.NewFlatten(), inner, nn.NewLinear(2, 1))
	want := []string{"1.0.weight", "1.0.bias", "1.2.weight", "2.weight", "2.bias"}
	if got := names(model.NamedParameters()); !slices.Equal(got, want) {
		t.Errorf("%v, want PyTorch's names %v", got, want)
	}
	if model.NumParameters() != 12+4+8+2+1 {
		t.Errorf("%d parameters", model.NumParameters())
	}
	for _, p := range model.Parameters() {
		if !p.RequiresGrad() || !p.IsLeaf() {
			t.Errorf("%v is no trainable leaf", p)
		}
	}
	shared := nn.NewSequential(inner, inner)
	if n := len(shared.Parameters()); n != 3 {
		t.Errorf("a module used twice lists %d parameters, want 3", n)
	}
}

func TestLinearInit(t *testing.T) {
	a := nn.NewLinear(100, 50, nn.WithGenerator(tensor.NewGenerator(5)))
	b := nn.NewLinear(100, 50, nn.WithGenerator(tensor.NewGenerator(5)))
	va, err := a.Weight.Detach().Float32s()
	if err != nil {
		t.Fatal(err)
	}
	vb, _ := b.Weight.Detach().Float32s()
	if !slices.Equal(va, vb) {
		t.Error("one seed gave two initialisations")
	}
	var sum, squares float64
	for _, v := range va {
		if math.Abs(float64(v)) > 0.1 {
			t.Fatalf("weight %v is outside ±1/sqrt(100)", v)
		}
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(va))
	if math.Abs(sum/n) > 0.004 || math.Abs(squares/n-0.01/3) > 2e-4 {
		t.Errorf("mean %v, mean square %v: want those of a uniform distribution in ±0.1", sum/n, squares/n)
	}
	tensor.ManualSeed(1)
	c := nn.NewLinear(100, 50)
	d := nn.NewLinear(100, 50)
	tensor.ManualSeed(1)
	e := nn.NewLinear(100, 50)
	vc, _ := c.Weight.Detach().Float32s()
	vd, _ := d.Weight.Detach().Float32s()
	ve, _ := e.Weight.Detach().Float32s()
	if slices.Equal(vc, vd) || !slices.Equal(vc, ve) {
		t.Error("the default generator does not move on, or ManualSeed does not restart it")
	}
}

func TestToKeepsIdentity(t *testing.T) {
	for _, info := range backend.List() {
		if info.API == "cpu" || info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		dev, err := backend.Open(info.String())
		if err != nil {
			t.Fatal(err)
		}
		model := nn.NewSequential(nn.NewLinear(3, 2))
		before := model.Parameters()
		x := tensor.FromFloat32s([]float32{1, 2, 3}, 1, 3)
		want, err := model.Forward(x).Detach().Float32s()
		if err != nil {
			t.Fatal(err)
		}
		if err := model.Forward(x).Sum().Backward(); err != nil {
			t.Fatal(err)
		}
		if err := model.To(dev); err != nil {
			t.Fatal(err)
		}
		for i, p := range model.Parameters() {
			if p != before[i] || p.Device() != dev || p.Grad().Device() != dev {
				t.Errorf("%s: parameter %d did not move in place with its gradient", info, i)
			}
		}
		if err := model.Forward(x).Err(); err == nil || !strings.Contains(err.Error(), "expected all tensors to be on the same device") {
			t.Errorf("%s: forgotten batch: %v", info, err)
		}
		got, err := model.Forward(x.To(dev)).Detach().CPU().Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Errorf("%s: %v, on the CPU %v", info, got, want)
			}
		}
		model.Free()
		dev.Close()
	}
}

func TestDropoutModes(t *testing.T) {
	d := nn.NewDropout(0.25, nn.WithGenerator(tensor.NewGenerator(1)))
	model := nn.NewSequential(d)
	x := tensor.Ones(tensor.CPU(), tensor.Float32, 10000)
	y, err := model.Forward(x).Float32s()
	if err != nil {
		t.Fatal(err)
	}
	zeros := 0
	for _, v := range y {
		switch {
		case v == 0:
			zeros++
		case math.Abs(float64(v)-4.0/3) > 1e-6:
			t.Fatalf("kept element %v, want 4/3", v)
		}
	}
	if zeros < 2300 || zeros > 2700 {
		t.Errorf("%d of 10000 elements dropped, want about 2500", zeros)
	}
	model.Eval()
	if d.Training() {
		t.Error("Eval did not reach the child")
	}
	if y, _ := model.Forward(x).Float32s(); slices.Contains(y, 0) {
		t.Error("dropout drops in evaluation mode")
	}
	model.Train()
	if !d.Training() {
		t.Error("Train did not reach the child")
	}
}

func TestEvaluate(t *testing.T) {
	// Class 1 where x0 > x1: a linear layer with fixed weights is right for all samples but the flipped one.
	x, y := []float32{2, 1, 0, 5, 3, 1, 1, 4}, []int64{1, 0, 1, 1}
	ds, err := data.FromSlices(x, []int{2}, y, 2)
	if err != nil {
		t.Fatal(err)
	}
	l := nn.NewLinear(2, 2, nn.NoBias())
	if err := l.Weight.CopyFrom(tensor.FromFloat32s([]float32{-1, 1, 1, -1}, 2, 2)); err != nil {
		t.Fatal(err)
	}
	model := nn.NewSequential(l)
	acc, err := nn.Evaluate(model, ds, nn.Accuracy)
	if err != nil || acc != 0.75 {
		t.Errorf("accuracy %v, %v; want 0.75", acc, err)
	}
	if !model.Training() {
		t.Error("Evaluate did not restore the mode")
	}
}

func TestCopyParameters(t *testing.T) {
	a, b := nn.NewSequential(nn.NewLinear(2, 2)), nn.NewSequential(nn.NewLinear(2, 2))
	if err := nn.CopyParameters(b, a); err != nil {
		t.Fatal(err)
	}
	va, _ := a.Parameters()[0].Detach().Float32s()
	vb, _ := b.Parameters()[0].Detach().Float32s()
	if !slices.Equal(va, vb) {
		t.Errorf("%v, want %v", vb, va)
	}
	if err := nn.CopyParameters(nn.NewSequential(nn.NewLinear(2, 3)), a); err == nil || !strings.Contains(err.Error(), "0.weight") {
		t.Errorf("shapes differ: %v", err)
	}
	if err := nn.CopyParameters(nn.NewSequential(nn.NewReLU(), nn.NewLinear(2, 2)), a); err == nil || !strings.Contains(err.Error(), "do not correspond") {
		t.Errorf("names differ: %v", err)
	}
}
