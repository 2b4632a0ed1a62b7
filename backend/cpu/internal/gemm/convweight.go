package gemm

import "unsafe"

const (
	weightParts  = 16      // parts of the batch that are summed apart, at most
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
	channels      int       // of the image, in a group
	columns, rows int       // of a group's result
	parts, pieces int       // of the batch, and of the channels
	sums          []float32 // or float64 if the sums are precise; [part][group][row][column]
}

// Weight computes the weights of images and grids: the gradient of Forward for the weight.
func (c *Conv) Weight(w Workers, image, grid Array, out Result) error {
	return c.weight(w, sets[0], image, grid, out)
}

func (c *Conv) weight(w Workers, s *isa, image, grid Array, out Result) error {
	if err := c.check(&image, nil, &grid, &out, c.weightSize()); err != nil {
		return err
	}
	ci, co := c.perGroup()
	g := &weighted{Conv: c, isa: c.isa(s), gather: c.windows(), image: image, grid: grid, channels: ci, columns: co, rows: ci * c.taps()}
	size := g.rows * co * c.Groups
	g.parts = max(1, min(c.N, weightParts, weightValues/size))
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
			g.region(s, r, base, image, set, channels, sums, &fresh)
		}
	}
	if fresh { // there was nothing to add
		clear(unsafe.Slice((*byte)(unsafe.Pointer(sums)), channels*taps*g.columns*int(g.isa.size)))
	}
}

// region adds the products of a region.
func (g *weighted) region(s *convScratch, r *region, base *float32, image, set, channels int, sums *float32, fresh *bool) {
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
				g.products(s, r, at(base, uintptr(4*(r.place(plane*r.rows+row)+column))), v, k, n, channels, sums, *fresh)
				*fresh = false
			}
		}
	}
}

// products adds the products of n runs of k windows each, of which v has the grids.
func (g *weighted) products(s *convScratch, r *region, base *float32, v view, k, n, channels int, sums *float32, fresh bool) {
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
	}
}

// store adds the parts in order and writes them as rows of weights.
func (g *weighted) store(w Workers, out Result) {
	const block = 32
	down, across := ceil(g.rows, block), ceil(g.columns, block)
	size := g.Groups * g.rows * g.columns
	whole := out.Values
	if out.Store != nil {
		mem := getScratch()
		defer mem.put()
		whole = mem.take(size)
	}
	parallel(w, g.Groups*down*across, block*block*(g.parts+4), func(i int) {
		set, row, column := i/(down*across), i/across%down*block, i%across*block
		rows, columns := min(block, g.rows-row), min(block, g.columns-column)
		first := (set*g.rows+row)*g.columns + column
		to := whole[(set*g.columns+column)*g.rows+row:]
		if g.Precise {
			sums := unsafe.Slice((*float64)(unsafe.Pointer(&g.sums[0])), g.parts*size)
			combine(to, g.rows, sums[first:], g.columns, rows, columns, size, g.parts)
		} else {
			combine(to, g.rows, g.sums[first:], g.columns, rows, columns, size, g.parts)
		}
	})
	if out.Store != nil {
		parallel(w, g.Groups*g.columns, g.rows, func(i int) { out.Store(i*g.rows, whole[i*g.rows:(i+1)*g.rows]) })
	}
}

// combine writes the sums of several parts, size values apart, transposed.
func combine[T number](to []float32, toRow int, from []T, fromRow, rows, columns, size, parts int) {
	var sums [32]T
	for r := range rows {
		s := sums[:columns]
		copy(s, from[r*fromRow:])
		for p := 1; p < parts; p++ {
			for i, v := range from[p*size+r*fromRow:][:len(s)] {
				s[i] += v
			}
		}
		for i, v := range s {
			to[i*toRow+r] = float32(v)
		}
	}
}
