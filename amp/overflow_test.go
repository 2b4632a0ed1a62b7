package amp

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/tensor"
)

// namedOptimizer knows its parameters' names.
type namedOptimizer struct{ *fakeOptimizer }

func (n namedOptimizer) ParameterName(i int) string { return fmt.Sprintf("layer%d.weight", i) }

func TestLastOverflow(t *testing.T) {
	nan := float32(math.NaN())
	g := NewGradScaler(GradScalerConfig{})
	opt := namedOptimizer{withGrads([]float32{1, 2}, []float32{inf, nan, -inf}, nil, []float32{nan})}
	if bad, err := g.LastOverflow(); bad != nil || err != nil {
		t.Errorf("before any step: %v, %v", bad, err)
	}
	g.NameParameter(opt.params[3], "head.bias")
	scaleOne(t, g)
	if skipped, err := g.Step(opt); !skipped || err != nil {
		t.Fatalf("Step: %v, %v", skipped, err)
	}
	if err := g.Update(); err != nil {
		t.Fatal(err)
	}
	bad, err := g.LastOverflow()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"parameter 1 (layer1.weight), float32 [3]: 2 infinite, 1 NaN", "parameter 3 (head.bias), float32 [1]: 0 infinite, 1 NaN"}
	if got := strings.Split(fmt.Sprint(bad), ", parameter"); len(bad) != 2 || bad[0].String() != want[0] || bad[1].String() != want[1] {
		t.Errorf("got %q, want %q", got, want)
	}
	opt.params[1].ZeroGrad()
	if _, err := g.LastOverflow(); !errors.Is(err, ErrGradientsGone) {
		t.Errorf("after ZeroGrad: %v", err)
	}
}

func TestWarnAfter(t *testing.T) {
	var got []Warning
	g := NewGradScaler(GradScalerConfig{WarnAfter: 2, Warn: func(w Warning) { got = append(got, w) }})
	opt := withGrads([]float32{1})
	for _, v := range []float32{inf, 1, inf, inf, inf, inf, inf, 1} {
		scaleOne(t, g)
		opt.setGrad(v)
		if _, err := g.Step(opt); err != nil {
			t.Fatal(err)
		}
		if err := g.Update(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []Warning{{2, 8192}, {4, 2048}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("warnings %v, want %v", got, want)
	}
	off := NewGradScaler(GradScalerConfig{Warn: func(Warning) { t.Error("a warning without WarnAfter") }})
	for range 5 {
		scaleOne(t, off)
		opt.setGrad(inf)
		off.Step(opt)
		off.Update()
	}
}

// uncomparable cannot be a key of a map.
type uncomparable struct{ params []*tensor.Tensor }

func (u uncomparable) Parameters() []*tensor.Tensor { return u.params }
func (u uncomparable) Step() error                  { return nil }

func TestScalerBadOptimizers(t *testing.T) {
	for _, opt := range []Optimizer{nil, uncomparable{}} {
		g := NewGradScaler(GradScalerConfig{})
		scaleOne(t, g)
		if _, err := g.Step(opt); !errors.Is(err, ErrOptimizer) {
			t.Errorf("%T: Step gives %v", opt, err)
		}
		if err := g.Unscale(opt); !errors.Is(err, ErrOptimizer) {
			t.Errorf("%T: Unscale gives %v", opt, err)
		}
	}
}

// TestScaleOfHalfLoss: a float16 loss would be infinite times 65536.
func TestScaleOfHalfLoss(t *testing.T) {
	g := NewGradScaler(GradScalerConfig{})
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		scaled := g.Scale(tensor.Scalar(2).Cast(d))
		if v, err := scaled.Item(); err != nil || v != 131072 || scaled.DType() != tensor.Float32 {
			t.Errorf("2 in %s scales to %v (%s), %v", d, v, scaled.DType(), err)
		}
	}
}

// TestKernelsPerStep counts on a device that runs nothing: the kernels of unscaling and checking do not depend on the
// number or the sizes of the parameters.
func TestKernelsPerStep(t *testing.T) {
	count := func(params, size int) int64 {
		dev := null.New(null.Config{})
		defer dev.Close()
		opt := &fakeOptimizer{}
		for range params {
			p := tensor.Zeros(dev, tensor.Float32, size).SetRequiresGrad(true)
			p.SetGrad(tensor.Ones(dev, tensor.Float32, size))
			opt.params = append(opt.params, p)
		}
		if err := tensor.Synchronize(dev); err != nil {
			t.Fatal(err)
		}
		g := NewGradScaler(GradScalerConfig{})
		g.Scale(tensor.Scalar(1))
		before := dev.Counts()
		if _, err := g.Step(opt); err != nil {
			t.Fatal(err)
		}
		if err := g.Update(); err != nil {
			t.Fatal(err)
		}
		after := dev.Counts()
		if reads := after.Reads - before.Reads; reads != 1 {
			t.Errorf("%d parameters: %d reads", params, reads)
		}
		return after.Launches - before.Launches
	}
	want := count(1, 10)
	if want > 2 {
		t.Errorf("%d kernels for one parameter", want)
	}
	for _, n := range []int{2, 7, 32, 33, 100} {
		for _, size := range []int{1, 4096} {
			if got := count(n, size); got != want {
				t.Errorf("%d parameters of %d elements take %d kernels, one takes %d", n, size, got, want)
			}
		}
	}
}
