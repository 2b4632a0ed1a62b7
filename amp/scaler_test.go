package amp

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/anygpu/anygpu/tensor"
)

// fakeOptimizer counts its steps.
type fakeOptimizer struct {
	params []*tensor.Tensor
	steps  int
}

func (f *fakeOptimizer) Parameters() []*tensor.Tensor { return f.params }
func (f *fakeOptimizer) Step() error                  { f.steps++; return nil }

// withGrads returns an optimizer of one parameter for each gradient.
func withGrads(grads ...[]float32) *fakeOptimizer {
	f := &fakeOptimizer{}
	for _, g := range grads {
		p := tensor.FromFloat32s(make([]float32, len(g)), len(g)).SetRequiresGrad(true)
		if g != nil {
			p.SetGrad(tensor.FromFloat32s(g, len(g)))
		}
		f.params = append(f.params, p)
	}
	return f
}

func (f *fakeOptimizer) setGrad(values ...float32) {
	f.params[0].SetGrad(tensor.FromFloat32s(values, len(values)))
}

// scaleOne makes the scaler usable, as a training step does with its loss.
func scaleOne(t *testing.T, g *GradScaler) {
	t.Helper()
	v, err := g.Scale(tensor.Scalar(1)).Item()
	if err != nil || v != g.GetScale() {
		t.Fatalf("Scale(1) = %v, %v; the scale is %v", v, err, g.GetScale())
	}
}

var inf = float32(math.Inf(1))

func TestScalerUnscalesAndSteps(t *testing.T) {
	g := NewGradScaler(GradScalerConfig{InitScale: 8})
	opt := withGrads([]float32{8, -16, 0}, []float32{4})
	scaleOne(t, g)
	skipped, err := g.Step(opt)
	if err != nil || skipped || opt.steps != 1 {
		t.Fatalf("Step: skipped %v, %v, %d optimizer steps", skipped, err, opt.steps)
	}
	for i, want := range [][]float32{{1, -2, 0}, {0.5}} {
		got, err := opt.params[i].Grad().Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for j := range want {
			if got[j] != want[j] {
				t.Errorf("gradient %d: %v, want %v", i, got, want)
			}
		}
	}
	if err := g.Update(); err != nil || g.GetScale() != 8 {
		t.Errorf("Update: %v, scale %v", err, g.GetScale())
	}
}

func TestScalerSkipsOverflow(t *testing.T) {
	for name, bad := range map[string]float32{"inf": inf, "-inf": -inf, "nan": float32(math.NaN())} {
		g := NewGradScaler(GradScalerConfig{})
		opt := withGrads([]float32{1, 2}, []float32{0, bad})
		scaleOne(t, g)
		skipped, err := g.Step(opt)
		if err != nil || !skipped || opt.steps != 0 || g.Skipped() != 1 {
			t.Errorf("%s: skipped %v, %v, %d optimizer steps, %d skipped", name, skipped, err, opt.steps, g.Skipped())
		}
		if err := g.Update(); err != nil || g.GetScale() != 32768 {
			t.Errorf("%s: Update: %v, scale %v, want 32768", name, err, g.GetScale())
		}
	}
}

func TestScalerErrors(t *testing.T) {
	steps := map[string]func(g *GradScaler, o *fakeOptimizer) error{
		"scale":   func(g *GradScaler, o *fakeOptimizer) error { g.Scale(tensor.Scalar(1)); return nil },
		"unscale": func(g *GradScaler, o *fakeOptimizer) error { return g.Unscale(o) },
		"step":    func(g *GradScaler, o *fakeOptimizer) error { _, err := g.Step(o); return err },
		"update":  func(g *GradScaler, o *fakeOptimizer) error { return g.Update() },
	}
	for _, c := range []struct {
		calls string
		opt   *fakeOptimizer
		want  error // of the last call; the others succeed
	}{
		{"scale unscale unscale", withGrads([]float32{1}), ErrAlreadyUnscaled},
		{"scale step unscale", withGrads([]float32{1}), ErrUnscaleAfter},
		{"scale step step", withGrads([]float32{1}), ErrAlreadyStepped},
		{"scale step update step", withGrads([]float32{1}), nil},
		{"scale unscale step update unscale", withGrads([]float32{1}), nil},
		{"scale step", &fakeOptimizer{params: []*tensor.Tensor{tensor.Scalar(0).SetRequiresGrad(true)}}, ErrNoInfChecks},
		{"scale update", withGrads([]float32{1}), ErrNoInfRecorded},
		{"step", withGrads([]float32{1}), ErrNotScaled},
		{"unscale", withGrads([]float32{1}), ErrNotScaled},
		{"update", withGrads([]float32{1}), ErrNotScaled},
		{"scale unscale update", withGrads([]float32{1}), nil},
	} {
		g := NewGradScaler(GradScalerConfig{})
		calls := strings.Fields(c.calls)
		for i, call := range calls {
			err := steps[call](g, c.opt)
			want := error(nil)
			if i == len(calls)-1 {
				want = c.want
			}
			if !errors.Is(err, want) {
				t.Errorf("%q, call %d: error %v, want %v", c.calls, i, err, want)
			}
		}
	}
	half := withGrads(nil)
	half.params = []*tensor.Tensor{tensor.FromFloat32s([]float32{1}, 1).Cast(tensor.Float16).Detach().SetRequiresGrad(true)}
	half.params[0].SetGrad(tensor.FromFloat32s([]float32{1}, 1).Cast(tensor.Float16))
	g := NewGradScaler(GradScalerConfig{})
	g.Scale(tensor.Scalar(1))
	if err := g.Unscale(half); !errors.Is(err, ErrFP16Gradients) {
		t.Errorf("float16 gradients: %v", err)
	}
}

func TestScalerErrorReachesScope(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	g := NewGradScaler(GradScalerConfig{})
	g.Scale(s.To(tensor.Scalar(1)))
	g.Update() // ignored, as in a loop that checks Close only
	if err := s.Close(); !errors.Is(err, ErrNoInfRecorded) {
		t.Errorf("Close returned %v", err)
	}
}

func TestScalerConfigErrors(t *testing.T) {
	for want, cfg := range map[string]GradScalerConfig{
		"growth factor 1":       {GrowthFactor: 1},
		"backoff factor 1":      {BackoffFactor: 1},
		"initial scale -1":      {InitScale: -1},
		"growth interval -3":    {GrowthInterval: -3},
		"minimum scale -1":      {MinScale: -1},
		"initial scale NaN":     {InitScale: math.NaN()},
		"backoff factor -0.5":   {BackoffFactor: -0.5},
		"growth factor NaN":     {GrowthFactor: math.NaN()},
		"initial scale +Inf; i": {InitScale: math.Inf(1)},
	} {
		g := NewGradScaler(cfg)
		g.Scale(tensor.Scalar(1))
		if _, err := g.Step(withGrads([]float32{1})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", cfg, err, want)
		}
	}
}

func TestScalerDisabled(t *testing.T) {
	g := NewGradScaler(GradScalerConfig{Disabled: true, GrowthFactor: 0.1})
	opt := withGrads([]float32{inf})
	loss := tensor.Scalar(3)
	if g.Scale(loss) != loss || g.GetScale() != 1 || g.Enabled() {
		t.Error("a disabled scaler does not pass the loss through")
	}
	if skipped, err := g.Step(opt); skipped || err != nil || opt.steps != 1 {
		t.Errorf("Step: %v %v", skipped, err)
	}
	if err := errors.Join(g.Unscale(opt), g.Update(), g.UpdateTo(5)); err != nil {
		t.Error(err)
	}
	if st := g.StateDict(); st != (State{}) {
		t.Errorf("state %+v", st)
	}
}

func TestScalerStateDict(t *testing.T) {
	a := NewGradScaler(GradScalerConfig{InitScale: 512, GrowthInterval: 3, GrowthFactor: 4, BackoffFactor: 0.25})
	opt := withGrads([]float32{1})
	for range 2 {
		a.Scale(tensor.Scalar(1))
		opt.setGrad(1)
		a.Step(opt)
		a.Update()
	}
	b := NewGradScaler(GradScalerConfig{})
	if err := b.LoadStateDict(a.StateDict()); err != nil {
		t.Fatal(err)
	}
	if a.StateDict() != b.StateDict() || b.StateDict().GrowthTracker != 2 {
		t.Errorf("%+v loaded as %+v", a.StateDict(), b.StateDict())
	}
	opt.setGrad(1)
	if _, err := b.Step(opt); err != nil { // a loaded scaler need not have scaled before
		t.Fatal(err)
	}
	if err := b.Update(); err != nil || b.GetScale() != 2048 {
		t.Errorf("after the third clean step: %v, scale %v, want 2048", err, b.GetScale())
	}
	if err := b.LoadStateDict(State{}); !errors.Is(err, ErrEmptyState) {
		t.Errorf("empty state: %v", err)
	}
	bad := a.StateDict()
	bad.GrowthTracker = 3
	if err := b.LoadStateDict(bad); err == nil {
		t.Error("a growth tracker past the interval was accepted")
	}
}

// TestScalerTwoOptimizers: one overflow lowers the scale once, and only the optimizer that had it is skipped.
func TestScalerTwoOptimizers(t *testing.T) {
	g := NewGradScaler(GradScalerConfig{})
	good, bad := withGrads([]float32{1}), withGrads([]float32{inf})
	scaleOne(t, g)
	if s, err := g.Step(good); s || err != nil {
		t.Errorf("good: %v %v", s, err)
	}
	if s, err := g.Step(bad); !s || err != nil {
		t.Errorf("bad: %v %v", s, err)
	}
	if err := g.Update(); err != nil || g.GetScale() != 32768 || good.steps != 1 || bad.steps != 0 {
		t.Errorf("scale %v, steps %d and %d, %v", g.GetScale(), good.steps, bad.steps, err)
	}
}

// TestDynamicScaleModel holds the scale against an independent model, which replays the whole history for each step:
// the exponent counts growths and backoffs since the start.
func TestDynamicScaleModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := GradScalerConfig{
			InitScale:      math.Exp2(float64(rapid.IntRange(0, 120).Draw(rt, "log2 of the initial scale"))),
			GrowthInterval: rapid.IntRange(1, 5).Draw(rt, "interval"),
		}.withDefaults()
		history := rapid.SliceOfN(rapid.Bool(), 1, 200).Draw(rt, "overflows")
		s := dynamicScale{scale: float32(cfg.InitScale)}
		for i, overflow := range history {
			s.update(overflow, cfg)
			exponent, clean := int(math.Log2(cfg.InitScale)), 0
			for _, o := range history[:i+1] {
				if o {
					exponent, clean = exponent-1, 0
				} else if clean++; clean%cfg.GrowthInterval == 0 && exponent < 127 {
					exponent++ // float32 ends below 2^128
				}
			}
			want := float32(math.Ldexp(1, exponent)) // exact down to 2^-149, then 0, as repeated halving is
			if s.scale != want || s.tracker != clean%cfg.GrowthInterval {
				rt.Fatalf("step %d: scale %v tracker %d, want %v %d", i, s.scale, s.tracker, want, clean%cfg.GrowthInterval)
			}
		}
	})
}

func TestMinScale(t *testing.T) {
	cfg := GradScalerConfig{InitScale: 4, MinScale: 1}.withDefaults()
	s := dynamicScale{scale: 4}
	for range 10 {
		s.update(true, cfg)
	}
	if s.scale != 1 {
		t.Errorf("scale %v fell below the floor 1", s.scale)
	}
}
