package nn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

func values(t *testing.T, x *tensor.Tensor) []float64 {
	t.Helper()
	vs, err := x.Detach().Float64s()
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, expected %v", what, got, want)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5*(1+math.Abs(want[i])) {
			t.Errorf("%s: %v, expected %v", what, got, want)
			return
		}
	}
}

func TestBatchNormStatistics(t *testing.T) {
	bn := nn.NewBatchNorm1d(2)
	s := tensor.NewScope(tensor.CPU())
	x := s.To(tensor.FromFloat32s([]float32{1, 10, 3, 30}, 2, 2))
	y := bn.Forward(x)
	// Means 2 and 20, biased variances 1 and 100, unbiased 2 and 200.
	near(t, "training", values(t, y), []float64{-1, -1, 1, 1})
	near(t, "running mean", values(t, bn.RunningMean), []float64{0.2, 2})
	near(t, "running variance", values(t, bn.RunningVar), []float64{0.9 + 0.2, 0.9 + 20})
	bn.Eval()
	y = bn.Forward(x)
	near(t, "evaluation", values(t, y), []float64{0.8 / math.Sqrt(1.1), 8 / math.Sqrt(20.9), 2.8 / math.Sqrt(1.1), 28 / math.Sqrt(20.9)})
	near(t, "running mean after evaluation", values(t, bn.RunningMean), []float64{0.2, 2})
	var names []string
	for _, b := range bn.NamedBuffers() {
		names = append(names, b.Name)
	}
	if len(names) != 3 || names[0] != "running_mean" || names[1] != "running_var" || names[2] != "num_batches_tracked" {
		t.Errorf("buffers %v", names)
	}
	near(t, "batches", values(t, bn.NamedBuffers()[2].Tensor), []float64{1})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	bn.Free()
}

func TestNormLayers(t *testing.T) {
	x := tensor.FromFloat32s([]float32{1, 3, -2, 2}, 2, 2)
	near(t, "layer norm", values(t, nn.NewLayerNorm([]int{2}, nn.WithEps(0)).Forward(x)), []float64{-1, 1, -1, 1})
	near(t, "rms norm", values(t, nn.NewRMSNorm([]int{2}, nn.WithEps(0)).Forward(x)), []float64{1 / math.Sqrt(5), 3 / math.Sqrt(5), -1, 1})
	near(t, "group norm", values(t, nn.NewGroupNorm(1, 2, nn.WithEps(0)).Forward(x)), []float64{-1, 1, -1, 1})
	for what, n := range map[string]int{"layer norm": nn.NewLayerNorm([]int{3, 4}).NumParameters(), "without bias": nn.NewLayerNorm([]int{24}, nn.NoNormBias()).NumParameters()} {
		if n != 24 {
			t.Errorf("%s has %d parameters, expected 24", what, n)
		}
	}
	if n := nn.NewGroupNorm(2, 4, nn.NoAffine()).NumParameters(); n != 0 {
		t.Errorf("%d parameters without affine", n)
	}
}

func TestEmbedding(t *testing.T) {
	e := nn.NewEmbeddingPadding(3, 2, 1)
	near(t, "padding row", values(t, e.Weight)[2:4], []float64{0, 0})
	index := tensor.FromInt64s([]int64{1, 2, 2}, 3)
	if err := e.Forward(index).Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	near(t, "gradient", values(t, e.Weight.Grad()), []float64{0, 0, 0, 0, 2, 2})
	if _, err := e.Forward(tensor.FromInt64s([]int64{3}, 1)).Float64s(); err == nil {
		t.Error("index 3 of 3 vectors is no error")
	}
}

// The layers take inputs of their own numbers of dimensions only, as PyTorch's.
func TestBatchNormRank(t *testing.T) {
	for _, tc := range []struct {
		layer *nn.BatchNorm
		shape []int
		want  string
	}{
		{nn.NewBatchNorm1d(2), []int{3, 2}, ""},
		{nn.NewBatchNorm1d(2), []int{3, 2, 4}, ""},
		{nn.NewBatchNorm1d(2), []int{3, 2, 4, 4}, "batch_norm1d at norm_test.go"},
		{nn.NewBatchNorm1d(2), []int{2}, "expected input [n, channels] or [n, channels, length], but got shape [2]"},
		{nn.NewBatchNorm2d(2), []int{3, 2, 4, 4}, ""},
		{nn.NewBatchNorm2d(2), []int{3, 2}, "batch_norm2d at norm_test.go"},
		{nn.NewBatchNorm2d(2), []int{3, 2, 4}, "expected input [n, channels, height, width], but got shape [3 2 4]"},
	} {
		err := tc.layer.Forward(tensor.Ones(tensor.CPU(), tensor.Float32, tc.shape...)).Err()
		if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v, want %q", tc.shape, err, tc.want)
		}
	}
}
