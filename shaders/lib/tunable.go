package lib

import (
	"fmt"
	"hash/fnv"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Tunable is a generator with variants that give the same result by other means. Its output is its last buffer.
type Tunable interface {
	Generator
	// TuneKey names the class of shapes for which one variant serves, and the list of variants; empty if there is no choice.
	TuneKey(t Target) string
	// Variants returns the variants in a fixed order; nil where one cannot serve this shape.
	Variants(t Target) []Generator
	// Result returns the kind and the number of elements of the output.
	Result() (kind ir.Kind, elements int)
	// Tolerance bounds the difference of two variants' results, relative to the largest result.
	Tolerance() float64
}

// TuneKey has sizes by powers of two, which is what a tile's waste and use of caches depend on.
func (s *MatMul) TuneKey(t Target) string {
	if s.Tile != 0 || s.precise() || s.check() != nil || t.MatMulTiles() < 2 || t.class() == blockCPU {
		return ""
	}
	if s.M < 1 || s.N < 1 || s.K < 1 || s.Batch < 1 {
		return ""
	}
	list := fnv.New64a()
	fmt.Fprintf(list, "%+v %+v %v", matMulTiles[t.class()], panelTile, splitCounts)
	return fmt.Sprintf("matmul %016x %s %s>%s t%d%d align %d,%d,%d sizes %dx%dx%d batch %d bias %v", list.Sum64(), s.A, s.B, s.Out, b2i(s.TransA), b2i(s.TransB),
		s.alignA(), s.alignB(), pow2Factor(s.N), ceilPow2(s.M), ceilPow2(s.N), ceilPow2(s.K), ceilPow2(s.Batch), s.Bias != ir.Void)
}

// Variants are the tiles and plans of the target's class.
func (s *MatMul) Variants(t Target) []Generator {
	all := make([]Generator, t.MatMulTiles())
	for i := range all {
		v := *s
		v.Tile = i + 1
		tiles := matMulTiles[t.class()]
		if i >= len(tiles) {
			if _, ok := v.panels(t); !ok && t.panelPlans() > 0 {
				continue
			}
			if n, _ := v.parts(t); n < 2 && t.splitPlans() > 0 {
				continue
			}
		} else if tile := tiles[i]; tile.dot && !s.dotFits(tile.width) || !s.fits(tile, t.Caps) {
			continue
		}
		all[i] = &v
	}
	return all
}

// Result returns the output's kind and size.
func (s *MatMul) Result() (kind ir.Kind, elements int) { return s.Out, s.Batch * s.M * s.N }

// Tolerance allows for the order of K additions in F32, and for one rounding to the output's kind.
func (s *MatMul) Tolerance() float64 {
	switch s.Out {
	case ir.F16:
		return 1.0 / 512
	case ir.BF16:
		return 1.0 / 64
	case ir.F32:
		return 1e-4
	case ir.F64:
		return 1e-12
	}
	return 0
}
