package tensor

import (
	"fmt"
	"math"
	"slices"
)

// The references of convolutions are the sums of their definition, in float64: a loop over every product.

// convSum visits every product of a convolution: the flat indices of its element of the image, of the weights and of
// the grid.
func convSum(g *convGeometry, visit func(image, weight, grid int)) {
	per := g.c / g.groups
	for n := range g.n {
		for o := range g.o {
			for ci := range per {
				channel := o/(g.o/g.groups)*per + ci
				refPlaces(g.grid, func(fg int, at []int) {
					refPlaces(g.kernel, func(fk int, k []int) {
						place := n*g.c + channel
						for i := range at {
							h := at[i]*g.stride[i] - g.padding[i] + k[i]*g.dilation[i]
							if h < 0 || h >= g.image[i] {
								return
							}
							place = place*g.image[i] + h
						}
						visit(place, (o*per+ci)*Numel(g.kernel)+fk, (n*g.o+o)*Numel(g.grid)+fg)
					})
				})
			}
		}
	}
}

// refPlaces calls f for every coordinate within sizes, in row-major order.
func refPlaces(sizes []int, f func(flat int, at []int)) {
	at := make([]int, len(sizes))
	for flat := range Numel(sizes) {
		rest := flat
		for i := len(sizes) - 1; i >= 0; i-- {
			at[i], rest = rest%sizes[i], rest/sizes[i]
		}
		f(flat, at)
	}
}

// refGeometry reads the attributes of a convolution.
func refGeometry(rank int, a Attrs) (*convGeometry, error) {
	g := &convGeometry{}
	return g, g.fill(rank, a.Ints("stride"), a.Ints("padding"), a.Ints("dilation"), a.Int("groups", 1))
}

// refBatch adds a batch dimension of 1 where there is none.
func refBatch(x Array, rank int) (shape []int, batched bool) {
	if len(x.Shape) == rank+1 {
		return append([]int{1}, x.Shape...), false
	}
	return x.Shape, true
}

func refResult(shape []int, batched bool) Array {
	out := Array{Shape: shape, Data: make([]float64, Numel(shape))}
	if !batched {
		out.Shape = shape[1:]
	}
	return out
}

// refBias starts a result with the bias of each channel.
func refBias(out *Array, in []Array, channels, size int) {
	if len(in) < 3 {
		return
	}
	for i := range out.Data {
		out.Data[i] = in[2].Data[i/size%channels]
	}
}

func convRef(in []Array, a Attrs) ([]Array, error) {
	x, w := in[0], in[1]
	rank := len(w.Shape) - 2
	g, err := refGeometry(rank, a)
	if err != nil {
		return nil, err
	}
	shape, batched := refBatch(x, rank)
	g.n, g.c, g.o, g.image, g.kernel = shape[0], shape[1], w.Shape[0], shape[2:], w.Shape[2:]
	for i, k := range g.kernel {
		size := (g.image[i]+2*g.padding[i]-g.dilation[i]*(k-1)-1)/g.stride[i] + 1
		if a.String("padding", "") == "same" {
			g.padding[i], size = g.dilation[i]*(k-1)/2, g.image[i]
		}
		g.grid = append(g.grid, size)
	}
	out := refResult(g.gridShape(), batched)
	refBias(&out, in, g.o, Numel(g.grid))
	convSum(g, func(image, weight, grid int) { out.Data[grid] += x.Data[image] * w.Data[weight] })
	return []Array{out}, nil
}

func convTransposeRef(in []Array, a Attrs) ([]Array, error) {
	x, w := in[0], in[1]
	rank := len(w.Shape) - 2
	g, err := refGeometry(rank, a)
	if err != nil {
		return nil, err
	}
	extra, err := spatial("output_padding", a.Ints("output_padding"), rank, 0, 0)
	if err != nil {
		return nil, err
	}
	shape, batched := refBatch(x, rank)
	g.n, g.o, g.c, g.grid, g.kernel = shape[0], shape[1], w.Shape[1]*g.groups, shape[2:], w.Shape[2:]
	for i, k := range g.kernel {
		g.image = append(g.image, (g.grid[i]-1)*g.stride[i]-2*g.padding[i]+g.dilation[i]*(k-1)+extra[i]+1)
	}
	out := refResult(g.imageShape(), batched)
	refBias(&out, in, g.c, Numel(g.image))
	convSum(g, func(image, weight, grid int) { out.Data[image] += x.Data[grid] * w.Data[weight] })
	return []Array{out}, nil
}

func convWeightRef(in []Array, a Attrs) ([]Array, error) {
	x, dy := in[0], in[1]
	rank := len(x.Shape) - 2
	g, err := refGeometry(rank, a)
	if err != nil {
		return nil, err
	}
	if g.kernel, err = spatial("kernel", a.Ints("kernel"), rank, 1, 1); err != nil {
		return nil, err
	}
	g.n, g.c, g.o, g.image, g.grid = x.Shape[0], x.Shape[1], dy.Shape[1], x.Shape[2:], dy.Shape[2:]
	out := refResult(g.weightShape(), true)
	convSum(g, func(image, weight, grid int) { out.Data[weight] += x.Data[image] * dy.Data[grid] })
	return []Array{out}, nil
}

// --- samples ---

// windowArray returns an array of reproducible values between -1 and 1 for samples.
func windowArray(seed int, shape ...int) Array {
	a := Array{Shape: shape, Data: make([]float64, Numel(shape))}
	for i := range a.Data {
		_, f := math.Modf(float64(seed+1)*0.7548776662466927 + float64(i)*0.5698402909980532)
		a.Data[i] = math.Round(2048*(2*f-1)) / 2048 // exact in every float but bfloat16
	}
	return a
}

// repeat returns n times v.
func repeatInt(v, n int) []int { return slices.Repeat([]int{v}, n) }

func convSamples(rank int) []Sample {
	sizes := [][]int{{11}, {7, 6}, {4, 5, 3}}[rank-1]
	shape := func(lead ...int) []int { return append(lead, sizes...) }
	kernel := func(k int, lead ...int) []int { return append(lead, repeatInt(k, rank)...) }
	arr := func(seed int, s []int) Array { return windowArray(seed, s...) }
	out := []Sample{
		{Name: "plain", In: []Array{arr(1, shape(2, 3)), arr(2, kernel(3, 4, 3)), arr(3, []int{4})}},
		{Name: "without bias, padded", In: []Array{arr(1, shape(2, 3)), arr(2, kernel(3, 4, 3))}, Attrs: Attrs{"padding": repeatInt(1, rank)}},
		{Name: "strided and dilated", In: []Array{arr(4, shape(2, 2)), arr(5, kernel(2, 3, 2)), arr(6, []int{3})}, Attrs: Attrs{"stride": 2, "dilation": 2, "padding": 1}},
		{Name: "groups", In: []Array{arr(7, shape(3, 4)), arr(8, kernel(3, 6, 2)), arr(9, []int{6})}, Attrs: Attrs{"groups": 2, "padding": 1}},
		{Name: "depthwise", In: []Array{arr(1, shape(2, 3)), arr(2, kernel(3, 3, 1))}, Attrs: Attrs{"groups": 3}},
		{Name: "pointwise", In: []Array{arr(1, shape(3, 5)), arr(2, kernel(1, 4, 5)), arr(3, []int{4})}},
		{Name: "same", In: []Array{arr(1, shape(1, 2)), arr(2, kernel(2, 2, 2))}, Attrs: Attrs{"padding": "same"}},
		{Name: "unbatched", In: []Array{arr(1, shape(3)), arr(2, kernel(3, 2, 3)), arr(3, []int{2})}},
		{Name: "empty batch", In: []Array{arr(1, shape(0, 3)), arr(2, kernel(3, 2, 3)), arr(3, []int{2})}},
		{Name: "channels", In: []Array{arr(1, shape(2, 5)), arr(2, kernel(3, 4, 3))}, Err: "to have 3 channels, but got 5 channels instead"},
		{Name: "rank", In: []Array{windowArray(1, 4), arr(2, kernel(3, 4, 3))}, Err: fmt.Sprintf("expected %dD (unbatched) or %dD (batched) input", rank+1, rank+2)},
		{Name: "kernel", In: []Array{arr(1, shape(2, 3)), arr(2, kernel(13, 4, 3))}, Err: "Kernel size can't be greater than actual input size"},
		{Name: "bias", In: []Array{arr(1, shape(2, 3)), arr(2, kernel(3, 4, 3)), arr(3, []int{5})}, Err: "expected bias to be 1-dimensional with 4 elements"},
		{Name: "groups do not divide", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(3, 3, 2))}, Attrs: Attrs{"groups": 2}, Err: "must be divisible by groups=2"},
		{Name: "stride", In: []Array{arr(1, shape(2, 3)), arr(2, kernel(3, 4, 3))}, Attrs: Attrs{"stride": 0}, Err: "must be at least 1"},
		{Name: "list", In: []Array{arr(1, shape(2, 3)), arr(2, kernel(3, 4, 3))}, Attrs: Attrs{"padding": []int{1, 1, 1, 1}}, Err: "one for each spatial dimension"},
	}
	return out
}

func convTransposeSamples(rank int) []Sample {
	sizes := [][]int{{6}, {4, 5}, {2, 3, 2}}[rank-1]
	shape := func(lead ...int) []int { return append(lead, sizes...) }
	kernel := func(k int, lead ...int) []int { return append(lead, repeatInt(k, rank)...) }
	arr := func(seed int, s []int) Array { return windowArray(seed, s...) }
	return []Sample{
		{Name: "plain", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(3, 4, 3)), arr(3, []int{3})}},
		{Name: "strided", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(3, 4, 3))}, Attrs: Attrs{"stride": 2, "padding": 1, "output_padding": 1}},
		{Name: "dilated", In: []Array{arr(1, shape(2, 2)), arr(2, kernel(2, 2, 3))}, Attrs: Attrs{"dilation": 2, "output_padding": 1}},
		{Name: "groups", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(2, 4, 3)), arr(3, []int{6})}, Attrs: Attrs{"groups": 2, "stride": 3}},
		{Name: "pointwise", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(1, 4, 3))}},
		{Name: "unbatched", In: []Array{arr(1, shape(4)), arr(2, kernel(3, 4, 3)), arr(3, []int{3})}},
		{Name: "channels", In: []Array{arr(1, shape(2, 5)), arr(2, kernel(3, 4, 3))}, Err: "to have 4 channels, but got 5 channels instead"},
		{Name: "bias", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(3, 4, 3)), arr(3, []int{4})}, Err: "1-dimensional with 3 elements"},
		{Name: "output padding", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(3, 4, 3))}, Attrs: Attrs{"stride": 2, "output_padding": 2}, Err: "output padding must be smaller"},
		{Name: "padding", In: []Array{arr(1, shape(2, 4)), arr(2, kernel(1, 4, 3))}, Attrs: Attrs{"padding": 9}, Err: "Output size is too small"},
	}
}

func convWeightSamples() []Sample {
	return []Sample{
		{Name: "padded", In: []Array{windowArray(1, 2, 3, 6, 5), windowArray(2, 2, 4, 6, 5)}, Attrs: Attrs{"kernel": []int{3, 3}, "padding": 1}},
		{Name: "strided", In: []Array{windowArray(1, 3, 2, 9), windowArray(2, 3, 4, 4)}, Attrs: Attrs{"kernel": 3, "stride": 2}},
		{Name: "groups", In: []Array{windowArray(1, 2, 4, 4, 4), windowArray(2, 2, 6, 2, 2)}, Attrs: Attrs{"kernel": 3, "groups": 2}},
		{Name: "pointwise", In: []Array{windowArray(1, 2, 4, 4, 4), windowArray(2, 2, 6, 4, 4)}, Attrs: Attrs{"kernel": 1}},
		{Name: "windows", In: []Array{windowArray(1, 2, 3, 6, 5), windowArray(2, 2, 4, 6, 5)}, Attrs: Attrs{"kernel": 3}, Err: "has [4 3] windows of kernel [3 3]"},
	}
}
