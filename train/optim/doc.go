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
// # Invariants
//
//   - Formulas, defaults and their order of evaluation are PyTorch's.
//   - Parameters without a gradient are left alone, and so is their state.
//   - State is made at the first step, on the parameter's device, and follows the parameter when the model moves.
//   - A mistake in the configuration is the error of every Step.
package optim
