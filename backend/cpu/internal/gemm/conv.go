package gemm

import (
	"fmt"
	"unsafe"
)

// Conv has a convolution's sizes: images [N, C, Image…], weights [O, C/Groups, Kernel…] and grids of windows [N, O, Grid…], all
// contiguous. Window g takes, in each of three dimensions, elements g*Stride - Pad + k*Dilation of the image for k < Kernel,
// and zeros outside it. Images of one or two dimensions have sizes of 1 in the first ones.
type Conv struct {
	N, Groups, C, O       int
	Image, Grid, Kernel   [3]int
	Stride, Pad, Dilation [3]int
	Precise               bool // sum in float64
}

// Array is contiguous memory of elements.
type Array struct {
	Kind Kind
	Data []byte // aligned to its elements
}

// Result is where a convolution's results go.
type Result struct {
	Values []float32
	// Store, if not nil, gets the results instead of Values: some from element at on, each once, from several goroutines.
	Store func(at int, values []float32)
}

func volume(x [3]int) int { return x[0] * x[1] * x[2] }

// taps is the number of elements of a channel of the kernel.
func (c *Conv) taps() int { return volume(c.Kernel) }

// perGroup returns the channels of a group, of the image and of the grid.
func (c *Conv) perGroup() (image, grid int) { return c.C / c.Groups, c.O / c.Groups }

// work is the number of multiply-adds.
func (c *Conv) work() int {
	image, _ := c.perGroup()
	return c.N * c.O * volume(c.Grid) * image * c.taps()
}

// check reports sizes that are no convolution's, and arrays that are too short.
func (c *Conv) check(image, weight, grid *Array, out *Result, results int) error {
	if c.N < 0 || c.Groups < 1 || c.C < 1 || c.O < 1 || c.C%c.Groups != 0 || c.O%c.Groups != 0 {
		return fmt.Errorf("gemm: a convolution of %d images from %d to %d channels in %d groups", c.N, c.C, c.O, c.Groups)
	}
	for d := range 3 {
		if c.Image[d] < 1 || c.Grid[d] < 0 || c.Kernel[d] < 1 || c.Stride[d] < 1 || c.Pad[d] < 0 || c.Dilation[d] < 1 {
			return fmt.Errorf("gemm: a convolution of images %v with kernel %v, stride %v, padding %v and dilation %v to a grid of %v", c.Image, c.Kernel, c.Stride, c.Pad, c.Dilation, c.Grid)
		}
	}
	need := c.imageSize()
	for _, o := range []struct {
		name string
		a    *Array
		n    int
	}{{"the image", image, need}, {"the weight", weight, c.weightSize()}, {"the grid", grid, c.gridSize()}} {
		if o.a != nil && len(o.a.Data) < o.n*o.a.Kind.Size() {
			return fmt.Errorf("gemm: convolution: %s needs %d elements, has %d", o.name, o.n, len(o.a.Data)/o.a.Kind.Size())
		}
	}
	if out.Store == nil && len(out.Values) < results {
		return fmt.Errorf("gemm: convolution: the result needs %d elements, has %d", results, len(out.Values))
	}
	return nil
}

func (c *Conv) imageSize() int { return c.N * c.C * volume(c.Image) }
func (c *Conv) gridSize() int  { return c.N * c.O * volume(c.Grid) }
func (c *Conv) weightSize() int {
	image, _ := c.perGroup()
	return c.O * image * c.taps()
}

// isa returns the kernels to use.
func (c *Conv) isa(s *isa) *isa {
	if c.Precise {
		return s.precise
	}
	return s
}

// Forward computes the grid of images and weights. bias, if not nil, has O values, one for each channel.
func (c *Conv) Forward(w Workers, image, weight Array, bias []float32, out Result) error {
	return c.forward(w, sets[0], image, weight, bias, out)
}

func (c *Conv) forward(w Workers, s *isa, image, weight Array, bias []float32, out Result) error {
	if err := c.check(&image, &weight, nil, &out, c.gridSize()); err != nil || c.gridSize() == 0 {
		return err
	}
	ci, co := c.perGroup()
	g := &gathered{Conv: c, isa: c.isa(s), workers: w, gather: c.windows(), source: image, channels: ci, rows: co, bias: bias, out: out}
	k := ci * c.taps()
	g.run(func(set, panel, channel0, channel1 int, from *rowTable, dst []float32) {
		row := panel * g.isa.rows
		v := view{kind: weight.Kind, base: &weight.Data[0], across: k, along: 1}
		g.isa.pack(from, dst, group, v, set*co+row, min(g.isa.rows, co-row), channel0*c.taps(), (channel1-channel0)*c.taps())
	})
	return nil
}

// Input computes the images of grids and weights: the gradient of Forward for the image, and the transposed convolution. bias,
// if not nil, has C values, one for each channel.
func (c *Conv) Input(w Workers, grid, weight Array, bias []float32, out Result) error {
	return c.input(w, sets[0], grid, weight, bias, out)
}

func (c *Conv) input(w Workers, s *isa, grid, weight Array, bias []float32, out Result) error {
	if err := c.check(nil, &weight, &grid, &out, c.imageSize()); err != nil || c.imageSize() == 0 {
		return err
	}
	to := out
	strided := volume(c.Stride) > 1
	if strided && out.Store != nil { // elements of a row come from several passes
		mem := getScratch()
		defer mem.put()
		to = Result{Values: mem.take(c.imageSize())}
	}
	ci, co := c.perGroup()
	taps, size := c.taps(), weight.Kind.Size()
	for p := range volume(c.Stride) {
		phase := [3]int{p / c.Stride[2] / c.Stride[1], p / c.Stride[2] % c.Stride[1], p % c.Stride[2]}
		gather, used, first := c.spread(phase)
		if volume(gather.grid) == 0 {
			continue
		}
		g := &gathered{Conv: c, isa: c.isa(s), workers: w, gather: gather, source: grid, channels: co, rows: ci, bias: bias, out: to}
		if strided {
			g.scatter, g.first = true, first
		}
		g.run(func(set, panel, channel0, channel1 int, from *rowTable, dst []float32) {
			row := panel * g.isa.rows
			var all []float32
			if len(used) < taps {
				all = make([]float32, taps*group)
			}
			for o := channel0; o < channel1; o++ {
				for i := range from {
					at := ((set*co+o)*ci + min(row+i, ci-1)) * taps * size
					from[i] = &weight.Data[at]
				}
				to := dst[(o-channel0)*len(used)*group:]
				if all == nil {
					g.isa.transpose[weight.Kind](&to[0], 4*group, (*[group]*byte)(from), uintptr(taps))
					continue
				}
				g.isa.transpose[weight.Kind](&all[0], 4*group, (*[group]*byte)(from), uintptr(taps))
				for i, k := range used {
					copy(to[i*group:(i+1)*group], all[k*group:])
				}
			}
		})
	}
	if strided && out.Store != nil {
		length := volume(c.Image)
		parallel(w, c.N*c.C, length, func(i int) { out.Store(i*length, to.Values[i*length:(i+1)*length]) })
	}
	return nil
}

// pointer returns the address of an element.
func (a *Array) pointer(i int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(a.Data)), i*a.Kind.Size()))
}
