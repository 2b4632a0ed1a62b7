package nn_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

var errEarlier = errors.New("an earlier error")

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// refRecurrent returns the outputs [t, n, h*directions] of a stack, x being [t, n, in]; cell changes the states of one row.
func refRecurrent(p named64, x []float64, steps, n, in, h, layers, directions int, cell func(gx, gh, h, c []float64)) []float64 {
	for layer := range layers {
		y := make([]float64, steps*n*h*directions)
		for d := range directions {
			suffix := fmt.Sprintf("_l%d%s", layer, []string{"", "_reverse"}[d])
			hs, cs := make([]float64, n*h), make([]float64, n*h)
			for i := range hs {
				at := (layer*directions+d)*n*h + i
				hs[i], cs[i] = p["h0"][at], p["c0"][at]
			}
			for i := range steps {
				t := i
				if d == 1 {
					t = steps - 1 - i
				}
				gx := refLinear(x[t*n*in:(t+1)*n*in], p["weight_ih"+suffix], p["bias_ih"+suffix], in)
				gh := refLinear(hs, p["weight_hh"+suffix], p["bias_hh"+suffix], h)
				g := len(gx) / n
				for r := range n {
					cell(gx[r*g:(r+1)*g], gh[r*g:(r+1)*g], hs[r*h:(r+1)*h], cs[r*h:(r+1)*h])
					copy(y[((t*n+r)*directions+d)*h:], hs[r*h:(r+1)*h])
				}
			}
		}
		x, in = y, h*directions
	}
	return x
}

func refLSTMCell(gx, gh, h, c []float64) {
	n := len(h)
	gate := func(k, i int) float64 { return gx[k*n+i] + gh[k*n+i] }
	for i := range h {
		c[i] = sigmoid(gate(1, i))*c[i] + sigmoid(gate(0, i))*math.Tanh(gate(2, i))
		h[i] = sigmoid(gate(3, i)) * math.Tanh(c[i])
	}
}

func refGRUCell(gx, gh, h, _ []float64) {
	n := len(h)
	for i := range h {
		r, z := sigmoid(gx[i]+gh[i]), sigmoid(gx[n+i]+gh[n+i])
		h[i] = (1-z)*math.Tanh(gx[2*n+i]+r*gh[2*n+i]) + z*h[i]
	}
}

func TestRecurrent(t *testing.T) {
	const steps, n, in, h = 3, 2, 4, 3
	for _, lstm := range []bool{true, false} {
		for _, c := range []nn.RNNConfig{{}, {Layers: 2, Bidirectional: true}, {Layers: 2, BatchFirst: true, Dropout: 0.5}} {
			t.Run(fmt.Sprintf("lstm=%v,%+v", lstm, c), func(t *testing.T) {
				layers, directions := max(c.Layers, 1), 1
				if c.Bidirectional {
					directions = 2
				}
				shape := []int{steps, n, in}
				if c.BatchFirst {
					shape = []int{n, steps, in}
				}
				x, xv := input(1, shape...)
				if c.BatchFirst {
					xv = exchange(xv, n, steps)
				}
				h0, h0v := input(2, layers*directions, n, h)
				c0, c0v := input(3, layers*directions, n, h)
				var y, hn *tensor.Tensor
				var params []nn.Named
				cell := refGRUCell
				if lstm {
					m := nn.NewLSTM(in, h, c)
					m.Eval()
					params, cell = m.NamedParameters(), refLSTMCell
					varied(t, params)
					y, hn, _ = m.Run(x, h0, c0)
				} else {
					m := nn.NewGRU(in, h, c)
					m.Eval()
					params = m.NamedParameters()
					varied(t, params)
					y, hn = m.Run(x, h0)
				}
				if first := names(params)[:4]; !slices.Equal(first, []string{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
					t.Errorf("first parameters %v", first)
				}
				if !slices.Equal(hn.Shape(), []int{layers * directions, n, h}) {
					t.Errorf("final state %v", hn.Shape())
				}
				last, err := hn.Select(0, layers*directions-directions).Detach().Float32s()
				if err != nil {
					t.Fatal(err)
				}
				out := y
				if c.BatchFirst {
					out = y.Transpose(0, 1)
				}
				end, err := out.Select(0, steps-1).Narrow(1, 0, h).Detach().Contiguous().Float32s()
				if err != nil || !slices.Equal(last, end) {
					t.Errorf("final state of the last layer %v, %v; its last output %v", last, err, end)
				}
				checkModule(t, params, y, func(p named64) []float64 {
					p["h0"], p["c0"] = h0v, c0v
					out := refRecurrent(p, xv, steps, n, in, h, layers, directions, cell)
					if c.BatchFirst {
						out = exchange(out, steps, n)
					}
					return out
				})
			})
		}
	}
}

func TestRecurrentDefaults(t *testing.T) {
	m := nn.NewLSTM(5, 4, nn.RNNConfig{Bidirectional: true}, nn.NoBias(), nn.WithGenerator(tensor.NewGenerator(2)))
	want := []string{"weight_ih_l0", "weight_hh_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse"}
	if got := names(m.NamedParameters()); !slices.Equal(got, want) {
		t.Errorf("parameters %v, PyTorch has %v", got, want)
	}
	for name, v := range valuesOf(t, m.NamedParameters()) {
		for _, x := range v {
			if math.Abs(x) > 0.5 {
				t.Errorf("%s has %v, outside ±1/sqrt(4)", name, x)
			}
		}
	}
	x, _ := input(1, 2, 3, 5)
	zeros := tensor.Zeros(tensor.CPU(), tensor.Float32, 2, 3, 4)
	a, err := m.Forward(x).Detach().Float32s()
	if err != nil {
		t.Fatal(err)
	}
	y, _, _ := m.Run(x, zeros, zeros)
	if b, err := y.Detach().Float32s(); err != nil || !slices.Equal(a, b) {
		t.Errorf("from zeros %v, %v; from nothing %v", b, err, a)
	}
	for _, c := range []struct {
		want string
		y    *tensor.Tensor
	}{
		{"it must have three dimensions, [positions, n, features]", m.Forward(x.Select(0, 0))},
		{"a state has shape [2 3 4]; it must be [1 3 4]", func() *tensor.Tensor { y, _ := nn.NewGRU(5, 4, nn.RNNConfig{}).Run(x, zeros); return y }()},
		{"an earlier error", m.Forward(tensor.Failed("before", errEarlier, x))},
	} {
		if err := c.y.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
