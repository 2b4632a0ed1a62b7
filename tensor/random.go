package tensor

import (
	"fmt"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// Generator is the state of a random stream: Philox4x32-10 with a seed and a position. The stream is the same on every
// device. A generator may be used by several goroutines; what each gets depends on their order.
type Generator struct {
	mu     sync.Mutex
	seed   uint64
	offset uint64 // in groups of four numbers
}

// NewGenerator returns a generator at the start of the stream of seed.
func NewGenerator(seed uint64) *Generator { return &Generator{seed: seed} }

// State returns the seed and the position, to be restored with SetState.
func (g *Generator) State() (seed, offset uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seed, g.offset
}

// SetState sets the seed and the position.
func (g *Generator) SetState(seed, offset uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seed, g.offset = seed, offset
}

// take reserves n numbers of the stream.
func (g *Generator) take(n int) (seed, offset uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seed, offset = g.seed, g.offset
	g.offset += (uint64(n) + 3) / 4
	return seed, offset
}

func random(name, doc string) *OpInfo {
	return register(&OpInfo{Name: name, Doc: doc, Kind: KindRandom, Inputs: []string{}})
}

var (
	opUniform   = random("uniform", "random numbers, uniform in [lo, hi)")
	opNormal    = random("normal", "random numbers of a normal distribution")
	opBernoulli = random("bernoulli", "1 with probability p, else 0")
)

// Uniform returns random numbers in [lo, hi) on dev, in no scope; d is a floating-point dtype.
func Uniform(dev backend.Device, g *Generator, d DType, lo, hi float64, shape ...int) *Tensor {
	c := beginOn(opUniform, dev)
	if !(lo <= hi) {
		return c.fail("", fmt.Errorf("uniform_ expects to return a [from, to) range, but found from=%v > to=%v", lo, hi))
	}
	u := c.random(g, lib.Random{Dist: lib.RandomUniform}, d, shape)
	if u.err != nil || lo == 0 && hi == 1 {
		return u
	}
	return replace(u, u.MulScalar(hi-lo).AddScalar(lo))
}

// Normal returns normally distributed random numbers on dev, in no scope; d is a floating-point dtype.
func Normal(dev backend.Device, g *Generator, d DType, mean, std float64, shape ...int) *Tensor {
	c := beginOn(opNormal, dev)
	if !(std >= 0) {
		return c.fail("", fmt.Errorf("normal expects std >= 0.0, but found std %v", std))
	}
	u := c.random(g, lib.Random{Dist: lib.RandomNormal}, d, shape)
	if u.err != nil || mean == 0 && std == 1 {
		return u
	}
	return replace(u, u.MulScalar(std).AddScalar(mean))
}

// replace frees an intermediate result.
func replace(old, now *Tensor) *Tensor {
	old.Free()
	return now
}

// Bernoulli returns bools on dev, in no scope, each true with probability p.
func Bernoulli(dev backend.Device, g *Generator, p float64, shape ...int) *Tensor {
	c := beginOn(opBernoulli, dev)
	return c.bernoulli(g, p, shape)
}

func (c *call) bernoulli(g *Generator, p float64, shape []int) *Tensor {
	if !(p >= 0 && p <= 1) {
		return c.fail("", fmt.Errorf("the probability must be between 0 and 1, but got %v", p))
	}
	return c.random(g, lib.Random{Dist: lib.RandomBernoulli, P: float32(p)}, Bool, shape)
}

// random records a random kernel.
func (c *call) random(g *Generator, r lib.Random, d DType, shape []int) *Tensor {
	switch {
	case c.err != nil:
		return c.failed()
	case g == nil:
		return c.fail("", fmt.Errorf("a generator is needed; make one with NewGenerator"))
	case d != Bool && !d.IsFloat():
		return c.fail("cast the result", errorOf(ErrDType, "needs a floating-point dtype, got %s", d))
	}
	out := c.output(append([]int{}, shape...), d)
	if out.err != nil {
		return out
	}
	r.N, r.Out = Numel(shape), d.Kind()
	r.Seed, r.Offset = g.take(r.N)
	c.run(&r, nil, out)
	return out
}

var _ = DefineElementwiseParams(Elementwise{Name: "mask_scale", Doc: "x*scale where mask holds, else 0: dropout with its mask given", Inputs: []string{"mask", "x"}, Bools: []int{0},
	Params: []string{"scale"}, Default: []float64{1},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		return b.Select(in[0], b.Mul(in[1], in[2]), b.ConstLike(in[1], 0))
	},
	Ref: func(in ...float64) float64 {
		if in[0] != 0 {
			return in[1] * in[2]
		}
		return 0
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return []*Tensor{nil, applyParams("mask_scale", c.Params, c.In[0], dy)}
	}})

var _ = register(&OpInfo{Name: "dropout", Doc: "elements zeroed with probability p, the others scaled by 1/(1-p)", Kind: KindComposite, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return []*Tensor{in[0].Dropout(a.Float("p", 0.5), a.Bool("training"), NewGenerator(uint64(a.Int("seed", 0))))}
	}})

// Dropout zeroes elements with probability p and scales the others by 1/(1-p), while training; else it returns t. The
// random numbers come from g.
func (t *Tensor) Dropout(p float64, training bool, g *Generator) *Tensor {
	c := begin(LookupOp("dropout"), t)
	switch {
	case c.err != nil:
		return c.failed()
	case !(p >= 0 && p <= 1):
		return c.fail("", fmt.Errorf("dropout probability has to be between 0 and 1, but got %v", p))
	case !t.dtype.IsFloat():
		return c.fail("", errorOf(ErrDType, "dropout needs a floating-point tensor, got %s", t.dtype))
	case !training || p == 0:
		return t
	}
	mask := c.bernoulli(g, 1-p, t.shape)
	scale := 0.0
	if p < 1 {
		scale = 1 / (1 - p)
	}
	return applyParams("mask_scale", []float64{scale}, mask, t)
}
