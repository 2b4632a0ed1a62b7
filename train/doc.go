// Package train has the ordinary training loop as a library.
//
// # Overview
//
// A [Loop] goes through the epochs of a loader, steps an optimizer, evaluates, keeps checkpoints and stops early:
//
//	loop := &train.Loop[data.Batch]{
//		Model: model, Optimizer: opt, Device: dev, Data: loader, Epochs: 10,
//		Forward: func(s *tensor.Scope, b data.Batch) (output, target *tensor.Tensor) {
//			return model.Forward(s.To(b.X)), s.To(b.Y)
//		},
//		Loss:       nn.CrossEntropy,
//		Validation: testLoader,
//		Metrics:    []train.Metric{train.Accuracy()},
//		ClipNorm:   1,
//		Keeper:     &checkpoint.Keeper{Dir: "runs/1", Best: "accuracy", Max: true},
//		Resume:     true,
//	}
//	history, err := loop.Run(ctx)
//
// Whoever wants another loop writes it: this one uses nothing but the public packages. amp.ForLoop makes its [Precision] of a
// gradient scaler. Observers draw bars (train/progress), write a CSV log ([NewCSVLog]), TensorBoard's
// event files (train/tensorboard) or curves (train/curves).
//
// # Invariants
//
//   - A run that was interrupted and resumed gives the same bits as one that was not, on the same device.
//   - Cancelling the context ends the run after the current optimizer step, with a checkpoint where there is a Keeper.
//   - The loop reads losses in groups, so that it does not wait for the device at every step.
//   - train and amp do not import one another.
package train
