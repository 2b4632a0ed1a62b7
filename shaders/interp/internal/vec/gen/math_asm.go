package main

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/vmath"
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pool is the table of constants of all functions, four bytes each.
type pool struct {
	at    map[uint32]int
	table Mem
}

func newPool() *pool {
	p := &pool{at: map[uint32]int{}}
	p.table = GLOBL("mathConstants", attr.RODATA|attr.NOPTR)
	for _, op := range vmath.Ops() {
		f := vmath.Of(op)
		for _, in := range f.Code {
			if in.Op == vmath.Const {
				p.add(in.Bits)
			}
		}
		if f.Limit != 0 {
			p.add(f32bits(f.Limit))
		}
	}
	p.add(0x7fffffff)
	p.add(0x3f800000)
	return p
}

func (p *pool) add(bits uint32) {
	if _, ok := p.at[bits]; !ok {
		p.at[bits] = 4 * len(p.at)
		DATA(p.at[bits], U32(bits))
	}
}

// mathFunc translates a function of package vmath to a loop over an array.
type mathFunc struct {
	isa
	pool *pool
	f    *vmath.Func
	last []int  // the last use of each value
	held []bool // the register of the value outlives the loop
	reg  []reg.VecVirtual
	mask []reg.OpmaskVirtual
	word map[uint32]reg.VecVirtual // constants in registers
}

func (m *mathFunc) vec() reg.VecVirtual {
	if m.lanes == 16 {
		return ZMM()
	}
	return YMM()
}

func (m *mathFunc) constant(bits uint32) reg.VecVirtual {
	if r, ok := m.word[bits]; ok {
		return r
	}
	r := m.vec()
	VBROADCASTSS(m.pool.table.Offset(m.pool.at[bits]), r)
	return r
}

// hoisted is how many constants a function keeps in registers; AVX2 loads the others where they are used.
var hoisted = map[int]int{16: 32 - 16, 8: 16 - 9}

func (s isa) math(p *pool, f *vmath.Func) {
	results := ""
	if f.Limit != 0 {
		results = "done uintptr"
	}
	comment := fmt.Sprintf("d = %s(a)", f.Name)
	signature := "func(d, a *float32, n uintptr)"
	if results != "" {
		signature += " (" + results + ")"
		comment += fmt.Sprintf(", up to the first vector with an |a| above %v or NaN", f.Limit)
	}
	TEXT(f.Name+"Math"+s.name, attr.NOSPLIT, signature)
	Pragma("noescape")
	Doc(fmt.Sprintf("%sMath%s computes n elements, a multiple of %d: %s.", f.Name, s.name, s.lanes, comment))
	m := &mathFunc{isa: s, pool: p, f: f, last: make([]int, len(f.Code)), held: make([]bool, len(f.Code)),
		reg: make([]reg.VecVirtual, len(f.Code)), mask: make([]reg.OpmaskVirtual, len(f.Code)), word: map[uint32]reg.VecVirtual{}}
	count := map[uint32]int{}
	var order []uint32
	use := func(bits uint32) {
		if count[bits] == 0 {
			order = append(order, bits)
		}
		count[bits]++
	}
	if f.Limit != 0 {
		use(0x7fffffff)
		use(f32bits(f.Limit))
	}
	for i, in := range f.Code {
		for _, v := range in.Operands() {
			m.last[v] = i
			if c := f.Code[v]; c.Op == vmath.Const {
				use(c.Bits)
			}
		}
		if in.Op == vmath.Scale && s.lanes == 8 {
			use(0x3f800000)
		}
	}
	// The constants that are used most often come first.
	for most := len(f.Code); most > 0; most-- {
		for _, bits := range order {
			if count[bits] == most && len(m.word) < hoisted[s.lanes] {
				m.word[bits] = m.constant(bits)
			}
		}
	}
	a, d, n := param("a"), param("d"), param("n")
	i := GP64()
	XORQ(i, i)
	Label("loop")
	x := m.vec()
	VMOVUPS(Mem{Base: a, Index: i, Scale: 4}, x)
	if f.Limit != 0 {
		m.stop(x)
	}
	for k, in := range f.Code {
		switch {
		case in.Op == vmath.Arg:
			m.reg[k] = x
		case in.Op == vmath.Const: // loaded where it is used
		default:
			m.instr(k, in)
		}
	}
	VMOVUPS(m.reg[len(f.Code)-1], Mem{Base: d, Index: i, Scale: 4})
	ADDQ(Imm(uint64(s.lanes)), i)
	CMPQ(i, n)
	JCS(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	if f.Limit != 0 {
		Store(i, Return("done"))
	}
	RET()
}

// stop leaves the loop if a lane of x is out of the function's range.
func (m *mathFunc) stop(x reg.VecVirtual) {
	const notLe = 6 // also if unordered
	abs := m.vec()
	VANDPS(m.constant(0x7fffffff), x, abs)
	limit := m.constant(f32bits(m.f.Limit))
	if m.lanes == 16 {
		k := K()
		VCMPPS(Imm(notLe), limit, abs, k)
		KORTESTW(k, k)
	} else {
		VCMPPS(Imm(notLe), limit, abs, abs)
		VPTEST(abs, abs)
	}
	JNE(LabelRef("end"))
}

// arg returns the register of a value.
func (m *mathFunc) arg(v int) reg.VecVirtual {
	if in := m.f.Code[v]; in.Op == vmath.Const {
		return m.constant(in.Bits)
	}
	return m.reg[v]
}

// free reports whether instruction k may overwrite the register of v.
func (m *mathFunc) free(k, v int) bool {
	in := m.f.Code[v]
	if in.Op == vmath.Const {
		_, kept := m.word[in.Bits]
		return !kept
	}
	return m.last[v] == k
}

func (m *mathFunc) instr(k int, in vmath.Instr) {
	binary := map[vmath.Op]func(...Op){vmath.Add: VADDPS, vmath.Sub: VSUBPS, vmath.Mul: VMULPS, vmath.Div: VDIVPS, vmath.Min: VMINPS, vmath.Max: VMAXPS,
		vmath.And: VANDPS, vmath.Or: VORPS, vmath.Xor: VXORPS, vmath.IAdd: VPADDD, vmath.ISub: VPSUBD}
	if op := binary[in.Op]; op != nil {
		x, y := m.arg(in.A), m.arg(in.B)
		d := m.vec()
		op(y, x, d)
		m.reg[k] = d
		return
	}
	switch in.Op {
	case vmath.Fma:
		m.fused(k, in, VFMADD213PS, VFMADD231PS)
	case vmath.Fnma:
		m.fused(k, in, VFNMADD213PS, VFNMADD231PS)
	case vmath.Sqrt:
		m.reg[k] = m.vec()
		VSQRTPS(m.arg(in.A), m.reg[k])
	case vmath.Shl:
		m.reg[k] = m.vec()
		VPSLLD(Imm(uint64(in.Bits)), m.arg(in.A), m.reg[k])
	case vmath.Shr:
		m.reg[k] = m.vec()
		VPSRLD(Imm(uint64(in.Bits)), m.arg(in.A), m.reg[k])
	case vmath.ToF:
		m.reg[k] = m.vec()
		VCVTDQ2PS(m.arg(in.A), m.reg[k])
	case vmath.Scale:
		m.scale(k, in)
	case vmath.Lt, vmath.Eq:
		predicate := Imm(0x11)
		if in.Op == vmath.Eq {
			predicate = Imm(0)
		}
		x, y := m.arg(in.A), m.arg(in.B)
		if m.lanes == 16 {
			m.mask[k] = K()
			VCMPPS(predicate, y, x, m.mask[k])
		} else {
			m.reg[k] = m.vec()
			VCMPPS(predicate, y, x, m.reg[k])
		}
	case vmath.SignOf:
		if m.lanes == 16 {
			m.mask[k] = K()
			VPMOVD2M(m.arg(in.A), m.mask[k])
		} else {
			m.reg[k] = m.arg(in.A)
			m.last[in.A] = max(m.last[in.A], m.last[k])
		}
	case vmath.Select:
		x, y := m.arg(in.B), m.arg(in.C)
		m.reg[k] = m.vec()
		if m.lanes == 16 {
			VBLENDMPS(x, y, m.mask[in.A], m.reg[k])
		} else {
			VBLENDVPS(m.reg[in.A], x, y, m.reg[k])
		}
	default:
		panic("no assembly for an operation of vmath")
	}
}

// fused is a fused multiplication and addition, which overwrites an operand.
func (m *mathFunc) fused(k int, in vmath.Instr, f213, f231 func(...Op)) {
	x, y, z := m.arg(in.A), m.arg(in.B), m.arg(in.C)
	switch {
	case m.free(k, in.A):
		f213(z, y, x)
		m.reg[k] = x
	case m.free(k, in.B):
		f213(z, x, y)
		m.reg[k] = y
	case m.free(k, in.C):
		f231(y, x, z)
		m.reg[k] = z
	default:
		d := m.vec()
		VMOVAPS(z, d)
		f231(y, x, d)
		m.reg[k] = d
	}
}

// scale is A * 2^B; AVX2 does it by two factors, of which the first leaves the product exact.
func (m *mathFunc) scale(k int, in vmath.Instr) {
	x, j := m.arg(in.A), m.arg(in.B)
	d := m.vec()
	m.reg[k] = d
	if m.lanes == 16 {
		VSCALEFPS(j, x, d)
		return
	}
	one := m.constant(0x3f800000)
	n, half := m.vec(), m.vec()
	VCVTPS2DQ(j, n)
	VPSRAD(Imm(1), n, half)
	VPSUBD(half, n, n)
	VPSLLD(Imm(23), half, half)
	VPADDD(one, half, half)
	VMULPS(half, x, d)
	VPSLLD(Imm(23), n, n)
	VPADDD(one, n, n)
	VMULPS(n, d, d)
}
