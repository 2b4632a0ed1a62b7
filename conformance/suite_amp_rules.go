package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

// ampRules are the cases of the rules of mixed precision besides the classes: scopes of autocast, gradients, weights' casts, recipes,
// diagnosis.
func ampRules() []testCase {
	type rule struct {
		name string
		run  func(x *run) error
	}
	var out []testCase
	for _, r := range []rule{
		{"autocast/restored_after_panic", (*run).autocastPanic},
		{"autocast/untouched_dtypes", (*run).autocastUntouched},
		{"autocast/backward_in_forward_dtypes", (*run).autocastBackward},
		{"cache/no_grad_trap", (*run).castCacheNoGrad},
		{"checkpoint/same_gradients", (*run).checkpointGradients},
		{"scaler/several_optimizers", (*run).scalerTwoOptimizers},
		{"scaler/accumulation_and_clipping", (*run).scalerClips},
		{"scaler/many_parameters", (*run).scalerMany},
		{"scaler/error_sequences", (*run).scalerErrors},
		{"scaler/scale_stays_finite", (*run).scalerFinite},
		{"scaler/underflow", (*run).scalerUnderflow},
		{"diagnosis/last_overflow", (*run).lastOverflow},
		{"diagnosis/trace", (*run).traceFinds},
		{"diagnosis/explain", (*run).explains},
	} {
		out = append(out, testCase{name: r.name, run: r.run})
	}
	return out
}

// autocastPanic expects that autocast ends with a panic in the forward pass.
func (x *run) autocastPanic() error {
	return x.scoped(func(s *tensor.Scope) error {
		a := s.To(tensor.Ones(tensor.CPU(), tensor.Float32, 2, 2))
		func() {
			defer func() { _ = recover() }()
			amp.Autocast(s, func() { panic("in the forward pass") })
		}()
		if d := a.MatMul(a).DType(); d != tensor.Float32 {
			return fmt.Errorf("after a panic a product of float32 is %s", d)
		}
		return nil
	})
}

// autocastUntouched expects integers, bool and float64 to stay what they are.
func (x *run) autocastUntouched() error {
	return x.scoped(func(s *tensor.Scope) error {
		dtypes := []tensor.DType{tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Bool}
		if x.dev.Info().Caps.F64 {
			dtypes = append(dtypes, tensor.Float64)
		}
		var errs error
		amp.Autocast(s, func() {
			for _, d := range dtypes {
				a := s.To(tensor.Ones(tensor.CPU(), tensor.Float32, 3, 3).Cast(d))
				if got := tensor.Cat(0, a, a).DType(); got != d {
					errs = errors.Join(errs, fmt.Errorf("cat of %s is %s", d, got))
				}
				if d == tensor.Float64 {
					if got := a.MatMul(a).Sum().DType(); got != d {
						errs = errors.Join(errs, fmt.Errorf("matmul and sum of %s are %s", d, got))
					}
				}
			}
		})
		return errs
	})
}

// autocastBackward calls Backward inside autocast for a forward pass outside of it: gradients run in float32.
func (x *run) autocastBackward() error {
	const fine = 1 + 1.0/4096 // 1 in float16 and bfloat16
	return x.scoped(func(s *tensor.Scope) error {
		w := tensor.FromFloat32s([]float32{1}, 1, 1).To(x.dev).SetRequiresGrad(true)
		defer w.Free()
		a := s.To(tensor.FromFloat32s([]float32{fine}, 1, 1))
		var err error
		amp.Autocast(s, func() {
			var loss *tensor.Tensor
			amp.Autocast(s, func() { loss = w.MatMul(a).Sum() }, amp.Enabled(false))
			err = loss.Backward()
		}, amp.DType(tensor.Float16))
		if err != nil {
			return err
		}
		g, err := w.Grad().CPU().Float64s()
		w.ZeroGrad()
		if err != nil {
			return err
		}
		return Close("gradient", g, []float64{fine}, 1e-6, 0)
	})
}

// castCacheNoGrad uses a weight under NoGrad first: its cast must not cut the graph of a later use.
func (x *run) castCacheNoGrad() error {
	w := tensor.FromFloat32s([]float32{1, 2, 3, 4}, 2, 2).To(x.dev).SetRequiresGrad(true)
	defer w.Free()
	return x.scoped(func(s *tensor.Scope) error {
		a := s.To(tensor.Ones(tensor.CPU(), tensor.Float32, 2, 2))
		var loss *tensor.Tensor
		amp.Autocast(s, func() {
			tensor.NoGrad(s, func() *tensor.Tensor { return a.MatMul(w) })
			loss = a.MatMul(w).Sum()
		})
		if err := loss.Backward(); err != nil {
			return err
		}
		if w.Grad() == nil {
			return errors.New("a weight whose cast was made under NoGrad got no gradient")
		}
		w.ZeroGrad()
		return nil
	})
}

// checkpointGradients compares the gradient of a product under autocast with the one of the same product, run again for it.
func (x *run) checkpointGradients() error {
	w := tensor.Normal(tensor.CPU(), tensor.NewGenerator(1), tensor.Float32, 0, 1, 16, 16).To(x.dev).SetRequiresGrad(true)
	defer w.Free()
	var grads [2][]float64
	for i := range grads {
		err := x.scoped(func(s *tensor.Scope) error {
			a := s.To(tensor.Normal(tensor.CPU(), tensor.NewGenerator(2), tensor.Float32, 0, 1, 8, 16)).SetRequiresGrad(true)
			f := func(in ...*tensor.Tensor) *tensor.Tensor { return in[0].MatMul(w).Tanh().MatMul(w) }
			var loss *tensor.Tensor
			amp.Autocast(s, func() {
				y := a.MulScalar(1)
				if i == 1 {
					y = tensor.Checkpoint(f, nil, y)
				} else {
					y = f(y)
				}
				loss = y.Sum()
			}, amp.DType(tensor.Float16))
			if err := loss.Backward(); err != nil {
				return err
			}
			var err error
			grads[i], err = w.Grad().CPU().Float64s()
			w.ZeroGrad()
			a.ZeroGrad()
			return err
		})
		if err != nil {
			return err
		}
	}
	if !slices.Equal(grads[0], grads[1]) {
		return errors.New("the gradient of a checkpointed function differs from that of the function")
	}
	return nil
}

// scaled runs the backward pass of factor*sum(p) with a scaler.
func (x *run) scaled(scaler *amp.GradScaler, p *tensor.Tensor, factor float64) error {
	return x.scoped(func(*tensor.Scope) error { return scaler.Scale(p.MulScalar(factor).Sum()).Backward() })
}

// scalerTwoOptimizers expects that each optimizer of one scaler skips by itself, and that the scale follows the worst.
func (x *run) scalerTwoOptimizers() error {
	p, opt := x.parameter(1)
	q, other := x.parameter(1)
	defer p.Free()
	defer q.Free()
	scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: 8})
	if err := errors.Join(x.scaled(scaler, p, 0.5), x.scaled(scaler, q, math.Inf(1))); err != nil {
		return err
	}
	first, err := scaler.Step(opt)
	second, err2 := scaler.Step(other)
	if err := errors.Join(err, err2, scaler.Update()); err != nil {
		return err
	}
	if first || !second || scaler.GetScale() != 4 {
		return fmt.Errorf("of a finite and an infinite gradient steps were skipped %t and %t, and the scale is %v, not 4", first, second, scaler.GetScale())
	}
	return nil
}

// scalerClips accumulates two gradients, clips what they are without the scale, and steps.
func (x *run) scalerClips() error {
	p, opt := x.parameter(0, 0)
	defer p.Free()
	scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1024})
	for range 2 {
		if err := x.scaled(scaler, p, 2); err != nil {
			return err
		}
	}
	if err := scaler.Unscale(opt); err != nil {
		return err
	}
	norm, err := optim.ClipGradNorm([]*tensor.Tensor{p}, 1, optim.ClipOptions{})
	if err != nil {
		return err
	}
	defer norm.Free()
	v, err := norm.Item()
	if err != nil {
		return err
	}
	if _, err := scaler.Step(opt); err != nil {
		return err
	}
	got, err := p.Detach().CPU().Float64s()
	if err != nil {
		return err
	}
	return errors.Join(Close("norm", []float64{v}, []float64{4 * math.Sqrt2}, 1e-5, 0),
		Close("parameter", got, []float64{-math.Sqrt2 / 2, -math.Sqrt2 / 2}, 1e-5, 0))
}

// scalerMany takes a step of more parameters, of several sizes, than a kernel can bind, and another where one gradient is infinite.
func (x *run) scalerMany() error {
	const n = 70
	var ps []*tensor.Tensor
	sizes := []int{1, 33, 600, 4100}
	for i := range n {
		p := tensor.Full(x.dev, tensor.Float32, float64(i), sizes[i%len(sizes)]).SetRequiresGrad(true)
		defer p.Free()
		ps = append(ps, p)
	}
	opt := optim.NewSGD(ps, optim.SGDConfig{LR: 1})
	scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: 4})
	step := func(last float64) (norm float64, skipped bool, err error) {
		for i, p := range ps {
			g := 8.0
			if i == n-1 {
				g = last
			}
			p.SetGrad(tensor.Full(x.dev, tensor.Float32, g, p.Numel()))
		}
		scaler.Scale(tensor.Scalar(1))
		if err := scaler.Unscale(opt); err != nil {
			return 0, false, err
		}
		total, err := optim.ClipGradNorm(ps, 1e6, optim.ClipOptions{})
		if err != nil {
			return 0, false, err
		}
		defer total.Free()
		if norm, err = total.Item(); err != nil {
			return 0, false, err
		}
		if skipped, err = scaler.Step(opt); err != nil {
			return 0, false, err
		}
		return norm, skipped, scaler.Update()
	}
	elements := 0
	for _, p := range ps {
		elements += p.Numel()
	}
	norm, skipped, err := step(8)
	if err != nil || skipped {
		return fmt.Errorf("skipped %t, %w", skipped, err)
	}
	if err := Close("norm", []float64{norm}, []float64{2 * math.Sqrt(float64(elements))}, 1e-4, 0); err != nil {
		return err
	}
	for range 2 { // the second finds what the first left
		if _, skipped, err = step(math.Inf(-1)); err != nil || !skipped {
			return fmt.Errorf("with an infinite gradient skipped is %t, %v", skipped, err)
		}
	}
	for i, p := range ps {
		v, err := p.Detach().CPU().Float64s()
		if err != nil {
			return err
		}
		want := make([]float64, len(v))
		for j := range want {
			want[j] = float64(i) - 2
		}
		if err := Close(fmt.Sprintf("parameter %d", i), v, want, 1e-6, 1e-6); err != nil {
			return err
		}
	}
	return nil
}

// scalerErrors calls the scaler in wrong orders.
func (x *run) scalerErrors() error {
	p, opt := x.parameter(1)
	defer p.Free()
	fresh := func() *amp.GradScaler { return amp.NewGradScaler(amp.GradScalerConfig{}) }
	step := func(g *amp.GradScaler) error { _, err := g.Step(opt); return err }
	var errs error
	expect := func(what string, got, want error) {
		if !errors.Is(got, want) {
			errs = errors.Join(errs, fmt.Errorf("%s: error %v, want %v", what, got, want))
		}
	}
	expect("Step before Scale", step(fresh()), amp.ErrNotScaled)
	expect("Update before Scale", fresh().Update(), amp.ErrNotScaled)
	g := fresh()
	g.Scale(tensor.Scalar(1))
	expect("Update without Step", g.Update(), amp.ErrNoInfRecorded)
	expect("Step without gradients", step(g), amp.ErrNoInfChecks)
	g = fresh()
	if err := x.scaled(g, p, 1); err != nil {
		return err
	}
	expect("Unscale", g.Unscale(opt), nil)
	expect("a second Unscale", g.Unscale(opt), amp.ErrAlreadyUnscaled)
	expect("Step", step(g), nil)
	expect("a second Step", step(g), amp.ErrAlreadyStepped)
	expect("Unscale after Step", g.Unscale(opt), amp.ErrUnscaleAfter)
	expect("Update", g.Update(), nil)
	return errs
}

// scalerFinite lets the scale grow in every step: it ends below float32's largest number.
func (x *run) scalerFinite() error {
	p, opt := x.parameter(0)
	defer p.Free()
	scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: math.Ldexp(1, 125), GrowthInterval: 1})
	for range 5 {
		opt.ZeroGrad()
		if err := x.scaled(scaler, p, 0); err != nil {
			return err
		}
		if _, err := scaler.Step(opt); err != nil {
			return err
		}
		if err := scaler.Update(); err != nil {
			return err
		}
	}
	if got, want := scaler.GetScale(), math.Ldexp(1, 127); got != want {
		return fmt.Errorf("the scale is %v, want %v", got, want)
	}
	return nil
}

// scalerUnderflow has a gradient that is zero in float16, and survives with the scale.
func (x *run) scalerUnderflow() error {
	p, opt := x.parameter(1)
	defer p.Free()
	const factor = 1e-9
	back := func(scaler *amp.GradScaler) (float64, error) {
		opt.ZeroGrad()
		err := x.scoped(func(*tensor.Scope) error {
			return scaler.Scale(p.Cast(tensor.Float16).Cast(tensor.Float32).MulScalar(factor).Sum()).Backward()
		})
		if err != nil {
			return 0, err
		}
		if err := scaler.Unscale(opt); err != nil {
			return 0, err
		}
		v, err := p.Grad().CPU().Float64s()
		if err != nil {
			return 0, err
		}
		return v[0], nil
	}
	without, err := back(amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1}))
	if err != nil {
		return err
	}
	with, err := back(amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1 << 20}))
	if err != nil {
		return err
	}
	if without != 0 || math.Abs(with-factor) > 1e-3*factor {
		return fmt.Errorf("a gradient of %v through float16 is %v without a scale, which must be 0, and %v with one", factor, without, with)
	}
	return nil
}

// lastOverflow names the parameter whose gradient overflowed.
func (x *run) lastOverflow() error {
	p, opt := x.parameter(1, 2)
	defer p.Free()
	scaler := amp.NewGradScaler(amp.GradScalerConfig{})
	scaler.NameParameter(p, "layer.weight")
	if err := x.scaled(scaler, p, math.Inf(1)); err != nil {
		return err
	}
	if skipped, err := scaler.Step(opt); err != nil || !skipped {
		return fmt.Errorf("skipped %t, %v", skipped, err)
	}
	found, err := scaler.LastOverflow()
	if err != nil {
		return err
	}
	if len(found) != 1 || found[0].Name != "layer.weight" || found[0].Infs != 2 {
		return fmt.Errorf("the overflow of layer.weight is reported as %+v", found)
	}
	return nil
}

// traceFinds names the operator that made an infinity.
func (x *run) traceFinds() error {
	return x.scoped(func(s *tensor.Scope) error {
		a := s.To(tensor.FromFloat32s([]float32{1, 300}, 2)).Cast(tensor.Float16)
		leave := func() {}
		found := amp.Trace(s, func() {
			leave = s.EnterModule(func() string { return "blocks.3" })
			a.Square().AddScalar(1)
		})
		leave()
		if len(found) != 1 || found[0].Op != "square" || found[0].Infs != 1 || found[0].Module != "blocks.3" {
			return fmt.Errorf("300 squared in float16 is reported as %v", found)
		}
		return nil
	})
}

// explains lists the dtype and the casts of a product.
func (x *run) explains() error {
	a := tensor.Ones(x.dev, tensor.Float32, 4, 4)
	defer a.Free()
	e, err := amp.Explain(func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x).Exp() }, a, amp.DType(tensor.Float16))
	if err != nil {
		return err
	}
	if len(e.Rows) != 2 || e.Rows[0].Result != tensor.Float16 || len(e.Rows[0].Casts) == 0 || e.Rows[1].Result != tensor.Float32 {
		return fmt.Errorf("a product and exp are explained as\n%s", e)
	}
	return nil
}
