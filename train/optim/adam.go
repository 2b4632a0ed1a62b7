package optim

import (
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
type Adam struct{ core[AdamConfig] }

// NewAdam returns an Adam optimizer of the parameters.
func NewAdam(params []*tensor.Tensor, cfg AdamConfig) *Adam {
	return NewAdamGroups(one(params, cfg)...)
}

// NewAdamGroups returns an Adam optimizer of groups of parameters.
func NewAdamGroups(groups ...ParamGroup[AdamConfig]) *Adam {
	return &Adam{newCore(adamRule(false, 0), groups)}
}

// NewAdamW returns an AdamW optimizer of the parameters.
func NewAdamW(params []*tensor.Tensor, cfg AdamConfig) *Adam {
	return NewAdamWGroups(one(params, cfg)...)
}

// NewAdamWGroups returns an AdamW optimizer of groups of parameters.
func NewAdamWGroups(groups ...ParamGroup[AdamConfig]) *Adam {
	return &Adam{newCore(adamRule(true, 1e-2), groups)}
}

func adamRule(decoupled bool, decay float64) rule[AdamConfig] {
	return rule[AdamConfig]{
		name:     map[bool]string{false: "adam", true: "adamw"}[decoupled],
		lr:       func(c *AdamConfig) *float64 { return &c.LR },
		momentum: func(c *AdamConfig) *float64 { return &c.Beta1 },
		defaults: func(c *AdamConfig) {
			orDefault(&c.LR, 1e-3)
			defaults(field{&c.Beta1, 0.9}, field{&c.Beta2, 0.999}, field{&c.Eps, 1e-8}, field{&c.WeightDecay, decay})
		},
		check: func(c *AdamConfig) error {
			if err := betasBelow1(c.Beta1, c.Beta2); err != nil {
				return err
			}
			return notNegative(named{"eps", c.Eps}, named{"weight decay", c.WeightDecay})
		},
		arrays: func(*AdamConfig) []string { return []string{"exp_avg", "exp_avg_sq"} },
		update: func(c *AdamConfig, steps int) kernel {
			c1 := 1 - math.Pow(c.Beta1, float64(steps))
			c2 := 1 - math.Pow(c.Beta2, float64(steps))
			decay := c.WeightDecay
			if decoupled {
				decay = 1 - c.LR*c.WeightDecay // a factor of the parameter; without it, of an addend of the gradient
			}
			return kernel{
				scalars: []float64{c.Beta1, 1 - c.Beta1, c.Beta2, 1 - c.Beta2, c.LR / c1, 1 / math.Sqrt(c2), c.Eps, decay},
				body: func(b *ir.Builder, v, s []ir.Value) []ir.Value {
					p, grad, mean, square := v[0], v[1], v[2], v[3]
					beta1, rest1, beta2, rest2, stepSize, invSqrtC2, eps, decay := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
					if decoupled {
						p = b.Mul(p, decay)
					} else {
						grad = b.Add(grad, b.Mul(p, decay))
					}
					mean = b.Add(b.Mul(mean, beta1), b.Mul(grad, rest1))
					square = b.Add(b.Mul(square, beta2), b.Mul(b.Mul(grad, grad), rest2))
					denom := b.Add(b.Mul(b.Sqrt(square), invSqrtC2), eps)
					return []ir.Value{b.Sub(p, b.Mul(b.Div(mean, denom), stepSize)), mean, square}
				},
			}
		},
	}
}
