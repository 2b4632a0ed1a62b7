package tensor_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// classifier is a network of linear layers with its momentum buffers.
type classifier struct {
	dev       backend.Device
	w, b, m   []*tensor.Tensor // m: of w and b in turns
	x, target *tensor.Tensor
}

func newClassifier(dev backend.Device, batch int, sizes ...int) *classifier {
	gen := tensor.NewGenerator(1)
	c := &classifier{dev: dev}
	for i := 1; i < len(sizes); i++ {
		c.w = append(c.w, tensor.Uniform(dev, gen, tensor.Float32, -0.05, 0.05, sizes[i], sizes[i-1]).SetRequiresGrad(true))
		c.b = append(c.b, tensor.Zeros(dev, tensor.Float32, sizes[i]).SetRequiresGrad(true))
		c.m = append(c.m, tensor.Zeros(dev, tensor.Float32, sizes[i], sizes[i-1]), tensor.Zeros(dev, tensor.Float32, sizes[i]))
	}
	last := sizes[len(sizes)-1]
	c.x = tensor.Uniform(dev, gen, tensor.Float32, 0, 1, batch, sizes[0])
	c.target = tensor.Uniform(dev, gen, tensor.Float32, 0, 2/float64(last), batch, last) // probabilities: no check waits for the device
	return c
}

// step is a training step: forward, cross entropy, backward, update.
func (c *classifier) step() (err error) {
	s := tensor.NewScope(c.dev)
	h := s.To(c.x)
	for i := range c.w {
		if h = tensor.Linear(h, c.w[i], c.b[i]); i+1 < len(c.w) {
			h = h.ReLU()
		}
	}
	loss := h.LogSoftmax(-1).Mul(s.To(c.target)).Sum(-1).Neg().Mean()
	if err := loss.Backward(); err != nil {
		return err
	}
	u := tensor.InPlaceUpdate{Name: "sgd", BodyKey: "sgd", Access: []ir.Access{ir.ReadWrite, ir.Read, ir.ReadWrite}, Scalars: []float32{0.01, 0.9},
		Body: func(b *ir.Builder, v, _, k []ir.Value) ([]ir.Value, ir.Value) {
			m := b.Add(b.Mul(v[2], k[1]), v[1])
			return []ir.Value{b.Sub(v[0], b.Mul(m, k[0])), m}, nil
		}}
	for i := range c.w {
		u.Tensors = append(u.Tensors, []*tensor.Tensor{c.w[i], c.w[i].Grad(), c.m[2*i]}, []*tensor.Tensor{c.b[i], c.b[i].Grad(), c.m[2*i+1]})
	}
	if err := tensor.UpdateInPlace(u); err != nil {
		return err
	}
	for i := range c.w {
		c.w[i].ZeroGrad()
		c.b[i].ZeroGrad()
	}
	return s.Close()
}

// TestSteadyStep counts the work of a training step that was seen before: no compilation, no allocation of device memory, and no more
// kernels than are known to be needed.
func TestSteadyStep(t *testing.T) {
	for _, fuse := range []bool{false, true} {
		dev := null.New(null.Config{})
		defer dev.Close()
		setFusion(t, dev, fuse)
		c := newClassifier(dev, 16, 32, 24, 16, 10)
		for range 3 {
			if err := c.step(); err != nil {
				t.Fatal(err)
			}
		}
		dev.ResetLaunches()
		before, allocs := tensor.Launches(dev), dev.Counts().Allocs
		if err := c.step(); err != nil {
			t.Fatal(err)
		}
		after := tensor.Launches(dev)
		var names []string
		for _, l := range dev.Launches() {
			names = append(names, l.Kernel.Name)
		}
		n := after.Launches - before.Launches
		t.Logf("fused %v: %d operators, %d kernels: %v", fuse, after.Nodes-before.Nodes, n, names)
		if after.Programs != before.Programs || dev.Counts().Allocs != allocs {
			t.Errorf("fused %v: a step seen before compiled %d kernels and allocated %d buffers", fuse, after.Programs-before.Programs, dev.Counts().Allocs-allocs)
		}
	}
}

var _ = slices.Contains[[]int]

func TestStepTimes(t *testing.T) {
	for _, name := range []string{"cpu", "opencl", "vulkan"} {
		dev, err := backend.Open(name)
		if err != nil {
			continue
		}
		var best [2]time.Duration
		var counts [2]uint64
		c := newClassifier(dev, 128, 784, 512, 256, 10)
		for round := range 4 {
			for i, fuse := range []bool{false, true} {
				setFusion(t, dev, fuse)
				n := 10
				if round == 0 {
					n = 1
				}
				l := tensor.Launches(dev).Launches
				start := time.Now()
				for range n {
					_ = c.step()
				}
				_ = tensor.Synchronize(dev)
				d := time.Since(start) / time.Duration(n)
				counts[i] = (tensor.Launches(dev).Launches - l) / uint64(n)
				if round == 1 || d < best[i] {
					best[i] = d
				}
			}
		}
		fmt.Fprintln(os.Stderr, name, counts, best, float64(best[0])/float64(best[1]))
		dev.Close()
	}
}
