package ir

// divergence finds the values that may differ between the invocations of a workgroup, so that a barrier or an exchange within a subgroup is allowed
// only where all of them are together. Constants, parameters, group ids and group counts are uniform, and so is the
// counter of a loop with uniform bounds; local and global ids (of a dimension wider than one), loads, atomics and exchanged values are
// divergent, and so is all that is computed from them. A variable is divergent if it is ever set to a divergent value
// or under divergent control flow; since a set may follow a get in program order (in a loop), passes are repeated until
// nothing changes.
type divergence struct {
	k       *Kernel
	div     []bool // by ID
	changed bool
	barrier *Instr // first barrier or exchange seen under divergent control flow
}

// divergentBarrier returns the first barrier or exchange that stands under divergent control flow, or nil.
func divergentBarrier(k *Kernel) *Instr {
	barriers := false
	k.Walk(func(in *Instr) { barriers = barriers || in.Op == OpBarrier || in.Op == OpShuffleXor })
	if !barriers {
		return nil
	}
	d := &divergence{k: k, div: make([]bool, k.NumInstr)}
	for d.changed = true; d.changed; {
		d.changed, d.barrier = false, nil
		d.block(k.Body, false)
	}
	return d.barrier
}

func (d *divergence) mark(in *Instr, divergent bool) {
	if divergent && !d.div[in.ID] {
		d.div[in.ID] = true
		d.changed = true
	}
}

func (d *divergence) any(args []Value) bool {
	for _, a := range args {
		if d.div[a.ID] {
			return true
		}
	}
	return false
}

// block visits b; under says whether only some invocations may be executing it.
func (d *divergence) block(b *Block, under bool) {
	for _, in := range b.Instrs {
		switch in.Op {
		case OpGlobalID, OpLocalID:
			d.mark(in, d.k.Local[in.Imm] > 1)
		case OpLoad, OpAtomicAdd, OpAtomicMin, OpAtomicMax, OpAtomicAnd, OpAtomicOr, OpAtomicXchg, OpAtomicCAS:
			d.mark(in, true)
		case OpSet:
			d.mark(in.Args[0], under || d.div[in.Args[1].ID])
		case OpIf:
			inner := under || d.div[in.Args[0].ID]
			d.block(in.Blocks[0], inner)
			d.block(in.Blocks[1], inner)
		case OpFor:
			divergent := d.any(in.Args)
			d.mark(in.Blocks[0].Instrs[0], divergent)
			d.block(in.Blocks[0], under || divergent)
		case OpLoopVar: // marked by its loop
		case OpBarrier, OpShuffleXor:
			d.mark(in, in.Op == OpShuffleXor)
			if under && d.barrier == nil {
				d.barrier = in
			}
		default:
			d.mark(in, d.any(in.Args))
		}
	}
}
