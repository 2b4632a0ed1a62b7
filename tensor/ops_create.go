package tensor

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/backend"
)

// This file has tensors made from numbers. Those with an exact value at each place (arange, linspace) are computed in double precision
// and rounded once.

// defineCreation defines an operator without operands.
func defineCreation(name, doc string, call func(a Attrs) *Tensor, ref func(a Attrs) Array, samples ...Sample) *OpInfo {
	return defineOp(OpInfo{Name: name, Doc: doc, Kind: KindMove, Inputs: []string{}, Samples: samples,
		Call: func(_ []*Tensor, a Attrs) []*Tensor { return one(call(a)) },
		Ref:  func(_ []Array, a Attrs) ([]Array, error) { return []Array{ref(a)}, nil }})
}

// dtypeAttr is the attribute dtype, or def.
func dtypeAttr(a Attrs, def DType) DType {
	if d, err := ParseDType(a.String("dtype", def.String())); err == nil {
		return d
	}
	return InvalidDType
}

func list(vs ...float64) Array { return Array{Shape: []int{len(vs)}, Data: vs} }

var _ = defineCreation("arange", "start, start+step, … before end",
	func(a Attrs) *Tensor {
		return ArangeStep(deviceAttr(a), dtypeAttr(a, Int64), a.Float("start", 0), a.Float("end", 0), a.Float("step", 1))
	},
	func(a Attrs) Array {
		var vs []float64
		for i := 0; ; i++ {
			v := a.Float("start", 0) + float64(i)*a.Float("step", 1)
			if a.Float("step", 1) > 0 == (v >= a.Float("end", 0)) {
				return list(vs...)
			}
			vs = append(vs, v)
		}
	},
	valid("to 5", Attrs{"end": 5}), valid("in halves", Attrs{"start": 1, "end": 3.2, "step": 0.5, "dtype": "float32"}), valid("down", Attrs{"start": 5, "end": -2, "step": -3}),
	invalid("step must be nonzero", Attrs{"end": 5, "step": 0}), invalid("upper bound and larger bound inconsistent with step sign", Attrs{"start": 3, "end": 1}))

// ArangeStep returns start, start+step, … before end as d on dev, in no scope.
func ArangeStep(dev backend.Device, d DType, start, end, step float64) *Tensor {
	c := beginOn(LookupOp("arange"), dev)
	n := math.Ceil((end - start) / step)
	switch {
	case c.err != nil:
		return c.failed()
	case step == 0 || math.IsNaN(step):
		return c.fail("", fmt.Errorf("step must be nonzero"))
	case !(n >= 0):
		return c.fail("", fmt.Errorf("upper bound and larger bound inconsistent with step sign: from %v to %v in steps of %v", start, end, step))
	case n > maxNumel:
		return c.fail("", fmt.Errorf("from %v to %v in steps of %v are more than %d elements", start, end, step, int64(maxNumel)))
	}
	return c.values(d, int(n), func(i int) float64 { return start + float64(i)*step })
}

// values returns a list of computed values on the call's device.
func (c *call) values(d DType, n int, f func(i int) float64) *Tensor {
	if !d.Valid() {
		return c.fail("", errorOf(ErrDType, "no such dtype: %s", d))
	}
	vs := make([]float64, n)
	for i := range vs {
		vs[i] = f(i)
	}
	t := FromFloat64s(vs, n)
	return replace(t, t.Cast(d).onto(c.eng))
}

// onto is To for a tensor that nobody else has, which it frees if it moves; it never returns t's own storage with the same claim.
func (t *Tensor) onto(e *engine) *Tensor {
	if t.err != nil {
		return t
	}
	out := t.To(e.dev)
	if out == t {
		return t.view(t.shape, t.strides, t.offset, nil)
	}
	t.Free()
	return out
}

var _ = defineCreation("linspace", "steps numbers from start to end, both included, at equal distances",
	func(a Attrs) *Tensor {
		return Linspace(deviceAttr(a), dtypeAttr(a, Float32), a.Float("start", 0), a.Float("end", 1), a.Int("steps", 2))
	},
	func(a Attrs) Array {
		n := a.Int("steps", 2)
		vs := make([]float64, n)
		for i := range vs {
			vs[i] = a.Float("start", 0)
			if n > 1 {
				vs[i] += (a.Float("end", 1) - a.Float("start", 0)) * float64(i) / float64(n-1)
			}
		}
		return list(vs...)
	},
	valid("five", Attrs{"start": -1, "end": 2, "steps": 5}), valid("one", Attrs{"start": 3, "end": 5, "steps": 1}), valid("none", Attrs{"steps": 0}),
	invalid("number of steps must be non-negative", Attrs{"steps": -1}))

// Linspace returns steps numbers from start to end, both included, at equal distances, as d on dev, in no scope.
func Linspace(dev backend.Device, d DType, start, end float64, steps int) *Tensor {
	c := beginOn(LookupOp("linspace"), dev)
	switch {
	case c.err != nil:
		return c.failed()
	case steps < 0:
		return c.fail("", fmt.Errorf("number of steps must be non-negative, got %d", steps))
	}
	step := (end - start) / float64(max(1, steps-1))
	return c.values(d, steps, func(i int) float64 {
		if i >= steps/2 && steps > 1 {
			return end - float64(steps-1-i)*step // exact at both ends
		}
		return start + float64(i)*step
	})
}

var _ = defineCreation("eye", "a matrix with 1 on the diagonal and 0 elsewhere",
	func(a Attrs) *Tensor {
		return Eye(deviceAttr(a), dtypeAttr(a, Float32), a.Int("n", 0), a.Int("m", a.Int("n", 0)))
	},
	func(a Attrs) Array {
		return makeArray([]int{a.Int("n", 0), a.Int("m", a.Int("n", 0))}, func(idx []int) float64 { return truth(idx[0] == idx[1]) })
	},
	valid("square", Attrs{"n": 3}), valid("wide", Attrs{"n": 2, "m": 4, "dtype": "int64"}), invalid("negative", Attrs{"n": -1}))

// Eye returns an n by m matrix with 1 on the diagonal and 0 elsewhere, as d on dev, in no scope.
func Eye(dev backend.Device, d DType, n, m int) *Tensor {
	c := beginOn(LookupOp("eye"), dev)
	if c.err != nil {
		return c.failed()
	}
	if _, err := checkShape([]int{n, m}); err != nil {
		return c.fail("", err)
	}
	t := iota32(c.eng, nil, n).Unsqueeze(1).Eq(iota32(c.eng, nil, m))
	if t.dtype == d {
		return t
	}
	return replace(t, t.Cast(d))
}

var _ = defineOp(OpInfo{Name: "meshgrid", Doc: "coordinates of a grid from the coordinates along each dimension", Kind: KindView,
	Call: func(in []*Tensor, a Attrs) []*Tensor { return Meshgrid(a.String("indexing", "ij"), in...) },
	Ref: func(in []Array, a Attrs) ([]Array, error) {
		shape := make([]int, len(in))
		swap := func(i int) int {
			if a.String("indexing", "ij") == "xy" && i < 2 && len(in) > 1 {
				return 1 - i
			}
			return i
		}
		for i, x := range in {
			shape[swap(i)] = len(x.Data)
		}
		out := make([]Array, len(in))
		for i, x := range in {
			out[i] = makeArray(shape, func(idx []int) float64 { return x.Data[idx[swap(i)]] })
		}
		return out, nil
	},
	Samples: []Sample{
		valid("ij", nil, sampleArray(3), sampleArray(4)),
		valid("xy", Attrs{"indexing": "xy"}, sampleArray(3), sampleArray(4), sampleArray(2)),
		invalid("1D or 0D", nil, sampleArray(3), sampleArray(4, 2)),
		invalid("indexing must be one of", Attrs{"indexing": "yx"}, sampleArray(3), sampleArray(4)),
	}})

// Meshgrid returns the coordinates of a grid as views, one tensor for each list of coordinates along a dimension. indexing is "ij", or "xy"
// for the first two dimensions swapped.
func Meshgrid(indexing string, in ...*Tensor) []*Tensor {
	c := begin(LookupOp("meshgrid"), in...)
	switch {
	case c.err != nil:
		return one(c.failed())
	case len(in) == 0:
		return one(c.fail("", fmt.Errorf("meshgrid expects a non-empty list of tensors")))
	case indexing != "ij" && indexing != "xy":
		return one(c.fail("", fmt.Errorf("indexing must be one of \"xy\" or \"ij\", but received: %q", indexing)))
	}
	shape, place := make([]int, len(in)), make([]int, len(in))
	for i, t := range in {
		if len(t.shape) > 1 {
			return one(c.shapeFail("expected 1D or 0D tensors in the list, but got shape %v", t.shape))
		}
		place[i] = i
		if indexing == "xy" && i < 2 && len(in) > 1 {
			place[i] = 1 - i
		}
		shape[place[i]] = Numel(t.shape)
	}
	out := make([]*Tensor, len(in))
	for i, t := range in {
		own := make([]int, len(in))
		for d := range own {
			own[d] = 1
		}
		own[place[i]] = shape[place[i]]
		out[i] = t.Reshape(own...).Expand(shape...)
	}
	return out
}
