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
// Layers with masks or states have a method besides Forward: [MultiheadAttention.Attend], [TransformerEncoderLayer.Encode], [LSTM.Run] and
// [GRU.Run]. As in PyTorch their sequences are [positions, n, features], unless BatchFirst is set; [DecoderBlock] and [Decoder] have
// the batch first always. A loss is a function, or with options a [Criterion].
//
// # Invariants
//
//   - Parameters keep their identity when the model moves, so optimizers built before go on working.
//   - Names, layouts and initial distributions are PyTorch's.
//   - Initial values and dropout masks come from a generator: tensor's default one, which tensor.ManualSeed seeds, or
//     one given with [WithGenerator]. A seed gives the same values on every device.
package nn
