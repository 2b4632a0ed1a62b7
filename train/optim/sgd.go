package optim

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// SGDConfig configures SGD. There is no default learning rate.
type SGDConfig struct {
	LR          float64
	Momentum    float64
	Dampening   float64
	WeightDecay float64
	Nesterov    bool
}

// SGD is stochastic gradient descent with momentum (Sutskever et al., "On the importance of initialization and momentum in
// deep learning", 2013, in PyTorch's form: v = momentum*v + (1-dampening)*g, p -= lr*v, where the first v is g).
type SGD struct {
	base
	cfg SGDConfig
}

// NewSGD returns an SGD optimizer of the parameters.
func NewSGD(params []*tensor.Tensor, cfg SGDConfig) *SGD {
	s := &SGD{base: newBase(params, cfg.LR), cfg: cfg}
	switch {
	case cfg.Momentum < 0:
		s.fail(fmt.Errorf("optim: momentum %v; it must not be negative", cfg.Momentum))
	case cfg.WeightDecay < 0:
		s.fail(fmt.Errorf("optim: weight decay %v; it must not be negative", cfg.WeightDecay))
	case cfg.Nesterov && (cfg.Momentum <= 0 || cfg.Dampening != 0):
		s.fail(fmt.Errorf("optim: Nesterov momentum requires a momentum and zero dampening, got %v and %v", cfg.Momentum, cfg.Dampening))
	}
	return s
}

// Step updates the parameters.
func (s *SGD) Step() error {
	states := 0
	if s.cfg.Momentum != 0 {
		states = 1
	}
	groups, err := s.collect(states)
	if err != nil {
		return err
	}
	for _, g := range groups {
		// The first velocity is the gradient itself: the old one is zero and the gradient's factor is 1.
		factor := 1 - s.cfg.Dampening
		if g.steps == 1 {
			factor = 1
		}
		err := tensor.UpdateInPlace(tensor.InPlaceUpdate{
			Name:    "sgd",
			BodyKey: fmt.Sprintf("momentum=%t,nesterov=%t", states == 1, s.cfg.Nesterov),
			Tensors: g.tensors,
			Access:  access(states),
			Scalars: float32s(s.lr, s.cfg.WeightDecay, s.cfg.Momentum, factor),
			Body: func(b *ir.Builder, vals, _, sc []ir.Value) ([]ir.Value, ir.Value) {
				lr, decay, momentum, factor := sc[0], sc[1], sc[2], sc[3]
				p := vals[0]
				grad := b.Add(vals[1], b.Mul(p, decay))
				if states == 0 {
					return []ir.Value{b.Sub(p, b.Mul(grad, lr))}, nil
				}
				v := b.Add(b.Mul(vals[2], momentum), b.Mul(grad, factor))
				d := v
				if s.cfg.Nesterov {
					d = b.Add(grad, b.Mul(v, momentum))
				}
				return []ir.Value{b.Sub(p, b.Mul(d, lr)), v}, nil
			},
		})
		if err != nil {
			return fmt.Errorf("optim: SGD: %w", err)
		}
	}
	return nil
}
