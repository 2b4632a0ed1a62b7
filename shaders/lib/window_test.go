package lib_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// eachPlace calls f for every coordinate within sizes, in row-major order.
func eachPlace(sizes []int, f func(flat int, at []int)) {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	at := make([]int, len(sizes))
	for flat := range n {
		rest := flat
		for i := len(sizes) - 1; i >= 0; i-- {
			at[i], rest = rest%sizes[i], rest/sizes[i]
		}
		f(flat, at)
	}
}

// member is an element of a window: its number in the kernel and its place in the image.
type member struct{ k, place int }

// windowMembers lists the elements of each window, and by how much a sum over it is divided.
func windowMembers(w lib.Window) (members [][]member, divisors []float64) {
	eachPlace(w.Grid, func(_ int, g []int) {
		kernel := w.Kernel
		padded := 1
		if w.Adaptive {
			kernel = make([]int, len(g))
			for i := range g {
				kernel[i] = (w.Image[i]*(g[i]+1)+w.Grid[i]-1)/w.Grid[i] - w.Image[i]*g[i]/w.Grid[i]
			}
		} else {
			for i := range g {
				n := 0
				for k := range kernel[i] {
					if g[i]*w.Stride[i]+k < w.Image[i]+2*w.Pad[i] {
						n++
					}
				}
				padded *= n
			}
		}
		var ms []member
		eachPlace(kernel, func(flat int, k []int) {
			place := 0
			for i := range k {
				at := 0
				if w.Adaptive {
					at = w.Image[i]*g[i]/w.Grid[i] + k[i]
				} else {
					at = g[i]*w.Stride[i] - w.Pad[i] + k[i]*w.Dilation[i]
				}
				if at < 0 || at >= w.Image[i] {
					return
				}
				place = place*w.Image[i] + at
			}
			ms = append(ms, member{flat, place})
		})
		members = append(members, ms)
		d := map[lib.WindowDivide]float64{lib.DivideNone: 1, lib.DividePadded: float64(padded), lib.DivideInside: float64(len(ms)), lib.DivideBy: float64(w.Divisor)}[w.Divide]
		if w.Adaptive && w.Divide == lib.DividePadded {
			d = float64(len(ms))
		}
		divisors = append(divisors, d)
	})
	return members, divisors
}

func product(x []int) int {
	n := 1
	for _, v := range x {
		n *= v
	}
	return n
}

// windowCase makes a case of a spec with a reference by direct loops.
func windowCase(w lib.Window) kcase {
	image, grid, kernel := product(w.Image), product(w.Grid), 1
	if !w.Adaptive {
		kernel = product(w.Kernel)
	}
	members, divisors := windowMembers(w)
	ins, outs := image, grid
	switch w.Op {
	case lib.WindowUnfold:
		outs = kernel * grid
	case lib.WindowFold:
		ins, outs = kernel*grid, image
	case lib.WindowSpread, lib.WindowPlace:
		ins, outs = grid, image
	}
	in := array{kind: w.In, data: noise(w.In, w.OffsetIn+w.Outer*ins, uint64(image+grid))}
	if w.Op == lib.WindowMax { // equal elements, and a NaN
		for i := range in.data {
			in.data[i] = math.Floor(in.data[i] * 4)
		}
		if len(in.data) > 20 {
			in.data[len(in.data)/2] = math.NaN()
		}
	}
	x := in.data[w.OffsetIn:]
	out := array{kind: w.Out, data: make([]float64, w.OffsetOut+w.Outer*outs), want: make([]float64, w.OffsetOut+w.Outer*outs), rel: 1e-5, abs: 1e-5}
	if w.Out == ir.F16 || w.Out == ir.BF16 {
		out.rel, out.abs = 1.0/128, 1.0/128
	}
	places := array{kind: ir.I32, data: make([]float64, w.Outer*grid)}
	y := out.want[w.OffsetOut:]
	for o := range w.Outer {
		for g, ms := range members {
			at := o*grid + g
			if w.Op == lib.WindowPick || w.Op == lib.WindowPlace {
				if places.data[at] = -1; len(ms) > 0 {
					places.data[at] = float64(ms[(g+o)%len(ms)].place)
				}
			}
			best, where := math.Inf(-1), -1
			for _, m := range ms {
				p := o*image + m.place
				switch w.Op {
				case lib.WindowUnfold:
					y[(o*kernel+m.k)*grid+g] = x[p]
				case lib.WindowFold:
					y[p] += x[(o*kernel+m.k)*grid+g]
				case lib.WindowSum:
					y[at] += x[p] / divisors[g]
				case lib.WindowSpread:
					y[p] += x[at] / divisors[g]
				case lib.WindowMax:
					if x[p] > best || math.IsNaN(x[p]) || where < 0 {
						best, where = x[p], m.place
					}
				case lib.WindowPick:
					if m.place == int(places.data[at]) {
						y[at] = x[p]
					}
				case lib.WindowPlace:
					if m.place == int(places.data[at]) {
						y[p] += x[at]
					}
				}
			}
			if w.Op == lib.WindowMax {
				y[at] = best
				places.want = append(places.want, float64(where))
			}
		}
	}
	for i, v := range y {
		y[i] = round(w.Out, v)
	}
	bufs := []array{in}
	switch w.Op {
	case lib.WindowPick, lib.WindowPlace:
		bufs = append(bufs, places, out)
	case lib.WindowMax:
		bufs = append(bufs, out, places)
	default:
		bufs = append(bufs, out)
	}
	name := fmt.Sprintf("window %s/%v>%v/k%v s%v p%v d%v/adaptive %v/%d/%s>%s", w.Op, w.Image, w.Grid, w.Kernel, w.Stride, w.Pad, w.Dilation, w.Adaptive, w.Divide, w.In, w.Out)
	return kcase{name: name, bufs: bufs, steps: one(&w, len(bufs))}
}

func windowCases() []kcase {
	var out []kcase
	shapes := []lib.Window{
		{Outer: 3, Image: []int{11}, Grid: []int{6}, Kernel: []int{3}, Stride: []int{2}, Pad: []int{1}, Dilation: []int{1}},
		{Outer: 2, Image: []int{7, 5}, Grid: []int{7, 5}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Pad: []int{1, 1}, Dilation: []int{1, 1}},
		{Outer: 2, Image: []int{9, 7}, Grid: []int{3, 3}, Kernel: []int{2, 3}, Stride: []int{3, 2}, Pad: []int{1, 1}, Dilation: []int{3, 2}},
		{Outer: 1, Image: []int{3, 4, 5}, Grid: []int{2, 2, 4}, Kernel: []int{2, 3, 2}, Stride: []int{1, 2, 1}, Pad: []int{0, 1, 0}, Dilation: []int{1, 1, 1}},
		{Outer: 5, Image: []int{6, 6}, Grid: []int{4, 4}, Kernel: []int{3, 3}, Stride: []int{2, 2}, Pad: []int{1, 1}, Dilation: []int{1, 1}}, // the last window is cut off
		{Outer: 0, Image: []int{4}, Grid: []int{3}, Kernel: []int{2}, Stride: []int{1}, Pad: []int{0}, Dilation: []int{1}},
	}
	for i, w := range shapes {
		for op := lib.WindowUnfold; op <= lib.WindowPlace; op++ {
			w.Op, w.In, w.Out = op, ir.F32, ir.F32
			out = append(out, windowCase(w))
			if i == 2 {
				for _, k := range []ir.Kind{ir.F16, ir.BF16, ir.F64} {
					w.In, w.Out = k, k
					// The others load and store as these do.
					if op == lib.WindowUnfold || op == lib.WindowFold || op == lib.WindowMax && k != ir.F64 {
						out = append(out, windowCase(w))
					}
				}
			}
			if op == lib.WindowUnfold || op == lib.WindowFold {
				w.In, w.Out, w.OffsetIn, w.OffsetOut = ir.F32, ir.F32, 5, 3
				out = append(out, windowCase(w))
				w.OffsetIn, w.OffsetOut = 0, 0
			}
			if op == lib.WindowSum || op == lib.WindowSpread {
				w.In, w.Out = ir.F32, ir.F32
				for _, d := range []lib.WindowDivide{lib.DividePadded, lib.DivideInside, lib.DivideBy} {
					if i == 2 || i == 3 && d != lib.DivideInside || i == 4 && d == lib.DivideBy {
						continue // averages are not dilated, and not every divisor needs every shape
					}
					w.Divide, w.Divisor = d, 3
					out = append(out, windowCase(w))
				}
				w.Divide = lib.DivideNone
			}
		}
	}
	for _, s := range [][2][]int{{{7, 5}, {3, 2}}, {{3, 4}, {5, 1}}, {{10}, {4}}} {
		for op := lib.WindowSum; op <= lib.WindowPlace; op++ {
			w := lib.Window{Op: op, In: ir.F32, Out: ir.F32, Outer: 3, Image: s[0], Grid: s[1], Adaptive: true}
			if op == lib.WindowSum || op == lib.WindowSpread {
				w.Divide = lib.DivideInside
			}
			out = append(out, windowCase(w))
		}
	}
	return append(out, resampleCases()...)
}

// resampleTaps returns the elements of one dimension and their weights for result g, in float64.
func resampleTaps(r lib.Resample, i, g int) (at [2]int, weight [2]float64) {
	last := r.Image[i] - 1
	if !r.Linear {
		return [2]int{min(int(float32(g)*float32(r.Scale[i])), last), 0}, [2]float64{1, 0}
	}
	x := float64(g) * r.Scale[i]
	if !r.Corners {
		x = max(0, (float64(g)+0.5)*r.Scale[i]-0.5)
	}
	i0 := min(int(x), last)
	l := min(1, x-float64(i0))
	return [2]int{i0, min(i0+1, last)}, [2]float64{1 - l, l}
}

func resampleCase(r lib.Resample) kcase {
	image, grid := product(r.Image), product(r.Grid)
	ins, outs := image, grid
	if r.Adjoint {
		ins, outs = grid, image
	}
	in := array{kind: r.In, data: noise(r.In, r.Outer*ins, uint64(outs))}
	out := array{kind: r.Out, data: make([]float64, r.Outer*outs), want: make([]float64, r.Outer*outs), rel: 1e-4, abs: 1e-4}
	if r.Out == ir.F16 {
		out.rel, out.abs = 1.0/256, 1.0/256
	}
	eachPlace(r.Grid, func(g int, at []int) {
		for corner := range 1 << len(at) {
			place, w := 0, 1.0
			for i := range at {
				taps, weights := resampleTaps(r, i, at[i])
				place = place*r.Image[i] + taps[corner>>i&1]
				w *= weights[corner>>i&1]
			}
			for o := range r.Outer {
				if r.Adjoint {
					out.want[o*image+place] += w * in.data[o*grid+g]
				} else {
					out.want[o*grid+g] += w * in.data[o*image+place]
				}
			}
		}
	})
	for i, v := range out.want {
		out.want[i] = round(r.Out, v)
	}
	return kcase{name: fmt.Sprintf("resample %v>%v scale %v linear %v corners %v adjoint %v %s", r.Image, r.Grid, r.Scale, r.Linear, r.Corners, r.Adjoint, r.In),
		bufs: []array{in, out}, steps: one(&r, 2)}
}

func resampleCases() []kcase {
	var out []kcase
	for _, s := range []struct{ image, grid []int }{
		{[]int{5}, []int{13}}, {[]int{4, 5}, []int{8, 10}}, {[]int{7, 6}, []int{3, 11}}, {[]int{1, 9}, []int{4, 1}}, {[]int{2, 3, 4}, []int{4, 3, 7}},
	} {
		for _, mode := range [][2]bool{{false, false}, {true, false}, {true, true}} {
			for _, adjoint := range []bool{false, true} {
				r := lib.Resample{Linear: mode[0], Corners: mode[1], Adjoint: adjoint, Outer: 2, Image: s.image, Grid: s.grid, In: ir.F32, Out: ir.F32}
				for i := range s.image {
					scale := float64(s.image[i]) / float64(s.grid[i])
					if r.Corners {
						if scale = 0; s.grid[i] > 1 {
							scale = float64(s.image[i]-1) / float64(s.grid[i]-1)
						}
					}
					r.Scale = append(r.Scale, scale)
				}
				out = append(out, resampleCase(r))
				if len(s.image) == 2 && s.grid[0] == 8 {
					r.In, r.Out = ir.F64, ir.F64
					out = append(out, resampleCase(r))
					r.In, r.Out = ir.F16, ir.F16
					out = append(out, resampleCase(r))
				}
			}
		}
	}
	return out
}

func TestWindowErrors(t *testing.T) {
	ok := func() lib.Window {
		return lib.Window{Op: lib.WindowSum, In: ir.F32, Out: ir.F32, Outer: 2, Image: []int{5, 6}, Grid: []int{4, 5}, Kernel: []int{2, 2}, Stride: []int{1, 1}, Pad: []int{0, 0}, Dilation: []int{1, 1}}
	}
	for _, c := range []struct {
		name string
		edit func(*lib.Window)
		want string
	}{
		{"rank", func(w *lib.Window) { w.Grid = []int{4} }, "one to three dimensions"},
		{"stride", func(w *lib.Window) { w.Stride = []int{1, 0} }, "stride [1 0]"},
		{"lists", func(w *lib.Window) { w.Pad = nil }, "one number for each dimension"},
		{"kind", func(w *lib.Window) { w.In = ir.I32 }, "takes floats"},
		{"adaptive", func(w *lib.Window) { w.Op, w.Adaptive = lib.WindowFold, true }, "no common size"},
		{"divisor", func(w *lib.Window) { w.Divide = lib.DivideBy }, "divisor (0)"},
		{"large", func(w *lib.Window) { w.Image, w.Grid = []int{1 << 20, 1 << 20}, []int{1, 1} }, "split the batch"},
		{"far", func(w *lib.Window) { w.Stride = []int{1 << 30, 1 << 30} }, "too large for 32-bit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ok()
			c.edit(&w)
			if _, _, err := w.Launch(targets()[0].t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
			if valid := ok(); w.Key() == valid.Key() && c.name != "large" && c.name != "far" {
				t.Error("the key is that of a valid kernel")
			}
		})
	}
	limited := targets()[1].t
	limited.Caps.MaxLoopTrips = 100
	w := ok()
	w.Image, w.Kernel, w.Grid = []int{20, 20}, []int{20, 20}, []int{1, 1}
	if _, _, err := w.Launch(limited); err == nil || !strings.Contains(err.Error(), "loop iterations") {
		t.Errorf("got error %v, want one about loop iterations", err)
	}
}

// TestParseWindow checks that a native program gets back what was launched.
func TestParseWindow(t *testing.T) {
	w := lib.Window{Op: lib.WindowFold, In: ir.F32, Out: ir.F32, Outer: 2, Image: []int{5, 6}, Grid: []int{4, 5}, Kernel: []int{2, 2}, Stride: []int{1, 1}, Pad: []int{0, 0}, Dilation: []int{1, 1}, OffsetIn: 7, OffsetOut: 9}
	_, params, err := w.Launch(targets()[0].t)
	if err != nil {
		t.Fatal(err)
	}
	got, err := lib.ParseWindow(&lib.Window{Op: lib.WindowFold, In: ir.F32, Out: ir.F32, Image: []int{1, 1}}, params)
	if err != nil || fmt.Sprint(*got) != fmt.Sprint(w) {
		t.Errorf("got %+v, %v; want %+v", got, err, w)
	}
}
