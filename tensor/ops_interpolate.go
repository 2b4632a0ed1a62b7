package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// InterpolateOptions are the options of [Interpolate]. Lists have one number for each spatial dimension, or one for all.
type InterpolateOptions struct {
	Size         []int     // of the result; or
	Scale        []float64 // its size as a multiple of x's, rounded down; coordinates then use this factor
	Mode         string    // "nearest" (the default), "linear" [n, c, l], "bilinear" [n, c, h, w], "trilinear" [n, c, d, h, w], or "area"
	AlignCorners bool      // the linear modes map the corners' centres on each other, not the corners' edges
}

func interpolateOptionsOf(a Attrs) InterpolateOptions {
	o := InterpolateOptions{Size: a.Ints("size"), Mode: a.String("mode", "nearest"), AlignCorners: a.Bool("align_corners")}
	for _, name := range []string{"scale_factor", "scale"} {
		if a.Has(name) {
			o.Scale = a.floats(name)
			break
		}
	}
	return o
}

// floats returns the list called name; a single number is a list of one.
func (a Attrs) floats(name string) []float64 {
	var list []any
	switch v := a[name].(type) {
	case []float64:
		return v
	case []int:
		for _, x := range v {
			list = append(list, x)
		}
	case []any:
		list = v
	default:
		list = []any{v}
	}
	out := make([]float64, 0, len(list))
	for _, x := range list {
		out = append(out, Attrs{"": x}.Float("", 0))
	}
	return out
}

const interpolateAdjoint = "interpolate_adjoint"

var (
	_ = register(&OpInfo{Name: "interpolate", Doc: "images resized to size or by scale_factor, by the nearest element or linearly", Kind: KindReduction, Class: F32, Inputs: []string{"x"}, Differentiable: []bool{true},
		Call: func(in []*Tensor, a Attrs) []*Tensor { return []*Tensor{Interpolate(in[0], interpolateOptionsOf(a))} },
		Ref:  interpolateRef(false), Samples: interpolateSamples()})
	_ = register(&OpInfo{Name: interpolateAdjoint, Doc: "the gradient of interpolate over an image, whose sizes image gives", Kind: KindReduction, Inputs: []string{"x"}, Differentiable: []bool{true},
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			c := begin(LookupOp(interpolateAdjoint), in[0])
			if c.err != nil {
				return []*Tensor{c.failed()}
			}
			image := a.Ints("image")
			r, err := interpolateOptionsOf(a).resample(image)
			if err == nil {
				err = c.resampleOperand(&r, r.Grid)
			}
			if err != nil {
				return []*Tensor{c.fail("", err)}
			}
			return []*Tensor{resample(c, r, true)}
		}, Ref: interpolateRef(true), Samples: interpolateAdjointSamples()})
)

var linearModes = [...]string{1: "linear", 2: "bilinear", 3: "trilinear"}

// resample works out the sizes and scales for an image.
func (o InterpolateOptions) resample(image []int) (lib.Resample, error) {
	r := lib.Resample{Corners: o.AlignCorners, Image: image}
	rank := len(image)
	switch {
	case o.Mode == "" || o.Mode == "nearest":
		if o.AlignCorners {
			return r, errorOf(ErrShape, "align_corners option can only be set with the interpolating modes: linear | bilinear | trilinear")
		}
	case o.Mode == linearModes[rank]:
		r.Linear = true
	default:
		return r, errorOf(ErrShape, "mode %q does not fit an image of %d dimensions; nearest, %s and area do", o.Mode, rank, linearModes[rank])
	}
	switch {
	case len(o.Size) > 0 && len(o.Scale) > 0:
		return r, errorOf(ErrShape, "only one of size and scale_factor should be defined")
	case len(o.Size) == 0 && len(o.Scale) == 0:
		return r, errorOf(ErrShape, "either size or scale_factor should be defined")
	case len(o.Scale) > 0 && len(o.Scale) != 1 && len(o.Scale) != rank:
		return r, errorOf(ErrShape, "scale factor %v needs %d numbers, one for each spatial dimension, or one for all", o.Scale, rank)
	}
	if len(o.Size) > 0 {
		var err error
		if r.Grid, err = spatial("size", o.Size, rank, 1, 1); err != nil {
			return r, err
		}
	}
	for i, n := range image {
		if n < 1 {
			return r, errorOf(ErrShape, "input and output sizes should be greater than 0, but got an image of %v", image)
		}
		factor := 0.0
		if len(o.Scale) > 0 {
			factor = o.Scale[i%len(o.Scale)]
			size := math.Floor(float64(n) * factor)
			if !(size >= 1) || size > 1<<31 {
				return r, errorOf(ErrShape, "scale factor %v makes an image of %v empty or too large", o.Scale, image)
			}
			r.Grid = append(r.Grid, int(size))
		}
		scale := float64(n) / float64(r.Grid[i])
		switch {
		case r.Linear && r.Corners && r.Grid[i] > 1:
			scale = float64(n-1) / float64(r.Grid[i]-1)
		case r.Linear && r.Corners:
			scale = 0
		case factor > 0:
			scale = 1 / factor
		}
		r.Scale = append(r.Scale, scale)
	}
	return r, nil
}

// resampleOperand checks that x is a float image that ends in sizes.
func (c *call) resampleOperand(r *lib.Resample, sizes []int) error {
	x := c.in[0]
	lead := len(x.shape) - len(sizes)
	switch {
	case !x.dtype.IsFloat():
		return errorOf(ErrDType, "not implemented for %s; cast to float32", x.dtype)
	case lead < 0 || !slices.Equal(x.shape[lead:], sizes):
		return errorOf(ErrShape, "expected an operand that ends in %v, but got size %v", sizes, x.shape)
	}
	r.Outer = Numel(x.shape[:lead])
	return nil
}

// Interpolate resizes x [n, c, …] with one to three spatial dimensions, as torch.nn.functional.interpolate without
// antialiasing and with recompute_scale_factor=False.
func Interpolate(x *Tensor, o InterpolateOptions) *Tensor {
	c := begin(LookupOp("interpolate"), x)
	if c.err != nil {
		return c.failed()
	}
	x = c.in[0]
	rank := len(x.shape) - 2
	if rank < 1 || rank > 3 {
		return c.shapeFail("expected 3D, 4D or 5D input, but got input of size %v", x.shape)
	}
	image := x.shape[2:]
	if o.Mode == "area" && rank < 3 {
		o.Mode, o.AlignCorners = "", false
		r, err := o.resample(image)
		if err != nil {
			return c.fail("", err)
		}
		return adaptiveAvgPool(rank, x, r.Grid)
	}
	r, err := o.resample(image)
	if err == nil {
		err = c.resampleOperand(&r, image)
	}
	if err != nil {
		return c.fail("", err)
	}
	return resample(c, r, false)
}

// resample runs the linear map of an interpolation, or its adjoint. Each is the other's gradient.
func resample(c *call, r lib.Resample, adjoint bool) *Tensor {
	x := c.in[0]
	sizes, other := r.Grid, interpolateAdjoint
	if adjoint {
		sizes, other = r.Image, "interpolate"
	}
	r.Ops, r.Adjoint, r.In, r.Out = []string{c.op.Name}, adjoint, x.dtype.Kind(), x.dtype.Kind()
	out := c.output(append(slices.Clone(x.shape[:len(x.shape)-len(sizes)]), sizes...), x.dtype)
	if out.err != nil {
		return out
	}
	c.run(&r, []binding{c.dense(x)}, out)
	c.differentiable([]*Tensor{out}, nil, func(_ *Call, dy *Tensor) []*Tensor {
		c := begin(LookupOp(other), dy)
		if c.err != nil {
			return []*Tensor{c.failed()}
		}
		return []*Tensor{resample(c, r, !adjoint)}
	})
	return out
}

// interpolateRef is the reference: every result element as a weighted sum over the whole image, one dimension after
// the other.
func interpolateRef(adjoint bool) func(in []Array, a Attrs) ([]Array, error) {
	return func(in []Array, a Attrs) ([]Array, error) {
		x := in[0]
		o := interpolateOptionsOf(a)
		image := a.Ints("image")
		if !adjoint {
			image = x.Shape[2:]
		}
		lead := x.Shape[:len(x.Shape)-len(image)]
		if o.Mode == "area" {
			return poolRef(len(image), false)(in, Attrs{"output_size": o.Size})
		}
		for i := range image {
			m, n := interpolateMatrix(o, image[i], i)
			size := len(m) / n
			if adjoint {
				t := make([]float64, len(m))
				for g := range size {
					for h := range n {
						t[h*size+g] = m[g*n+h]
					}
				}
				m, n, size = t, size, n
			}
			shape := slices.Clone(x.Shape)
			d := len(lead) + i
			shape[d] = size
			y := Array{Shape: shape, Data: make([]float64, Numel(shape))}
			inner := Numel(shape[d+1:])
			for at := range y.Data {
				outer, g := at/(size*inner), at/inner%size
				for h := range n {
					y.Data[at] += m[g*n+h] * x.Data[(outer*n+h)*inner+at%inner]
				}
			}
			x = y
		}
		return []Array{x}, nil
	}
}

// interpolateMatrix returns the matrix [size, n] that resizes n elements in dimension i.
func interpolateMatrix(o InterpolateOptions, n, i int) (m []float64, columns int) {
	size, step := 0, 0.0
	if len(o.Scale) > 0 {
		size = int(float64(n) * o.Scale[i%len(o.Scale)])
		step = 1 / o.Scale[i%len(o.Scale)]
	} else {
		size = o.Size[i%len(o.Size)]
		step = float64(n) / float64(size)
	}
	m = make([]float64, size*n)
	for g := range size {
		switch {
		case o.Mode == "" || o.Mode == "nearest":
			m[g*n+min(n-1, int(float32(g)*float32(step)))] = 1
			continue
		case o.AlignCorners && size > 1:
			step = float64(n-1) / float64(size-1)
		}
		at := float64(g) * step
		if !o.AlignCorners {
			at = math.Max(0, (float64(g)+0.5)*step-0.5)
		}
		for h := range n {
			weight := math.Max(0, 1-math.Abs(at-float64(h)))
			if h == n-1 && at > float64(h) {
				weight = 1
			}
			m[g*n+h] = weight
		}
	}
	return m, n
}

func interpolateSamples() []Sample {
	line, plane, volume := windowArray(1, 2, 3, 7), windowArray(2, 2, 3, 4, 5), windowArray(3, 1, 2, 3, 2, 4)
	return []Sample{
		{Name: "nearest", In: []Array{plane}, Attrs: Attrs{"scale_factor": 2}},
		{Name: "nearest, smaller", In: []Array{plane}, Attrs: Attrs{"size": []int{3, 2}}},
		{Name: "nearest line", In: []Array{line}, Attrs: Attrs{"scale_factor": 1.7}},
		{Name: "nearest volume", In: []Array{volume}, Attrs: Attrs{"size": []int{5, 4, 2}}},
		{Name: "linear", In: []Array{line}, Attrs: Attrs{"size": 16, "mode": "linear"}},
		{Name: "bilinear", In: []Array{plane}, Attrs: Attrs{"scale_factor": []float64{2, 1.5}, "mode": "bilinear"}},
		{Name: "bilinear, smaller", In: []Array{plane}, Attrs: Attrs{"size": []int{3, 2}, "mode": "bilinear"}},
		{Name: "bilinear by corners", In: []Array{plane}, Attrs: Attrs{"size": []int{9, 3}, "mode": "bilinear", "align_corners": true}},
		{Name: "bilinear by corners to one row", In: []Array{plane}, Attrs: Attrs{"size": []int{1, 8}, "mode": "bilinear", "align_corners": true}},
		{Name: "trilinear", In: []Array{volume}, Attrs: Attrs{"size": []int{4, 4, 3}, "mode": "trilinear"}},
		{Name: "area", In: []Array{plane}, Attrs: Attrs{"size": []int{2, 3}, "mode": "area"}},
		{Name: "both", In: []Array{plane}, Attrs: Attrs{"size": 3, "scale_factor": 2}, Err: "only one of size and scale_factor"},
		{Name: "neither", In: []Array{plane}, Err: "either size or scale_factor"},
		{Name: "mode", In: []Array{line}, Attrs: Attrs{"size": 3, "mode": "bilinear"}, Err: "nearest, linear and area do"},
		{Name: "corners", In: []Array{plane}, Attrs: Attrs{"size": 3, "align_corners": true}, Err: "align_corners option can only be set"},
		{Name: "rank", In: []Array{windowArray(1, 4, 5)}, Attrs: Attrs{"size": 3}, Err: "expected 3D, 4D or 5D input"},
		{Name: "scale", In: []Array{plane}, Attrs: Attrs{"scale_factor": 0.1}, Err: "empty or too large"},
	}
}

func interpolateAdjointSamples() []Sample {
	return []Sample{
		{Name: "nearest", In: []Array{windowArray(1, 2, 3, 8, 3)}, Attrs: Attrs{"image": []int{4, 5}, "size": []int{8, 3}}},
		{Name: "bilinear", In: []Array{windowArray(1, 2, 3, 8, 3)}, Attrs: Attrs{"image": []int{4, 5}, "size": []int{8, 3}, "mode": "bilinear"}},
		{Name: "size", In: []Array{windowArray(1, 2, 3, 8, 3)}, Attrs: Attrs{"image": []int{4, 5}, "size": []int{8, 4}}, Err: fmt.Sprintf("ends in %v", []int{8, 4})},
	}
}
