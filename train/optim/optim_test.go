package optim_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

// reference is an optimizer of one float64 parameter vector, written from the papers' and PyTorch's formulas.
type reference func(p, grad []float64)

func sgdReference(c optim.SGDConfig) reference {
	var v []float64
	return func(p, grad []float64) {
		first := v == nil
		if first {
			v = make([]float64, len(p))
		}
		for i := range p {
			g := grad[i] + c.WeightDecay*p[i]
			if c.Momentum != 0 {
				if first {
					v[i] = g
				} else {
					v[i] = c.Momentum*v[i] + (1-c.Dampening)*g
				}
				if c.Nesterov {
					g += c.Momentum * v[i]
				} else {
					g = v[i]
				}
			}
			p[i] -= c.LR * g
		}
	}
}

func adamReference(c optim.AdamConfig, decoupled bool) reference {
	var m, v []float64
	t := 0.0
	return func(p, grad []float64) {
		if m == nil {
			m, v = make([]float64, len(p)), make([]float64, len(p))
		}
		t++
		for i := range p {
			g := grad[i]
			if decoupled {
				p[i] *= 1 - c.LR*c.WeightDecay
			} else {
				g += c.WeightDecay * p[i]
			}
			m[i] = c.Beta1*m[i] + (1-c.Beta1)*g
			v[i] = c.Beta2*v[i] + (1-c.Beta2)*g*g
			mHat, vHat := m[i]/(1-math.Pow(c.Beta1, t)), v[i]/(1-math.Pow(c.Beta2, t))
			p[i] -= c.LR * mHat / (math.Sqrt(vHat) + c.Eps)
		}
	}
}

func rmspropReference(c optim.RMSpropConfig) reference {
	var square, mean, momentum []float64
	return func(p, grad []float64) {
		if square == nil {
			square, mean, momentum = make([]float64, len(p)), make([]float64, len(p)), make([]float64, len(p))
		}
		for i := range p {
			g := grad[i] + c.WeightDecay*p[i]
			square[i] = c.Alpha*square[i] + (1-c.Alpha)*g*g
			spread := square[i]
			if c.Centered {
				mean[i] = c.Alpha*mean[i] + (1-c.Alpha)*g
				spread -= mean[i] * mean[i]
			}
			momentum[i] = c.Momentum*momentum[i] + g/(math.Sqrt(spread)+c.Eps)
			p[i] -= c.LR * momentum[i]
		}
	}
}

func adagradReference(c optim.AdagradConfig) reference {
	var sum []float64
	t := 0.0
	return func(p, grad []float64) {
		if sum == nil {
			sum = make([]float64, len(p))
			for i := range sum {
				sum[i] = c.InitialAccumulator
			}
		}
		for i := range p {
			g := grad[i] + c.WeightDecay*p[i]
			sum[i] += g * g
			p[i] -= c.LR / (1 + t*c.LRDecay) * g / (math.Sqrt(sum[i]) + c.Eps)
		}
		t++
	}
}

func lionReference(c optim.LionConfig) reference {
	var m []float64
	return func(p, grad []float64) {
		if m == nil {
			m = make([]float64, len(p))
		}
		for i := range p {
			update := 0.0
			if c1 := c.Beta1*m[i] + (1-c.Beta1)*grad[i]; c1 != 0 {
				update = math.Copysign(1, c1)
			}
			p[i] -= c.LR * (update + c.WeightDecay*p[i])
			m[i] = c.Beta2*m[i] + (1-c.Beta2)*grad[i]
		}
	}
}

var (
	rmspropFull = optim.RMSpropConfig{LR: 0.01, Alpha: 0.9, Eps: 1e-3, WeightDecay: 0.1, Momentum: 0.5, Centered: true}
	adagradFull = optim.AdagradConfig{LR: 0.1, LRDecay: 0.2, Eps: 1e-6, WeightDecay: 0.1, InitialAccumulator: 0.5}
	lionFull    = optim.LionConfig{LR: 0.01, Beta1: 0.8, Beta2: 0.95, WeightDecay: 0.1}
)

var adamFull = optim.AdamConfig{LR: 0.01, Beta1: 0.8, Beta2: 0.95, Eps: 1e-6, WeightDecay: 0.1}

var cases = []struct {
	name string
	make func([]*tensor.Tensor) optim.Optimizer
	ref  func() reference
}{
	{"sgd", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewSGD(p, optim.SGDConfig{LR: 0.1}) },
		func() reference { return sgdReference(optim.SGDConfig{LR: 0.1}) }},
	{"sgd momentum", func(p []*tensor.Tensor) optim.Optimizer {
		return optim.NewSGD(p, optim.SGDConfig{LR: 0.1, Momentum: 0.9, Dampening: 0.3, WeightDecay: 0.01})
	}, func() reference {
		return sgdReference(optim.SGDConfig{LR: 0.1, Momentum: 0.9, Dampening: 0.3, WeightDecay: 0.01})
	}},
	{"sgd nesterov", func(p []*tensor.Tensor) optim.Optimizer {
		return optim.NewSGD(p, optim.SGDConfig{LR: 0.1, Momentum: 0.9, Nesterov: true})
	}, func() reference { return sgdReference(optim.SGDConfig{LR: 0.1, Momentum: 0.9, Nesterov: true}) }},
	{"adam", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewAdam(p, adamFull) },
		func() reference { return adamReference(adamFull, false) }},
	{"adamw", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewAdamW(p, adamFull) },
		func() reference { return adamReference(adamFull, true) }},
	{"rmsprop", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewRMSprop(p, rmspropFull) },
		func() reference { return rmspropReference(rmspropFull) }},
	{"rmsprop defaults", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewRMSprop(p, optim.RMSpropConfig{}) },
		func() reference { return rmspropReference(optim.RMSpropConfig{LR: 0.01, Alpha: 0.99, Eps: 1e-8}) }},
	{"adagrad", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewAdagrad(p, adagradFull) },
		func() reference { return adagradReference(adagradFull) }},
	{"adagrad defaults", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewAdagrad(p, optim.AdagradConfig{}) },
		func() reference { return adagradReference(optim.AdagradConfig{LR: 0.01, Eps: 1e-10}) }},
	{"lion", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewLion(p, lionFull) },
		func() reference { return lionReference(lionFull) }},
	{"adam defaults", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewAdam(p, optim.AdamConfig{}) },
		func() reference {
			return adamReference(optim.AdamConfig{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, false)
		}},
	{"adamw defaults", func(p []*tensor.Tensor) optim.Optimizer { return optim.NewAdamW(p, optim.AdamConfig{}) },
		func() reference {
			return adamReference(optim.AdamConfig{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 1e-2}, true)
		}},
}

// TestAgainstReference runs each optimizer for some steps over more parameters than one kernel binds, of awkward sizes, one of
// which has no gradient in some steps.
func TestAgainstReference(t *testing.T) {
	sizes := []int{1, 7, 64, 130, 1000, 3, 16, 5, 33, 2, 129, 12}
	for _, info := range backend.List() {
		if info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		dev, err := backend.Open(info.String())
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		for _, c := range cases {
			t.Run(c.name+"/"+info.String(), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				var params []*tensor.Tensor
				var want [][]float64
				var refs []reference
				for _, n := range sizes {
					v := random(r, n)
					want = append(want, widen(v))
					refs = append(refs, c.ref())
					p := tensor.FromFloat32s(v, n).To(dev).SetRequiresGrad(true)
					params = append(params, p)
				}
				opt := c.make(params)
				for step := range 6 {
					for i, p := range params {
						p.ZeroGrad()
						if i == 4 && step%2 == 1 {
							continue
						}
						g := random(r, sizes[i])
						p.SetGrad(tensor.FromFloat32s(g, sizes[i]).To(dev))
						refs[i](want[i], widen(g))
					}
					if err := opt.Step(); err != nil {
						t.Fatal(err)
					}
				}
				for i, p := range params {
					got, err := p.Detach().CPU().Float32s()
					if err != nil {
						t.Fatal(err)
					}
					for j := range got {
						if d := math.Abs(float64(got[j]) - want[i][j]); !(d <= 1e-5*math.Max(1, math.Abs(want[i][j]))) {
							t.Fatalf("parameter %d, element %d: %v, want %v", i, j, got[j], want[i][j])
						}
					}
				}
			})
		}
	}
}

func random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// TestStateFollowsParameter moves a parameter after the first step, which breaks PyTorch's optimizers with early state.
func TestStateFollowsParameter(t *testing.T) {
	for _, info := range backend.List() {
		if info.API == "cpu" || info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		dev, err := backend.Open(info.String())
		if err != nil {
			t.Fatal(err)
		}
		p := tensor.FromFloat32s([]float32{1, 2}, 2).SetRequiresGrad(true)
		opt := optim.NewAdam([]*tensor.Tensor{p}, optim.AdamConfig{LR: 0.1})
		want, ref := []float64{1, 2}, adamReference(optim.AdamConfig{LR: 0.1, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, false)
		for step := range 3 {
			if step == 1 {
				if err := p.MoveTo(dev); err != nil {
					t.Fatal(err)
				}
			}
			p.SetGrad(tensor.FromFloat32s([]float32{1, -3}, 2).To(p.Device()))
			ref(want, []float64{1, -3})
			if err := opt.Step(); err != nil {
				t.Fatalf("%s, step %d: %v", info, step, err)
			}
		}
		got, err := p.Detach().CPU().Float32s()
		if err != nil || math.Abs(float64(got[0])-want[0]) > 1e-6 || math.Abs(float64(got[1])-want[1]) > 1e-6 {
			t.Errorf("%s: %v %v, want %v", info, got, err, want)
		}
		p.Free()
		opt.Free()
		dev.Close()
	}
}

func TestConfigErrors(t *testing.T) {
	p := []*tensor.Tensor{tensor.FromFloat32s([]float32{1}, 1).SetRequiresGrad(true)}
	for _, c := range []struct {
		want string
		opt  optim.Optimizer
	}{
		{"Nesterov momentum requires a momentum and zero dampening", optim.NewSGD(p, optim.SGDConfig{LR: 1, Nesterov: true})},
		{"Nesterov momentum requires a momentum and zero dampening", optim.NewSGD(p, optim.SGDConfig{LR: 1, Momentum: 0.9, Dampening: 0.1, Nesterov: true})},
		{"momentum -1", optim.NewSGD(p, optim.SGDConfig{LR: 1, Momentum: -1})},
		{"learning rate -1", optim.NewAdam(p, optim.AdamConfig{LR: -1})},
		{"betas 1 and", optim.NewAdamW(p, optim.AdamConfig{Beta1: 1})},
		{"betas 0.9 and 2", optim.NewLion(p, optim.LionConfig{Beta2: 2})},
		{"alpha 1.5", optim.NewRMSprop(p, optim.RMSpropConfig{Alpha: 1.5})},
		{"learning rate decay -1", optim.NewAdagrad(p, optim.AdagradConfig{LRDecay: -1})},
		{"learning rate -2", optim.NewSGDGroups(optim.ParamGroup[optim.SGDConfig]{Params: p, Config: optim.SGDConfig{LR: -2}})},
		{"list of parameters is empty", optim.NewAdam(nil, optim.AdamConfig{})},
		{"parameters 0 and 1 are the same tensor", optim.NewSGD(append(p, p[0]), optim.SGDConfig{LR: 1})},
		{"is not a leaf", optim.NewSGD([]*tensor.Tensor{p[0].MulScalar(2)}, optim.SGDConfig{LR: 1})},
	} {
		if err := c.opt.Step(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
