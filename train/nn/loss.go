package nn

import "github.com/anygpu/anygpu/tensor"

// CrossEntropy returns the mean cross entropy of logits [n, classes] (or [n, classes, …]) and class indices
// [n] (or [n, …]), a tensor of no dimensions. For weights, smoothing or other reductions see tensor.CrossEntropy.
func CrossEntropy(logits, target *tensor.Tensor) *tensor.Tensor {
	return tensor.CrossEntropy(logits, target, tensor.CrossEntropyOptions{})
}
