package optim

import (
	"fmt"
	"math"
	"sort"
)

// Schedule gives the learning rate of a step (0, 1, …) from the rate that the group was made with. Steps are whatever
// [Scheduler.Step] counts: optimizer steps or epochs. The functions below give PyTorch's values at each step.
type Schedule func(base float64, step int) float64

// Constant leaves the learning rate as it is.
func Constant() Schedule { return func(base float64, _ int) float64 { return base } }

// Lambda multiplies the learning rate with f(step).
func Lambda(f func(step int) float64) Schedule {
	return func(base float64, step int) float64 { return base * f(step) }
}

// StepDecay multiplies the learning rate with gamma every size steps (torch's StepLR).
func StepDecay(size int, gamma float64) Schedule {
	size = max(size, 1)
	return func(base float64, step int) float64 { return base * math.Pow(gamma, float64(step/size)) }
}

// MultiStep multiplies the learning rate with gamma at each milestone; a step that is listed twice counts twice.
func MultiStep(milestones []int, gamma float64) Schedule {
	sorted := append([]int(nil), milestones...)
	sort.Ints(sorted)
	return func(base float64, step int) float64 {
		passed := sort.SearchInts(sorted, step+1)
		return base * math.Pow(gamma, float64(passed))
	}
}

// Exponential multiplies the learning rate with gamma at each step.
func Exponential(gamma float64) Schedule {
	return func(base float64, step int) float64 { return base * math.Pow(gamma, float64(step)) }
}

// Cosine falls from the learning rate to min along half a cosine over total steps (Loshchilov and Hutter, "SGDR", 2017, without
// restarts), and rises again after them, as torch's CosineAnnealingLR does.
func Cosine(total int, min float64) Schedule {
	total = max(total, 1)
	return func(base float64, step int) float64 {
		return min + (base-min)*(1+math.Cos(math.Pi*float64(step)/float64(total)))/2
	}
}

// CosineWarmRestarts is Cosine started anew after each period; the first has period steps, and each is factor times as long as the
// one before (SGDR).
func CosineWarmRestarts(period, factor int, min float64) Schedule {
	period, factor = max(period, 1), max(factor, 1)
	return func(base float64, step int) float64 {
		at, length := step, period
		for at >= length {
			at -= length
			length *= factor
		}
		return Cosine(length, min)(base, at)
	}
}

// Linear goes from start times the learning rate to end times it over total steps, and stays there (torch's LinearLR).
func Linear(start, end float64, total int) Schedule {
	total = max(total, 1)
	return func(base float64, step int) float64 {
		return base * (start + (end-start)*float64(min(step, total))/float64(total))
	}
}

// Polynomial falls from the learning rate to 0 over total steps as (1 - step/total)^power (torch's PolynomialLR).
func Polynomial(total int, power float64) Schedule {
	total = max(total, 1)
	return func(base float64, step int) float64 {
		return base * math.Pow(1-float64(min(step, total))/float64(total), power)
	}
}

// Warmup rises linearly from start times the learning rate to the whole of it over steps steps, and goes on with after,
// which counts from there.
func Warmup(steps int, start float64, after Schedule) Schedule {
	rise := Linear(start, 1, steps)
	return func(base float64, step int) float64 {
		if step < steps {
			return rise(base, step)
		}
		return after(base, step-steps)
	}
}

// OneCycleConfig configures OneCycle. The zero value of a field is PyTorch's default; Total must be given.
type OneCycleConfig struct {
	Total          int     // steps
	PctStart       float64 // 0.3 of the steps rise
	DivFactor      float64 // 25: the first rate is the largest / DivFactor
	FinalDivFactor float64 // 1e4: the last rate is the first / FinalDivFactor
	Linear         bool    // straight lines instead of cosines
	ThreePhase     bool    // fall to the first rate symmetrically, then to the last
	// The momentum moves against the rate, from MaxMomentum to BaseMomentum and back. OneCycle alone does not move it.
	MaxMomentum  float64 // 0.95
	BaseMomentum float64 // 0.85
	KeepMomentum bool    // leave the momentum as it is (cycle_momentum=False)
}

// complete fills in the defaults.
func (c OneCycleConfig) complete() OneCycleConfig {
	if c.PctStart == 0 {
		c.PctStart = 0.3
	}
	if c.DivFactor == 0 {
		c.DivFactor = 25
	}
	if c.FinalDivFactor == 0 {
		c.FinalDivFactor = 1e4
	}
	if c.MaxMomentum == 0 {
		c.MaxMomentum = 0.95
	}
	if c.BaseMomentum == 0 {
		c.BaseMomentum = 0.85
	}
	return c
}

// at is the value of a step on the way from point to point: three points for two phases, four for three.
func (c OneCycleConfig) at(step int, points ...float64) float64 {
	total := float64(max(c.Total, 2))
	ends := []float64{c.PctStart*total - 1, total - 1}
	if c.ThreePhase {
		ends = []float64{c.PctStart*total - 1, 2*c.PctStart*total - 2, total - 1}
	}
	x, start := math.Min(float64(step), total-1), 0.0
	for i, end := range ends {
		if x > end && i < len(ends)-1 {
			start = end
			continue
		}
		from, to, part := points[i], points[i+1], 1.0
		if end > start { // a phase may have no steps
			part = (x - start) / (end - start)
		}
		if c.Linear {
			return from + (to-from)*part
		}
		return to + (from-to)/2*(1+math.Cos(math.Pi*part))
	}
	return points[len(points)-1]
}

// momentum is the momentum of a step.
func (c OneCycleConfig) momentum(step int) float64 {
	if c.ThreePhase {
		return c.at(step, c.MaxMomentum, c.BaseMomentum, c.MaxMomentum, c.MaxMomentum)
	}
	return c.at(step, c.MaxMomentum, c.BaseMomentum, c.MaxMomentum)
}

// OneCycle rises from a small learning rate to the group's, which is the largest, and falls to a very small one (Smith and Topin,
// "Super-convergence", 2018). After Total steps the rate stays. [NewOneCycle] moves the momentum, too.
func OneCycle(c OneCycleConfig) Schedule {
	c = c.complete()
	return func(base float64, step int) float64 {
		first := base / c.DivFactor
		last := first / c.FinalDivFactor
		if c.ThreePhase {
			return c.at(step, first, base, first, last)
		}
		return c.at(step, first, base, last)
	}
}

// NewOneCycle returns a scheduler of [OneCycle] that moves the momentum as well, as torch's OneCycleLR does: SGD's and RMSprop's momentum,
// the first beta of Adam, AdamW and Lion. The optimizer's present rates are the largest.
func NewOneCycle(opt Optimizer, c OneCycleConfig) (*Scheduler, error) {
	c = c.complete()
	switch {
	case c.Total < 1:
		return nil, fmt.Errorf("optim: one-cycle: %d steps; Total must be at least 1", c.Total)
	case !(c.PctStart >= 0 && c.PctStart <= 1):
		return nil, fmt.Errorf("optim: one-cycle: PctStart %v; it must be between 0 and 1", c.PctStart)
	case c.KeepMomentum:
		return NewScheduler(opt, OneCycle(c)), nil
	}
	m, ok := opt.(momentumOptimizer)
	for i := range opt.Groups() {
		if ok {
			_, ok = m.GroupMomentum(i)
		}
	}
	if !ok {
		return nil, fmt.Errorf("optim: one-cycle: the optimizer must support momentum; set KeepMomentum for one without")
	}
	return newScheduler(opt, OneCycle(c), c.momentum), nil
}

// momentumOptimizer is an optimizer whose momentum a schedule can move.
type momentumOptimizer interface {
	GroupMomentum(i int) (m float64, ok bool)
	SetGroupMomentum(i int, m float64)
}

// Scheduler sets an optimizer's learning rates by a schedule:
//
//	sched := optim.NewScheduler(opt, optim.Warmup(100, 0.01, optim.Cosine(900, 0)))
//	for … {
//		opt.Step()
//		sched.Step()
//	}
type Scheduler struct {
	opt      Optimizer
	schedule Schedule
	momentum func(step int) float64 // nil: it stays
	bases    []float64
	step     int
}

// NewScheduler returns a scheduler, and sets the learning rates of step 0. The optimizer's present rates are the bases.
func NewScheduler(opt Optimizer, schedule Schedule) *Scheduler {
	return newScheduler(opt, schedule, nil)
}

func newScheduler(opt Optimizer, schedule Schedule, momentum func(int) float64) *Scheduler {
	s := &Scheduler{opt: opt, schedule: schedule, momentum: momentum}
	for i := range opt.Groups() {
		s.bases = append(s.bases, opt.GroupLR(i))
	}
	s.apply()
	return s
}

func (s *Scheduler) apply() {
	for i, base := range s.bases {
		s.opt.SetGroupLR(i, s.schedule(base, s.step))
		if m, ok := s.opt.(momentumOptimizer); ok && s.momentum != nil {
			m.SetGroupMomentum(i, s.momentum(s.step))
		}
	}
}

// Step goes to the next step and sets its learning rates. Call it after the optimizer's Step.
func (s *Scheduler) Step() {
	s.step++
	s.apply()
}

// LR returns the first group's present learning rate.
func (s *Scheduler) LR() float64 { return s.opt.LR() }

// SchedulerState is where a scheduler is.
type SchedulerState struct {
	Bases []float64 `json:"base_lrs"`
	Step  int       `json:"last_epoch"` // PyTorch's name
}

// StateDict returns where the scheduler is.
func (s *Scheduler) StateDict() SchedulerState {
	return SchedulerState{append([]float64(nil), s.bases...), s.step}
}

// LoadStateDict goes to a state from StateDict and sets its learning rates. The schedule itself is the scheduler's own.
func (s *Scheduler) LoadStateDict(st SchedulerState) error {
	if len(st.Bases) != len(s.bases) || st.Step < 0 {
		return fmt.Errorf("optim: schedule: a state of %d groups at step %d does not fit an optimizer of %d groups", len(st.Bases), st.Step, len(s.bases))
	}
	s.bases, s.step = append([]float64(nil), st.Bases...), st.Step
	s.apply()
	return nil
}
