package train

import (
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
)

// Precision is mixed precision as a Loop sees it. [MixedPrecision] makes one of package amp's parts.
type Precision interface {
	Autocast(s *tensor.Scope, f func())
	Scale(loss *tensor.Tensor) *tensor.Tensor
	Unscale() error
	// Step steps the optimizer unless a gradient overflowed.
	Step() (skipped bool, err error)
	Update() error
	State() checkpoint.Stateful
}

// Scaler is what MixedPrecision needs of amp.GradScaler, where O is amp.Optimizer and S amp.State.
type Scaler[O, S any] interface {
	Scale(loss *tensor.Tensor) *tensor.Tensor
	Unscale(O) error
	Step(O) (skipped bool, err error)
	Update() error
	StateDict() S
	LoadStateDict(S) error
}

// MixedPrecision joins a scaler, an optimizer and autocast for a Loop:
//
//	loop.Precision = train.MixedPrecision[amp.Optimizer](scaler, opt, func(s *tensor.Scope, f func()) { amp.Autocast(s, f) })
func MixedPrecision[O, S any](scaler Scaler[O, S], opt O, autocast func(s *tensor.Scope, f func())) Precision {
	return mixed[O, S]{scaler, opt, autocast}
}

type mixed[O, S any] struct {
	scaler   Scaler[O, S]
	opt      O
	autocast func(s *tensor.Scope, f func())
}

func (m mixed[O, S]) Autocast(s *tensor.Scope, f func())       { m.autocast(s, f) }
func (m mixed[O, S]) Scale(loss *tensor.Tensor) *tensor.Tensor { return m.scaler.Scale(loss) }
func (m mixed[O, S]) Unscale() error                           { return m.scaler.Unscale(m.opt) }
func (m mixed[O, S]) Step() (bool, error)                      { return m.scaler.Step(m.opt) }
func (m mixed[O, S]) Update() error                            { return m.scaler.Update() }
func (m mixed[O, S]) State() checkpoint.Stateful               { return checkpoint.Of[S](m.scaler) }
