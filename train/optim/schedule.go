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
}

// OneCycle rises from a small learning rate to the group's, which is the largest, and falls to a very small one (Smith and Topin,
// "Super-convergence", 2018; torch's OneCycleLR without momentum cycling). After Total steps the rate stays.
func OneCycle(c OneCycleConfig) Schedule {
	if c.PctStart == 0 {
		c.PctStart = 0.3
	}
	if c.DivFactor == 0 {
		c.DivFactor = 25
	}
	if c.FinalDivFactor == 0 {
		c.FinalDivFactor = 1e4
	}
	anneal := func(from, to, part float64) float64 {
		if c.Linear {
			return from + (to-from)*part
		}
		return to + (from-to)/2*(1+math.Cos(math.Pi*part))
	}
	total := float64(max(c.Total, 2))
	return func(base float64, step int) float64 {
		first := base / c.DivFactor
		last := first / c.FinalDivFactor
		type phase struct{ end, from, to float64 }
		phases := []phase{{c.PctStart*total - 1, first, base}, {total - 1, base, last}}
		if c.ThreePhase {
			phases = []phase{{c.PctStart*total - 1, first, base}, {2*c.PctStart*total - 2, base, first}, {total - 1, first, last}}
		}
		at, start := math.Min(float64(step), total-1), 0.0
		for i, p := range phases {
			if at <= p.end || i == len(phases)-1 {
				return anneal(p.from, p.to, (at-start)/(p.end-start))
			}
			start = p.end
		}
		return last
	}
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
	bases    []float64
	step     int
}

// NewScheduler returns a scheduler, and sets the learning rates of step 0. The optimizer's present rates are the bases.
func NewScheduler(opt Optimizer, schedule Schedule) *Scheduler {
	s := &Scheduler{opt: opt, schedule: schedule}
	for i := range opt.Groups() {
		s.bases = append(s.bases, opt.GroupLR(i))
	}
	s.apply()
	return s
}

func (s *Scheduler) apply() {
	for i, base := range s.bases {
		s.opt.SetGroupLR(i, s.schedule(base, s.step))
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
