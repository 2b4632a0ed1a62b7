// Package data reads datasets and turns them into batches.
//
// # Overview
//
// A [Dataset] gives samples by index. A [Loader] visits them in a seeded random order, collates them into batches on
// the CPU, and prepares the next batches in the background while the current one trains:
//
//	trainSet, testSet, err := data.FashionMNIST("") // a folder, or the embedded sample
//	loader := data.NewLoader(trainSet, data.LoaderConfig{BatchSize: 128, Shuffle: true, Seed: 1})
//	for batch, err := range loader.Epoch(0) {
//		x, y := scope.To(batch.X), scope.To(batch.Y)
//		…
//	}
//
// Several workers, samplers ([NewWeightedSampler], [NewDistributedSampler]) and random changes of samples ([Loader.Transform])
// combine; failing samples end an epoch with an error that has their index, or are left out and counted. There are readers for IDX, CSV
// ([ReadCSV]), .npz ([ReadNPZ]; tensor.ReadNPY reads .npy), folders of images ([ImageFolder]) and text as token streams
// ([NewVocabulary], [NewWindows]).
//
// # Invariants
//
//   - The order of an epoch depends on the seed and the epoch's number only, not on timing or workers.
//   - Leaving the loop early stops the background work; no goroutine outlives the loop.
//   - Files are hostile until checked: sizes are compared with the file's length before memory is allocated.
//   - An error names the sample, the value and what would be accepted.
package data
