// Package checkpoint saves and loads weights and whole training runs.
//
// # Overview
//
// [SaveFile] and [LoadFile] write and read safetensors files, the format in which PyTorch's state dicts travel:
//
//	err := checkpoint.SaveFile("model.safetensors", model.StateDict(), nil)
//	…
//	weights, _, err := checkpoint.LoadFile("model.safetensors")
//	err = model.LoadStateDict(weights)
//
// A [Keeper] saves training runs in a folder, and keeps the last few and the best:
//
//	run := &checkpoint.Run{Model: model, Optimizer: opt, Parts: map[string]checkpoint.Stateful{"schedule": checkpoint.Of(sched)}}
//	keeper := &checkpoint.Keeper{Dir: "runs/1", Best: "accuracy", Max: true}
//	run.Position.Step = step
//	path, err := keeper.Save(run)
//
// A run that was loaded goes on with the same bits as if it had not stopped, on the same device.
//
// # Invariants
//
//   - A file is replaced whole or not at all: temporary file, sync, rename, sync of the folder.
//   - A checkpoint of several files exists when its JSON file does, which is written last and removed first and has the
//     others' hashes. No moment to stop a process leaves one that cannot be read.
//   - Files are hostile until checked: sizes are compared before memory is taken, and errors name the tensor.
//   - Loading is strict: what is missing, unexpected or of another shape is named, and nothing is loaded.
package checkpoint
