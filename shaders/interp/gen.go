package interp

import (
	"unsafe"

	"github.com/anygpu/anygpu/shaders/ir"
)

// slotAlign keeps the blocks of the arena on cache lines.
const slotAlign = 64

// generator compiles a kernel to closures. It runs twice: the first pass only finds which uniform, affine and predicate
// values are needed as blocks.
type generator struct {
	p      *Program
	k      *ir.Kernel
	a      *analysis
	need   []bool // values that must be made into a block where they are computed
	off    []int  // of a value's block: its byte offset in the arena, or the complement of its slot
	own    []int  // byte offset in the arena of the block that place gave a value
	slots  int
	mems   map[*ir.Mem]int
	out    *[]op
	stride int
	arena  int
	free   map[int][]int // offsets by size
	expire map[int][]int // values by the position of their last use
	size   []int         // bytes of a value's block; 0 if it has none of its own
	where  int           // position of the instruction being compiled
}

// operand is an argument of an instruction: a scalar for all lanes, or a block.
type operand struct {
	uniform bool
	id      int
	off     int
}

func (o operand) bits(s *state) uint64 { return s.uni[o.id] }

func generate(p *Program) {
	a := analyze(p.k, p.maxGroups == 1)
	need := make([]bool, p.k.NumInstr)
	for range 2 {
		g := &generator{p: p, k: p.k, a: a, need: need, off: make([]int, p.k.NumInstr), own: make([]int, p.k.NumInstr), mems: map[*ir.Mem]int{}, stride: p.maxGroups * p.n,
			free: map[int][]int{}, expire: map[int][]int{}, size: make([]int, p.k.NumInstr)}
		p.prologue, p.body = nil, nil
		for _, m := range p.k.Mems {
			switch m.Space {
			case ir.Shared:
				g.mems[m] = g.grab(p.maxGroups * m.Len * m.Kind.Size())
			case ir.Private:
				g.mems[m] = g.grab(g.stride * m.Len * m.Kind.Size())
			}
		}
		g.out = &p.body
		g.block(p.k.Body)
		p.arena, p.slots = g.arena, g.slots
	}
}

func (g *generator) emit(f op) { *g.out = append(*g.out, f) }

// elemSize returns the bytes of an element in a block.
func elemSize(k ir.Kind) int {
	if k == ir.Bool {
		return 1
	}
	return k.Size()
}

// grab takes bytes of the arena.
func (g *generator) grab(bytes int) int {
	bytes = (bytes + slotAlign - 1) &^ (slotAlign - 1)
	if l := g.free[bytes]; len(l) > 0 {
		g.free[bytes] = l[:len(l)-1]
		return l[len(l)-1]
	}
	off := g.arena
	g.arena += bytes
	return off
}

// reserve takes bytes of the arena that nothing else uses during the launch.
func (g *generator) reserve(bytes int) int {
	off := g.arena
	g.arena += (bytes + slotAlign - 1) &^ (slotAlign - 1)
	return off
}

// place gives v a block of its own until its last use.
func (g *generator) place(v ir.Value) int {
	bytes := g.stride * v.Type.Lanes * elemSize(v.Type.Kind)
	bytes = (bytes + slotAlign - 1) &^ (slotAlign - 1)
	g.own[v.ID], g.size[v.ID] = g.grab(bytes), bytes
	g.off[v.ID] = g.own[v.ID]
	g.expire[g.a.last[v.ID]] = append(g.expire[g.a.last[v.ID]], v.ID)
	if to := g.a.sink[v.ID]; to != nil {
		g.aim(v, to)
	}
	return g.off[v.ID]
}

// aim makes the place of a value a slot, and sets it to where the value is stored or assigned if that is the block as it
// is: all invocations are active and, in a buffer, the elements lie one after the other.
func (g *generator) aim(v ir.Value, to *ir.Instr) {
	own, slot := g.own[v.ID], g.slot()
	g.off[v.ID] = slot
	if to.Op == ir.OpSet {
		variable := g.off[to.Args[0].ID]
		g.emit(func(s *state) {
			if s.mask == nil {
				s.ptr[^slot] = s.at(variable)
			} else {
				s.ptr[^slot] = s.at(own)
			}
		})
		return
	}
	idx, lanes, binding, size := g.indexOf(to.Args[0]), v.Type.Lanes, to.Mem.Index, uintptr(to.Mem.Kind.Size())
	g.emit(func(s *state) {
		m := s.global[binding]
		if first, ok := idx.contiguous(s, lanes, m.elems); ok && s.mask == nil {
			s.ptr[^slot] = unsafe.Add(m.ptr, uintptr(first)*size)
		} else {
			s.ptr[^slot] = s.at(own)
		}
	})
}

func (g *generator) drop(id int) {
	if g.size[id] > 0 {
		g.free[g.size[id]] = append(g.free[g.size[id]], g.own[id])
		g.size[id] = 0
	}
}

// placeOver is place for an instruction that reads each element of its operands before it writes the same element of
// its result, so that the result can take the block of an operand that is not used afterwards.
func (g *generator) placeOver(v ir.Value) int {
	for _, arg := range v.Args {
		if g.a.class[arg.ID] == blocked && g.a.last[arg.ID] == g.where && arg.Type.Lanes == v.Type.Lanes && elemSize(arg.Type.Kind) == elemSize(v.Type.Kind) {
			g.drop(arg.ID)
		}
	}
	return g.place(v)
}

// slot returns the place of a block whose address is known when the program runs.
func (g *generator) slot() int {
	g.slots++
	return ^(g.slots - 1)
}

// temp returns a scratch block of elements of size bytes for the instruction being compiled.
func (g *generator) temp(lanes, size int) (off int, done func()) {
	bytes := (g.stride*lanes*size + slotAlign - 1) &^ (slotAlign - 1)
	off = g.grab(bytes)
	return off, func() { g.free[bytes] = append(g.free[bytes], off) }
}

// arg returns v as a scalar if it is uniform, else as a block.
func (g *generator) arg(v ir.Value) operand {
	if g.a.class[v.ID] == uniform {
		return operand{uniform: true, id: v.ID}
	}
	return operand{id: v.ID, off: g.blockOf(v)}
}

// blockOf returns the block of v.
func (g *generator) blockOf(v ir.Value) int {
	g.need[v.ID] = true
	return g.off[v.ID]
}

func (g *generator) block(b *ir.Block) {
	for _, in := range b.Instrs {
		g.where = g.a.pos[in.ID]
		if g.a.live[in.ID] {
			g.instr(in)
		}
		g.endOf(in)
	}
}

// endOf frees the blocks whose last use was in this instruction.
func (g *generator) endOf(in *ir.Instr) {
	for p := g.a.pos[in.ID]; p <= g.a.end[in.ID]; p++ {
		for _, id := range g.expire[p] {
			g.drop(id)
		}
		delete(g.expire, p)
	}
}

// inner compiles a block to its own list.
func (g *generator) inner(b *ir.Block) []op {
	outer := g.out
	var list []op
	g.out = &list
	g.block(b)
	g.out = outer
	return list
}

func (g *generator) instr(in *ir.Instr) {
	switch in.Op {
	case ir.OpIf:
		g.branch(in)
	case ir.OpFor:
		g.loop(in)
	case ir.OpLoopVar, ir.OpBarrier: // the loop sets its counter; lockstep is a barrier
	case ir.OpVar, ir.OpGet, ir.OpSet:
		g.variable(in)
	case ir.OpLoad:
		g.load(in)
	case ir.OpStore:
		g.store(in)
	default:
		if in.Op.IsAtomic() {
			g.atomic(in)
			return
		}
		switch g.a.class[in.ID] {
		case uniform:
			g.scalar(in)
		case affine:
			g.affine(in)
		case predicate:
			g.predicateBlock(in)
		default:
			g.compute(in)
		}
	}
}

// scalar compiles an operation on uniform values.
func (g *generator) scalar(in *ir.Instr) {
	list := g.out
	if g.a.invariant[in.ID] {
		list = &g.p.prologue
	}
	*list = append(*list, scalarOp(in))
	g.spread(in, list)
}

// spread makes a uniform value into a block, if one is needed.
func (g *generator) spread(in ir.Value, list *[]op) {
	if !g.need[in.ID] {
		return
	}
	off := 0
	if g.a.invariant[in.ID] {
		off = g.reserve(g.stride * in.Type.Lanes * elemSize(in.Type.Kind))
		g.off[in.ID] = off
	} else {
		off = g.place(in)
	}
	*list = append(*list, spreadOp(in.Type, in.ID, off))
}

func spreadOp(t ir.Type, id, off int) op {
	lanes := t.Lanes
	switch elemSize(t.Kind) {
	case 1:
		return func(s *state) { fill(vec[uint8](s, off, s.n*lanes), uint8(s.uni[id])) }
	case 2:
		return func(s *state) { fill(vec[uint16](s, off, s.n*lanes), uint16(s.uni[id])) }
	case 4:
		return func(s *state) { fill(vec[uint32](s, off, s.n*lanes), uint32(s.uni[id])) }
	}
	return func(s *state) { fill(vec[uint64](s, off, s.n*lanes), s.uni[id]) }
}

// scalarOp computes a uniform value.
func scalarOp(in *ir.Instr) op {
	id, imm := in.ID, in.Imm
	arg := func(i int) int {
		if i < len(in.Args) {
			return in.Args[i].ID
		}
		return 0
	}
	a, b, c := arg(0), arg(1), arg(2)
	switch in.Op {
	case ir.OpConst:
		return func(s *state) { s.uni[id] = imm }
	case ir.OpParam:
		return func(s *state) { s.uni[id] = uint64(s.params[imm]) }
	case ir.OpNumGroups:
		return func(s *state) { s.uni[id] = uint64(uint32(s.groups[imm])) }
	case ir.OpGroupID, ir.OpGlobalID: // in a dimension where the block and the workgroup have one position
		return func(s *state) { s.uni[id] = uint64(uint32(s.group[imm])) }
	case ir.OpLocalID:
		return func(s *state) { s.uni[id] = 0 }
	case ir.OpSelect:
		return func(s *state) {
			if s.uni[a] != 0 {
				s.uni[id] = s.uni[b]
			} else {
				s.uni[id] = s.uni[c]
			}
		}
	case ir.OpConvert:
		from, to := in.Args[0].Type.Kind, in.Type.Kind
		return func(s *state) { s.uni[id] = convertBits(from, to, s.uni[a]) }
	case ir.OpBitCast, ir.OpSplat, ir.OpExtract, ir.OpShuffleXor:
		return func(s *state) { s.uni[id] = s.uni[a] }
	}
	o, kind := in.Op, in.Args[0].Type.Kind
	if (o == ir.OpDiv || o == ir.OpRem) && kind.IsInt() {
		return func(s *state) {
			if s.uni[b] == 0 {
				s.fault(DivisionByZero, in, 0, 0, 0)
			}
			s.uni[id] = evalOp(o, kind, s.uni[a], s.uni[b], 0)
		}
	}
	return func(s *state) { s.uni[id] = evalOp(o, kind, s.uni[a], s.uni[b], s.uni[c]) }
}
