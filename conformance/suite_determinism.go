package conformance

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// determinismCases run the same work twice, with other work in between, and compare bits.
func determinismCases(e *env) ([]testCase, error) {
	if e.opts.Golden != nil {
		return nil, nil
	}
	input := func(s *tensor.Scope, seed uint64, shape ...int) *tensor.Tensor {
		return s.To(tensor.Normal(tensor.CPU(), tensor.NewGenerator(seed), tensor.Float32, 0, 1, shape...))
	}
	works := []struct {
		name string
		op   string
		f    func(s *tensor.Scope) *tensor.Tensor
	}{
		{"sum_all", "sum", func(s *tensor.Scope) *tensor.Tensor { return input(s, 1, 50_021).Sum() }},
		{"sum_rows", "sum", func(s *tensor.Scope) *tensor.Tensor { return input(s, 1, 300, 70).Sum(0) }},
		{"softmax", "softmax", func(s *tensor.Scope) *tensor.Tensor { return input(s, 2, 40, 131).Softmax(1) }},
		{"matmul", "matmul", func(s *tensor.Scope) *tensor.Tensor { return input(s, 3, 65, 130).MatMul(input(s, 4, 130, 33)) }},
		{"matmul_float16", "matmul", func(s *tensor.Scope) *tensor.Tensor {
			return input(s, 3, 65, 130).Cast(tensor.Float16).MatMul(input(s, 4, 130, 33).Cast(tensor.Float16))
		}},
		{"normal", "normal", func(s *tensor.Scope) *tensor.Tensor {
			return s.To(tensor.Normal(s.Device(), tensor.NewGenerator(5), tensor.Float32, 0, 1, 5000))
		}},
		{"fanout", "add", func(s *tensor.Scope) *tensor.Tensor {
			x := input(s, 6, 100, 50)
			return x.Tanh().Add(x.Mul(x.SumKeep(1))).Exp().Mean(0)
		}},
	}
	var out []testCase
	for _, w := range works {
		out = append(out, testCase{name: w.name, op: w.op, run: func(x *run) error {
			return x.twice(func() ([]float64, error) {
				var v []float64
				err := x.scoped(func(s *tensor.Scope) (err error) {
					v, err = w.f(s).CPU().Float64s()
					return err
				})
				return v, err
			})
		}})
	}
	out = append(out, testCase{name: "training", run: func(x *run) error { return x.twice(x.trainBriefly) }})
	return out, nil
}

// twice runs f, unrelated work, and f again, and compares bits.
func (x *run) twice(f func() ([]float64, error)) error {
	first, err := f()
	if err != nil {
		return err
	}
	err = x.scoped(func(s *tensor.Scope) error {
		_, err := s.Full(tensor.Float32, 2, 777).Exp().Sum().Item()
		return err
	})
	if err != nil {
		return err
	}
	second, err := f()
	if err != nil {
		return err
	}
	for i := range first {
		if math.Float64bits(first[i]) != math.Float64bits(second[i]) {
			return fmt.Errorf("element %d is %v at first and %v on a second run", i, first[i], second[i])
		}
	}
	return nil
}

// trainBriefly trains a small model for five steps and returns losses and parameters.
func (x *run) trainBriefly() (out []float64, err error) {
	gen := nn.WithGenerator(tensor.NewGenerator(9))
	model := nn.NewSequential(nn.NewLinear(20, 16, gen), nn.NewReLU(), nn.NewDropout(0.2, gen), nn.NewLinear(16, 4, gen))
	defer model.Free()
	if err := model.To(x.dev); err != nil {
		return nil, err
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 1e-2})
	defer opt.Free()
	for step := range 5 {
		err := x.scoped(func(s *tensor.Scope) error {
			in := s.To(tensor.Normal(tensor.CPU(), tensor.NewGenerator(uint64(step)), tensor.Float32, 0, 1, 32, 20))
			loss := model.Forward(in).Square().Mean()
			opt.ZeroGrad()
			if err := loss.Backward(); err != nil {
				return err
			}
			if err := opt.Step(); err != nil {
				return err
			}
			v, err := loss.Item()
			out = append(out, v)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, p := range model.Parameters() {
		v, err := p.Detach().CPU().Float64s()
		if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
	return out, nil
}
