package nn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// gpu opens a device that is not the CPU, or skips.
func gpu(t *testing.T) backend.Device {
	t.Helper()
	for _, name := range []string{"vulkan", "opencl"} {
		if dev, err := backend.Open(name); err == nil {
			t.Cleanup(func() { dev.Close() })
			return dev
		}
	}
	t.Skip("no device but the CPU")
	return nil
}

// trainStep is a step of model on device dev.
func trainStep(t *testing.T, dev backend.Device, model nn.Module, opt optim.Optimizer, d tensor.DType) {
	t.Helper()
	s := tensor.NewScope(dev)
	x := s.To(tensor.FromFloat32s([]float32{1, -2, 0.5, 3, -1, 0}, 2, 3)).Cast(d)
	opt.ZeroGrad()
	err := nn.CrossEntropy(model.Forward(x), s.To(tensor.FromInt64s([]int64{0, 1}, 2))).Backward()
	if err == nil {
		err = opt.Step()
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		t.Fatal(err)
	}
}

func weights(t *testing.T, p *tensor.Tensor) []float32 {
	t.Helper()
	v, err := p.Detach().CPU().Cast(tensor.Float32).Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func small() *nn.Sequential {
	g := nn.WithGenerator(tensor.NewGenerator(4))
	return nn.NewSequential(nn.NewLinear(3, 4, g), nn.NewBatchNorm1d(4), nn.NewReLU(), nn.NewLinear(4, 2, g))
}

// TestToDType trains in bfloat16 weights and goes back: the tensors stay the same, and optimizers follow.
func TestToDType(t *testing.T) {
	for _, dev := range []backend.Device{tensor.CPU(), gpu(t)} {
		m := nn.NewSequential(nn.NewLinear(3, 4), nn.NewReLU(), nn.NewLSTM(4, 3, nn.RNNConfig{BatchFirst: true}), nn.NewFlatten(), nn.NewLinear(3, 2))
		bn := nn.NewBatchNorm1d(4)
		if err := m.To(dev); err != nil {
			t.Fatal(err)
		}
		before, w := m.Parameters(), weights(t, m.Parameters()[0])
		for _, d := range []tensor.DType{tensor.BFloat16, tensor.Float16, tensor.Float32} {
			if err := m.ToDType(d); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Parameters(), before) || m.Parameters()[0].DType() != d {
				t.Errorf("%s: %v", d, m.Parameters()[0])
			}
			s := tensor.NewScope(dev)
			x := s.Full(d, 0.5, 2, 1, 3)
			y := m.Forward(x)
			if y.DType() != d || y.Err() != nil {
				t.Errorf("%s in, %v out", d, y)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		for i, v := range weights(t, before[0]) {
			if d := v - w[i]; d > 0.01 || d < -0.01 {
				t.Errorf("weight %d became %v from %v", i, v, w[i])
			}
		}
		if err := bn.ToDType(tensor.Float16); err != nil {
			t.Fatal(err)
		}
		for _, b := range bn.NamedBuffers() {
			if want := map[bool]tensor.DType{true: tensor.Int64, false: tensor.Float16}[b.Name == "num_batches_tracked"]; b.Tensor.DType() != want {
				t.Errorf("%s is %s, want %s", b.Name, b.Tensor.DType(), want)
			}
		}
		m.Free()
	}
	if err := small().ToDType(tensor.Int64); err == nil || !strings.Contains(err.Error(), "only accepts floating point dtypes, but got desired dtype=int64") {
		t.Errorf("error %v", err)
	}
}

// TestToDTypeOptimizer: an optimizer made before the model changed its dtype goes on with it.
func TestToDTypeOptimizer(t *testing.T) {
	m := small()
	opt := optim.NewAdam(m.Parameters(), optim.AdamConfig{LR: 0.1})
	trainStep(t, tensor.CPU(), m, opt, tensor.Float32)
	first := weights(t, m.Parameters()[0])
	if err := m.ToDType(tensor.BFloat16); err != nil {
		t.Fatal(err)
	}
	m.Eval() // running statistics in bfloat16 are for evaluation
	trainStep(t, tensor.CPU(), m, opt, tensor.BFloat16)
	if slices.Equal(first, weights(t, m.Parameters()[0])) {
		t.Error("the step changed nothing")
	}
	st, err := opt.StateDict()
	if err != nil || st.Steps[0] != 2 {
		t.Errorf("%v steps, %v", st.Steps, err)
	}
	if err := m.ToDType(tensor.Float64); err != nil {
		t.Fatal(err)
	}
	trainStep(t, tensor.CPU(), m, opt, tensor.Float64)
	if st, err = opt.StateDict(); err != nil || st.Steps[0] != 3 {
		t.Errorf("%v steps, %v", st.Steps, err)
	}
	for name, a := range st.Arrays {
		if a.DType() != tensor.Float64 {
			t.Errorf("state %s of a model in float64 is %s", name, a.DType())
		}
	}
}

// TestToWithOptimizer moves a model between steps, and compares with one that stayed.
func TestToWithOptimizer(t *testing.T) {
	dev := gpu(t)
	plain := func() *nn.Sequential { // no normalisation: two samples through one would magnify rounding
		g := nn.WithGenerator(tensor.NewGenerator(4))
		return nn.NewSequential(nn.NewLinear(3, 4, g), nn.NewTanh(), nn.NewLinear(4, 2, g))
	}
	stay, move := plain(), plain()
	a, b := optim.NewAdam(stay.Parameters(), optim.AdamConfig{LR: 0.1}), optim.NewAdam(move.Parameters(), optim.AdamConfig{LR: 0.1})
	for i, at := range []backend.Device{tensor.CPU(), dev, dev, tensor.CPU()} {
		if err := move.To(at); err != nil {
			t.Fatal(err)
		}
		trainStep(t, tensor.CPU(), stay, a, tensor.Float32)
		trainStep(t, at, move, b, tensor.Float32)
		for p := range stay.Parameters() {
			x, y := weights(t, stay.Parameters()[p]), weights(t, move.Parameters()[p])
			for j := range x {
				if d := x[j] - y[j]; d > 1e-5 || d < -1e-5 {
					t.Fatalf("step %d, parameter %d: %v, moved %v", i, p, x, y)
				}
			}
		}
	}
}

// TestFreezing trains with frozen layers, and thaws them.
func TestFreezing(t *testing.T) {
	m := small()
	opt := optim.NewAdamW(m.Parameters(), optim.AdamConfig{LR: 0.1, WeightDecay: 0.5})
	trainStep(t, tensor.CPU(), m, opt, tensor.Float32)
	frozen := m.At(0).(*nn.Linear)
	frozen.SetRequiresGrad(false)
	if frozen.Weight.Grad() != nil {
		t.Error("a frozen parameter kept its gradient")
	}
	before, head := weights(t, frozen.Weight), weights(t, m.At(3).(*nn.Linear).Weight)
	trainStep(t, tensor.CPU(), m, opt, tensor.Float32)
	if !slices.Equal(before, weights(t, frozen.Weight)) || frozen.Weight.Grad() != nil {
		t.Error("a frozen parameter changed or got a gradient")
	}
	if slices.Equal(head, weights(t, m.At(3).(*nn.Linear).Weight)) {
		t.Error("the layer above a frozen one does not train")
	}
	m.SetRequiresGrad(true)
	trainStep(t, tensor.CPU(), m, opt, tensor.Float32)
	if slices.Equal(before, weights(t, frozen.Weight)) {
		t.Error("a thawed parameter does not train")
	}
}

func TestApply(t *testing.T) {
	inner := nn.NewSequential(nn.NewLinear(2, 2), nn.NewReLU())
	m := nn.NewSequential(inner, nn.NewResidual(inner), nn.NewLinear(2, 1))
	var order []string
	nn.Apply(m, func(c nn.Component) {
		order = append(order, strings.TrimPrefix(fmt.Sprintf("%T", c), "*nn."))
		if l, ok := c.(*nn.Linear); ok {
			if err := l.Bias.CopyFrom(tensor.Scalar(7)); err != nil {
				t.Error(err)
			}
		}
	})
	if want := []string{"Linear", "Activation", "Sequential", "Residual", "Linear", "Sequential"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	for _, p := range m.NamedParameters() {
		if strings.HasSuffix(p.Name, "bias") && weights(t, p.Tensor)[0] != 7 {
			t.Errorf("%s was not visited", p.Name)
		}
	}
}
