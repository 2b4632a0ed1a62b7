package optim

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// AdamConfig configures Adam and AdamW. A zero field means PyTorch's default; a negative Beta1, Beta2, Eps or WeightDecay
// means 0.
type AdamConfig struct {
	LR          float64 // 1e-3
	Beta1       float64 // 0.9
	Beta2       float64 // 0.999
	Eps         float64 // 1e-8
	WeightDecay float64 // Adam: 0, added to the gradient; AdamW: 1e-2, decoupled from it
}

// Adam is the optimizer of Kingma and Ba, "Adam: a method for stochastic optimization" (2015), or with decoupled weight decay
// AdamW of Loshchilov and Hutter, "Decoupled weight decay regularization" (2019).
type Adam struct {
	base
	cfg       AdamConfig
	decoupled bool
}

// NewAdam returns an Adam optimizer of the parameters.
func NewAdam(params []*tensor.Tensor, cfg AdamConfig) *Adam { return newAdam(params, cfg, false, 0) }

// NewAdamW returns an AdamW optimizer of the parameters.
func NewAdamW(params []*tensor.Tensor, cfg AdamConfig) *Adam { return newAdam(params, cfg, true, 1e-2) }

func newAdam(params []*tensor.Tensor, cfg AdamConfig, decoupled bool, decay float64) *Adam {
	for _, d := range []struct {
		field  *float64
		value  float64
		signed bool
	}{{&cfg.LR, 1e-3, true}, {&cfg.Beta1, 0.9, false}, {&cfg.Beta2, 0.999, false}, {&cfg.Eps, 1e-8, false}, {&cfg.WeightDecay, decay, false}} {
		if *d.field == 0 {
			*d.field = d.value
		} else if *d.field < 0 && !d.signed {
			*d.field = 0
		}
	}
	a := &Adam{base: newBase(params, cfg.LR), cfg: cfg, decoupled: decoupled}
	if !(cfg.Beta1 < 1 && cfg.Beta2 < 1) {
		a.fail(fmt.Errorf("optim: betas %v and %v; they must be less than 1", cfg.Beta1, cfg.Beta2))
	}
	return a
}

// Step updates the parameters.
func (a *Adam) Step() error {
	groups, err := a.collect(2)
	if err != nil {
		return err
	}
	for _, g := range groups {
		c1 := 1 - math.Pow(a.cfg.Beta1, float64(g.steps))
		c2 := 1 - math.Pow(a.cfg.Beta2, float64(g.steps))
		err := tensor.UpdateInPlace(tensor.InPlaceUpdate{
			Name:    "adam",
			BodyKey: fmt.Sprintf("decoupled=%t", a.decoupled),
			Tensors: g.tensors,
			Access:  access(2),
			Scalars: float32s(a.cfg.Beta1, 1-a.cfg.Beta1, a.cfg.Beta2, 1-a.cfg.Beta2, a.lr/c1, 1/math.Sqrt(c2), a.cfg.Eps, a.decay()),
			Body:    a.body,
		})
		if err != nil {
			return fmt.Errorf("optim: Adam: %w", err)
		}
	}
	return nil
}

// decay is the weight decay as body uses it: a factor of the parameter for AdamW, an addend's factor for Adam.
func (a *Adam) decay() float64 {
	if a.decoupled {
		return 1 - a.lr*a.cfg.WeightDecay
	}
	return a.cfg.WeightDecay
}

func (a *Adam) body(b *ir.Builder, vals, _, sc []ir.Value) ([]ir.Value, ir.Value) {
	p, grad, m, v := vals[0], vals[1], vals[2], vals[3]
	beta1, rest1, beta2, rest2, stepSize, invSqrtC2, eps, decay := sc[0], sc[1], sc[2], sc[3], sc[4], sc[5], sc[6], sc[7]
	if a.decoupled {
		p = b.Mul(p, decay)
	} else {
		grad = b.Add(grad, b.Mul(p, decay))
	}
	m = b.Add(b.Mul(m, beta1), b.Mul(grad, rest1))
	v = b.Add(b.Mul(v, beta2), b.Mul(b.Mul(grad, grad), rest2))
	denom := b.Add(b.Mul(b.Sqrt(v), invSqrtC2), eps)
	return []ir.Value{b.Sub(p, b.Mul(b.Div(m, denom), stepSize)), m, v}, nil
}
