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

// The workspace of a convolution, which padded images and packed grids take, is convShare times the bytes of its images and grids, and at least
// convWorkspace bytes: a model that needs less memory for its activations needs less altogether. Pieces of a batch cost launches, and
// convolutions in float32 rarely need more than one. Tests make both small.
var (
	convWorkspace = 1 << 20
	convShare     = 1.25
)

// workspace returns the bytes that padded images and packed grids may take.
func (c *Conv) workspace() int {
	tensors := satMul(c.N, satAdd(satMul(c.C, satVolume(c.Image)), satMul(c.O, satVolume(c.Grid))))
	return max(convWorkspace, int(convShare*float64(satMul(tensors, c.A.Size()))))
}

// piece returns how many images are done at once, whole groups of unit images, if each takes so many bytes of workspace. All pieces are about equally large.
func (c *Conv) piece(unit, bytes int) int {
	units := c.N / unit
	most := max(1, c.workspace()/max(satMul(unit, bytes), 1))
	return unit * ceilDiv(units, ceilDiv(units, most))
}

// Stages packs the factor across the lanes, pads the images, and multiplies: the images in pieces where they need much workspace.
func (c *Conv) Stages(t Target) (stages []Stage, scratch []int64) {
	if !c.Panels(t) {
		return nil, nil
	}
	s := convStages{Conv: c, src: c.source(), grid: volume(c.Grid), kernel: volume(c.Kernel)}
	if c.Op == ConvWeight {
		s.sum()
	} else {
		s.each()
	}
	return s.stages, s.scratch
}

// convStages collects the stages of a convolution by way of panels.
type convStages struct {
	*Conv
	src          *windowPad
	grid, kernel int // volumes
	stages       []Stage
	scratch      []int64
}

func (s *convStages) add(g Generator, bufs ...int) { s.stages = append(s.stages, Stage{g, bufs}) }

func (s *convStages) temp(n, size int) int {
	s.scratch = append(s.scratch, scratchBytes(n, size))
	return ^(len(s.scratch) - 1)
}

// perImage returns the elements of one padded image, and of those that have to be padded.
func (s *convStages) perImage() (all, padded int) {
	all = s.src.outer / s.N * s.src.pitch()[0]
	if !s.src.direct() {
		padded = all
	}
	return all, padded
}

// images adds the kernel that pads count images from first on to the workspace padded, and returns where the product finds the first of them.
func (s *convStages) images(padded, first, count int) (buffer, offset int) {
	per, _ := s.perImage()
	if s.src.direct() {
		return 0, first * per
	}
	src := *s.src
	channels := src.outer / s.N
	src.first, src.outer = first*channels, count*channels
	s.add(&src, 0, padded)
	return padded, 0
}

func (s *convStages) product() panelProduct {
	kind := ir.F32
	if s.src.direct() {
		kind = s.src.kind
	}
	g := panelProduct{p: panelTile, table: true, s: MatMul{A: s.B, B: kind, Out: s.Out, Bias: ir.Void, Ops: s.Ops}}
	g.p.swap, g.p.packAcross, g.p.packBroadcast = true, true, false
	return g
}

func (s *convStages) pack(p *panelPack) *panelPack {
	p.kind, p.to, p.width, p.lanes, p.alongK, p.ops = s.B, s.B, panelTile.across(), panelTile.width, true, s.Ops
	p.batch = max(p.batch, 1)
	p.align = min(pow2Factor(p.k), pow2Factor(p.stride), pow2Factor(p.offset))
	return p
}

// each makes the grids or the images one by one, of weights that are packed once.
func (s *convStages) each() {
	product, out := s.product(), 2
	m := &product.s
	m.M, m.N, m.K = s.O, s.grid, s.C*s.kernel
	pack := &panelPack{x: s.O, k: s.C * s.kernel}
	if s.Op == ConvInput {
		m.M, m.N, m.K = s.C, volume(s.Image), s.O*s.kernel
		pack = &panelPack{x: s.C, k: s.kernel, pitch: s.kernel, batch: s.O, join: s.O, stride: s.C * s.kernel}
	}
	table := s.table(s.src, 1)
	if s.Bias != ir.Void {
		m.Bias, product.rowBias, out = s.Bias, true, 3
	}
	per, padded := s.perImage()
	m.BatchStrideB = per
	count := s.piece(1, 4*padded)
	s.pack(pack)
	panels, offsets, room := s.temp(pack.elements(), s.B.Size()), s.temp(table.elements(), 4), 0
	if padded > 0 {
		room = s.temp(count*padded, 4)
	}
	s.add(pack, 1, panels)
	s.add(table, offsets)
	for first := 0; first < s.N; first += count {
		g := product
		g.s.Batch = min(count, s.N-first)
		g.first = first
		images, offset := s.images(room, first, g.s.Batch)
		g.s.OffsetB = offset
		bufs := []int{panels, images, offsets}
		if s.Bias != ir.Void {
			bufs = append(bufs, 2)
		}
		s.add(&g, append(bufs, out)...)
	}
}

// sum makes the weights: sums over some images each, and the sum of those.
func (s *convStages) sum() {
	const out = 2
	product := s.product()
	images := s.imagesPerSum(s.grid)
	sums := s.N / images
	m := &product.s
	per, padded := s.perImage()
	m.M, m.N, m.K = s.O, s.C*s.kernel, images*s.grid
	m.BatchStrideA, m.BatchStrideB = 1, images*per // each sum has panels of its own
	pack := panelPack{x: s.O, k: s.grid, join: images, stride: s.O * s.grid}
	table := s.table(s.src, images)
	each := pack // the panels of one sum
	each.batch = images
	count := s.piece(images, 4*padded+s.B.Size()*s.pack(&each).elements()/images)
	each.batch = count
	panels, offsets, room := s.temp(each.elements(), s.B.Size()), s.temp(table.elements(), 4), 0
	if padded > 0 {
		room = s.temp(count*padded, 4)
	}
	to := out
	if sums > 1 {
		m.Out = ir.F32
		to = s.temp(sums*m.M*m.N, 4)
	}
	s.add(table, offsets)
	for first := 0; first < s.N; first += count {
		g, p := product, pack
		p.batch = min(count, s.N-first)
		p.offset = first * pack.stride
		s.add(s.pack(&p), 1, panels)
		g.s.Batch, g.first = p.batch/images, first/images
		from, offset := s.images(room, first, p.batch)
		g.s.OffsetB = offset
		s.add(&g, panels, from, offsets, to)
	}
	if sums > 1 {
		s.add(&Reduce{Name: s.Op.String(), Ops: s.Ops, Op: ReduceSum, Outer: 1, N: sums, Inner: m.M * m.N, In: []Operand{{Kind: ir.F32}}, Out: Operand{Kind: s.Out}}, to, out)
	}
	if s.biasGradient() {
		_, _, _, bias := s.Elements()
		sums := s.temp(s.N*bias, 4)
		s.add(&Reduce{Name: s.Op.String() + "_bias", Ops: s.Ops, Op: ReduceSum, Outer: s.N * bias, N: s.grid, Inner: 1, In: []Operand{{Kind: s.B}}, Out: Operand{Kind: ir.F32}}, 1, sums)
		s.add(&Reduce{Name: s.Op.String() + "_bias", Ops: s.Ops, Op: ReduceSum, Outer: 1, N: s.N, Inner: bias, In: []Operand{{Kind: ir.F32}}, Out: Operand{Kind: s.Out}}, sums, out+1)
	}
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
