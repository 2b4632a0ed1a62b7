package lib

import "github.com/anygpu/anygpu/shaders/ir"

// Convolutions on CPU devices with wide vectors: a product whose one operand lies across the lanes, packed to panels (the
// weights, or for ConvWeight the grids), while the elements of the other are broadcast straight from the images. The
// address of such an element is the sum of one offset for its place in the window's grid and one for its place in the window, which
// come from a table. There is no matrix of windows.

// fewChannels is the number of channels below which most lanes would be idle, and manySteps the largest product of strides for
// which zeros between the elements of a grid are no waste.
const (
	fewChannels = 8
	manySteps   = 4
)

// Panels reports whether the target runs the kernel by way of packed panels.
func (c *Conv) Panels(t Target) bool {
	if t.panelPlans() == 0 || c.check() != nil || c.Groups != 1 || c.N < 1 || c.A == ir.F64 {
		return false
	}
	across, steps := c.O, 1
	if c.Op == ConvInput {
		across = c.C
		for _, s := range c.Stride {
			steps *= s
		}
	}
	src := c.source()
	for _, n := range src.size {
		if n < 1 {
			return false
		}
	}
	for i := range c.Image {
		if c.Image[i] < 1 || c.Grid[i] < 1 {
			return false
		}
	}
	bytes := satMul(src.elements(), 4)
	limit := t.Caps.MaxBufferBytes
	return across >= fewChannels && steps <= manySteps && src.elements() <= maxReduceElements && (limit == 0 || int64(bytes) <= limit)
}

// source returns the padded images that windows are read from: for ConvInput those are the grids, with zeros between their
// elements where the stride is more than 1, because an element of the image is a sum over a window of them.
func (c *Conv) source() *windowPad {
	rank := len(c.Image)
	w := &windowPad{outer: c.N * c.C, kind: c.A, ops: c.Ops, from: c.Image, before: make([]int, rank), apart: make([]int, rank), size: make([]int, rank)}
	if c.Op == ConvInput {
		w.outer, w.from = c.N*c.O, c.Grid
	}
	for i := range rank {
		reach := (c.Kernel[i] - 1) * c.Dilation[i]
		if c.Op != ConvInput {
			w.before[i], w.apart[i] = c.Pad[i], 1
			w.size[i] = (c.Grid[i]-1)*c.Stride[i] + reach + 1
			continue
		}
		w.before[i], w.apart[i] = max(0, reach-c.Pad[i]), c.Stride[i]
		w.size[i] = c.Image[i] + max(reach, c.Pad[i])
	}
	return w
}

// Stages packs the factor across the lanes, pads the images, and multiplies.
func (c *Conv) Stages(t Target) (stages []Stage, scratch []int64) {
	if !c.Panels(t) {
		return nil, nil
	}
	_, _, _, bias := c.Elements()
	kernel, grid := volume(c.Kernel), volume(c.Grid)
	src := c.source()
	per := src.outer / c.N * src.pitch()[0] // elements of one image
	add := func(g Generator, bufs ...int) { stages = append(stages, Stage{g, bufs}) }
	temp := func(n, size int) int {
		scratch = append(scratch, scratchBytes(n, size))
		return ^(len(scratch) - 1)
	}

	images, kind := 0, src.kind
	if !src.direct() {
		images, kind = temp(src.elements(), 4), ir.F32
		add(src, 0, images)
	}
	product := &panelProduct{p: panelTile, table: true, s: MatMul{A: ir.F32, B: kind, Out: c.Out, Bias: ir.Void, Ops: c.Ops}}
	product.p.swap, product.p.packAcross = true, true
	s := &product.s
	pack := &panelPack{acc: ir.F32, kind: c.B, width: panelTile.across(), lanes: panelTile.width, alongK: true, batch: 1, ops: c.Ops}
	table := c.table(src, 1)
	out := 2
	if c.Bias != ir.Void && c.Op != ConvWeight {
		s.Bias, product.rowBias, out = c.Bias, true, 3
	}
	s.M, s.N, s.K, s.Batch, s.BatchStrideB = c.O, grid, c.C*kernel, c.N, per
	switch c.Op {
	case ConvForward:
		pack.x, pack.k = c.O, c.C*kernel
	case ConvInput:
		s.M, s.N, s.K = c.C, volume(c.Image), c.O*kernel
		pack.x, pack.k, pack.pitch, pack.batch, pack.join, pack.stride = c.C, kernel, kernel, c.O, c.O, c.C*kernel
	case ConvWeight:
		images := c.imagesPerSum(grid)
		s.N, s.K, s.Batch, s.BatchStrideB = c.C*kernel, images*grid, c.N/images, images*per
		pack.x, pack.k, pack.batch, pack.join, pack.stride = c.O, grid, c.N, images, c.O*grid
		s.BatchStrideA = 1 // each sum has panels of its own
		table = c.table(src, images)
	}
	pack.align = min(pow2Factor(pack.k), pow2Factor(pack.stride))
	panels, offsets := temp(pack.elements(), 4), temp(table.elements(), 4)
	add(pack, 1, panels)
	add(table, offsets)
	if c.Op != ConvWeight {
		bufs := []int{panels, images, offsets}
		if s.Bias != ir.Void {
			bufs = append(bufs, 2)
		}
		add(product, append(bufs, out)...)
		return stages, scratch
	}
	if s.Batch == 1 {
		add(product, panels, images, offsets, out)
	} else {
		s.Out = ir.F32
		sums := temp(s.Batch*s.M*s.N, 4)
		add(product, panels, images, offsets, sums)
		add(&Reduce{Name: c.Op.String(), Ops: c.Ops, Op: ReduceSum, Outer: 1, N: s.Batch, Inner: s.M * s.N, In: []Operand{{Kind: ir.F32}}, Out: Operand{Kind: c.Out}}, sums, out)
	}
	if c.biasGradient() {
		sums := temp(c.N*bias, 4)
		add(&Reduce{Name: c.Op.String() + "_bias", Ops: c.Ops, Op: ReduceSum, Outer: c.N * bias, N: grid, Inner: 1, In: []Operand{{Kind: c.B}}, Out: Operand{Kind: ir.F32}}, 1, sums)
		add(&Reduce{Name: c.Op.String() + "_bias", Ops: c.Ops, Op: ReduceSum, Outer: 1, N: c.N, Inner: bias, In: []Operand{{Kind: ir.F32}}, Out: Operand{Kind: c.Out}}, sums, out+1)
	}
	return stages, scratch
}

// imagesPerSum is how many images ConvWeight sums at once: about as many as have 4,096 terms, which bounds the rounding error and
// gives every core work.
func (c *Conv) imagesPerSum(grid int) int {
	n := 1
	for d := 1; d <= c.N; d++ {
		if c.N%d == 0 && d*grid <= 4096 {
			n = d
		}
	}
	return n
}

// table returns the offsets of elements of the padded images: of positions, and of steps along the depth of the product, of which
// ConvWeight has those of several images.
func (c *Conv) table(src *windowPad, images int) *offsetTable {
	rank := len(c.Image)
	pitch := src.pitch()
	var places, windows []offsetDim // within the grid, within the window
	channels := c.C
	t := &offsetTable{ops: c.Ops}
	for i := range rank {
		p := pitch[i+1]
		if c.Op != ConvInput {
			places = append(places, offsetDim{c.Grid[i], c.Stride[i] * p})
			windows = append(windows, offsetDim{c.Kernel[i], c.Dilation[i] * p})
			continue
		}
		channels = c.O
		places = append(places, offsetDim{c.Image[i], p})
		windows = append(windows, offsetDim{c.Kernel[i], -c.Dilation[i] * p})
		t.start += (c.Pad[i] + src.before[i]) * p
	}
	windows = append([]offsetDim{{channels, pitch[0]}}, windows...)
	t.positions, t.steps = places, windows
	if c.Op == ConvWeight {
		t.positions, t.steps = windows, append([]offsetDim{{images, c.C * pitch[0]}}, places...)
	}
	return t
}

// volume returns the product of sizes.
func volume(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}
