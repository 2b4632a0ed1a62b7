package nn

import (
	"fmt"

	"github.com/anygpu/anygpu/tensor"
)

// DecoderBlock is a block of a decoder-only transformer with the normalisation first (Radford et al., GPT-2, 2019):
//
//	x = x + proj(attention(ln1(x)))
//	x = x + out(gelu(fc(ln2(x))))
//
// Attention is causal, gelu its approximation by tanh, and qkv one layer for queries, keys and values, in this order.
type DecoderBlock struct {
	Base
	LN1, LN2           *LayerNorm
	QKV, Proj, FC, Out *Linear
	heads              int
	dropout            float64
	gen                *tensor.Generator
}

// NewDecoderBlock returns a block of a width that heads divides, on the CPU. dropout is the probability for attention weights and for
// the outputs of proj and out in training mode; 0 is none.
func NewDecoderBlock(width, heads int, dropout float64, opts ...Option) *DecoderBlock {
	b := &DecoderBlock{heads: heads, dropout: dropout, gen: apply(opts).gen}
	b.LN1 = NewLayerNorm([]int{width})
	b.QKV, b.Proj = NewLinear(width, 3*width, opts...), NewLinear(width, width, opts...)
	b.LN2 = NewLayerNorm([]int{width})
	b.FC, b.Out = NewLinear(width, 4*width, opts...), NewLinear(4*width, width, opts...)
	b.Register("ln1", b.LN1)
	b.Register("qkv", b.QKV)
	b.Register("proj", b.Proj)
	b.Register("ln2", b.LN2)
	b.Register("fc", b.FC)
	b.Register("out", b.Out)
	return b
}

// Forward maps [n, positions, width] to the same shape. Each position sees itself and those before.
func (b *DecoderBlock) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer b.Enter(x)()
	h := b.LN1.Forward(x)
	y := through(h, b.QKV.Forward(h))
	parts := y.Chunk(3, -1)
	if len(parts) != 3 {
		return parts[0] // failed
	}
	y.Discard()
	q, k, v := splitHeads(parts[0], b.heads), splitHeads(parts[1], b.heads), splitHeads(parts[2], b.heads)
	o := tensor.AttentionOptions{Causal: true}
	if b.Training() && b.dropout > 0 {
		o.Dropout, o.Gen = b.dropout, b.gen
	}
	h = tensor.ScaledDotProductAttention(q, k, v, o)
	for _, t := range []*tensor.Tensor{q, k, v} {
		t.Discard()
	}
	h = through(h, joinHeads(h))
	h = through(h, b.Proj.Forward(h))
	h = through(h, b.drop(h))
	x = through(h, x.Add(h))

	h = b.LN2.Forward(x)
	h = through(h, b.FC.Forward(h))
	h = through(h, h.GELUTanh())
	h = through(h, b.Out.Forward(h))
	h = through(h, b.drop(h))
	return through(x, through(h, x.Add(h)))
}

func (b *DecoderBlock) drop(x *tensor.Tensor) *tensor.Tensor {
	if b.dropout == 0 {
		return x
	}
	return x.Dropout(b.dropout, b.Training(), b.gen)
}

// splitHeads turns [n, t, heads*d] into [n, heads, t, d].
func splitHeads(x *tensor.Tensor, heads int) *tensor.Tensor {
	if x.Err() != nil || x.Dim() != 3 || heads < 1 {
		return x // the operator that comes next says what is wrong with the shape
	}
	y := x.Reshape(x.Size(0), x.Size(1), heads, -1)
	x.Discard() // one of the parts of a projection
	return through(y, y.Transpose(1, 2))
}

// joinHeads turns [n, heads, t, d] into [n, t, heads*d].
func joinHeads(x *tensor.Tensor) *tensor.Tensor {
	if x.Err() != nil || x.Dim() != 4 {
		return x
	}
	y := x.Transpose(1, 2)
	return through(y, y.Flatten(2, 3))
}

// DecoderConfig is the size of a [Decoder].
type DecoderConfig struct {
	Vocab   int     // number of tokens
	Block   int     // longest sequence
	Width   int     // features of a token
	Heads   int     // attention heads; they divide Width
	Layers  int     // blocks
	Dropout float64 // in training mode; 0 is none
}

// Check returns what is wrong with a configuration, or nil.
func (c DecoderConfig) Check() error {
	switch {
	case c.Vocab < 1 || c.Block < 1 || c.Width < 1 || c.Heads < 1 || c.Layers < 0:
		return fmt.Errorf("nn: decoder: vocabulary %d, block %d, width %d and heads %d must be at least 1, layers %d at least 0", c.Vocab, c.Block, c.Width, c.Heads, c.Layers)
	case c.Width%c.Heads != 0:
		return fmt.Errorf("nn: decoder: width %d is no multiple of %d heads", c.Width, c.Heads)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("nn: decoder: dropout %v must be in [0, 1)", c.Dropout)
	}
	return nil
}

// Decoder is a decoder-only language model: embeddings of tokens and positions, [DecoderBlock]s, a last normalisation, and
// a head without bias. Its parameters are tok.weight, pos.weight, blocks.N.…, ln.… and head.weight.
type Decoder struct {
	Base
	Config   DecoderConfig
	Tok, Pos *Embedding
	Blocks   *ModuleList[*DecoderBlock]
	LN       *LayerNorm
	Head     *Linear
}

// NewDecoder returns a model with PyTorch's default initial values on the CPU.
func NewDecoder(c DecoderConfig, opts ...Option) (*Decoder, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	d := &Decoder{Config: c, Tok: NewEmbedding(c.Vocab, c.Width, opts...), Pos: NewEmbedding(c.Block, c.Width, opts...), Blocks: NewModuleList[*DecoderBlock]()}
	for range c.Layers {
		d.Blocks.Append(NewDecoderBlock(c.Width, c.Heads, c.Dropout, opts...))
	}
	d.LN = NewLayerNorm([]int{c.Width})
	d.Head = NewLinear(c.Width, c.Vocab, append(opts[:len(opts):len(opts)], NoBias())...)
	d.Register("tok", d.Tok)
	d.Register("pos", d.Pos)
	d.Register("blocks", d.Blocks)
	d.Register("ln", d.LN)
	d.Register("head", d.Head)
	return d, nil
}

// Forward maps tokens [n, positions] (int32 or int64), no more positions than Config.Block, to the logits of each next token,
// [n, positions, vocab].
func (d *Decoder) Forward(tokens *tensor.Tensor) *tensor.Tensor {
	defer d.Enter(tokens)()
	x := d.Tok.Forward(tokens)
	if x.Err() != nil {
		return x
	}
	x = through(x, x.Add(d.Pos.Weight.Narrow(0, 0, tokens.Size(-1))))
	for _, b := range d.Blocks.modules {
		x = through(x, b.Forward(x))
	}
	x = through(x, d.LN.Forward(x))
	return through(x, d.Head.Forward(x))
}
