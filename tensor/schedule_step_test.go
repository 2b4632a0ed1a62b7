package tensor_test

import (
	"fmt"
	"strings"
	"testing"

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
	u := tensor.InPlaceUpdate{Name: "sgd", BodyKey: "sgd", Access: []ir.Access{ir.ReadWrite, ir.Read, ir.ReadWrite}, Scalars: []float64{0.01, 0.9},
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
		c := newClassifier(dev, 128, 32, 24, 16, 10)
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
		if want := map[bool]uint64{false: 27, true: 14}[fuse]; n != want {
			t.Errorf("fused %v: %d kernels, want %d", fuse, n, want)
		}
		if after.Programs != before.Programs || dev.Counts().Allocs != allocs {
			t.Errorf("fused %v: a step seen before compiled %d kernels and allocated %d buffers", fuse, after.Programs-before.Programs, dev.Counts().Allocs-allocs)
		}
	}
}

// TestChainIsOneKernel counts the kernels of a known graph of which only the end is kept.
func TestChainIsOneKernel(t *testing.T) {
	dev := null.New(null.Config{})
	defer dev.Close()
	x, row := tensor.Ones(dev, tensor.Float32, 64, 100), tensor.Ones(dev, tensor.Float16, 100)
	flush := func() tensor.LaunchStats {
		if err := tensor.Synchronize(dev); err != nil {
			t.Fatal(err)
		}
		return tensor.Launches(dev)
	}
	before := flush()
	s := tensor.NewScope(dev)
	y := s.To(x).Add(row).Tanh() // broadcast and cast
	z := y.Mul(y.AddScalar(1)).Cast(tensor.BFloat16).Neg()
	after := flush()
	if n := after.Launches - before.Launches; n != 1 {
		t.Errorf("%d kernels, want 1", n)
	}
	if n := after.Fused - before.Fused; n != after.Nodes-before.Nodes-1 {
		t.Errorf("%d of %d operators ran in another's kernel", n, after.Nodes-before.Nodes)
	}
	// A value that was fused away is computed when it is asked for, together with what it needs.
	before = after
	w := y.AddScalar(2)
	if after = flush(); after.Launches-before.Launches != 1 || w.Err() != nil || z.Err() != nil {
		t.Errorf("%d kernels to use a value that was fused away, want 1 (%v, %v)", after.Launches-before.Launches, w.Err(), z.Err())
	}
	// An operand that is overwritten takes it away.
	if err := x.CopyFrom(z); err != nil {
		t.Fatal(err)
	}
	flush()
	v := y.Exp()
	flush()
	wantText := "add was fused into the operators that use it"
	if err := v.Err(); err == nil || !strings.Contains(err.Error(), wantText) || !strings.Contains(err.Error(), "Keep") {
		t.Errorf("got error %v, want one with %q and the remedy", err, wantText)
	}
	_ = s.Close()
}

// BenchmarkTrainingStep is a step of a classifier of 784-512-256-10 at batch 128, fused and not.
func BenchmarkTrainingStep(b *testing.B) {
	for _, name := range []string{"cpu", "opencl", "vulkan"} {
		dev, err := backend.Open(name)
		if err != nil {
			continue
		}
		defer dev.Close()
		c := newClassifier(dev, 128, 784, 512, 256, 10)
		for _, fuse := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/fused=%v", name, fuse), func(b *testing.B) {
				setFusion(b, dev, fuse)
				for range 2 {
					if err := c.step(); err != nil {
						b.Fatal(err)
					}
				}
				before := tensor.Launches(dev).Launches
				for b.Loop() {
					if err := c.step(); err != nil {
						b.Fatal(err)
					}
				}
				if err := tensor.Synchronize(dev); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(tensor.Launches(dev).Launches-before)/float64(b.N), "launches/op")
			})
		}
	}
}
