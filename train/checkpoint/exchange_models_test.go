package checkpoint_test

import (
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// This file has the models and layers of testdata/pytorch/exchange.py, written as one writes a PyTorch model down in Go: the same
// modules under the same names.

// model is what the exchange needs of a model.
type model interface {
	nn.Component
	StateDict() map[string]*tensor.Tensor
}

// named are the inputs or outputs of a case.
type named = map[string]*tensor.Tensor

// exchangeCase is a model in two sizes and what it computes.
type exchangeCase struct {
	name         string
	narrow, full func() model
	call         func(m model, in named) named
}

func exchangeCases() []exchangeCase {
	both := func(name string, m func() model, call func(model, named) named) exchangeCase {
		return exchangeCase{name, m, m, call}
	}
	return []exchangeCase{
		{"mlp", func() model { return mlp(24, 16) }, func() model { return mlp(512, 256) }, forward},
		{"cnn", func() model { return cnn(4, 6, 12) }, func() model { return cnn(32, 64, 128) }, forward},
		{"gpt", func() model { return newGPT(16, 12, 2) }, func() model { return newGPT(128, 64, 4) }, forward},
		{"decoder", func() model { return decoder(16, 12, 2) }, func() model { return decoder(128, 64, 4) }, forward},
		both("batch_norm", func() model { return nn.NewBatchNorm2d(5) }, batchNorm),
		both("lstm", func() model { return nn.NewLSTM(6, 5, nn.RNNConfig{Layers: 2, Bidirectional: true, BatchFirst: true}) },
			func(m model, in named) named {
				y, h, c := m.(*nn.LSTM).Run(in["x"], in["h"], in["c"])
				return named{"y": y, "h": h, "c": c}
			}),
		both("gru", func() model { return nn.NewGRU(6, 5, nn.RNNConfig{Layers: 2, Bidirectional: true}) },
			func(m model, in named) named {
				y, h := m.(*nn.GRU).Run(in["x"], in["h"])
				return named{"y": y, "h": h}
			}),
		both("attention", func() model { return nn.NewMultiheadAttention(8, 2, nn.MultiheadConfig{}) }, attend),
		both("attention_kv", func() model {
			return nn.NewMultiheadAttention(8, 4, nn.MultiheadConfig{KDim: 6, VDim: 3, BatchFirst: true})
		}, attend),
		both("encoder_layer", func() model { return nn.NewTransformerEncoderLayer(8, 2, nn.EncoderConfig{FeedForward: 12}) }, encode),
		both("encoder_layer_pre", func() model {
			return nn.NewTransformerEncoderLayer(8, 2, nn.EncoderConfig{FeedForward: 12, Activation: (*tensor.Tensor).GELU, BatchFirst: true, NormFirst: true})
		}, encode),
		both("conv_transpose", func() model {
			return nn.NewSequential(
				nn.NewConvTranspose2d(4, 6, nn.Square(3), tensor.ConvTransposeOptions{Stride: []int{2}, Padding: []int{1}, OutputPadding: []int{1}, Groups: 2}),
				nn.NewGroupNorm(3, 6),
				nn.NewConv2d(6, 4, nn.Kernel{3, 1}, tensor.ConvOptions{Groups: 2, Dilation: []int{2}}),
				&flattenImages{}, nn.NewConv1d(4, 3, nn.Square(5), tensor.ConvOptions{Stride: []int{2}}))
		}, forward),
	}
}

func forward(m model, in named) named { return named{"y": m.(nn.Module).Forward(in["x"])} }

// batchNorm evaluates, and then trains a batch: its outputs include the statistics after it.
func batchNorm(m model, in named) named {
	bn := m.(*nn.BatchNorm)
	bn.Eval()
	out := named{"eval": bn.Forward(in["x"])}
	bn.Train()
	out["train"] = bn.Forward(in["x"])
	for _, b := range bn.NamedBuffers() {
		out[b.Name] = b.Tensor
	}
	return out
}

func attend(m model, in named) named {
	a, masks := m.(*nn.MultiheadAttention), nn.AttentionMasks{KeyPadding: in["padding"], Mask: in["mask"]}
	return named{"y": a.Attend(in["q"], in["k"], in["v"], masks), "weights": a.Weights(in["q"], in["k"], masks)}
}

func encode(m model, in named) named {
	return named{"y": m.(*nn.TransformerEncoderLayer).Encode(in["x"], nn.AttentionMasks{KeyPadding: in["padding"]})}
}

func mlp(a, b int) *nn.Sequential {
	return nn.NewSequential(nn.NewFlatten(), nn.NewLinear(784, a), nn.NewReLU(), nn.NewLinear(a, b), nn.NewReLU(), nn.NewLinear(b, 10))
}

func cnn(a, b, c int) *nn.Sequential {
	conv := func(in, out int) nn.Module {
		return nn.NewConv2d(in, out, nn.Square(3), tensor.ConvOptions{Padding: []int{1}})
	}
	pool := func() nn.Module { return nn.NewMaxPool2d(tensor.MaxPoolOptions{Kernel: []int{2}}) }
	return nn.NewSequential(conv(1, a), nn.NewReLU(), pool(), conv(a, b), nn.NewReLU(), pool(),
		nn.NewFlatten(), nn.NewLinear(b*49, c), nn.NewReLU(), nn.NewLinear(c, 10))
}

func decoder(width, block, layers int) *nn.Decoder {
	d, err := nn.NewDecoder(nn.DecoderConfig{Vocab: 65, Block: block, Width: width, Heads: 4, Layers: layers})
	if err != nil {
		panic(err) // the sizes are constants
	}
	return d
}

// gpt is a decoder that keeps each kind of layer in a list of its own, and its mask in a buffer.
type gpt struct {
	nn.Base
	tok, pos           *nn.Embedding
	ln1, ln2           *nn.ModuleList[*nn.LayerNorm]
	qkv, proj, fc, out *nn.ModuleList[*nn.Linear]
	ln                 *nn.LayerNorm
	head               *nn.Linear
	mask               *tensor.Tensor
}

const gptHeads = 4

func newGPT(d, t, layers int) *gpt {
	norms := func() *nn.ModuleList[*nn.LayerNorm] {
		l := nn.NewModuleList[*nn.LayerNorm]()
		for range layers {
			l.Append(nn.NewLayerNorm([]int{d}))
		}
		return l
	}
	linears := func(in, out int) *nn.ModuleList[*nn.Linear] {
		l := nn.NewModuleList[*nn.Linear]()
		for range layers {
			l.Append(nn.NewLinear(in, out))
		}
		return l
	}
	g := &gpt{tok: nn.NewEmbedding(65, d), pos: nn.NewEmbedding(t, d), ln1: norms(), ln2: norms(),
		qkv: linears(d, 3*d), proj: linears(d, d), fc: linears(d, 4*d), out: linears(4*d, d), ln: nn.NewLayerNorm([]int{d}), head: nn.NewLinear(d, 65)}
	g.Register("tok", g.tok)
	g.Register("pos", g.pos)
	g.Register("ln1", g.ln1)
	g.Register("ln2", g.ln2)
	g.Register("qkv", g.qkv)
	g.Register("proj", g.proj)
	g.Register("fc", g.fc)
	g.Register("out", g.out)
	g.Register("ln", g.ln)
	g.Register("head", g.head)
	g.mask = g.RegisterBuffer("mask", tensor.Ones(tensor.CPU(), tensor.Uint8, t, t).Triu(1).Cast(tensor.Bool))
	return g
}

// Forward maps tokens [n, t] to logits [n, t, 65].
func (g *gpt) Forward(tokens *tensor.Tensor) *tensor.Tensor {
	x := g.tok.Forward(tokens)
	n, t := tokens.Size(0), tokens.Size(1)
	x = x.Add(g.pos.Weight.Narrow(0, 0, t))
	seen := g.mask.Narrow(0, 0, t).Narrow(1, 0, t).LogicalNot() // PyTorch's buffer says what is hidden
	for k := range g.qkv.Len() {
		part := func(i int) *tensor.Tensor {
			y := g.qkv.At(k).Forward(g.ln1.At(k).Forward(x)).Chunk(3, -1)[i]
			return y.Reshape(n, t, gptHeads, -1).Transpose(1, 2)
		}
		y := tensor.ScaledDotProductAttention(part(0), part(1), part(2), tensor.AttentionOptions{Mask: seen})
		x = x.Add(g.proj.At(k).Forward(y.Transpose(1, 2).Flatten(2, 3)))
		x = x.Add(g.out.At(k).Forward(g.fc.At(k).Forward(g.ln2.At(k).Forward(x)).GELUTanh()))
	}
	return g.head.Forward(g.ln.Forward(x))
}

// flattenImages turns [n, c, h, w] into [n, c, h*w], PyTorch's Flatten(2).
type flattenImages struct{ nn.Base }

func (*flattenImages) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Flatten(2, -1) }
