package interp

import (
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
)

// class is how the block executor keeps a value.
type class uint8

const (
	uniform   class = iota // one scalar for all invocations and lanes of the block
	affine                 // U32 or I32: a sum of coefficients times the invocation's position in the block
	predicate              // Bool: a comparison of affine values, evaluated where it is used
	blocked                // an element for each invocation and lane
)

// loopSpan is the range of positions of a loop.
type loopSpan struct{ start, end int }

// analysis is what the code generator needs to know before it starts.
type analysis struct {
	k         *ir.Kernel
	oneGroup  bool // a block is a single workgroup
	class     []class
	invariant []bool // uniform, and the same in the whole launch
	live      []bool
	pos, last []int // positions in program order; last use
	end       []int // of OpIf and OpFor: the position after their blocks
	alias     []bool
	inPlace   []bool      // loads whose memory nobody writes before their last use
	sink      []*ir.Instr // the OpStore or OpSet in whose place a value is made
	writes    []int       // positions of what changes buffers
	varBlock  []bool      // variables that cannot be uniform
	setPos    map[int][]int
	changed   bool
}

func analyze(k *ir.Kernel, oneGroup bool) *analysis {
	n := k.NumInstr
	a := &analysis{k: k, oneGroup: oneGroup, class: make([]class, n), invariant: make([]bool, n), live: make([]bool, n), pos: make([]int, n),
		last: make([]int, n), end: make([]int, n), alias: make([]bool, n), inPlace: make([]bool, n), sink: make([]*ir.Instr, n), varBlock: make([]bool, n), setPos: map[int][]int{}}
	a.markLive()
	for {
		a.changed = false
		a.classify(k.Body, 0, make([]int, n))
		if !a.changed {
			break
		}
	}
	a.number(k.Body, 0)
	a.uses(k.Body, nil)
	a.aliases()
	a.sinks(k.Body)
	return a
}

// markLive finds the instructions whose results matter. A load that nobody uses is left out, faults included.
func (a *analysis) markLive() {
	var mark func(in *ir.Instr)
	mark = func(in *ir.Instr) {
		if a.live[in.ID] {
			return
		}
		a.live[in.ID] = true
		for _, arg := range in.Args {
			mark(arg)
		}
	}
	a.k.Walk(func(in *ir.Instr) {
		if in.Type.Kind == ir.Void || in.Op.IsAtomic() || in.Op == ir.OpLoopVar {
			mark(in)
		}
	})
}

// classify assigns classes in program order. depth counts the divergent constructs around the block; varDepth has the depth of
// each variable's declaration.
func (a *analysis) classify(b *ir.Block, depth int, varDepth []int) {
	for _, in := range b.Instrs {
		switch in.Op {
		case ir.OpVar:
			varDepth[in.ID] = depth
			if a.class[in.Args[0].ID] != uniform {
				a.notUniform(in)
			}
			a.class[in.ID] = a.varClass(in)
		case ir.OpSet:
			if v := in.Args[0]; a.class[in.Args[1].ID] != uniform || varDepth[v.ID] != depth {
				a.notUniform(v)
			}
		case ir.OpIf:
			d := depth
			if a.class[in.Args[0].ID] != uniform {
				d++
			}
			for _, inner := range in.Blocks {
				a.classify(inner, d, varDepth)
			}
		case ir.OpFor:
			a.classifyLoop(in, depth, varDepth)
		case ir.OpLoopVar: // set by classifyLoop
		default:
			if in.Type.Kind != ir.Void {
				a.class[in.ID] = a.classOf(in)
				a.invariant[in.ID] = a.class[in.ID] == uniform && a.isInvariant(in)
			}
		}
	}
}

func (a *analysis) varClass(v ir.Value) class {
	if a.varBlock[v.ID] {
		return blocked
	}
	return uniform
}

func (a *analysis) notUniform(v ir.Value) {
	if !a.varBlock[v.ID] {
		a.varBlock[v.ID], a.changed = true, true
	}
}

func (a *analysis) classifyLoop(in *ir.Instr, depth int, varDepth []int) {
	lo, hi, step := a.class[in.Args[0].ID], a.class[in.Args[1].ID], a.class[in.Args[2].ID]
	body := in.Blocks[0]
	if len(body.Instrs) > 0 && body.Instrs[0].Op == ir.OpLoopVar {
		cl := blocked
		if step == uniform && (lo == uniform || lo == affine && hi != blocked) {
			cl = lo
		}
		a.class[body.Instrs[0].ID] = cl
	}
	if lo != uniform || hi != uniform || step != uniform {
		depth++
	}
	a.classify(body, depth, varDepth)
}

func (a *analysis) isInvariant(in *ir.Instr) bool {
	switch in.Op {
	case ir.OpConst, ir.OpParam, ir.OpNumGroups:
		return true
	case ir.OpGlobalID, ir.OpLocalID, ir.OpGroupID, ir.OpLoad, ir.OpGet, ir.OpDiv, ir.OpRem:
		return false // positions and memory change; a division may be guarded
	}
	for _, arg := range in.Args {
		if !a.invariant[arg.ID] {
			return false
		}
	}
	return true
}

func (a *analysis) classOf(in *ir.Instr) class {
	switch in.Op {
	case ir.OpConst, ir.OpParam, ir.OpNumGroups:
		return uniform
	case ir.OpGroupID:
		return a.idClass(in.Imm == 0 && !a.oneGroup)
	case ir.OpLocalID:
		return a.idClass(a.k.Local[in.Imm] > 1)
	case ir.OpGlobalID:
		return a.idClass(a.k.Local[in.Imm] > 1 || in.Imm == 0 && !a.oneGroup)
	case ir.OpLoad:
		if in.Mem.Space == ir.Global && in.Type.Lanes == 1 && a.class[in.Args[0].ID] == uniform {
			return uniform
		}
		return blocked
	case ir.OpGet:
		return a.varClass(in.Args[0])
	case ir.OpVec:
		return blocked
	}
	if in.Op.IsAtomic() {
		return blocked
	}
	all := true
	for _, arg := range in.Args {
		all = all && a.class[arg.ID] == uniform
	}
	if all {
		return uniform
	}
	return a.linearClass(in)
}

func (a *analysis) idClass(varies bool) class {
	if varies {
		return affine
	}
	return uniform
}

// linearClass classifies an operation with an operand that is not uniform.
func (a *analysis) linearClass(in *ir.Instr) class {
	cl := func(i int) class { return a.class[in.Args[i].ID] }
	linear := func(i int) bool { return cl(i) == uniform || cl(i) == affine }
	word := func(t ir.Type) bool { return t == ir.Scalar(ir.U32) || t == ir.Scalar(ir.I32) }
	switch in.Op {
	case ir.OpAdd, ir.OpSub:
		if word(in.Type) && linear(0) && linear(1) {
			return affine
		}
	case ir.OpMul:
		if word(in.Type) && linear(0) && linear(1) && (cl(0) == uniform || cl(1) == uniform) {
			return affine
		}
	case ir.OpShl:
		if word(in.Type) && cl(0) == affine && cl(1) == uniform {
			return affine
		}
	case ir.OpConvert, ir.OpBitCast:
		if word(in.Type) && word(in.Args[0].Type) && cl(0) == affine {
			return affine
		}
	case ir.OpEq, ir.OpNe, ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe:
		if word(in.Args[0].Type) && linear(0) && linear(1) {
			return predicate
		}
	case ir.OpAnd:
		if in.Type == ir.Scalar(ir.Bool) && cl(0) != blocked && cl(1) != blocked {
			return predicate
		}
	}
	return blocked
}

// number gives each instruction its position, and returns the next.
func (a *analysis) number(b *ir.Block, p int) int {
	for _, in := range b.Instrs {
		a.pos[in.ID], a.last[in.ID] = p, p
		p++
		for _, inner := range in.Blocks {
			p = a.number(inner, p)
		}
		a.end[in.ID] = p
		p++
	}
	return p
}

// uses finds the last use of each value. A value made before a loop and used in it is used until the loop's end.
func (a *analysis) uses(b *ir.Block, loops []loopSpan) {
	for _, in := range b.Instrs {
		if !a.live[in.ID] {
			continue
		}
		for _, arg := range in.Args {
			a.use(arg, a.pos[in.ID], loops)
		}
		inner := loops
		if in.Op == ir.OpFor {
			for _, arg := range in.Args {
				a.use(arg, a.end[in.ID], loops)
			}
			inner = append(loops[:len(loops):len(loops)], loopSpan{a.pos[in.ID], a.end[in.ID]})
		}
		if in.Op == ir.OpSet {
			a.setPos[in.Args[0].ID] = append(a.setPos[in.Args[0].ID], a.pos[in.ID])
		}
		for _, blk := range in.Blocks {
			a.uses(blk, inner)
		}
		if in.Op == ir.OpFor && len(in.Blocks[0].Instrs) > 0 && in.Blocks[0].Instrs[0].Op == ir.OpLoopVar {
			a.last[in.Blocks[0].Instrs[0].ID] = a.end[in.ID]
		}
	}
}

func (a *analysis) use(v ir.Value, p int, loops []loopSpan) {
	for _, l := range loops {
		if a.pos[v.ID] < l.start {
			p = max(p, l.end)
			break // the outermost loop that the value comes from outside of
		}
	}
	a.last[v.ID] = max(a.last[v.ID], p)
}

// aliases finds the values that need no block of their own: bit casts, which share their operand's, reads of variables that
// nobody sets before the read's last use, and loads from memory that nobody writes before then.
func (a *analysis) aliases() {
	var casts []*ir.Instr
	a.k.Walk(func(in *ir.Instr) {
		switch {
		case !a.live[in.ID]:
		case in.Op == ir.OpBitCast && a.class[in.ID] == blocked:
			casts = append(casts, in)
		case in.Mem != nil && in.Mem.Space == ir.Global && in.Op != ir.OpLoad:
			a.writes = append(a.writes, a.pos[in.ID])
		case in.Op == ir.OpBarrier:
			a.writes = append(a.writes, a.pos[in.ID])
		}
	})
	for _, in := range slices.Backward(casts) {
		arg := in.Args[0].ID
		a.last[arg] = max(a.last[arg], a.last[in.ID])
	}
	a.k.Walk(func(in *ir.Instr) {
		if !a.live[in.ID] || a.class[in.ID] != blocked {
			return
		}
		between := func(positions []int) bool {
			return slices.ContainsFunc(positions, func(p int) bool { return p > a.pos[in.ID] && p < a.last[in.ID] })
		}
		switch in.Op {
		case ir.OpGet:
			if v := in.Args[0].ID; !between(a.setPos[v]) {
				a.alias[in.ID] = true
				a.last[v] = max(a.last[v], a.last[in.ID])
			}
		case ir.OpLoad:
			a.inPlace[in.ID] = in.Mem.Space == ir.Global && !between(a.writes)
		}
	})
}
