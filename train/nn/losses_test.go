package nn_test

import (
	"math"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

func TestLosses(t *testing.T) {
	out, target := []float64{0.25, -1.5, 3, 0.5}, []float64{0.5, 0.5, 0.75, -2}
	probs, goals := []float64{0.25, 0.5, 0.875, 0.625}, []float64{1, 0, 0.25, 1}
	logp := []float64{math.Log(0.25), math.Log(0.75), math.Log(0.5), math.Log(0.5)}
	mean := func(a, b []float64, f func(x, y float64) float64) float64 {
		sum := 0.0
		for i := range a {
			sum += f(a[i], b[i]) / float64(len(a))
		}
		return sum
	}
	bce := func(p, y float64) float64 { return -y*math.Log(p) - (1-y)*math.Log(1-p) }
	kl := func(lp, y float64) float64 {
		if y == 0 {
			return 0
		}
		return y * (math.Log(y) - lp)
	}
	smooth := func(beta float64) func(x, y float64) float64 {
		return func(x, y float64) float64 {
			if d := math.Abs(x - y); d >= beta {
				return d - beta/2
			} else {
				return d * d / 2 / beta
			}
		}
	}
	f := func(v []float64) *tensor.Tensor { return tensor.FromFloat64s(v, 2, 2).Cast(tensor.Float32) }
	classes := tensor.FromInt64s([]int64{1, 0}, 2)
	weight := tensor.FromFloat32s([]float32{2, 0.5}, 2)
	ignored := int64(0)
	for _, c := range []struct {
		name string
		got  *tensor.Tensor
		want float64
	}{
		{"mse", nn.MSELoss(f(out), f(target)), mean(out, target, func(x, y float64) float64 { return (x - y) * (x - y) })},
		{"mse sum", nn.NewMSELoss(tensor.ReductionSum).Forward(f(out), f(target)), 4 * mean(out, target, func(x, y float64) float64 { return (x - y) * (x - y) })},
		{"l1", nn.L1Loss(f(out), f(target)), mean(out, target, func(x, y float64) float64 { return math.Abs(x - y) })},
		{"l1 sum", nn.NewL1Loss(tensor.ReductionSum).Forward(f(out), f(target)), 4 * mean(out, target, func(x, y float64) float64 { return math.Abs(x - y) })},
		{"smooth l1", nn.SmoothL1Loss(f(out), f(target)), mean(out, target, smooth(1))},
		{"smooth l1, beta 2", nn.NewSmoothL1Loss(2, tensor.ReductionMean).Forward(f(out), f(target)), mean(out, target, smooth(2))},
		{"huber", nn.HuberLoss(f(out), f(target)), mean(out, target, smooth(1))},
		{"huber, delta 2", nn.NewHuberLoss(2, tensor.ReductionMean).Forward(f(out), f(target)), 2 * mean(out, target, smooth(2))},
		{"bce", nn.BCELoss(f(probs), f(goals)), mean(probs, goals, bce)},
		{"bce weighted", nn.NewBCELoss(tensor.FromFloat32s([]float32{3, 3, 3, 3}, 2, 2), tensor.ReductionMean).Forward(f(probs), f(goals)), 3 * mean(probs, goals, bce)},
		{"bce with logits", nn.BCEWithLogitsLoss(f(out), f(goals)), mean(out, goals, func(x, y float64) float64 { return bce(sigmoid(x), y) })},
		{"bce with logits, positive weight", nn.NewBCEWithLogitsLoss(tensor.BCEOptions{PosWeight: tensor.Scalar(3)}).Forward(f(out), f(goals)), mean(out, goals, func(x, y float64) float64 {
			return -3*y*math.Log(sigmoid(x)) - (1-y)*math.Log(1-sigmoid(x))
		})},
		{"kl", nn.KLDivLoss(f(logp), f(goals)), 2 * mean(logp, goals, kl)},
		{"kl mean", nn.NewKLDivLoss(false, tensor.ReductionMean).Forward(f(logp), f(goals)), mean(logp, goals, kl)},
		{"kl log target", nn.NewKLDivLoss(true, tensor.ReductionSum).Forward(f(logp), f(out)), 4 * mean(logp, out, func(lp, y float64) float64 { return math.Exp(y) * (y - lp) })},
		{"nll", nn.NLLLoss(f(logp), classes), -(math.Log(0.75) + math.Log(0.5)) / 2},
		{"nll weighted", nn.NewNLLLoss(tensor.CrossEntropyOptions{Weight: weight}).Forward(f(logp), classes), -(0.5*math.Log(0.75) + 2*math.Log(0.5)) / 2.5},
		{"cross entropy", nn.CrossEntropy(f(logp), classes), -(math.Log(0.75) + math.Log(0.5)) / 2},
		{"cross entropy, class ignored", nn.NewCrossEntropyLoss(tensor.CrossEntropyOptions{IgnoreIndex: &ignored}).Forward(f(logp), classes), -math.Log(0.75)},
	} {
		if got, err := c.got.Item(); err != nil || !(math.Abs(got-c.want) <= 2e-6*(1+math.Abs(c.want))) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// TestCriterionOwnsWeight frees the weight that a criterion was made with.
func TestCriterionOwnsWeight(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	w := s.Full(tensor.Float32, 2, 2)
	loss := nn.NewCrossEntropyLoss(tensor.CrossEntropyOptions{Weight: w})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(loss.NamedBuffers()); len(got) != 1 || got[0] != "weight" {
		t.Errorf("buffers %v, want weight, as in PyTorch", got)
	}
	v, err := loss.Forward(tensor.Zeros(tensor.CPU(), tensor.Float32, 1, 2), tensor.FromInt64s([]int64{1}, 1)).Item()
	if err != nil || math.Abs(v-math.Ln2) > 1e-6 {
		t.Errorf("%v, %v; want ln 2", v, err)
	}
}
