package tensor

import (
	"fmt"
	"math"
	"slices"
)

// This file has attention and the cells of recurrent networks.

// AttentionOptions are the options of [ScaledDotProductAttention]; the zero value attends to everything.
type AttentionOptions struct {
	// Mask is broadcast to [..., q, k]: bool, true where a query attends to a key, or float, added to the scores.
	Mask    *Tensor
	Causal  bool    // a query attends to the keys up to its own position; not together with Mask
	Dropout float64 // probability by which attention weights are dropped, from Gen
	Gen     *Generator
	Scale   float64 // of the scores; 0 is 1/sqrt(d)
	// Grouped lets groups of query heads share a key and value head (Ainslie et al., "GQA", 2023): dimension -3 of q is a
	// multiple of that of k and v.
	Grouped bool
}

var _ = defineOp(OpInfo{Name: "scaled_dot_product_attention", Doc: "softmax(q k^T * scale + mask) v over the last two dimensions", Kind: KindComposite, Class: Lower, Inputs: []string{"q", "k", "v", "attn_mask"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		o := AttentionOptions{Mask: operandAt(in, 3), Causal: a.Bool("is_causal"), Dropout: a.Float("dropout_p", 0), Scale: a.Float("scale", 0), Grouped: a.Bool("enable_gqa")}
		if o.Dropout > 0 {
			o.Gen = NewGenerator(uint64(a.Int("seed", 0)))
		}
		return one(ScaledDotProductAttention(in[0], in[1], in[2], o))
	},
	Ref: refOne(refAttention),
	Samples: []Sample{
		valid("full", nil, sampleArray(2, 2, 3, 4), positiveArray(2, 2, 5, 4), sampleArray(2, 2, 5, 3)),
		valid("causal", Attrs{"is_causal": true}, sampleArray(1, 2, 4, 4), positiveArray(1, 2, 4, 4), sampleArray(1, 2, 4, 4)),
		valid("bool mask", nil, sampleArray(2, 3, 4), positiveArray(2, 3, 4), sampleArray(2, 3, 4), boolArray([]int{3, 3}, 1, 0, 1, 0, 1, 0, 1, 1, 1)),
		valid("grouped heads", Attrs{"enable_gqa": true, "scale": 0.3}, sampleArray(1, 4, 3, 2), positiveArray(1, 2, 3, 2), sampleArray(1, 2, 3, 2)),
		invalid("at least 2 dimensions", nil, sampleArray(4), sampleArray(4), sampleArray(4)),
		invalid("last dimension", nil, sampleArray(3, 4), sampleArray(3, 5), sampleArray(3, 4)),
		invalid("should not be set when is_causal", Attrs{"is_causal": true}, sampleArray(3, 4), sampleArray(3, 4), sampleArray(3, 4), boolArray([]int{3, 3}, 1, 0, 1, 0, 1, 0, 1, 1, 1)),
	}})

func refAttention(in []Array, a Attrs) Array {
	q, k, v := in[0], in[1], in[2]
	d, keys := q.size(-1), k.size(-2)
	scale := a.Float("scale", 1/math.Sqrt(float64(d)))
	r := len(q.Shape)
	shape := withSize(q.Shape, r-1, v.size(-1))
	return makeArray(shape, func(idx []int) float64 {
		at := func(i, col int) []int { // in k or v
			own := slices.Clone(idx)
			if r > 2 {
				own[r-3] = idx[r-3] / (q.Shape[r-3] / k.Shape[r-3])
			}
			own[r-2], own[r-1] = i, col
			return own
		}
		scores, top := make([]float64, keys), math.Inf(-1)
		for i := range scores {
			for c := range d {
				scores[i] += q.at(with(idx, r-1, c)...) * k.at(at(i, c)...)
			}
			scores[i] *= scale
			if len(in) > 3 && in[3].at(idx[r-2], i) == 0 || a.Bool("is_causal") && i > idx[r-2] {
				scores[i] = math.Inf(-1)
			}
			top = math.Max(top, scores[i])
		}
		sum, out := 0.0, 0.0
		for i, s := range scores {
			w := math.Exp(s - top)
			sum += w
			out += w * v.at(at(i, idx[r-1])...)
		}
		return out / sum
	})
}

// ScaledDotProductAttention returns softmax(q k^T * scale + mask) v (Vaswani et al., 2017) for q [..., n, d], k [..., m, d] and v
// [..., m, e], with the leading dimensions broadcast. A query that attends to nothing gives NaN, as in PyTorch.
func ScaledDotProductAttention(q, k, v *Tensor, o AttentionOptions) *Tensor {
	c := begin(LookupOp("scaled_dot_product_attention"), operands(3, q, k, v, o.Mask)...)
	if c.err != nil {
		return c.failed()
	}
	switch {
	case len(q.shape) < 2 || len(k.shape) < 2 || len(v.shape) < 2:
		return c.shapeFail("all inputs must have at least 2 dimensions, got shapes %v, %v and %v", q.shape, k.shape, v.shape)
	case q.Size(-1) != k.Size(-1):
		return c.shapeFail("q and k must agree in their last dimension, got shapes %v and %v", q.shape, k.shape)
	case k.Size(-2) != v.Size(-2):
		return c.shapeFail("k and v must have as many keys as values, got shapes %v and %v", k.shape, v.shape)
	case o.Mask != nil && o.Causal:
		return c.fail("", fmt.Errorf("explicit attn_mask should not be set when is_causal=True"))
	case !q.dtype.IsFloat():
		return c.fail("cast it", errorOf(ErrDType, "expected floating-point inputs, got %s", q.dtype))
	case !(o.Dropout >= 0 && o.Dropout <= 1):
		return c.fail("", fmt.Errorf("dropout probability has to be between 0 and 1, but got %v", o.Dropout))
	case o.Dropout > 0 && o.Gen == nil:
		return c.fail("", fmt.Errorf("dropout needs a generator"))
	}
	q, k, v = c.in[0], c.in[1], c.in[2]
	if o.Grouped {
		if len(q.shape) < 3 || len(k.shape) != len(q.shape) || len(v.shape) != len(q.shape) || k.Size(-3) == 0 || q.Size(-3)%k.Size(-3) != 0 || k.Size(-3) != v.Size(-3) {
			return c.shapeFail("the number of query heads must be a multiple of that of key and value heads, got shapes %v, %v and %v", q.shape, k.shape, v.shape)
		}
		times := q.Size(-3) / k.Size(-3)
		k, v = k.RepeatInterleave(times, -3), v.RepeatInterleave(times, -3)
	}
	scale := o.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(q.Size(-1)))
	}
	defer c.scope.noCasts()() // what the operator is made of runs in the dtype that autocast chose for it, as in PyTorch
	if o.Mask == nil && o.Dropout == 0 {
		if out := c.attend(q, k, v, scale, o.Causal); out != nil {
			return out
		}
	}
	mask := o.Mask
	if mask != nil {
		mask = c.in[3]
	}
	weights := c.attentionWeights(q, k, mask, scale, o.Causal)
	if o.Dropout > 0 {
		weights = through(weights, weights.Dropout(o.Dropout, true, o.Gen))
	}
	return through(weights, weights.MatMul(v))
}

// attentionWeights returns softmax(scale q k^T) over the keys that the mask, if there is one, or causal leaves.
func (c *call) attentionWeights(q, k, mask *Tensor, scale float64, causal bool) *Tensor {
	q = q.MulScalar(scale)
	scores := through(q, q.MatMul(k.Transpose(-1, -2)))
	switch {
	case causal:
		scores = through(scores, scores.MaskedFill(triangle(c.eng, c.scope, q.Size(-2), k.Size(-2), 0).LogicalNot(), math.Inf(-1)))
	case mask != nil && mask.dtype == Bool:
		scores = through(scores, scores.MaskedFill(mask.LogicalNot(), math.Inf(-1)))
	case mask != nil:
		scores = through(scores, scores.Add(mask))
	}
	return through(scores, scores.Softmax(-1))
}

var _ = defineOp(OpInfo{Name: "rope", Doc: "rotary position embedding of x [..., positions, d]: pairs of features turned by angles that grow with the position", Kind: KindComposite, Class: F32, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(in[0].RoPE(RoPEOptions{Base: a.Float("base", 0), Interleaved: a.String("layout", "half") == "interleaved", Start: a.Int("start", 0)}))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		x := in[0]
		r := len(x.Shape)
		d := x.Shape[r-1]
		return makeArray(x.Shape, func(idx []int) float64 {
			i := idx[r-1]
			pair, first, other := i%(d/2), i < d/2, (i+d/2)%d
			if a.String("layout", "half") == "interleaved" {
				pair, first, other = i/2, i%2 == 0, i^1
			}
			angle := float64(idx[r-2]+a.Int("start", 0)) * math.Pow(a.Float("base", 10000), -2*float64(pair)/float64(d))
			y := x.at(with(idx, r-1, other)...)
			if first {
				y = -y
			}
			return x.at(idx...)*math.Cos(angle) + y*math.Sin(angle)
		})
	}),
	Samples: []Sample{
		valid("half", Attrs{"base": 10000.0, "layout": "half"}, sampleArray(2, 3, 4)),
		valid("interleaved from 5 on", Attrs{"layout": "interleaved", "start": 5}, sampleArray(3, 6)),
		invalid("even", nil, sampleArray(3, 5)),
	}})

// RoPEOptions are the options of [Tensor.RoPE].
type RoPEOptions struct {
	Base        float64 // 0 is 10000
	Interleaved bool    // neighbours are a pair; else feature i and i + d/2, as in Llama
	Start       int     // the position of the first row
}

// RoPE returns t [..., positions, d] with pairs of features turned by position * base^(-2i/d) (Su et al., "RoFormer", 2021).
func (t *Tensor) RoPE(o RoPEOptions) *Tensor {
	c := begin(LookupOp("rope"), t)
	if c.err != nil {
		return c.failed()
	}
	x := c.in[0]
	n, d := x.Size(-2), x.Size(-1)
	if len(x.shape) < 2 || d%2 != 0 || !x.dtype.IsFloat() {
		return c.shapeFail("needs floats [..., positions, features] with an even number of features, got %s", describe(t))
	}
	if o.Base == 0 {
		o.Base = 10000
	}
	w, back := wide(x)
	// The angles are computed here, in double precision: float32 is too coarse for large positions.
	cos, sin := make([]float64, n*d/2), make([]float64, n*d/2)
	for p := range n {
		for i := range d / 2 {
			sin[p*d/2+i], cos[p*d/2+i] = math.Sincos(float64(p+o.Start) * math.Pow(o.Base, -2*float64(i)/float64(d)))
		}
	}
	table := func(vs []float64) *Tensor {
		return FromFloat64s(vs, n, d/2).Cast(w.dtype).To(c.eng.dev)
	}
	ct, st := table(cos), table(sin)
	if o.Interleaved {
		pairs := w.Reshape(append(slices.Clone(x.shape[:len(x.shape)-1]), d/2, 2)...)
		a, b := pairs.Select(-1, 0), pairs.Select(-1, 1)
		return back(Stack(-1, a.Mul(ct).Sub(b.Mul(st)), b.Mul(ct).Add(a.Mul(st))).Reshape(x.shape...))
	}
	a, b := w.Slice(-1, 0, d/2, 1), w.Slice(-1, d/2, d, 1)
	return back(Cat(-1, a.Mul(ct).Sub(b.Mul(st)), b.Mul(ct).Add(a.Mul(st))))
}

// --- cells ---

func refGates(x, w, b Array) Array {
	return makeArray([]int{x.Shape[0], w.Shape[0]}, func(idx []int) float64 {
		v := 0.0
		if b.Data != nil {
			v = b.Data[idx[1]]
		}
		for k := range x.Shape[1] {
			v += x.at(idx[0], k) * w.at(idx[1], k)
		}
		return v
	})
}

func refSigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

var _ = defineOp(OpInfo{Name: "lstm_cell", Doc: "a step of a long short-term memory: the next hidden and cell state", Kind: KindComposite, Class: Lower, Inputs: []string{"x", "h", "c", "w_ih", "w_hh", "b_ih", "b_hh"},
	Call: func(in []*Tensor, _ Attrs) []*Tensor {
		h, s := LSTMCell(operandAt(in, 0), operandAt(in, 1), operandAt(in, 2), operandAt(in, 3), operandAt(in, 4), operandAt(in, 5), operandAt(in, 6))
		return []*Tensor{h, s}
	},
	Ref: func(in []Array, _ Attrs) ([]Array, error) {
		in = append(slices.Clone(in), Array{}, Array{})
		a, b := refGates(in[0], in[3], in[5]), refGates(in[1], in[4], in[6])
		h := in[1].Shape[1]
		gate := func(idx []int, k int) float64 { return a.at(idx[0], k*h+idx[1]) + b.at(idx[0], k*h+idx[1]) }
		cell := makeArray(in[2].Shape, func(idx []int) float64 {
			return refSigmoid(gate(idx, 1))*in[2].at(idx...) + refSigmoid(gate(idx, 0))*math.Tanh(gate(idx, 2))
		})
		out := makeArray(in[2].Shape, func(idx []int) float64 { return refSigmoid(gate(idx, 3)) * math.Tanh(cell.at(idx...)) })
		return []Array{out, cell}, nil
	},
	Samples: []Sample{
		valid("with biases", nil, sampleArray(3, 4), sampleArray(3, 2), positiveArray(3, 2), sampleArray(8, 4), sampleArray(8, 2), sampleArray(8), positiveArray(8)),
		invalid("gates", nil, sampleArray(3, 4), sampleArray(3, 2), positiveArray(3, 2), sampleArray(6, 4), sampleArray(8, 2)),
	}})

// LSTMCell returns the next hidden and cell state, [n, h], of a long short-term memory (Hochreiter and Schmidhuber, 1997) for input x [n, i]
// and states h and c [n, h]. The weights are [4h, i] and [4h, h] in the order input, forget, cell, output; the biases [4h] may be nil.
func LSTMCell(x, h, c, wih, whh, bih, bhh *Tensor) (hidden, cell *Tensor) {
	k := begin(LookupOp("lstm_cell"), operands(5, x, h, c, wih, whh, bih, bhh)...)
	if k.err != nil {
		return k.failed(), k.failed()
	}
	if err := checkCell(x, h, wih, whh, 4); err != nil {
		bad := k.fail("", err)
		return bad, bad
	}
	if !sameShape(h, c) {
		bad := k.shapeFail("the cell state %v must have the hidden state's shape %v", c.shape, h.shape)
		return bad, bad
	}
	c = k.in[2] // of the gates' dtype, under autocast too
	g := Linear(x, wih, bih).Add(Linear(h, whh, bhh)).Chunk(4, 1)
	if len(g) != 4 {
		return g[0], g[0]
	}
	cell = g[1].Sigmoid().Mul(c).Add(g[0].Sigmoid().Mul(g[2].Tanh()))
	return g[3].Sigmoid().Mul(cell.Tanh()), cell
}

// checkCell checks the shapes of a cell with a number of gates.
func checkCell(x, h, wih, whh *Tensor, gates int) error {
	switch {
	case len(x.shape) != 2 || len(h.shape) != 2 || x.shape[0] != h.shape[0]:
		return errorOf(ErrShape, "input and hidden state must be matrices with as many rows, got shapes %v and %v", x.shape, h.shape)
	case !slices.Equal(wih.shape, []int{gates * h.shape[1], x.shape[1]}) || !slices.Equal(whh.shape, []int{gates * h.shape[1], h.shape[1]}):
		return errorOf(ErrShape, "weights of %d gates must have shapes [%d %d] and [%d %d], got %v and %v", gates, gates*h.shape[1], x.shape[1], gates*h.shape[1], h.shape[1], wih.shape, whh.shape)
	}
	return nil
}

var _ = defineOp(OpInfo{Name: "gru_cell", Doc: "a step of a gated recurrent unit: the next hidden state", Kind: KindComposite, Class: Lower, Inputs: []string{"x", "h", "w_ih", "w_hh", "b_ih", "b_hh"},
	Call: func(in []*Tensor, _ Attrs) []*Tensor {
		return one(GRUCell(operandAt(in, 0), operandAt(in, 1), operandAt(in, 2), operandAt(in, 3), operandAt(in, 4), operandAt(in, 5)))
	},
	Ref: refOne(func(in []Array, _ Attrs) Array {
		in = append(slices.Clone(in), Array{}, Array{})
		a, b := refGates(in[0], in[2], in[4]), refGates(in[1], in[3], in[5])
		h := in[1].Shape[1]
		return makeArray(in[1].Shape, func(idx []int) float64 {
			at := func(g Array, k int) float64 { return g.at(idx[0], k*h+idx[1]) }
			r, z := refSigmoid(at(a, 0)+at(b, 0)), refSigmoid(at(a, 1)+at(b, 1))
			n := math.Tanh(at(a, 2) + r*at(b, 2))
			return (1-z)*n + z*in[1].at(idx...)
		})
	}),
	Samples: []Sample{
		valid("with biases", nil, sampleArray(3, 4), sampleArray(3, 2), sampleArray(6, 4), sampleArray(6, 2), sampleArray(6), positiveArray(6)),
		invalid("gates", nil, sampleArray(3, 4), sampleArray(3, 2), sampleArray(8, 4), sampleArray(8, 2)),
	}})

// GRUCell returns the next hidden state [n, h] of a gated recurrent unit (Cho et al., 2014) for input x [n, i]. The weights are [3h, i] and
// [3h, h] in the order reset, update, new; the biases [3h] may be nil.
func GRUCell(x, h, wih, whh, bih, bhh *Tensor) *Tensor {
	k := begin(LookupOp("gru_cell"), operands(4, x, h, wih, whh, bih, bhh)...)
	if k.err != nil {
		return k.failed()
	}
	if err := checkCell(x, h, wih, whh, 3); err != nil {
		return k.fail("", err)
	}
	h = k.in[1] // of the gates' dtype, under autocast too
	a, b := Linear(x, wih, bih).Chunk(3, 1), Linear(h, whh, bhh).Chunk(3, 1)
	if len(a) != 3 || len(b) != 3 {
		return a[0].Add(b[0])
	}
	r, z := a[0].Add(b[0]).Sigmoid(), a[1].Add(b[1]).Sigmoid()
	n := a[2].Add(r.Mul(b[2])).Tanh()
	return n.Add(z.Mul(h.Sub(n)))
}
