package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// matMulEmitter builds one kernel.
type matMulEmitter struct {
	s    *MatMul
	t    matMulTile
	b    *ir.Builder
	acc  ir.Kind
	out  *ir.Mem
	bias *ir.Mem
	tail matMulTail
	// split: the kernel computes parts of products, along K.
	split bool

	a, bb    *matMulOperand
	m, n, k  ir.Value // sizes
	batch    ir.Value // this workgroup's matrix
	slot     ir.Value // and that of the output: another for each part
	from     ir.Value // the products along K of this workgroup
	until    ir.Value
	baseM    ir.Value // first row and column of the workgroup's tile
	baseN    ir.Value
	laneM    ir.Value // the invocation's place in the workgroup
	laneN    ir.Value
	local    ir.Value
	sums     []ir.Value // variables: rows by groups of columns
	lost     []ir.Value // what rounding took from each sum, in precise kernels
	rowOf    func(i int) ir.Value
	columnOf func(j int) ir.Value
}

func newMatMulEmitter(s *MatMul, t matMulTile) *matMulEmitter {
	name := "matmul_" + t.name()
	if s.TransA || s.TransB {
		name += fmt.Sprintf("_t%d%d", b2i(s.TransA), b2i(s.TransB))
	}
	return &matMulEmitter{s: s, t: t, acc: s.AccKind(), b: ir.NewBuilder(name, t.lanesM*t.lanesN, 1, 1)}
}

func (e *matMulEmitter) build() (*ir.Kernel, error) {
	b, s := e.b, e.s
	ops := s.Ops
	if len(ops) == 0 {
		ops = []string{"matmul"}
	}
	b.SetOps(ops...)
	if !e.split {
		template := *s
		b.SetTemplate(&template)
	}

	memA := b.Buffer("a", s.A, ir.Read)
	memB := b.Buffer("b", s.B, ir.Read)
	if s.Bias != ir.Void {
		e.bias = b.Buffer("bias", s.Bias, ir.Read)
	}
	if s.Tail != nil {
		e.declareTail()
	} else {
		e.out = b.Buffer("out", s.Out, ir.Write)
	}
	param := func(name string) ir.Value { return b.Param(name, ir.U32) }
	e.m, e.n, e.k = param("M"), param("N"), param("K")
	batches := param("batch")
	offsetA, offsetB, strideA, strideB := param("offset_a"), param("offset_b"), param("stride_a"), param("stride_b")
	tilesM, tilesN := param("tiles_m"), param("tiles_n")
	if s.Tail != nil {
		e.tail.scalars = scalarParams(b, s.Tail.Scalars)
	}
	var parts, depth ir.Value
	if e.split {
		parts, depth = param("parts"), param("depth")
		batches = b.Mul(batches, parts)
	}

	group := b.Named(b.LinearGroup(), "group")
	tiles := b.Mul(tilesM, tilesN)
	b.If(b.Lt(group, b.Mul(tiles, batches)), func() {
		e.slot = b.Div(group, tiles)
		tile := b.Sub(group, b.Mul(e.slot, tiles))
		e.batch, e.from, e.until = e.slot, b.U32(0), e.k
		if e.split {
			e.batch = b.Div(e.slot, parts)
			e.from = b.Mul(b.Sub(e.slot, b.Mul(e.batch, parts)), depth)
			e.until = b.Min(b.Add(e.from, depth), e.k)
		}
		// Down the rows first: neighbouring workgroups, which run at about the same time, then read the same columns of B
		// and few rows of A each.
		tileN := b.Div(tile, tilesM)
		tileM := b.Sub(tile, b.Mul(tileN, tilesM))
		e.baseM = b.Named(b.Mul(tileM, b.U32(uint32(e.t.groupM()))), "base_m")
		e.baseN = b.Named(b.Mul(tileN, b.U32(uint32(e.t.groupN()))), "base_n")
		e.local = b.LocalID(0)
		e.laneM, e.laneN = e.lanes()
		e.a = &matMulOperand{b: b, mem: memA, acc: e.acc, alongK: !s.TransA, align: s.alignA(), extent: e.m, pitch: e.k,
			base: b.Add(offsetA, b.Mul(e.batch, strideA))}
		e.bb = &matMulOperand{b: b, mem: memB, acc: e.acc, alongK: s.TransB, align: s.alignB(), extent: e.n, pitch: e.k,
			base: b.Add(offsetB, b.Mul(e.batch, strideB))}
		for _, o := range []*matMulOperand{e.a, e.bb} {
			if !o.alongK {
				o.pitch = o.extent
			}
		}
		switch {
		case e.t.depth > 0:
			e.shared()
		case e.t.dot:
			e.dot()
		default:
			e.registers()
		}
		e.store()
	}, nil)
	return b.Build()
}

// lanes returns the invocation's place along M and along N; neighbours are neighbours along N.
func (e *matMulEmitter) lanes() (m, n ir.Value) {
	b := e.b
	switch {
	case e.t.lanesN == 1:
		return e.local, b.U32(0)
	case e.t.lanesM == 1:
		return b.U32(0), e.local
	}
	lanesN := b.U32(uint32(e.t.lanesN))
	return b.Div(e.local, lanesN), b.Rem(e.local, lanesN)
}

func (e *matMulEmitter) groups() int { return e.t.n / e.t.width }

// blocked places an invocation's rows and columns next to each other.
func (e *matMulEmitter) blocked() {
	b, t := e.b, e.t
	row := b.Named(b.Add(e.baseM, b.Mul(e.laneM, b.U32(uint32(t.m)))), "row")
	column := b.Named(b.Add(e.baseN, b.Mul(e.laneN, b.U32(uint32(t.n)))), "column")
	e.rowOf = func(i int) ir.Value { return advance(b, row, i, nil) }
	e.columnOf = func(j int) ir.Value { return advance(b, column, j, nil) }
}

// newSums declares the variables of the sums.
func (e *matMulEmitter) newSums(n int, t ir.Type) {
	for range n {
		e.sums = append(e.sums, e.b.Var(e.b.Const(t, 0)))
		if e.t.precise {
			e.lost = append(e.lost, e.b.Var(e.b.Const(t, 0)))
		}
	}
}

// mulAdd returns acc + x*y.
func (e *matMulEmitter) mulAdd(acc, x, y ir.Value) ir.Value {
	if e.acc.IsFloat() {
		return e.b.Fma(x, y, acc)
	}
	return e.b.Add(acc, e.b.Mul(x, y))
}

// partialSums are the sums' values within a step.
type partialSums struct {
	e          *matMulEmitter
	sums, lost []ir.Value
}

// add adds x*y to sum i, with Kahan's compensation if the kernel is precise.
func (p *partialSums) add(i int, x, y ir.Value) {
	if !p.e.t.precise {
		p.sums[i] = p.e.mulAdd(p.sums[i], x, y)
		return
	}
	b := p.e.b
	term := b.Fma(x, y, b.Neg(p.lost[i]))
	sum := b.Add(p.sums[i], term)
	rest := b.Sub(b.Sub(sum, p.sums[i]), term)
	// An infinite or NaN sum has no rest worth keeping: inf-inf would turn it into NaN.
	p.lost[i] = b.Select(b.IsFinite(rest), rest, b.ConstLike(rest, 0))
	p.sums[i] = sum
}

// update runs f on the values of the sums and assigns the results: each is read and written once a step.
func (e *matMulEmitter) update(f func(p *partialSums)) {
	p := &partialSums{e: e}
	for _, v := range e.sums {
		p.sums = append(p.sums, e.b.Get(v))
	}
	for _, v := range e.lost {
		p.lost = append(p.lost, e.b.Get(v))
	}
	f(p)
	for i, v := range e.sums {
		e.b.Set(v, p.sums[i])
	}
	for i, v := range e.lost {
		e.b.Set(v, p.lost[i])
	}
}

// registers computes a tile in registers: rows of A one by one, times vectors of B.
func (e *matMulEmitter) registers() {
	b, t := e.b, e.t
	e.blocked()
	if t.scalarA {
		e.a.align = 1
	}
	rowsA := e.a.rows(t.m, min(t.width, t.m), e.rowOf)
	rowsB := e.bb.rows(t.n, t.width, e.columnOf)
	e.newSums(t.m*e.groups(), ir.Vec(e.acc, t.width))
	step := func(k ir.Value, depth int) {
		fa, fb := rowsA.load(k, depth), rowsB.load(k, depth)
		e.update(func(p *partialSums) {
			for d := range depth {
				for i := range t.m {
					x := b.Splat(fa.at(i, d), t.width)
					for j := range e.groups() {
						p.add(i*e.groups()+j, x, fb.along(j*t.width, d, t.width))
					}
				}
			}
		})
	}
	end := e.until
	unroll := b.U32(uint32(t.unroll))
	if !e.wholeSteps() {
		end = e.wholeUntil(unroll)
	}
	b.For(e.from, end, unroll, func(k ir.Value) { step(k, t.unroll) })
	if !e.wholeSteps() {
		b.For(end, e.until, b.U32(1), func(k ir.Value) { step(k, 1) })
	}
}

// wholeUntil is where the last whole step of so many products ends.
func (e *matMulEmitter) wholeUntil(step ir.Value) ir.Value {
	b := e.b
	if !e.split {
		return b.Sub(e.k, b.Rem(e.k, step))
	}
	return b.Sub(e.until, b.Rem(b.Sub(e.until, e.from), step))
}

// wholeSteps reports whether K is known to be a multiple of the steps of the loop over it.
func (e *matMulEmitter) wholeSteps() bool {
	return !e.s.TransA && e.s.alignA()%e.t.unroll == 0 || e.s.TransB && e.s.alignB()%e.t.unroll == 0
}

// dot computes each element as a product of vectors along K, whose lanes are added up at the end.
func (e *matMulEmitter) dot() {
	b, t := e.b, e.t
	e.blocked()
	rowsA, rowsB := e.a.rows(t.m, 1, e.rowOf), e.bb.rows(t.n, 1, e.columnOf)
	e.newSums(t.m*t.n, ir.Vec(e.acc, t.width))
	b.For(b.U32(0), e.k, b.U32(uint32(t.width)), func(k ir.Value) {
		fa, fb := rowsA.load(k, t.width), rowsB.load(k, t.width)
		e.update(func(p *partialSums) {
			for i := range t.m {
				for j := range t.n {
					p.add(i*t.n+j, fa.deep(i), fb.deep(j))
				}
			}
		})
	})
	for i, v := range e.sums {
		e.sums[i] = b.Var(sumLanes(b, b.Get(v)))
	}
}

// sumLanes adds up the lanes of v in a tree.
func sumLanes(b *ir.Builder, v ir.Value) ir.Value {
	parts := make([]ir.Value, v.Type.Lanes)
	for i := range parts {
		parts[i] = b.Extract(v, i)
	}
	for len(parts) > 1 {
		half := len(parts) / 2
		for i := range half {
			parts[i] = b.Add(parts[i], parts[i+half])
		}
		parts = parts[:half]
	}
	return parts[0]
}
