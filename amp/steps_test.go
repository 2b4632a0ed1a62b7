package amp_test

import (
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

// TestKernelsOfAWholeStep counts on a device that runs nothing: unscaling, checking, clipping and updating take as many kernels
// for a thousand parameters as for one, on a device that binds 16 buffers.
func TestKernelsOfAWholeStep(t *testing.T) {
	count := func(params, size int) int64 {
		caps := ir.InterpCaps()
		caps.MaxBuffers = 16
		dev := null.New(null.Config{Caps: &caps})
		defer dev.Close()
		var ps []*tensor.Tensor
		for range params {
			p := tensor.Zeros(dev, tensor.Float32, size).SetRequiresGrad(true)
			p.SetGrad(tensor.Ones(dev, tensor.Float32, size))
			ps = append(ps, p)
		}
		opt := optim.NewAdam(ps, optim.AdamConfig{})
		g := amp.NewGradScaler(amp.GradScalerConfig{})
		step := func() int64 {
			if err := tensor.Synchronize(dev); err != nil {
				t.Fatal(err)
			}
			before := dev.Counts().Launches
			g.Scale(tensor.Scalar(1))
			if err := g.Unscale(opt); err != nil {
				t.Fatal(err)
			}
			if _, err := optim.ClipGradNorm(ps, 1, optim.ClipOptions{}); err != nil {
				t.Fatal(err)
			}
			if skipped, err := g.Step(opt); skipped || err != nil {
				t.Fatalf("skipped %t, %v", skipped, err)
			}
			if err := g.Update(); err != nil {
				t.Fatal(err)
			}
			if err := tensor.Synchronize(dev); err != nil {
				t.Fatal(err)
			}
			return dev.Counts().Launches - before
		}
		step() // makes the optimizer's state
		return step()
	}
	one := count(1, 100)
	if one == 0 || one > 12 {
		t.Errorf("a step of one parameter takes %d kernels", one)
	}
	for _, n := range []int{2, 16, 33, 200, 1000} {
		if got := count(n, 100); got != one {
			t.Errorf("a step of %d parameters takes %d kernels, of one %d", n, got, one)
		}
	}
}
