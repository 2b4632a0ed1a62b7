package interp

import (
	"sync/atomic"

	"github.com/anygpu/anygpu/shaders/ir"
)

// atomic compiles an atomic operation, invocation by invocation. Those on workgroup memory need no atomic instruction,
// because one goroutine runs the workgroup.
func (g *generator) atomic(in *ir.Instr) {
	idx, v := g.indexOf(in.Args[0]), g.arg(in.Args[1])
	o, kind, shared := in.Op, in.Mem.Kind, in.Mem.Space == ir.Shared
	var repl operand
	if o == ir.OpAtomicCAS {
		repl = g.arg(in.Args[2])
	}
	base, size, n, binding := g.mems[in.Mem], in.Mem.Len, g.p.n, in.Mem.Index
	d := g.place(in)
	g.emit(func(s *state) {
		var m []uint32
		elems := size
		if shared {
			m = vec[uint32](s, base, s.g*size)
		} else {
			m = buffer[uint32](s, binding)
			elems = len(m)
		}
		out, at := vec[uint32](s, d, s.n), idx.block(s)
		for i := range out {
			if s.mask != nil && s.mask[i] == 0 {
				continue
			}
			e := at[i]
			if uint(e) >= uint(elems) {
				s.badIndex(in, e, elems, 1)
				return
			}
			x, y := lane(s, v, i), lane(s, repl, i)
			if shared {
				p := &m[i/n*size+int(e)]
				out[i] = *p
				*p = updated(o, kind, *p, x, y)
			} else {
				out[i] = update(&m[e], o, kind, x, y)
			}
		}
	})
}

func lane(s *state, o operand, i int) uint32 {
	if o.uniform {
		return uint32(s.uni[o.id])
	}
	return vec[uint32](s, o.off, i+1)[i]
}

// updated returns what an atomic operation makes of the value old.
func updated(o ir.Op, kind ir.Kind, old, x, y uint32) uint32 {
	if o == ir.OpAtomicCAS {
		if old == x {
			return y
		}
		return old
	}
	return uint32(evalAtomic(o, kind, uint64(old), uint64(x)))
}

// update changes *p atomically and returns the old value.
func update(p *uint32, o ir.Op, kind ir.Kind, x, y uint32) uint32 {
	if o == ir.OpAtomicAdd {
		return atomic.AddUint32(p, x) - x
	}
	for {
		old := atomic.LoadUint32(p)
		next := updated(o, kind, old, x, y)
		if next == old || atomic.CompareAndSwapUint32(p, old, next) {
			return old
		}
	}
}
