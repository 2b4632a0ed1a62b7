package optim

import (
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// AdagradConfig configures Adagrad. A zero LR or Eps means PyTorch's default; a negative Eps means 0.
type AdagradConfig struct {
	LR                 float64 // 1e-2
	LRDecay            float64 // 0: step t uses LR / (1 + (t-1) LRDecay)
	Eps                float64 // 1e-10
	WeightDecay        float64 // 0, added to the gradient
	InitialAccumulator float64 // 0, the first sum of squares
}

// Adagrad is the optimizer of Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic
// optimization" (2011).
type Adagrad struct{ core[AdagradConfig] }

// NewAdagrad returns an Adagrad optimizer of the parameters.
func NewAdagrad(params []*tensor.Tensor, cfg AdagradConfig) *Adagrad {
	return NewAdagradGroups(one(params, cfg)...)
}

// NewAdagradGroups returns an Adagrad optimizer of groups of parameters.
func NewAdagradGroups(groups ...ParamGroup[AdagradConfig]) *Adagrad {
	return &Adagrad{newCore(adagradRule, groups)}
}

var adagradRule = rule[AdagradConfig]{
	name: "adagrad",
	lr:   func(c *AdagradConfig) *float64 { return &c.LR },
	defaults: func(c *AdagradConfig) {
		orDefault(&c.LR, 1e-2)
		defaults(field{&c.Eps, 1e-10})
	},
	check: func(c *AdagradConfig) error {
		return notNegative(named{"learning rate decay", c.LRDecay}, named{"eps", c.Eps}, named{"weight decay", c.WeightDecay}, named{"initial accumulator", c.InitialAccumulator})
	},
	arrays:  func(*AdagradConfig) []string { return []string{"sum"} },
	initial: func(c *AdagradConfig) float64 { return c.InitialAccumulator },
	update: func(c *AdagradConfig, steps int) kernel {
		return kernel{
			scalars: []float64{c.LR / (1 + float64(steps-1)*c.LRDecay), c.Eps, c.WeightDecay},
			body: func(b *ir.Builder, v, s []ir.Value) []ir.Value {
				p, lr, eps, decay := v[0], s[0], s[1], s[2]
				grad := b.Add(v[1], b.Mul(p, decay))
				sum := b.Add(v[2], b.Mul(grad, grad))
				return []ir.Value{b.Sub(p, b.Mul(b.Div(grad, b.Add(b.Sqrt(sum), eps)), lr)), sum}
			},
		}
	},
}
