package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/tensor"
)

// RNNConfig are the options of [NewLSTM] and [NewGRU]; the zero value has PyTorch's defaults.
type RNNConfig struct {
	Layers        int // 1 if 0; a layer reads the outputs of the one below
	Bidirectional bool
	BatchFirst    bool    // inputs and outputs [n, positions, features] instead of [positions, n, features]; states stay as they are
	Dropout       float64 // of the outputs of all layers but the last, in training mode
}

// recurrent is what LSTM and GRU share: the weights, and how layers and directions are put together.
type recurrent struct {
	Base
	Config RNNConfig
	name   string
	hidden int
	cells  []cellWeights // by layer, forwards before backwards
	gen    *tensor.Generator
}

// cellWeights are the parameters of a layer in a direction; the biases are nil without.
type cellWeights struct{ wih, whh, bih, bhh *tensor.Tensor }

// init makes the parameters, uniform in ±1/sqrt(hidden) as in PyTorch.
func (r *recurrent) init(name string, gates, in, hidden int, c RNNConfig, opts []Option) {
	o := apply(opts)
	c.Layers = max(c.Layers, 1)
	r.Config, r.name, r.hidden, r.gen = c, name, hidden, o.gen
	bound := 1 / math.Sqrt(float64(max(r.hidden, 1)))
	for layer := range r.Config.Layers {
		if layer > 0 {
			in = r.hidden * r.directions()
		}
		for d := range r.directions() {
			suffix := fmt.Sprintf("_l%d%s", layer, []string{"", "_reverse"}[d])
			param := func(name string, shape ...int) *tensor.Tensor {
				return r.RegisterParameter(name+suffix, uniform(o.gen, bound, shape...))
			}
			w := cellWeights{wih: param("weight_ih", gates*r.hidden, in), whh: param("weight_hh", gates*r.hidden, r.hidden)}
			if !o.noBias {
				w.bih, w.bhh = param("bias_ih", gates*r.hidden), param("bias_hh", gates*r.hidden)
			}
			r.cells = append(r.cells, w)
		}
	}
}

func (r *recurrent) directions() int {
	if r.Config.Bidirectional {
		return 2
	}
	return 1
}

// step is a cell: from the input's part of the gates [n, gates*hidden] and the states to the states that follow. The first
// state is the output.
type step func(gates *tensor.Tensor, states []*tensor.Tensor, w cellWeights) []*tensor.Tensor

// run goes through the sequence. states are [layers*directions, n, hidden] each, or nil for zeros; the final ones come back.
func (r *recurrent) run(x *tensor.Tensor, states []*tensor.Tensor, cell step) (*tensor.Tensor, []*tensor.Tensor) {
	if err := r.check(x, states); err != nil {
		bad := tensor.Failed(r.name, err, append([]*tensor.Tensor{x}, states...)...)
		return bad, slices.Repeat([]*tensor.Tensor{bad}, len(states))
	}
	if r.Config.BatchFirst {
		x = x.Transpose(0, 1)
	}
	final := make([][]*tensor.Tensor, len(states))
	for layer := range r.Config.Layers {
		var outs []*tensor.Tensor
		for d := range r.directions() {
			at := layer*r.directions() + d
			start := make([]*tensor.Tensor, len(states))
			for i, s := range states {
				if s == nil {
					start[i] = filled(x, x.DType(), 0, x.Size(1), r.hidden)
				} else {
					start[i] = s.Select(0, at)
				}
			}
			out, end := r.direction(x, start, r.cells[at], d == 1, cell)
			outs = append(outs, out)
			for i, s := range end {
				final[i] = append(final[i], s)
			}
		}
		x = outs[0]
		if len(outs) == 2 {
			x = tensor.Cat(2, outs...)
		}
		if layer+1 < r.Config.Layers && r.Config.Dropout > 0 {
			x = x.Dropout(r.Config.Dropout, r.Training(), r.gen)
		}
	}
	if r.Config.BatchFirst {
		x = x.Transpose(0, 1)
	}
	ends := make([]*tensor.Tensor, len(states))
	for i, f := range final {
		ends[i] = tensor.Stack(0, f...)
	}
	return x, ends
}

// direction goes through x [t, n, features] with one cell. The products with the inputs do not depend on one another, so they
// are one for all positions.
func (r *recurrent) direction(x *tensor.Tensor, states []*tensor.Tensor, w cellWeights, backwards bool, cell step) (*tensor.Tensor, []*tensor.Tensor) {
	gates := tensor.Linear(x, w.wih, w.bih)
	out := make([]*tensor.Tensor, x.Size(0))
	for i := range out {
		t := i
		if backwards {
			t = len(out) - 1 - i
		}
		states = cell(gates.Select(0, t), states, w)
		out[t] = states[0]
	}
	return tensor.Stack(0, out...), states
}

func (r *recurrent) check(x *tensor.Tensor, states []*tensor.Tensor) error {
	if x.Err() != nil {
		return x.Err()
	}
	s := x.Shape()
	if len(s) != 3 || s[0] == 0 || s[1] == 0 {
		return fmt.Errorf("the input has shape %v; it must have three dimensions, %s, and none of them 0", s, map[bool]string{true: "[n, positions, features]", false: "[positions, n, features]"}[r.Config.BatchFirst])
	}
	n := s[1]
	if r.Config.BatchFirst {
		n = s[0]
	}
	for _, h := range states {
		if h == nil || h.Err() != nil {
			continue
		}
		if want := []int{len(r.cells), n, r.hidden}; !slices.Equal(h.Shape(), want) {
			return fmt.Errorf("a state has shape %v; it must be %v, layers and directions, batch, hidden", h.Shape(), want)
		}
	}
	return nil
}

// LSTM is a stack of long short-term memories (Hochreiter and Schmidhuber, 1997). The parameters are PyTorch's: weight_ih_l0
// [4h, in], weight_hh_l0 [4h, h], bias_ih_l0 and bias_hh_l0 [4h] with the gates input, forget, cell, output; weight_ih_l0_reverse… for
// the other direction and …_l1 for the next layer.
type LSTM struct{ recurrent }

// NewLSTM returns a stack for inputs of in features with hidden features in each layer and direction, on the CPU.
func NewLSTM(in, hidden int, c RNNConfig, opts ...Option) *LSTM {
	l := &LSTM{}
	l.init("lstm", 4, in, hidden, c, opts)
	return l
}

// Forward is Run from zeros, without the final states.
func (l *LSTM) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer l.Enter(x)()
	y, _, _ := l.Run(x, nil, nil)
	return y
}

// Run returns the last layer's hidden states at all positions, [positions, n, hidden*directions] (BatchFirst: [n, positions, …]), and the final
// hidden and cell states of all layers, [layers*directions, n, hidden]. h and c are the first states; nil is zeros.
func (l *LSTM) Run(x, h, c *tensor.Tensor) (y, hn, cn *tensor.Tensor) {
	y, s := l.run(x, []*tensor.Tensor{h, c}, func(gates *tensor.Tensor, s []*tensor.Tensor, w cellWeights) []*tensor.Tensor {
		g := gates.Add(tensor.Linear(s[0], w.whh, w.bhh)).Chunk(4, 1)
		if len(g) != 4 {
			return []*tensor.Tensor{g[0], g[0]}
		}
		cell := g[1].Sigmoid().Mul(s[1]).Add(g[0].Sigmoid().Mul(g[2].Tanh()))
		return []*tensor.Tensor{g[3].Sigmoid().Mul(cell.Tanh()), cell}
	})
	return y, s[0], s[1]
}

// GRU is a stack of gated recurrent units (Cho et al., 2014). The parameters are PyTorch's, as those of [LSTM] with the gates reset,
// update, new.
type GRU struct{ recurrent }

// NewGRU returns a stack for inputs of in features with hidden features in each layer and direction, on the CPU.
func NewGRU(in, hidden int, c RNNConfig, opts ...Option) *GRU {
	g := &GRU{}
	g.init("gru", 3, in, hidden, c, opts)
	return g
}

// Forward is Run from zeros, without the final states.
func (g *GRU) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer g.Enter(x)()
	y, _ := g.Run(x, nil)
	return y
}

// Run returns the last layer's hidden states at all positions, [positions, n, hidden*directions] (BatchFirst: [n, positions, …]), and the final
// hidden states of all layers, [layers*directions, n, hidden]. h is the first state; nil is zeros.
func (g *GRU) Run(x, h *tensor.Tensor) (y, hn *tensor.Tensor) {
	y, s := g.run(x, []*tensor.Tensor{h}, func(gates *tensor.Tensor, s []*tensor.Tensor, w cellWeights) []*tensor.Tensor {
		a, b := gates.Chunk(3, 1), tensor.Linear(s[0], w.whh, w.bhh).Chunk(3, 1)
		if len(a) != 3 || len(b) != 3 {
			return []*tensor.Tensor{a[0].Add(b[0])}
		}
		reset, update := a[0].Add(b[0]).Sigmoid(), a[1].Add(b[1]).Sigmoid()
		candidate := a[2].Add(reset.Mul(b[2])).Tanh()
		return []*tensor.Tensor{candidate.Add(update.Mul(s[0].Sub(candidate)))}
	})
	return y, s[0]
}
