package optim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/anygpu/anygpu/tensor"
)

// StateDict is what an optimizer remembers between steps, with PyTorch's names: for each parameter, by index over all groups,
// the number of steps and the state arrays ("exp_avg", "momentum_buffer", …), and each group's configuration.
// Arrays belong to nobody: Free gives their memory back.
type StateDict struct {
	Optimizer string            // "adam", "sgd", …
	Groups    []json.RawMessage // each group's configuration, with its current learning rate
	Sizes     []int             // the number of parameters of each group
	Steps     []int             // of each parameter; 0 where it has no state
	Arrays    map[string]*tensor.Tensor
}

// Free gives the memory of the arrays back.
func (s *StateDict) Free() {
	for _, t := range s.Arrays {
		t.Free()
	}
}

func arrayKey(param int, name string) string { return strconv.Itoa(param) + "." + name }

// StateDict returns copies of the optimizer's state on the CPU. It waits for pending steps.
func (c *core[C]) StateDict() (*StateDict, error) {
	if c.err != nil {
		return nil, c.err
	}
	s := &StateDict{Optimizer: c.rule.name, Arrays: map[string]*tensor.Tensor{}}
	for i := range c.groups {
		g := &c.groups[i]
		cfg, err := json.Marshal(g.cfg)
		if err != nil {
			return nil, fmt.Errorf("optim: configuration of group %d: %w", i, err)
		}
		s.Groups, s.Sizes = append(s.Groups, cfg), append(s.Sizes, g.end-g.first)
		names := c.rule.arrays(&g.cfg)
		for p := g.first; p < g.end; p++ {
			st := c.states[p]
			s.Steps = append(s.Steps, st.steps)
			for j, t := range st.arrays {
				u := t.Detach()
				if u.Device() == tensor.CPU() {
					u = replace(u, u.Clone())
				} else {
					u = replace(u, u.CPU())
				}
				if err := u.Err(); err != nil {
					s.Free()
					return nil, fmt.Errorf("optim: state of parameter %d: %w", p, err)
				}
				s.Arrays[arrayKey(p, names[j])] = u
			}
		}
	}
	return s, nil
}

func replace(old, now *tensor.Tensor) *tensor.Tensor {
	old.Free()
	return now
}

// LoadStateDict takes over a state from StateDict of an optimizer of the same kind, whose groups have as many parameters. The
// groups' configurations are replaced with the state's. A state that does not fit is an error and changes nothing.
func (c *core[C]) LoadStateDict(s *StateDict) error {
	if c.err != nil {
		return c.err
	}
	if s == nil || s.Optimizer != c.rule.name {
		name := "nothing"
		if s != nil {
			name = strconv.Quote(s.Optimizer)
		}
		return fmt.Errorf("optim: load: the state is of %s, not of %q", name, c.rule.name)
	}
	groups := slices.Clone(c.groups)
	if len(s.Groups) != len(groups) || len(s.Sizes) != len(groups) || len(s.Steps) != len(c.params) {
		return fmt.Errorf("optim: load: the state has %d groups and %d parameters, the optimizer %d and %d", len(s.Groups), len(s.Steps), len(groups), len(c.params))
	}
	states := make([]paramState, len(c.params))
	discard := func() {
		for _, st := range states {
			for _, t := range st.arrays {
				t.Free()
			}
		}
	}
	used := 0
	for i := range groups {
		g := &groups[i]
		if s.Sizes[i] != g.end-g.first {
			discard()
			return fmt.Errorf("optim: load: group %d of the state has %d parameters, the optimizer's %d", i, s.Sizes[i], g.end-g.first)
		}
		var cfg C
		if err := json.Unmarshal(s.Groups[i], &cfg); err != nil {
			discard()
			return fmt.Errorf("optim: load: configuration of group %d: %w", i, err)
		}
		// The saved values are complete: zero is zero, not the default.
		if err := c.rule.valid(&cfg); err != nil {
			discard()
			return fmt.Errorf("optim: load: group %d: %w", i, err)
		}
		g.cfg = cfg
		names := c.rule.arrays(&cfg)
		for p := g.first; p < g.end; p++ {
			states[p].steps = s.Steps[p]
			if s.Steps[p] < 0 {
				discard()
				return fmt.Errorf("optim: load: parameter %d has %d steps", p, s.Steps[p])
			}
			if s.Steps[p] == 0 {
				continue
			}
			for _, name := range names {
				t, err := c.loadArray(p, s.Arrays[arrayKey(p, name)])
				if err != nil {
					discard()
					return fmt.Errorf("optim: load: %s of parameter %d: %w", name, p, err)
				}
				used++
				states[p].arrays = append(states[p].arrays, t)
			}
		}
	}
	if used != len(s.Arrays) {
		discard()
		return fmt.Errorf("optim: load: the state has %d arrays, of which the optimizer needs %d", len(s.Arrays), used)
	}
	c.Free()
	c.groups, c.states = groups, states
	return nil
}

// loadArray copies a state array to its parameter's device.
func (c *core[C]) loadArray(param int, t *tensor.Tensor) (*tensor.Tensor, error) {
	p := c.params[param]
	switch {
	case t == nil:
		return nil, fmt.Errorf("it is missing")
	case !slices.Equal(t.Shape(), p.Shape()):
		return nil, fmt.Errorf("it has shape %v, the parameter %v", t.Shape(), p.Shape())
	}
	u := tensor.Zeros(p.Device(), stateDType(p), p.Shape()...)
	if err := u.CopyFrom(t); err != nil {
		return nil, err
	}
	return u, nil
}
