package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// matMulTile is the shape of a matrix product kernel.
type matMulTile struct {
	m, n           int // rows and columns of the output that one invocation computes
	lanesM, lanesN int // invocations of a workgroup along M and along N
	width          int // lanes of a vector
	// depth is the number of products taken from workgroup memory at a time; 0: every invocation reads memory itself.
	depth  int
	double bool // two tiles of each operand in workgroup memory: one is filled while the other is multiplied
	unroll int  // products that one step of the loop over K takes from memory
	// scalarA: the elements of A are loaded one by one, because the device broadcasts from memory at no cost.
	scalarA bool
	// dot: the lanes of a vector are neighbours along K, added up at the end. Only where both operands lie along K.
	dot bool
	// precise: every product is added with Kahan's compensation. Set by tile, not by the table.
	precise bool
	// speed is the measured throughput on large matrices, relative to the best of the class; 0 leaves a tile to the tuner.
	speed float64
}

// groupM and groupN are the size of a workgroup's tile.
func (t matMulTile) groupM() int { return t.m * t.lanesM }
func (t matMulTile) groupN() int { return t.n * t.lanesN }

// matMulTiles lists the tiles of each class of device. A product takes the one with the least estimated time.
var matMulTiles = [...][]matMulTile{
	// The CPU device has its own program for floats; this is for the other kinds.
	blockCPU: {
		{m: 4, n: 1, lanesM: 1, lanesN: 64, width: 1, unroll: 1, speed: 1},
		{m: 1, n: 4, lanesM: 64, lanesN: 1, width: 1, unroll: 1, speed: 0.7},
		{m: 1, n: 1, lanesM: 8, lanesN: 8, width: 1, unroll: 1, speed: 0.5},
	},
	// A software rasteriser runs 4 to 16 invocations in the lanes of the CPU's vectors, and takes long over large programs.
	vulkanCPU: {
		{m: 8, n: 16, lanesM: 1, lanesN: 8, width: 4, unroll: 4, speed: 1},
		{m: 8, n: 16, lanesM: 8, lanesN: 1, width: 4, unroll: 2, speed: 0.9},
		{m: 8, n: 4, lanesM: 1, lanesN: 8, width: 4, unroll: 4, speed: 0.45},
		{m: 8, n: 4, lanesM: 8, lanesN: 1, width: 4, unroll: 4, speed: 0.45},
		{m: 1, n: 4, lanesM: 1, lanesN: 8, width: 4, unroll: 4, speed: 0.15},
		{m: 1, n: 4, lanesM: 8, lanesN: 1, width: 4, unroll: 4, speed: 0.15},
	},
	openclCPU: {
		{m: 4, n: 64, lanesM: 8, lanesN: 1, width: 16, unroll: 4, scalarA: true, speed: 1},
		{m: 4, n: 64, lanesM: 2, lanesN: 1, width: 16, unroll: 4, scalarA: true, speed: 0.9},
		{m: 8, n: 4, lanesM: 8, lanesN: 1, width: 16, unroll: 16, dot: true, speed: 0.5},
		{m: 8, n: 16, lanesM: 2, lanesN: 1, width: 16, unroll: 4, scalarA: true, speed: 0.6},
		{m: 1, n: 4, lanesM: 8, lanesN: 1, width: 16, unroll: 16, dot: true, speed: 0.35},
		{m: 8, n: 8, lanesM: 4, lanesN: 1, width: 8, unroll: 4, speed: 0.35},
		{m: 8, n: 4, lanesM: 4, lanesN: 1, width: 4, unroll: 4, speed: 0.2},
		{m: 1, n: 16, lanesM: 1, lanesN: 4, width: 16, unroll: 4, speed: 0.15},
	},
	gpu: {
		{m: 8, n: 8, lanesM: 16, lanesN: 16, width: 4, depth: 16, speed: 1},
		{m: 4, n: 4, lanesM: 16, lanesN: 16, width: 4, depth: 32, speed: 0.7},
		{m: 4, n: 4, lanesM: 8, lanesN: 8, width: 4, depth: 32, speed: 0.45},
		{m: 4, n: 4, lanesM: 8, lanesN: 4, width: 4, depth: 32, speed: 0.3},
		{m: 4, n: 4, lanesM: 4, lanesN: 8, width: 4, depth: 32, speed: 0.3},
		// Not measured on enough GPUs to be chosen by the sizes: for the tuner.
		{m: 8, n: 8, lanesM: 16, lanesN: 16, width: 4, depth: 8, double: true},
		{m: 8, n: 8, lanesM: 8, lanesN: 8, width: 4, depth: 16, double: true},
		{m: 4, n: 4, lanesM: 16, lanesN: 16, width: 4, depth: 16, double: true},
	},
}

// MatMulTiles returns how many shapes there are to choose from for matrix products on the target: tiles, then plans with
// packed panels or numbers of parts along K.
func (t Target) MatMulTiles() int {
	return len(matMulTiles[t.class()]) + t.panelPlans() + t.splitPlans()
}

// matMulParallel is how many workgroups keep a class of device busy; it need not be exact.
var matMulParallel = [...]float64{blockCPU: 8, vulkanCPU: 8, openclCPU: 8, gpu: 128}

// maxPreciseTile bounds the outputs of an invocation that compensates, which needs two registers for each.
const maxPreciseTile = 64

func (s *MatMul) precise() bool {
	return s.AccKind() == ir.F32 && MatMulArgs{M: s.M, N: s.N, K: s.K, Batch: s.Batch}.Precise()
}

// pick returns the index of the tile with the least estimated time: waves of workgroups times their work, padding included.
func (s *MatMul) pick(c deviceClass) int {
	if s.Tile > 0 && (s.Tile <= len(matMulTiles[c]) || c != gpu) {
		return min(s.Tile, len(matMulTiles[c])) - 1
	}
	best, least := 0, math.Inf(1)
	for i, t := range matMulTiles[c] {
		if t.speed == 0 || t.dot && !s.dotFits(t.width) || s.precise() && t.m*t.n > maxPreciseTile {
			continue
		}
		groups := float64(ceilDiv(s.M, t.groupM())) * float64(ceilDiv(s.N, t.groupN())) * float64(s.Batch)
		speed := t.speed
		if c == openclCPU && s.TransB && !t.dot {
			speed /= 3 // columns of B have to be gathered into vectors
		}
		time := math.Ceil(groups/matMulParallel[c]) * float64(t.groupM()*t.groupN()) / speed
		if time < least {
			best, least = i, time
		}
	}
	return best
}

// dotFits reports whether both operands can be read in vectors along K.
func (s *MatMul) dotFits(width int) bool {
	return !s.TransA && s.TransB && s.alignA() >= width && s.alignB() >= width
}

// tile returns the tile for a target, within its limits: the one that the sizes call for or the next that fits.
func (s *MatMul) tile(t Target) (matMulTile, error) {
	c := t.class()
	list := matMulTiles[c]
	first := s.pick(c)
	for i := range list {
		tile := list[(first+i)%len(list)]
		if tile.dot && !s.dotFits(tile.width) || i > 0 && tile.speed == 0 {
			continue
		}
		if t.Caps.MaxLanes > 0 {
			tile.width = min(tile.width, t.Caps.MaxLanes)
		}
		tile.precise = s.precise()
		if s.fits(tile, t.Caps) {
			return s.deepen(tile, t.Caps)
		}
	}
	// Every device takes a few invocations without workgroup memory.
	tile := matMulTile{m: 4, n: 4, lanesM: 1, lanesN: 1, width: 1, unroll: 1, precise: s.precise()}
	if t.Caps.MaxLanes >= 4 {
		tile.width = 4
	}
	return s.deepen(tile, t.Caps)
}

// depthClass says how often a step of the loop over K has to be doubled on a device that bounds the iterations of loops.
func (s *MatMul) depthClass() int {
	const unbounded = 120_000 // two products a step stay below 65,535 iterations, llvmpipe's bound
	d := 0
	for k := s.K; k > unbounded; k = (k + 1) / 2 {
		d++
	}
	return d
}

// deepen makes the steps of the loop over K larger where the device bounds the iterations of loops (it would leave the loop
// without a word and give a wrong sum), and reports a K that is out of reach.
func (s *MatMul) deepen(tile matMulTile, caps ir.Caps) (matMulTile, error) {
	const most = 4 // doublings; programs become too large
	if caps.MaxLoopTrips == 0 {
		return tile, nil
	}
	if tile.depth == 0 && !tile.dot {
		tile.unroll <<= min(s.depthClass(), most)
	}
	if trips := tile.trips(s.K); trips > caps.MaxLoopTrips {
		return tile, fmt.Errorf("matmul: K=%d needs %d iterations of a loop and the device runs at most %d; split the product along K and add the parts",
			s.K, trips, caps.MaxLoopTrips)
	}
	return tile, nil
}

// trips bounds the iterations of all loops that one invocation runs for depth k.
func (t matMulTile) trips(k int) int {
	store := t.m * (1 + t.n)
	switch {
	case t.depth > 0:
		return ceilDiv(k, t.depth)*(1+t.depth/sharedStep) + store
	case t.dot:
		return k/t.width + store
	}
	return k/t.unroll + t.unroll + store
}

func (s *MatMul) fits(t matMulTile, caps ir.Caps) bool {
	n := t.lanesM * t.lanesN
	over := func(limit, n int) bool { return limit > 0 && n > limit }
	return !over(caps.MaxInvocations, n) && !over(caps.MaxLocal[0], n) && (t.depth == 0 || t.sharedBytes(s.AccKind()) <= caps.SharedBytes)
}

// pitchM and pitchN are the row lengths of the tiles in workgroup memory. The padding of a vector keeps lanes that
// write a column of a tile on different banks.
func (t matMulTile) pitchM() int { return t.groupM() + t.width }
func (t matMulTile) pitchN() int { return t.groupN() + t.width }

func (t matMulTile) sharedBytes(k ir.Kind) int {
	return (1 + b2i(t.double)) * t.depth * (t.pitchM() + t.pitchN()) * k.Size()
}

// name is part of the kernel's name.
func (t matMulTile) name() string {
	s := fmt.Sprintf("%dx%dx%d", t.groupM(), t.groupN(), t.width)
	switch {
	case t.dot:
		s += "_dot"
	case t.depth > 0:
		s += fmt.Sprintf("_shared%d", t.depth)
		if t.double {
			s += "x2"
		}
	}
	if t.precise {
		s += "_precise"
	}
	return s
}
