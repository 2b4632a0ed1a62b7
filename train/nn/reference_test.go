package nn_test

import (
	"math"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// This file has plain float64 formulas of layers and a comparison of outputs and gradients with them.

// named64 are parameters by name, in float64.
type named64 map[string][]float64

func valuesOf(t *testing.T, params []nn.Named) named64 {
	t.Helper()
	out := named64{}
	for _, p := range params {
		v, err := p.Tensor.Detach().CPU().Float64s()
		if err != nil {
			t.Fatal(err)
		}
		out[p.Name] = v
	}
	return out
}

// weighted is the sum whose gradients are compared: it tells the elements apart.
func weighted(v []float64) float64 {
	sum := 0.0
	for i, x := range v {
		sum += x * math.Sin(float64(i)+1)
	}
	return sum
}

// checkModule compares y with the reference, and the gradients of parameters with differences of the reference.
func checkModule(t *testing.T, params []nn.Named, y *tensor.Tensor, ref func(named64) []float64) {
	t.Helper()
	p := valuesOf(t, params)
	want := ref(p)
	got, err := y.Detach().Float64s()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-5*(1+math.Abs(want[i]))) {
			t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	coef := make([]float32, len(want))
	for i := range coef {
		coef[i] = float32(math.Sin(float64(i) + 1))
	}
	if err := y.Mul(tensor.FromFloat32s(coef, y.Shape()...)).Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	for _, n := range params {
		if n.Tensor.Grad() == nil {
			t.Errorf("%s has no gradient", n.Name)
			continue
		}
		grad, err := n.Tensor.Grad().Float64s()
		if err != nil {
			t.Fatal(err)
		}
		v := p[n.Name]
		for i := 0; i < len(v); i += 1 + len(v)/12 {
			const h = 1e-5
			at := v[i]
			v[i] = at + h
			up := weighted(ref(p))
			v[i] = at - h
			down := weighted(ref(p))
			v[i] = at
			if d := (up - down) / (2 * h); !(math.Abs(grad[i]-d) <= 2e-4*(1+math.Abs(d))) {
				t.Errorf("gradient of %s[%d] is %v, by differences %v", n.Name, i, grad[i], d)
			}
		}
	}
}

// refLinear returns x w^T + b for rows of in features.
func refLinear(x, w, b []float64, in int) []float64 {
	rows, out := len(x)/in, len(w)/in
	y := make([]float64, rows*out)
	for r := range rows {
		for o := range out {
			if b != nil {
				y[r*out+o] = b[o]
			}
			for i := range in {
				y[r*out+o] += x[r*in+i] * w[o*in+i]
			}
		}
	}
	return y
}

func refLayerNorm(x, w, b []float64) []float64 {
	d := len(w)
	y := make([]float64, len(x))
	for r := 0; r < len(x); r += d {
		mean, variance := 0.0, 0.0
		for _, v := range x[r : r+d] {
			mean += v / float64(d)
		}
		for _, v := range x[r : r+d] {
			variance += (v - mean) * (v - mean) / float64(d)
		}
		for i := range d {
			y[r+i] = (x[r+i]-mean)/math.Sqrt(variance+1e-5)*w[i] + b[i]
		}
	}
	return y
}

func refAdd(a, b []float64) []float64 {
	y := make([]float64, len(a))
	for i := range a {
		y[i] = a[i] + b[i]
	}
	return y
}

// refAttention returns the outputs before the last projection, [n, l, e], and the weights averaged over the heads, [n, l, m], for
// projected q [n, l, e] and k and v [n, m, e]; bias is added to the score of a query and a key.
func refAttention(q, k, v []float64, n, l, m, e, heads int, bias func(b, i, j int) float64) (out, mean []float64) {
	out, mean = make([]float64, n*l*e), make([]float64, n*l*m)
	d := e / heads
	for b := range n {
		for h := range heads {
			for i := range l {
				w, sum := make([]float64, m), 0.0
				for j := range m {
					s := 0.0
					for c := range d {
						s += q[(b*l+i)*e+h*d+c] * k[(b*m+j)*e+h*d+c]
					}
					w[j] = math.Exp(s/math.Sqrt(float64(d)) + bias(b, i, j))
					sum += w[j]
				}
				for j := range m {
					mean[(b*l+i)*m+j] += w[j] / sum / float64(heads)
					for c := range d {
						out[(b*l+i)*e+h*d+c] += w[j] / sum * v[(b*m+j)*e+h*d+c]
					}
				}
			}
		}
	}
	return out, mean
}

// exchange turns [a, b, d] into [b, a, d].
func exchange(x []float64, a, b int) []float64 {
	d := len(x) / a / b
	y := make([]float64, 0, len(x))
	for j := range b {
		for i := range a {
			y = append(y, x[(i*b+j)*d:(i*b+j+1)*d]...)
		}
	}
	return y
}

// input returns a tensor of varied numbers, and the numbers.
func input(seed float64, shape ...int) (*tensor.Tensor, []float64) {
	v := make([]float64, tensor.Numel(shape))
	for i := range v {
		v[i] = float64(float32(math.Sin(seed + 1.7*float64(i) + 0.03*float64(i*i))))
	}
	return tensor.FromFloat64s(v, shape...).Cast(tensor.Float32), v
}
