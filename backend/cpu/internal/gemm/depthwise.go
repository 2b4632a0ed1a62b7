package gemm

import "unsafe"

// depthwiseFunc sums the products of one channel's taps (in bytes) by their weights, weightStep bytes apart, for 16 times
// vectors windows that are neighbours in memory, and adds the bias.
type depthwiseFunc func(dst, src *float32, taps *uintptr, ntaps uintptr, weights *float32, weightStep uintptr, bias *float32, vectors uintptr)

// depthwiseWeightFunc adds, for each tap, the products of the values of rows of length windows with the grid to 16 sums. Steps
// are in bytes.
type depthwiseWeightFunc func(sums, image *float32, taps *uintptr, ntaps uintptr, grid *float32, rows, length, imageStep, gridStep uintptr)

// slack is how many values after a region the depthwise kernel may read: the windows of a vector need not be there.
const slack = 16

// isDepthwise says whether groups of one channel go to one: each value of a source is then used once for each tap, and packing
// does not pay.
func (g *gathered) isDepthwise() bool {
	return g.isa.depthwise != nil && g.channels == 1 && g.rows == 1 && len(g.gather.taps) > 0
}

// depthwise computes the sums of a region of one channel.
func (g *gathered) depthwise(s *convScratch, r *region, image, set int, to target) {
	src := g.source.pointer((image*g.Groups + set) * volume(g.gather.source))
	mem := s.source.take(r.channel + slack)
	g.gather.fill(g.isa, r, mem, g.source.Kind, src, 1)
	clear(mem[r.channel:])
	bias := &zero
	if g.bias != nil {
		bias = &g.bias[set]
	}
	weights := g.panel(set, 0, 0, 1)
	// Rows are computed together with what lies between them.
	all := (r.rows-1)*r.rowStep + r.length
	vectors := ceil(all, 16)
	sums := s.panel.take(vectors * 16)
	out := unsafe.Slice(to.base, r.windows())
	for plane := range r.planes {
		g.isa.depthwise(&sums[0], &mem[plane*r.planeStep], &r.taps[0], uintptr(len(r.taps)), &weights[0], 4*group, bias, uintptr(vectors))
		for row := range r.rows {
			copy(out[(plane*r.rows+row)*r.length:][:r.length], sums[row*r.rowStep:])
		}
	}
}

var zero float32

// isDepthwise is as for gathered.
func (g *weighted) isDepthwise() bool {
	return g.isa.depthwiseWeight != nil && g.channels == 1 && g.columns == 1
}

// depthwise adds the products of a region of one channel to 16 sums for each tap.
func (g *weighted) depthwise(s *convScratch, r *region, base *float32, image, set int, sums []float32) {
	length := volume(g.Grid)
	start := (image*g.Groups+set)*length + r.from*length/g.gather.grid[g.gather.outer()]
	z := (*float32)(unsafe.Pointer(g.grid.pointer(start)))
	if g.grid.Kind != F32 {
		mem := s.panel.take(r.windows())
		g.isa.copyRows[g.grid.Kind](&mem[0], 0, g.grid.pointer(start), 0, 1, uintptr(r.windows()))
		z = &mem[0]
	}
	for plane := range r.planes {
		from := plane * r.rows * r.length
		g.isa.depthwiseWeight(&sums[0], at(base, uintptr(4*plane*r.planeStep)), &r.taps[0], uintptr(len(r.taps)), at(z, uintptr(4*from)),
			uintptr(r.rows), uintptr(r.length), uintptr(4*r.rowStep), uintptr(4*r.length))
		if g.bias != nil { // ones times the grid
			ones := s.rounded.take(r.length)
			for i := range ones {
				ones[i] = 1
			}
			here := uintptr(0)
			g.isa.depthwiseWeight(&sums[16*len(r.taps)], &ones[0], &here, 1, at(z, uintptr(4*from)), uintptr(r.rows), uintptr(r.length), 0, uintptr(4*r.length))
		}
	}
}
