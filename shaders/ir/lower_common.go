package ir

// shareCommon computes equal expressions once: an instruction without effect whose operation and operands are those of
// an earlier one in the same or an enclosing block is replaced by it. Passes and the math functions emit the same
// constants and bit tests again and again; device compilers would find them too, but text and time to compile shrink, and
// the CPU's executor does not look for them.
func shareCommon(k *Kernel, caps Caps) (*Kernel, error) {
	type key struct {
		op   Op
		t    Type
		imm  uint64
		args [4]int32
	}
	seen := map[key]Value{}
	var scopes [][]key // what each open block has added
	enter := func() { scopes = append(scopes, nil) }
	leave := func() {
		for _, k := range scopes[len(scopes)-1] {
			delete(seen, k)
		}
		scopes = scopes[:len(scopes)-1]
	}
	enter()
	return rewrite(k, caps, nil, func(r *rewriter, in *Instr) bool {
		switch {
		case in.Op == OpIf || in.Op == OpFor:
			n := r.Emit(in.Op, in.Type, in.Imm, nil, r.args(in)...)
			for _, inner := range in.Blocks {
				enter()
				n.Blocks = append(n.Blocks, r.block(func() {
					for _, i := range inner.Instrs {
						r.instr(i)
					}
				}))
				leave()
			}
			r.set(in, n)
			return true
		case !pure(in.Op) || len(in.Args) > len(key{}.args):
			return false
		}
		id := key{op: in.Op, t: in.Type, imm: in.Imm}
		for i := range id.args {
			id.args[i] = -1
			if i < len(in.Args) {
				id.args[i] = int32(r.val(in.Args[i]).ID)
			}
		}
		if v := seen[id]; v != nil {
			r.set(in, v)
			return true
		}
		seen[id] = r.copy(in)
		scopes[len(scopes)-1] = append(scopes[len(scopes)-1], id)
		return true
	})
}

// pure reports whether op's result depends on its operands alone and it has no effect.
func pure(op Op) bool {
	switch opInfos[op].class {
	case classArith, classBits, classCompare, classMisc, classMath, classLeaf:
		return true
	}
	return false
}
