package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// varied gives parameters values that tell elements apart, biases and normalisations too.
func varied(t *testing.T, params []nn.Named) {
	t.Helper()
	for i, p := range params {
		v, _ := input(float64(3*i), p.Tensor.Shape()...)
		scale := 0.6
		if strings.Contains(p.Name, "norm") {
			v, scale = v.AddScalar(2), 0.5
		}
		if err := p.Tensor.CopyFrom(v.MulScalar(scale)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMultiheadAttention(t *testing.T) {
	const n, l, m, e, heads = 2, 3, 4, 6, 2
	never := math.Inf(-1)
	padding := func(b, j int) bool { return b == 1 && j >= 2 }
	floats := func(i, j int) float64 { return 0.3*float64(i) - 0.2*float64(j) }
	hidden := func(i, j int) bool { return (i+j)%3 == 2 }
	pads, bools, adds := make([]bool, n*m), make([]bool, l*m), make([]float32, l*m)
	for j := range m {
		for b := range n {
			pads[b*m+j] = padding(b, j)
		}
		for i := range l {
			bools[i*m+j], adds[i*m+j] = hidden(i, j), float32(floats(i, j))
		}
	}
	pad, boolMask, floatMask := tensor.FromBools(pads, n, m), tensor.FromBools(bools, l, m), tensor.FromFloat32s(adds, l, m)
	for _, c := range []struct {
		name   string
		config nn.MultiheadConfig
		masks  nn.AttentionMasks
		bias   func(b, i, j int) float64
	}{
		{"batch first", nn.MultiheadConfig{BatchFirst: true}, nn.AttentionMasks{}, func(b, i, j int) float64 { return 0 }},
		{"positions first, other features", nn.MultiheadConfig{KDim: 5, VDim: 3}, nn.AttentionMasks{}, func(b, i, j int) float64 { return 0 }},
		{"causal", nn.MultiheadConfig{}, nn.AttentionMasks{Causal: true}, func(b, i, j int) float64 {
			if j > i {
				return never
			}
			return 0
		}},
		{"padding and causal", nn.MultiheadConfig{}, nn.AttentionMasks{KeyPadding: pad, Causal: true}, func(b, i, j int) float64 {
			if j > i || padding(b, j) {
				return never
			}
			return 0
		}},
		{"float mask and padding", nn.MultiheadConfig{BatchFirst: true}, nn.AttentionMasks{Mask: floatMask, KeyPadding: pad}, func(b, i, j int) float64 {
			if padding(b, j) {
				return never
			}
			return floats(i, j)
		}},
		{"bool mask of each head", nn.MultiheadConfig{BatchFirst: true}, nn.AttentionMasks{Mask: tensor.Must(boolMask.Unsqueeze(0).Repeat(n*heads, 1, 1))}, func(b, i, j int) float64 {
			if hidden(i, j) {
				return never
			}
			return 0
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			layer := nn.NewMultiheadAttention(e, heads, c.config)
			varied(t, layer.NamedParameters())
			kdim, vdim := e, e
			want := []string{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}
			if c.config.KDim > 0 {
				kdim, vdim = c.config.KDim, c.config.VDim
				want = append([]string{"q_proj_weight", "k_proj_weight", "v_proj_weight"}, want[1:]...)
			}
			if got := names(layer.NamedParameters()); !slices.Equal(got, want) {
				t.Errorf("parameters %v, PyTorch has %v", got, want)
			}
			first := func(b, p, d int) []int {
				if c.config.BatchFirst {
					return []int{b, p, d}
				}
				return []int{p, b, d}
			}
			batch := func(x []float64, p int) []float64 {
				if c.config.BatchFirst {
					return x
				}
				return exchange(x, p, n)
			}
			q, qv := input(1, first(n, l, e)...)
			k, kv := input(2, first(n, m, kdim)...)
			v, vv := input(3, first(n, m, vdim)...)
			weights := []float64{}
			y := layer.Attend(q, k, v, c.masks)
			checkModule(t, layer.NamedParameters(), y, func(p named64) []float64 {
				wq, wk, wv := p["q_proj_weight"], p["k_proj_weight"], p["v_proj_weight"]
				if w := p["in_proj_weight"]; w != nil {
					wq, wk, wv = w[:e*e], w[e*e:2*e*e], w[2*e*e:]
				}
				b := p["in_proj_bias"]
				o, mean := refAttention(refLinear(batch(qv, l), wq, b[:e], e), refLinear(batch(kv, m), wk, b[e:2*e], kdim), refLinear(batch(vv, m), wv, b[2*e:], vdim), n, l, m, e, heads, c.bias)
				if len(weights) == 0 {
					weights = mean
				}
				out := refLinear(o, p["out_proj.weight"], p["out_proj.bias"], e)
				if !c.config.BatchFirst {
					out = exchange(out, n, l)
				}
				return out
			})
			got, err := layer.Weights(q, k, c.masks).Detach().Float64s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range weights {
				if !(math.Abs(got[i]-weights[i]) < 1e-5) {
					t.Fatalf("weight %d is %v, want %v", i, got[i], weights[i])
				}
			}
		})
	}
}

func TestMultiheadAttentionErrors(t *testing.T) {
	x := tensor.Ones(tensor.CPU(), tensor.Float32, 3, 2, 6)
	layer := nn.NewMultiheadAttention(6, 2, nn.MultiheadConfig{})
	for _, c := range []struct {
		name, want string
		y          *tensor.Tensor
	}{
		{"heads", "width 6 is no multiple of 4 heads", nn.NewMultiheadAttention(6, 4, nn.MultiheadConfig{}).Forward(x)},
		{"dimensions", "it must have three dimensions", layer.Forward(x.Select(0, 0))},
		{"mask", "the mask has shape [2 2]; it must be [3 3] or [4 3 3]", layer.Attend(x, x, x, nn.AttentionMasks{Mask: tensor.FromBools(make([]bool, 4), 2, 2)})},
		{"padding", "it must be bool [2 3]", layer.Attend(x, x, x, nn.AttentionMasks{KeyPadding: tensor.FromBools(make([]bool, 6), 3, 2)})},
		{"error of before", "an earlier error", layer.Forward(tensor.Failed("before", errEarlier, x))},
	} {
		if err := c.y.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTransformerEncoderLayer(t *testing.T) {
	const n, l, e, heads, ff = 2, 3, 4, 2, 5
	want := []string{"self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias",
		"linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias", "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}
	for _, first := range []bool{false, true} {
		layer := nn.NewTransformerEncoderLayer(e, heads, nn.EncoderConfig{FeedForward: ff, NormFirst: first, BatchFirst: true, Activation: (*tensor.Tensor).Tanh})
		if got := names(layer.NamedParameters()); !slices.Equal(got, want) {
			t.Errorf("parameters %v, PyTorch has %v", got, want)
		}
		varied(t, layer.NamedParameters())
		layer.Eval() // no dropout
		x, xv := input(4, n, l, e)
		checkModule(t, layer.NamedParameters(), layer.Encode(x, nn.AttentionMasks{Causal: true}), func(p named64) []float64 {
			attend := func(x []float64) []float64 {
				w, b := p["self_attn.in_proj_weight"], p["self_attn.in_proj_bias"]
				o, _ := refAttention(refLinear(x, w[:e*e], b[:e], e), refLinear(x, w[e*e:2*e*e], b[e:2*e], e), refLinear(x, w[2*e*e:], b[2*e:], e), n, l, l, e, heads,
					func(_, i, j int) float64 {
						if j > i {
							return math.Inf(-1)
						}
						return 0
					})
				return refLinear(o, p["self_attn.out_proj.weight"], p["self_attn.out_proj.bias"], e)
			}
			feed := func(x []float64) []float64 {
				h := refLinear(x, p["linear1.weight"], p["linear1.bias"], e)
				for i := range h {
					h[i] = math.Tanh(h[i])
				}
				return refLinear(h, p["linear2.weight"], p["linear2.bias"], ff)
			}
			norm := func(name string, x []float64) []float64 {
				return refLayerNorm(x, p[name+".weight"], p[name+".bias"])
			}
			if first {
				y := refAdd(xv, attend(norm("norm1", xv)))
				return refAdd(y, feed(norm("norm2", y)))
			}
			y := norm("norm1", refAdd(xv, attend(xv)))
			return norm("norm2", refAdd(y, feed(y)))
		})
	}
	layer := nn.NewTransformerEncoderLayer(e, heads, nn.EncoderConfig{})
	if s := layer.Linear1.Weight.Shape(); layer.Config.Dropout != 0.1 || s[0] != 2048 {
		t.Errorf("defaults: dropout %v and %d features, PyTorch's are 0.1 and 2048", layer.Config.Dropout, s[0])
	}
}

// TestDecoderCausal changes a token: the logits before it must not change. The values are held against PyTorch's by package
// conformance.
func TestDecoderCausal(t *testing.T) {
	d, err := nn.NewDecoder(nn.DecoderConfig{Vocab: 11, Block: 6, Width: 8, Heads: 2, Layers: 2}, nn.WithGenerator(tensor.NewGenerator(1)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.Forward(tensor.FromInt64s([]int64{1, 2, 3, 4, 5}, 1, 5)).Detach().Float32s()
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Forward(tensor.FromInt64s([]int64{1, 2, 3, 9, 5}, 1, 5)).Detach().Float32s()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a[:33], b[:33]) {
		t.Error("a later token changes earlier logits")
	}
	if slices.Equal(a[33:44], b[33:44]) || slices.Equal(a[44:], b[44:]) {
		t.Error("a token does not change its own or later logits")
	}
	if err := d.Forward(tensor.FromInt64s(make([]int64, 7), 1, 7)).Err(); err == nil {
		t.Error("a sequence longer than the block is no error")
	}
	for _, c := range []nn.DecoderConfig{{}, {Vocab: 5, Block: 4, Width: 8, Heads: 3}, {Vocab: 5, Block: 4, Width: 8, Heads: 2, Dropout: 1}} {
		if _, err := nn.NewDecoder(c); err == nil {
			t.Errorf("configuration %+v is no error", c)
		}
	}
}
