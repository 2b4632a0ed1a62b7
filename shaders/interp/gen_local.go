package interp

import "github.com/anygpu/anygpu/shaders/ir"

// Workgroup memory: each workgroup of the block has its own copy, one after the other.

// eachGroup calls f with the range of invocations of each workgroup of the block.
func (s *state) eachGroup(f func(group, from, to int)) {
	for g, from := 0, 0; from < s.n; g, from = g+1, from+s.p.n {
		f(g, from, min(from+s.p.n, s.n))
	}
}

func loadShared[T word](g *generator, in *ir.Instr, idx index, d int) {
	base, size, lanes := g.mems[in.Mem], in.Mem.Len, in.Type.Lanes
	g.emit(func(s *state) {
		at, out := idx.block(s), vec[T](s, d, s.n*lanes)
		all := vec[T](s, base, s.g*size)
		s.eachGroup(func(group, from, to int) {
			m := all[group*size : (group+1)*size]
			for i := from; i < to; i++ {
				e := at[i]
				if !valid(e, lanes, size) {
					if s.mask == nil || s.mask[i] != 0 {
						s.badIndex(in, e, size, lanes)
						return
					}
					continue
				}
				if lanes == 1 {
					out[i] = m[e]
				} else {
					copy(out[i*lanes:(i+1)*lanes], m[e:])
				}
			}
		})
	})
}

func storeShared[T word](g *generator, in *ir.Instr, idx index, from operand) {
	base, size, lanes := g.mems[in.Mem], in.Mem.Len, in.Args[1].Type.Lanes
	tmp, done := g.uniformTemp(from, lanes, in.Mem.Kind.Size())
	defer done()
	g.emit(func(s *state) {
		at, x := idx.block(s), source[T](s, from, tmp, lanes)
		all := vec[T](s, base, s.g*size)
		s.eachGroup(func(group, from, to int) {
			m := all[group*size : (group+1)*size]
			for i := from; i < to; i++ {
				if s.mask != nil && s.mask[i] == 0 {
					continue
				}
				e := at[i]
				if !valid(e, lanes, size) {
					s.badIndex(in, e, size, lanes)
					return
				}
				if lanes == 1 {
					m[e] = x[i]
				} else {
					copy(m[e:int(e)+lanes], x[i*lanes:(i+1)*lanes])
				}
			}
		})
	})
}

// Private arrays: the elements of one index for all invocations lie together, so that an index that is the same for
// all, as in unrolled code, accesses whole blocks.

func loadPrivate[T word](g *generator, in *ir.Instr, idx index, d int) {
	base, size, lanes, stride := g.mems[in.Mem], in.Mem.Len, in.Type.Lanes, g.stride
	g.emit(func(s *state) {
		m, out := vec[T](s, base, size*stride), vec[T](s, d, s.n*lanes)
		if idx.class == uniform {
			e := uint32(s.uni[idx.id])
			if !valid(e, lanes, size) {
				s.badIndex(in, e, size, lanes)
				return
			}
			for l := range lanes {
				row := m[(int(e)+l)*stride:][:s.n]
				if lanes == 1 {
					copy(out, row)
					continue
				}
				for i, x := range row {
					out[i*lanes+l] = x
				}
			}
			return
		}
		for i, e := range idx.block(s) {
			if !valid(e, lanes, size) {
				if s.mask == nil || s.mask[i] != 0 {
					s.badIndex(in, e, size, lanes)
					return
				}
				continue
			}
			for l := range lanes {
				out[i*lanes+l] = m[(int(e)+l)*stride+i]
			}
		}
	})
}

func storePrivate[T word](g *generator, in *ir.Instr, idx index, from operand) {
	base, size, lanes, stride := g.mems[in.Mem], in.Mem.Len, in.Args[1].Type.Lanes, g.stride
	tmp, done := g.uniformTemp(from, lanes, in.Mem.Kind.Size())
	defer done()
	g.emit(func(s *state) {
		m, x := vec[T](s, base, size*stride), source[T](s, from, tmp, lanes)
		if idx.class == uniform {
			e := uint32(s.uni[idx.id])
			if !valid(e, lanes, size) {
				s.badIndex(in, e, size, lanes)
				return
			}
			for l := range lanes {
				row := m[(int(e)+l)*stride:][:s.n]
				switch {
				case s.mask != nil:
					for i, on := range s.mask {
						if on != 0 {
							row[i] = x[i*lanes+l]
						}
					}
				case lanes == 1:
					copy(row, x)
				default:
					for i := range row {
						row[i] = x[i*lanes+l]
					}
				}
			}
			return
		}
		for i, e := range idx.block(s) {
			if s.mask != nil && s.mask[i] == 0 {
				continue
			}
			if !valid(e, lanes, size) {
				s.badIndex(in, e, size, lanes)
				return
			}
			for l := range lanes {
				m[(int(e)+l)*stride+i] = x[i*lanes+l]
			}
		}
	})
}
