package amp_test

import (
	"slices"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// TestCheckpoint: a checkpointed block gives the same gradients, bit by bit, with and without autocast, with dropout in it, and takes less memory.
func TestCheckpoint(t *testing.T) {
	type result struct {
		grads [][]float32
		peak  int64
	}
	run := func(checkpoint bool, options ...amp.Option) result {
		gen := tensor.NewGenerator(3)
		g := nn.WithGenerator(gen)
		var blocks []*nn.Sequential
		var params []*tensor.Tensor
		for range 6 {
			b := nn.NewSequential(nn.NewLinear(64, 256, g), nn.NewTanh(), nn.NewDropout(0.25, g), nn.NewLinear(256, 64, g), nn.NewLayerNorm([]int{64}))
			blocks = append(blocks, b)
			params = append(params, b.Parameters()...)
		}
		x := tensor.Normal(tensor.CPU(), gen, tensor.Float32, 0, 1, 1024, 64).SetRequiresGrad(true)
		if err := tensor.Synchronize(tensor.CPU()); err != nil {
			t.Fatal(err)
		}
		tensor.ResetPeakMemory(tensor.CPU())
		before := tensor.MemoryStats(tensor.CPU()).AllocatedBytes.Current
		s := tensor.NewScope(tensor.CPU())
		var loss *tensor.Tensor
		amp.Autocast(s, func() {
			y := s.To(x)
			for _, b := range blocks {
				if checkpoint {
					y = tensor.Checkpoint(func(in ...*tensor.Tensor) *tensor.Tensor { return b.Forward(in[0]) }, []*tensor.Generator{gen}, y)
				} else {
					y = b.Forward(y)
				}
			}
			loss = y.Square().Mean()
		}, options...)
		if err := loss.Backward(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		r := result{peak: tensor.MemoryStats(tensor.CPU()).AllocatedBytes.Peak - before}
		for _, p := range append(params, x) {
			v, err := p.Grad().Float32s()
			if err != nil {
				t.Fatal(err)
			}
			r.grads = append(r.grads, v)
		}
		return r
	}
	for name, options := range map[string][]amp.Option{"float32": {amp.Enabled(false)}, "float16": {amp.DType(tensor.Float16)}, "bfloat16": nil} {
		want, got := run(false, options...), run(true, options...)
		for i := range want.grads {
			if !slices.Equal(got.grads[i], want.grads[i]) {
				t.Errorf("%s: gradient %d differs", name, i)
			}
		}
		if got.peak*10 > want.peak*8 {
			t.Errorf("%s: %d bytes with checkpoints, %d without", name, got.peak, want.peak)
		}
	}
	s := tensor.NewScope(tensor.CPU())
	x := s.To(tensor.Ones(tensor.CPU(), tensor.Float32, 2).SetRequiresGrad(true))
	y := tensor.Checkpoint(func(in ...*tensor.Tensor) *tensor.Tensor { return in[0].Square() }, nil, x).Sum()
	if _, err := tensor.Grad([]*tensor.Tensor{y}, []*tensor.Tensor{x}); err == nil {
		t.Error("Grad through a checkpoint gives no error")
	}
	_ = s.Close()
}
