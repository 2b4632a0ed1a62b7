package amp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

func TestTraceForward(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	x := s.To(tensor.FromFloat32s([]float32{1, -1, 1e6, 2}, 4))
	mask := s.To(tensor.FromBools([]bool{true, false, false, false}, 4))
	var big *tensor.Tensor
	for name, c := range map[string]struct {
		f    func()
		want []string
	}{
		"exp of 1e6":        {func() { x.Exp().Neg().Sigmoid() }, []string{"exp at trace_test.go"}},
		"nan":               {func() { x.Log() }, []string{"log at trace_test.go"}},
		"only where first":  {func() { x.Sqrt().AddScalar(1).Mul(x).Sum() }, []string{"sqrt at trace_test.go"}},
		"two":               {func() { x.Sqrt(); x.Log() }, []string{"sqrt at", "log at"}},
		"a cast":            {func() { x.Cast(tensor.Float16) }, []string{"cast at trace_test.go"}},
		"meant":             {func() { x.MaskedFill(mask, -1/zero()).Softmax(0) }, nil},
		"finite":            {func() { x.Tanh().Sum() }, nil},
		"integers":          {func() { mask.Cast(tensor.Int64).Sum() }, nil},
		"cast by autocast":  {func() { amp.Autocast(s, func() { big = x.MatMul(x) }, amp.DType(tensor.Float16)) }, []string{"cast of autocast at trace_test.go"}},
		"in a scope inside": {func() { inner := s.NewScope(); inner.To(x).Log(); inner.Close() }, []string{"log at"}},
		"division":          {func() { x.Div(x.Sub(x)) }, []string{"div at"}},
	} {
		found := amp.Trace(s, c.f)
		if name == "cast by autocast" && len(found) > 1 {
			found = found[:1] // both operands are x
		}
		ok := len(found) == len(c.want)
		for i := range c.want {
			ok = ok && strings.HasPrefix(found[i].String(), c.want[i])
		}
		if !ok {
			t.Errorf("%s: found %v, want %q", name, found, c.want)
		}
	}
	if err := big.Err(); err != nil {
		t.Error(err)
	}
	x.Log()
	if found := amp.Trace(s, func() {}); found != nil {
		t.Errorf("outside the trace: %v", found)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func zero() float64 { return 0 }

// TestTraceBackward: a scale past float16's range makes the gradient of the product infinite; the trace names the forward line.
func TestTraceBackward(t *testing.T) {
	onEachDevice(t, func(t *testing.T, s *tensor.Scope) {
		w := matrix(s, 2).Detach().SetRequiresGrad(true)
		x := matrix(s, 2)
		scaler := amp.NewGradScaler(amp.GradScalerConfig{InitScale: 1 << 20})
		found := amp.Trace(s, func() {
			var loss *tensor.Tensor
			amp.Autocast(s, func() { loss = x.MatMul(w).Sum() }, amp.DType(tensor.Float16))
			if err := scaler.Scale(loss).Backward(); err != nil {
				t.Fatal(err)
			}
		})
		if len(found) != 1 || !found[0].Backward || found[0].File != "trace_test.go" || found[0].DType != tensor.Float16 || found[0].Infs != 4 {
			t.Errorf("found %+v", found)
		}
	})
}

func TestExplain(t *testing.T) {
	gen := tensor.NewGenerator(1)
	shared := nn.NewLinear(4, 4, nn.WithGenerator(gen))
	m := nn.NewSequential(shared, nn.NewReLU(), shared)
	x := tensor.Ones(tensor.CPU(), tensor.Float32, 2, 4)
	forward := func(x *tensor.Tensor) *tensor.Tensor {
		y := m.Forward(x).Softmax(1)
		s := y.Scope()
		amp.Autocast(s, func() { y = y.MatMul(y.T()) }, amp.Enabled(false))
		return y.Sum()
	}
	report, err := amp.Explain(forward, x, amp.DType(tensor.BFloat16))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range report.Rows {
		got = append(got, fmt.Sprintf("%s %v %s %q %v", r.Op, r.Operands, r.Result, r.Why, r.Casts))
	}
	for i, want := range []string{
		`linear [bfloat16 bfloat16 bfloat16] bfloat16 "product: lower precision" [x float32→bfloat16 w float32→bfloat16 b float32→bfloat16]`,
		`relu [bfloat16] bfloat16 "as is" []`,
		`linear [bfloat16 bfloat16 bfloat16] bfloat16 "product: lower precision" [w float32→bfloat16 (cached) b float32→bfloat16 (cached)]`,
		`softmax [float32] float32 "needs range or sums: float32" [x bfloat16→float32]`,
		`transpose [float32] invalid "as is" []`,
		`matmul [float32 float32] float32 "autocast is off here" []`,
		`sum [float32] float32 "needs range or sums: float32" []`,
	} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("row %d differs, want\n%s\ngot\n%s", i, want, strings.Join(got, "\n"))
		}
	}
	if len(got) != 7 {
		t.Errorf("%d rows: %s", len(got), strings.Join(got, "\n"))
	}
	if text := report.String(); !strings.Contains(text, "trace_test.go:") || strings.Count(text, "\n") != 8 {
		t.Errorf("the table is\n%s", text)
	}
	if _, err := amp.Explain(func(x *tensor.Tensor) *tensor.Tensor {
		return x.MatMul(tensor.Ones(tensor.CPU(), tensor.Float32, 3, 1))
	}, x); err == nil {
		t.Error("a forward pass that fails is explained without an error")
	}
}
