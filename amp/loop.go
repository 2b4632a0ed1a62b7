package amp

import (
	"encoding/json"
	"fmt"

	"github.com/anygpu/anygpu/tensor"
)

// LoopPrecision is mixed precision for a train.Loop; [ForLoop] makes one.
type LoopPrecision struct {
	scaler *GradScaler
	opt    Optimizer
	opts   []Option
}

// ForLoop joins a gradient scaler, the loop's optimizer and options of [Autocast]:
//
//	loop.Precision = amp.ForLoop(amp.NewGradScaler(amp.GradScalerConfig{}), opt)
//
// bfloat16 needs no scale: give it a scaler that is Disabled, and DType(tensor.BFloat16).
func ForLoop(scaler *GradScaler, opt Optimizer, opts ...Option) *LoopPrecision {
	return &LoopPrecision{scaler, opt, opts}
}

// Autocast runs f with autocast.
func (p *LoopPrecision) Autocast(s *tensor.Scope, f func()) { Autocast(s, f, p.opts...) }

// Scale multiplies the loss by the scale.
func (p *LoopPrecision) Scale(loss *tensor.Tensor) *tensor.Tensor { return p.scaler.Scale(loss) }

// Unscale divides the optimizer's gradients by the scale.
func (p *LoopPrecision) Unscale() error { return p.scaler.Unscale(p.opt) }

// Step steps the optimizer unless a gradient overflowed.
func (p *LoopPrecision) Step() (skipped bool, err error) { return p.scaler.Step(p.opt) }

// Update moves the scale.
func (p *LoopPrecision) Update() error { return p.scaler.Update() }

// MarshalJSON returns the scaler's state.
func (p *LoopPrecision) MarshalJSON() ([]byte, error) { return json.Marshal(p.scaler.StateDict()) }

// UnmarshalJSON sets the scaler's state.
func (p *LoopPrecision) UnmarshalJSON(b []byte) error {
	var st *State
	if err := json.Unmarshal(b, &st); err != nil {
		return fmt.Errorf("amp: state of the scaler: %w", err)
	}
	if st == nil {
		return fmt.Errorf("amp: there is no state of the scaler")
	}
	return p.scaler.LoadStateDict(*st)
}
