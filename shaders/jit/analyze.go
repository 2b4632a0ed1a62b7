package jit

import (
	"errors"
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// ErrUnsupported is wrapped by the errors of [Compile] for kernels that it has no machine code for.
var ErrUnsupported = errors.New("not compiled to machine code")

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// analysis is what the code generator needs to know of a lowered kernel before it starts.
type analysis struct {
	k *ir.Kernel
	// lanes is the number of invocations that a vector holds. If it is 1, the invocations run one after the other and vectors hold
	// those of the kernel.
	lanes int
	// uniform values are the same for all invocations of a vector.
	uniform  []bool
	live     []bool
	uses     []int
	pos, end []int // positions in program order; of OpIf and OpFor the position after their blocks
	last     []int // position of the last use
	sets     map[int][]int
	alias    []bool // of OpGet: nobody sets the variable before the value's last use
}

func is64(k ir.Kind) bool { return k == ir.I64 || k == ir.F64 }

func analyze(k *ir.Kernel) (*analysis, error) {
	n := k.NumInstr
	a := &analysis{k: k, lanes: 16, uniform: make([]bool, n), live: make([]bool, n), uses: make([]int, n), pos: make([]int, n), end: make([]int, n),
		last: make([]int, n), sets: map[int][]int{}, alias: make([]bool, n)}
	var err error
	wide, vectors := false, false
	k.Walk(func(in *ir.Instr) {
		t := in.Type
		if in.Op == ir.OpStore {
			t = in.Args[1].Type
		}
		wide = wide || is64(t.Kind) || in.Mem != nil && is64(in.Mem.Kind)
		vectors = vectors || t.Lanes > 1
		switch {
		case in.Op == ir.OpBarrier:
			err = unsupported("barriers")
		case in.Op.IsAtomic():
			err = unsupported("atomics")
		case in.Op == ir.OpShuffleXor:
			err = unsupported("exchanges within subgroups")
		case in.Mem != nil && in.Mem.Space != ir.Global:
			err = unsupported("%s memory", in.Mem.Space)
		case is64(t.Kind) && t.Lanes > 8:
			err = unsupported("%s", t)
		}
	})
	if err != nil {
		return nil, err
	}
	switch {
	case vectors || k.Invocations() < 4:
		a.lanes = 1
	case wide:
		a.lanes = 8
	}
	a.markLive()
	for changed := true; changed; {
		changed = a.classify(k.Body, 0, make([]int, n))
	}
	a.number(k.Body, 0)
	a.findUses(k.Body, nil)
	a.passLast(k.Body)
	a.aliases()
	return a, nil
}

// markLive finds the instructions whose results matter. A load that nobody uses is left out, faults included.
func (a *analysis) markLive() {
	var mark func(in *ir.Instr)
	mark = func(in *ir.Instr) {
		if !a.live[in.ID] {
			a.live[in.ID] = true
			for _, arg := range in.Args {
				mark(arg)
			}
		}
	}
	for i := range a.uniform {
		a.uniform[i] = true
	}
	a.k.Walk(func(in *ir.Instr) {
		if in.Type.Kind == ir.Void || in.Op == ir.OpLoopVar {
			mark(in)
		}
	})
}

// classify finds what differs between invocations, in program order; it reports whether it found something new. depth counts the divergent constructs around the block, at
// has the depth of each variable's declaration.
func (a *analysis) classify(b *ir.Block, depth int, at []int) bool {
	if a.lanes == 1 {
		return false
	}
	changed := false
	varies := func(v ir.Value) {
		changed = changed || a.uniform[v.ID]
		a.uniform[v.ID] = false
	}
	for _, in := range b.Instrs {
		switch in.Op {
		case ir.OpVar:
			at[in.ID] = depth
			if !a.uniform[in.Args[0].ID] {
				varies(in)
			}
		case ir.OpSet:
			if v := in.Args[0]; !a.uniform[in.Args[1].ID] || at[v.ID] != depth {
				varies(v)
			}
		case ir.OpLocalID, ir.OpGlobalID:
			if a.k.Local[in.Imm] > 1 {
				varies(in)
			}
		default:
			same := true
			for _, arg := range in.Args {
				same = same && a.uniform[arg.ID]
			}
			inner := depth
			if !same {
				varies(in)
				inner++
			}
			if in.Op == ir.OpFor && !same {
				varies(in.Blocks[0].Instrs[0])
			}
			for _, blk := range in.Blocks {
				changed = a.classify(blk, inner, at) || changed
			}
		}
	}
	return changed
}

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

// findUses finds the last use of each value. A value made before a loop and used in it is used until the loop's end.
func (a *analysis) findUses(b *ir.Block, loops []loopRange) {
	for _, in := range b.Instrs {
		if !a.live[in.ID] {
			continue
		}
		for _, arg := range in.Args {
			a.uses[arg.ID]++
			p := a.pos[in.ID]
			if in.Op == ir.OpFor {
				p = a.end[in.ID]
			}
			for _, l := range loops {
				if a.pos[arg.ID] < l.start {
					p = max(p, l.end)
					break
				}
			}
			a.last[arg.ID] = max(a.last[arg.ID], p)
		}
		if in.Op == ir.OpSet {
			a.sets[in.Args[0].ID] = append(a.sets[in.Args[0].ID], a.pos[in.ID])
		}
		inner := loops
		if in.Op == ir.OpFor {
			inner = append(loops[:len(loops):len(loops)], loopRange{a.pos[in.ID], a.end[in.ID]})
		}
		for _, blk := range in.Blocks {
			a.findUses(blk, inner)
		}
	}
}

// passLast takes a use of an operation whose result may be its operand's register, or of a comparison that is emitted where it is used, as one of the
// operand.
func (a *analysis) passLast(b *ir.Block) {
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		in := b.Instrs[i]
		for _, inner := range in.Blocks {
			a.passLast(inner)
		}
		if pure(in.Op) && !in.Op.IsMath() {
			for _, arg := range in.Args {
				a.last[arg.ID] = max(a.last[arg.ID], a.last[in.ID])
			}
		}
	}
}

func (a *analysis) aliases() {
	a.k.Walk(func(in *ir.Instr) {
		if in.Op != ir.OpGet {
			return
		}
		a.alias[in.ID] = true
		for _, p := range a.sets[in.Args[0].ID] {
			if p > a.pos[in.ID] && p < a.last[in.ID] {
				a.alias[in.ID] = false
			}
		}
	})
}
