package amp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

// scalerModel is the algorithm of torch/amp/grad_scaler.py and AmpKernels.cu, written down a second time from its description:
// what was called since the last update, and what each optimizer's gradient was.
type scalerModel struct {
	scale    float32
	clean    int // iterations in a row without overflow, since the scale last grew
	interval int
	used     bool // a loss was scaled, or the scale was set
	skipped  int
	row      int
	opts     [2]modelOptimizer
}

type modelOptimizer struct {
	grad               float32
	hasGrad            bool
	unscaled, stepped  bool // since the last update
	looked, foundInfes bool // a finite check saw a gradient; and it was not finite
	steps              int
}

func (m *scalerModel) unscale(i int) error {
	o := &m.opts[i]
	switch {
	case !m.used:
		return ErrNotScaled
	case o.stepped:
		return ErrUnscaleAfter
	case o.unscaled:
		return ErrAlreadyUnscaled
	}
	o.unscaled = true
	if o.hasGrad {
		o.looked = true
		o.foundInfes = o.grad-o.grad != 0
		o.grad *= float32(1 / float64(m.scale))
	}
	return nil
}

func (m *scalerModel) step(i int) (skipped bool, err error) {
	o := &m.opts[i]
	if !m.used {
		return false, ErrNotScaled
	}
	if o.stepped {
		return false, ErrAlreadyStepped
	}
	if !o.unscaled {
		if err := m.unscale(i); err != nil {
			return false, err
		}
	}
	if !o.looked {
		return false, ErrNoInfChecks
	}
	o.stepped = true
	if o.foundInfes {
		m.skipped++
		m.row++
		return true, nil
	}
	m.row = 0
	o.steps++
	return false, nil
}

func (m *scalerModel) update() error {
	if !m.used {
		return ErrNotScaled
	}
	if !m.opts[0].looked && !m.opts[1].looked {
		return ErrNoInfRecorded
	}
	if m.opts[0].foundInfes || m.opts[1].foundInfes {
		m.scale, m.clean = m.scale/2, 0
	} else if m.clean++; m.clean == m.interval {
		m.clean = 0
		if m.scale*2 <= math.MaxFloat32 {
			m.scale *= 2
		}
	}
	m.forget()
	return nil
}

func (m *scalerModel) forget() {
	for i := range m.opts {
		o := &m.opts[i]
		o.unscaled, o.stepped, o.looked, o.foundInfes = false, false, false, false
	}
}

// TestScalerModel runs 10,000 random sequences of calls, in order and out of order, against the model: errors, skipped steps,
// gradients, scale and growth tracker agree after each call.
func TestScalerModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 10_000 {
		if err := scalerSequence(rng); err != nil {
			t.Fatalf("sequence %d: %v", n, err)
		}
	}
}

func scalerSequence(rng *rand.Rand) error {
	m := &scalerModel{scale: float32(math.Ldexp(1, []int{-148, 0, 16, 126}[rng.IntN(4)])), interval: 1 + rng.IntN(3)}
	g := NewGradScaler(GradScalerConfig{InitScale: float64(m.scale), GrowthInterval: m.interval})
	opts := [2]*fakeOptimizer{withGrads(nil), withGrads(nil)}
	var trace []string
	var err, want error
	var skipped, wantSkipped bool
	do := func(call string, i int) {
		trace = append(trace, fmt.Sprintf("%s%d", call, i))
		switch call {
		case "scale":
			g.Scale(tensor.Scalar(1))
			m.used = true
			err, want = nil, nil
		case "clean", "inf", "nan":
			v := map[string]float32{"clean": float32(rng.IntN(7) - 3), "inf": inf, "nan": float32(math.NaN())}[call]
			opts[i].setGradOf0(v)
			m.opts[i].grad, m.opts[i].hasGrad = v, true
			err, want = nil, nil
		case "zero":
			opts[i].params[0].ZeroGrad()
			m.opts[i].hasGrad = false
			err, want = nil, nil
		case "unscale":
			err, want = g.Unscale(opts[i]), m.unscale(i)
		case "step":
			skipped, err = g.Step(opts[i])
			wantSkipped, want = m.step(i)
		case "update":
			err, want = g.Update(), m.update()
		case "set":
			v := math.Ldexp(1, rng.IntN(20))
			err, want = g.UpdateTo(v), nil
			m.scale, m.used = float32(v), true
			m.forget()
		case "reload":
			st := g.StateDict()
			if st.Scale == 0 {
				return // a state that no run accepts
			}
			fresh := NewGradScaler(GradScalerConfig{})
			if err, want = fresh.LoadStateDict(st), nil; err == nil {
				fresh.skipped, fresh.inARow = g.skipped, g.inARow
				g = fresh
				m.used = true
				m.forget()
			}
		}
	}
	check := func() error {
		if !errors.Is(err, want) {
			return fmt.Errorf("%s: error %v, want %v", strings.Join(trace, " "), err, want)
		}
		st := g.StateDict()
		if skipped != wantSkipped || float32(st.Scale) != m.scale || st.GrowthTracker != m.clean || g.Skipped() != m.skipped || g.SkippedInARow() != m.row ||
			opts[0].steps != m.opts[0].steps || opts[1].steps != m.opts[1].steps {
			return fmt.Errorf("%s: %+v, skipped %t %d %d, steps %d %d; want %+v, skipped %t", strings.Join(trace, " "), st, skipped, g.Skipped(), g.SkippedInARow(),
				opts[0].steps, opts[1].steps, *m, wantSkipped)
		}
		return nil
	}
	gradient := func() string { return []string{"clean", "clean", "clean", "inf", "nan"}[rng.IntN(5)] }
	for range 1 + rng.IntN(5) {
		var calls []string
		if rng.IntN(4) == 0 { // any order
			for range 1 + rng.IntN(6) {
				calls = append(calls, []string{"scale", gradient(), "zero", "unscale", "step", "update", "set", "reload"}[rng.IntN(8)])
			}
		} else { // an iteration, with one or two optimizers and accumulation
			calls = []string{"scale", gradient()}
			for range rng.IntN(2) {
				calls = append(calls, gradient())
			}
			if rng.IntN(2) == 0 {
				calls = append(calls, "unscale")
			}
			calls = append(calls, "step", "update")
		}
		both := rng.IntN(2) == 0
		for _, call := range calls {
			do(call, rng.IntN(2)*rng.IntN(2))
			if err := check(); err != nil {
				return err
			}
			if both && call != "update" && call != "set" && call != "reload" {
				do(call, 1)
				if err := check(); err != nil {
					return err
				}
			}
		}
	}
	for i, o := range opts {
		if !m.opts[i].hasGrad {
			continue
		}
		v, err := o.params[0].Grad().Float32s()
		if err != nil {
			return err
		}
		if w := m.opts[i].grad; v[0] != w && !(v[0] != v[0] && w != w) {
			return fmt.Errorf("%s: gradient of optimizer %d is %v, want %v", strings.Join(trace, " "), i, v[0], w)
		}
	}
	return nil
}

// setGradOf0 sets the gradient of the first parameter.
func (f *fakeOptimizer) setGradOf0(v float32) {
	if len(f.params[0].Shape()) != 1 || f.params[0].Shape()[0] != 1 {
		f.params[0] = tensor.FromFloat32s([]float32{0}, 1).SetRequiresGrad(true)
	}
	f.params[0].SetGrad(tensor.FromFloat32s([]float32{v}, 1))
}
