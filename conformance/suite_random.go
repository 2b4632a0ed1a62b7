package conformance

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// randomCases hold the random streams against the CPU's, and their moments against the distributions.
func randomCases(e *env) ([]testCase, error) {
	if e.opts.Golden != nil {
		return nil, nil
	}
	n := 1 << 16
	if e.opts.Quick {
		n = 1 << 14
	}
	type draw func(dev backend.Device, g *tensor.Generator, n int) *tensor.Tensor
	type dist struct {
		name           string
		draw           draw
		mean, variance float64
		tolerance      float64 // of a value against the CPU's, absolute and relative; 0 is exact
	}
	dists := []dist{
		{"uniform", func(dev backend.Device, g *tensor.Generator, n int) *tensor.Tensor {
			return tensor.Uniform(dev, g, tensor.Float32, 0, 1, n)
		}, 0.5, 1.0 / 12, 0},
		{"uniform_range", func(dev backend.Device, g *tensor.Generator, n int) *tensor.Tensor {
			return tensor.Uniform(dev, g, tensor.Float32, -2, 2, n)
		}, 0, 16.0 / 12, 0},
		// The normal numbers come from logarithms and sines, which devices round differently.
		{"normal", func(dev backend.Device, g *tensor.Generator, n int) *tensor.Tensor {
			return tensor.Normal(dev, g, tensor.Float32, 0, 1, n)
		}, 0, 1, 4e-6},
		{"bernoulli", func(dev backend.Device, g *tensor.Generator, n int) *tensor.Tensor {
			return tensor.Bernoulli(dev, g, 0.3, n)
		}, 0.3, 0.21, 0},
	}
	var out []testCase
	for _, d := range dists {
		read := func(dev backend.Device, seed, offset uint64, n int) ([]float64, error) {
			g := tensor.NewGenerator(seed)
			g.SetState(seed, offset)
			t := d.draw(dev, g, n)
			defer t.Free()
			return t.CPU().Float64s()
		}
		out = append(out,
			testCase{name: "stream/" + d.name, op: d.name, run: func(x *run) error {
				for _, at := range []struct {
					seed, offset uint64
					n            int
				}{{0, 0, 1000}, {x.opts.Seed + 1, 0, 1}, {1 << 40, 7, 4099}, {3, 1 << 33, 257}} {
					want, err := read(tensor.CPU(), at.seed, at.offset, at.n)
					if err != nil {
						return err
					}
					got, err := read(x.dev, at.seed, at.offset, at.n)
					if err != nil {
						return err
					}
					if err := Close(fmt.Sprintf("seed %d, offset %d", at.seed, at.offset), got, want, d.tolerance, d.tolerance); err != nil {
						return err
					}
				}
				return nil
			}},
			testCase{name: "moments/" + d.name, op: d.name, run: func(x *run) error {
				v, err := read(x.dev, x.opts.Seed+12, 0, n)
				if err != nil {
					return err
				}
				return moments(v, d.mean, d.variance)
			}},
			testCase{name: "seeds/" + d.name, op: d.name, run: func(x *run) error {
				a, err := read(x.dev, 1, 0, 256)
				if err != nil {
					return err
				}
				b, err := read(x.dev, 2, 0, 256)
				if err != nil {
					return err
				}
				same := 0
				for i := range a {
					if a[i] == b[i] {
						same++
					}
				}
				if same == len(a) {
					return fmt.Errorf("seeds 1 and 2 give the same %d numbers", same)
				}
				return nil
			}})
	}
	return out, nil
}

// moments holds mean and variance of a sample within five standard errors.
func moments(v []float64, mean, variance float64) error {
	n := float64(len(v))
	m, s := 0.0, 0.0
	for _, x := range v {
		m += x / n
	}
	for _, x := range v {
		s += (x - m) * (x - m) / n
	}
	if tol := 5 * math.Sqrt(variance/n); math.Abs(m-mean) > tol {
		return fmt.Errorf("the mean of %d numbers is %v, want %v within %.2g", len(v), m, mean, tol)
	}
	// The fourth moment of these distributions is at most 3 variances squared.
	if tol := 5 * variance * math.Sqrt(2/n) * 1.5; math.Abs(s-variance) > tol {
		return fmt.Errorf("the variance of %d numbers is %v, want %v within %.2g", len(v), s, variance, tol)
	}
	return nil
}
