package amp_test

import (
	"strings"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// block is a module of somebody else's, whose layers have names below its own.
type block struct {
	nn.Base
	fc, out *nn.Linear
}

func newBlock() *block {
	gen := nn.WithGenerator(tensor.NewGenerator(2))
	b := &block{fc: nn.NewLinear(4, 4, gen), out: nn.NewLinear(4, 4, gen)}
	b.Register("fc", b.fc)
	b.Register("out", b.out)
	return b
}

func (b *block) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer b.Enter(x)()
	return b.out.Forward(b.fc.Forward(x).MulScalar(1e30).Square())
}

// TestTraceNamesModules: a trace reports the layer's path, in the forward pass and in the gradient.
func TestTraceNamesModules(t *testing.T) {
	m := nn.NewSequential(nn.NewLinear(4, 4, nn.WithGenerator(tensor.NewGenerator(1))), newBlock())
	s := tensor.NewScope(tensor.CPU())
	defer s.Close()
	x := s.To(tensor.Ones(tensor.CPU(), tensor.Float32, 2, 4))
	var found []amp.Anomaly
	found = amp.Trace(s, func() { m.Forward(x) })
	if len(found) == 0 || found[0].Op != "square" || found[0].Module != "1" || !strings.Contains(found[0].String(), "square in 1 at module_test.go:") {
		t.Errorf("forward: %v", found)
	}
	gen := nn.WithGenerator(tensor.NewGenerator(1))
	deep := nn.NewSequential(nn.NewReLU(), nn.NewResidual(nn.NewSequential(nn.NewLinear(4, 4, gen), nn.NewReLU())))
	found = amp.Trace(s, func() {
		y := deep.Forward(x)
		if err := y.BackwardWith(tensor.Full(tensor.CPU(), tensor.Float32, 3e38, 2, 4)); err != nil {
			t.Fatal(err)
		}
	})
	if len(found) == 0 || !found[0].Backward || found[0].Module != "1.0" {
		t.Errorf("backward: %v", found)
	}
	if found := amp.Trace(s, func() { x.Sub(x).Log() }); len(found) != 1 || found[0].Module != "" {
		t.Errorf("outside of layers: %v", found)
	}
}

// TestExplainFusedCasts: the cast of an activation between layers is no pass over memory, and the one of a weight is.
func TestExplainFusedCasts(t *testing.T) {
	gen := nn.WithGenerator(tensor.NewGenerator(1))
	m := nn.NewSequential(nn.NewLinear(64, 64, gen), nn.NewLayerNorm([]int{64}), nn.NewLinear(64, 64, gen))
	report, err := amp.Explain(func(x *tensor.Tensor) *tensor.Tensor { return m.Forward(x).Tanh().Exp() }, tensor.Ones(tensor.CPU(), tensor.Float32, 64, 64))
	if err != nil {
		t.Fatal(err)
	}
	var exp, weight string
	for _, r := range report.Rows {
		for _, c := range r.Casts {
			switch {
			case r.Op == "exp":
				exp = c.String()
			case r.Op == "linear" && c.Operand == "w" && r.Module == "2":
				weight = c.String()
			}
		}
	}
	if exp != "x bfloat16→float32 (fused)" || weight != "w float32→bfloat16" {
		t.Errorf("the activation's cast is %q, the weight's %q:\n%s", exp, weight, report)
	}
}
