package gemm

import (
	"sync"
	"unsafe"
)

const (
	gatherDepth  = 320     // steps along K in registers, about
	regionValues = 3 << 16 // values of a region that stay in the second-level cache
)

// gathered is a product of weights, as a matrix of rows by channels and taps, with the matrix of what windows take from a
// source, which is packed from the source piece by piece and never in memory as a whole.
type gathered struct {
	*Conv
	isa     *isa
	workers Workers
	gather  *windows
	source  Array
	// Of a group: channels of the source, and rows of the result.
	channels, rows int
	bias           []float32
	out            Result
	// scatter says that the results are elements first, first+stride, … of the image; else they are all of the grid.
	scatter bool
	first   [3]int

	block   int // channels whose products are added in registers
	panels  int // of rows
	weights []float32
}

// convScratch is what a goroutine needs.
type convScratch struct {
	source, panel, out, rounded scratch
	from                        rowTable
	rows                        [group]*float32
	runs                        runTable
}

var convScratches = sync.Pool{New: func() any { return new(convScratch) }}

func getConvScratch() *convScratch { return convScratches.Get().(*convScratch) }

func (s *convScratch) put() {
	for _, m := range []*scratch{&s.source, &s.panel, &s.out, &s.rounded} {
		if cap(m.mem) > keep {
			*m = scratch{}
		}
	}
	convScratches.Put(s)
}

// run computes all results. pack writes a panel of weights for some channels of a group.
func (g *gathered) run(pack func(set, panel, channel0, channel1 int, from *rowTable, dst []float32)) {
	taps := len(g.gather.taps)
	g.panels = ceil(g.rows, g.isa.rows)
	blocks := ceil(g.channels, max(1, gatherDepth/max(taps, 1)))
	g.block = ceil(g.channels, blocks)
	blocks = ceil(g.channels, g.block)
	if taps > 0 {
		mem := getScratch()
		defer mem.put()
		// Block after block, in each panel after panel, of channels and taps.
		g.weights = mem.take(g.Groups * g.panels * g.channels * taps * group)
		parallel(g.workers, g.Groups*blocks*g.panels, g.block*taps*group, func(i int) {
			s := getConvScratch()
			defer s.put()
			set, block, panel := i/g.panels/blocks, i/g.panels%blocks, i%g.panels
			from, to := block*g.block, min((block+1)*g.block, g.channels)
			pack(set, panel, from, to, &s.from, g.panel(set, panel, from, to))
		})
	}
	// Pieces of the windows small enough for the cache, and enough of them for the workers.
	outer := g.gather.outer()
	extent := g.gather.grid[outer]
	pieces := 1
	if all := g.gather.region(0, extent); g.channels*all.channel > regionValues {
		pieces = ceil(g.channels*all.channel, regionValues)
	}
	if units := g.N * g.Groups; g.workers.Size() > 1 && units < 3*g.workers.Size() && g.work() > little {
		pieces = max(pieces, ceil(3*g.workers.Size(), units))
	}
	step := ceil(extent, min(pieces, extent))
	if outer == 2 {
		step = ceil(step, g.isa.width()) * g.isa.width()
	}
	pieces = ceil(extent, step)
	whole := g.gather.region(0, min(step, extent))
	parallel(g.workers, g.N*g.Groups*pieces, ceil(g.work(), max(g.N*g.Groups*pieces, 1)), func(i int) {
		r := whole
		from := i % pieces * step
		if to := min(from+step, extent); from != 0 {
			r = g.gather.region(from, to)
		}
		s := getConvScratch()
		defer s.put()
		g.unit(s, r, i/pieces/g.Groups, i/pieces%g.Groups)
	})
}

// panel returns the packed weights of some channels, which are a block.
func (g *gathered) panel(set, panel, channel0, channel1 int) []float32 {
	taps := len(g.gather.taps)
	at := (set*g.panels*g.channels + channel0*g.panels + panel*(channel1-channel0)) * taps * group
	return g.weights[at:][:(channel1-channel0)*taps*group]
}

// target is where kernels write the results of a unit: a matrix with a distance between rows.
type target struct {
	base *float32
	row  uintptr // bytes
}

// unit computes the results of a region of an image and a group.
func (g *gathered) unit(s *convScratch, r *region, image, set int) {
	n := r.windows()
	length := volume(g.gather.grid)
	inOuter := length / g.gather.grid[g.gather.outer()]
	first := (image*g.Groups+set)*g.rows*length + r.from*inOuter
	direct := !g.scatter && g.out.Store == nil && !g.Precise
	var to target
	switch {
	case direct:
		to = target{&g.out.Values[first], uintptr(4 * length)}
	case g.Precise:
		to = target{(*float32)(unsafe.Pointer(unsafe.SliceData(s.out.takeDoubles(g.rows * n)))), uintptr(8 * n)}
	default:
		to = target{unsafe.SliceData(s.out.take(g.rows * n)), uintptr(4 * n)}
	}
	switch {
	case len(g.gather.taps) == 0:
		g.nothing(to, set, n)
	case g.isDepthwise():
		g.depthwise(s, r, image, set, to)
	default:
		g.multiply(s, r, image, set, to)
	}
	if direct {
		return
	}
	values := unsafe.Slice(to.base, g.rows*n)
	if g.Precise {
		values = s.rounded.take(g.rows * n)
		round(values, unsafe.Slice((*float64)(unsafe.Pointer(to.base)), g.rows*n))
	}
	for row := range g.rows {
		v := values[row*n : (row+1)*n]
		switch {
		case g.scatter:
			g.spreadRow(v, r, (image*g.Groups+set)*g.rows+row)
		case g.out.Store != nil:
			g.out.Store(first+row*length, v)
		default:
			copy(g.out.Values[first+row*length:], v)
		}
	}
}

// nothing writes sums of no products.
func (g *gathered) nothing(to target, set, n int) {
	for row := range g.rows {
		var v float32
		if g.bias != nil {
			v = g.bias[set*g.rows+row]
		}
		p := at(to.base, uintptr(row)*to.row)
		for i := range n {
			if g.Precise {
				*(*float64)(unsafe.Add(unsafe.Pointer(p), 8*i)) = float64(v)
			} else {
				*at(p, uintptr(4*i)) = v
			}
		}
	}
}

// multiply computes the sums.
func (g *gathered) multiply(s *convScratch, r *region, image, set int, to target) {
	taps, n := len(g.gather.taps), r.windows()
	src := g.source.pointer((image*g.Groups + set) * g.channels * volume(g.gather.source))
	base := (*float32)(unsafe.Pointer(src))
	if !g.gather.asIs(r, g.source.Kind) {
		mem := s.source.take(g.channels * r.channel)
		g.gather.fill(g.isa, r, mem, g.source.Kind, src, g.channels)
		base = &mem[0]
	}
	w := g.isa.width()
	// With many rows, so that their weights leave the cache, several panels of windows use a block of them.
	const rowsAtOnce = 32
	abreast := 1
	if g.panels > rowsAtOnce {
		abreast = 8
	}
	panels := ceil(n, w)
	depth := g.block * taps
	packed := s.panel.take(min(abreast, panels) * w * depth)
	for q0 := 0; q0 < panels; q0 += abreast {
		q1 := min(q0+abreast, panels)
		for c0 := 0; c0 < g.channels; c0 += g.block {
			c1 := min(c0+g.block, g.channels)
			source := at(base, uintptr(4*c0*r.channel))
			for q := q0; q < q1; q++ {
				r.packPanel(g.isa, &s.runs, packed[(q-q0)*w*depth:], source, q*w, min(w, n-q*w), c1-c0)
			}
			for p0 := 0; p0 < g.panels; p0 += rowsAtOnce {
				for q := q0; q < q1; q++ {
					g.tiles(r, to, packed[(q-q0)*w*depth:], set, q, c0, c1, p0, min(p0+rowsAtOnce, g.panels))
				}
			}
		}
	}
}

// tiles computes the results of a panel of windows for panels p0 to p1-1 of rows.
func (g *gathered) tiles(r *region, to target, packed []float32, set, q, c0, c1, p0, p1 int) {
	w, n := g.isa.width(), r.windows()
	cols := min(w, n-q*w)
	kernels, mask := &g.isa.tiles[ceil(cols, g.isa.lanes)-1], (*int32)(nil)
	if cols%g.isa.lanes != 0 {
		mask = maskOf(cols)
	}
	var add uintptr
	if c0 > 0 {
		add = 1
	}
	depth := uintptr((c1 - c0) * len(g.gather.taps))
	for p := p0; p < p1; p++ {
		row := p * g.isa.rows
		var bias *float32
		if g.bias != nil && c1 == g.channels {
			bias = &g.bias[set*g.rows+row]
		}
		a := g.panel(set, p, c0, c1)
		c := at(to.base, uintptr(row)*to.row+uintptr(q*w)*g.isa.size)
		kernels[min(g.isa.rows, g.rows-row)-1](&a[0], 4, 4*group, &packed[0], uintptr(4*w), depth, c, to.row, mask, add, nil, bias)
	}
}

// spreadRow writes the results of a region to their places in a channel of the image.
func (g *gathered) spreadRow(v []float32, r *region, channel int) {
	grid, outer := g.gather.grid, g.gather.outer()
	out := g.out.Values[channel*volume(g.Image):][:volume(g.Image)]
	lo, hi := [3]int{}, grid
	lo[outer], hi[outer] = r.from, r.to
	for i0 := lo[0]; i0 < hi[0]; i0++ {
		for i1 := lo[1]; i1 < hi[1]; i1++ {
			at := ((g.first[0]+i0*g.Stride[0])*g.Image[1]+g.first[1]+i1*g.Stride[1])*g.Image[2] + g.first[2]
			for i2 := lo[2]; i2 < hi[2]; i2++ {
				out[at+i2*g.Stride[2]] = v[0]
				v = v[1:]
			}
		}
	}
}
