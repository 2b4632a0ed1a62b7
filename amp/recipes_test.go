package amp_test

import (
	"errors"
	"math"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// trainer runs a recipe on a device, in float32 or in mixed precision.
type trainer struct {
	t      *testing.T
	dev    backend.Device
	scaler *amp.GradScaler
	mixed  bool
}

// forward runs f under autocast, if the recipe runs in mixed precision.
func (tr *trainer) forward(s *tensor.Scope, f func()) {
	amp.Autocast(s, f, amp.DType(tensor.Float16), amp.Enabled(tr.mixed))
}

func (tr *trainer) ok(err error) {
	tr.t.Helper()
	if err != nil {
		tr.t.Fatal(err)
	}
}

// step runs the optimizers and moves the scale on.
func (tr *trainer) step(opts ...optim.Optimizer) {
	tr.t.Helper()
	for _, o := range opts {
		if skipped, err := tr.scaler.Step(o); skipped || err != nil {
			tr.t.Fatalf("Step: skipped %t, %v", skipped, err)
		}
	}
	tr.ok(tr.scaler.Update())
}

// model returns a network and its optimizer on the trainer's device.
func (tr *trainer) model(seed uint64) (*nn.Sequential, optim.Optimizer) {
	gen := tensor.NewGenerator(seed)
	m := nn.NewSequential(nn.NewLinear(4, 8, nn.WithGenerator(gen)), nn.NewTanh(), nn.NewLinear(8, 1, nn.WithGenerator(gen)))
	tr.ok(m.To(tr.dev))
	return m, optim.NewSGD(m.Parameters(), optim.SGDConfig{LR: 0.125, Momentum: 0.5})
}

// batch returns inputs [16, 4] and what is to be learned of them.
func (tr *trainer) batch(s *tensor.Scope, seed uint64) (x, y *tensor.Tensor) {
	x = s.To(tensor.Normal(tensor.CPU(), tensor.NewGenerator(seed), tensor.Float32, 0, 1, 16, 4))
	return x, x.Sum(1).Reshape(16, 1).MulScalar(0.25)
}

func (tr *trainer) steps(n int, f func(s *tensor.Scope, i int)) {
	for i := range n {
		s := tensor.NewScope(tr.dev)
		f(s, i)
		tr.ok(s.Close())
	}
}

// smooth is an operator of the user's with a gradient of its own, to be run in float32 (torch.amp.custom_fwd with
// cast_inputs): sqrt(x^2 + 1) - 1.
var smooth = tensor.DefineElementwise(tensor.Elementwise{Name: "test_smooth_abs", Class: tensor.F32, Arity: 1,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		one := b.ConstLike(in[0], 1)
		return b.Sub(b.Sqrt(b.Add(b.Mul(in[0], in[0]), one)), one)
	},
	Grad: func(dy *tensor.Tensor, in ...*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{dy.Mul(in[0]).Div(in[0].Square().AddScalar(1).Sqrt())}
	}})

// recipes are those of PyTorch's "Automatic Mixed Precision examples", each a training that returns the trained models.
var recipes = []struct {
	name string
	run  func(tr *trainer) []*nn.Sequential
}{
	{"plain", func(tr *trainer) []*nn.Sequential {
		m, opt := tr.model(1)
		tr.steps(5, func(s *tensor.Scope, i int) {
			x, y := tr.batch(s, uint64(i))
			var loss *tensor.Tensor
			tr.forward(s, func() { loss = tensor.MSELoss(m.Forward(x), y, tensor.ReductionMean) })
			opt.ZeroGrad()
			tr.ok(tr.scaler.Scale(loss).Backward())
			tr.step(opt)
		})
		return []*nn.Sequential{m}
	}},
	{"unscale and clip", func(tr *trainer) []*nn.Sequential {
		m, opt := tr.model(2)
		tr.steps(5, func(s *tensor.Scope, i int) {
			x, y := tr.batch(s, uint64(i))
			var loss *tensor.Tensor
			tr.forward(s, func() { loss = tensor.MSELoss(m.Forward(x), y, tensor.ReductionMean) })
			opt.ZeroGrad()
			tr.ok(tr.scaler.Scale(loss).Backward())
			tr.ok(tr.scaler.Unscale(opt))
			norm, err := optim.ClipGradNorm(opt.Parameters(), 0.25, optim.ClipOptions{})
			tr.ok(err)
			if v, err := norm.Item(); err != nil || !(v > 0.25 && v < 100) {
				tr.t.Errorf("norm %v, %v: it should be that of unscaled gradients, and above the bound", v, err)
			}
			tr.step(opt)
		})
		return []*nn.Sequential{m}
	}},
	{"accumulation", func(tr *trainer) []*nn.Sequential {
		const parts = 2
		m, opt := tr.model(3)
		tr.steps(3, func(s *tensor.Scope, i int) {
			for j := range parts {
				x, y := tr.batch(s, uint64(parts*i+j))
				var loss *tensor.Tensor
				tr.forward(s, func() {
					loss = tensor.MSELoss(m.Forward(x), y, tensor.ReductionMean).DivScalar(parts)
				})
				tr.ok(tr.scaler.Scale(loss).Backward())
			}
			tr.step(opt)
			opt.ZeroGrad()
		})
		return []*nn.Sequential{m}
	}},
	{"gradient penalty", func(tr *trainer) []*nn.Sequential {
		m, opt := tr.model(4)
		tr.steps(4, func(s *tensor.Scope, i int) {
			x, y := tr.batch(s, uint64(i))
			var loss *tensor.Tensor
			tr.forward(s, func() { loss = tensor.MSELoss(m.Forward(x), y, tensor.ReductionMean) })
			grads, err := tensor.Grad([]*tensor.Tensor{tr.scaler.Scale(loss)}, m.Parameters())
			tr.ok(err)
			tr.forward(s, func() {
				sum := tensor.Zeros(tr.dev, tensor.Float32)
				for _, g := range grads {
					sum = sum.Add(g.MulScalar(1 / tr.scaler.GetScale()).Square().Sum())
				}
				loss = loss.Add(sum.Sqrt())
			})
			opt.ZeroGrad()
			tr.ok(tr.scaler.Scale(loss).Backward())
			tr.step(opt)
		})
		return []*nn.Sequential{m}
	}},
	{"two models, losses and optimizers", func(tr *trainer) []*nn.Sequential {
		m0, opt0 := tr.model(5)
		m1, opt1 := tr.model(6)
		tr.steps(4, func(s *tensor.Scope, i int) {
			x, y := tr.batch(s, uint64(i))
			var loss0, loss1 *tensor.Tensor
			tr.forward(s, func() {
				a, b := m0.Forward(x), m1.Forward(x)
				loss0 = tensor.MSELoss(a.MulScalar(2).Add(b), y, tensor.ReductionMean)
				loss1 = tensor.MSELoss(a.Sub(b.MulScalar(2)), y, tensor.ReductionMean)
			})
			opt0.ZeroGrad()
			opt1.ZeroGrad()
			tr.ok(tr.scaler.Scale(loss0).BackwardRetain(nil)) // the second loss goes through the same layers
			tr.ok(tr.scaler.Scale(loss1).Backward())
			tr.ok(tr.scaler.Unscale(opt0)) // to look at its gradients; the other's are unscaled by Step
			tr.step(opt0, opt1)
		})
		return []*nn.Sequential{m0, m1}
	}},
	{"custom function", func(tr *trainer) []*nn.Sequential {
		m, opt := tr.model(7)
		tr.steps(4, func(s *tensor.Scope, i int) {
			x, y := tr.batch(s, uint64(i))
			var loss *tensor.Tensor
			tr.forward(s, func() {
				out := m.Forward(x)
				z := smooth(out.Sub(y.Cast(out.DType())))
				if z.DType() != tensor.Float32 {
					tr.t.Errorf("the custom operator ran in %s", z.DType())
				}
				loss = z.Mean()
			})
			opt.ZeroGrad()
			tr.ok(tr.scaler.Scale(loss).Backward())
			tr.step(opt)
		})
		return []*nn.Sequential{m}
	}},
}

// TestRecipes holds each recipe in mixed precision on each device against the same training in float32 on the CPU without a
// scale: the parameters agree within float16's rounding.
func TestRecipes(t *testing.T) {
	want := make([][]float32, len(recipes))
	for i, r := range recipes {
		want[i] = parameters(t, r.run(&trainer{t: t, dev: tensor.CPU(), scaler: amp.NewGradScaler(amp.GradScalerConfig{Disabled: true})}))
	}
	onEachDevice(t, func(t *testing.T, s *tensor.Scope) {
		for i, r := range recipes {
			t.Run(r.name, func(t *testing.T) {
				tr := &trainer{t: t, dev: s.Device(), mixed: true, scaler: amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1024, GrowthInterval: 2})}
				models := r.run(tr)
				got := parameters(t, models)
				for j := range got {
					if d := math.Abs(float64(got[j] - want[i][j])); !(d <= 4e-3*max(1, math.Abs(float64(want[i][j])))) {
						t.Fatalf("parameter %d is %v, want %v", j, got[j], want[i][j])
					}
				}
				if tr.scaler.Skipped() != 0 || tr.scaler.GetScale() == 1024 {
					t.Errorf("%d steps skipped, scale %v: it should have grown", tr.scaler.Skipped(), tr.scaler.GetScale())
				}
				for _, m := range models {
					m.Free()
				}
			})
		}
	})
}

// parameters returns the values of all models' parameters.
func parameters(t *testing.T, models []*nn.Sequential) []float32 {
	t.Helper()
	var out []float32
	for _, m := range models {
		for _, p := range m.Parameters() {
			v, err := p.Detach().CPU().Float32s()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v...)
		}
	}
	return out
}

// hard trains a network for which float16 is hard: the loss is multiplied by weight. It returns the loss's part of the first
// one after n steps.
func hard(t *testing.T, dev backend.Device, weight float64, scaler *amp.GradScaler, n int) float64 {
	t.Helper()
	tr := &trainer{t: t, dev: dev, mixed: true, scaler: scaler}
	gen := tensor.NewGenerator(8)
	m := nn.NewSequential(nn.NewLinear(4, 16, nn.WithGenerator(gen)), nn.NewReLU(), nn.NewLinear(16, 1, nn.WithGenerator(gen)))
	tr.ok(m.To(dev))
	defer m.Free()
	opt := optim.NewSGD(m.Parameters(), optim.SGDConfig{LR: 0.1 / weight})
	var first, last float64
	for i := range n {
		s := tensor.NewScope(dev)
		x, y := tr.batch(s, 9)
		var loss *tensor.Tensor
		tr.forward(s, func() {
			loss = tensor.MSELoss(m.Forward(x), y, tensor.ReductionMean).MulScalar(weight)
		})
		opt.ZeroGrad()
		tr.ok(scaler.Scale(loss).Backward())
		_, err := scaler.Step(opt)
		tr.ok(errors.Join(err, scaler.Update()))
		v, err := loss.Item()
		tr.ok(errors.Join(err, s.Close()))
		if i == 0 {
			first = v
		}
		last = v
	}
	return last / first
}

// TestUnderflow: gradients of 1e-9 are zero in float16, so the network does not learn; scaled they are not, and it learns.
func TestUnderflow(t *testing.T) {
	onEachDevice(t, func(t *testing.T, s *tensor.Scope) {
		if left := hard(t, s.Device(), 1e-9, amp.NewGradScaler(amp.GradScalerConfig{Disabled: true}), 20); left != 1 {
			t.Errorf("without a scaler %v of the loss is left after 20 steps: the gradients did not vanish", left)
		}
		scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1 << 26})
		if left := hard(t, s.Device(), 1e-9, scaler, 20); !(left < 0.3) {
			t.Errorf("with a scaler %v of the loss is left after 20 steps", left)
		}
		if scaler.Skipped() != 0 {
			t.Errorf("%d steps skipped", scaler.Skipped())
		}
		// A scale that starts too small grows until the gradients come through.
		scaler = amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1, GrowthInterval: 1})
		if left := hard(t, s.Device(), 1e-9, scaler, 45); !(left < 0.5) {
			t.Errorf("with a scale that grows from 1, now %v, %v of the loss is left after 45 steps", scaler.GetScale(), left)
		}
	})
}

// TestOverflowRecovers: the scale is far too large; the first steps are skipped, and then the network learns.
func TestOverflowRecovers(t *testing.T) {
	onEachDevice(t, func(t *testing.T, s *tensor.Scope) {
		scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1 << 24})
		left := hard(t, s.Device(), 1, scaler, 30)
		if !(left < 0.3) {
			t.Errorf("%v of the loss is left after 30 steps", left)
		}
		if n := scaler.Skipped(); n < 4 || n > 15 {
			t.Errorf("%d steps skipped; the scale went from 2^24 to %v", n, scaler.GetScale())
		}
	})
}
