package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// A product with few outputs and a large K, such as a weight's gradient, has too few tiles to keep a GPU busy. It is cut along K
// (split-K): each part's sums go to scratch memory, and a second kernel adds them up in a fixed order.

// splitCounts are the numbers of parts that the tuner may try; maxSplit bounds what the sizes choose.
var splitCounts = [...]int{2, 4, 8, 16}

const (
	maxSplit     = 32
	splitDepth   = 32  // parts are a multiple of it, and so of every tile's depth
	minPartDepth = 256 // the least K of a part that is worth a pass over the sums
)

// splitPlans is how many numbers of parts there are to choose from.
func (t Target) splitPlans() int {
	if t.class() == gpu {
		return len(splitCounts)
	}
	return 0
}

// parts returns into how many parts, and of what depth, the product is cut on t; 1 is not at all.
func (s *MatMul) parts(t Target) (n, depth int) {
	tiles := len(matMulTiles[t.class()])
	if t.splitPlans() == 0 || s.Tail != nil || s.precise() || s.check() != nil || s.M < 1 || s.N < 1 || s.Batch < 1 || s.Tile > 0 && s.Tile <= tiles {
		return 1, s.K
	}
	switch {
	case s.Tile > tiles+len(splitCounts):
		return 1, s.K
	case s.Tile > tiles:
		n = splitCounts[s.Tile-tiles-1]
	default:
		tile, err := s.tile(t)
		if err != nil {
			return 1, s.K
		}
		groups := float64(ceilDiv(s.M, tile.groupM())) * float64(ceilDiv(s.N, tile.groupN())) * float64(s.Batch)
		n = min(int(matMulParallel[gpu]/groups), s.K/minPartDepth, maxSplit)
	}
	if n < 2 || satMul(satMul(satMul(s.M, s.N), s.Batch), n) > maxMatMulElements {
		return 1, s.K
	}
	depth = ceilDiv(ceilDiv(s.K, n), splitDepth) * splitDepth
	if depth >= s.K {
		return 1, s.K
	}
	return ceilDiv(s.K, depth), depth
}

// splitStages returns the two kernels of a product that is cut along K.
func (s *MatMul) splitStages(t Target) (stages []Stage, scratch []int64) {
	n, depth := s.parts(t)
	if n < 2 {
		return nil, nil
	}
	part := *s
	part.Out, part.Bias, part.Epilogue, part.EpilogueKey = s.AccKind(), ir.Void, nil, ""
	sums := &splitSum{s: *s, parts: n}
	bufs := []int{^0}
	if s.Bias != ir.Void {
		bufs = append(bufs, 2)
	}
	bufs = append(bufs, 2+b2i(s.Bias != ir.Void))
	scratch = []int64{scratchBytes(n*s.Batch*s.M*s.N, part.Out.Size())}
	return []Stage{{&splitProduct{s: part, parts: n, depth: depth}, []int{0, 1, ^0}}, {sums, bufs}}, scratch
}

// splitProduct multiplies the parts. Buffers: A, B, the sums [Batch, parts, M, N].
type splitProduct struct {
	s            MatMul
	parts, depth int
}

// Key identifies the kernel; the number of parts and their depth are launch parameters.
func (p *splitProduct) Key() string { return "split|" + p.s.Key() }

// Cost returns the floating-point operations.
func (p *splitProduct) Cost() float64 { return p.s.Cost() }

// Build makes the kernel, whose parameters are those of a MatMul, the number of parts and their depth.
func (p *splitProduct) Build(t Target) (*ir.Kernel, error) { return p.s.build(t, true) }

// Launch returns the grid and the parameters.
func (p *splitProduct) Launch(t Target) (groups [3]int, params []uint32, err error) {
	tile, err := p.s.tile(t)
	if err != nil {
		return groups, nil, err
	}
	if _, params, err = p.s.Launch(t); err != nil {
		return groups, nil, err
	}
	params = append(params, uint32(p.parts), uint32(p.depth))
	tiles := uint64(ceilDiv(p.s.M, tile.groupM())) * uint64(ceilDiv(p.s.N, tile.groupN()))
	groups, err = t.fold("matmul", tiles*uint64(p.s.Batch)*uint64(p.parts))
	return groups, params, err
}

// splitSum adds the parts of a product, [Batch, parts, M, N], and does what a MatMul does at its end. Buffers: the sums, bias if any,
// out.
type splitSum struct {
	s     MatMul
	parts int
}

// width is the number of neighbours of a row that an invocation makes.
func (p *splitSum) width() int { return min(4, pow2Factor(p.s.N)) }

// Key identifies the kernel.
func (p *splitSum) Key() string {
	s := &p.s
	return fmt.Sprintf("split_sum|%s>%s|bias %s|width %d|epilogue %q|ops %q", s.AccKind(), s.Out, s.Bias, p.width(), s.EpilogueKey, s.Ops)
}

// Cost returns the bytes moved.
func (p *splitSum) Cost() float64 {
	s := &p.s
	return float64(s.Batch) * float64(s.M) * float64(s.N) * float64(p.parts*s.AccKind().Size()+s.Out.Size())
}

// Launch returns the grid and the parameters: vectors, elements of a matrix, N, parts.
func (p *splitSum) Launch(t Target) (groups [3]int, params []uint32, err error) {
	n := p.s.Batch * p.s.M * p.s.N / p.width()
	for _, v := range []int{n, p.s.M * p.s.N, p.s.N, p.parts} {
		params = append(params, uint32(v))
	}
	groups, err = t.fold("split_sum", uint64(ceilDiv(n, t.config().local)))
	return groups, params, err
}

// Build makes the kernel.
func (p *splitSum) Build(t Target) (*ir.Kernel, error) {
	s, width := &p.s, p.width()
	acc := s.AccKind()
	b := ir.NewBuilder("split_sum", t.config().local, 1, 1)
	b.SetOps(s.Ops...)
	in := b.Buffer("sums", acc, ir.Read)
	var bias *ir.Mem
	if s.Bias != ir.Void {
		bias = b.Buffer("bias", s.Bias, ir.Read)
	}
	out := b.Buffer("out", s.Out, ir.Write)
	n, size, columns, parts := b.Param("n", ir.U32), b.Param("size", ir.U32), b.Param("N", ir.U32), b.Param("parts", ir.U32)
	id := b.LinearID()
	b.If(b.Lt(id, n), func() {
		at := b.Mul(id, b.U32(uint32(width)))
		batch, within := b.Div(at, size), b.Rem(at, size)
		first := b.Add(b.Mul(b.Mul(batch, parts), size), within)
		sum := b.Var(b.Load(in, first, width))
		b.For(b.U32(1), parts, b.U32(1), func(i ir.Value) {
			b.Set(sum, b.Add(b.Get(sum), b.Load(in, b.Add(first, b.Mul(i, size)), width)))
		})
		v := b.Get(sum)
		if bias != nil {
			v = b.Add(v, b.Convert(load(b, bias, Operand{Kind: s.Bias}, b.Rem(within, columns), width, accessVector, nil), acc))
		}
		if s.Epilogue != nil {
			v = s.Epilogue(b, v)
		}
		if v == nil {
			b.Fail(fmt.Errorf("matmul: the epilogue returned no value"))
			return
		}
		b.Store(out, at, b.Convert(v, s.Out))
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("matmul of %s and %s: %w", s.A, s.B, err)
	}
	return k, nil
}
