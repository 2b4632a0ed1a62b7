package tensor

import (
	"cmp"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// This file has what the random rows are called and checked with: the words of the published stream in plain Go, and from them
// each distribution by its definition. The attribute seed is that of a new generator.

func init() {
	for name, r := range randomRows() {
		op := LookupOp(name)
		if r.call != nil {
			op.Call = r.call
		}
		op.Ref = r.ref
		op.Samples = append(r.samples, op.Samples...)
	}
}

// words returns the first n words of the stream of the attribute seed.
func words(a Attrs, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = lib.Philox(uint64(a.Int("seed", 0)), uint64(i/4))[i%4]
	}
	return out
}

// uniforms returns the first n numbers in [0, 1): the high 24 bits of the words.
func uniforms(a Attrs, n int) []float64 {
	out := make([]float64, n)
	for i, w := range words(a, n) {
		out[i] = float64(w>>8) / (1 << 24)
	}
	return out
}

// refStream is the reference of a row without operands, whose results have the attribute shape.
func refStream(d DType, f func(a Attrs, n int) []float64) func(in []Array, a Attrs) ([]Array, error) {
	return func(_ []Array, a Attrs) ([]Array, error) {
		shape := a.Ints("shape")
		return []Array{{Shape: shape, Data: f(a, Numel(shape)), DType: d}}, nil
	}
}

func randomRows() map[string]calledRow {
	generator := func(a Attrs) *Generator { return NewGenerator(uint64(a.Int("seed", 0))) }
	return map[string]calledRow{
		"uniform": {
			call: func(_ []*Tensor, a Attrs) []*Tensor {
				return one(Uniform(deviceAttr(a), generator(a), dtypeAttr(a, Float32), a.Float("from", 0), a.Float("to", 1), a.Ints("shape")...))
			},
			ref: refStream(Float32, func(a Attrs, n int) []float64 {
				from, to := a.Float("from", 0), a.Float("to", 1)
				vs := uniforms(a, n)
				for i, u := range vs {
					vs[i] = from + (to-from)*u
				}
				return vs
			}),
			samples: []Sample{valid("0 to 1", Attrs{"shape": []int{3, 7}}), valid("-2 to 2", Attrs{"shape": []int{130}, "from": -2, "to": 2, "seed": 5}), valid("scalar", Attrs{"shape": []int{}, "seed": 1}),
				invalid("from=2 > to=1", Attrs{"shape": []int{2}, "from": 2}), invalid("floating-point dtype", Attrs{"shape": []int{2}, "dtype": "int64"}), invalid("-1", Attrs{"shape": []int{-1}})},
		},
		"normal": {
			call: func(_ []*Tensor, a Attrs) []*Tensor {
				return one(Normal(deviceAttr(a), generator(a), dtypeAttr(a, Float32), a.Float("mean", 0), a.Float("std", 1), a.Ints("shape")...))
			},
			// Box and Muller, "A note on the generation of random normal deviates", 1958: each pair of words makes two.
			ref: refStream(Float32, func(a Attrs, n int) []float64 {
				w := words(a, (n+1)/2*2)
				vs := make([]float64, n)
				for i := range vs {
					radius := math.Sqrt(-2 * math.Log((float64(w[i/2*2])+0.5)/(1<<32)))
					sin, cos := math.Sincos(2 * math.Pi * float64(int32(w[i/2*2+1])>>8) / (1 << 24))
					vs[i] = a.Float("mean", 0) + a.Float("std", 1)*radius*[]float64{cos, sin}[i%2]
				}
				return vs
			}),
			samples: []Sample{valid("standard", Attrs{"shape": []int{3, 7}}), valid("moved", Attrs{"shape": []int{130}, "mean": 1.5, "std": 0.5, "seed": 9}),
				invalid("std >= 0.0", Attrs{"shape": []int{2}, "std": -1}), invalid("floating-point dtype", Attrs{"shape": []int{2}, "dtype": "int64"})},
		},
		"bernoulli": {
			call: func(_ []*Tensor, a Attrs) []*Tensor {
				return one(Bernoulli(deviceAttr(a), generator(a), a.Float("p", 0.5), a.Ints("shape")...))
			},
			ref: refStream(Bool, func(a Attrs, n int) []float64 {
				vs := uniforms(a, n)
				for i, u := range vs {
					vs[i] = truth(float32(u) < float32(a.Float("p", 0.5)))
				}
				return vs
			}),
			samples: []Sample{valid("0.3", Attrs{"shape": []int{5, 9}, "p": 0.3}), valid("never", Attrs{"shape": []int{5}, "p": 0}), valid("always", Attrs{"shape": []int{5}, "p": 1}),
				invalid("between 0 and 1", Attrs{"shape": []int{2}, "p": 1.5})},
		},
		"randint": {
			call: func(_ []*Tensor, a Attrs) []*Tensor {
				return one(Randint(deviceAttr(a), generator(a), int64(a.Int("low", 0)), int64(a.Int("high", 0)), a.Ints("shape")...))
			},
			ref: refStream(Int64, func(a Attrs, n int) []float64 {
				low, high := a.Int("low", 0), a.Int("high", 0)
				vs := make([]float64, n)
				for i, w := range words(a, n) {
					vs[i] = float64(low) + float64(uint64(w)*uint64(int64(high)-int64(low))>>32)
				}
				return vs
			}),
			samples: []Sample{valid("a die", Attrs{"shape": []int{4, 9}, "low": 1, "high": 7}), valid("large", Attrs{"shape": []int{33}, "low": -2000000000, "high": 2000000000, "seed": 3}),
				invalid("'from' to be less than 'to'", Attrs{"shape": []int{2}, "low": 3, "high": 3}), invalid("at most", Attrs{"shape": []int{2}, "high": float64(1 << 40)})},
		},
		"randperm": {
			call: func(_ []*Tensor, a Attrs) []*Tensor { return one(Randperm(deviceAttr(a), generator(a), a.Int("n", 0))) },
			// The order of the words as signed numbers.
			ref: func(_ []Array, a Attrs) ([]Array, error) {
				w := words(a, a.Int("n", 0))
				return []Array{ints64([]int{len(w)}, orderOf(len(w), func(i int) float64 { return float64(int32(w[i])) })...)}, nil
			},
			samples: []Sample{valid("ten", Attrs{"n": 10}), valid("many", Attrs{"n": 300, "seed": 2}), valid("none", Attrs{"n": 0}), invalid("n must be non-negative", Attrs{"n": -1})},
		},
		"multinomial": {
			ref: refOne(multinomialRef),
			samples: []Sample{valid("with replacement", Attrs{"num_samples": 20, "replacement": true, "seed": 4}, list(1, 0, 3, 0.5)), valid("rows", Attrs{"num_samples": 3, "seed": 1}, positiveArray(2, 5)),
				valid("rows with replacement", Attrs{"num_samples": 6, "replacement": true}, positiveArray(3, 4))},
		},
		"dropout": {
			ref: refOne(func(in []Array, a Attrs) Array {
				p := a.Float("p", 0.5)
				if !a.Bool("training") || p == 0 {
					return in[0]
				}
				u := uniforms(a, len(in[0].Data))
				out := Array{Shape: in[0].Shape, Data: make([]float64, len(u))}
				for i, v := range in[0].Data {
					if float32(u[i]) < float32(1-p) {
						out.Data[i] = v / (1 - p)
					}
				}
				return out
			}),
			samples: []Sample{valid("half", Attrs{"training": true}, sampleArray(5, 7)), valid("a quarter", Attrs{"training": true, "p": 0.25, "seed": 6}, sampleArray(3, 4, 5)), valid("all", Attrs{"training": true, "p": 1}, sampleArray(4)),
				valid("evaluation", nil, sampleArray(4)), invalid("between 0 and 1", Attrs{"training": true, "p": 1.5}, sampleArray(4)), invalid("floating-point tensor", Attrs{"training": true}, ints64([]int{2}, 1, 2))},
		},
	}
}

// orderOf returns 0 to n-1 in the order of their keys.
func orderOf(n int, key func(i int) float64) []float64 {
	order := make([]float64, n)
	for i := range order {
		order[i] = float64(i)
	}
	slices.SortStableFunc(order, func(x, y float64) int { return cmp.Compare(key(int(x)), key(int(y))) })
	return order
}

// multinomialRef draws with replacement by running sums, and without by the smallest of exponential variates over the weights.
func multinomialRef(in []Array, a Attrs) Array {
	x, n := in[0], a.Int("num_samples", 1)
	classes := x.size(-1)
	rows := len(x.Data) / classes
	out := Array{Shape: withSize(x.Shape, len(x.Shape)-1, n), DType: Int64}
	with := a.Bool("replacement")
	per := classes
	if with {
		per = n
	}
	u := uniforms(a, rows*per)
	for r := range rows {
		w, u := x.Data[r*classes:(r+1)*classes], u[r*per:(r+1)*per]
		if !with {
			out.Data = append(out.Data, orderOf(classes, func(i int) float64 { return -math.Log1p(-u[i]) / w[i] })[:n]...)
			continue
		}
		for _, v := range u {
			class, sum := 0, w[0]
			for total := totalOf(w); sum <= v*total; sum += w[class] {
				class++
			}
			out.Data = append(out.Data, float64(class))
		}
	}
	return out
}
