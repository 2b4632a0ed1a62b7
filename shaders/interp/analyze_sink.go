package interp

import "github.com/anygpu/anygpu/shaders/ir"

// sinks finds the values that are made where they go: the operand of the next store to a buffer, or of the next assignment
// to a variable, made in place if the block is stored as it is (see generator.place). Between the value's making and the
// store nothing else may happen, and what the value is used for later must find it unchanged.
func (a *analysis) sinks(b *ir.Block) {
	last := map[int]int{} // position in the block of what was made in it
	for i, in := range b.Instrs {
		for _, inner := range in.Blocks {
			a.sinks(inner)
		}
		last[in.ID] = i
		if !a.live[in.ID] || in.Op != ir.OpStore && in.Op != ir.OpSet {
			continue
		}
		val := in.Args[1]
		from, here := last[val.ID]
		if !here || !a.canSink(val) || a.sink[val.ID] != nil {
			continue
		}
		quiet := true
		for _, other := range b.Instrs[from+1 : i] {
			quiet = quiet && (!a.live[other.ID] || other.Mem == nil && other.Type.Kind != ir.Void && other.Op != ir.OpGet && a.class[other.ID] != blocked)
		}
		if quiet && a.sinkFits(in, val) {
			a.sink[val.ID] = in
		}
	}
}

// canSink reports whether a value is made element by element, in one pass, so that its place may be an operand's.
func (a *analysis) canSink(v ir.Value) bool {
	if a.class[v.ID] != blocked {
		return false
	}
	switch {
	case v.Op == ir.OpFma:
		for _, arg := range v.Args {
			if a.class[arg.ID] == uniform {
				return false
			}
		}
		return true
	case v.Op == ir.OpMulHi, v.Op == ir.OpSelect && a.class[v.Args[0].ID] == blocked, v.Op.IsMath(), v.Op.IsArith():
		return true
	}
	return false
}

// sinkFits reports whether the place of a store or assignment can be the value's for as long as it is used.
func (a *analysis) sinkFits(in *ir.Instr, val ir.Value) bool {
	unchanged := func(positions []int) bool {
		for _, p := range positions {
			if p > a.pos[in.ID] && p < a.last[val.ID] {
				return false
			}
		}
		return true
	}
	if in.Op == ir.OpSet {
		v := in.Args[0].ID
		if a.class[v] != blocked || !unchanged(a.setPos[v]) {
			return false
		}
		a.last[v] = max(a.last[v], a.last[val.ID])
		return true
	}
	idx := in.Args[0]
	return in.Mem.Space == ir.Global && in.Mem.Kind == val.Type.Kind && a.class[idx.ID] != blocked && a.pos[idx.ID] < a.pos[val.ID] && unchanged(a.writes)
}
