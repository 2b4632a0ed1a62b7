package interp

import "github.com/anygpu/anygpu/shaders/ir"

// linear is an affine value: base + x*LocalID(0) + y*LocalID(1) + z*LocalID(2) + g*(number of the workgroup within the block),
// modulo 2^32.
type linear struct{ base, x, y, z, g uint32 }

// shape is the extent of a block in the dimensions of a linear.
type shape struct{ x, y, z, g int }

func (s *state) shape() shape {
	l := s.p.k.Local
	return shape{l[0], l[1], l[2], s.g}
}

// stride returns by how much the value grows from one invocation of the block to the next, if that is the same
// everywhere.
func (l linear) stride(sh shape) (uint32, bool) {
	var step uint32
	have, count := false, uint32(1)
	for _, d := range [4]struct {
		c uint32
		n int
	}{{l.x, sh.x}, {l.y, sh.y}, {l.z, sh.z}, {l.g, sh.g}} {
		if d.n == 1 {
			continue
		}
		if !have {
			step, have = d.c, true
		} else if d.c != step*count {
			return 0, false
		}
		count *= uint32(d.n)
	}
	return step, true
}

// bounds returns the smallest and largest value in the block; ok is false if the value wraps around or decreases.
func (l linear) bounds(sh shape) (lo, hi uint64, ok bool) {
	hi = uint64(l.base) + uint64(l.x)*uint64(sh.x-1) + uint64(l.y)*uint64(sh.y-1) + uint64(l.z)*uint64(sh.z-1) + uint64(l.g)*uint64(sh.g-1)
	return uint64(l.base), hi, hi < 1<<32
}

// write stores the value of the first len(d) invocations of the block.
func (l linear) write(d []uint32, sh shape) {
	if step, ok := l.stride(sh); ok {
		v := l.base
		for i := range d {
			d[i] = v
			v += step
		}
		return
	}
	i := 0
	for g := range sh.g {
		for z := range sh.z {
			for y := range sh.y {
				v := l.base + uint32(g)*l.g + uint32(z)*l.z + uint32(y)*l.y
				for range sh.x {
					if i == len(d) {
						return
					}
					d[i] = v
					v += l.x
					i++
				}
			}
		}
	}
}

func (l linear) times(u uint32) linear { return linear{l.base * u, l.x * u, l.y * u, l.z * u, l.g * u} }

func (l linear) plus(m linear) linear {
	return linear{l.base + m.base, l.x + m.x, l.y + m.y, l.z + m.z, l.g + m.g}
}

// linearOf returns how to get a uniform or affine 32-bit value as a linear.
func (g *generator) linearOf(v ir.Value) func(s *state) linear {
	id := v.ID
	if g.a.class[id] == uniform {
		return func(s *state) linear { return linear{base: uint32(s.uni[id])} }
	}
	return func(s *state) linear { return s.aff[id] }
}

// affine compiles an operation whose result is affine.
func (g *generator) affine(in *ir.Instr) {
	id := in.ID
	local := uint32(g.k.Local[0])
	switch in.Op {
	case ir.OpGroupID: // dimension 0; the others are uniform
		g.emit(func(s *state) { s.aff[id] = linear{base: uint32(s.group[0]), g: 1} })
	case ir.OpLocalID:
		l := axis(in.Imm)
		g.emit(func(s *state) { s.aff[id] = l })
	case ir.OpGlobalID:
		l, dim, size := axis(in.Imm), in.Imm, uint32(g.k.Local[in.Imm])
		if dim == 0 {
			l.g = local
		}
		g.emit(func(s *state) {
			l := l
			l.base = uint32(s.group[dim]) * size
			s.aff[id] = l
		})
	case ir.OpConvert, ir.OpBitCast:
		a := in.Args[0].ID
		g.emit(func(s *state) { s.aff[id] = s.aff[a] })
	case ir.OpAdd:
		a, b := g.linearOf(in.Args[0]), g.linearOf(in.Args[1])
		g.emit(func(s *state) { s.aff[id] = a(s).plus(b(s)) })
	case ir.OpSub:
		a, b := g.linearOf(in.Args[0]), g.linearOf(in.Args[1])
		g.emit(func(s *state) { s.aff[id] = a(s).plus(b(s).times(^uint32(0))) })
	case ir.OpMul:
		v, u := in.Args[0], in.Args[1]
		if g.a.class[v.ID] == uniform {
			v, u = u, v
		}
		a, b := v.ID, u.ID
		g.emit(func(s *state) { s.aff[id] = s.aff[a].times(uint32(s.uni[b])) })
	case ir.OpShl:
		a, b := in.Args[0].ID, in.Args[1].ID
		g.emit(func(s *state) { s.aff[id] = s.aff[a].times(uint32(1) << uint32(s.uni[b])) })
	}
	g.affineBlock(in)
}

// axis is the value of LocalID in a dimension.
func axis(dim uint64) linear {
	return [3]linear{{x: 1}, {y: 1}, {z: 1}}[dim]
}

// affineBlock makes an affine value into a block, if one is needed.
func (g *generator) affineBlock(in ir.Value) {
	if !g.need[in.ID] {
		return
	}
	id, off := in.ID, g.place(in)
	g.emit(func(s *state) { s.aff[id].write(vec[uint32](s, off, s.n), s.shape()) })
}

// truth is what is known of a predicate over a block without looking at each invocation.
type truth uint8

const (
	allFalse truth = iota
	allTrue
	prefix // true for the first invocations of the block only; how many is returned beside it
	mixed
)

// condition evaluates a Bool scalar over the block.
type condition struct {
	quick func(s *state) (truth, int)
	write func(s *state, d []uint8)
}

// conditionOf returns how to evaluate a condition of any class.
func (g *generator) conditionOf(v ir.Value) condition {
	id := v.ID
	switch g.a.class[id] {
	case uniform:
		return condition{
			quick: func(s *state) (truth, int) {
				if s.uni[id] != 0 {
					return allTrue, 0
				}
				return allFalse, 0
			},
			write: func(s *state, d []uint8) { fill(d, uint8(s.uni[id])) },
		}
	case predicate:
		return g.predicate(v)
	}
	off := g.blockOf(v)
	return condition{
		quick: func(*state) (truth, int) { return mixed, 0 },
		write: func(s *state, d []uint8) { copy(d, vec[uint8](s, off, len(d))) },
	}
}

func (g *generator) predicate(v ir.Value) condition {
	if v.Op == ir.OpAnd {
		a, b := g.conditionOf(v.Args[0]), g.conditionOf(v.Args[1])
		tmp := g.grab(g.stride) // kept: it is small and used within loops
		return condition{
			quick: func(s *state) (truth, int) { return both(a.quick(s))(b.quick(s)) },
			write: func(s *state, d []uint8) {
				a.write(s, d)
				t := vec[uint8](s, tmp, len(d))
				b.write(s, t)
				andVV(d, d, t)
			},
		}
	}
	return g.comparison(v.Op, v.Args[0].Type.Kind, g.linearOf(v.Args[0]), g.linearOf(v.Args[1]))
}

// both returns what is known of the conjunction.
func both(a truth, m int) func(b truth, n int) (truth, int) {
	return func(b truth, n int) (truth, int) {
		switch {
		case a == allFalse || b == allFalse:
			return allFalse, 0
		case a == allTrue:
			return b, n
		case b == allTrue:
			return a, m
		case a == prefix && b == prefix:
			return prefix, min(m, n)
		}
		return mixed, 0
	}
}

// comparison compares two affine values. The quick answer reasons about their difference from unsigned bounds, which
// hold for signed values too while they are not negative.
func (g *generator) comparison(o ir.Op, kind ir.Kind, a, b func(s *state) linear) condition {
	if o == ir.OpGt || o == ir.OpGe {
		o, a, b = mirrored(o), b, a
	}
	limit := uint64(1) << 32
	if kind == ir.I32 {
		limit = 1 << 31
	}
	vv := compareLoops[uint32](o).vv
	vvSigned := compareLoops[int32](o).vv
	tmp := g.grab(g.stride * 4)
	return condition{
		quick: func(s *state) (truth, int) {
			sh, x, y := s.shape(), a(s), b(s)
			xlo, xhi, ok1 := x.bounds(sh)
			ylo, yhi, ok2 := y.bounds(sh)
			if !ok1 || !ok2 || xhi >= limit || yhi >= limit {
				return mixed, 0
			}
			switch o {
			case ir.OpLt:
				if xhi < ylo {
					return allTrue, 0
				}
				if xlo >= yhi {
					return allFalse, 0
				}
				if ylo == yhi {
					return x.below(ylo, sh)
				}
			case ir.OpLe:
				if xhi <= ylo {
					return allTrue, 0
				}
				if xlo > yhi {
					return allFalse, 0
				}
				if ylo == yhi {
					return x.below(ylo+1, sh)
				}
			}
			return mixed, 0
		},
		write: func(s *state, d []uint8) {
			sh := s.shape()
			x, y := s.index[:len(d)], vec[uint32](s, tmp, len(d))
			a(s).write(x, sh)
			b(s).write(y, sh)
			if kind == ir.I32 {
				vvSigned(d, asInt32(x), asInt32(y))
			} else {
				vv(d, x, y)
			}
		},
	}
}

// below returns for which invocations the value is less than limit, knowing that it is for some and not for others.
func (l linear) below(limit uint64, sh shape) (truth, int) {
	step, ok := l.stride(sh)
	if !ok || step == 0 {
		return mixed, 0
	}
	return prefix, int((limit - uint64(l.base) + uint64(step) - 1) / uint64(step))
}

// predicateBlock makes a predicate into a block, if one is needed.
func (g *generator) predicateBlock(in *ir.Instr) {
	if !g.need[in.ID] {
		return
	}
	c := g.predicate(in)
	off := g.place(in)
	g.emit(func(s *state) {
		d := vec[uint8](s, off, s.n)
		switch t, _ := c.quick(s); t {
		case allTrue:
			fill(d, 1)
		case allFalse:
			fill(d, 0)
		default:
			c.write(s, d)
		}
	})
}
