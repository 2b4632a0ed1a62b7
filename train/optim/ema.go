package optim

import (
	"fmt"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// EMA keeps an exponential moving average of parameters (Polyak and Juditsky, "Acceleration of stochastic approximation by
// averaging", 1992, with exponential weights): average = decay*average + (1-decay)*parameter at each Update. Models
// often evaluate better with the average.
type EMA struct {
	params   []*tensor.Tensor
	averages []*tensor.Tensor // float32, float64 of parameters in it
	decay    float64
}

// NewEMA returns an average that starts at the parameters' present values; decay is in [0, 1), such as 0.999.
func NewEMA(params []*tensor.Tensor, decay float64) (*EMA, error) {
	if !(decay >= 0 && decay < 1) {
		return nil, fmt.Errorf("optim: EMA: decay %v; it must be in [0, 1)", decay)
	}
	if len(params) == 0 {
		return nil, fmt.Errorf("optim: EMA: the list of parameters is empty")
	}
	e := &EMA{params: params, decay: decay}
	for i, p := range params {
		a := tensor.Zeros(p.Device(), stateDType(p), p.Shape()...)
		e.averages = append(e.averages, a)
		if err := a.CopyFrom(p); err != nil {
			e.Free()
			return nil, fmt.Errorf("optim: EMA: parameter %d: %w", i, err)
		}
	}
	return e, nil
}

// Update moves the averages towards the parameters; call it after the optimizer's step.
func (e *EMA) Update() error {
	for i, p := range e.params {
		var err error
		if e.averages[i], err = follow(e.averages[i], p); err != nil {
			return fmt.Errorf("optim: EMA: average %d: %w", i, err)
		}
	}
	pairs, err := e.pairs(e.averages)
	if err != nil {
		return err
	}
	err = tensor.UpdateInPlace(tensor.InPlaceUpdate{
		Name:    "ema",
		BodyKey: "ema",
		Tensors: pairs,
		Access:  []ir.Access{ir.Read, ir.ReadWrite},
		Scalars: []float64{e.decay, 1 - e.decay},
		Body: func(b *ir.Builder, v, _, s []ir.Value) ([]ir.Value, ir.Value) {
			return []ir.Value{b.Add(b.Mul(v[1], s[0]), b.Mul(v[0], s[1]))}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("optim: EMA: %w", err)
	}
	return nil
}

// pairs are the rows (parameter, other), with the others on the parameters' devices.
func (e *EMA) pairs(others []*tensor.Tensor) ([][]*tensor.Tensor, error) {
	out := make([][]*tensor.Tensor, len(e.params))
	for i, p := range e.params {
		if others[i].Device() != p.Device() {
			if err := others[i].MoveTo(p.Device()); err != nil {
				return nil, fmt.Errorf("optim: EMA: average %d: %w", i, err)
			}
		}
		out[i] = []*tensor.Tensor{p, others[i]}
	}
	return out, nil
}

// Averages returns the averages, in the parameters' order: float32 tensors (float64 of parameters in float64) that later updates change.
func (e *EMA) Averages() []*tensor.Tensor { return slices.Clone(e.averages) }

// With runs f while the parameters have the averages' values, and restores theirs. It returns f's error.
func (e *EMA) With(f func() error) (err error) {
	saved := make([]*tensor.Tensor, len(e.params))
	defer func() { freeAll(saved) }()
	for i, p := range e.params {
		d := p.Detach()
		saved[i] = d.Clone()
		d.Free()
		if err := saved[i].Err(); err != nil {
			return fmt.Errorf("optim: EMA: parameter %d: %w", i, err)
		}
	}
	if err := e.assign(e.averages); err != nil {
		return err
	}
	defer func() {
		if rerr := e.assign(saved); err == nil {
			err = rerr
		}
	}()
	return f()
}

// assign gives the parameters the values of others.
func (e *EMA) assign(others []*tensor.Tensor) error {
	for i, p := range e.params {
		if err := p.CopyFrom(others[i]); err != nil {
			return fmt.Errorf("optim: EMA: parameter %d: %w", i, err)
		}
	}
	return nil
}

// Load sets the averages, such as those of a checkpoint.
func (e *EMA) Load(averages []*tensor.Tensor) error {
	if len(averages) != len(e.averages) {
		return fmt.Errorf("optim: EMA: %d averages for %d parameters", len(averages), len(e.averages))
	}
	for i, a := range averages {
		if !slices.Equal(a.Shape(), e.averages[i].Shape()) {
			return fmt.Errorf("optim: EMA: average %d has shape %v, the parameter %v", i, a.Shape(), e.averages[i].Shape())
		}
	}
	for i, a := range averages {
		if err := e.averages[i].CopyFrom(a); err != nil {
			return fmt.Errorf("optim: EMA: average %d: %w", i, err)
		}
	}
	return nil
}

// Free gives the averages' memory back.
func (e *EMA) Free() { freeAll(e.averages) }
