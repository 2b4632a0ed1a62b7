package gemm

import (
	"fmt"
	"unsafe"
)

const (
	weightParts  = 16      // parts of the batch that are summed apart, at most
	weightPart   = 512     // windows of a part, at least: adding its sums takes time too
	weightValues = 4 << 20 // values of such sums in all, unless one alone has more
	weightUnits  = 16      // pieces of work to make, at least, where there are channels enough
	weightDepth  = 256     // windows whose products are added in registers
)

// weighted is a product of what windows take from images with grids, summed over the windows: the gradient of a
// convolution for its weight. Rows of the result are the channels and taps of the image, columns the channels of the grid.
type weighted struct {
	*Conv
	isa           *isa
	gather        *windows
	image, grid   Array
	channels      int // of the image, in a group
	columns, rows int // of a group's result
	parts, pieces int // of the batch, and of the channels
	bias          []float32
	sums          []float32 // or float64 if the sums are precise; [part][group][row][column]
}

// Weight computes the weights of images and grids: the gradient of Forward for the weight. bias, if not nil, gets the sums
// of the grids over all windows, O values: the gradient for the bias.
func (c *Conv) Weight(w Workers, image, grid Array, out Result, bias []float32) error {
	return c.weight(w, sets[0], image, grid, out, bias)
}

func (c *Conv) weight(w Workers, s *isa, image, grid Array, out Result, bias []float32) error {
	if err := c.check(&image, nil, &grid, &out, c.weightSize()); err != nil {
		return err
	}
	if bias != nil && len(bias) < c.O {
		return fmt.Errorf("gemm: convolution: the bias needs %d elements, has %d", c.O, len(bias))
	}
	ci, co := c.perGroup()
	g := &weighted{Conv: c, isa: c.isa(s), gather: c.windows(), image: image, grid: grid, channels: ci, columns: co, rows: ci * c.taps(), bias: bias}
	if bias != nil {
		g.rows++
	}
	size := g.rows * co * c.Groups
	g.parts = max(1, min(c.N, weightParts, weightValues/size, c.N*volume(c.Grid)/weightPart))
	// The parts do not depend on the workers, and so neither do the sums.
	g.pieces = min(ceil(ci, 8), ceil(weightUnits, g.parts*c.Groups))
	mem := getScratch()
	defer mem.put()
	if c.Precise {
		g.sums = mem.take(2 * g.parts * size)
	} else {
		g.sums = mem.take(g.parts * size)
	}
	channels := ceil(ci, g.pieces)
	g.pieces = ceil(ci, channels)
	parallel(w, g.parts*c.Groups*g.pieces, c.work()/(g.parts*c.Groups*g.pieces), func(i int) {
		s := getConvScratch()
		defer s.put()
		part, rest := i/(c.Groups*g.pieces), i%(c.Groups*g.pieces)
		set, first := rest/g.pieces, rest%g.pieces*channels
		g.unit(s, part, set, first, min(first+channels, ci))
	})
	g.store(w, out)
	return nil
}

// unit adds up a part of the batch for some channels of a group.
func (g *weighted) unit(s *convScratch, part, set, channel0, channel1 int) {
	outer := g.gather.outer()
	extent := g.gather.grid[outer]
	channels, taps := channel1-channel0, len(g.gather.taps)
	step := max(extent, 1)
	if extent > 0 {
		if all := g.gather.region(0, extent); channels*all.channel > regionValues {
			step = ceil(extent, ceil(channels*all.channel, regionValues))
		}
	}
	first := (part*g.Groups+set)*g.rows*g.columns + channel0*taps*g.columns
	sums := &g.sums[0]
	sums = at(sums, uintptr(first)*g.isa.size)
	fresh := true
	var lanes []float32 // sums of lanes, if the convolution is depthwise
	if g.isDepthwise() {
		lanes = s.out.take(16 * g.rows)
		clear(lanes)
	}
	r := g.gather.region(0, min(step, extent))
	for image := part * g.N / g.parts; image < (part+1)*g.N/g.parts; image++ {
		src := g.image.pointer((image*g.C + set*g.channels + channel0) * volume(g.Image))
		for from := 0; from < extent; from += step {
			if to := min(from+step, extent); r.from != from || r.to != to {
				r = g.gather.region(from, to)
			}
			base := (*float32)(unsafe.Pointer(src))
			if !g.gather.asIs(r, g.image.Kind) {
				mem := s.source.take(channels * r.channel)
				g.gather.fill(g.isa, r, mem, g.image.Kind, src, channels)
				base = &mem[0]
			}
			if g.isDepthwise() {
				g.depthwise(s, r, base, image, set, lanes)
				continue
			}
			last := channel1 == g.channels
			g.region(s, r, base, image, set, channels, last, sums, &fresh)
		}
	}
	if lanes != nil {
		to := unsafe.Slice(sums, g.rows)
		for i := range to {
			var x [16]float32
			copy(x[:], lanes[16*i:])
			for n := 8; n > 0; n /= 2 {
				for j := range n {
					x[j] += x[j+n]
				}
			}
			to[i] = x[0]
		}
		return
	}
	if fresh { // there was nothing to add
		rows := channels * taps
		if channel1 == g.channels {
			rows = g.rows - channel0*taps
		}
		clear(unsafe.Slice((*byte)(unsafe.Pointer(sums)), rows*g.columns*int(g.isa.size)))
	}
}

// region adds the products of a region; with the last channels also the bias.
func (g *weighted) region(s *convScratch, r *region, base *float32, image, set, channels int, last bool, sums *float32, fresh *bool) {
	length := volume(g.Grid)
	v := view{kind: g.grid.Kind, across: length, along: 1}
	inOuter := length / g.gather.grid[g.gather.outer()]
	start := (image*g.Groups+set)*g.columns*length + r.from*inOuter
	// Whole rows of windows where they are short, parts of one where they are long.
	rows, run := max(1, weightDepth/r.length), min(r.length, 2*weightDepth)
	for plane := range r.planes {
		for row := 0; row < r.rows; row += rows {
			n := min(rows, r.rows-row)
			for column := 0; column < r.length; column += run {
				k := min(run, r.length-column)
				x := (plane*r.rows+row)*r.length + column
				v.base = g.grid.pointer(start + x)
				g.products(s, r, at(base, uintptr(4*(r.place(plane*r.rows+row)+column))), v, k, n, channels, last, sums, *fresh)
				*fresh = false
			}
		}
	}
}

// products adds the products of n runs of k windows each, of which v has the grids.
func (g *weighted) products(s *convScratch, r *region, base *float32, v view, k, n, channels int, last bool, sums *float32, fresh bool) {
	w, taps, depth := g.isa.width(), len(r.taps), k*n
	panel := s.panel.take(w * depth)
	var add uintptr
	if !fresh {
		add = 1
	}
	cRow := uintptr(g.columns) * g.isa.size
	skip := uintptr(4 * (r.rowStep - k))
	all := channels * taps
	for q := 0; q < g.columns; q += w {
		cols := min(w, g.columns-q)
		g.isa.pack(&s.from, panel, w, v, q, cols, 0, depth)
		kernels, mask := &g.isa.runs[ceil(cols, g.isa.lanes)-1], (*int32)(nil)
		if cols%g.isa.lanes != 0 {
			mask = maskOf(cols)
		}
		channel, tap := 0, 0
		for row := 0; row < all; row += g.isa.rows {
			rows := min(g.isa.rows, all-row)
			for i := range rows {
				s.rows[i] = at(base, uintptr(4*channel*r.channel)+r.taps[tap])
				if tap++; tap == taps {
					channel, tap = channel+1, 0
				}
			}
			c := at(sums, uintptr(row)*cRow+uintptr(q)*g.isa.size)
			kernels[rows-1](&s.rows, uintptr(k), uintptr(n), skip, &panel[0], uintptr(4*w), c, cRow, mask, add, nil, nil)
		}
		if g.bias != nil && last { // ones times the grids
			c := at(sums, uintptr(all)*cRow+uintptr(q)*g.isa.size)
			g.isa.tiles[ceil(cols, g.isa.lanes)-1][0](&unit, 0, 0, &panel[0], uintptr(4*w), uintptr(depth), c, cRow, mask, add, nil, nil)
		}
	}
}

var unit float32 = 1

// store adds the parts in order and writes them as rows of weights.
func (g *weighted) store(w Workers, out Result) {
	const block = 32
	down, across := 0, ceil(g.columns, block)
	size, rows := g.Groups*g.rows*g.columns, g.channels*len(g.gather.taps)
	whole := out.Values
	if out.Store != nil {
		mem := getScratch()
		defer mem.put()
		whole = mem.take(g.Groups * rows * g.columns)
	}
	if g.bias != nil {
		for set := range g.Groups {
			first := (set*g.rows + rows) * g.columns
			to := g.bias[set*g.columns:]
			if g.Precise {
				combine(to, 1, g.doubles()[first:], g.columns, 1, g.columns, size, g.parts)
			} else {
				combine(to, 1, g.sums[first:], g.columns, 1, g.columns, size, g.parts)
			}
		}
	}
	down = ceil(rows, block)
	parallel(w, g.Groups*down*across, block*block*(g.parts+4), func(i int) {
		set, row, column := i/(down*across), i/across%down*block, i%across*block
		n, columns := min(block, rows-row), min(block, g.columns-column)
		first := (set*g.rows+row)*g.columns + column
		to := whole[(set*g.columns+column)*rows+row:]
		if g.Precise {
			combine(to, rows, g.doubles()[first:], g.columns, n, columns, size, g.parts)
		} else {
			combine(to, rows, g.sums[first:], g.columns, n, columns, size, g.parts)
		}
	})
	if out.Store != nil {
		parallel(w, g.Groups*g.columns, rows, func(i int) { out.Store(i*rows, whole[i*rows:(i+1)*rows]) })
	}
}

// doubles returns the sums, if they are precise.
func (g *weighted) doubles() []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(&g.sums[0])), len(g.sums)/2)
}

// combine writes the sums of several parts, size values apart, transposed.
func combine[T number](to []float32, toRow int, from []T, fromRow, rows, columns, size, parts int) {
	var sums [32]T
	for r := range rows {
		for c := 0; c < columns; c += len(sums) {
			s := sums[:min(len(sums), columns-c)]
			copy(s, from[r*fromRow+c:])
			for p := 1; p < parts; p++ {
				for i, v := range from[p*size+r*fromRow+c:][:len(s)] {
					s[i] += v
				}
			}
			for i, v := range s {
				to[(c+i)*toRow+r] = float32(v)
			}
		}
	}
}
