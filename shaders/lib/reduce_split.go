package lib

import "github.com/anygpu/anygpu/shaders/ir"

// A CPU walking down a column of rows at least longStride elements long touches a page at each step. Its translation
// buffer knows longColumn pages, so that neighbouring columns should be read before more rows are.
const (
	longStride = 512
	longColumn = 256
)

// Split returns two reductions that together do r where r alone would leave most of the device idle: few outputs of
// many elements each, such as the sum of a whole tensor. first reads r's inputs and writes a contiguous
// temporary of shape [Outer, first.Pieces(), Inner] and kind first.Out.Kind; second reads it and writes r's output. ok is
// false where one kernel is as good, and for ArgMax and ArgMin of 64-bit kinds. (Their temporary of other kinds has I64
// elements that hold a value and its index, for second to read and nobody else.)
func (r *Reduce) Split(t Target) (first, second *Reduce, ok bool) {
	if r.split > 1 || r.Outer < 1 || r.Inner < 1 || r.check(t) != nil {
		return nil, nil, false
	}
	c := t.config()
	p := r.plan()
	s := p.shape(r, t)
	// busy is how many invocations (CPU) or workgroups (GPU) the single kernel has.
	busy := int(s.groups(r, p))
	if !c.tree {
		busy = r.Outer * ceilDiv(r.Inner, s.width)
	}
	piece := c.piece
	if r.Inner > 1 {
		piece = max(64, c.piece/max(s.width, s.local/s.lanes))
	}
	pieces := 0
	const few = 1 << 14 // elements that a CPU adds in less time than another launch takes
	if 2*busy <= c.parallel && (c.tree || satMul(r.Outer, satMul(r.N, r.Inner)) > few) {
		pieces = min(ceilDiv(c.parallel, busy), r.N/piece)
	}
	if !c.tree && s.width > 1 && r.Inner >= longStride && r.N >= 4*longColumn {
		pieces = max(pieces, r.N/longColumn)
	}
	if most := t.Caps.MaxLoopTrips; most > 0 && s.trips(r, p) > most {
		pieces = max(pieces, ceilDiv(2*s.trips(r, p), most))
	}
	if pieces < 2 {
		return nil, nil, false
	}
	kind, err := (&reduceEmitter{Reduce: r, reducePlan: p, t: t}).elementKind()
	if err != nil {
		return nil, nil, false
	}
	kind = r.Op.accumulatorKind(kind, r.Out.Kind)
	temp := Operand{Kind: kind}
	if r.Op.isArg() {
		if kind.Size() != 4 {
			return nil, nil, false
		}
		temp.Kind = ir.I64
	}
	pieces = ceilDiv(r.N, pieceLength(r.N, pieces)) // none may be empty

	a := *r
	a.Name, a.BodyKey = kernelName(r.Name, "reduce_"+r.Op.String())+"_1", r.BodyKey+"/1"
	a.Epilogue, a.Out, a.split = nil, temp, pieces
	z := *r
	z.Name, z.BodyKey = kernelName(r.Name, "reduce_"+r.Op.String())+"_2", r.BodyKey+"/2"
	z.Prologue, z.In, z.N = nil, []Operand{temp}, pieces
	if z.count == 0 {
		z.count = r.N
	}
	if r.Op.isArg() {
		a.pairs.write, z.pairs.read = true, kind
	}
	return &a, &z, true
}

// Stages returns the reductions of Split.
func (r *Reduce) Stages(t Target) (stages []Stage, scratch []int64) {
	first, second, ok := r.Split(t)
	if !ok {
		return nil, nil
	}
	in := make([]int, len(r.In)+1)
	for i := range r.In {
		in[i] = i
	}
	in[len(r.In)] = ^0
	n := satMul(satMul(first.Outer, first.Pieces()), first.Inner)
	return []Stage{{first, in}, {second, []int{^0, len(r.In)}}}, []int64{scratchBytes(n, first.Out.Kind.Size())}
}

// Pieces returns how many parts each row is cut into: 1, or more for the first reduction of a Split.
func (r *Reduce) Pieces() int { return max(r.split, 1) }

// pairing is how the reductions of a split ArgMax or ArgMin hand on partials: as pairs of words, the bits of the value and
// its index in the row.
type pairing struct {
	write bool
	read  ir.Kind // of the values; Void if the inputs are elements
}

func (m *reduceEmitter) writePair(index ir.Value, p partial, lanes int) {
	b := m.b
	if m.from != nil {
		p.index = b.Add(p.index, b.Splat(m.from, lanes))
	}
	bits := b.BitCast(p.value, ir.U32)
	for i := range lanes {
		at := b.Mul(advance(b, index, i, nil), b.U32(2))
		b.Store(m.out, at, b.Extract(bits, i))
		b.Store(m.out, b.Add(at, b.U32(1)), b.Extract(p.index, i))
	}
}

func (m *reduceEmitter) readPair(index ir.Value) partial {
	b := m.b
	at := b.Mul(index, b.U32(2))
	return partial{b.BitCast(b.Load(m.in[0], at, 1), m.pairs.read), b.Load(m.in[0], b.Add(at, b.U32(1)), 1)}
}
