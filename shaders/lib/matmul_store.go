package lib

import "github.com/anygpu/anygpu/shaders/ir"

// maxUnrolledEpilogues is how many copies of an epilogue a kernel may have; with more the results go through a private
// array and a loop, because drivers take long over large programs.
const maxUnrolledEpilogues = 16

// store adds the bias, runs the epilogue and writes the results that lie within the matrix.
func (e *matMulEmitter) store() {
	b, t := e.b, e.t
	width := t.width
	if t.dot {
		e.joinDots()
		width = min(t.width, t.n)
	}
	perRow := t.n / width
	base := b.Mul(e.slot, b.Mul(e.m, e.n))
	if e.s.Epilogue == nil && e.s.Tail == nil || len(e.sums) <= maxUnrolledEpilogues {
		for i := range t.m {
			row := e.rowOf(i)
			b.If(b.Lt(row, e.m), func() {
				at := b.Add(base, b.Mul(row, e.n))
				for j := range perRow {
					e.storeGroup(b.Get(e.sums[i*perRow+j]), at, e.columnOf(j*width))
				}
			}, nil)
		}
		return
	}
	results := b.PrivateArray("results", e.acc, t.m*t.n)
	for i, v := range e.sums {
		b.Store(results, b.U32(uint32(i*width)), b.Get(v))
	}
	row0, column0 := e.rowOf(0), e.columnOf(0)
	b.Range(b.U32(uint32(t.m)), func(i ir.Value) {
		row := b.Add(row0, i)
		b.If(b.Lt(row, e.m), func() {
			at := b.Add(base, b.Mul(row, e.n))
			b.For(b.U32(0), b.U32(uint32(t.n)), b.U32(uint32(width)), func(j ir.Value) {
				v := b.Load(results, b.Add(b.Mul(i, b.U32(uint32(t.n))), j), width)
				e.storeGroup(v, at, b.Add(column0, j))
			})
		}, nil)
	})
}

// joinDots makes vectors along N of the single sums of a dot kernel.
func (e *matMulEmitter) joinDots() {
	b, width := e.b, min(e.t.width, e.t.n)
	var joined []ir.Value
	for i := 0; i < len(e.sums); i += width {
		parts := make([]ir.Value, width)
		for l := range parts {
			parts[l] = b.Get(e.sums[i+l])
		}
		joined = append(joined, b.Var(b.Vec(parts...)))
	}
	e.sums = joined
}

// storeGroup finishes neighbours of a row, from the given column on, and writes them to the row that starts at at.
func (e *matMulEmitter) storeGroup(v, at, column ir.Value) {
	b, width := e.b, v.Type.Lanes
	whole := pow2Factor(e.s.N) >= width // groups are inside or outside as a whole, and aligned
	b.If(b.Lt(column, e.n), func() {
		if e.bias != nil {
			v = b.Add(v, e.loadBias(column, width, whole))
		}
		if e.s.Tail != nil {
			e.storeTail(v, at, column, whole)
			return
		}
		if e.s.Epilogue != nil {
			v = e.s.Epilogue(b, v)
		}
		v = e.toOut(v)
		if v == nil {
			return
		}
		if whole {
			b.Store(e.out, b.Add(at, column), v)
			return
		}
		first := b.Add(at, column)
		if e.t.m > 0 {
			b.Store(e.out, first, b.Extract(v, 0))
			for l := 1; l < width; l++ {
				c := advance(b, column, l, nil)
				b.If(b.Lt(c, e.n), func() { b.Store(e.out, b.Add(at, c), b.Extract(v, l)) }, nil)
			}
			return
		}
		// Stores of neighbours without conditions become one.
		b.If(b.Le(b.Add(column, b.U32(uint32(width))), e.n), func() {
			for l := range width {
				b.Store(e.out, advance(b, first, l, nil), b.Extract(v, l))
			}
		}, func() {
			for l := range width - 1 {
				b.If(b.Lt(advance(b, column, l, nil), e.n), func() { b.Store(e.out, advance(b, first, l, nil), b.Extract(v, l)) }, nil)
			}
		})
	}, nil)
}

func (e *matMulEmitter) loadBias(column ir.Value, width int, whole bool) ir.Value {
	b, o := e.b, Operand{Kind: e.s.Bias}
	if whole {
		return b.Convert(load(b, e.bias, o, column, width, accessVector, nil), e.acc)
	}
	parts := make([]ir.Value, width)
	last := b.Sub(e.n, b.U32(1))
	for l := range parts {
		parts[l] = load(b, e.bias, o, b.Min(advance(b, column, l, nil), last), 1, accessVector, nil)
	}
	return b.Convert(b.Vec(parts...), e.acc)
}

// toOut converts a result to the kind of the output.
func (e *matMulEmitter) toOut(v ir.Value) ir.Value {
	if v == nil {
		b := e.b
		return toMemory(b, nil, Operand{Kind: e.s.Out})
	}
	return e.b.Convert(v, e.s.Out)
}
