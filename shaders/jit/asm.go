package jit

import "encoding/binary"

// The registers of a class are numbered as the encodings number them: general registers 0 (rax) to 15 (r15), vector
// registers 0 to 31, mask registers 0 to 7.
const (
	rax = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15
)

// asm appends machine code to a buffer. Jumps and references to constants are filled in by finish.
type asm struct {
	buf    []byte
	labels []int // where each label is; -1 while it is not placed
	jumps  []jump
	pool   []byte // the constants
	words  map[constant]int
	refs   []reference
}

type jump struct{ at, label int }

// reference is a displacement at buf[at:] that is to reach a constant, counted from the instruction's end.
type reference struct{ at, end, offset int }

// constant is a word of the pool.
type constant struct {
	bits uint64
	size int
}

// opcode is an instruction of the VEX and EVEX encodings.
type opcode struct {
	op     byte
	prefix byte // 0: none, 1: 66, 2: F3, 3: F2
	space  byte // opcode map, 1: 0F, 2: 0F38, 3: 0F3A
	w      byte
}

// memory is a memory operand: base + index*scale + disp, or a constant of the pool.
type memory struct {
	base, index int // index -1: none
	scale       int
	disp        int32
	pool        bool // disp is the offset of a constant
}

func at(base int, disp int32) memory { return memory{base: base, index: -1, disp: disp} }

func (a *asm) byte(b ...byte)  { a.buf = append(a.buf, b...) }
func (a *asm) int32(v int32)   { a.buf = binary.LittleEndian.AppendUint32(a.buf, uint32(v)) }
func (a *asm) newLabel() int   { a.labels = append(a.labels, -1); return len(a.labels) - 1 }
func (a *asm) place(label int) { a.labels[label] = len(a.buf) }

// word returns the operand of a constant of 4 or 8 bytes.
func (a *asm) word(bits uint64, size int) memory {
	c := constant{bits, size}
	off, ok := a.words[c]
	if !ok {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], bits)
		off = a.table(b[:size], size)
		if a.words == nil {
			a.words = map[constant]int{}
		}
		a.words[c] = off
	}
	return memory{pool: true, index: -1, disp: int32(off)}
}

// table puts bytes in the pool, at a multiple of align, and returns their offset.
func (a *asm) table(b []byte, align int) int {
	for len(a.pool)%align != 0 {
		a.pool = append(a.pool, 0)
	}
	a.pool = append(a.pool, b...)
	return len(a.pool) - len(b)
}

// poolAlign is the alignment of the pool behind the code.
const poolAlign = 64

// finish appends the pool and resolves jumps and references.
func (a *asm) finish() []byte {
	for len(a.buf)%poolAlign != 0 {
		a.byte(0xcc)
	}
	start := len(a.buf)
	for _, j := range a.jumps {
		binary.LittleEndian.PutUint32(a.buf[j.at:], uint32(int32(a.labels[j.label]-(j.at+4))))
	}
	for _, r := range a.refs {
		binary.LittleEndian.PutUint32(a.buf[r.at:], uint32(int32(start+r.offset-r.end)))
	}
	return append(a.buf, a.pool...)
}

func bit(cond bool) byte {
	if cond {
		return 1
	}
	return 0
}

// modRM appends the operand bytes for a register operand.
func (a *asm) modRM(reg, rm int) { a.byte(0xc0 | byte(reg&7)<<3 | byte(rm&7)) }

// modMem appends the operand bytes for a memory operand; imm is the number of immediate bytes that follow it.
func (a *asm) modMem(reg int, m memory, imm int) {
	r := byte(reg&7) << 3
	if m.pool {
		a.byte(r | 5)
		a.refs = append(a.refs, reference{len(a.buf), len(a.buf) + 4 + imm, int(m.disp)})
		a.int32(0)
		return
	}
	mod := byte(0x80)
	if m.disp == 0 && m.base&7 != rbp {
		mod = 0
	}
	if m.index < 0 && m.base&7 != rsp {
		a.byte(mod | r | byte(m.base&7))
	} else {
		index, scale := byte(4), byte(0) // none
		if m.index >= 0 {
			index = byte(m.index & 7)
			for s := m.scale; s > 1; s /= 2 {
				scale++
			}
		}
		a.byte(mod|r|4, scale<<6|index<<3|byte(m.base&7))
	}
	if mod != 0 {
		a.int32(m.disp)
	}
}

// vector lengths
const (
	len128 = 0
	len256 = 1
	len512 = 2
)

// form is what an EVEX instruction has besides its operands.
type form struct {
	length    byte
	mask      int // 0: none
	zero      bool
	broadcast bool
}

func (a *asm) evex(o opcode, f form, reg, v int, x, b, vhigh bool) {
	a.byte(0x62,
		(bit(reg&8 == 0)<<7)|(bit(!x)<<6)|(bit(!b)<<5)|(bit(reg&16 == 0)<<4)|o.space,
		o.w<<7|byte(^v&15)<<3|4|o.prefix,
		bit(f.zero)<<7|f.length<<5|bit(f.broadcast)<<4|bit(!vhigh)<<3|byte(f.mask),
		o.op)
}

// rrr encodes reg, v, rm as registers.
func (a *asm) rrr(o opcode, f form, reg, v, rm int, imm ...byte) {
	a.evex(o, f, reg, v, rm&16 != 0, rm&8 != 0, v&16 != 0)
	a.modRM(reg, rm)
	a.byte(imm...)
}

// rrm encodes reg, v and a memory operand.
func (a *asm) rrm(o opcode, f form, reg, v int, m memory, imm ...byte) {
	a.evex(o, f, reg, v, m.index >= 0 && m.index&8 != 0, !m.pool && m.base&8 != 0, v&16 != 0)
	a.modMem(reg, m, len(imm))
	a.byte(imm...)
}

// vsib encodes a gather or scatter: the index of m is a vector register.
func (a *asm) vsib(o opcode, f form, reg int, m memory) {
	a.evex(o, f, reg, 0, m.index&8 != 0, m.base&8 != 0, m.index&16 != 0)
	a.modMem(reg, m, 0)
}

// vex encodes an instruction of the VEX encoding on registers, as mask registers have them; l is its L bit.
func (a *asm) vex(o opcode, l byte, reg, v, rm int, imm ...byte) {
	a.byte(0xc4, bit(reg&8 == 0)<<7|1<<6|bit(rm&8 == 0)<<5|o.space, o.w<<7|byte(^v&15)<<3|l<<2|o.prefix, o.op)
	a.modRM(reg, rm)
	a.byte(imm...)
}

// vexMem is vex with a memory operand.
func (a *asm) vexMem(o opcode, l byte, reg, v int, m memory) {
	x := m.index >= 0 && m.index&8 != 0
	a.byte(0xc4, bit(reg&8 == 0)<<7|bit(!x)<<6|bit(m.pool || m.base&8 == 0)<<5|o.space, o.w<<7|byte(^v&15)<<3|l<<2|o.prefix, o.op)
	a.modMem(reg, m, 0)
}
