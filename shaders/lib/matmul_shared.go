package lib

import "github.com/anygpu/anygpu/shaders/ir"

// sharedStep is how many products the loop over a tile in workgroup memory has in its body.
const sharedStep = 4

// shared computes a workgroup's tile by way of workgroup memory: the invocations together read depth columns of A and
// rows of B, in blocks of width x width that they turn so that both lie along the extent; then each multiplies its part.
func (e *matMulEmitter) shared() {
	b, t := e.b, e.t
	e.interleaved()
	copies := 1 + b2i(t.double)
	tileA := b.SharedArray("tile_a", e.acc, copies*t.depth*t.pitchM())
	tileB := b.SharedArray("tile_b", e.acc, copies*t.depth*t.pitchN())
	e.newSums(t.m*e.groups(), ir.Vec(e.acc, t.width))
	step := func(k ir.Value, whole bool) {
		e.fill(k, whole, tileA, tileB)
		b.Barrier()
		e.multiplyTile(nil, nil, tileA, tileB)
		b.Barrier()
	}
	depth := b.U32(uint32(t.depth))
	end := b.Named(e.wholeUntil(depth), "whole")
	if t.double {
		e.pipelined(end, tileA, tileB)
	} else {
		b.For(e.from, end, depth, func(k ir.Value) { step(k, true) })
	}
	b.If(b.Lt(end, e.until), func() { step(end, false) }, nil)
}

// multiplyTile multiplies the tiles at the given places in workgroup memory, nil for the first.
func (e *matMulEmitter) multiplyTile(atA, atB ir.Value, tileA, tileB *ir.Mem) {
	b := e.b
	b.For(b.U32(0), b.U32(uint32(e.t.depth)), b.U32(sharedStep), func(d ir.Value) { e.multiply(d, atA, atB, tileA, tileB) })
}

// pipelined goes through the whole steps with two tiles of each operand in workgroup memory: while one is multiplied, the next is on
// its way from memory to registers, and it takes one barrier a step.
func (e *matMulEmitter) pipelined(end ir.Value, tileA, tileB *ir.Mem) {
	b, t := e.b, e.t
	depth := b.U32(uint32(t.depth))
	sizes := [2]ir.Value{b.U32(uint32(t.depth * t.pitchM())), b.U32(uint32(t.depth * t.pitchN()))}
	b.If(b.Lt(e.from, end), func() {
		e.fill(e.from, true, tileA, tileB)
		b.Barrier()
		odd := b.Var(b.U32(0))
		last := b.Sub(end, depth)
		b.For(e.from, end, depth, func(k ir.Value) {
			now := b.Get(odd)
			next := b.Sub(b.U32(1), now)
			put := e.fetch(b.Min(b.Add(k, depth), last), tileA, tileB) // the last step reads its own tile again
			e.multiplyTile(b.Mul(now, sizes[0]), b.Mul(now, sizes[1]), tileA, tileB)
			put(b.Mul(next, sizes[0]), b.Mul(next, sizes[1]))
			b.Barrier()
			b.Set(odd, next)
		})
	}, nil)
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

// sharedPart is a part of the work of filling the tiles: blocks of one operand, of which each invocation takes one.
type sharedPart struct {
	isA   bool
	block ir.Value
	guard ir.Value // nil: every invocation takes one
}

// sharedParts divides the blocks of both tiles among the invocations.
func (e *matMulEmitter) sharedParts() []sharedPart {
	b, t := e.b, e.t
	threads := t.lanesM * t.lanesN
	blocks := [2]int{t.groupM() / t.width * t.depth / t.width, t.groupN() / t.width * t.depth / t.width}
	var parts []sharedPart
	for i, n := range blocks {
		for first := 0; first < n; first += threads {
			p := sharedPart{isA: i == 0, block: advance(b, e.local, first, nil)}
			if first+threads > n {
				p.guard = b.Lt(p.block, b.U32(uint32(n)))
			}
			parts = append(parts, p)
		}
	}
	if blocks[0]+blocks[1] <= threads { // some invocations take A, others B
		block := b.Sub(e.local, b.U32(uint32(blocks[0]))) // wraps around for those that take A
		parts[1] = sharedPart{block: block, guard: b.Lt(block, b.U32(uint32(blocks[1])))}
	}
	return parts
}

// sharedTile returns the operand of a part, its first position, and the size and the row length of its tile.
func (e *matMulEmitter) sharedTile(p sharedPart) (o *matMulOperand, base ir.Value, size, pitch int) {
	if p.isA {
		return e.a, e.baseM, e.t.groupM(), e.t.pitchM()
	}
	return e.bb, e.baseN, e.t.groupN(), e.t.pitchN()
}

// fill copies the tiles for k to k+depth-1 to workgroup memory, zeros past K.
func (e *matMulEmitter) fill(k ir.Value, whole bool, tileA, tileB *ir.Mem) {
	for _, p := range e.sharedParts() {
		tile := tileB
		if p.isA {
			tile = tileA
		}
		do := func() {
			rows, to := e.fetchBlock(p, k, whole)
			for i, v := range rows {
				e.b.Store(tile, to(i), v)
			}
		}
		if p.guard == nil {
			do()
		} else {
			e.b.If(p.guard, do, nil)
		}
	}
}

// fetch reads the tiles for k to k+depth-1, all of them within K, and returns what writes them to places in workgroup memory.
func (e *matMulEmitter) fetch(k ir.Value, tileA, tileB *ir.Mem) (put func(atA, atB ir.Value)) {
	b, t := e.b, e.t
	type held struct {
		part sharedPart
		rows []ir.Value
		to   func(i int) ir.Value
	}
	var all []held
	for _, p := range e.sharedParts() {
		h := held{part: p}
		if p.guard == nil {
			h.rows, h.to = e.fetchBlock(p, k, true)
		} else {
			vars := make([]ir.Value, t.width)
			for i := range vars {
				vars[i] = b.Var(b.Const(ir.Vec(e.acc, t.width), 0))
			}
			b.If(p.guard, func() {
				rows, _ := e.fetchBlock(p, k, true)
				for i, v := range rows {
					b.Set(vars[i], v)
				}
			}, nil)
			_, x, d := e.blockPlace(p)
			_, _, _, pitch := e.sharedTile(p)
			h.to = func(i int) ir.Value { return e.inTile(x, d, pitch, i) }
			h.rows = vars
		}
		all = append(all, h)
	}
	return func(atA, atB ir.Value) {
		for _, h := range all {
			tile, at := tileB, atB
			if h.part.isA {
				tile, at = tileA, atA
			}
			do := func() {
				for i, v := range h.rows {
					if h.part.guard != nil {
						v = b.Get(v)
					}
					b.Store(tile, b.Add(at, h.to(i)), v)
				}
			}
			if h.part.guard == nil {
				do()
			} else {
				b.If(h.part.guard, do, nil)
			}
		}
	}
}

// blockPlace returns the place of a block in its tile: along the extent and along K. Blocks are numbered along the stored direction,
// so that neighbouring invocations read neighbouring memory.
func (e *matMulEmitter) blockPlace(p sharedPart) (o *matMulOperand, x, d ir.Value) {
	b, w := e.b, e.t.width
	o, _, size, _ := e.sharedTile(p)
	along := size / w
	if o.alongK {
		along = e.t.depth / w
	}
	n := b.U32(uint32(along))
	blockX, blockK := b.Rem(p.block, n), b.Div(p.block, n)
	if o.alongK {
		blockX, blockK = blockK, blockX
	}
	wv := b.U32(uint32(w))
	return o, b.Mul(blockX, wv), b.Mul(blockK, wv)
}

// inTile is the index in a tile of position x at depth d+i.
func (e *matMulEmitter) inTile(x, d ir.Value, pitch, i int) ir.Value {
	b := e.b
	return b.Add(b.Mul(advance(b, d, i, nil), b.U32(uint32(pitch))), x)
}

// fetchBlock reads width positions of the extent times width of K, as vectors along the extent, and returns where in the tile they go.
func (e *matMulEmitter) fetchBlock(p sharedPart, k ir.Value, whole bool) (vectors []ir.Value, to func(i int) ir.Value) {
	b, w := e.b, e.t.width
	o, x, d := e.blockPlace(p)
	_, base, _, pitch := e.sharedTile(p)
	wv := b.U32(uint32(w))
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
			v = b.Select(b.Lt(advance(b, first, i, nil), e.until), v, b.ConstLike(v, 0))
		}
		vectors = append(vectors, v)
	}
	return vectors, func(i int) ir.Value { return e.inTile(x, d, pitch, i) }
}

// multiply adds the products at depths d to d+sharedStep-1 of the tiles at placeA and placeB, nil for 0.
func (e *matMulEmitter) multiply(d, placeA, placeB ir.Value, tileA, tileB *ir.Mem) {
	b, t := e.b, e.t
	w := b.U32(uint32(t.width))
	laneA, laneB := b.Mul(e.laneM, w), b.Mul(e.laneN, w)
	if placeA != nil {
		laneA, laneB = b.Add(laneA, placeA), b.Add(laneB, placeB)
	}
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
