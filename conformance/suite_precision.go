package conformance

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/tensor"
)

// precisionCases are about the short floats: every conversion, and where sums are kept.
func precisionCases(e *env) ([]testCase, error) {
	if e.opts.Golden != nil {
		return nil, nil
	}
	var out []testCase
	add := func(name, op string, d tensor.DType, f func(x *run) error) {
		out = append(out, testCase{name: name, op: op, dtype: d.String(), run: f})
	}
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		add(fmt.Sprintf("cast/%s_to_float32", d), "cast", d, func(x *run) error { return x.castUp(d) })
		add(fmt.Sprintf("cast/float32_to_%s", d), "cast", d, func(x *run) error { return x.castDown(d) })
		add(fmt.Sprintf("cast/int_to_%s", d), "cast", d, func(x *run) error { return x.castInts(d) })
		add(fmt.Sprintf("accumulate/sum_%s", d), "sum", d, func(x *run) error {
			// A sum in float16 would stop at 2048, in bfloat16 at 256.
			return x.wantSum(d, 4096, func(t *tensor.Tensor) *tensor.Tensor { return t.Sum() })
		})
		add(fmt.Sprintf("accumulate/sum_rows_%s", d), "sum", d, func(x *run) error {
			return x.wantSum(d, 4096, func(t *tensor.Tensor) *tensor.Tensor { return t.Reshape(64, 64).Sum(0).Sum() })
		})
		add(fmt.Sprintf("accumulate/mean_%s", d), "mean", d, func(x *run) error {
			return x.wantSum(d, 1, func(t *tensor.Tensor) *tensor.Tensor { return t.Mean() })
		})
		add(fmt.Sprintf("accumulate/matmul_%s", d), "matmul", d, func(x *run) error {
			return x.wantSum(d, 4096, func(t *tensor.Tensor) *tensor.Tensor { return t.Reshape(1, 4096).MatMul(t.Reshape(4096, 1)) })
		})
		add(fmt.Sprintf("accumulate/linear_%s", d), "linear", d, func(x *run) error {
			return x.wantSum(d, 4096, func(t *tensor.Tensor) *tensor.Tensor {
				return tensor.Linear(t.Reshape(1, 4096), t.Reshape(1, 4096), nil)
			})
		})
		add(fmt.Sprintf("accumulate/norm_%s", d), "sum_mul", d, func(x *run) error {
			// 300^2 is beyond float16's largest number, but the sum is not kept in it.
			return x.scoped(func(s *tensor.Scope) error {
				t := s.To(tensor.Full(tensor.CPU(), d, 300, 64))
				v, err := t.Cast(tensor.Float32).Square().Sum().Sqrt().Item()
				if err == nil && math.Abs(v-2400) > 0.01*2400 {
					err = fmt.Errorf("the norm is %v, want about 2400", v)
				}
				return err
			})
		})
	}
	return out, nil
}

// shortValues returns all 65,536 values of a short float.
func shortValues(d tensor.DType) []float64 {
	v := make([]float64, 1<<16)
	for i := range v {
		v[i] = decodeShort(d, uint16(i))
	}
	return v
}

// decodeShort is the value of a bit pattern, from the definition of the format.
func decodeShort(d tensor.DType, h uint16) float64 {
	f := formats[d]
	bits := 15 - f.mantissa // of the exponent
	exp, frac := int(h>>f.mantissa)&(1<<bits-1), float64(h&(1<<f.mantissa-1))
	v := 0.0
	switch {
	case exp == 1<<bits-1 && frac != 0:
		return math.NaN()
	case exp == 1<<bits-1:
		v = math.Inf(1)
	case exp == 0:
		v = math.Ldexp(frac, f.minExp-f.mantissa)
	default:
		v = math.Ldexp(1+frac*f.eps, exp+f.minExp-1)
	}
	if h>>15 != 0 {
		v = math.Copysign(v, -1)
	}
	return v
}

// castUp widens every value: exactly, but for subnormal float32 numbers (of bfloat16), which may be flushed.
func (x *run) castUp(d tensor.DType) error {
	want := shortValues(d)
	return x.scoped(func(s *tensor.Scope) error {
		got, err := s.To(tensor.FromFloat64s(want, len(want)).Cast(d)).Cast(tensor.Float32).CPU().Float64s()
		if err != nil {
			return err
		}
		return x.exactly("cast to float32", tensor.Float32, want, got, want)
	})
}

// castDown rounds every value, the midpoints between neighbours, and the float32 numbers next to the midpoints.
func (x *run) castDown(d tensor.DType) error {
	var in []float64
	values := shortValues(d)
	for i, v := range values {
		in = append(in, v)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		next := values[min(i+1, len(values)-1)]
		if math.IsInf(next, 0) || math.Signbit(next) != math.Signbit(v) || math.IsNaN(next) {
			next = v + math.Copysign(formats[d].ulp(v), v)
		}
		mid := float32(v + (next-v)/2)
		if math.IsInf(float64(mid), 0) {
			continue
		}
		inf := float32(math.Inf(1))
		in = append(in, float64(mid), float64(math.Nextafter32(mid, inf)), float64(math.Nextafter32(mid, -inf)))
	}
	want := make([]float64, len(in))
	for i, v := range in {
		want[i] = formats[d].round(v)
	}
	return x.scoped(func(s *tensor.Scope) error {
		host := make([]float32, len(in))
		for i, v := range in {
			host[i] = float32(v)
		}
		got, err := s.To(tensor.FromFloat32s(host, len(host))).Cast(d).CPU().Float64s()
		if err != nil {
			return err
		}
		return x.exactly("cast to "+d.String(), d, in, got, want)
	})
}

// castInts converts integers around the largest one that the dtype counts exactly to.
func (x *run) castInts(d tensor.DType) error {
	var in, want []float64
	host := []int32{}
	for i := int32(-5000); i <= 70000; i += 3 {
		host = append(host, i)
		in = append(in, float64(i))
		want = append(want, formats[d].round(float64(i)))
	}
	return x.scoped(func(s *tensor.Scope) error {
		got, err := s.To(tensor.FromInt32s(host, len(host))).Cast(d).CPU().Float64s()
		if err != nil {
			return err
		}
		return x.exactly("cast of int32 to "+d.String(), d, in, got, want)
	})
}

// exactly compares converted values, which have no tolerance except that subnormal numbers of float32's exponent range
// may become zero.
func (x *run) exactly(what string, d tensor.DType, in, got, want []float64) error {
	c := comparison{what: what, dtype: d, bound: bound{kind: exactBound}}
	m, err := c.check(got, want)
	x.add(m)
	if mm, ok := err.(*Mismatch); ok {
		mm.Op, mm.Input = "cast", []string{number(in[mm.Index])}
	}
	return err
}

// wantSum runs f on 4,096 ones.
func (x *run) wantSum(d tensor.DType, want float64, f func(t *tensor.Tensor) *tensor.Tensor) error {
	return x.scoped(func(s *tensor.Scope) error {
		v, err := f(s.To(tensor.Ones(tensor.CPU(), d, 4096))).Item()
		if err == nil && v != want {
			err = &Mismatch{What: "accumulation", Op: "sum", DType: d.String(), Off: 1, Elements: 1, Got: number(v), Want: number(want), Bound: "exact: sums are kept in float32"}
		}
		return err
	})
}
