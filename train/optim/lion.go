package optim

import (
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// LionConfig configures Lion. A zero field means the paper's default; a negative Beta1, Beta2 or WeightDecay means 0.
type LionConfig struct {
	LR          float64 // 1e-4
	Beta1       float64 // 0.9, of the update
	Beta2       float64 // 0.99, of the momentum
	WeightDecay float64 // 0, decoupled from the gradient
}

// Lion is the optimizer of Chen et al., "Symbolic discovery of optimization algorithms" (2023): p -= lr (sign(beta1 m +
// (1-beta1) g) + decay p), then m = beta2 m + (1-beta2) g. It keeps one array a parameter.
type Lion struct{ core[LionConfig] }

// NewLion returns a Lion optimizer of the parameters.
func NewLion(params []*tensor.Tensor, cfg LionConfig) *Lion {
	return NewLionGroups(one(params, cfg)...)
}

// NewLionGroups returns a Lion optimizer of groups of parameters.
func NewLionGroups(groups ...ParamGroup[LionConfig]) *Lion { return &Lion{newCore(lionRule, groups)} }

var lionRule = rule[LionConfig]{
	name:     "lion",
	lr:       func(c *LionConfig) *float64 { return &c.LR },
	momentum: func(c *LionConfig) *float64 { return &c.Beta1 },
	defaults: func(c *LionConfig) {
		orDefault(&c.LR, 1e-4)
		defaults(field{&c.Beta1, 0.9}, field{&c.Beta2, 0.99}, field{&c.WeightDecay, 0})
	},
	check: func(c *LionConfig) error {
		if err := betasBelow1(c.Beta1, c.Beta2); err != nil {
			return err
		}
		return notNegative(named{"weight decay", c.WeightDecay})
	},
	arrays: func(*LionConfig) []string { return []string{"exp_avg"} },
	update: func(c *LionConfig, _ int) kernel {
		return kernel{
			scalars: []float64{c.LR, c.Beta1, 1 - c.Beta1, c.Beta2, 1 - c.Beta2, 1 - c.LR*c.WeightDecay},
			body: func(b *ir.Builder, v, s []ir.Value) []ir.Value {
				p, grad, mean := v[0], v[1], v[2]
				lr, beta1, rest1, beta2, rest2, keep := s[0], s[1], s[2], s[3], s[4], s[5]
				u := b.Add(b.Mul(mean, beta1), b.Mul(grad, rest1))
				zero, unit := b.ConstLike(u, 0), b.ConstLike(u, 1)
				// A NaN has no sign; it goes on, so that it is seen.
				sign := b.Select(b.Gt(u, zero), unit, b.Select(b.Lt(u, zero), b.Neg(unit), u))
				p = b.Sub(b.Mul(p, keep), b.Mul(sign, lr))
				return []ir.Value{p, b.Add(b.Mul(mean, beta2), b.Mul(grad, rest2))}
			},
		}
	},
}
