package jit

// Instructions of the general registers. wide selects 64 bits; 32-bit results clear the upper half of the register.

// operations with two operands, by the opcode of their "reg, r/m" form
const (
	opADD   = 0x03
	opOR    = 0x0b
	opAND   = 0x23
	opSUB   = 0x2b
	opXOR   = 0x33
	opCMP   = 0x3b
	opMOV   = 0x8b
	opTEST  = 0x85
	opMOVSX = 0x63 // movsxd
)

// numbers of operations of the forms with an immediate operand
var immDigit = map[byte]int{opADD: 0, opOR: 1, opAND: 4, opSUB: 5, opXOR: 6, opCMP: 7}

func (a *asm) rex(wide bool, reg int, x bool, rm int) {
	if r := 0x40 | bit(wide)<<3 | bit(reg&8 != 0)<<2 | bit(x)<<1 | bit(rm&8 != 0); r != 0x40 {
		a.byte(r)
	}
}

// rr encodes "op reg, rm" of registers.
func (a *asm) rr(op byte, wide bool, reg, rm int) {
	a.rex(wide, reg, false, rm)
	a.byte(op)
	a.modRM(reg, rm)
}

// rm encodes "op reg, memory".
func (a *asm) rm(op byte, wide bool, reg int, m memory) {
	base := m.base
	if m.pool {
		base = 0
	}
	a.rex(wide, reg, m.index >= 0 && m.index&8 != 0, base)
	a.byte(op)
	a.modMem(reg, m, 0)
}

// ri encodes "op reg, imm".
func (a *asm) ri(op byte, wide bool, reg int, imm int32) {
	a.rex(wide, 0, false, reg)
	a.byte(0x81)
	a.modRM(immDigit[op], reg)
	a.int32(imm)
}

func (a *asm) mov(wide bool, d, s int) {
	if d != s || !wide {
		a.rr(opMOV, wide, d, s)
	}
}

func (a *asm) movImm(d int, v uint64) {
	switch {
	case v == 0:
		a.rr(opXOR, false, d, d)
	case v < 1<<32:
		a.rex(false, 0, false, d)
		a.byte(0xb8 | byte(d&7))
		a.int32(int32(uint32(v)))
	default:
		a.rex(true, 0, false, d)
		a.byte(0xb8 | byte(d&7))
		a.int32(int32(uint32(v)))
		a.int32(int32(uint32(v >> 32)))
	}
}

// store encodes a store of the low size bytes of s.
func (a *asm) store(size int, m memory, s int) {
	if size == 2 {
		a.byte(0x66)
	}
	x := m.index >= 0 && m.index&8 != 0
	if size == 1 { // a REX prefix makes sil and dil of numbers 6 and 7
		a.byte(0x40 | bit(s&8 != 0)<<2 | bit(x)<<1 | bit(m.base&8 != 0))
		a.byte(0x88)
	} else {
		a.rex(size == 8, s, x, m.base)
		a.byte(0x89)
	}
	a.modMem(s, m, 0)
}

// load encodes a load of size bytes, extended with zeros.
func (a *asm) load(size int, d int, m memory) {
	switch size {
	case 1, 2:
		a.rex(false, d, m.index >= 0 && m.index&8 != 0, m.base)
		a.byte(0x0f, 0xb6+bit(size == 2))
		a.modMem(d, m, 0)
	default:
		a.rm(opMOV, size == 8, d, m)
	}
}

func (a *asm) lea(wide bool, d int, m memory) { a.rm(0x8d, wide, d, m) }

// unary operations of opcode F7, by number
const (
	digitNot  = 2
	digitNeg  = 3
	digitMul  = 4
	digitDiv  = 6
	digitIdiv = 7
)

func (a *asm) unary(digit int, wide bool, r int) {
	a.rex(wide, 0, false, r)
	a.byte(0xf7)
	a.modRM(digit, r)
}

// shifts by an immediate, by number
const (
	digitShl = 4
	digitShr = 5
	digitSar = 7
)

func (a *asm) shift(digit int, wide bool, r int, n byte) {
	a.rex(wide, 0, false, r)
	a.byte(0xc1)
	a.modRM(digit, r)
	a.byte(n)
}

// Shifts by a register (BMI2), which leave the flags alone.
var (
	opSHLX = opcode{0xf7, 1, 2, 0}
	opSHRX = opcode{0xf7, 3, 2, 0}
	opSARX = opcode{0xf7, 2, 2, 0}
)

func (a *asm) shiftx(o opcode, wide bool, d, s, n int) {
	o.w = bit(wide)
	a.vex(o, 0, d, n, s)
}

func (a *asm) imul(wide bool, d, s int) {
	a.rex(wide, d, false, s)
	a.byte(0x0f, 0xaf)
	a.modRM(d, s)
}

func (a *asm) imulImm(wide bool, d, s int, imm int32) {
	a.rex(wide, d, false, s)
	a.byte(0x69)
	a.modRM(d, s)
	a.int32(imm)
}

// conditions
const (
	ccB  = 2 // unsigned below
	ccAE = 3
	ccE  = 4
	ccNE = 5
	ccBE = 6
	ccA  = 7
	ccL  = 12 // signed less
	ccGE = 13
	ccLE = 14
	ccG  = 15
)

func (a *asm) cmov(cc byte, wide bool, d, s int) {
	a.rex(wide, d, false, s)
	a.byte(0x0f, 0x40|cc)
	a.modRM(d, s)
}

// setcc makes d 0 or 1.
func (a *asm) setcc(cc byte, d int) {
	a.byte(0x40|bit(d&8 != 0), 0x0f, 0x90|cc)
	a.modRM(0, d)
	a.rex8(d, d)
	a.byte(0x0f, 0xb6)
	a.modRM(d, d)
}

func (a *asm) rex8(reg, rm int) { a.byte(0x40 | bit(reg&8 != 0)<<2 | bit(rm&8 != 0)) }

func (a *asm) jcc(cc byte, label int) {
	a.byte(0x0f, 0x80|cc)
	a.jumps = append(a.jumps, jump{len(a.buf), label})
	a.int32(0)
}

func (a *asm) jmp(label int) {
	a.byte(0xe9)
	a.jumps = append(a.jumps, jump{len(a.buf), label})
	a.int32(0)
}

func (a *asm) ret() { a.byte(0xc3) }

// Mask registers.
var (
	opKAND     = opcode{0x41, 0, 1, 0}
	opKANDN    = opcode{0x42, 0, 1, 0}
	opKNOT     = opcode{0x44, 0, 1, 0}
	opKOR      = opcode{0x45, 0, 1, 0}
	opKXNOR    = opcode{0x46, 0, 1, 0}
	opKXOR     = opcode{0x47, 0, 1, 0}
	opKMOV     = opcode{0x90, 0, 1, 0}
	opKMOVSt   = opcode{0x91, 0, 1, 0}
	opKFromGPR = opcode{0x92, 0, 1, 0}
	opKToGPR   = opcode{0x93, 0, 1, 0}
	opKORTESTW = opcode{0x98, 0, 1, 0}
	opKORTESTB = opcode{0x98, 1, 1, 0}
)

func (a *asm) k3(o opcode, d, x, y int) { a.vex(o, 1, d, x, y) }
func (a *asm) k2(o opcode, d, x int)    { a.vex(o, 0, d, 0, x) }

// tzcnt counts the zeros below the lowest set bit.
func (a *asm) tzcnt(d, s int) {
	a.byte(0xf3)
	a.rex(false, d, false, s)
	a.byte(0x0f, 0xbc)
	a.modRM(d, s)
}

// blsr clears the lowest set bit of s.
func (a *asm) blsr(d, s int) { a.vex(opcode{0xf3, 0, 2, 0}, 0, 1, d, s) }

// adcZero adds the carry.
func (a *asm) adcZero(wide bool, r int) {
	a.rex(wide, 0, false, r)
	a.byte(0x83)
	a.modRM(2, r)
	a.byte(0)
}

// testImm compares the bits in imm of r with 0.
func (a *asm) testImm(r, imm int) {
	a.rex(false, 0, false, r)
	a.byte(0xf7)
	a.modRM(0, r)
	a.int32(int32(imm))
}

// prefetch asks for a line of memory, which need not be there.
func (a *asm) prefetch(m memory) {
	a.rex(false, 0, m.index >= 0 && m.index&8 != 0, m.base)
	a.byte(0x0f, 0x18)
	a.modMem(1, m, 0)
}
