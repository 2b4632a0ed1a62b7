package optim

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// RMSpropConfig configures RMSprop. A zero field means PyTorch's default; a negative Alpha or Eps means 0.
type RMSpropConfig struct {
	LR          float64 // 1e-2
	Alpha       float64 // 0.99, the decay of the mean square
	Eps         float64 // 1e-8
	WeightDecay float64 // 0, added to the gradient
	Momentum    float64 // 0
	Centered    bool    // divide by the deviation instead of the root mean square (Graves, 2013)
}

// RMSprop is the optimizer of Tieleman and Hinton's lecture 6.5 (2012), in PyTorch's form, where epsilon is added outside the
// root.
type RMSprop struct{ core[RMSpropConfig] }

// NewRMSprop returns an RMSprop optimizer of the parameters.
func NewRMSprop(params []*tensor.Tensor, cfg RMSpropConfig) *RMSprop {
	return NewRMSpropGroups(one(params, cfg)...)
}

// NewRMSpropGroups returns an RMSprop optimizer of groups of parameters.
func NewRMSpropGroups(groups ...ParamGroup[RMSpropConfig]) *RMSprop {
	return &RMSprop{newCore(rmspropRule, groups)}
}

var rmspropRule = rule[RMSpropConfig]{
	name:     "rmsprop",
	lr:       func(c *RMSpropConfig) *float64 { return &c.LR },
	momentum: func(c *RMSpropConfig) *float64 { return &c.Momentum },
	defaults: func(c *RMSpropConfig) {
		orDefault(&c.LR, 1e-2)
		defaults(field{&c.Alpha, 0.99}, field{&c.Eps, 1e-8})
	},
	check: func(c *RMSpropConfig) error {
		if !(c.Alpha <= 1) {
			return fmt.Errorf("optim: alpha %v; it must be at most 1", c.Alpha)
		}
		return notNegative(named{"alpha", c.Alpha}, named{"eps", c.Eps}, named{"momentum", c.Momentum}, named{"weight decay", c.WeightDecay})
	},
	arrays: func(c *RMSpropConfig) []string {
		names := []string{"square_avg"}
		if c.Momentum > 0 {
			names = append(names, "momentum_buffer")
		}
		if c.Centered {
			names = append(names, "grad_avg")
		}
		return names
	},
	update: func(c *RMSpropConfig, _ int) kernel {
		withMomentum, centered := c.Momentum > 0, c.Centered
		return kernel{
			key:     fmt.Sprintf("momentum=%t,centered=%t", withMomentum, centered),
			scalars: []float64{c.LR, c.Alpha, 1 - c.Alpha, c.Eps, c.WeightDecay, c.Momentum},
			body: func(b *ir.Builder, v, s []ir.Value) []ir.Value {
				p, lr, alpha, rest, eps, decay, momentum := v[0], s[0], s[1], s[2], s[3], s[4], s[5]
				grad := b.Add(v[1], b.Mul(p, decay))
				square := b.Add(b.Mul(v[2], alpha), b.Mul(b.Mul(grad, grad), rest))
				states, spread := []ir.Value{square}, square
				if centered {
					mean := v[len(v)-1]
					mean = b.Add(b.Mul(mean, alpha), b.Mul(grad, rest))
					// Rounding may make the difference a little less than 0.
					spread = b.Max(b.Sub(square, b.Mul(mean, mean)), b.ConstLike(square, 0))
					states = append(states, mean)
				}
				d := b.Div(grad, b.Add(b.Sqrt(spread), eps))
				if withMomentum {
					d = b.Add(b.Mul(v[3], momentum), d)
					states = append(states[:1], append([]ir.Value{d}, states[1:]...)...)
				}
				return append([]ir.Value{b.Sub(p, b.Mul(d, lr))}, states...)
			},
		}
	},
}
