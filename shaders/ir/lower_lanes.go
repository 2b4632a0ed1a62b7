package ir

// lowerLanes splits vectors wider than caps.MaxLanes into chunks of MaxLanes, from the first lanes on. Lane-by-lane
// operations become one operation for each chunk, an access to memory becomes accesses to consecutive places (each
// aligned, because the wide one was), a variable becomes a variable for each chunk.
func lowerLanes(k *Kernel, caps Caps) (*Kernel, error) {
	wide := func(t Type) bool { return t.Lanes > caps.MaxLanes }
	if !contains(k, func(in *Instr) bool { return wide(in.Type) }) {
		return k, nil
	}
	return rewrite(k, caps, nil, func(r *rewriter, in *Instr) bool {
		w := caps.MaxLanes
		switch {
		case in.Op == OpExtract && wide(in.Args[0].Type):
			chunk := r.vals[in.Args[0].ID][int(in.Imm)/w]
			r.set(in, r.Extract(chunk, int(in.Imm)%w))
			return true
		case (in.Op == OpStore || in.Op == OpSet) && wide(in.Args[1].Type):
			for c, x := range r.vals[in.Args[1].ID] {
				if in.Op == OpSet {
					r.Set(r.vals[in.Args[0].ID][c], x)
				} else {
					r.Emit(OpStore, Type{}, 0, r.mems[in.Mem], r.offset(r.val(in.Args[0]), c*w), x)
				}
			}
			return true
		case !wide(in.Type):
			return false
		}
		t := Vec(in.Type.Kind, w)
		chunks := make([]Value, in.Type.Lanes/w)
		for c := range chunks {
			switch in.Op {
			case OpConst, OpSplat:
				if c > 0 {
					chunks[c] = chunks[0]
				} else if in.Op == OpConst {
					chunks[c] = r.ConstBits(t, in.Imm)
				} else {
					chunks[c] = r.Splat(r.val(in.Args[0]), w)
				}
			case OpVec:
				chunks[c] = r.Vec(r.args(in)[c*w : (c+1)*w]...)
			case OpLoad:
				chunks[c] = r.Emit(OpLoad, t, 0, r.mems[in.Mem], r.offset(r.val(in.Args[0]), c*w))
			default: // lane by lane
				args := make([]Value, len(in.Args))
				for i, a := range in.Args {
					args[i] = r.vals[a.ID][c]
				}
				chunks[c] = r.Emit(in.Op, t, in.Imm, nil, args...)
			}
		}
		r.set(in, chunks...)
		return true
	})
}
