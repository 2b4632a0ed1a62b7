package optim

import (
	"fmt"
	"math"
)

// PlateauConfig configures ReduceOnPlateau. The zero value of a field is PyTorch's default, except for Absolute and Max.
type PlateauConfig struct {
	Max       bool    // the metric should rise instead of fall
	Factor    float64 // 0.1, of the learning rate
	Patience  int     // 10 steps without improvement are allowed; negative: none
	Threshold float64 // 1e-4; what counts as an improvement; negative: 0
	Absolute  bool    // the threshold is a difference instead of a part
	Cooldown  int     // steps after a reduction in which nothing is counted
	MinLR     float64
	Eps       float64 // 1e-8: smaller changes of the rate are not made
}

// ReduceOnPlateau lowers an optimizer's learning rates when a metric stops improving (torch's ReduceLROnPlateau).
type ReduceOnPlateau struct {
	opt   Optimizer
	cfg   PlateauConfig
	state PlateauState
}

// PlateauState is what a ReduceOnPlateau remembers.
type PlateauState struct {
	Best     *float64 `json:"best"` // nil before the first metric
	Bad      int      `json:"num_bad_epochs"`
	Cooldown int      `json:"cooldown_counter"`
}

// NewReduceOnPlateau returns a scheduler that watches a metric.
func NewReduceOnPlateau(opt Optimizer, cfg PlateauConfig) (*ReduceOnPlateau, error) {
	if cfg.Factor == 0 {
		cfg.Factor = 0.1
	}
	if cfg.Patience == 0 {
		cfg.Patience = 10
	}
	cfg.Patience = max(cfg.Patience, 0)
	if cfg.Threshold == 0 {
		cfg.Threshold = 1e-4
	}
	cfg.Threshold = max(cfg.Threshold, 0)
	if cfg.Eps == 0 {
		cfg.Eps = 1e-8
	}
	if !(cfg.Factor > 0 && cfg.Factor < 1) {
		return nil, fmt.Errorf("optim: plateau: factor %v; it should be between 0 and 1", cfg.Factor)
	}
	return &ReduceOnPlateau{opt: opt, cfg: cfg}, nil
}

// Step takes the metric of an epoch. A NaN is no improvement.
func (r *ReduceOnPlateau) Step(metric float64) {
	st := &r.state
	if r.improves(metric) {
		st.Best, st.Bad = &metric, 0
	} else {
		st.Bad++
	}
	if st.Cooldown > 0 {
		st.Cooldown--
		st.Bad = 0
	}
	if st.Bad <= r.cfg.Patience {
		return
	}
	for i := range r.opt.Groups() {
		old := r.opt.GroupLR(i)
		if now := math.Max(old*r.cfg.Factor, r.cfg.MinLR); old-now > r.cfg.Eps {
			r.opt.SetGroupLR(i, now)
		}
	}
	st.Cooldown, st.Bad = r.cfg.Cooldown, 0
}

func (r *ReduceOnPlateau) improves(metric float64) bool {
	if math.IsNaN(metric) {
		return false
	}
	if r.state.Best == nil {
		return true
	}
	best, sign := *r.state.Best, -1.0
	if r.cfg.Max {
		sign = 1
	}
	if r.cfg.Absolute {
		return sign*(metric-best) > r.cfg.Threshold
	}
	return sign*(metric-best*(1+sign*r.cfg.Threshold)) > 0
}

// StateDict returns what the scheduler remembers; the learning rates are in the optimizer's state.
func (r *ReduceOnPlateau) StateDict() PlateauState { return r.state }

// LoadStateDict takes over a state.
func (r *ReduceOnPlateau) LoadStateDict(st PlateauState) error {
	if st.Bad < 0 || st.Cooldown < 0 {
		return fmt.Errorf("optim: plateau: negative counts in the state: %d and %d", st.Bad, st.Cooldown)
	}
	r.state = st
	return nil
}
