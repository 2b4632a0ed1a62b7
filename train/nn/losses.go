package nn

import "github.com/anygpu/anygpu/tensor"

// This file has the losses. Each is a function of an output and its target that returns the mean, PyTorch's default, as a tensor of
// no dimensions; and a constructor of a [Criterion] where there are options.

// NLLLoss returns the mean negative log likelihood of log probabilities [n, classes] (or [n, classes, …]) and class indices [n] (or [n, …]).
func NLLLoss(logp, target *tensor.Tensor) *tensor.Tensor {
	return tensor.NLLLoss(logp, target, tensor.CrossEntropyOptions{})
}

// MSELoss returns the mean of (output - target)^2.
func MSELoss(output, target *tensor.Tensor) *tensor.Tensor {
	return tensor.MSELoss(output, target, tensor.ReductionMean)
}

// L1Loss returns the mean of |output - target|.
func L1Loss(output, target *tensor.Tensor) *tensor.Tensor {
	return tensor.L1Loss(output, target, tensor.ReductionMean)
}

// SmoothL1Loss returns the mean of d^2/2 where |d| < 1, else |d| - 1/2, with d = output - target.
func SmoothL1Loss(output, target *tensor.Tensor) *tensor.Tensor {
	return tensor.SmoothL1Loss(output, target, 1, tensor.ReductionMean)
}

// HuberLoss is SmoothL1Loss; with another threshold than 1 they differ by a factor. See [NewHuberLoss].
func HuberLoss(output, target *tensor.Tensor) *tensor.Tensor {
	return tensor.HuberLoss(output, target, 1, tensor.ReductionMean)
}

// BCELoss returns the mean binary cross entropy of probabilities. [BCEWithLogitsLoss] is more exact and works under autocast.
func BCELoss(p, target *tensor.Tensor) *tensor.Tensor {
	return tensor.BCELoss(p, target, nil, tensor.ReductionMean)
}

// BCEWithLogitsLoss returns the mean binary cross entropy of sigmoid(logits).
func BCEWithLogitsLoss(logits, target *tensor.Tensor) *tensor.Tensor {
	return tensor.BCEWithLogits(logits, target, tensor.BCEOptions{})
}

// KLDivLoss returns the Kullback-Leibler divergence of log probabilities [n, …] from target probabilities, summed and divided by n:
// PyTorch's reduction "batchmean". Its default "mean", which divides by the number of elements, is no divergence; [NewKLDivLoss] has it.
func KLDivLoss(logp, target *tensor.Tensor) *tensor.Tensor {
	return tensor.KLDiv(logp, target, false, tensor.ReductionSum).DivScalar(float64(max(logp.Size(0), 1)))
}

// Criterion is a loss with options. Weights it was made with are its buffers: it moves to a device with To, as a model does.
type Criterion struct {
	Base
	name string
	f    func(output, target *tensor.Tensor) *tensor.Tensor
}

// Forward returns the loss of an output and its target, as the options reduce it.
func (c *Criterion) Forward(output, target *tensor.Tensor) *tensor.Tensor { return c.f(output, target) }

// String returns the loss's name.
func (c *Criterion) String() string { return c.name }

// own makes a buffer of a weight; the criterion has a copy of its own, which moving does not take from the caller.
func (c *Criterion) own(name string, w *tensor.Tensor) *tensor.Tensor {
	if w == nil {
		return nil
	}
	return c.RegisterBuffer(name, w.Detach().Clone().Keep())
}

// NewCrossEntropyLoss returns a cross entropy of logits with weights of classes, label smoothing, a target to ignore, or another reduction.
func NewCrossEntropyLoss(o tensor.CrossEntropyOptions) *Criterion {
	c := &Criterion{name: "CrossEntropyLoss"}
	o.Weight = c.own("weight", o.Weight)
	c.f = func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.CrossEntropy(x, y, o) }
	return c
}

// NewNLLLoss returns a negative log likelihood with options.
func NewNLLLoss(o tensor.CrossEntropyOptions) *Criterion {
	c := &Criterion{name: "NLLLoss"}
	o.Weight = c.own("weight", o.Weight)
	c.f = func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.NLLLoss(x, y, o) }
	return c
}

// NewBCEWithLogitsLoss returns a binary cross entropy of logits with options.
func NewBCEWithLogitsLoss(o tensor.BCEOptions) *Criterion {
	c := &Criterion{name: "BCEWithLogitsLoss"}
	o.Weight, o.PosWeight = c.own("weight", o.Weight), c.own("pos_weight", o.PosWeight)
	c.f = func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.BCEWithLogits(x, y, o) }
	return c
}

// NewBCELoss returns a binary cross entropy of probabilities, with a weight for each element (nil: 1).
func NewBCELoss(weight *tensor.Tensor, r tensor.Reduction) *Criterion {
	c := &Criterion{name: "BCELoss"}
	weight = c.own("weight", weight)
	c.f = func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.BCELoss(x, y, weight, r) }
	return c
}

// NewMSELoss returns [MSELoss] with another reduction.
func NewMSELoss(r tensor.Reduction) *Criterion {
	return &Criterion{name: "MSELoss", f: func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.MSELoss(x, y, r) }}
}

// NewL1Loss returns [L1Loss] with another reduction.
func NewL1Loss(r tensor.Reduction) *Criterion {
	return &Criterion{name: "L1Loss", f: func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.L1Loss(x, y, r) }}
}

// NewSmoothL1Loss returns d^2/(2 beta) where |d| < beta, else |d| - beta/2 (Girshick, "Fast R-CNN", 2015).
func NewSmoothL1Loss(beta float64, r tensor.Reduction) *Criterion {
	return &Criterion{name: "SmoothL1Loss", f: func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.SmoothL1Loss(x, y, beta, r) }}
}

// NewHuberLoss returns d^2/2 where |d| < delta, else delta (|d| - delta/2) (Huber, 1964).
func NewHuberLoss(delta float64, r tensor.Reduction) *Criterion {
	return &Criterion{name: "HuberLoss", f: func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.HuberLoss(x, y, delta, r) }}
}

// NewKLDivLoss returns target (log target - output) for log probabilities, reduced; with logTarget the target is a logarithm, too.
func NewKLDivLoss(logTarget bool, r tensor.Reduction) *Criterion {
	return &Criterion{name: "KLDivLoss", f: func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.KLDiv(x, y, logTarget, r) }}
}
