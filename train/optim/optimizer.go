package optim

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// Optimizer updates parameters from their gradients.
type Optimizer interface {
	// Step updates every parameter that has a gradient. Failures are returned and are also the error of the results that
	// depend on the parameters.
	Step() error
	// ZeroGrad drops the gradients.
	ZeroGrad()
	// Parameters returns the parameters of all groups.
	Parameters() []*tensor.Tensor
	// SetLR changes the learning rate of later steps, in all groups.
	SetLR(lr float64)
	// LR returns the learning rate of the first group.
	LR() float64
	// Groups returns the number of parameter groups.
	Groups() int
	// GroupLR returns the learning rate of group i.
	GroupLR(i int) float64
	// SetGroupLR changes the learning rate of later steps of group i.
	SetGroupLR(i int, lr float64)
	// StateDict returns what the optimizer remembers between steps.
	StateDict() (*StateDict, error)
	// LoadStateDict takes over a state.
	LoadStateDict(*StateDict) error
}

// ParamGroup is a set of parameters with a configuration of their own: a learning rate, a weight decay, and so on.
type ParamGroup[C any] struct {
	Params []*tensor.Tensor
	Config C
}

// rule is what tells one optimizer from another.
type rule[C any] struct {
	name string
	// defaults fills in what a configuration leaves out.
	defaults func(cfg *C)
	// check says what is wrong with a configuration that has its defaults.
	check func(cfg *C) error
	lr    func(cfg *C) *float64
	// momentum is what a schedule of momentum moves; nil if there is none.
	momentum func(cfg *C) *float64
	// arrays names the state arrays of a parameter, as PyTorch's state_dict does.
	arrays func(cfg *C) []string
	// initial is the first value of the state arrays; nil is 0.
	initial func(cfg *C) float64
	// update returns the kernel's key, scalars and body for the steps-th step of a parameter.
	update func(cfg *C, steps int) kernel
}

// valid says what is wrong with a complete configuration.
func (r *rule[C]) valid(cfg *C) error {
	if lr := *r.lr(cfg); !(lr >= 0) || math.IsInf(lr, 0) {
		return fmt.Errorf("optim: learning rate %v; it must be finite and not negative", lr)
	}
	return r.check(cfg)
}

// kernel is what [tensor.UpdateInPlace] runs. The body gets parameter, gradient and state arrays and returns the new parameter and
// states.
type kernel struct {
	key     string
	scalars []float64
	body    func(b *ir.Builder, v, s []ir.Value) []ir.Value
}

// core is what all optimizers share.
type core[C any] struct {
	rule   rule[C]
	params []*tensor.Tensor // of all groups
	groups []group[C]
	states []paramState
	err    error // of the configuration
}

// group is a parameter group: the parameters from index first up to end.
type group[C any] struct {
	cfg        C
	first, end int
}

// paramState is the state of one parameter.
type paramState struct {
	steps  int
	arrays []*tensor.Tensor // float32, of the parameter's shape
}

func newCore[C any](r rule[C], groups []ParamGroup[C]) core[C] {
	c := core[C]{rule: r}
	seen := map[*tensor.Tensor]int{}
	for _, g := range groups {
		cfg := g.Config
		if r.defaults != nil {
			r.defaults(&cfg)
		}
		if err := r.valid(&cfg); err != nil {
			c.fail(err)
		}
		first := len(c.params)
		for _, p := range g.Params {
			i := len(c.params)
			if j, dup := seen[p]; dup {
				c.fail(fmt.Errorf("optim: parameters %d and %d are the same tensor", j, i))
			}
			seen[p] = i
			if !p.IsLeaf() {
				c.fail(fmt.Errorf("optim: parameter %d (%v) is not a leaf: only tensors that were not computed can be optimized", i, p))
			}
			c.params = append(c.params, p)
		}
		c.groups = append(c.groups, group[C]{cfg: cfg, first: first, end: len(c.params)})
	}
	if len(c.params) == 0 {
		c.fail(fmt.Errorf("optim: the list of parameters is empty"))
	}
	c.states = make([]paramState, len(c.params))
	return c
}

func one[C any](params []*tensor.Tensor, cfg C) []ParamGroup[C] {
	return []ParamGroup[C]{{Params: params, Config: cfg}}
}

func (c *core[C]) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Parameters returns the parameters of all groups.
func (c *core[C]) Parameters() []*tensor.Tensor { return c.params }

// ZeroGrad drops the gradients.
func (c *core[C]) ZeroGrad() {
	for _, p := range c.params {
		p.ZeroGrad()
	}
}

// SetLR changes the learning rate of later steps, in all groups.
func (c *core[C]) SetLR(lr float64) {
	for i := range c.groups {
		c.SetGroupLR(i, lr)
	}
}

// LR returns the learning rate of the first group.
func (c *core[C]) LR() float64 { return c.GroupLR(0) }

// Groups returns the number of parameter groups.
func (c *core[C]) Groups() int { return len(c.groups) }

// GroupLR returns the learning rate of group i; 0 if there is no such group.
func (c *core[C]) GroupLR(i int) float64 {
	if i < 0 || i >= len(c.groups) {
		return 0
	}
	return *c.rule.lr(&c.groups[i].cfg)
}

// SetGroupLR changes the learning rate of later steps of group i. A negative one, or a group that is not there, is the
// error of every later Step.
func (c *core[C]) SetGroupLR(i int, lr float64) {
	switch {
	case i < 0 || i >= len(c.groups):
		c.fail(fmt.Errorf("optim: group %d of %d", i, len(c.groups)))
	case !(lr >= 0) || math.IsInf(lr, 0):
		c.fail(fmt.Errorf("optim: learning rate %v; it must be finite and not negative", lr))
	default:
		*c.rule.lr(&c.groups[i].cfg) = lr
	}
}

// GroupMomentum returns the momentum of group i: SGD's and RMSprop's momentum, the first beta of Adam, AdamW and Lion. ok is false for an
// optimizer without, such as Adagrad.
func (c *core[C]) GroupMomentum(i int) (m float64, ok bool) {
	if c.rule.momentum == nil || i < 0 || i >= len(c.groups) {
		return 0, false
	}
	return *c.rule.momentum(&c.groups[i].cfg), true
}

// SetGroupMomentum changes the momentum of later steps of group i. One that the optimizer does not accept is the error of every
// later Step, and so is switching momentum on or off after the first step.
func (c *core[C]) SetGroupMomentum(i int, m float64) {
	if _, ok := c.GroupMomentum(i); !ok {
		c.fail(fmt.Errorf("optim: %s: group %d has no momentum", c.rule.name, i))
		return
	}
	g := &c.groups[i]
	cfg := g.cfg
	*c.rule.momentum(&cfg) = m
	if err := c.rule.valid(&cfg); err != nil {
		c.fail(err)
		return
	}
	if !slices.Equal(c.rule.arrays(&cfg), c.rule.arrays(&g.cfg)) {
		for p := g.first; p < g.end; p++ {
			if c.states[p].steps > 0 {
				c.fail(fmt.Errorf("optim: %s: momentum %v of group %d: it cannot be switched on or off after the first step", c.rule.name, m, i))
				return
			}
		}
	}
	g.cfg = cfg
}

// Free gives the state's memory back; the next step starts with a new state.
func (c *core[C]) Free() {
	for i := range c.states {
		for _, t := range c.states[i].arrays {
			t.Free()
		}
		c.states[i] = paramState{}
	}
}

// Step updates the parameters that have gradients: one kernel for those of one group, device, dtype and step count, or
// several where a kernel cannot bind them all.
func (c *core[C]) Step() error {
	if c.err != nil {
		return c.err
	}
	for i := range c.groups {
		g := &c.groups[i]
		batches, err := c.collect(g)
		if err != nil {
			return err
		}
		for _, bt := range batches {
			k := c.rule.update(&g.cfg, bt.steps)
			err := tensor.UpdateInPlace(tensor.InPlaceUpdate{
				Name:    c.rule.name,
				BodyKey: c.rule.name + "|" + k.key,
				Tensors: bt.rows,
				Access:  access(len(bt.rows[0]) - 2),
				Scalars: k.scalars,
				Body: func(b *ir.Builder, vals, _, sc []ir.Value) ([]ir.Value, ir.Value) {
					return k.body(b, vals, sc), nil
				},
			})
			if err != nil {
				return fmt.Errorf("optim: %s: %w", c.rule.name, err)
			}
		}
	}
	return nil
}

// batch is a set of parameters that take the same step: equal step count, device and dtype. Each row is parameter, gradient,
// state arrays.
type batch struct {
	steps int // including this one
	rows  [][]*tensor.Tensor
}

type batchKey struct {
	steps  int
	device any
	dtype  tensor.DType
}

// collect gathers a group's parameters that have gradients, with their state arrays, made or moved as needed, in batches in order
// of first appearance.
func (c *core[C]) collect(g *group[C]) ([]batch, error) {
	n, initial := len(c.rule.arrays(&g.cfg)), 0.0
	if c.rule.initial != nil {
		initial = c.rule.initial(&g.cfg)
	}
	var batches []batch
	index := map[batchKey]int{}
	for i := g.first; i < g.end; i++ {
		var err error
		p := c.params[i]
		grad := p.Grad()
		if grad == nil {
			continue
		}
		if err := p.Err(); err != nil {
			return nil, fmt.Errorf("optim: parameter %d: %w", i, err)
		}
		if err := grad.Err(); err != nil {
			return nil, fmt.Errorf("optim: gradient of parameter %d: %w", i, err)
		}
		st := &c.states[i]
		for len(st.arrays) < n {
			st.arrays = append(st.arrays, tensor.Full(p.Device(), stateDType(p), initial, p.Shape()...))
		}
		row := []*tensor.Tensor{p, grad}
		for j, t := range st.arrays {
			if st.arrays[j], err = follow(t, p); err != nil {
				return nil, fmt.Errorf("optim: state of parameter %d: %w", i, err)
			}
			row = append(row, st.arrays[j])
		}
		st.steps++
		key := batchKey{st.steps, p.Device(), p.DType()}
		at, ok := index[key]
		if !ok {
			at = len(batches)
			index[key] = at
			batches = append(batches, batch{steps: st.steps})
		}
		batches[at].rows = append(batches[at].rows, row)
	}
	return batches, nil
}

// stateDType is float64 for parameters of float64, and float32 for all others: moments lose too much in 16 bits.
func stateDType(p *tensor.Tensor) tensor.DType {
	if p.DType() == tensor.Float64 {
		return tensor.Float64
	}
	return tensor.Float32
}

// follow brings a parameter's state to where the parameter is and to the dtype that goes with its own: the model may have been moved or
// cast since.
func follow(state, p *tensor.Tensor) (*tensor.Tensor, error) {
	if state.Device() != p.Device() {
		if err := state.MoveTo(p.Device()); err != nil {
			return state, err
		}
	}
	if state.DType() == stateDType(p) {
		return state, nil
	}
	cast := tensor.Zeros(p.Device(), stateDType(p), p.Shape()...)
	if err := cast.CopyFrom(state); err != nil {
		return state, err
	}
	state.Free()
	return cast, nil
}

// access says what an optimizer's kernel does with each array of a row.
func access(states int) []ir.Access {
	a := []ir.Access{ir.ReadWrite, ir.Read}
	for range states {
		a = append(a, ir.ReadWrite)
	}
	return a
}

// field is a configuration's field with its default.
type field struct {
	value *float64
	def   float64
}

// defaults fills in fields that are 0 and makes negative ones 0.
func defaults(fields ...field) {
	for _, f := range fields {
		if *f.value == 0 {
			*f.value = f.def
		} else if *f.value < 0 {
			*f.value = 0
		}
	}
}

// notNegative says which value is negative or not finite.
func notNegative(values ...named) error {
	for _, v := range values {
		if !(v.value >= 0) || math.IsInf(v.value, 0) {
			return fmt.Errorf("optim: %s %v; it must be finite and not negative", v.name, v.value)
		}
	}
	return nil
}

// named is a configuration's value.
type named struct {
	name  string
	value float64
}

// betasBelow1 holds decay rates of averages to [0, 1).
func betasBelow1(beta1, beta2 float64) error {
	if !(beta1 < 1 && beta2 < 1) {
		return fmt.Errorf("optim: betas %v and %v; they must be less than 1", beta1, beta2)
	}
	return notNegative(named{"beta1", beta1}, named{"beta2", beta2})
}

// orDefault sets a learning rate that is 0; a negative one stays, as an error.
func orDefault(lr *float64, def float64) {
	if *lr == 0 {
		*lr = def
	}
}
