package nn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// TestLayersOnDevices compares outputs and gradients of the composed layers with the CPU's, which the other tests hold against
// formulas.
func TestLayersOnDevices(t *testing.T) {
	gen := func() nn.Option { return nn.WithGenerator(tensor.NewGenerator(7)) }
	x, _ := input(1, 2, 2, 6)
	pad := tensor.FromBools([]bool{false, false, false, true}, 2, 2)
	layers := map[string]func(dev backend.Device) (*tensor.Tensor, []nn.Named){
		"encoder layer": func(dev backend.Device) (*tensor.Tensor, []nn.Named) {
			l := nn.NewTransformerEncoderLayer(6, 2, nn.EncoderConfig{FeedForward: 5, NormFirst: true}, gen())
			l.Eval()
			moved(t, l.To(dev))
			return l.Encode(x.To(dev), nn.AttentionMasks{Causal: true, KeyPadding: pad.To(dev)}), l.NamedParameters()
		},
		"lstm": func(dev backend.Device) (*tensor.Tensor, []nn.Named) {
			l := nn.NewLSTM(6, 3, nn.RNNConfig{}, gen())
			moved(t, l.To(dev))
			return l.Forward(x.To(dev)), l.NamedParameters()
		},
	}
	for _, info := range backend.List() {
		if info.API == "cpu" || info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		dev, err := backend.Open(info.String())
		if err != nil {
			t.Fatal(err)
		}
		for name, layer := range layers {
			got, want := results(t, layer, dev), results(t, layer, tensor.CPU())
			for part, w := range want {
				for i := range w {
					if !(math.Abs(float64(got[part][i]-w[i])) <= 1e-5*(1+math.Abs(float64(w[i])))) {
						t.Errorf("%s: %s: %s[%d] is %v, on the CPU %v", info, name, part, i, got[part][i], w[i])
						break
					}
				}
			}
		}
		dev.Close()
	}
}

func moved(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// results returns a layer's output and gradients on a device.
func results(t *testing.T, layer func(backend.Device) (*tensor.Tensor, []nn.Named), dev backend.Device) map[string][]float32 {
	t.Helper()
	y, params := layer(dev)
	out := map[string][]float32{}
	read := func(name string, x *tensor.Tensor) {
		v, err := x.Detach().CPU().Float32s()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = v
	}
	read("output", y)
	moved(t, y.Square().Sum().Backward())
	for _, p := range params {
		read(p.Name, p.Tensor.Grad())
	}
	return out
}
