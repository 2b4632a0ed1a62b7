package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Loops over 32-bit integers.

// broadcastWord loads the scalar parameter into a register.
func (s isa) broadcastWord(name string, to int) {
	r := GP32()
	Load(Param(name), r)
	VMOVD(r, s.reg[to].AsX())
	VPBROADCASTD(s.reg[to].AsX(), s.reg[to])
}

// integer is d = a op b.
func (s isa) integer(name string, f form, op func(...Op)) {
	s.function(name+string(f), "d *uint32, "+f.operands("uint32"), "d = "+name+"(a, b)")
	var a, b reg.GPVirtual
	switch f {
	case vv:
		a, b = param("a"), param("b")
	case vs:
		a = param("a")
		s.broadcastWord("b", scalar)
	case sv:
		b = param("b")
		s.broadcastWord("a", scalar)
	}
	d := param("d")
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		r := s.reg[u]
		switch f {
		case sv:
			op(at(b, 4), s.reg[scalar], r)
		case vs:
			VMOVUPS(at(a, 4), r)
			op(s.reg[scalar], r, r)
		default:
			VMOVUPS(at(a, 4), r)
			op(at(b, 4), r, r)
		}
		VMOVUPS(r, at(d, 4))
	})
}

// shift is d = a op b for a scalar b below 32.
func (s isa) shift(name string, op func(...Op)) {
	s.function(name+"VS", "d, a *uint32, b uint32", "d = "+name+"(a, b), b < 32")
	r := GP32()
	Load(Param("b"), r)
	count := s.reg[scalar].AsX()
	VMOVD(r, count)
	a, d := param("a"), param("d")
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		VMOVUPS(at(a, 4), s.reg[u])
		op(count, s.reg[u], s.reg[u])
		VMOVUPS(s.reg[u], at(d, 4))
	})
}

// mulHi is the high word of the product of a and b: of even and of odd lanes, which are then brought together.
func (s isa) mulHi(f form) {
	s.function("mulhi"+string(f), "d *uint32, "+f.operands("uint32"), "d is the high word of a*b")
	a, d := param("a"), param("d")
	var b reg.GPVirtual
	if f == vv {
		b = param("b")
	} else {
		s.broadcastWord("b", scalar)
	}
	if s.lanes == 16 {
		r := GP32()
		MOVL(U32(0xaaaa), r)
		KMOVW(r, reg.K1)
	}
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		even, odd, other := s.reg[u%2*2], s.reg[u%2*2+1], s.reg[scalar]
		VMOVUPS(at(a, 4), even)
		if f == vv {
			other = s.reg[4+u%2]
			VMOVUPS(at(b, 4), other)
		}
		VPSRLQ(Imm(32), even, odd)
		VPMULUDQ(other, even, even)
		if f == vv {
			VPSRLQ(Imm(32), other, other)
		}
		VPMULUDQ(other, odd, odd)
		if s.lanes == 16 {
			VPSRLQ(Imm(32), even, even)
			VMOVDQU32(odd, reg.K1, even)
		} else {
			VPSRLQ(Imm(32), even, even)
			VPBLENDD(Imm(0xaa), odd, even, even)
		}
		VMOVUPS(even, at(d, 4))
	})
}

// divide is the quotient or the remainder by a scalar b > 1, with m = 2^64/b rounded up: the high word of m*a. Halves of
// m give it as mh*a + (ml*a)/2^32, in the high word again. m is below 2^64.
func (s isa) divide(rem bool) {
	name := "quotient"
	if rem {
		name = "remainder"
	}
	s.function(name, "d, a *uint32, b, ml, mh uint32", "d is the "+name+" of a and b > 1; mh and ml are the words of 2^64/b rounded up")
	const divisor, low, high = scalar, constant, 6
	s.broadcastWord("b", divisor)
	s.broadcastWord("ml", low)
	s.broadcastWord("mh", high)
	if s.lanes == 16 {
		r := GP32()
		MOVL(U32(0xaaaa), r)
		KMOVW(r, reg.K1)
	}
	a, d := param("a"), param("d")
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		x, even, odd, t, q := s.reg[0], s.reg[1], s.reg[2], s.reg[3], s.reg[4]
		VMOVUPS(at(a, 4), x)
		for _, part := range []reg.VecPhysical{even, odd} {
			from := x
			if part == odd {
				VPSRLQ(Imm(32), x, t)
				from = t
			}
			VPMULUDQ(s.reg[low], from, q)
			VPSRLQ(Imm(32), q, q)
			VPMULUDQ(s.reg[high], from, part)
			VPADDQ(q, part, part)
		}
		VPSRLQ(Imm(32), even, even)
		if s.lanes == 16 {
			VMOVDQU32(odd, reg.K1, even)
		} else {
			VPBLENDD(Imm(0xaa), odd, even, even)
		}
		if rem {
			VPMULLD(s.reg[divisor], even, even)
			VPSUBD(even, x, even)
		}
		VMOVUPS(even, at(d, 4))
	})
}

// compareWords is d = a op b, as 0 or 1 in a byte. predicate is VPCMPD's: 0 equal, 1 less, 2 less or equal, 4 not equal,
// 5 not less, 6 not less or equal.
func (s isa) compareWords(name string, f form, predicate uint64, signed bool) {
	s.function(name+string(f), "d *uint8, "+f.operands("uint32"), "d is 1 where a and b compare so, else 0")
	a, d := param("a"), param("d")
	var b reg.GPVirtual
	if f == vv {
		b = param("b")
	} else {
		s.broadcastWord("b", scalar)
	}
	if s.lanes == 8 && !signed { // unsigned numbers compare as signed ones do with the top bit flipped
		s.word(1<<31, constant)
		if f == vs {
			VPXOR(s.reg[constant], s.reg[scalar], s.reg[scalar])
		}
	}
	if s.lanes == 8 {
		s.word(0x01010101, 6)
	}
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		r, t := s.reg[u%2], s.reg[2+u%2]
		VMOVUPS(at(a, 4), r)
		if s.lanes == 16 {
			k := K()
			other := Op(s.reg[scalar])
			if f == vv {
				other = at(b, 4)
			}
			if signed {
				VPCMPD(Imm(predicate), other, r, k)
			} else {
				VPCMPUD(Imm(predicate), other, r, k)
			}
			VPMOVM2B(k, r.AsX())
			VPABSB(r.AsX(), r.AsX())
			VMOVDQU(r.AsX(), at(d, 1))
			return
		}
		other := s.reg[scalar]
		if f == vv {
			other = t
			VMOVUPS(at(b, 4), other)
		}
		if !signed {
			VPXOR(s.reg[constant], r, r)
			if f == vv {
				VPXOR(s.reg[constant], other, other)
			}
		}
		negate := predicate&4 != 0
		switch predicate & 3 {
		case 0:
			VPCMPEQD(other, r, r)
		case 1:
			VPCMPGTD(r, other, r)
		case 2: // not greater
			VPCMPGTD(other, r, r)
			negate = !negate
		}
		VEXTRACTI128(Imm(1), r, s.reg[4+u%2].AsX())
		VPACKSSDW(s.reg[4+u%2].AsX(), r.AsX(), r.AsX())
		VPACKSSWB(r.AsX(), r.AsX(), r.AsX())
		VPABSB(r.AsX(), r.AsX())
		if negate {
			VPXOR(s.reg[6].AsX(), r.AsX(), r.AsX())
		}
		VMOVQ(r.AsX(), at(d, 1))
	})
}

// numbers writes conversions between 32-bit integers, bytes and float32.
func (s isa) numbers() {
	array := func(name, operands, comment string, prepare func(), size int, body func(u int, from, to Mem)) {
		s.function(name, operands, comment)
		prepare()
		a, d := param("a"), param("d")
		s.loop(func(u int, at func(reg.GPVirtual, int) Mem) { body(u, at(a, size), at(d, 4)) })
	}
	none := func() {}
	array("i32ToF32", "d *float32, a *int32", "d is a as float32", none, 4, func(u int, from, to Mem) {
		VCVTDQ2PS(from, s.reg[u])
		VMOVUPS(s.reg[u], to)
	})
	array("u8ToF32", "d *float32, a *uint8", "d is a as float32", none, 1, func(u int, from, to Mem) {
		VPMOVZXBD(from, s.reg[u])
		VCVTDQ2PS(s.reg[u], s.reg[u])
		VMOVUPS(s.reg[u], to)
	})
	array("u8ToU32", "d *uint32, a *uint8", "d is a as uint32", none, 1, func(u int, from, to Mem) {
		VPMOVZXBD(from, s.reg[u])
		VMOVUPS(s.reg[u], to)
	})
	array("f32ToI32", "d *int32, a *float32", "d is a as int32: truncated, saturated, 0 for NaN", func() { s.word(0x4f000000, constant) }, 4,
		func(u int, from, to Mem) {
			x, n, m := s.reg[u%2], s.reg[2+u%2], s.reg[4+u%2]
			VMOVUPS(from, x)
			VCVTTPS2DQ(x, n) // the least integer for all that does not fit
			if s.lanes == 16 {
				k, ordered := K(), K()
				VCMPPS(Imm(0x1d), s.reg[constant], x, k) // 2^31 and more: the greatest
				VPTERNLOGD(Imm(0x55), n, n, k, n)        // not
				VCMPPS(Imm(7), x, x, ordered)
				VMOVDQU32_Z(n, ordered, n)
			} else {
				VCMPPS(Imm(0x1d), s.reg[constant], x, m)
				VPXOR(m, n, n)
				VCMPPS(Imm(7), x, x, m)
				VPAND(m, n, n)
			}
			VMOVUPS(n, to)
		})
}

// integers writes the loops over integers.
func (s isa) integers() {
	for _, f := range []form{vv, vs} {
		s.integer("iadd", f, VPADDD)
		s.integer("imul", f, VPMULLD)
		s.integer("iand", f, VANDPS)
		s.integer("ior", f, VORPS)
		s.integer("ixor", f, VXORPS)
		s.integer("imin", f, VPMINSD)
		s.integer("imax", f, VPMAXSD)
		s.integer("umin", f, VPMINUD)
		s.integer("umax", f, VPMAXUD)
		s.mulHi(f)
		for predicate, name := range compareNames {
			if name != "" {
				s.compareWords("i"+name, f, uint64(predicate), true)
				if name != "eq" && name != "ne" { // which are those of signed numbers
					s.compareWords("u"+name, f, uint64(predicate), false)
				}
			}
		}
	}
	for _, f := range []form{vv, vs, sv} {
		s.integer("isub", f, VPSUBD)
	}
	s.shift("shl", VPSLLD)
	s.shift("shr", VPSRLD)
	s.shift("sar", VPSRAD)
	s.divide(false)
	s.divide(true)
	s.numbers()
}

// compareNames are the names of VPCMPD's predicates.
var compareNames = []string{0: "eq", 1: "lt", 2: "le", 4: "ne", 5: "ge", 6: "gt"}
