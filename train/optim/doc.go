// Package optim has the optimizers.
//
// # Overview
//
// An optimizer holds a model's parameters and updates them from their gradients, in place, as one fused kernel over all
// of them (several where a device binds fewer buffers than the parameters need):
//
//	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 1e-3})
//	…
//	opt.ZeroGrad()
//	loss.Backward()
//	opt.Step()
//
// Groups of parameters have configurations of their own, a [Scheduler] or a [ReduceOnPlateau] moves the learning rates,
// [ClipGradNorm] limits the gradients before the step, and an [EMA] averages the weights after it:
//
//	opt := optim.NewAdamWGroups(
//		optim.ParamGroup[optim.AdamConfig]{Params: weights, Config: optim.AdamConfig{LR: 3e-4, WeightDecay: 0.1}},
//		optim.ParamGroup[optim.AdamConfig]{Params: biases, Config: optim.AdamConfig{LR: 3e-4, WeightDecay: -1}}) // none
//	sched := optim.NewScheduler(opt, optim.Warmup(100, 0.01, optim.Cosine(900, 0)))
//
// # Invariants
//
//   - Formulas, defaults and their order of evaluation are PyTorch's.
//   - Parameters without a gradient are left alone, and so is their state.
//   - State is made at the first step, on the parameter's device, and follows the parameter when the model moves.
//   - A mistake in the configuration is the error of every Step.
package optim
