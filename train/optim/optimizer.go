package optim

import (
	"fmt"

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
	// Parameters returns the parameters.
	Parameters() []*tensor.Tensor
	// SetLR changes the learning rate of later steps.
	SetLR(lr float64)
	// LR returns the learning rate.
	LR() float64
}

// base is what all optimizers share: parameters, and state arrays of each parameter by index.
type base struct {
	params []*tensor.Tensor
	lr     float64
	err    error // of the configuration
	states []paramState
}

// paramState is the state of one parameter.
type paramState struct {
	steps  int
	arrays []*tensor.Tensor // float32, of the parameter's shape
}

func newBase(params []*tensor.Tensor, lr float64) base {
	b := base{params: params, lr: lr, states: make([]paramState, len(params))}
	seen := map[*tensor.Tensor]int{}
	for i, p := range params {
		if j, dup := seen[p]; dup {
			b.fail(fmt.Errorf("optim: parameters %d and %d are the same tensor", j, i))
		}
		seen[p] = i
		if !p.IsLeaf() {
			b.fail(fmt.Errorf("optim: parameter %d (%v) is not a leaf: only tensors that were not computed can be optimized", i, p))
		}
	}
	if len(params) == 0 {
		b.fail(fmt.Errorf("optim: the list of parameters is empty"))
	}
	if !(lr >= 0) {
		b.fail(fmt.Errorf("optim: learning rate %v; it must not be negative", lr))
	}
	return b
}

func (b *base) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Parameters returns the parameters.
func (b *base) Parameters() []*tensor.Tensor { return b.params }

// ZeroGrad drops the gradients.
func (b *base) ZeroGrad() {
	for _, p := range b.params {
		p.ZeroGrad()
	}
}

// SetLR changes the learning rate of later steps.
func (b *base) SetLR(lr float64) { b.lr = lr }

// LR returns the learning rate.
func (b *base) LR() float64 { return b.lr }

// Free gives the state's memory back.
func (b *base) Free() {
	for i := range b.states {
		for _, t := range b.states[i].arrays {
			t.Free()
		}
		b.states[i] = paramState{}
	}
}

// group is a set of parameters that take the same step: equal step count, device and dtype.
type group struct {
	steps   int // including this one
	tensors [][]*tensor.Tensor
}

type groupKey struct {
	steps  int
	device any
	dtype  tensor.DType
}

// collect gathers the parameters that have gradients, with n state arrays each, made or moved as needed, in groups in
// order of first appearance. Each row is parameter, gradient, state arrays.
func (b *base) collect(n int) ([]group, error) {
	if b.err != nil {
		return nil, b.err
	}
	var groups []group
	index := map[groupKey]int{}
	for i, p := range b.params {
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
		st := &b.states[i]
		for len(st.arrays) < n {
			st.arrays = append(st.arrays, tensor.Zeros(p.Device(), tensor.Float32, p.Shape()...))
		}
		row := []*tensor.Tensor{p, grad}
		for _, t := range st.arrays {
			if t.Device() != p.Device() {
				if err := t.MoveTo(p.Device()); err != nil {
					return nil, fmt.Errorf("optim: state of parameter %d: %w", i, err)
				}
			}
			row = append(row, t)
		}
		st.steps++
		key := groupKey{st.steps, p.Device(), p.DType()}
		g, ok := index[key]
		if !ok {
			g = len(groups)
			index[key] = g
			groups = append(groups, group{steps: st.steps})
		}
		groups[g].tensors = append(groups[g].tensors, row)
	}
	return groups, nil
}

// access says what an optimizer's kernel does with each array of a row.
func access(states int) []ir.Access {
	a := []ir.Access{ir.ReadWrite, ir.Read}
	for range states {
		a = append(a, ir.ReadWrite)
	}
	return a
}

func float32s(v ...float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}
