package interp

import (
	"unsafe"

	"github.com/anygpu/anygpu/shaders/ir"
)

// branch compiles an if. Where the condition holds for the first invocations only, the block is cut short; where it
// is mixed, the sides run under a mask.
func (g *generator) branch(in *ir.Instr) {
	cond := g.conditionOf(in.Args[0])
	masks := [2]int{g.grab(g.stride), g.grab(g.stride)}
	then, els := g.inner(in.Blocks[0]), g.inner(in.Blocks[1])
	g.emit(func(s *state) {
		t, count := cond.quick(s)
		switch {
		case t == allTrue:
			runOps(s, then)
			return
		case t == allFalse:
			runOps(s, els)
			return
		case t == prefix && s.mask == nil && len(els) == 0:
			n := s.n
			s.n = min(n, count)
			runOps(s, then)
			s.n = n
			return
		}
		n, mask := s.n, s.mask
		yes := vec[uint8](s, masks[0], n)
		cond.write(s, yes)
		if len(els) == 0 {
			s.masked(yes, then)
			return
		}
		no := vec[uint8](s, masks[1], n)
		xorVS(no, yes, 1)
		s.masked(yes, then)
		s.mask = mask
		if s.err == nil {
			s.masked(no, els)
		}
	})
}

// masked runs ops for the active invocations for which on holds, and changes on. It reports whether there were any.
func (s *state) masked(on []uint8, ops []op) bool {
	mask := s.mask
	if mask != nil {
		andVV(on, on, mask)
	}
	active := countSet(on)
	if active == 0 {
		return false
	}
	if active < len(on) {
		s.mask = on
	}
	runOps(s, ops)
	s.mask = mask
	return true
}

// loop compiles a for, whose body starts with its counter.
func (g *generator) loop(in *ir.Instr) {
	counter := in.Blocks[0].Instrs[0]
	switch cl := g.a.class[counter.ID]; {
	case cl == uniform && g.a.class[in.Args[1].ID] == uniform:
		g.uniformLoop(in, counter)
	case cl == uniform || cl == affine:
		g.affineLoop(in, counter, cl)
	default:
		g.blockLoop(in, counter)
	}
}

// advance returns the next value of a counter; ok is false if it does not grow.
func advance(kind ir.Kind, c, step uint32) (next uint32, ok bool) {
	next = c + step
	return next, less(kind, c, next)
}

func less(kind ir.Kind, a, b uint32) bool {
	if kind == ir.I32 {
		return int32(a) < int32(b)
	}
	return a < b
}

// uniformLoop is a loop that all invocations run equally often.
func (g *generator) uniformLoop(in *ir.Instr, counter ir.Value) {
	id, kind := counter.ID, counter.Type.Kind
	lo, hi, step := in.Args[0].ID, in.Args[1].ID, in.Args[2].ID
	body := g.counted(in, counter, func(s *state, d []uint32) { fill(d, uint32(s.uni[id])) })
	g.emit(func(s *state) {
		c, end, by := uint32(s.uni[lo]), uint32(s.uni[hi]), uint32(s.uni[step])
		for less(kind, c, end) && s.err == nil {
			s.uni[id] = uint64(c)
			runOps(s, body)
			next, ok := advance(kind, c, by)
			if !ok {
				s.fault(EndlessLoop, in, 0, 0, 0)
			}
			c = next
		}
	})
}

// counted compiles the body of a loop, and before it the making of the counter into a block, if the body needs one.
func (g *generator) counted(in *ir.Instr, counter ir.Value, write func(s *state, d []uint32)) []op {
	var read []op
	if g.need[counter.ID] {
		off := g.place(counter)
		read = []op{func(s *state) { write(s, vec[uint32](s, off, s.n)) }}
	}
	return append(read, g.inner(in.Blocks[0])...)
}

// affineLoop is a loop whose counter is uniform or affine but which may end at different times for invocations. Once an
// invocation has left it stays out: n and mask only shrink until the loop's end.
func (g *generator) affineLoop(in *ir.Instr, counter ir.Value, cl class) {
	id, kind, step := counter.ID, counter.Type.Kind, in.Args[2].ID
	start := g.linearOf(in.Args[0])
	current := func(s *state) linear { return s.aff[id] }
	cond := g.loopCondition(in, kind, current)
	on, held := g.grab(g.stride), g.grab(g.stride)
	body := g.counted(in, counter, func(s *state, d []uint32) { current(s).write(d, s.shape()) })
	g.emit(func(s *state) {
		n, mask := s.n, s.mask
		for c := start(s); s.err == nil; {
			s.aff[id] = c
			if cl == uniform {
				s.uni[id] = uint64(c.base)
			}
			t, count := cond.quick(s)
			if t == allFalse {
				break
			}
			if t == prefix && s.mask == nil {
				s.n = min(s.n, count)
			} else if t != allTrue {
				m := vec[uint8](s, on, s.n)
				cond.write(s, m)
				if !s.narrow(m, vec[uint8](s, held, s.n)) {
					break
				}
			}
			runOps(s, body)
			next := c
			next.base += uint32(s.uni[step])
			if !s.grows(kind, c, next) {
				s.fault(EndlessLoop, in, 0, 0, 0)
			}
			c = next
		}
		s.n, s.mask = n, mask
	})
}

// narrow makes on, and what was the mask before, the mask, kept in held; it reports whether an invocation is left.
func (s *state) narrow(on, held []uint8) bool {
	if s.mask != nil {
		andVV(on, on, s.mask)
	}
	active := countSet(on)
	copy(held, on)
	if active < len(on) {
		s.mask = held
	}
	return active > 0
}

// grows reports whether the counter of each active invocation grew from c to next.
func (s *state) grows(kind ir.Kind, c, next linear) bool {
	_, hi, ok := next.bounds(s.shape())
	if ok && hi < 1<<31 && next.base > c.base {
		return true
	}
	before, after := s.index[:s.n], make([]uint32, s.n)
	c.write(before, s.shape())
	next.write(after, s.shape())
	for i := range before {
		if (s.mask == nil || s.mask[i] != 0) && !less(kind, before[i], after[i]) {
			return false
		}
	}
	return true
}

// loopCondition is counter < bound for a counter that is uniform or affine.
func (g *generator) loopCondition(in *ir.Instr, kind ir.Kind, current func(s *state) linear) condition {
	hi := in.Args[1]
	if g.a.class[hi.ID] != blocked {
		return g.comparison(ir.OpLt, kind, current, g.linearOf(hi))
	}
	off := g.blockOf(hi) // the counter is uniform then
	return condition{
		quick: func(*state) (truth, int) { return mixed, 0 },
		write: func(s *state, d []uint8) {
			if kind == ir.I32 {
				gtVS(d, vec[int32](s, off, len(d)), int32(current(s).base))
			} else {
				gtVS(d, vec[uint32](s, off, len(d)), current(s).base)
			}
		},
	}
}

// blockLoop is a loop whose counter differs between invocations in any way.
func (g *generator) blockLoop(in *ir.Instr, counter ir.Value) {
	kind := counter.Type.Kind
	lo, hi, step := g.blockOf(in.Args[0]), g.blockOf(in.Args[1]), g.blockOf(in.Args[2])
	c, on, ended := g.grab(g.stride*4), g.grab(g.stride), g.grab(g.stride)
	body := g.counted(in, counter, func(s *state, d []uint32) { copy(d, vec[uint32](s, c, len(d))) })
	g.emit(func(s *state) {
		n := s.n
		count, end, by := vec[uint32](s, c, n), vec[uint32](s, hi, n), vec[uint32](s, step, n)
		copy(count, vec[uint32](s, lo, n))
		m, done := vec[uint8](s, on, n), vec[uint8](s, ended, n)
		clear(done)
		for s.err == nil {
			for i := range m {
				m[i] = b2u(done[i] == 0 && less(kind, count[i], end[i]))
				done[i] = m[i] ^ 1
			}
			if !s.masked(m, body) {
				return
			}
			for i, active := range m {
				if active == 0 {
					continue
				}
				next, ok := advance(kind, count[i], by[i])
				if !ok {
					s.fault(EndlessLoop, in, 0, 0, 0)
				}
				count[i] = next
			}
		}
	})
}

// variable compiles OpVar, OpGet and OpSet.
func (g *generator) variable(in *ir.Instr) {
	switch {
	case in.Op == ir.OpVar && g.a.class[in.ID] == uniform:
		id, from := in.ID, in.Args[0].ID
		g.emit(func(s *state) { s.uni[id] = s.uni[from] })
	case in.Op == ir.OpVar:
		g.assign(in, g.arg(in.Args[0]), g.place(in), false)
	case in.Op == ir.OpGet && g.a.class[in.ID] == uniform:
		id, from := in.ID, in.Args[0].ID
		g.emit(func(s *state) { s.uni[id] = s.uni[from] })
		g.spread(in, g.out)
	case in.Op == ir.OpGet && g.a.alias[in.ID]:
		g.off[in.ID] = g.off[in.Args[0].ID]
	case in.Op == ir.OpGet:
		g.assign(in, operand{off: g.off[in.Args[0].ID]}, g.place(in), false)
	case g.a.class[in.Args[0].ID] == uniform: // OpSet
		id, from := in.Args[0].ID, in.Args[1].ID
		g.emit(func(s *state) { s.uni[id] = s.uni[from] })
	case g.a.sink[in.Args[1].ID] == in: // made in place unless there is a mask
		outer := g.out
		var list []op
		g.out = &list
		g.assign(in.Args[0], g.arg(in.Args[1]), g.off[in.Args[0].ID], true)
		g.out = outer
		assign := list[0]
		g.emit(func(s *state) {
			if s.mask != nil {
				assign(s)
			}
		})
	default:
		g.assign(in.Args[0], g.arg(in.Args[1]), g.off[in.Args[0].ID], true)
	}
}

// assign copies a value to the block at d, for the active invocations only if masked is set.
func (g *generator) assign(v ir.Value, from operand, d int, masked bool) {
	switch elemSize(v.Type.Kind) {
	case 1:
		assignOp[uint8](g, v.Type.Lanes, from, d, masked)
	case 2:
		assignOp[uint16](g, v.Type.Lanes, from, d, masked)
	case 4:
		assignOp[uint32](g, v.Type.Lanes, from, d, masked)
	default:
		assignOp[uint64](g, v.Type.Lanes, from, d, masked)
	}
}

func assignOp[T word](g *generator, lanes int, from operand, d int, masked bool) {
	var choose func(s *state, d int, from operand)
	if unsafe.Sizeof(T(0)) == 4 {
		choose = assignChosen(selectLoops[uint32]())
	}
	g.emit(func(s *state) {
		n := s.n * lanes
		out := vec[T](s, d, n)
		switch {
		case from.uniform && (!masked || s.mask == nil):
			fill(out, scalarAs[T](s, from))
		case masked && s.mask != nil && lanes == 1 && choose != nil:
			choose(s, d, from)
		case from.uniform:
			fillMasked(out, scalarAs[T](s, from), s.mask[:s.n], lanes)
		case !masked || s.mask == nil:
			copy(out, vec[T](s, from.off, n))
		default:
			copyMasked(out, vec[T](s, from.off, n), s.mask[:s.n], lanes)
		}
	})
}

// assignChosen assigns 32-bit values to the active invocations as a choice between them and what is there.
func assignChosen(f selLoops[uint32]) func(s *state, d int, from operand) {
	return func(s *state, d int, from operand) {
		out := vec[uint32](s, d, s.n)
		if from.uniform {
			f.sv(out, s.mask[:s.n], uint32(s.uni[from.id]), out)
		} else {
			f.vv(out, s.mask[:s.n], vec[uint32](s, from.off, s.n), out)
		}
	}
}
