// Package amp is mixed precision with the semantics of torch.amp: autocast and dynamic loss scaling.
//
// # Overview
//
// [Autocast] runs the forward pass with matrix products in float16 (or bfloat16) and numerically delicate operators in
// float32. Small gradients would underflow in float16, so a [GradScaler] multiplies the loss by a large scale, divides
// the gradients by it before the optimizer's step, skips the step if one is not finite, and adapts the scale:
//
//	scaler := amp.NewGradScaler(amp.GradScalerConfig{})
//	…
//	amp.Autocast(s, func() { loss = nn.CrossEntropy(model.Forward(x), y) })
//	opt.ZeroGrad()
//	scaler.Scale(loss).Backward()
//	scaler.Step(opt)
//	scaler.Update()
//
// To see what happens, [Explain] lists what each operator of a forward pass ran in and why, [GradScaler.LastOverflow] names the parameters
// that made a step skip, and [Trace] the operators. docs/mixed-precision.md has the reasons, recipes and errors.
//
// # Invariants
//
//   - Nothing becomes float16 or bfloat16 outside Autocast, and float64 and integers never do. Products accumulate in float32.
//   - Parameters, their gradients and optimizer states stay float32.
//   - Gradients run in the dtypes of the forward operators, whether Backward is called inside Autocast or outside.
//   - A gradient is tested for infinities and NaN by its bits, on its device; one number is read back in each Step.
//   - Errors do not get lost where a result is ignored: they also become the error of the loss's scope.
package amp
