package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/anygpu/anygpu/tensor"
)

// secondCase holds the gradient of a gradient, in float64 on the CPU, against central differences of the gradient. Gradients are
// made of operators, so that what there is to be wrong is which: a gradient that is computed from values which do not carry their
// history is right itself and has a wrong gradient. That is the same on every device.
func secondCase(op *tensor.OpInfo, sample string, in func(rng *rand.Rand) ([]tensor.Array, tensor.Attrs)) testCase {
	return testCase{name: op.Name + "/float64/second-" + sample, op: op.Name, dtype: "float64", run: func(x *run) error {
		rng := x.rng()
		arrays, attrs := in(rng)
		x.bound = "relative 1e-5"
		return x.secondDerivative(op, arrays, attrs, rng)
	}}
}

// secondDerivative compares directional derivatives of a weighted sum of the gradients.
func (x *run) secondDerivative(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, rng *rand.Rand) error {
	var weights [][]float64
	for i, a := range in {
		if flows(op, in, i) {
			w := make([]float64, len(a.Data))
			for k := range w {
				w[k] = rng.NormFloat64()
			}
			weights = append(weights, w)
		}
	}
	seed := rng.Uint64()
	first := func(in []tensor.Array) (float64, error) {
		_, _, grads, err := backward(tensor.CPU(), tensor.Float64, op, in, attrs, rand.New(rand.NewPCG(seed, 0)))
		sum := 0.0
		for i, g := range grads {
			for k, v := range g {
				sum += v * weights[i][k]
			}
		}
		return sum, err
	}
	s0, err := first(in)
	if err != nil {
		return err
	}
	second, err := gradientOfGradient(op, in, attrs, weights, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		return err
	}
	at := 0
	for i, a := range in {
		if !flows(op, in, i) {
			continue
		}
		g := second[at]
		at++
		dir := make([]float64, len(a.Data))
		along, size := 0.0, 0.0
		for k := range dir {
			dir[k] = rng.NormFloat64()
			along += g[k] * dir[k]
			size += max(g[k]*dir[k], -g[k]*dir[k])
		}
		moved := func(h float64) (float64, error) {
			now := slices.Clone(in)
			now[i].Data = slices.Clone(a.Data)
			for k := range dir {
				now[i].Data[k] += h * dir[k]
			}
			return first(now)
		}
		const h = 1e-6
		up, err := moved(h)
		if err != nil {
			return err
		}
		down, err := moved(-h)
		if err != nil {
			return err
		}
		if err := differenceError("the gradient for "+operandName(op, i), along, s0, up, down, h, size); err != nil {
			return err
		}
	}
	return nil
}

// gradientOfGradient returns the gradients, for the operands, of the weighted sum of the operands' gradients, in float64 on the CPU.
func gradientOfGradient(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, weights [][]float64, rng *rand.Rand) (second [][]float64, err error) {
	s := tensor.NewScope(tensor.CPU())
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	ts, wrt := leaves(s, tensor.Float64, op, in)
	from, ups, _, err := differentiable(s, op.Call(ts, attrs), rng)
	if err != nil {
		return nil, err
	}
	// The operands themselves, with weight 0: a gradient that does not depend on an operand has the derivative 0.
	var outs, w []*tensor.Tensor
	for _, t := range wrt {
		outs = append(outs, t.MulScalar(1))
		w = append(w, tensor.Zeros(s.Device(), tensor.Float64, t.Shape()...))
	}
	if len(from) > 0 {
		gs, err := tensor.Grad(from, wrt, ups...)
		if err != nil {
			return nil, err
		}
		for i, g := range gs {
			if g.RequiresGrad() {
				outs = append(outs, g)
				w = append(w, place(s, tensor.Array{Shape: g.Shape(), Data: weights[i], DType: tensor.Float64}, contiguous))
			}
		}
	}
	hs, err := tensor.Grad(outs, wrt, w...)
	if err != nil {
		return nil, fmt.Errorf("the gradient of the gradient: %w", err)
	}
	for _, h := range hs {
		v, err := h.Detach().CPU().Float64s()
		if err != nil {
			return nil, err
		}
		second = append(second, v)
	}
	return second, nil
}
