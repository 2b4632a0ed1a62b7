package optim_test

import (
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

// TestOneCycleMomentum repeats runs of torch's OneCycleLR: the loss is the sum of squares of a parameter [1, -2], max_lr 0.2, 8 steps.
// Rates, momenta and final parameters are PyTorch 1.13's.
func TestOneCycleMomentum(t *testing.T) {
	sgd := func(p []*tensor.Tensor) optim.Optimizer {
		return optim.NewSGD(p, optim.SGDConfig{LR: 0.2, Momentum: 0.5})
	}
	adam := func(p []*tensor.Tensor) optim.Optimizer { return optim.NewAdam(p, optim.AdamConfig{LR: 0.2}) }
	cosines := optim.OneCycleConfig{Total: 8}
	lines := optim.OneCycleConfig{Total: 8, ThreePhase: true, Linear: true, PctStart: 0.4, BaseMomentum: 0.8, MaxMomentum: 0.9}
	rates := [][]float64{{0.008, 0.163855021, 0.194388355, 0.162349131, 0.111196803, 0.0566122, 0.015328319, 8e-07},
		{0.008, 0.095272727, 0.182545455, 0.130181818, 0.042909091, 0.006154031, 0.003077415, 8e-07}}
	momenta := [][]float64{{0.95, 0.86882551, 0.852805833, 0.86882551, 0.894401776, 0.921694187, 0.94233621, 0.95},
		{0.9, 0.854545455, 0.809090909, 0.836363636, 0.881818182, 0.9, 0.9, 0.9}}
	for _, c := range []struct {
		name  string
		make  func([]*tensor.Tensor) optim.Optimizer
		cfg   optim.OneCycleConfig
		want  int
		final []float64
	}{
		{"SGD in cosines", sgd, cosines, 0, []float64{-0.7883431315422058, 1.5766862630844116}},
		{"Adam in cosines", adam, cosines, 0, []float64{0.38661250472068787, -1.37247633934021}},
		{"SGD in lines", sgd, lines, 1, []float64{-0.6397038102149963, 1.2794076204299927}},
		{"Adam in lines", adam, lines, 1, []float64{0.5900285243988037, -1.5846589803695679}},
	} {
		p := param(1, -2)
		opt := c.make([]*tensor.Tensor{p})
		s, err := optim.NewOneCycle(opt, c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 8 {
			m, ok := opt.(interface{ GroupMomentum(int) (float64, bool) }).GroupMomentum(0)
			if lr := opt.LR(); !ok || math.Abs(lr-rates[c.want][step]) > 1e-9 || math.Abs(m-momenta[c.want][step]) > 1e-9 {
				t.Errorf("%s, step %d: rate %v and momentum %v, want %v and %v", c.name, step, lr, m, rates[c.want][step], momenta[c.want][step])
			}
			opt.ZeroGrad()
			if err := p.Square().Sum().Backward(); err != nil {
				t.Fatal(err)
			}
			if err := opt.Step(); err != nil {
				t.Fatal(err)
			}
			s.Step()
		}
		for i, v := range values(t, p) {
			if math.Abs(float64(v)-c.final[i]) > 2e-6 {
				t.Errorf("%s: parameter %d is %v, want %v", c.name, i, v, c.final[i])
			}
		}
		// A state brings rate and momentum back.
		other := c.make([]*tensor.Tensor{param(1, -2)})
		o, err := optim.NewOneCycle(other, c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.LoadStateDict(optim.SchedulerState{Bases: []float64{0.2}, Step: 3}); err != nil {
			t.Fatal(err)
		}
		if m, _ := other.(interface{ GroupMomentum(int) (float64, bool) }).GroupMomentum(0); math.Abs(m-momenta[c.want][3]) > 1e-9 {
			t.Errorf("%s: momentum %v after loading, want %v", c.name, m, momenta[c.want][3])
		}
	}
	// Phases without steps have an end all the same.
	if lr := optim.OneCycle(optim.OneCycleConfig{Total: 2, PctStart: 0.5})(1, 0); math.IsNaN(lr) {
		t.Error("a phase without steps gave NaN")
	}
}

func TestOneCycleErrors(t *testing.T) {
	p := []*tensor.Tensor{param(1)}
	ada := optim.NewAdagrad(p, optim.AdagradConfig{})
	if _, err := optim.NewOneCycle(ada, optim.OneCycleConfig{Total: 5}); err == nil || !strings.Contains(err.Error(), "must support momentum; set KeepMomentum") {
		t.Errorf("error %v", err)
	}
	s, err := optim.NewOneCycle(ada, optim.OneCycleConfig{Total: 5, KeepMomentum: true})
	if err != nil || math.Abs(s.LR()-1e-2/25) > 1e-12 {
		t.Errorf("%v, rate %v", err, ada.LR())
	}
	for _, c := range []optim.OneCycleConfig{{}, {Total: 5, PctStart: 1.5}} {
		if _, err := optim.NewOneCycle(optim.NewAdam(p, optim.AdamConfig{}), c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	for want, f := range map[string]func(o *optim.SGD){
		"group 1 has no momentum":      func(o *optim.SGD) { o.SetGroupMomentum(1, 0.9) },
		"momentum -1; it must be":      func(o *optim.SGD) { o.SetGroupMomentum(0, -1) },
		"cannot be switched on or off": func(o *optim.SGD) { o.SetGroupMomentum(0, 0) },
	} {
		q := param(1)
		o := optim.NewSGD([]*tensor.Tensor{q}, optim.SGDConfig{LR: 1, Momentum: 0.5})
		grad(q, 1)
		if err := o.Step(); err != nil {
			t.Fatal(err)
		}
		o.SetGroupMomentum(0, 0.25) // this is no mistake
		f(o)
		if err := o.Step(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
