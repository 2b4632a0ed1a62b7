package interp

import (
	"encoding/binary"
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// checkedMem is a memory with what the checker knows of each element.
type checkedMem struct {
	m       *ir.Mem
	elems   int      // elements of the declaration or buffer
	bytes   []byte   // Global
	data    []uint64 // Shared: elems; Private: elems of each invocation
	written []bool   // like data; nil: everything was written before
	shadow  []*shadowPage
}

const shadowPageLen = 1024

type shadowPage [shadowPageLen]shadow

// shadow is who touched an element, in one of three ways.
type shadow struct{ read, write, atomic touch }

// touch records the invocations that touched an element: in the interval of the latest touch exactly enough to tell
// whether another invocation did, and over the launch whether another workgroup did.
type touch struct {
	epoch      int32 // 1 + interval of the latest touch; 0: never touched
	inv        int32 // the first invocation of that interval
	others     bool  // whether other invocations of the interval did too
	group      int32 // the first workgroup
	groupInv   int32
	otherGroup bool
}

func (t *touch) add(epoch, inv, group int32) {
	switch {
	case t.epoch == 0:
		*t = touch{epoch: epoch + 1, inv: inv, group: group, groupInv: inv}
		return
	case t.epoch != epoch+1:
		t.epoch, t.inv, t.others = epoch+1, inv, false
	case t.inv != inv:
		t.others = true
	}
	t.otherGroup = t.otherGroup || t.group != group
}

// conflict returns who else touched the element without being ordered with the given invocation.
func (t *touch) conflict(epoch, inv, group int32) (string, bool) {
	switch {
	case t.epoch == 0:
		return "", false
	case t.epoch == epoch+1 && (t.inv != inv || t.others):
		if t.inv == inv {
			return "other invocations of the same group", true
		}
		return fmt.Sprintf("invocation %d of the same group", t.inv), true
	case t.group != group:
		return fmt.Sprintf("invocation %d of group %d", t.groupInv, t.group), true
	case t.otherGroup:
		return "invocations of other groups", true
	}
	return "", false
}

func newGlobalMem(m *ir.Mem, bytes []byte, elems int) *checkedMem {
	cm := &checkedMem{m: m, elems: elems, bytes: bytes}
	if m.Access == ir.Write {
		cm.written = make([]bool, elems)
	}
	if m.Access != ir.Read {
		cm.shadow = make([]*shadowPage, (elems+shadowPageLen-1)/shadowPageLen)
	}
	return cm
}

func newArrayMem(m *ir.Mem, invocations int) *checkedMem {
	cm := &checkedMem{m: m, elems: m.Len}
	total := m.Len
	if m.Space == ir.Private {
		total *= invocations
	} else {
		cm.shadow = make([]*shadowPage, (m.Len+shadowPageLen-1)/shadowPageLen)
	}
	cm.data, cm.written = make([]uint64, total), make([]bool, total)
	return cm
}

// startGroup forgets the contents of workgroup memory and private arrays.
func (cm *checkedMem) startGroup() {
	if cm.m.Space == ir.Global {
		return
	}
	clear(cm.written)
	clear(cm.shadow) // workgroups do not share it
}

// place returns where element e is for an invocation in data and written.
func (cm *checkedMem) place(e, inv int) int {
	if cm.m.Space == ir.Private {
		return inv*cm.elems + e
	}
	return e
}

func (cm *checkedMem) get(e, inv int) uint64 {
	if cm.bytes == nil {
		return cm.data[cm.place(e, inv)]
	}
	switch cm.m.Kind.Size() {
	case 1:
		return uint64(cm.bytes[e])
	case 2:
		return uint64(binary.NativeEndian.Uint16(cm.bytes[2*e:]))
	case 4:
		return uint64(binary.NativeEndian.Uint32(cm.bytes[4*e:]))
	}
	return binary.NativeEndian.Uint64(cm.bytes[8*e:])
}

func (cm *checkedMem) set(e, inv int, v uint64) {
	if cm.bytes == nil {
		cm.data[cm.place(e, inv)] = v
		return
	}
	switch cm.m.Kind.Size() {
	case 1:
		cm.bytes[e] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(cm.bytes[2*e:], uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(cm.bytes[4*e:], uint32(v))
	case 8:
		binary.NativeEndian.PutUint64(cm.bytes[8*e:], v)
	}
}

func (cm *checkedMem) shadowOf(e int) *shadow {
	if cm.shadow == nil {
		return nil
	}
	p := &cm.shadow[e/shadowPageLen]
	if *p == nil {
		*p = new(shadowPage)
	}
	return &(*p)[e%shadowPageLen]
}

// inBounds checks an access to lanes elements from index on and reports what is wrong with it.
func (c *checker) inBounds(in *ir.Instr, cm *checkedMem, inv int, index uint64, lanes int) bool {
	if index%uint64(lanes) != 0 {
		c.report(Misaligned, in, inv, in.Args[0], int64(index), fmt.Sprintf("%d lanes need an index that is a multiple of %d", lanes, lanes))
		return false
	}
	if index+uint64(lanes) > uint64(cm.elems) {
		detail := fmt.Sprintf("it has %d elements", cm.elems)
		if lanes > 1 {
			detail = fmt.Sprintf("%d lanes, it has %d elements", lanes, cm.elems)
		}
		c.report(OutOfBounds, in, inv, in.Args[0], int64(index), detail)
		return false
	}
	return true
}

func (c *checker) racesWith(in *ir.Instr, inv, e int, what string, ts ...*touch) bool {
	for _, t := range ts {
		if who, ok := t.conflict(c.epoch, int32(inv), c.groupNo); ok {
			c.report(Race, in, inv, in.Args[0], int64(e), what+" "+who+", with no barrier between")
			return true
		}
	}
	return false
}

func (c *checker) onRead(in *ir.Instr, cm *checkedMem, inv, e int) {
	if cm.written != nil && !cm.written[cm.place(e, inv)] {
		c.report(Uninitialised, in, inv, in.Args[0], int64(e), "")
	}
	if s := cm.shadowOf(e); s != nil {
		c.racesWith(in, inv, e, "read here, written by", &s.write)
		s.read.add(c.epoch, int32(inv), c.groupNo)
	}
}

func (c *checker) onWrite(in *ir.Instr, cm *checkedMem, inv, e int) {
	if cm.written != nil {
		cm.written[cm.place(e, inv)] = true
	}
	if s := cm.shadowOf(e); s != nil {
		_ = c.racesWith(in, inv, e, "written here, also written by", &s.write) ||
			c.racesWith(in, inv, e, "written here, read by", &s.read) ||
			c.racesWith(in, inv, e, "written here, changed atomically by", &s.atomic)
		s.write.add(c.epoch, int32(inv), c.groupNo)
	}
}

func (c *checker) load(in *ir.Instr, mask []bool) {
	cm, idx, out, lanes := c.mems[in.Mem], c.vals[in.Args[0].ID], c.vals[in.ID], in.Type.Lanes
	for i, on := range mask {
		if !on {
			continue
		}
		if !c.inBounds(in, cm, i, idx[i], lanes) {
			clear(out[i*lanes : (i+1)*lanes])
			continue
		}
		for l := range lanes {
			e := int(idx[i]) + l
			c.onRead(in, cm, i, e)
			out[i*lanes+l] = convertBits(in.Mem.Kind, in.Type.Kind, cm.get(e, i))
		}
	}
}

func (c *checker) store(in *ir.Instr, mask []bool) {
	val := in.Args[1]
	cm, idx, x, lanes := c.mems[in.Mem], c.vals[in.Args[0].ID], c.vals[val.ID], val.Type.Lanes
	for i, on := range mask {
		if !on || !c.inBounds(in, cm, i, idx[i], lanes) {
			continue
		}
		for l := range lanes {
			e := int(idx[i]) + l
			c.onWrite(in, cm, i, e)
			cm.set(e, i, convertBits(val.Type.Kind, in.Mem.Kind, x[i*lanes+l]))
		}
	}
}

func (c *checker) atomic(in *ir.Instr, mask []bool) {
	cm, idx, out := c.mems[in.Mem], c.vals[in.Args[0].ID], c.vals[in.ID]
	for i, on := range mask {
		if !on {
			continue
		}
		out[i] = 0
		if !c.inBounds(in, cm, i, idx[i], 1) {
			continue
		}
		e := int(idx[i])
		c.onAtomic(in, cm, i, e)
		old := cm.get(e, i)
		out[i] = old
		v := c.vals[in.Args[1].ID][i]
		if in.Op != ir.OpAtomicCAS {
			cm.set(e, i, evalAtomic(in.Op, in.Mem.Kind, old, v))
		} else if old == v {
			cm.set(e, i, c.vals[in.Args[2].ID][i])
		}
	}
}

// onAtomic counts and, or and exchange as writes of memory that nobody wrote: lowered kernels store a part of a packed
// word by and followed by or.
func (c *checker) onAtomic(in *ir.Instr, cm *checkedMem, inv, e int) {
	if cm.written != nil {
		p := cm.place(e, inv)
		partial := in.Op == ir.OpAtomicAnd || in.Op == ir.OpAtomicOr || in.Op == ir.OpAtomicXchg
		if !cm.written[p] && !partial {
			c.report(Uninitialised, in, inv, in.Args[0], int64(e), "")
		}
		cm.written[p] = true
	}
	if s := cm.shadowOf(e); s != nil {
		c.racesWith(in, inv, e, "changed atomically here, written by", &s.write)
		s.atomic.add(c.epoch, int32(inv), c.groupNo)
	}
}
