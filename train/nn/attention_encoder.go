package nn

import "github.com/anygpu/anygpu/tensor"

// EncoderConfig are the options of [NewTransformerEncoderLayer]. The zero value of a field is PyTorch's default.
type EncoderConfig struct {
	FeedForward int                                 // features between the two linear layers; 2048 if 0
	Dropout     float64                             // 0.1 if 0, none if negative
	Activation  func(*tensor.Tensor) *tensor.Tensor // (*tensor.Tensor).ReLU if nil
	Eps         float64                             // of the normalisations; 1e-5 if 0
	NormFirst   bool                                // normalise before attention and feed-forward, not after the sums
	BatchFirst  bool                                // [n, positions, width] instead of [positions, n, width]
}

// TransformerEncoderLayer is self-attention and a feed-forward network, each with dropout, residual sum and normalisation (Vaswani et al.,
// 2017). The parameters are PyTorch's: self_attn.…, linear1.…, linear2.…, norm1.…, norm2.….
type TransformerEncoderLayer struct {
	Base
	Config                      EncoderConfig
	SelfAttn                    *MultiheadAttention
	Linear1, Linear2            *Linear
	Norm1, Norm2                *LayerNorm
	dropout, dropout1, dropout2 *Dropout
}

// NewTransformerEncoderLayer returns a layer of a width that heads divides, on the CPU.
func NewTransformerEncoderLayer(width, heads int, c EncoderConfig, opts ...Option) *TransformerEncoderLayer {
	if c.FeedForward == 0 {
		c.FeedForward = 2048
	}
	switch {
	case c.Dropout == 0:
		c.Dropout = 0.1
	case c.Dropout < 0:
		c.Dropout = 0
	}
	if c.Activation == nil {
		c.Activation = (*tensor.Tensor).ReLU
	}
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	drop := func() *Dropout { return NewDropout(c.Dropout, opts...) }
	l := &TransformerEncoderLayer{
		Config:   c,
		SelfAttn: NewMultiheadAttention(width, heads, MultiheadConfig{Dropout: c.Dropout, BatchFirst: c.BatchFirst}, opts...),
		Linear1:  NewLinear(width, c.FeedForward, opts...),
		dropout:  drop(),
		Linear2:  NewLinear(c.FeedForward, width, opts...),
		Norm1:    NewLayerNorm([]int{width}, WithEps(c.Eps)),
		Norm2:    NewLayerNorm([]int{width}, WithEps(c.Eps)),
		dropout1: drop(),
		dropout2: drop(),
	}
	for _, child := range []namedChild{{"self_attn", l.SelfAttn}, {"linear1", l.Linear1}, {"dropout", l.dropout}, {"linear2", l.Linear2},
		{"norm1", l.Norm1}, {"norm2", l.Norm2}, {"dropout1", l.dropout1}, {"dropout2", l.dropout2}} {
		l.Register(child.name, child.c)
	}
	return l
}

// Forward is Encode without masks.
func (l *TransformerEncoderLayer) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer l.Enter(x)()
	return l.Encode(x, AttentionMasks{})
}

// Encode maps [positions, n, width], or [n, positions, width] with BatchFirst, to the same shape.
func (l *TransformerEncoderLayer) Encode(x *tensor.Tensor, masks AttentionMasks) *tensor.Tensor {
	attend := func(x *tensor.Tensor) *tensor.Tensor { return l.dropout1.Forward(l.SelfAttn.Attend(x, x, x, masks)) }
	feed := func(x *tensor.Tensor) *tensor.Tensor {
		return l.dropout2.Forward(l.Linear2.Forward(l.dropout.Forward(l.Config.Activation(l.Linear1.Forward(x)))))
	}
	if l.Config.NormFirst {
		x = x.Add(attend(l.Norm1.Forward(x)))
		return x.Add(feed(l.Norm2.Forward(x)))
	}
	x = l.Norm1.Forward(x.Add(attend(x)))
	return l.Norm2.Forward(x.Add(feed(x)))
}
