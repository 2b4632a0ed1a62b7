package amp_test

import (
	"fmt"
	"math"
	"strings"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// network is a classifier of three layers, and the gradient of its loss for the first layer's activations: what flows
// through the backward pass in the lower precision.
type network struct {
	first, second, third *nn.Linear
	x, y                 *tensor.Tensor
}

// newNetwork makes a network that classifies 1024 points well and with confidence, as one does that has been trained: its
// classes are its own answers. Gradients of such a network are small.
func newNetwork() (*network, error) {
	gen := tensor.NewGenerator(1)
	n := &network{first: nn.NewLinear(8, 64, nn.WithGenerator(gen)), second: nn.NewLinear(64, 64, nn.WithGenerator(gen)), third: nn.NewLinear(64, 4, nn.WithGenerator(gen))}
	if err := n.third.Weight.CopyFrom(n.third.Weight.Detach().MulScalar(60)); err != nil {
		return nil, err
	}
	n.x = tensor.Normal(tensor.CPU(), gen, tensor.Float32, 0, 1, 1024, 8)
	_, out := n.forward(n.x)
	n.y = out.Detach().Argmax(1, false)
	return n, n.y.Err()
}

func (n *network) forward(x *tensor.Tensor) (hidden, out *tensor.Tensor) {
	hidden = n.first.Forward(x).Tanh()
	return hidden, n.third.Forward(n.second.Forward(hidden).Tanh())
}

// gradient returns the gradient for the activations in a dtype and with a scaler.
func (n *network) gradient(d tensor.DType, scaler *amp.GradScaler) ([]float64, error) {
	s := tensor.NewScope(tensor.CPU())
	defer s.Close()
	var hidden, loss *tensor.Tensor
	amp.Autocast(s, func() {
		var out *tensor.Tensor
		hidden, out = n.forward(s.To(n.x))
		loss = nn.CrossEntropy(out, n.y)
	}, amp.DType(d), amp.Enabled(d != tensor.Float32))
	g, err := tensor.Grad([]*tensor.Tensor{scaler.Scale(loss)}, []*tensor.Tensor{hidden})
	if err != nil {
		return nil, err
	}
	return g[0].Detach().Cast(tensor.Float64).Float64s()
}

// histogram counts magnitudes by powers of ten: less than 1e-9 to more than 100. Zeros and infinities are apart.
type histogram struct {
	zero, infinite, all int
	decades             [13]int
}

func count(vs []float64) histogram {
	h := histogram{all: len(vs)}
	for _, v := range vs {
		switch a := math.Abs(v); {
		case a == 0:
			h.zero++
		case math.IsInf(a, 0) || math.IsNaN(a):
			h.infinite++
		default:
			h.decades[min(max(int(math.Floor(math.Log10(a)))+10, 0), 12)]++
		}
	}
	return h
}

func (h histogram) bar(n int) string {
	percent := 100 * float64(n) / float64(h.all)
	return fmt.Sprintf("%3.0f%% %-13s", percent, strings.Repeat("#", int(math.Round(percent/4))))
}

// gradientTable shows the magnitudes of one gradient in four ways.
func gradientTable() (string, error) {
	n, err := newNetwork()
	if err != nil {
		return "", err
	}
	off := amp.NewGradScaler(amp.GradScalerConfig{Disabled: true})
	on := amp.NewGradScaler(amp.GradScalerConfig{})
	var hs []histogram
	for _, c := range []struct {
		dtype  tensor.DType
		scaler *amp.GradScaler
	}{{tensor.Float32, off}, {tensor.Float16, off}, {tensor.Float16, on}, {tensor.BFloat16, off}} {
		vs, err := n.gradient(c.dtype, c.scaler)
		if err != nil {
			return "", err
		}
		hs = append(hs, count(vs))
	}
	var sb strings.Builder
	line := func(name string, pick func(h histogram) int) {
		row := fmt.Sprintf("%-10s", name)
		for _, h := range hs {
			row += h.bar(pick(h))
		}
		sb.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	sb.WriteString("magnitude float32           float16           float16 scaled    bfloat16\n")
	line("0", func(h histogram) int { return h.zero })
	for d := range hs[0].decades {
		name := fmt.Sprintf("1e%+03d", d-10)
		if d == 0 {
			name = "less"
		}
		line(name, func(h histogram) int { return h.decades[d] })
	}
	line("infinite", func(h histogram) int { return h.infinite })
	return sb.String(), nil
}

// Example_gradientMagnitudes shows why float16 needs a scale and bfloat16 does not: without it gradients below 6e-8 become
// zero.
func Example_gradientMagnitudes() {
	table, err := gradientTable()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(table)
	// Output:
	// magnitude float32           float16           float16 scaled    bfloat16
	// 0           0%               25% ######         3% #              0%
	// less       12% ###            0%                0%               12% ###
	// 1e-09       7% ##             0%                0%                7% ##
	// 1e-08       9% ##             2%                0%                9% ##
	// 1e-07      12% ###           12% ###            2% #             12% ###
	// 1e-06      15% ####          15% ####           3% #             15% ####
	// 1e-05      18% #####         18% #####          4% #             18% #####
	// 1e-04      22% #####         22% #####          7% ##            22% #####
	// 1e-03       6% ##             6% ##             9% ##             6% ##
	// 1e-02       0%                0%               12% ###            0%
	// 1e-01       0%                0%               16% ####           0%
	// 1e+00       0%                0%               19% #####          0%
	// 1e+01       0%                0%               21% #####          0%
	// 1e+02       0%                0%                3% #              0%
	// infinite    0%                0%                0%                0%
}

// ExampleExplain shows what autocast does to a small network: its products run in bfloat16 on the CPU, softmax in float32.
func ExampleExplain() {
	gen := tensor.NewGenerator(1)
	model := nn.NewSequential(nn.NewLinear(8, 64, nn.WithGenerator(gen)), nn.NewReLU(), nn.NewLinear(64, 4, nn.WithGenerator(gen)))
	forward := func(x *tensor.Tensor) *tensor.Tensor { return model.Forward(x).LogSoftmax(1) }
	report, err := amp.Explain(forward, tensor.Ones(tensor.CPU(), tensor.Float32, 16, 8))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Rows {
		fmt.Println(r.Op, r.Result, r.Casts)
	}
	// Output:
	// linear bfloat16 [x float32→bfloat16 w float32→bfloat16 b float32→bfloat16]
	// relu bfloat16 []
	// linear bfloat16 [w float32→bfloat16 b float32→bfloat16]
	// log_softmax float32 [x bfloat16→float32]
}
