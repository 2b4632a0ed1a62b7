package lib

import "github.com/anygpu/anygpu/shaders/ir"

// sharedStep is how many products the loop over a tile in workgroup memory has in its body.
const sharedStep = 4

// shared computes a workgroup's tile by way of workgroup memory: the invocations together read depth columns of A and
// rows of B, in blocks of width x width that they turn so that both lie along the extent; then each multiplies its part.
func (e *matMulEmitter) shared() {
	b, t := e.b, e.t
	e.interleaved()
	tileA := b.SharedArray("tile_a", e.acc, t.depth*t.pitchM())
	tileB := b.SharedArray("tile_b", e.acc, t.depth*t.pitchN())
	e.newSums(t.m*e.groups(), ir.Vec(e.acc, t.width))
	step := func(k ir.Value, whole bool) {
		e.fill(k, whole, tileA, tileB)
		b.Barrier()
		b.For(b.U32(0), b.U32(uint32(t.depth)), b.U32(sharedStep), func(d ir.Value) {
			e.multiply(d, tileA, tileB)
		})
		b.Barrier()
	}
	end := b.Named(b.Sub(e.k, b.Rem(e.k, b.U32(uint32(t.depth)))), "whole")
	b.For(b.U32(0), end, b.U32(uint32(t.depth)), func(k ir.Value) { step(k, true) })
	b.If(b.Lt(end, e.k), func() { step(end, false) }, nil)
}

// interleaved places the groups of width rows and columns of one invocation apart, so that those of neighbouring
// invocations are next to each other.
func (e *matMulEmitter) interleaved() {
	b, t := e.b, e.t
	w := b.U32(uint32(t.width))
	row := b.Named(b.Add(e.baseM, b.Mul(e.laneM, w)), "row")
	column := b.Named(b.Add(e.baseN, b.Mul(e.laneN, w)), "column")
	e.rowOf = func(i int) ir.Value { return advance(b, row, i/t.width*t.width*t.lanesM+i%t.width, nil) }
	e.columnOf = func(j int) ir.Value { return advance(b, column, j/t.width*t.width*t.lanesN+j%t.width, nil) }
}

// fill copies the tiles for k to k+depth-1 to workgroup memory, zeros past K.
func (e *matMulEmitter) fill(k ir.Value, whole bool, tileA, tileB *ir.Mem) {
	b, t := e.b, e.t
	threads := t.lanesM * t.lanesN
	blocksA, blocksB := t.groupM()/t.width*t.depth/t.width, t.groupN()/t.width*t.depth/t.width
	fillA := func(block ir.Value) { e.fillBlock(e.a, tileA, e.baseM, t.groupM(), t.pitchM(), block, k, whole) }
	fillB := func(block ir.Value) { e.fillBlock(e.bb, tileB, e.baseN, t.groupN(), t.pitchN(), block, k, whole) }
	if blocksA+blocksB <= threads { // some invocations take A, others B
		b.If(b.Lt(e.local, b.U32(uint32(blocksA))), func() { fillA(e.local) }, func() {
			block := b.Sub(e.local, b.U32(uint32(blocksA)))
			if blocksA+blocksB == threads {
				fillB(block)
			} else {
				b.If(b.Lt(block, b.U32(uint32(blocksB))), func() { fillB(block) }, nil)
			}
		})
		return
	}
	for _, part := range []struct {
		n    int
		fill func(block ir.Value)
	}{{blocksA, fillA}, {blocksB, fillB}} {
		for first := 0; first < part.n; first += threads {
			block := advance(b, e.local, first, nil)
			if first+threads <= part.n {
				part.fill(block)
			} else {
				b.If(b.Lt(block, b.U32(uint32(part.n))), func() { part.fill(block) }, nil)
			}
		}
	}
}

// fillBlock copies width positions of the extent times width of K. Blocks are numbered along the stored direction, so that
// neighbouring invocations read neighbouring memory.
func (e *matMulEmitter) fillBlock(o *matMulOperand, tile *ir.Mem, base ir.Value, size, pitch int, block, k ir.Value, whole bool) {
	b, w := e.b, e.t.width
	along := size / w
	if o.alongK {
		along = e.t.depth / w
	}
	n := b.U32(uint32(along))
	blockX, blockK := b.Rem(block, n), b.Div(block, n)
	if o.alongK {
		blockX, blockK = blockK, blockX
	}
	wv := b.U32(uint32(w))
	x, d := b.Mul(blockX, wv), b.Mul(blockK, wv)
	first := b.Add(k, d)
	at := first
	if !whole && o.alongK && o.lanesAlong(w) == w {
		at = b.Min(first, b.Sub(e.k, wv)) // K is a multiple of width: the vector is in or out as a whole
	}
	rows := o.rows(w, w, func(int) ir.Value { return b.Add(base, x) })
	var frag *matMulFrag
	if whole || o.alongK && o.lanesAlong(w) == w {
		frag = rows.load(at, w)
	} else {
		frag = rows.loadClamped(first, w, e.k)
	}
	for i := range w {
		v := frag.along(0, i, w)
		if !whole {
			v = b.Select(b.Lt(advance(b, first, i, nil), e.k), v, b.ConstLike(v, 0))
		}
		row := advance(b, d, i, nil)
		b.Store(tile, b.Add(b.Mul(row, b.U32(uint32(pitch))), x), v)
	}
}

// multiply adds the products at depths d to d+sharedStep-1 of the tiles.
func (e *matMulEmitter) multiply(d ir.Value, tileA, tileB *ir.Mem) {
	b, t := e.b, e.t
	w := b.U32(uint32(t.width))
	laneA, laneB := b.Mul(e.laneM, w), b.Mul(e.laneN, w)
	e.update(func(p *partialSums) {
		for s := range sharedStep {
			row := advance(b, d, s, nil)
			atA := b.Add(b.Mul(row, b.U32(uint32(t.pitchM()))), laneA)
			atB := b.Add(b.Mul(row, b.U32(uint32(t.pitchN()))), laneB)
			var y []ir.Value
			for j := range e.groups() {
				y = append(y, b.Load(tileB, advance(b, atB, j*t.width*t.lanesN, nil), t.width))
			}
			for i := 0; i < t.m; i += t.width {
				x := b.Load(tileA, advance(b, atA, i*t.lanesM, nil), t.width)
				for r := range t.width {
					xr := b.Splat(b.Extract(x, r), t.width)
					for j := range y {
						p.add((i+r)*e.groups()+j, xr, y[j])
					}
				}
			}
		}
	})
}
