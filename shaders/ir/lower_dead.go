package ir

// removeDead removes instructions whose value nobody uses, variables nobody reads, and branches that do nothing. The
// passes before it leave such instructions behind: the rounding of a value that is stored with a rounding store, the
// high words of I64 values of which only the low word matters.
func removeDead(k *Kernel, caps Caps) (*Kernel, error) {
	l := liveness{k: k, live: make([]bool, k.NumInstr)}
	for l.changed = true; l.changed; {
		l.changed = false
		l.block(k.Body)
	}
	return rewrite(k, caps, nil, func(r *rewriter, in *Instr) bool { return !l.live[in.ID] })
}

type liveness struct {
	k       *Kernel
	live    []bool // by ID
	changed bool
}

func (l *liveness) mark(in *Instr) {
	if l.live[in.ID] {
		return
	}
	l.live[in.ID] = true
	l.changed = true
	for _, a := range in.Args {
		if in.Op != OpSet || a.Op != OpVar { // a set does not keep its variable; it is kept by it
			l.mark(a)
		}
	}
}

// block marks the roots in b and returns whether it has any live instruction with an effect. Passes are repeated,
// because a get late in a loop keeps a set before it.
func (l *liveness) block(b *Block) bool {
	effect := false
	for _, in := range b.Instrs {
		keep := false
		switch {
		case in.Op == OpStore || in.Op == OpBarrier || in.Op.IsAtomic():
			keep = true
		case in.Op == OpSet:
			keep = l.live[in.Args[0].ID]
		case in.Op == OpIf || in.Op == OpFor:
			for _, inner := range in.Blocks {
				keep = l.block(inner) || keep
			}
			if keep && in.Op == OpFor {
				l.mark(in.Blocks[0].Instrs[0])
			}
		}
		if keep {
			l.mark(in)
			effect = true
		}
	}
	return effect
}
