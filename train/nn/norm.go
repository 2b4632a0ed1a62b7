package nn

import (
	"fmt"

	"github.com/anygpu/anygpu/tensor"
)

// NormOption changes how a normalisation layer is made.
type NormOption func(*normOptions)

type normOptions struct {
	eps      float64
	momentum float64
	plain    bool
	noBias   bool
	noStats  bool
}

// WithEps replaces what is added to the variance, 1e-5 (RMSNorm: 1e-6).
func WithEps(eps float64) NormOption { return func(o *normOptions) { o.eps = eps } }

// WithMomentum replaces the weight of a new batch in running statistics, 0.1.
func WithMomentum(m float64) NormOption { return func(o *normOptions) { o.momentum = m } }

// NoAffine leaves weight and bias out.
func NoAffine() NormOption { return func(o *normOptions) { o.plain = true } }

// NoNormBias leaves the bias out.
func NoNormBias() NormOption { return func(o *normOptions) { o.noBias = true } }

// NoRunningStats makes a batch normalisation use the batch's statistics in evaluation too.
func NoRunningStats() NormOption { return func(o *normOptions) { o.noStats = true } }

func normOf(eps float64, opts []NormOption) normOptions {
	o := normOptions{eps: eps, momentum: 0.1}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// affine makes a weight of ones and a bias of zeros, on the CPU, as far as the options want them.
func (b *Base) affine(o normOptions, bias bool, shape ...int) (w, bi *tensor.Tensor) {
	if !o.plain {
		w = b.RegisterParameter("weight", tensor.Ones(tensor.CPU(), tensor.Float32, shape...))
		if bias && !o.noBias {
			bi = b.RegisterParameter("bias", tensor.Zeros(tensor.CPU(), tensor.Float32, shape...))
		}
	}
	return w, bi
}

// LayerNorm normalises over the last dimensions (Ba et al., "Layer Normalization", 2016). Weight and Bias have the shape of
// these dimensions.
type LayerNorm struct {
	Base
	Weight, Bias *tensor.Tensor // nil without
	Eps          float64
	dims         int
}

// NewLayerNorm returns a layer for inputs [..., shape…].
func NewLayerNorm(shape []int, opts ...NormOption) *LayerNorm {
	o := normOf(1e-5, opts)
	l := &LayerNorm{Eps: o.eps, dims: len(shape)}
	l.Weight, l.Bias = l.affine(o, true, shape...)
	return l
}

// Forward normalises.
func (l *LayerNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer l.Enter(x)()
	return tensor.LayerNorm(x, l.dims, l.Weight, l.Bias, l.Eps)
}

// RMSNorm divides by the root of the mean square over the last dimensions (Zhang and Sennrich, 2019).
type RMSNorm struct {
	Base
	Weight *tensor.Tensor // nil without
	Eps    float64
	dims   int
}

// NewRMSNorm returns a layer for inputs [..., shape…].
func NewRMSNorm(shape []int, opts ...NormOption) *RMSNorm {
	o := normOf(1e-6, opts)
	l := &RMSNorm{Eps: o.eps, dims: len(shape)}
	l.Weight, _ = l.affine(o, false, shape...)
	return l
}

// Forward normalises.
func (l *RMSNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer l.Enter(x)()
	return tensor.RMSNorm(x, l.dims, l.Weight, l.Eps)
}

// GroupNorm normalises over groups of channels (Wu and He, "Group Normalization", 2018). Weight and Bias have shape [channels].
type GroupNorm struct {
	Base
	Groups       int
	Weight, Bias *tensor.Tensor // nil without
	Eps          float64
}

// NewGroupNorm returns a layer for inputs [n, channels, …].
func NewGroupNorm(groups, channels int, opts ...NormOption) *GroupNorm {
	o := normOf(1e-5, opts)
	l := &GroupNorm{Groups: groups, Eps: o.eps}
	l.Weight, l.Bias = l.affine(o, true, channels)
	return l
}

// Forward normalises.
func (l *GroupNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer l.Enter(x)()
	return tensor.GroupNorm(x, l.Groups, l.Weight, l.Bias, l.Eps)
}

// BatchNorm normalises each channel (Ioffe and Szegedy, "Batch Normalization", 2015): in training mode by the batch's mean and variance,
// which it also averages, in evaluation mode by the averages. Weight, Bias, RunningMean and RunningVar have shape [channels].
type BatchNorm struct {
	Base
	Weight, Bias            *tensor.Tensor // nil without
	RunningMean, RunningVar *tensor.Tensor // buffers; nil without
	Eps, Momentum           float64
	batches                 *tensor.Tensor // num_batches_tracked
	name                    string         // in errors
	ranks                   [2]int         // least and greatest number of dimensions of an input
}

func newBatchNorm(name string, ranks [2]int, channels int, opts []NormOption) *BatchNorm {
	o := normOf(1e-5, opts)
	l := &BatchNorm{Eps: o.eps, Momentum: o.momentum, name: name, ranks: ranks}
	l.Weight, l.Bias = l.affine(o, true, channels)
	if !o.noStats {
		l.RunningMean = l.RegisterBuffer("running_mean", tensor.Zeros(tensor.CPU(), tensor.Float32, channels))
		l.RunningVar = l.RegisterBuffer("running_var", tensor.Ones(tensor.CPU(), tensor.Float32, channels))
		l.batches = l.RegisterBuffer("num_batches_tracked", tensor.Zeros(tensor.CPU(), tensor.Int64))
	}
	return l
}

// NewBatchNorm1d returns a layer for inputs [n, channels] or [n, channels, length].
func NewBatchNorm1d(channels int, opts ...NormOption) *BatchNorm {
	return newBatchNorm("batch_norm1d", [2]int{2, 3}, channels, opts)
}

// NewBatchNorm2d returns a layer for inputs [n, channels, height, width].
func NewBatchNorm2d(channels int, opts ...NormOption) *BatchNorm {
	return newBatchNorm("batch_norm2d", [2]int{4, 4}, channels, opts)
}

// Forward normalises, and in training mode updates the running statistics.
func (l *BatchNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer l.Enter(x)()
	if rank := len(x.Shape()); x.Err() == nil && l.name != "" && (rank < l.ranks[0] || rank > l.ranks[1]) {
		want := "[n, channels, height, width]"
		if l.ranks[0] == 2 {
			want = "[n, channels] or [n, channels, length]"
		}
		return tensor.Failed(l.name, fmt.Errorf("expected input %s, but got shape %v", want, x.Shape()), x)
	}
	if l.RunningMean == nil {
		return tensor.BatchNorm(x, l.Weight, l.Bias, nil, true, l.Eps)
	}
	y := tensor.BatchNorm(x, l.Weight, l.Bias, &tensor.RunningStats{Mean: l.RunningMean, Var: l.RunningVar, Momentum: l.Momentum}, l.Training(), l.Eps)
	if l.Training() && y.Err() == nil {
		next := l.batches.AddScalar(1)
		if err := l.batches.CopyFrom(next); err != nil {
			x.Scope().Fail(err)
		}
		next.Free()
	}
	return y
}

// Embedding is a table of vectors, Weight [n, d], looked up by index.
type Embedding struct {
	Base
	Weight  *tensor.Tensor
	padding int // -1: none
}

// NewEmbedding returns a table of n vectors of d elements on the CPU, with normally distributed values, PyTorch's default.
func NewEmbedding(n, d int, opts ...Option) *Embedding {
	e := &Embedding{padding: -1}
	e.Weight = e.RegisterParameter("weight", tensor.Normal(tensor.CPU(), apply(opts).gen, tensor.Float32, 0, 1, n, d))
	return e
}

// NewEmbeddingPadding is [NewEmbedding] whose row padding starts as zeros and gets no gradient.
func NewEmbeddingPadding(n, d, padding int, opts ...Option) *Embedding {
	e := NewEmbedding(n, d, opts...)
	e.padding = padding
	row := tensor.Ones(tensor.CPU(), tensor.Float32, n, 1)
	if padding >= 0 && padding < n {
		keep := tensor.ArangeStep(tensor.CPU(), tensor.Int64, 0, float64(n), 1).NeScalar(float64(padding)).Unsqueeze(1)
		row = keep.Cast(tensor.Float32)
	}
	if err := e.Weight.CopyFrom(e.Weight.Detach().Mul(row)); err != nil {
		e.Weight.Scope().Fail(err)
	}
	return e
}

// Forward looks up: index of any shape (int32 or int64) to [..., d].
func (e *Embedding) Forward(index *tensor.Tensor) *tensor.Tensor {
	defer e.Enter(index)()
	if e.padding >= 0 {
		return tensor.EmbeddingPadding(e.Weight, index, e.padding)
	}
	return tensor.Embedding(e.Weight, index)
}
