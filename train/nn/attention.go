package nn

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/tensor"
)

// MultiheadConfig are the options of [NewMultiheadAttention]; the zero value has PyTorch's defaults.
type MultiheadConfig struct {
	Dropout    float64 // of attention weights, in training mode
	KDim, VDim int     // features of keys and values where they are not those of the queries
	// BatchFirst makes inputs and outputs [n, positions, features]. Without it they are [positions, n, features], as in PyTorch.
	BatchFirst bool
}

// MultiheadAttention attends with several heads (Vaswani et al., "Attention Is All You Need", 2017). The parameters are PyTorch's:
// in_proj_weight [3e, e] with the rows of queries, keys and values in this order (q_proj_weight, k_proj_weight and v_proj_weight where
// KDim or VDim differ), in_proj_bias [3e], out_proj.weight [e, e] and out_proj.bias [e].
type MultiheadAttention struct {
	Base
	Config   MultiheadConfig
	InWeight *tensor.Tensor    // nil with separate weights
	Separate [3]*tensor.Tensor // of queries, keys and values; nil with one weight
	InBias   *tensor.Tensor    // nil without bias
	OutProj  *Linear
	heads    int
	width    int
	gen      *tensor.Generator
}

// NewMultiheadAttention returns a layer for queries of width features on the CPU. heads must divide width; a call tells if not.
// Weights of inputs are uniform in ±sqrt(6/(in+out)) (Glorot and Bengio, 2010), biases are zeros.
func NewMultiheadAttention(width, heads int, c MultiheadConfig, opts ...Option) *MultiheadAttention {
	o := apply(opts)
	m := &MultiheadAttention{Config: c, heads: heads, width: width, gen: o.gen}
	xavier := func(name string, out, in int) *tensor.Tensor {
		return m.RegisterParameter(name, uniform(o.gen, math.Sqrt(6/float64(max(in+out, 1))), out, in))
	}
	kdim, vdim := c.KDim, c.VDim
	if kdim == 0 {
		kdim = width
	}
	if vdim == 0 {
		vdim = width
	}
	if kdim == width && vdim == width {
		m.InWeight = xavier("in_proj_weight", 3*width, width)
	} else {
		m.Separate = [3]*tensor.Tensor{xavier("q_proj_weight", width, width), xavier("k_proj_weight", width, kdim), xavier("v_proj_weight", width, vdim)}
	}
	if !o.noBias {
		m.InBias = m.RegisterParameter("in_proj_bias", tensor.Zeros(tensor.CPU(), tensor.Float32, 3*width))
	}
	m.OutProj = NewLinear(width, width, opts...)
	if m.OutProj.Bias != nil {
		m.OutProj.Bias = tensor.Zeros(tensor.CPU(), tensor.Float32, width)
		m.OutProj.params[1].Tensor = m.OutProj.Bias.SetRequiresGrad(true)
	}
	m.Register("out_proj", m.OutProj)
	return m
}

// AttentionMasks say which positions do not attend to which. The senses are those of PyTorch's MultiheadAttention, so true
// hides, which is the opposite of tensor.AttentionOptions' sense. A query that everything is hidden from gives NaN.
type AttentionMasks struct {
	KeyPadding *tensor.Tensor // [n, keys]: bool, true for a key that is padding
	// Mask is [queries, keys], or [n*heads, queries, keys]: bool, true where a query does not see a key, or float, added to
	// the scores.
	Mask   *tensor.Tensor
	Causal bool // a query sees the keys up to its own position
}

// Forward is self-attention without masks.
func (m *MultiheadAttention) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer m.Enter(x)()
	return m.Attend(x, x, x, AttentionMasks{})
}

// Attend returns what queries [n, l, e] find in keys [n, m, kdim] and values [n, m, vdim], as [n, l, e]. Without BatchFirst the
// first two dimensions of all are the other way round.
func (m *MultiheadAttention) Attend(query, key, value *tensor.Tensor, masks AttentionMasks) *tensor.Tensor {
	q, k, v := m.project(query, key, value)
	mask, causal, err := m.mask(q, k, masks)
	if err != nil {
		return tensor.Failed("multihead_attention", err, query, key)
	}
	o := tensor.AttentionOptions{Mask: mask, Causal: causal}
	if m.Training() && m.Config.Dropout > 0 {
		o.Dropout, o.Gen = m.Config.Dropout, m.gen
	}
	return m.order(m.OutProj.Forward(joinHeads(tensor.ScaledDotProductAttention(q, k, v, o))))
}

// Weights returns the attention weights without dropout, averaged over the heads, [n, l, m]: PyTorch's second result.
func (m *MultiheadAttention) Weights(query, key *tensor.Tensor, masks AttentionMasks) *tensor.Tensor {
	q, k, _ := m.project(query, key, nil)
	masks.Causal, masks.Mask = false, m.withCausal(q, k, masks)
	mask, _, err := m.mask(q, k, masks)
	if err != nil {
		return tensor.Failed("multihead_attention", err, query, key)
	}
	scores := q.MulScalar(1 / math.Sqrt(float64(m.width)/float64(max(m.heads, 1)))).MatMul(k.Transpose(-1, -2))
	switch {
	case mask != nil && mask.DType() == tensor.Bool:
		scores = scores.MaskedFill(mask.LogicalNot(), math.Inf(-1))
	case mask != nil:
		scores = scores.Add(mask)
	}
	return scores.Softmax(-1).Mean(1)
}

// order exchanges the first two dimensions where the batch is the second.
func (m *MultiheadAttention) order(x *tensor.Tensor) *tensor.Tensor {
	if m.Config.BatchFirst {
		return x
	}
	return x.Transpose(0, 1)
}

// project returns queries, keys and values [n, heads, positions, e/heads]; no values for a nil value.
func (m *MultiheadAttention) project(query, key, value *tensor.Tensor) (q, k, v *tensor.Tensor) {
	if m.heads < 1 || m.width%m.heads != 0 {
		bad := tensor.Failed("multihead_attention", fmt.Errorf("width %d is no multiple of %d heads", m.width, m.heads), query)
		return bad, bad, bad
	}
	for i, x := range []*tensor.Tensor{query, key, value} {
		if x != nil && x.Err() == nil && x.Dim() != 3 {
			bad := tensor.Failed("multihead_attention", fmt.Errorf("input %d has shape %v; it must have three dimensions, batch, positions and features", i, x.Shape()), x)
			return bad, bad, bad
		}
	}
	part := func(t *tensor.Tensor, i int) *tensor.Tensor { return t.Narrow(0, i*m.width, m.width) }
	if query == key && key == value && m.InWeight != nil { // self-attention: one product
		p := m.order(tensor.Linear(query, m.InWeight, m.InBias)).Chunk(3, -1)
		if len(p) != 3 {
			return p[0], p[0], p[0]
		}
		return splitHeads(p[0], m.heads), splitHeads(p[1], m.heads), splitHeads(p[2], m.heads)
	}
	out := [3]*tensor.Tensor{}
	for i, x := range []*tensor.Tensor{query, key, value} {
		if x == nil {
			continue
		}
		w, b := m.Separate[i], m.InBias
		if w == nil {
			w = part(m.InWeight, i)
		}
		if b != nil {
			b = part(b, i)
		}
		out[i] = splitHeads(m.order(tensor.Linear(x, w, b)), m.heads)
	}
	return out[0], out[1], out[2]
}

// mask combines the masks to one as tensor.AttentionOptions wants it: bool with true for what is seen, or float.
func (m *MultiheadAttention) mask(q, k *tensor.Tensor, masks AttentionMasks) (mask *tensor.Tensor, causal bool, err error) {
	if q.Err() != nil || k.Err() != nil {
		return nil, false, nil // the operator that comes next passes the error on
	}
	if masks.KeyPadding == nil && masks.Mask == nil {
		return nil, masks.Causal, nil
	}
	mask = m.withCausal(q, k, masks)
	n, l, keys := q.Size(0), q.Size(2), k.Size(2)
	if mask != nil && mask.Err() == nil {
		switch s := mask.Shape(); {
		case len(s) == 2 && s[0] == l && s[1] == keys:
		case len(s) == 3 && s[0] == n*m.heads && s[1] == l && s[2] == keys:
			mask = mask.Reshape(n, m.heads, l, keys)
		default:
			return nil, false, fmt.Errorf("the mask has shape %v; it must be [%d %d] or [%d %d %d]", s, l, keys, n*m.heads, l, keys)
		}
		if mask.DType() == tensor.Bool {
			mask = mask.LogicalNot()
		}
	}
	padding := masks.KeyPadding
	if padding == nil || padding.Err() != nil {
		return mask, false, nil
	}
	if s := padding.Shape(); len(s) != 2 || s[0] != n || s[1] != keys || padding.DType() != tensor.Bool {
		return nil, false, fmt.Errorf("the key padding is %s %v; it must be bool [%d %d]", padding.DType(), s, n, keys)
	}
	padding = padding.Reshape(n, 1, 1, keys)
	switch {
	case mask == nil:
		mask = padding.LogicalNot()
	case mask.DType() == tensor.Bool:
		mask = mask.LogicalAnd(padding.LogicalNot())
	default:
		mask = mask.MaskedFill(padding, math.Inf(-1))
	}
	return mask, false, nil
}

// withCausal returns the mask with the positions that Causal hides.
func (m *MultiheadAttention) withCausal(q, k *tensor.Tensor, masks AttentionMasks) *tensor.Tensor {
	if !masks.Causal || q.Err() != nil || k.Err() != nil {
		return masks.Mask
	}
	future := filled(q, tensor.Uint8, 1, q.Size(2), k.Size(2)).Triu(1).Cast(tensor.Bool)
	switch {
	case masks.Mask == nil:
		return future
	case masks.Mask.DType() == tensor.Bool:
		return masks.Mask.LogicalOr(future)
	}
	return masks.Mask.MaskedFill(future, math.Inf(-1))
}

// filled returns a constant tensor where x is, of x's scope.
func filled(x *tensor.Tensor, d tensor.DType, v float64, shape ...int) *tensor.Tensor {
	if s := x.Scope(); s != nil {
		return s.Full(d, v, shape...)
	}
	return tensor.Full(x.Device(), d, v, shape...)
}
