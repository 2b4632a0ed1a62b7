package lib

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// panelPlan is how a matrix product is computed by way of packed panels.
type panelPlan struct {
	swap          bool // the rows of A lie across the lanes and the columns of B are broadcast; else the other way round
	rows          int  // positions of the broadcast side in a tile
	width         int  // lanes of a vector
	vectors       int  // vectors of a tile
	packAcross    bool // the operand across the lanes is packed, else its vectors are read where they are
	packBroadcast bool // the broadcast operand is packed
	lanes         int  // invocations of a workgroup, along the broadcast side
}

// across is the number of positions of a panel across the lanes.
func (p panelPlan) across() int { return p.vectors * p.width }

// packed reports whether A (or B) is packed.
func (p panelPlan) packed(a bool) bool {
	if a == p.swap {
		return p.packAcross
	}
	return p.packBroadcast
}

// panelKind is what the elements of panels of A (or B) are kept as. Across the lanes that is the operand's own kind, which takes half of the
// memory and of the bandwidth where it has 16 bits: a vector is converted once for all rows of a tile. Elements that are broadcast would be converted one by one.
func (s *MatMul) panelKind(p panelPlan, a bool) ir.Kind {
	switch {
	case a != p.swap:
		return s.AccKind()
	case a:
		return s.A
	}
	return s.B
}

// Costs of the plans of a product, in the time of a multiplication and addition in the kernel's loop.
const (
	packCost   = 16.0    // an element that is packed along the way it is stored
	turnCost   = 40.0    // an element that is turned
	directCost = 0.15    // the share by which a product is slower that reads an operand where it is
	storeCost  = 16.0    // an element of the output
	swapCost   = 24.0    // the same where it is turned
	launchCost = 100_000 // a launch
)

// panelTile is the tile in registers of a class of devices: 16 of AVX-512's 32 registers hold sums.
var panelTile = panelPlan{rows: 8, width: 16, vectors: 2, lanes: 16}

// panelPlans is how many plans there are to choose from.
func (t Target) panelPlans() int {
	if t.class() == openclCPU && t.Caps.MaxLanes == ir.MaxLanes {
		return 8
	}
	return 0
}

// panels returns the plan of a product on t, if panels are the way to compute it.
func (s *MatMul) panels(t Target) (panelPlan, bool) {
	tiles := len(matMulTiles[t.class()])
	if t.panelPlans() == 0 || s.Tile > 0 && s.Tile <= tiles || s.AccKind() != ir.F32 || s.check() != nil {
		return panelPlan{}, false
	}
	if s.precise() && s.Tile == 0 || s.K < 1 || s.Batch < 1 || s.M < 1 || s.N < 1 {
		return panelPlan{}, false
	}
	best, least := panelPlan{}, math.Inf(1)
	for _, swap := range []bool{false, true} {
		for i := range 4 {
			p := panelTile
			p.swap, p.packAcross, p.packBroadcast = swap, i&1 != 0, i&2 != 0
			if s.Tile > 0 && s.Tile-tiles-1 != i+4*b2i(swap) {
				continue
			}
			if time, ok := s.panelTime(p); ok && time < least {
				best, least = p, time
			}
		}
	}
	return best, !math.IsInf(least, 1)
}

// panelTime estimates the time of a plan; ok is false if it cannot be.
func (s *MatMul) panelTime(p panelPlan) (time float64, ok bool) {
	type side struct {
		x, align, stride int
		alongK           bool
		kind             ir.Kind
	}
	across := side{s.N, s.alignB(), s.strideB(), s.TransB, s.B}
	broadcast := side{s.M, s.alignA(), s.strideA(), !s.TransA, s.A}
	if p.swap {
		across, broadcast = broadcast, across
	}
	if !p.packAcross && (across.alongK || across.align < p.width || across.x < p.width) {
		return 0, false
	}
	k, batch := float64(s.K), float64(s.Batch)
	time = batch * k * float64(ceilDiv(across.x, p.across())*p.across()) * float64(ceilDiv(broadcast.x, p.rows)*p.rows)
	pack := func(o side, width int) float64 {
		n := float64(ceilDiv(o.x, width)*width) * k
		if o.stride > 0 {
			n *= batch
		}
		if o.alongK {
			return launchCost + n*turnCost
		}
		return launchCost + n*packCost
	}
	direct := 1.0
	extra := 0.0
	if p.packAcross {
		extra += pack(across, p.across())
	} else {
		direct += directCost
	}
	if p.packBroadcast {
		extra += pack(broadcast, p.rows)
	} else {
		direct += directCost
	}
	if !p.packAcross && across.kind != ir.F32 || !p.packBroadcast && broadcast.kind != ir.F32 {
		direct += 0.5 // converted again for every tile
	}
	out := batch * float64(s.M) * float64(s.N) * storeCost
	if p.swap {
		out *= swapCost / storeCost
	}
	return time*direct + extra + out, true
}

// Stages packs the operands and multiplies the panels, on CPU devices with wide vectors; on GPUs it cuts products along K.
func (s *MatMul) Stages(t Target) (stages []Stage, scratch []int64) {
	if t.class() == gpu {
		return s.splitStages(t)
	}
	p, ok := s.panels(t)
	if !ok || s.Tail != nil {
		return nil, nil
	}
	product := Stage{Gen: &panelProduct{s: *s, p: p}, Buffers: []int{0, 1, 2}}
	if s.Bias != ir.Void {
		product.Buffers = append(product.Buffers, 3)
	}
	pack := func(isA bool, g *panelPack) {
		if !p.packed(isA) {
			return
		}
		g.to, g.k, g.ops = s.panelKind(p, isA), s.K, s.Ops
		g.width = p.rows
		if isA == p.swap {
			g.width = p.across()
		}
		g.lanes = min(g.width, p.width)
		g.batch = s.Batch
		if g.stride == 0 {
			g.batch = 1
		}
		at := ^len(scratch)
		scratch = append(scratch, scratchBytes(g.elements(), g.to.Size()))
		stages = append(stages, Stage{Gen: g, Buffers: []int{1 - b2i(isA), at}})
		product.Buffers[1-b2i(isA)] = at
	}
	pack(true, &panelPack{kind: s.A, x: s.M, alongK: !s.TransA, align: s.alignA(), stride: s.strideA(), offset: s.OffsetA})
	pack(false, &panelPack{kind: s.B, x: s.N, alongK: s.TransB, align: s.alignB(), stride: s.strideB(), offset: s.OffsetB})
	return append(stages, product), scratch
}
