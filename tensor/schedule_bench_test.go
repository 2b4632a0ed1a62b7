package tensor_test

import (
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/tensor"
)

// BenchmarkHost is the host's work for one operator: recording, scheduling and launching on a device that runs nothing.
func BenchmarkHost(b *testing.B) {
	for _, fuse := range []bool{false, true} {
		name := map[bool]string{false: "unfused", true: "fused"}[fuse]
		b.Run("chain/"+name, func(b *testing.B) {
			dev := null.New(null.Config{NoRecord: true})
			defer dev.Close()
			setFusion(b, dev, fuse)
			x, w := tensor.Ones(dev, tensor.Float32, 64, 256), tensor.Ones(dev, tensor.Float32, 256)
			hostBench(b, dev, func(s *tensor.Scope) {
				y := s.To(x)
				for range 20 {
					a := y.Mul(w)
					c := a.AddScalar(1)
					a.Free()
					y = c.Tanh()
					c.Free()
				}
			})
		})
		b.Run("mlp/"+name, func(b *testing.B) {
			dev := null.New(null.Config{NoRecord: true})
			defer dev.Close()
			setFusion(b, dev, fuse)
			net := newPerceptron(dev, 16, 64, 32, 10)
			hostBench(b, dev, func(s *tensor.Scope) {
				if err := net.step(s); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkSmall is a thousand additions of 4 floats on the CPU, each needing the one before, where each result is held until the end.
func BenchmarkSmall(b *testing.B) {
	dev := tensor.CPU()
	x, w := tensor.Ones(dev, tensor.Float32, 4), tensor.Ones(dev, tensor.Float32, 4)
	b.ReportAllocs()
	for b.Loop() {
		s := tensor.NewScope(dev)
		y := s.To(x)
		for range 1000 {
			y = y.Add(w)
		}
		if err := tensor.Synchronize(dev); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func setFusion(t testing.TB, dev backend.Device, on bool) {
	t.Helper()
	if err := tensor.SetFusion(dev, on); err != nil {
		t.Fatal(err)
	}
}

func hostBench(b *testing.B, dev *null.Device, f func(s *tensor.Scope)) {
	once := func() {
		s := tensor.NewScope(dev)
		f(s)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	once()
	before := tensor.Launches(dev)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
	after := tensor.Launches(dev)
	nodes := float64(after.Nodes - before.Nodes)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/nodes, "ns/operator")
	b.ReportMetric(float64(after.Launches-before.Launches)/float64(b.N), "launches/op")
	b.ReportMetric(nodes/float64(b.N), "operators/op")
}

// perceptron is a classifier of two layers with a momentum update.
type perceptron struct {
	dev            *null.Device
	w1, b1, w2, b2 *tensor.Tensor
	x, y           *tensor.Tensor
}

func newPerceptron(dev *null.Device, batch, in, hid, out int) *perceptron {
	leaf := func(shape ...int) *tensor.Tensor {
		return tensor.Ones(dev, tensor.Float32, shape...).SetRequiresGrad(true)
	}
	return &perceptron{dev, leaf(hid, in), leaf(hid), leaf(out, hid), leaf(out), tensor.Ones(dev, tensor.Float32, batch, in), tensor.Zeros(dev, tensor.Float32, batch, out)}
}

func (p *perceptron) step(s *tensor.Scope) error {
	h := tensor.Linear(tensor.Linear(s.To(p.x), p.w1, p.b1).ReLU(), p.w2, p.b2)
	d := h.LogSoftmax(-1).Sub(s.To(p.y))
	loss := d.Mul(d).Mean()
	if err := loss.Backward(); err != nil {
		return err
	}
	if err := tensor.Flush(p.dev); err != nil {
		return err
	}
	for _, q := range []*tensor.Tensor{p.w1, p.b1, p.w2, p.b2} {
		q.ZeroGrad()
	}
	return nil
}
