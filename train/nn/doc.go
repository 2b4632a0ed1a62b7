// Package nn has the building blocks of models.
//
// # Overview
//
// A [Module] has a Forward method and embeds [Base], which keeps its parameters, buffers and children. Models are made
// on the CPU and moved with To, in place:
//
//	model := nn.NewSequential(nn.NewFlatten(), nn.NewLinear(784, 128), nn.NewReLU(), nn.NewLinear(128, 10))
//	model.To(dev)
//	loss := nn.CrossEntropy(model.Forward(x), y)
//
// # Invariants
//
//   - Parameters keep their identity when the model moves, so optimizers built before go on working.
//   - Names, layouts and initial distributions are PyTorch's.
//   - Initial values and dropout masks come from a generator: tensor's default one, which tensor.ManualSeed seeds, or
//     one given with [WithGenerator]. A seed gives the same values on every device.
package nn
