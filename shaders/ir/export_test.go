package ir

// PerturbQuotients returns k with the result of each F32 division, square root and inverse square root moved by ulps
// units in the last place, up or down by a hash of the bits, and with subnormal results of + - * / flushed to zero if
// flush is set: what Vulkan allows a device to do.
func PerturbQuotients(k *Kernel, ulps uint32, flush bool) (*Kernel, error) {
	return rewrite(k, Caps{MaxLanes: MaxLanes}, nil, func(r *rewriter, in *Instr) bool {
		if in.Type.Kind != F32 {
			return false
		}
		switch in.Op {
		case OpDiv, OpSqrt, OpRsqrt:
			x := r.copy(in)
			u := r.BitCast(x, U32)
			mag := r.And(u, r.u(x, 0x7fffffff))
			normal := r.And(r.Ge(mag, r.u(x, 1<<24)), r.Lt(mag, r.u(x, 0x7f000000)))
			exact := r.Eq(r.And(u, r.u(x, 0xfffff)), r.u(x, 0)) // such as sqrt(4), which every device gets right
			h := r.Mul(r.Xor(u, r.Shr(u, r.u(x, 9))), r.u(x, 0x9e3779b9))
			up := r.Ge(h, r.u(x, 1<<31))
			moved := r.Select(up, r.Add(u, r.u(x, ulps)), r.Sub(u, r.u(x, ulps)))
			x = r.BitCast(r.Select(r.And(normal, r.Not(exact)), moved, u), F32)
			r.set(in, x)
			return true
		case OpAdd, OpSub, OpMul:
			if !flush {
				return false
			}
			x := r.copy(in)
			u := r.BitCast(x, U32)
			tiny := r.Lt(r.And(u, r.u(x, 0x7fffffff)), r.u(x, 1<<23))
			r.set(in, r.BitCast(r.Select(tiny, r.And(u, r.u(x, 0x80000000)), u), F32))
			return true
		}
		return false
	})
}
