package tensor

import (
	"errors"
	"math"
	"slices"

	"github.com/anygpu/anygpu/backend"
)

// This file has what the rows of tensors from values, of copies and of norms of many tensors are called and checked with. It is
// apart from the rows because the methods look their rows up.

func init() {
	for name, r := range moveRows() {
		op := LookupOp(name)
		if r.call != nil {
			op.Call = r.call
		}
		if r.ref != nil {
			op.Ref = r.ref
		}
		op.Samples, op.NoErrors = append(op.Samples, r.samples...), r.noErrors
	}
}

// calledRow is what a row gets when all methods are there.
type calledRow struct {
	call     func(in []*Tensor, a Attrs) []*Tensor
	ref      func(in []Array, a Attrs) ([]Array, error)
	samples  []Sample
	noErrors string
}

// deviceAttr is the attribute device: absent the CPU, and nil for what is no device.
func deviceAttr(a Attrs) backend.Device {
	if !a.Has("device") {
		return CPU()
	}
	dev, _ := a["device"].(backend.Device)
	return dev
}

func moveRows() map[string]calledRow {
	copies := "what can be wrong with the operand of a copy is so with that of every operator: nil, freed, failed"
	return map[string]calledRow{
		"clone":      {noErrors: copies},
		"contiguous": {noErrors: copies},
		"detach": {
			call:     func(in []*Tensor, _ Attrs) []*Tensor { return one(in[0].Detach()) },
			ref:      sameRef,
			samples:  []Sample{valid("matrix", nil, sampleArray(3, 4)), valid("bool", nil, boolArray([]int{3}, 1, 0, 1))},
			noErrors: copies,
		},
		"to": { // there and back, so that the result is where the operand is
			call: func(in []*Tensor, a Attrs) []*Tensor { return one(in[0].To(deviceAttr(a)).To(in[0].Device())) },
			ref:  sameRef,
			samples: []Sample{valid("to the CPU and back", nil, sampleArray(3, 5)), valid("bool", nil, boolArray([]int{3}, 1, 0, 1)), valid("nothing", nil, Array{Shape: []int{0, 2}}),
				invalid("no device given", Attrs{"device": "nowhere"}, sampleArray(2))},
		},
		"copy_": {
			call: func(in []*Tensor, _ Attrs) []*Tensor {
				x := in[0].Detach().Clone()
				if err := x.CopyFrom(in[1]); err != nil {
					return one(failed(err, x.scope))
				}
				return one(x)
			},
			ref: refOne(func(in []Array, _ Attrs) Array {
				out := expandRef(in[1:], Attrs{"shape": in[0].Shape})
				out.DType = in[0].DType
				return out
			}),
			samples: []Sample{valid("all", nil, sampleArray(3, 4), positiveArray(3, 4)), valid("a row for all", nil, sampleArray(3, 4), positiveArray(4)),
				valid("cast", nil, sampleArray(2, 3), ints64([]int{2, 1}, 7, -3)), invalid("cannot copy shape [4] to shape [3]", nil, sampleArray(3), sampleArray(4))},
		},
		"cast": {
			ref: refOne(castRef),
			samples: []Sample{valid("to half", Attrs{"dtype": "float16"}, sampleArray(3, 5)), valid("to float", Attrs{"dtype": "float32"}, sampleArray(3, 5)),
				valid("truncated", Attrs{"dtype": "int32"}, sampleArray(3, 5)), valid("is not zero", Attrs{"dtype": "bool"}, sampleArray(7)), valid("bool to float", Attrs{"dtype": "float32"}, boolArray([]int{3}, 1, 0, 1)),
				valid("saturated", Attrs{"dtype": "int32"}, list(3e9, -3e9, math.Inf(1), nan)), valid("wrapped", Attrs{"dtype": "uint8"}, ints64([]int{4}, 256, 257, -1, 1000)),
				invalid(`unknown dtype "complex64"`, Attrs{"dtype": "complex64"}, sampleArray(2))},
		},
		"from_slice": {
			call: func(_ []*Tensor, a Attrs) []*Tensor {
				vs := a.Ints("data")
				data := make([]int64, len(vs))
				for i, v := range vs {
					data[i] = int64(v)
				}
				return one(FromInt64s(data, a.Ints("shape")...))
			},
			ref: func(_ []Array, a Attrs) ([]Array, error) {
				out := Array{Shape: a.Ints("shape"), DType: Int64}
				for _, v := range a.Ints("data") {
					out.Data = append(out.Data, float64(v))
				}
				return []Array{out}, nil
			},
			samples: []Sample{valid("matrix", Attrs{"data": []int{1, -2, 3, 4, 5, 6}, "shape": []int{2, 3}}), valid("scalar", Attrs{"data": []int{7}, "shape": []int{}}), valid("nothing", Attrs{"data": []int{}, "shape": []int{2, 0}}),
				invalid("invalid for input of size 3", Attrs{"data": []int{1, 2, 3}, "shape": []int{2, 2}}), invalid("-1", Attrs{"data": []int{1}, "shape": []int{-1}})},
		},
		"full": {
			call: func(_ []*Tensor, a Attrs) []*Tensor {
				return one(Full(deviceAttr(a), dtypeAttr(a, Float32), a.Float("fill_value", 0), a.Ints("shape")...))
			},
			ref: func(_ []Array, a Attrs) ([]Array, error) {
				out := makeArray(a.Ints("shape"), func([]int) float64 { return a.Float("fill_value", 0) })
				out.DType = dtypeAttr(a, Float32)
				return []Array{out}, nil
			},
			samples: []Sample{valid("matrix", Attrs{"shape": []int{2, 3}, "fill_value": -1.5}), valid("scalar", Attrs{"shape": []int{}, "fill_value": 2}), valid("integers", Attrs{"shape": []int{5}, "fill_value": -7, "dtype": "int64"}),
				valid("bool", Attrs{"shape": []int{5}, "fill_value": 1, "dtype": "bool"}), valid("half", Attrs{"shape": []int{5}, "fill_value": math.Inf(-1), "dtype": "float16"}),
				invalid("no such dtype", Attrs{"shape": []int{2}, "dtype": "complex64"}), invalid("-2", Attrs{"shape": []int{-2}}), invalid("no device given", Attrs{"shape": []int{2}, "device": "nowhere"})},
		},
		"total_norm": {
			call: func(in []*Tensor, a Attrs) []*Tensor { return one(TotalNorm(a.Float("p", 2), in...)) },
			ref: func(in []Array, a Attrs) ([]Array, error) {
				p, sum, largest := a.Float("p", 2), 0.0, 0.0
				if len(in) == 0 {
					return nil, errors.New("there are no tensors")
				}
				for _, x := range in {
					for _, v := range x.Data {
						sum += math.Pow(math.Abs(v), p)
						largest = max(largest, math.Abs(v))
					}
				}
				if math.IsInf(p, 1) {
					return []Array{{Data: []float64{largest}}}, nil
				}
				return []Array{{Data: []float64{math.Pow(sum, 1/p)}}}, nil
			},
			samples: []Sample{valid("squares", nil, sampleArray(3, 4), sampleArray(5), sampleArray()), valid("absolute", Attrs{"p": 1}, sampleArray(3, 4), sampleArray(7)),
				valid("largest", Attrs{"p": math.Inf(1)}, sampleArray(3, 4), sampleArray(40)), valid("cubes", Attrs{"p": 3}, sampleArray(3, 4)),
				invalid("non-empty list", nil), invalid("must be positive", Attrs{"p": 0}, sampleArray(3)), invalid("floating-point", nil, sampleArray(3), ints64([]int{2}, 1, 2))},
		},
	}
}

// castRef truncates and saturates floats, wraps integers, and leaves the rounding of floats to what compares the result.
func castRef(in []Array, a Attrs) Array {
	d := dtypeAttr(a, Float32)
	limits := map[DType][2]float64{Uint8: {0, 255}, Int32: {math.MinInt32, math.MaxInt32}, Int64: {math.MinInt64, math.MaxInt64}}
	out := Array{Shape: slices.Clone(in[0].Shape), DType: d}
	from := in[0].DType
	for _, v := range in[0].Data {
		bound, integer := limits[d]
		switch {
		case d == Bool:
			v = truth(v != 0)
		case integer && v != v:
			v = 0
		case integer && (from == InvalidDType || from.IsFloat()):
			v = min(max(math.Trunc(v), bound[0]), bound[1])
		case d == Uint8:
			v = float64(uint8(int64(v)))
		case d == Int32:
			v = float64(int32(int64(v)))
		}
		out.Data = append(out.Data, v)
	}
	return out
}
