package tensor

import "math"

// refWindow is a window of a pooling's reference: its elements' places in the image, and what a sum is divided by.
type refWindow struct {
	places  []int
	divisor float64
}

// refWindows lists the windows of a pooling over an image of the given sizes, straight from the definition.
func refWindows(image []int, a Attrs) (grid []int, windows []refWindow, err error) {
	rank := len(image)
	if a.Has("output_size") {
		if grid, err = spatial("output_size", a.Ints("output_size"), rank, 1, -1); err != nil {
			return nil, nil, err
		}
		for i := range grid {
			if grid[i] == -1 {
				grid[i] = image[i]
			}
		}
		refPlaces(grid, func(_ int, g []int) {
			var w refWindow
			refPlaces(image, func(place int, at []int) {
				for i := range at {
					lo := math.Floor(float64(g[i]*image[i]) / float64(grid[i]))
					hi := math.Ceil(float64((g[i]+1)*image[i]) / float64(grid[i]))
					if v := float64(at[i]); v < lo || v >= hi {
						return
					}
				}
				w.places = append(w.places, place)
			})
			w.divisor = float64(len(w.places))
			windows = append(windows, w)
		})
		return grid, windows, nil
	}
	lists := make([][]int, 4)
	kernelOf := firstInts(a, "kernel_size", "kernel")
	for i, l := range [][]int{kernelOf, a.Ints("stride"), a.Ints("padding"), a.Ints("dilation")} {
		def := []int{1, 1, 0, 1}[i]
		if i == 1 && len(l) == 0 {
			l = kernelOf
		}
		if lists[i], err = spatial("", l, rank, def, def); err != nil {
			return nil, nil, err
		}
	}
	kernel, stride, pad, dilation := lists[0], lists[1], lists[2], lists[3]
	for i := range image {
		span := float64(image[i] + 2*pad[i] - dilation[i]*(kernel[i]-1) - 1)
		n := int(math.Floor(span/float64(stride[i]))) + 1
		if a.Bool("ceil_mode") {
			n = int(math.Ceil(span/float64(stride[i]))) + 1
			if (n-1)*stride[i] >= image[i]+pad[i] {
				n--
			}
		}
		grid = append(grid, n)
	}
	refPlaces(grid, func(_ int, g []int) {
		var w refWindow
		padded := 0
		refPlaces(kernel, func(_ int, k []int) {
			place, inside, within := 0, true, true
			for i := range k {
				h := g[i]*stride[i] - pad[i] + k[i]*dilation[i]
				inside = inside && h >= 0 && h < image[i]
				within = within && h < image[i]+pad[i]
				place = place*image[i] + h
			}
			if inside {
				w.places = append(w.places, place)
			}
			if within {
				padded++
			}
		})
		w.divisor = float64(padded)
		if a.Has("count_include_pad") && !a.Bool("count_include_pad") {
			w.divisor = float64(len(w.places))
		}
		if d := a.Int("divisor_override", 0); d != 0 {
			w.divisor = float64(d)
		}
		windows = append(windows, w)
	})
	return grid, windows, nil
}

// poolRef is the reference of a pooling.
func poolRef(rank int, max bool) func(in []Array, a Attrs) ([]Array, error) {
	return func(in []Array, a Attrs) ([]Array, error) {
		x := in[0]
		lead := len(x.Shape) - rank
		image := x.Shape[lead:]
		grid, windows, err := refWindows(image, a)
		if err != nil {
			return nil, err
		}
		shape := append(append([]int{}, x.Shape[:lead]...), grid...)
		out := Array{Shape: shape, Data: make([]float64, Numel(shape))}
		places := Array{Shape: shape, Data: make([]float64, Numel(shape)), DType: Int64}
		for i := range out.Data {
			base, w := i/len(windows)*Numel(image), windows[i%len(windows)]
			if !max {
				for _, p := range w.places {
					out.Data[i] += x.Data[base+p] / w.divisor
				}
				continue
			}
			best := math.Inf(-1)
			for j, p := range w.places {
				if v := x.Data[base+p]; j == 0 || v > best || math.IsNaN(v) {
					best, places.Data[i] = v, float64(p)
				}
			}
			out.Data[i] = best
		}
		if max && a.Bool("return_indices") {
			return []Array{out, places}, nil
		}
		return []Array{out}, nil
	}
}

// avgGradientRef is the reference of the rows between images and windows of average pooling.
func avgGradientRef(adjoint bool) func(in []Array, a Attrs) ([]Array, error) {
	return func(in []Array, a Attrs) ([]Array, error) {
		image := a.Ints("image")
		if !adjoint {
			return poolRef(len(image), false)(in, a)
		}
		x := in[0]
		grid, windows, err := refWindows(image, a)
		if err != nil {
			return nil, err
		}
		shape := append(append([]int{}, x.Shape[:len(x.Shape)-len(grid)]...), image...)
		out := Array{Shape: shape, Data: make([]float64, Numel(shape))}
		for i, v := range x.Data {
			w := windows[i%len(windows)]
			for _, p := range w.places {
				out.Data[i/len(windows)*Numel(image)+p] += v / w.divisor
			}
		}
		return []Array{out}, nil
	}
}

// maxGradientRef is the reference of the rows between images and the places of the largest elements.
func maxGradientRef(pick bool) func(in []Array, a Attrs) ([]Array, error) {
	return func(in []Array, a Attrs) ([]Array, error) {
		x, places, image := in[0], in[1], a.Ints("image")
		lead := places.Shape[:len(places.Shape)-len(image)]
		per := Numel(places.Shape[len(lead):])
		if pick {
			out := Array{Shape: places.Shape, Data: make([]float64, len(places.Data))}
			for i, p := range places.Data {
				out.Data[i] = x.Data[i/per*Numel(image)+int(p)]
			}
			return []Array{out}, nil
		}
		shape := append(append([]int{}, lead...), image...)
		out := Array{Shape: shape, Data: make([]float64, Numel(shape))}
		for i, p := range places.Data {
			out.Data[i/per*Numel(image)+int(p)] += x.Data[i]
		}
		return []Array{out}, nil
	}
}

// --- samples ---

func poolImage(rank int) []int { return [][]int{{11}, {7, 9}}[rank-1] }

func maxPoolSamples(rank int) []Sample {
	x := windowArray(3, append([]int{2, 3}, poolImage(rank)...)...)
	integers := x
	integers.DType = Int64
	one := windowArray(5, append([]int{2}, poolImage(rank)...)...)
	return []Sample{
		{Name: "plain", In: []Array{x}, Attrs: Attrs{"kernel_size": 2}},
		{Name: "overlapping", In: []Array{x}, Attrs: Attrs{"kernel_size": 3, "stride": 2, "padding": 1}},
		{Name: "ceil", In: []Array{x}, Attrs: Attrs{"kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": true}},
		{Name: "dilated with indices", In: []Array{x}, Attrs: Attrs{"kernel_size": 2, "stride": 1, "dilation": 3, "return_indices": true}},
		{Name: "unbatched with indices", In: []Array{one}, Attrs: Attrs{"kernel_size": 3, "stride": 1, "return_indices": true}},
		{Name: "kernel", In: []Array{x}, Attrs: Attrs{"kernel_size": 13}, Err: "larger than the padded image"},
		{Name: "padding", In: []Array{x}, Attrs: Attrs{"kernel_size": 2, "padding": 2}, Err: "at most half of effective kernel size"},
		{Name: "no kernel", In: []Array{x}, Err: "need a kernel size"},
		{Name: "rank", In: []Array{windowArray(1, 4)}, Attrs: Attrs{"kernel_size": 2}, Err: "but got input of size [4]"},
		{Name: "integers", In: []Array{integers}, Attrs: Attrs{"kernel_size": 2}, Err: "not implemented for int64"},
	}
}

func avgPoolSamples(rank int) []Sample {
	x := windowArray(4, append([]int{2, 3}, poolImage(rank)...)...)
	return []Sample{
		{Name: "plain", In: []Array{x}, Attrs: Attrs{"kernel_size": 2}},
		{Name: "padded", In: []Array{x}, Attrs: Attrs{"kernel_size": 3, "stride": 2, "padding": 1}},
		{Name: "without padding in the mean", In: []Array{x}, Attrs: Attrs{"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": false}},
		{Name: "ceil", In: []Array{x}, Attrs: Attrs{"kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": true}},
		{Name: "ceil without padding in the mean", In: []Array{x}, Attrs: Attrs{"kernel_size": 4, "stride": 3, "padding": 1, "ceil_mode": true, "count_include_pad": false}},
		{Name: "divisor", In: []Array{x}, Attrs: Attrs{"kernel_size": 2, "stride": 1, "divisor_override": 3}},
		{Name: "kernel", In: []Array{x}, Attrs: Attrs{"kernel_size": 13}, Err: "larger than the padded image"},
		{Name: "padding", In: []Array{x}, Attrs: Attrs{"kernel_size": 2, "padding": 2}, Err: "at most half of effective kernel size"},
		{Name: "divisor below 0", In: []Array{x}, Attrs: Attrs{"kernel_size": 2, "divisor_override": -1}, Err: "must be positive"},
	}
}

func adaptiveSamples(rank int) []Sample {
	x := windowArray(6, append([]int{2, 3}, poolImage(rank)...)...)
	return []Sample{
		{Name: "fewer", In: []Array{x}, Attrs: Attrs{"output_size": 3}},
		{Name: "more", In: []Array{x}, Attrs: Attrs{"output_size": 13}},
		{Name: "one", In: []Array{x}, Attrs: Attrs{"output_size": 1}},
		{Name: "kept", In: []Array{x}, Attrs: Attrs{"output_size": append([]int{-1}, []int{4}[:rank-1]...)}},
		{Name: "list", In: []Array{x}, Attrs: Attrs{"output_size": []int{1, 2, 3}}, Err: "one for each spatial dimension"},
		{Name: "missing", In: []Array{x}, Err: "an output size is needed"},
	}
}

func avgGradientSamples(adjoint bool) []Sample {
	in := func(image, grid []int) []Array {
		if adjoint {
			return []Array{windowArray(1, append([]int{2, 3}, grid...)...)}
		}
		return []Array{windowArray(1, append([]int{2, 3}, image...)...)}
	}
	return []Sample{
		{Name: "padded", In: in([]int{7, 9}, []int{4, 5}), Attrs: Attrs{"image": []int{7, 9}, "kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": false}},
		{Name: "adaptive", In: in([]int{7, 9}, []int{3, 2}), Attrs: Attrs{"image": []int{7, 9}, "output_size": []int{3, 2}}},
		{Name: "line", In: in([]int{7}, []int{3}), Attrs: Attrs{"image": []int{7}, "kernel_size": 2}},
		{Name: "size", In: []Array{windowArray(1, 2, 5)}, Attrs: Attrs{"image": []int{7}, "kernel_size": 2}, Err: "expected an operand that ends in"},
	}
}

func maxGradientSamples(pick bool) []Sample {
	places := Array{Shape: []int{2, 2, 2}, DType: Int32, Data: []float64{0, 2, 10, 12, 6, 7, 11, 18}}
	x := windowArray(1, 2, 2, 2)
	if pick {
		x = windowArray(1, 2, 5, 5)
	}
	a := Attrs{"image": []int{5, 5}, "kernel_size": 3, "stride": 2}
	bad := places
	bad.DType = Int64
	return []Sample{
		{Name: "overlapping", In: []Array{x, places}, Attrs: a},
		{Name: "places", In: []Array{x, bad}, Attrs: a, Err: "expected int32 places of size [2 2 2]"},
	}
}
