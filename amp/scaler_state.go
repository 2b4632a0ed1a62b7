package amp

import (
	"errors"
	"fmt"
	"math"
)

// The errors of misusing a GradScaler, with PyTorch's wording.
var (
	ErrAlreadyUnscaled = errors.New("Unscale() has already been called on this optimizer since the last Update()")
	ErrUnscaleAfter    = errors.New("Unscale() is being called after Step()")
	ErrAlreadyStepped  = errors.New("Step() has already been called since the last Update()")
	ErrNoInfChecks     = errors.New("no inf checks were recorded for this optimizer: none of its parameters has a gradient")
	ErrNoInfRecorded   = errors.New("no inf checks were recorded prior to Update()")
	ErrNotScaled       = errors.New("the scale is not set; this may indicate that the script did not use scaler.Scale(loss) earlier in the iteration")
	ErrFP16Gradients   = errors.New("attempting to unscale FP16 gradients: keep the parameters in float32 and use autocast")
	ErrOptimizer       = errors.New("the optimizer must be a pointer or another comparable value, and not nil: the scaler keeps a state for each")
	ErrGradientsGone   = errors.New("the gradients of the skipped step are gone: call LastOverflow before they are zeroed or changed")
	ErrEmptyState      = errors.New("the source state is empty, possibly because it was saved from a disabled instance of GradScaler")
)

// GradScalerConfig configures a GradScaler. The zero value of a field is PyTorch's default.
type GradScalerConfig struct {
	InitScale      float64 // 65536
	GrowthFactor   float64 // 2; must be more than 1
	BackoffFactor  float64 // 0.5; must be less than 1
	GrowthInterval int     // 2000 steps in a row without overflow
	MinScale       float64 // the scale never falls below it; 0: no floor, as in PyTorch
	Disabled       bool    // every call passes through

	// WarnAfter calls Warn after so many iterations in a row with an overflow, and again after as many more; 0: never, as in
	// PyTorch. A scale that only falls means that something other than the scale is wrong.
	WarnAfter int
	Warn      func(Warning) // nil: a warning of log/slog
}

// Warning is what GradScalerConfig.Warn gets.
type Warning struct {
	InARow int     // iterations in a row with an overflow
	Scale  float64 // after the last of them
}

// String returns the warning as a sentence.
func (w Warning) String() string {
	return fmt.Sprintf("amp: gradients overflowed in %d iterations in a row, and the scale is down to %v: look for infinities and NaN that no scale "+
		"mends, with GradScaler.LastOverflow and amp.Trace", w.InARow, w.Scale)
}

func (c GradScalerConfig) withDefaults() GradScalerConfig {
	if c.InitScale == 0 {
		c.InitScale = 65536
	}
	if c.GrowthFactor == 0 {
		c.GrowthFactor = 2
	}
	if c.BackoffFactor == 0 {
		c.BackoffFactor = 0.5
	}
	if c.GrowthInterval == 0 {
		c.GrowthInterval = 2000
	}
	return c
}

func (c GradScalerConfig) check() error {
	switch {
	case !(c.InitScale > 0) || math.IsInf(c.InitScale, 0):
		return fmt.Errorf("amp: initial scale %v; it must be positive and finite", c.InitScale)
	case !(c.GrowthFactor > 1):
		return fmt.Errorf("amp: growth factor %v; it must be more than 1", c.GrowthFactor)
	case !(c.BackoffFactor > 0 && c.BackoffFactor < 1):
		return fmt.Errorf("amp: backoff factor %v; it must be between 0 and 1", c.BackoffFactor)
	case c.GrowthInterval < 1:
		return fmt.Errorf("amp: growth interval %d; it must be at least 1", c.GrowthInterval)
	case !(c.MinScale >= 0) || math.IsInf(c.MinScale, 0):
		return fmt.Errorf("amp: minimum scale %v; it must be finite and not negative", c.MinScale)
	case c.WarnAfter < 0:
		return fmt.Errorf("amp: warning after %d iterations; it must not be negative", c.WarnAfter)
	}
	return nil
}

// State is what a GradScaler remembers between runs; its JSON names are PyTorch's state_dict keys. A disabled scaler's is
// empty.
type State struct {
	Scale          float64 `json:"scale,omitempty"`
	GrowthFactor   float64 `json:"growth_factor,omitempty"`
	BackoffFactor  float64 `json:"backoff_factor,omitempty"`
	GrowthInterval int     `json:"growth_interval,omitempty"`
	GrowthTracker  int     `json:"_growth_tracker,omitempty"`
}

// dynamicScale is the scale and its growth, without any device: the state that update moves on (ATen's amp_update_scale).
// The scale is kept in float32, as PyTorch keeps it.
type dynamicScale struct {
	scale   float32
	tracker int
}

// update moves the scale on after an iteration, with or without overflow.
func (s *dynamicScale) update(overflow bool, c GradScalerConfig) {
	if overflow {
		s.scale = float32(float64(s.scale) * c.BackoffFactor)
		if s.scale < float32(c.MinScale) {
			s.scale = float32(c.MinScale)
		}
		s.tracker = 0
		return
	}
	s.tracker++
	if s.tracker == c.GrowthInterval {
		if grown := float32(float64(s.scale) * c.GrowthFactor); !math.IsInf(float64(grown), 0) {
			s.scale = grown
		}
		s.tracker = 0
	}
}
