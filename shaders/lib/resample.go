package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Resample resizes images of one to three dimensions, [Outer, Image…] to [Outer, Grid…], all contiguous. Element g of
// the result comes from source coordinate g*Scale (the nearest element below) or, with Linear, from the two elements around
// (g+1/2)*Scale - 1/2 (g*Scale with Corners) in each dimension, as torch.nn.functional.interpolate. Adjoint goes the
// other way: each element of the image gathers from the results it had a part in. Nearest coordinates are computed in F32,
// weights in F32 (F64 for F64). Buffers: in, out.
type Resample struct {
	Ops     []string
	Linear  bool
	Corners bool
	Adjoint bool
	Outer   int
	Image   []int
	Grid    []int
	Scale   []float64 // elements of the image for one of the result
	In, Out ir.Kind
}

func (r *Resample) name() string {
	s := "nearest"
	if r.Linear {
		s = "linear"
	}
	if r.Adjoint {
		s += "_adjoint"
	}
	return "resample_" + s
}

// Key identifies the kernel; sizes and scales are launch parameters.
func (r *Resample) Key() string {
	if err := r.check(); err != nil {
		return "resample|invalid|" + err.Error()
	}
	return fmt.Sprintf("%s|%dd|%s>%s|corners %v|ops %q", r.name(), len(r.Image), r.In, r.Out, r.Corners && r.Linear, r.Ops)
}

func (r *Resample) elements() (image, grid int) {
	image, grid = r.Outer, r.Outer
	for i := range r.Image {
		image, grid = satMul(image, r.Image[i]), satMul(grid, r.Grid[i])
	}
	return image, grid
}

// Launch returns the grid and the parameters: invocations, then for each dimension the sizes of image and grid, the scale as three
// floats that add up to it (two have 49 bits of a double's 53), and its inverse.
func (r *Resample) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := r.check(); err != nil {
		return groups, nil, err
	}
	image, grid := r.elements()
	n := grid
	if r.Adjoint {
		n = image
		if limit, trips := t.Caps.MaxLoopTrips, r.trips(); limit > 0 && trips > limit {
			return groups, nil, fmt.Errorf("%s: from %v to %v needs %d loop iterations, more than the %d that the device allows; resize in two steps", r.name(), r.Image, r.Grid, trips, limit)
		}
	}
	if limit := t.Caps.MaxBufferBytes; limit > 0 && (int64(image)*int64(r.In.Size()) > limit || int64(grid)*int64(r.In.Size()) > limit) {
		return groups, nil, fmt.Errorf("%s: images of %d and %d elements of %s; the device binds at most %d bytes to a kernel; split the batch", r.name(), image, grid, r.In, limit)
	}
	params = []uint32{uint32(n)}
	for i := range r.Image {
		high := float32(r.Scale[i])
		inverse := float32(0)
		if r.Scale[i] > 0 {
			inverse = float32(1 / r.Scale[i])
		}
		middle := float32(r.Scale[i] - float64(high))
		low := float32(r.Scale[i] - float64(high) - float64(middle))
		params = append(params, uint32(r.Image[i]), uint32(r.Grid[i]), math.Float32bits(high), math.Float32bits(middle), math.Float32bits(low), math.Float32bits(inverse))
	}
	groups, err = t.fold(r.name(), uint64(ceilDiv(n, t.config().local)))
	if err == nil && uint64(groups[0])*uint64(groups[1])*uint64(t.config().local) > 1<<32 {
		err = fmt.Errorf("%s: %d elements are too many for 32-bit indices; split the batch", r.name(), n)
	}
	return groups, params, err
}

// trips is a bound of the loop iterations of an invocation of the adjoint.
func (r *Resample) trips() int {
	total, nest := 0, 1
	for i := range r.Image {
		n := r.Grid[i]
		if r.Scale[i] > 0 && !math.IsInf(1/r.Scale[i], 0) && r.Image[i] > 2 {
			n = min(n, int(min(2/r.Scale[i], 1<<30))+6)
		}
		nest = satMul(nest, n)
		total = satAdd(total, nest)
	}
	return total
}

// Cost returns the bytes moved.
func (r *Resample) Cost() float64 {
	image, grid := r.elements()
	return float64(image)*float64(r.In.Size()) + float64(grid)*float64(r.Out.Size())
}

func (r *Resample) check() error {
	rank := len(r.Image)
	if rank < 1 || rank > 3 || len(r.Grid) != rank || len(r.Scale) != rank {
		return fmt.Errorf("%s: images of one to three dimensions, got %v to %v with scales %v", r.name(), r.Image, r.Grid, r.Scale)
	}
	if r.Outer < 0 {
		return fmt.Errorf("%s: outer size %d is negative", r.name(), r.Outer)
	}
	const far = 1 << 22 // coordinates are exact in F32, with fractions
	for i := range r.Image {
		if r.Image[i] < 1 || r.Grid[i] < 1 || r.Image[i] > far || r.Grid[i] > far {
			return fmt.Errorf("%s: sizes %v to %v; each must be from 1 to %d", r.name(), r.Image, r.Grid, far)
		}
		if s := r.Scale[i]; !(s >= 0) || math.IsInf(s, 0) {
			return fmt.Errorf("%s: scale %v", r.name(), r.Scale)
		}
	}
	if !r.In.IsFloat() || !r.Out.IsFloat() || (r.In == ir.F64) != (r.Out == ir.F64) {
		return fmt.Errorf("%s: from %s to %s; it takes floats, f64 only with f64", r.name(), r.In, r.Out)
	}
	if image, grid := r.elements(); image > maxReduceElements || grid > maxReduceElements {
		return fmt.Errorf("%s: %d and %d elements; at most %d in one tensor", r.name(), image, grid, int64(maxReduceElements))
	}
	return nil
}

// Build makes the kernel.
func (r *Resample) Build(t Target) (*ir.Kernel, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	b := ir.NewBuilder(r.name(), t.config().local, 1, 1)
	b.SetOps(r.Ops...)
	m := &resampler{r: r, b: b, value: Operand{Kind: r.In}.ValueKind(), in: b.Buffer("in", r.In, ir.Read)}
	out := b.Buffer("out", r.Out, ir.Write)
	n := b.Param("n", ir.U32)
	for i := range r.Image {
		p := func(name string, k ir.Kind) ir.Value { return b.Param(fmt.Sprintf("%s%d", name, i), k) }
		m.dims = append(m.dims, resampleDim{image: p("image", ir.U32), grid: p("grid", ir.U32), high: p("scale", ir.F32), middle: p("scale_middle", ir.F32), low: p("scale_low", ir.F32), inverse: p("inverse", ir.F32)})
	}
	id := b.Named(b.LinearID(), "id")
	b.If(b.Lt(id, n), func() {
		v := m.gather
		if r.Adjoint {
			v = m.adjoint
		}
		store(b, out, Operand{Kind: r.Out}, id, v(id), 1, accessVector, nil)
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name(), err)
	}
	return k, nil
}

type resampleDim struct{ image, grid, high, middle, low, inverse ir.Value }

type resampler struct {
	r     *Resample
	b     *ir.Builder
	value ir.Kind
	in    *ir.Mem
	dims  []resampleDim
}

// tap is an element of the image with its weight; nil is 1.
type tap struct{ at, weight ir.Value }

// taps returns what result g is made of in one dimension.
func (m *resampler) taps(d resampleDim, g ir.Value) []tap {
	b := m.b
	last := b.Sub(d.image, b.U32(1))
	if !m.r.Linear {
		at := b.Convert(b.Floor(b.Mul(b.Convert(g, ir.F32), d.high)), ir.U32)
		return []tap{{b.Min(at, last), nil}}
	}
	f := func(v float64) ir.Value { return b.Const(ir.Scalar(m.value), v) }
	scale := d.high
	if m.value == ir.F64 {
		scale = b.Add(b.Add(b.Convert(d.high, ir.F64), b.Convert(d.middle, ir.F64)), b.Convert(d.low, ir.F64))
	}
	x := b.Convert(g, m.value)
	if m.r.Corners {
		x = b.Mul(x, scale)
	} else {
		x = b.Max(b.Sub(b.Mul(b.Add(x, f(0.5)), scale), f(0.5)), f(0))
	}
	i0 := b.Min(b.Convert(b.Floor(x), ir.U32), last)
	i1 := b.Min(b.Add(i0, b.U32(1)), last)
	w := b.Min(b.Sub(x, b.Convert(i0, m.value)), f(1))
	return []tap{{i0, b.Sub(f(1), w)}, {i1, w}}
}

func (m *resampler) weigh(w, v ir.Value) ir.Value {
	if w == nil {
		return v
	}
	return m.b.Mul(w, v)
}

// gather makes an element of the result.
func (m *resampler) gather(id ir.Value) ir.Value {
	b := m.b
	var taps [][]tap
	rest := id
	for i := len(m.dims) - 1; i >= 0; i-- {
		taps = append([][]tap{m.taps(m.dims[i], b.Rem(rest, m.dims[i].grid))}, taps...)
		rest = b.Div(rest, m.dims[i].grid)
	}
	return m.blend(rest, taps, 0)
}

func (m *resampler) blend(at ir.Value, taps [][]tap, i int) ir.Value {
	b := m.b
	if i == len(taps) {
		return load(b, m.in, Operand{Kind: m.r.In}, at, 1, accessVector, nil)
	}
	var sum ir.Value
	for _, t := range taps[i] {
		v := m.weigh(t.weight, m.blend(b.Add(b.Mul(at, m.dims[i].image), t.at), taps, i+1))
		if sum == nil {
			sum = v
		} else {
			sum = b.Add(sum, v)
		}
	}
	return sum
}

// reach returns bounds, with a margin for rounding, of the results that element h has a part in.
func (m *resampler) reach(d resampleDim, h ir.Value) (lo, hi ir.Value) {
	b, f := m.b, m.b.F32
	x := b.Convert(h, ir.F32)
	var from, to ir.Value
	switch {
	case !m.r.Linear:
		from, to = b.Mul(x, d.inverse), b.Mul(b.Add(x, f(1)), d.inverse)
	case m.r.Corners:
		from, to = b.Mul(b.Sub(x, f(1)), d.inverse), b.Mul(b.Add(x, f(1)), d.inverse)
	default:
		from = b.Sub(b.Mul(b.Sub(x, f(0.5)), d.inverse), f(0.5))
		to = b.Sub(b.Mul(b.Add(x, f(1.5)), d.inverse), f(0.5))
	}
	first := b.Convert(b.Max(b.Sub(b.Floor(from), f(1)), f(0)), ir.U32)
	end := b.Convert(b.Min(b.Add(b.Floor(to), f(2)), b.Convert(d.grid, ir.F32)), ir.U32)
	// The first and the last element take what lies beyond the image's borders.
	lo = b.Select(b.Eq(h, b.U32(0)), b.U32(0), first)
	hi = b.Select(b.Eq(b.Add(h, b.U32(1)), d.image), d.grid, b.Min(end, d.grid))
	return lo, hi
}

// adjoint makes an element of the image.
func (m *resampler) adjoint(id ir.Value) ir.Value {
	b := m.b
	rank := len(m.dims)
	h := make([]ir.Value, rank)
	rest := id
	for i := rank - 1; i >= 0; i-- {
		h[i], rest = b.Rem(rest, m.dims[i].image), b.Div(rest, m.dims[i].image)
	}
	zero := b.Const(ir.Scalar(m.value), 0)
	one := b.Const(ir.Scalar(m.value), 1)
	acc := b.Var(zero)
	lo, hi := make([]ir.Value, rank), make([]ir.Value, rank)
	for i, d := range m.dims {
		lo[i], hi[i] = m.reach(d, h[i])
	}
	var walk func(i int, at, weight ir.Value)
	walk = func(i int, at, weight ir.Value) {
		if i == rank {
			v := load(b, m.in, Operand{Kind: m.r.In}, at, 1, accessVector, nil)
			b.Set(acc, b.Add(b.Get(acc), b.Mul(weight, v)))
			return
		}
		d := m.dims[i]
		b.For(lo[i], hi[i], b.U32(1), func(g ir.Value) {
			w, hit := zero, b.Bool(false)
			for _, t := range m.taps(d, g) {
				here := b.Eq(t.at, h[i])
				hit = b.Or(hit, here)
				part := t.weight
				if part == nil {
					part = one
				}
				w = b.Add(w, b.Select(here, part, zero))
			}
			b.If(hit, func() { walk(i+1, b.Add(b.Mul(at, d.grid), g), b.Mul(weight, w)) }, nil)
		})
	}
	walk(0, rest, one)
	return b.Get(acc)
}
