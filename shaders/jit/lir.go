package jit

import "slices"

// vreg is a virtual register: a value of machine code before registers are assigned. 0 is none.
type vreg int32

// regClass is the kind of a register.
type regClass uint8

const (
	general regClass = iota
	vector
	mask
	numClasses
)

// Fixed registers. The frame has what a call is given and the values that have no register; spill registers hold such values
// for an instruction, temporaries belong to an instruction.
const (
	frameReg = r15
	tempG    = rax
	tempG2   = rcx
	tempG3   = rdx
	tempZ    = 31
	tempZ2   = 27
)

var (
	allocatable = [numClasses][]uint8{
		general: {rbx, rsi, rdi, r8, r9, r10, r11, r14},
		vector:  {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26},
		mask:    {1, 2, 3, 4, 5},
	}
	spillRegs = [numClasses][]uint8{general: {r12, r13, rdx}, vector: {28, 29, 30}, mask: {6, 7}}
	slotSize  = [numClasses]int{8, 64, 8}
)

// ins is an instruction with virtual registers. emit is called with the registers of def (if there is one) and uses.
type ins struct {
	def  vreg
	uses []vreg
	emit func(a *asm, r []int)

	effect  bool // it is kept if nobody uses def
	tied    bool // the old value of def matters, too: it is among the uses
	early   bool // def is written before all uses are read
	copy    bool // it copies the one use to def
	control bool // it is a jump or where one goes to
	loop    *loopRange
}

// loopRange is the range of instructions of a loop.
type loopRange struct{ start, end int }

// code is a list of instructions that is put together from parts: an element is an ins or the instructions before a loop.
type code struct {
	parts []part
}

type part struct {
	ins  *ins
	code *code
}

func (c *code) add(i *ins) { c.parts = append(c.parts, part{ins: i}) }

// nested appends a part that is filled later.
func (c *code) nested() *code {
	n := &code{}
	c.parts = append(c.parts, part{code: n})
	return n
}

func (c *code) flatten(out []*ins) []*ins {
	for _, p := range c.parts {
		if p.ins != nil {
			out = append(out, p.ins)
		} else {
			out = p.code.flatten(out)
		}
	}
	return out
}

// removeUnused drops instructions whose result nobody uses.
func removeUnused(list []*ins, vregs int) []*ins {
	used := make([]int32, vregs)
	for _, i := range list {
		for _, u := range i.uses {
			if u != i.def {
				used[u]++
			}
		}
	}
	// A later instruction's removal may make an earlier one useless; variables go when nothing reads them.
	for changed := true; changed; {
		changed = false
		for k := len(list) - 1; k >= 0; k-- {
			i := list[k]
			if i == nil || i.effect || i.def == 0 || used[i.def] > 0 {
				continue
			}
			for _, u := range i.uses {
				if u != i.def {
					used[u]--
				}
			}
			list[k], changed = nil, true
		}
	}
	return slices.DeleteFunc(list, func(i *ins) bool { return i == nil })
}

// interval is where a virtual register lives, in half steps: an instruction at position p reads at 2p and writes at 2p+1.
type interval struct {
	v          vreg
	start, end int
	weight     float64
	hint       vreg
	reg        int // -1: in the frame
	slot       int
}

// allocation says where each virtual register is.
type allocation struct {
	of    []*interval
	bytes int // of slots in the frame
}

// allocate assigns registers by linear scan. Slots start at byte base of the frame, a multiple of 64.
func allocate(list []*ins, class []regClass, base int) allocation {
	of := liveness(list, len(class))
	var order []*interval
	for _, iv := range of {
		if iv != nil {
			order = append(order, iv)
		}
	}
	slices.SortStableFunc(order, func(x, y *interval) int { return x.start - y.start })
	var free [numClasses][]bool
	for c := range free {
		free[c] = make([]bool, 32)
		for _, r := range allocatable[c] {
			free[c][r] = true
		}
	}
	var active [numClasses][]*interval
	var spilled [numClasses][]*interval
	for _, iv := range order {
		c := class[iv.v]
		active[c] = slices.DeleteFunc(active[c], func(o *interval) bool {
			if o.end < iv.start {
				free[c][o.reg] = true
				return true
			}
			return false
		})
		iv.reg = -1
		if h := iv.hint; h != 0 && of[h] != nil && of[h].reg >= 0 && free[c][of[h].reg] {
			iv.reg = of[h].reg
		}
		for _, r := range allocatable[c] {
			if iv.reg >= 0 {
				break
			}
			if free[c][r] {
				iv.reg = int(r)
			}
		}
		if iv.reg < 0 {
			worst := iv
			for _, o := range active[c] {
				if o.weight < worst.weight {
					worst = o
				}
			}
			spilled[c] = append(spilled[c], worst)
			if worst == iv {
				continue
			}
			iv.reg = worst.reg
			worst.reg = -1
			active[c] = slices.DeleteFunc(active[c], func(o *interval) bool { return o == worst })
		}
		free[c][iv.reg] = false
		active[c] = append(active[c], iv)
	}
	bytes := base
	for _, c := range []regClass{vector, general, mask} {
		bytes = assignSlots(spilled[c], slotSize[c], bytes)
	}
	return allocation{of, bytes}
}

// assignSlots gives intervals places in the frame, the same to those that do not overlap.
func assignSlots(list []*interval, size, bytes int) int {
	slices.SortStableFunc(list, func(x, y *interval) int { return x.start - y.start })
	type slot struct{ at, end int }
	var slots []slot
next:
	for _, iv := range list {
		for i := range slots {
			if slots[i].end < iv.start {
				slots[i].end = iv.end
				iv.slot = slots[i].at
				continue next
			}
		}
		slots = append(slots, slot{bytes, iv.end})
		iv.slot = bytes
		bytes += size
	}
	return bytes
}

// liveness returns the interval of each virtual register. A value that comes from outside of a loop and is used or set in
// it lives to the loop's end.
func liveness(list []*ins, vregs int) []*interval {
	of := make([]*interval, vregs)
	var loops []*loopRange
	for p, i := range list {
		if i.loop != nil && i.loop.start == p {
			loops = append(loops, i.loop)
		}
		if i.loop != nil && i.loop.end == p {
			loops = loops[:len(loops)-1]
		}
		weight := 1.0
		for range loops {
			weight *= 8
		}
		touch := func(v vreg, at int) *interval {
			iv := of[v]
			if iv == nil {
				iv = &interval{v: v, start: at, end: at}
				of[v] = iv
			}
			for _, l := range loops {
				if iv.start < 2*l.start {
					at = max(at, 2*l.end+1)
					break
				}
			}
			iv.end = max(iv.end, at)
			iv.weight += weight
			return iv
		}
		for _, u := range i.uses {
			touch(u, 2*p)
		}
		if i.def != 0 {
			at := 2*p + 1
			if i.early {
				at = 2 * p
			}
			iv := touch(i.def, at)
			if iv.start == at && len(i.uses) > 0 && iv.hint == 0 {
				iv.hint = i.uses[0]
			}
		}
	}
	for _, iv := range of {
		if iv != nil {
			iv.weight /= float64(iv.end-iv.start) + 8
		}
	}
	return of
}

// assemble numbers the loops, drops what is unused, assigns registers and emits.
func assemble(a *asm, list []*ins, class []regClass, base int) int {
	list = removeUnused(list, len(class))
	seen := map[*loopRange]bool{}
	for p, i := range list {
		if i.loop == nil {
			continue
		}
		if !seen[i.loop] {
			seen[i.loop], i.loop.start = true, p
		}
		i.loop.end = p
	}
	alloc := allocate(list, class, base)
	var regs [8]int
	for _, i := range list {
		r := regs[:0]
		spills := [numClasses]int{}
		defReg, defSlot := -1, 0
		take := func(v vreg, load bool) int {
			iv := alloc.of[v]
			if iv.reg >= 0 {
				return iv.reg
			}
			c := class[v]
			reg := int(spillRegs[c][spills[c]])
			spills[c]++
			if load {
				loadSlot(a, c, reg, iv.slot)
			}
			return reg
		}
		if i.def != 0 {
			r = append(r, 0)
		}
		for _, u := range i.uses {
			if u == i.def && i.def != 0 {
				// the same register as def, which is loaded below
				r = append(r, -1)
				continue
			}
			dup := false
			for k, w := range i.uses[:len(r)-bool2int(i.def != 0)] {
				if w == u {
					r = append(r, r[k+bool2int(i.def != 0)])
					dup = true
					break
				}
			}
			if !dup {
				r = append(r, take(u, true))
			}
		}
		if i.def != 0 {
			iv := alloc.of[i.def]
			if iv.reg >= 0 {
				defReg = iv.reg
			} else {
				// A spilled result may share the register of a spilled use, unless it is written early.
				c := class[i.def]
				if spills[c] == len(spillRegs[c]) {
					spills[c]--
				}
				defReg, defSlot = int(spillRegs[c][spills[c]]), iv.slot
				reads := i.tied
				for _, u := range i.uses {
					reads = reads || u == i.def
				}
				if reads {
					loadSlot(a, c, defReg, defSlot)
				}
			}
			r[0] = defReg
			for k := range r {
				if r[k] == -1 {
					r[k] = defReg
				}
			}
		}
		i.emit(a, r)
		if i.def != 0 && alloc.of[i.def].reg < 0 {
			storeSlot(a, class[i.def], defReg, defSlot)
		}
	}
	return alloc.bytes
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

func loadSlot(a *asm, c regClass, reg, slot int) {
	m := at(frameReg, int32(slot))
	switch c {
	case general:
		a.load(8, reg, m)
	case vector:
		a.rrm(vMOVUPS, form{length: len512}, reg, 0, m)
	default:
		a.vexMem(opKMOV, 0, reg, 0, m)
	}
}

func storeSlot(a *asm, c regClass, reg, slot int) {
	m := at(frameReg, int32(slot))
	switch c {
	case general:
		a.store(8, m, reg)
	case vector:
		a.rrm(vMOVUPSs, form{length: len512}, reg, 0, m)
	default:
		a.vexMem(opKMOVSt, 0, reg, 0, m)
	}
}
