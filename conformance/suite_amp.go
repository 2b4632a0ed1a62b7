package conformance

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

// ampCases hold mixed precision against torch.amp's rules.
func ampCases(e *env) ([]testCase, error) {
	if e.opts.Golden != nil {
		return nil, nil
	}
	half := []tensor.DType{tensor.Float16, tensor.BFloat16}
	var out []testCase
	for _, d := range half {
		out = append(out, testCase{name: "classes/" + d.String(), dtype: d.String(), run: func(x *run) error { return x.autocastClasses(d) }},
			testCase{name: "matmul/" + d.String(), op: "matmul", dtype: d.String(), run: func(x *run) error { return x.autocastMatMul(d) }})
	}
	return append(append(out, ampRules()...),
		testCase{name: "scaler/overflow_skips", run: func(x *run) error { return x.scalerOverflow() }},
		testCase{name: "scaler/unscales", run: func(x *run) error { return x.scalerUnscales() }},
		testCase{name: "cache/weights_cast_once", run: func(x *run) error { return x.castCache() }}), nil
}

// autocastClasses runs one operator of each class under autocast and checks the dtypes of the results.
func (x *run) autocastClasses(d tensor.DType) error {
	return x.scoped(func(s *tensor.Scope) error {
		a := s.To(tensor.Normal(tensor.CPU(), tensor.NewGenerator(1), tensor.Float32, 0, 1, 4, 4))
		low := a.Cast(d)
		var errs error
		check := func(what string, t *tensor.Tensor, want tensor.DType) {
			if errs != nil {
				return
			}
			if err := t.Err(); err != nil {
				errs = err
			} else if t.DType() != want {
				errs = fmt.Errorf("%s under autocast to %s is %s, want %s", what, d, t.DType(), want)
			}
		}
		amp.Autocast(s, func() {
			check("matmul of float32", a.MatMul(a), d)
			check("linear of float32", tensor.Linear(a, a, nil), d)
			check("exp of "+d.String(), low.Exp(), tensor.Float32)
			check("softmax of "+d.String(), low.Softmax(1), tensor.Float32)
			check("sum of "+d.String(), low.Sum(), tensor.Float32)
			check("cat of both", tensor.Cat(0, a, low), tensor.Float32)
			check("relu of "+d.String(), low.ReLU(), d)
			check("add of both", a.Add(low), tensor.Float32)
			amp.Autocast(s, func() { check("matmul with autocast off", a.MatMul(a), tensor.Float32) }, amp.Enabled(false))
			check("matmul after a nested call", a.MatMul(a), d)
		}, amp.DType(d))
		check("matmul after autocast", a.MatMul(a), tensor.Float32)
		return errs
	})
}

// autocastMatMul holds a product under autocast, with its gradient, against the one of rounded operands in float64.
func (x *run) autocastMatMul(d tensor.DType) error {
	gen := tensor.NewGenerator(x.opts.Seed + 3)
	a := tensor.Normal(tensor.CPU(), gen, tensor.Float32, 0, 1, 9, 33)
	b := tensor.Normal(tensor.CPU(), gen, tensor.Float32, 0, 1, 33, 7)
	want, err := a.Cast(d).Cast(tensor.Float64).MatMul(b.Cast(d).Cast(tensor.Float64)).Float64s()
	if err != nil {
		return err
	}
	return x.scoped(func(s *tensor.Scope) error {
		da := s.To(a).SetRequiresGrad(true)
		db := s.To(b)
		var y *tensor.Tensor
		amp.Autocast(s, func() { y = da.MatMul(db) }, amp.DType(d))
		got, err := y.Detach().CPU().Float64s()
		if err != nil {
			return err
		}
		eps := formats[d].eps
		if err := Close("product", got, want, eps, eps/8); err != nil {
			return err
		}
		if err := y.Sum().Backward(); err != nil {
			return err
		}
		if g := da.Grad(); g == nil || g.DType() != tensor.Float32 {
			return fmt.Errorf("the gradient of a float32 leaf is %v", g)
		}
		return nil
	})
}

// parameter makes a leaf on the device with an SGD optimizer of rate 1.
func (x *run) parameter(values ...float32) (*tensor.Tensor, *optim.SGD) {
	p := tensor.FromFloat32s(values, len(values)).To(x.dev).SetRequiresGrad(true)
	return p, optim.NewSGD([]*tensor.Tensor{p}, optim.SGDConfig{LR: 1})
}

// scalerOverflow makes a gradient infinite and expects that the step is skipped and the scale halved, and that the next
// step runs.
func (x *run) scalerOverflow() error {
	p, opt := x.parameter(1, 2)
	defer p.Free()
	scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1024, GrowthInterval: 1})
	step := func(factor float64) (skipped bool, err error) {
		err = x.scoped(func(s *tensor.Scope) error {
			loss := p.MulScalar(factor).Sum()
			opt.ZeroGrad()
			if err := scaler.Scale(loss.MulScalar(1)).Backward(); err != nil {
				return err
			}
			if skipped, err = scaler.Step(opt); err != nil {
				return err
			}
			return scaler.Update()
		})
		return skipped, err
	}
	for i, c := range []struct {
		factor  float64
		skipped bool
		scale   float64
		first   float64
	}{{3e38, true, 512, 1}, {0.5, false, 1024, 0.5}, {math.Inf(1), true, 512, 0.5}, {-1, false, 1024, 1.5}} {
		skipped, err := step(c.factor)
		if err != nil {
			return err
		}
		v, err := p.Detach().CPU().Float64s()
		if err != nil {
			return err
		}
		if skipped != c.skipped || scaler.GetScale() != c.scale || v[0] != c.first {
			return fmt.Errorf("step %d with gradient %v: skipped %t, scale %v, parameter %v; want %t, %v, %v", i, c.factor, skipped, scaler.GetScale(), v[0], c.skipped, c.scale, c.first)
		}
	}
	return nil
}

// scalerUnscales expects that a step with the scaler moves parameters as one without.
func (x *run) scalerUnscales() error {
	p, opt := x.parameter(1, -2, 3)
	defer p.Free()
	scaler := amp.NewGradScaler(amp.GradScalerConfig{})
	err := x.scoped(func(s *tensor.Scope) error {
		if err := scaler.Scale(p.Square().Sum().MulScalar(0.25)).Backward(); err != nil {
			return err
		}
		if err := scaler.Unscale(opt); err != nil {
			return err
		}
		g, err := p.Grad().CPU().Float64s()
		if err != nil {
			return err
		}
		if err := Close("unscaled gradient", g, []float64{0.5, -1, 1.5}, 0, 0); err != nil {
			return err
		}
		_, err = scaler.Step(opt)
		return err
	})
	if err != nil {
		return err
	}
	v, err := p.Detach().CPU().Float64s()
	if err != nil {
		return err
	}
	return Close("parameter", v, []float64{0.5, -1, 1.5}, 0, 0)
}

// castCache counts kernels: a weight used twice under autocast is cast once, and again where the cache is off.
func (x *run) castCache() error {
	w := tensor.Normal(tensor.CPU(), tensor.NewGenerator(1), tensor.Float32, 0, 1, 8, 8).To(x.dev).SetRequiresGrad(true)
	defer w.Free()
	count := func(on bool) (n uint64, err error) {
		err = x.scoped(func(s *tensor.Scope) error {
			a := s.To(tensor.Ones(tensor.CPU(), tensor.Float16, 4, 8))
			if err := tensor.Synchronize(x.dev); err != nil {
				return err
			}
			before := tensor.Launches(x.dev).Nodes
			var y *tensor.Tensor
			amp.Autocast(s, func() { y = a.MatMul(w).MatMul(w).MatMul(w) }, amp.DType(tensor.Float16), amp.CacheWeights(on))
			if err := y.Err(); err != nil {
				return err
			}
			n = tensor.Launches(x.dev).Nodes - before
			return tensor.Synchronize(x.dev)
		})
		return n, err
	}
	with, err := count(true)
	if err != nil {
		return err
	}
	without, err := count(false)
	if err != nil {
		return err
	}
	if without != with+2 {
		return fmt.Errorf("three uses of a weight take %d operators with the cache and %d without; two more were expected", with, without)
	}
	return nil
}
