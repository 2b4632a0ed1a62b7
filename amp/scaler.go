package amp

import (
	"fmt"
	"log/slog"
	"math"
	"reflect"

	"github.com/anygpu/anygpu/tensor"
)

// Optimizer is what a GradScaler needs of an optimizer; package optim's satisfy it.
type Optimizer interface {
	Parameters() []*tensor.Tensor
	Step() error
}

// GradScaler scales losses so that small float16 gradients do not vanish, and skips steps whose gradients overflowed. It may
// serve several optimizers on several devices. It is for one goroutine.
type GradScaler struct {
	cfg     GradScalerConfig
	cfgErr  error
	dyn     dynamicScale
	set     bool // Scale was called or a state was loaded
	opts    map[Optimizer]*optimizerState
	scope   *tensor.Scope // of the last scaled loss: where errors go as well
	skipped int
	inARow  int
	bad     int       // iterations in a row with an overflow
	last    *overflow // of the latest skipped step
	names   map[*tensor.Tensor]string
}

type stage int

const (
	ready stage = iota
	unscaled
	stepped
)

type optimizerState struct {
	stage    stage
	flags    []*tensor.Tensor // a uint32 flag for each device, 1 after an overflow
	overflow bool             // read back
	checked  bool
}

// NewGradScaler returns a scaler. A mistake in the configuration is the error of every later call.
func NewGradScaler(cfg GradScalerConfig) *GradScaler {
	cfg = cfg.withDefaults()
	g := &GradScaler{cfg: cfg, opts: map[Optimizer]*optimizerState{}, dyn: dynamicScale{scale: float32(cfg.InitScale)}}
	if !cfg.Disabled {
		g.cfgErr = cfg.check()
	}
	return g
}

// fail returns the error and makes it the error of the current scope, where there is one.
func (g *GradScaler) fail(err error) error {
	if err != nil && g.scope != nil {
		g.scope.Fail(err)
	}
	return err
}

// Enabled reports whether the scaler scales.
func (g *GradScaler) Enabled() bool { return !g.cfg.Disabled }

// GetScale returns the current scale; 1 if the scaler is disabled.
func (g *GradScaler) GetScale() float64 {
	if g.cfg.Disabled {
		return 1
	}
	return float64(g.dyn.scale)
}

// Skipped returns how many steps were skipped because a gradient was not finite.
func (g *GradScaler) Skipped() int { return g.skipped }

// SkippedInARow returns how many of the latest steps were skipped without one in between that was not.
func (g *GradScaler) SkippedInARow() int { return g.inARow }

// Scale returns loss times the current scale; call Backward on it. A loss of no dimensions in float16 or bfloat16 becomes
// float32 first, as in PyTorch: float16 ends at 65504.
func (g *GradScaler) Scale(loss *tensor.Tensor) *tensor.Tensor {
	if g.cfg.Disabled {
		return loss
	}
	g.scope = loss.Scope()
	if g.cfgErr != nil {
		g.fail(g.cfgErr)
	}
	g.set = true
	if len(loss.Shape()) == 0 && castable(loss) {
		loss = loss.Cast(tensor.Float32)
	}
	return loss.MulScalar(float64(g.dyn.scale))
}

func (g *GradScaler) state(opt Optimizer) (*optimizerState, error) {
	if opt == nil || !reflect.ValueOf(opt).Comparable() {
		return nil, fmt.Errorf("amp: %T: %w", opt, ErrOptimizer)
	}
	st := g.opts[opt]
	if st == nil {
		st = &optimizerState{}
		g.opts[opt] = st
	}
	return st, nil
}

// reset forgets the stages of all optimizers.
func (g *GradScaler) reset() {
	for _, st := range g.opts {
		for _, f := range st.flags {
			f.Free()
		}
	}
	clear(g.opts)
}

// Unscale divides the gradients of the optimizer's parameters by the scale, in place, for clipping before Step. Step does it
// where it was not done. Call it once between Update and Step.
func (g *GradScaler) Unscale(opt Optimizer) error {
	if g.cfg.Disabled {
		return nil
	}
	if err := g.usable("Unscale"); err != nil {
		return g.fail(err)
	}
	st, err := g.state(opt)
	if err != nil {
		return g.fail(err)
	}
	switch st.stage {
	case unscaled:
		return g.fail(fmt.Errorf("amp: %w", ErrAlreadyUnscaled))
	case stepped:
		return g.fail(fmt.Errorf("amp: %w", ErrUnscaleAfter))
	}
	return g.fail(g.unscale(opt, st))
}

func (g *GradScaler) usable(call string) error {
	if g.cfgErr != nil {
		return g.cfgErr
	}
	if !g.set {
		return fmt.Errorf("amp: attempted %s but %w", call, ErrNotScaled)
	}
	return nil
}

func (g *GradScaler) unscale(opt Optimizer, st *optimizerState) error {
	var grads []*tensor.Tensor
	for _, p := range opt.Parameters() {
		grad := p.Grad()
		if grad == nil {
			continue
		}
		if err := grad.Err(); err != nil {
			return fmt.Errorf("amp: unscale: %w", err)
		}
		if grad.DType() == tensor.Float16 {
			return fmt.Errorf("amp: %w", ErrFP16Gradients)
		}
		grads = append(grads, grad)
	}
	// float(1/double(scale)), as in PyTorch.
	flags, err := unscaleGradients(grads, float64(float32(1/float64(g.dyn.scale))))
	if err != nil {
		return fmt.Errorf("amp: unscale: %w", err)
	}
	st.stage, st.flags = unscaled, flags
	return nil
}

// Step runs opt.Step with unscaled gradients, unless one of them is infinite or NaN: then it leaves the parameters alone and
// returns true. The number of skipped steps is Skipped. Follow it with Update.
func (g *GradScaler) Step(opt Optimizer) (skipped bool, err error) {
	if g.cfg.Disabled {
		return false, opt.Step()
	}
	if err := g.usable("Step"); err != nil {
		return false, g.fail(err)
	}
	st, err := g.state(opt)
	if err != nil {
		return false, g.fail(err)
	}
	if st.stage == stepped {
		return false, g.fail(fmt.Errorf("amp: %w", ErrAlreadyStepped))
	}
	if st.stage == ready {
		if err := g.unscale(opt, st); err != nil {
			return false, g.fail(err)
		}
	}
	if len(st.flags) == 0 {
		return false, g.fail(fmt.Errorf("amp: %w", ErrNoInfChecks))
	}
	if err := st.read(); err != nil {
		return false, g.fail(err)
	}
	st.stage = stepped
	if st.overflow {
		g.skipped++
		g.inARow++
		g.last = rememberOverflow(opt)
		return true, nil
	}
	g.inARow = 0
	return false, g.fail(opt.Step())
}

// read fetches the flags from their devices: the one synchronisation of a step.
func (st *optimizerState) read() error {
	if st.checked {
		return nil
	}
	for _, f := range st.flags {
		v, err := f.Item()
		f.Free()
		if err != nil {
			return fmt.Errorf("amp: finite check: %w", err)
		}
		st.overflow = st.overflow || v != 0
	}
	st.checked = true
	return nil
}

// Update moves the scale on after the steps of an iteration: down if a gradient overflowed, up after GrowthInterval
// iterations without one. The scale stays finite.
func (g *GradScaler) Update() error {
	if g.cfg.Disabled {
		return nil
	}
	if err := g.usable("Update"); err != nil {
		return g.fail(err)
	}
	overflow, recorded := false, false
	for _, st := range g.opts {
		if len(st.flags) == 0 {
			continue
		}
		if err := st.read(); err != nil {
			return g.fail(err)
		}
		recorded = true
		overflow = overflow || st.overflow
	}
	if !recorded {
		return g.fail(fmt.Errorf("amp: %w", ErrNoInfRecorded))
	}
	g.dyn.update(overflow, g.cfg)
	g.reset()
	g.warn(overflow)
	return nil
}

// warn counts iterations in a row with an overflow.
func (g *GradScaler) warn(overflow bool) {
	if !overflow {
		g.bad = 0
		return
	}
	g.bad++
	if g.cfg.WarnAfter == 0 || g.bad%g.cfg.WarnAfter != 0 {
		return
	}
	w := Warning{InARow: g.bad, Scale: float64(g.dyn.scale)}
	if g.cfg.Warn != nil {
		g.cfg.Warn(w)
	} else {
		slog.Warn(w.String())
	}
}

// UpdateTo sets the scale instead of moving it on.
func (g *GradScaler) UpdateTo(scale float64) error {
	if g.cfg.Disabled {
		return nil
	}
	if !(scale > 0) || math.IsInf(float64(float32(scale)), 0) {
		return g.fail(fmt.Errorf("amp: new scale %v; it must be positive and finite", scale))
	}
	g.dyn.scale = float32(scale)
	g.set = true
	g.reset()
	return nil
}

// StateDict returns the scaler's state, to be loaded by another run. A disabled scaler's state is empty.
func (g *GradScaler) StateDict() State {
	if g.cfg.Disabled {
		return State{}
	}
	return State{Scale: float64(g.dyn.scale), GrowthFactor: g.cfg.GrowthFactor, BackoffFactor: g.cfg.BackoffFactor,
		GrowthInterval: g.cfg.GrowthInterval, GrowthTracker: g.dyn.tracker}
}

// LoadStateDict takes over a state from StateDict. A disabled scaler ignores it.
func (g *GradScaler) LoadStateDict(st State) error {
	if g.cfg.Disabled {
		return nil
	}
	if st == (State{}) {
		return fmt.Errorf("amp: %w", ErrEmptyState)
	}
	cfg := g.cfg
	cfg.InitScale, cfg.GrowthFactor, cfg.BackoffFactor, cfg.GrowthInterval = st.Scale, st.GrowthFactor, st.BackoffFactor, st.GrowthInterval
	if err := cfg.check(); err != nil {
		return fmt.Errorf("amp: load: %w", err)
	}
	if st.GrowthTracker < 0 || st.GrowthTracker >= st.GrowthInterval {
		return fmt.Errorf("amp: load: growth tracker %d is outside 0 to %d", st.GrowthTracker, st.GrowthInterval-1)
	}
	g.cfg, g.cfgErr = cfg, nil
	g.dyn = dynamicScale{scale: float32(st.Scale), tracker: st.GrowthTracker}
	g.set = true
	return nil
}
