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
type SGD struct{ core[SGDConfig] }

// NewSGD returns an SGD optimizer of the parameters.
func NewSGD(params []*tensor.Tensor, cfg SGDConfig) *SGD { return NewSGDGroups(one(params, cfg)...) }

// NewSGDGroups returns an SGD optimizer of groups of parameters.
func NewSGDGroups(groups ...ParamGroup[SGDConfig]) *SGD { return &SGD{newCore(sgdRule, groups)} }

var sgdRule = rule[SGDConfig]{
	name:     "sgd",
	lr:       func(c *SGDConfig) *float64 { return &c.LR },
	momentum: func(c *SGDConfig) *float64 { return &c.Momentum },
	check: func(c *SGDConfig) error {
		if c.Nesterov && (c.Momentum <= 0 || c.Dampening != 0) {
			return fmt.Errorf("optim: Nesterov momentum requires a momentum and zero dampening, got %v and %v", c.Momentum, c.Dampening)
		}
		return notNegative(named{"momentum", c.Momentum}, named{"weight decay", c.WeightDecay})
	},
	arrays: func(c *SGDConfig) []string {
		if c.Momentum == 0 {
			return nil
		}
		return []string{"momentum_buffer"}
	},
	update: func(c *SGDConfig, steps int) kernel {
		// The first velocity is the gradient itself: the old one is zero and the gradient's factor is 1.
		factor := 1 - c.Dampening
		if steps == 1 {
			factor = 1
		}
		withMomentum, nesterov := c.Momentum != 0, c.Nesterov
		return kernel{
			key:     fmt.Sprintf("momentum=%t,nesterov=%t", withMomentum, nesterov),
			scalars: []float64{c.LR, c.WeightDecay, c.Momentum, factor},
			body: func(b *ir.Builder, v, s []ir.Value) []ir.Value {
				p, lr, decay, momentum, factor := v[0], s[0], s[1], s[2], s[3]
				grad := b.Add(v[1], b.Mul(p, decay))
				if !withMomentum {
					return []ir.Value{b.Sub(p, b.Mul(grad, lr))}
				}
				velocity := b.Add(b.Mul(v[2], momentum), b.Mul(grad, factor))
				d := velocity
				if nesterov {
					d = b.Add(grad, b.Mul(velocity, momentum))
				}
				return []ir.Value{b.Sub(p, b.Mul(d, lr)), velocity}
			},
		}
	},
}
