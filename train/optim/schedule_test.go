package optim_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

// recursive is a schedule as PyTorch's get_lr computes it: the next rate from the present one. The library has closed forms.
type recursive func(lr, base float64, step int) float64

func TestSchedules(t *testing.T) {
	const base, steps = 0.4, 30
	cos := func(x float64) float64 { return math.Cos(math.Pi * x) }
	for name, c := range map[string]struct {
		schedule optim.Schedule
		next     recursive
		first    float64
	}{
		"step": {optim.StepDecay(4, 0.5), func(lr, _ float64, n int) float64 {
			if n%4 == 0 {
				return lr * 0.5
			}
			return lr
		}, base},
		"multi-step": {optim.MultiStep([]int{9, 3, 9}, 0.1), func(lr, _ float64, n int) float64 {
			return lr * map[int]float64{3: 0.1, 9: 0.01}[n]
		}, base},
		"exponential": {optim.Exponential(0.9), func(lr, _ float64, _ int) float64 { return lr * 0.9 }, base},
		"linear": {optim.Linear(0.25, 0.75, 8), func(lr, base float64, n int) float64 {
			if n > 8 {
				return lr
			}
			return lr * (1 + (0.75-0.25)/(8*0.25+float64(n-1)*(0.75-0.25)))
		}, base * 0.25},
		"polynomial": {optim.Polynomial(12, 2), func(lr, _ float64, n int) float64 {
			if n > 12 {
				return lr
			}
			return lr * math.Pow((1-float64(n)/12)/(1-float64(n-1)/12), 2)
		}, base},
		"cosine": {optim.Cosine(10, 0.05), func(lr, base float64, n int) float64 {
			if (n-1-10)%20 == 0 {
				return lr + (base-0.05)*(1-cos(1.0/10))/2
			}
			return (1+cos(float64(n)/10))/(1+cos(float64(n-1)/10))*(lr-0.05) + 0.05
		}, base},
	} {
		opt := optim.NewSGD([]*tensor.Tensor{param(1)}, optim.SGDConfig{LR: base})
		s := optim.NewScheduler(opt, c.schedule)
		want := c.first
		for n := range steps {
			if n > 0 {
				s.Step()
				next := c.next(want, base, n)
				if name == "multi-step" && n != 3 && n != 9 {
					next = want
				}
				want = next
			}
			if got := opt.LR(); math.Abs(got-want) > 1e-9 || s.LR() != got {
				t.Errorf("%s, step %d: %v, want %v", name, n, got, want)
				break
			}
		}
	}
}

// The values are those of PyTorch's documentation and of the definitions by hand.
func TestSchedulePoints(t *testing.T) {
	oneCycle := optim.OneCycle(optim.OneCycleConfig{Total: 11, PctStart: 6.0 / 11, Linear: true})
	three := optim.OneCycle(optim.OneCycleConfig{Total: 10, PctStart: 0.4, DivFactor: 10, FinalDivFactor: 10, Linear: true, ThreePhase: true})
	for _, c := range []struct {
		name     string
		schedule optim.Schedule
		want     map[int]float64
	}{
		{"lambda", optim.Lambda(func(n int) float64 { return float64(n) }), map[int]float64{0: 0, 3: 3}},
		{"constant", optim.Constant(), map[int]float64{0: 1, 99: 1}},
		{"one-cycle", oneCycle, map[int]float64{0: 0.04, 5: 1, 10: 0.04 / 1e4, 50: 0.04 / 1e4}},
		{"one-cycle in cosines", optim.OneCycle(optim.OneCycleConfig{Total: 21, PctStart: 11.0 / 21}), map[int]float64{0: 0.04, 5: 0.52, 10: 1, 15: (1 + 0.04/1e4) / 2, 20: 0.04 / 1e4}},
		{"three phases", three, map[int]float64{0: 0.1, 3: 1, 6: 0.1, 9: 0.01}},
		{"warm restarts", optim.CosineWarmRestarts(4, 2, 0), map[int]float64{0: 1, 2: 0.5, 4: 1, 8: 0.5, 12: 1, 20: 0.5}},
		{"warm-up, cosine", optim.Warmup(4, 0, optim.Cosine(10, 0)), map[int]float64{0: 0, 1: 0.25, 4: 1, 9: 0.5, 14: 0}},
		{"polynomial", optim.Polynomial(4, 1), map[int]float64{0: 1, 1: 0.75, 4: 0, 5: 0}},
	} {
		for n, want := range c.want {
			if got := c.schedule(1, n); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s, step %d: %v, want %v", c.name, n, got, want)
			}
		}
	}
}

// TestSchedulerState goes on from a state in another scheduler; each group has its own base.
func TestSchedulerState(t *testing.T) {
	make2 := func() (*optim.SGD, *optim.Scheduler) {
		opt := optim.NewSGDGroups(
			optim.ParamGroup[optim.SGDConfig]{Params: []*tensor.Tensor{param(1)}, Config: optim.SGDConfig{LR: 1}},
			optim.ParamGroup[optim.SGDConfig]{Params: []*tensor.Tensor{param(1)}, Config: optim.SGDConfig{LR: 0.5}})
		return opt, optim.NewScheduler(opt, optim.Exponential(0.5))
	}
	opt, s := make2()
	s.Step()
	s.Step()
	other, o := make2()
	if err := o.LoadStateDict(s.StateDict()); err != nil {
		t.Fatal(err)
	}
	s.Step()
	o.Step()
	want := []float64{0.125, 0.0625}
	for i := range want {
		if opt.GroupLR(i) != want[i] || other.GroupLR(i) != want[i] {
			t.Errorf("group %d: %v and %v, want %v", i, opt.GroupLR(i), other.GroupLR(i), want[i])
		}
	}
	if err := o.LoadStateDict(optim.SchedulerState{Bases: []float64{1}}); err == nil {
		t.Error("a state of another number of groups was accepted")
	}
}

func TestReduceOnPlateau(t *testing.T) {
	for _, c := range []struct {
		name    string
		cfg     optim.PlateauConfig
		metrics []float64
		want    []float64
	}{
		{"falls", optim.PlateauConfig{Patience: 1}, []float64{1, 0.5, 0.5, 0.5, 0.5, 0.5}, []float64{1, 1, 1, 0.1, 0.1, 0.01}},
		{"threshold", optim.PlateauConfig{Patience: -1, Threshold: 0.1, Factor: 0.5}, []float64{1, 0.95, 0.85}, []float64{1, 0.5, 0.5}},
		{"absolute", optim.PlateauConfig{Patience: -1, Threshold: 0.2, Absolute: true, Factor: 0.5}, []float64{1, 0.85, 0.75}, []float64{1, 0.5, 0.5}},
		{"rises", optim.PlateauConfig{Max: true, Patience: -1, Factor: 0.5}, []float64{1, 2, 2, math.NaN()}, []float64{1, 1, 0.5, 0.25}},
		{"cooldown", optim.PlateauConfig{Patience: -1, Cooldown: 2, Factor: 0.5}, []float64{1, 1, 1, 1, 1}, []float64{1, 0.5, 0.5, 0.5, 0.25}},
		{"least rate", optim.PlateauConfig{Patience: -1, MinLR: 0.3, Factor: 0.5}, []float64{1, 1, 1, 1}, []float64{1, 0.5, 0.3, 0.3}},
	} {
		opt := optim.NewSGD([]*tensor.Tensor{param(1)}, optim.SGDConfig{LR: 1})
		r, err := optim.NewReduceOnPlateau(opt, c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, m := range c.metrics {
			r.Step(m)
			got = append(got, math.Round(opt.LR()*1e9)/1e9)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if _, err := optim.NewReduceOnPlateau(nil, optim.PlateauConfig{Factor: 1}); err == nil {
		t.Error("a factor of 1 was accepted")
	}
}

func ExampleWarmup() {
	s := optim.Warmup(4, 0.1, optim.Cosine(8, 0))
	for step := 0; step <= 12; step += 2 {
		fmt.Printf("%.3f ", s(1, step))
	}
	// Output: 0.100 0.550 1.000 0.854 0.500 0.146 0.000
}
