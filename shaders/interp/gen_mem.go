package interp

import (
	"unsafe"

	vloop "github.com/anygpu/anygpu/shaders/interp/internal/vec"
	"github.com/anygpu/anygpu/shaders/ir"
)

// load compiles a load of any memory, with a conversion if the value's kind is not the memory's.
func (g *generator) load(in *ir.Instr) {
	if g.a.class[in.ID] == uniform {
		g.loadScalar(in)
		return
	}
	kind := in.Mem.Kind
	idx := g.indexOf(in.Args[0])
	if in.Type.Kind == kind {
		g.off[in.ID] = g.loadRaw(in, idx, g.place(in), g.a.inPlace[in.ID])
		return
	}
	raw, done := g.temp(in.Type.Lanes, elemSize(kind))
	from := g.loadRaw(in, idx, raw, in.Mem.Space == ir.Global)
	g.emit(convertOp(kind, in.Type.Kind, from, g.place(in), in.Type.Lanes))
	done()
}

// loadRaw compiles a load without a conversion to the block at d, and returns where the values are: at d, or if inPlace
// is set in a slot, which is set to the buffer itself if the elements lie there one after the other.
func (g *generator) loadRaw(in *ir.Instr, idx index, d int, inPlace bool) int {
	at := d
	if inPlace {
		at = g.slot()
	}
	switch in.Mem.Kind.Size() {
	case 1:
		loadOp[uint8](g, in, idx, d, at)
	case 2:
		loadOp[uint16](g, in, idx, d, at)
	case 4:
		loadOp[uint32](g, in, idx, d, at)
	default:
		loadOp[uint64](g, in, idx, d, at)
	}
	return at
}

// store compiles a store to any memory, with a conversion if the value's kind is not the memory's.
func (g *generator) store(in *ir.Instr) {
	val, kind := in.Args[1], in.Mem.Kind
	idx := g.indexOf(in.Args[0])
	from := g.arg(val)
	if val.Type.Kind != kind {
		raw, done := g.temp(val.Type.Lanes, elemSize(kind))
		g.emit(convertOp(val.Type.Kind, kind, g.blockOf(val), raw, val.Type.Lanes))
		from = operand{off: raw}
		defer done()
	}
	switch kind.Size() {
	case 1:
		storeOp[uint8](g, in, idx, from)
	case 2:
		storeOp[uint16](g, in, idx, from)
	case 4:
		storeOp[uint32](g, in, idx, from)
	default:
		storeOp[uint64](g, in, idx, from)
	}
}

// index is the index operand of an access.
type index struct {
	class class
	id    int
	off   int // blocked
}

func (g *generator) indexOf(v ir.Value) index {
	i := index{class: g.a.class[v.ID], id: v.ID}
	if i.class == blocked {
		i.off = g.blockOf(v)
	}
	return i
}

// linear returns the index as a linear, if it is not a block.
func (i index) linear(s *state) linear {
	if i.class == uniform {
		return linear{base: uint32(s.uni[i.id])}
	}
	return s.aff[i.id]
}

// block returns the index of each invocation.
func (i index) block(s *state) []uint32 {
	if i.class == blocked {
		return vec[uint32](s, i.off, s.n)
	}
	d := s.index[:s.n]
	i.linear(s).write(d, s.shape())
	return d
}

// contiguous returns the first index of a block that accesses consecutive elements, all within elems.
func (i index) contiguous(s *state, lanes, elems int) (first int, ok bool) {
	if i.class == blocked || s.n == 0 {
		return 0, false
	}
	l := i.linear(s)
	step, same := l.stride(s.shape())
	if !same || step != uint32(lanes) && s.n > 1 || l.base%uint32(lanes) != 0 || uint64(l.base)+uint64(s.n*lanes) > uint64(elems) {
		return 0, false
	}
	return int(l.base), true
}

// strided returns the first index of a block and the distance from one to the next, if that is the same everywhere and all
// are aligned and within elems.
func (i index) strided(s *state, lanes, elems int) (first, step int, ok bool) {
	if i.class == blocked || s.n == 0 {
		return 0, 0, false
	}
	l := i.linear(s)
	by, same := l.stride(s.shape())
	if !same || (l.base|by)&uint32(lanes-1) != 0 || uint64(l.base)+uint64(by)*uint64(s.n-1)+uint64(lanes) > uint64(elems) {
		return 0, 0, false
	}
	return int(l.base), int(by), true
}

// valid reports whether an access to lanes elements at index e is aligned and in bounds. lanes is a power of 2.
func valid(e uint32, lanes, elems int) bool {
	return uint64(e)+uint64(lanes) <= uint64(elems) && e&uint32(lanes-1) == 0
}

func (s *state) badIndex(in *ir.Instr, e uint32, elems, lanes int) {
	kind := OutOfBounds
	if e%uint32(lanes) != 0 {
		kind = Misaligned
	}
	s.fault(kind, in, int64(e), elems, lanes)
}

// loadScalar compiles the load of one element for all invocations.
func (g *generator) loadScalar(in *ir.Instr) {
	id, at, binding, kind, to := in.ID, in.Args[0].ID, in.Mem.Index, in.Mem.Kind, in.Type.Kind
	g.emit(func(s *state) {
		e, elems := uint32(s.uni[at]), s.global[binding].elems
		if uint(e) >= uint(elems) {
			s.badIndex(in, e, elems, 1)
			return
		}
		var v uint64
		switch kind.Size() {
		case 1:
			v = uint64(buffer[uint8](s, binding)[e])
		case 2:
			v = uint64(buffer[uint16](s, binding)[e])
		case 4:
			v = uint64(buffer[uint32](s, binding)[e])
		default:
			v = buffer[uint64](s, binding)[e]
		}
		s.uni[id] = convertBits(kind, to, v)
	})
	g.spread(in, g.out)
}

func loadOp[T word](g *generator, in *ir.Instr, idx index, d, at int) {
	switch in.Mem.Space {
	case ir.Shared:
		loadShared[T](g, in, idx, d)
	case ir.Private:
		loadPrivate[T](g, in, idx, d)
	default:
		loadGlobal[T](g, in, idx, d, at)
	}
}

func loadGlobal[T word](g *generator, in *ir.Instr, idx index, d, at int) {
	binding, lanes := in.Mem.Index, in.Type.Lanes
	g.emit(func(s *state) {
		m := buffer[T](s, binding)
		if first, ok := idx.contiguous(s, lanes, len(m)); ok {
			if at < 0 {
				s.ptr[^at] = unsafe.Pointer(&m[first])
			} else {
				copy(vec[T](s, d, s.n*lanes), m[first:])
			}
			return
		}
		if at < 0 {
			s.ptr[^at] = s.at(d)
		}
		gather(s, in, idx, vec[T](s, d, s.n*lanes), m)
	})
}

// gather loads elements that do not lie one after the other.
func gather[T word](s *state, in *ir.Instr, idx index, out, m []T) {
	lanes := in.Type.Lanes
	if first, step, ok := idx.strided(s, lanes, len(m)); ok {
		if lanes > 1 {
			copyRows(out, m[first:], s.n, lanes, lanes, step)
			return
		}
		p := unsafe.Pointer(&m[first]) // strided has checked all indices
		for i := range out {
			out[i] = *(*T)(unsafe.Add(p, uintptr(i*step)*unsafe.Sizeof(m[0])))
		}
		return
	}
	for i, e := range idx.block(s) {
		if s.mask != nil && s.mask[i] == 0 {
			continue
		}
		if !valid(e, lanes, len(m)) {
			s.badIndex(in, e, len(m), lanes)
			return
		}
		if lanes == 1 {
			out[i] = m[e]
		} else {
			copy(out[i*lanes:(i+1)*lanes], m[e:])
		}
	}
}

// copyRows copies n rows of lanes elements, which begin every dstep and astep elements. The last row is within both slices.
func copyRows[T word](d, a []T, n, lanes, dstep, astep int) {
	size := int(unsafe.Sizeof(d[0]))
	if vloop.Rows(unsafe.Pointer(unsafe.SliceData(d)), unsafe.Pointer(unsafe.SliceData(a)), n, lanes*size, dstep*size, astep*size) {
		return
	}
	for i := range n {
		copy(d[i*dstep:i*dstep+lanes], a[i*astep:])
	}
}

func storeOp[T word](g *generator, in *ir.Instr, idx index, from operand) {
	switch in.Mem.Space {
	case ir.Shared:
		storeShared[T](g, in, idx, from)
	case ir.Private:
		storePrivate[T](g, in, idx, from)
	default:
		storeGlobal[T](g, in, idx, from)
	}
}

// source returns the values to store, one for each lane of each invocation; a uniform value is spread in the scratch
// block tmp.
func source[T word](s *state, from operand, tmp, lanes int) []T {
	if !from.uniform {
		return vec[T](s, from.off, s.n*lanes)
	}
	x := vec[T](s, tmp, s.n*lanes)
	fill(x, scalarAs[T](s, from))
	return x
}

// uniformTemp takes scratch space for source.
func (g *generator) uniformTemp(from operand, lanes, size int) (int, func()) {
	if !from.uniform {
		return 0, func() {}
	}
	return g.temp(lanes, size)
}

func storeGlobal[T word](g *generator, in *ir.Instr, idx index, from operand) {
	binding, lanes := in.Mem.Index, in.Args[1].Type.Lanes
	tmp, done := g.uniformTemp(from, lanes, in.Mem.Kind.Size())
	defer done()
	sunk := g.a.sink[in.Args[1].ID] == in
	g.emit(func(s *state) {
		m := buffer[T](s, binding)
		if first, ok := idx.contiguous(s, lanes, len(m)); ok {
			out := m[first : first+s.n*lanes]
			switch {
			case s.mask == nil && sunk: // made in place
			case s.mask == nil && from.uniform:
				fill(out, scalarAs[T](s, from))
			case s.mask == nil:
				copy(out, vec[T](s, from.off, len(out)))
			default:
				copyMasked(out, source[T](s, from, tmp, lanes), s.mask, lanes)
			}
			return
		}
		x := source[T](s, from, tmp, lanes)
		if first, step, ok := idx.strided(s, lanes, len(m)); ok && s.mask == nil && step > 0 {
			if lanes > 1 {
				copyRows(m[first:], x, s.n, lanes, step, lanes)
				return
			}
			p := unsafe.Pointer(&m[first]) // strided has checked all indices
			for i, v := range x {
				*(*T)(unsafe.Add(p, uintptr(i*step)*unsafe.Sizeof(m[0]))) = v
			}
			return
		}
		for i, e := range idx.block(s) {
			if s.mask != nil && s.mask[i] == 0 {
				continue
			}
			if !valid(e, lanes, len(m)) {
				s.badIndex(in, e, len(m), lanes)
				return
			}
			if lanes == 1 {
				m[e] = x[i]
			} else {
				copy(m[e:int(e)+lanes], x[i*lanes:])
			}
		}
	})
}
