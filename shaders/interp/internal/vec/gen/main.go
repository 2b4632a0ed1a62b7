// Command gen writes the assembly loops of package vec. It is a module of its own, so that the library does not depend
// on avo. Run it by go generate in the directory of package vec.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/anygpu/anygpu/shaders/vmath"
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector instruction set.
type isa struct {
	name  string
	lanes int // float32 values in a vector
	reg   []reg.VecPhysical
}

var sets = []isa{
	{"AVX512", 16, []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8}},
	{"AVX2", 8, []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8}},
}

// The scalar of an operation, and a register of constants.
const scalar, constant = 8, 7

func (s isa) function(name, operands, comment string) {
	TEXT(name+s.name, attr.NOSPLIT, "func("+operands+", n uintptr)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s%s computes n elements, a multiple of %d: %s.", name, s.name, s.lanes, comment))
}

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// broadcast loads the scalar parameter.
func (s isa) broadcast(name string) {
	Load(Param(name), reg.X0)
	VBROADCASTSS(reg.X0, s.reg[scalar])
}

// loop calls body for vector after vector, four in a round. at gives the address of the vector in an array of elements
// of the given size, and u counts the vectors of a round.
func (s isa) loop(body func(u int, at func(base reg.GPVirtual, size int) Mem)) {
	const unroll = 4
	n := param("n")
	i := GP64()
	XORQ(i, i)
	step := func(u int) {
		body(u, func(base reg.GPVirtual, size int) Mem {
			return Mem{Base: base, Index: i, Scale: uint8(size), Disp: u * s.lanes * size}
		})
	}
	SUBQ(Imm(uint64(unroll*s.lanes)), n)
	JCS(LabelRef("rest"))
	Label("loop")
	for u := range unroll {
		step(u)
	}
	ADDQ(Imm(uint64(unroll*s.lanes)), i)
	SUBQ(Imm(uint64(unroll*s.lanes)), n)
	JCC(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(unroll*s.lanes)), n)
	JEQ(LabelRef("end"))
	Label("single")
	step(0)
	ADDQ(Imm(uint64(s.lanes)), i)
	SUBQ(Imm(uint64(s.lanes)), n)
	JNE(LabelRef("single"))
	Label("end")
	VZEROUPPER()
	RET()
}

// form says which operands of an operation are arrays and which are scalars.
type form string

const (
	vv form = "VV"
	vs form = "VS"
	sv form = "SV"
)

func (f form) operands(kind string) string {
	return map[form]string{
		vv: "a, b *" + kind, vs: "a *" + kind + ", b " + kind, sv: "a " + kind + ", b *" + kind,
	}[f]
}

// arith is d = a op b. first says that the instruction's first source is b, which matters for the minimum and the
// maximum: they return their second source for NaN.
func (s isa) arith(name string, f form, firstB bool, op func(...Op)) {
	s.function(name+string(f), "d *float32, "+f.operands("float32"), "d = "+name+"(a, b)")
	var a, b, d reg.GPVirtual
	switch f {
	case vv:
		a, b = param("a"), param("b")
	case vs:
		a = param("a")
		s.broadcast("b")
	case sv:
		b = param("b")
		s.broadcast("a")
	}
	d = param("d")
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		first, second := a, b
		scalarFirst, scalarSecond := f == sv, f == vs
		if firstB {
			first, second, scalarFirst, scalarSecond = b, a, scalarSecond, scalarFirst
		}
		r := s.reg[u]
		switch {
		case scalarFirst:
			op(at(second, 4), s.reg[scalar], r)
		case scalarSecond:
			VMOVUPS(at(first, 4), r)
			op(s.reg[scalar], r, r)
		default:
			VMOVUPS(at(first, 4), r)
			op(at(second, 4), r, r)
		}
		VMOVUPS(r, at(d, 4))
	})
}

// compare is d = a op b, as 0 or 1 in a byte.
func (s isa) compare(name string, f form, predicate uint64) {
	s.function(name+string(f), "d *uint8, "+f.operands("float32"), "d is 1 where a and b compare so, else 0")
	a, d := param("a"), param("d")
	var b reg.GPVirtual
	if f == vv {
		b = param("b")
	} else {
		s.broadcast("b")
	}
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		r, other := s.reg[u], Op(s.reg[scalar])
		if f == vv {
			other = at(b, 4)
		}
		VMOVUPS(at(a, 4), r)
		if s.lanes == 16 {
			k := K()
			VCMPPS(Imm(predicate), other, r, k)
			VPMOVM2B(k, r.AsX())
			VPABSB(r.AsX(), r.AsX())
			VMOVDQU(r.AsX(), at(d, 1))
			return
		}
		VCMPPS(Imm(predicate), other, r, r)
		VEXTRACTF128(Imm(1), r, s.reg[4+u%3].AsX())
		VPACKSSDW(s.reg[4+u%3].AsX(), r.AsX(), r.AsX())
		VPACKSSWB(r.AsX(), r.AsX(), r.AsX())
		VPABSB(r.AsX(), r.AsX())
		VMOVQ(r.AsX(), at(d, 1))
	})
}

// choose is d = a where c is not 0, else b.
func (s isa) choose(f form) {
	s.function("select"+string(f), "d *float32, c *uint8, "+f.operands("float32"), "d is a where c is not 0, else b")
	c, d := param("c"), param("d")
	var a, b reg.GPVirtual
	switch f {
	case vv:
		a, b = param("a"), param("b")
	case vs:
		a = param("a")
		s.broadcast("b")
	case sv:
		b = param("b")
		s.broadcast("a")
	}
	VXORPS(s.reg[constant].AsY(), s.reg[constant].AsY(), s.reg[constant].AsY())
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		r, cond := s.reg[u%3], s.reg[3+u%3]
		VPMOVZXBD(at(c, 1), cond)
		if s.lanes == 16 {
			k := K()
			VPTESTMD(cond, cond, k)
			switch f {
			case vv:
				VMOVUPS(at(b, 4), r)
				VMOVUPS(at(a, 4), k, r)
			case vs:
				VMOVAPS(s.reg[scalar], r)
				VMOVUPS(at(a, 4), k, r)
			case sv:
				VMOVUPS(at(b, 4), r)
				VMOVAPS(s.reg[scalar], k, r)
			}
		} else {
			VPCMPEQD(s.reg[constant], cond, cond) // where b is to be
			switch f {
			case vv:
				VMOVUPS(at(a, 4), r)
				VBLENDVPS(cond, at(b, 4), r, r)
			case vs:
				VMOVUPS(at(a, 4), r)
				VBLENDVPS(cond, s.reg[scalar], r, r)
			case sv:
				VBLENDVPS(cond, at(b, 4), s.reg[scalar], r)
			}
		}
		VMOVUPS(r, at(d, 4))
	})
}

// fma is d = a*b + c, with two roundings.
func (s isa) fma() {
	s.function("fmaVVV", "d, a, b, c *float32", "d = a*b + c, the product rounded")
	a, b, c, d := param("a"), param("b"), param("c"), param("d")
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		r := s.reg[u]
		VMOVUPS(at(a, 4), r)
		VMULPS(at(b, 4), r, r)
		VADDPS(at(c, 4), r, r)
		VMOVUPS(r, at(d, 4))
	})
}

// unary is d = op a.
func (s isa) unary(name string, prepare func(), op func(from Mem, to reg.VecPhysical)) {
	s.function(name, "d, a *float32", "d = "+name+" a")
	prepare()
	a, d := param("a"), param("d")
	s.loop(func(u int, at func(reg.GPVirtual, int) Mem) {
		op(at(a, 4), s.reg[u])
		VMOVUPS(s.reg[u], at(d, 4))
	})
}

// half holds the vector registers' parts that conversions to and from 16 bits need: half of a vector.
func (s isa) half(i int) reg.Register {
	if s.lanes == 16 {
		return s.reg[i].AsY()
	}
	return s.reg[i].AsX()
}

// narrow stores the low 16 bits of the lanes of a register.
func (s isa) narrow(r int, to Mem) {
	if s.lanes == 16 {
		VPMOVDW(s.reg[r], to)
		return
	}
	VEXTRACTI128(Imm(1), s.reg[r], reg.X6)
	VPACKUSDW(reg.X6, s.reg[r].AsX(), s.reg[r].AsX())
	VMOVDQU(s.reg[r].AsX(), to)
}

// convert writes the conversions from and to kinds of 16 bits.
func (s isa) convert() {
	array := func(name, operands, comment string, prepare func(), body func(u int, from, to Mem), fromSize, toSize int) {
		s.function(name, operands, comment)
		prepare()
		a, d := param("a"), param("d")
		s.loop(func(u int, at func(reg.GPVirtual, int) Mem) { body(u, at(a, fromSize), at(d, toSize)) })
	}
	none := func() {}
	array("fromF16", "d *float32, a *uint16", "d is a, float16, as float32", none, func(u int, from, to Mem) {
		VCVTPH2PS(from, s.reg[u])
		VMOVUPS(s.reg[u], to)
	}, 2, 4)
	array("toF16", "d *uint16, a *float32", "d is a as float16, rounded to nearest even", none, func(u int, from, to Mem) {
		VMOVUPS(from, s.reg[u])
		VCVTPS2PH(Imm(0), s.reg[u], s.half(u))
		VMOVUPS(s.half(u), to)
	}, 4, 2)
	array("fromBF16", "d *float32, a *uint16", "d is a, bfloat16, as float32", none, func(u int, from, to Mem) {
		VPMOVZXWD(from, s.reg[u])
		VPSLLD(Imm(16), s.reg[u], s.reg[u])
		VMOVUPS(s.reg[u], to)
	}, 2, 4)
	array("toBF16", "d *uint16, a *float32", "d is a as bfloat16, rounded to nearest even", func() {
		s.word(0x7fff, constant)
		s.word(1, scalar)
		s.word(0x40, 5)
	}, func(_ int, from, to Mem) {
		x, rounded, quiet := s.reg[0], s.reg[1], s.reg[2]
		VMOVUPS(from, x)
		VPSRLD(Imm(16), x, quiet)
		if s.lanes == 16 {
			VPANDD(s.reg[scalar], quiet, rounded)
		} else {
			VPAND(s.reg[scalar], quiet, rounded)
		}
		VPADDD(x, rounded, rounded)
		VPADDD(s.reg[constant], rounded, rounded)
		VPSRLD(Imm(16), rounded, rounded)
		if s.lanes == 16 { // NaN: a quiet one with what is left of its bits
			k := K()
			VCMPPS(Imm(3), x, x, k)
			VPORD(s.reg[5], quiet, k, rounded)
		} else {
			VPOR(s.reg[5], quiet, quiet)
			VCMPPS(Imm(3), x, x, x)
			VBLENDVPS(x, quiet, rounded, rounded)
		}
		s.narrow(1, to)
	}, 4, 2)
}

// word sets all lanes of a register.
func (s isa) word(word uint32, to int) {
	r := GP32()
	MOVL(U32(word), r)
	VMOVD(r, s.reg[to].AsX())
	VBROADCASTSS(s.reg[to].AsX(), s.reg[to])
}

func f32bits(v float32) uint32 { return math.Float32bits(v) }

func main() {
	what := flag.String("loops", "arith", "the loops to write: arith, integer, or math with the plain Go functions in -go")
	plain := flag.String("go", "", "the file for the plain Go functions")
	flag.Parse()
	ConstraintExpr("amd64")
	switch *what {
	case "arith":
		arithmetic()
	case "integer":
		for _, s := range sets {
			s.integers()
			for _, size := range []int{16, 32, 64} {
				s.rows(size)
			}
			s.splat()
		}
	case "math":
		if err := writeGo(*plain); err != nil {
			log.Fatal(err)
		}
		p := newPool()
		for _, s := range sets {
			for _, op := range vmath.Ops() {
				s.math(p, vmath.Of(op))
			}
		}
	}
	Generate()
}

// arithmetic writes the loops of single operations.
func arithmetic() {
	for _, s := range sets {
		for _, f := range []form{vv, vs} {
			s.arith("add", f, false, VADDPS)
			s.arith("mul", f, false, VMULPS)
			for _, c := range []struct {
				name      string
				predicate uint64
			}{{"eq", 0x00}, {"ne", 0x04}, {"lt", 0x11}, {"le", 0x12}, {"gt", 0x1e}, {"ge", 0x1d}} {
				s.compare(c.name, f, c.predicate)
			}
		}
		for _, f := range []form{vv, vs, sv} {
			s.arith("sub", f, false, VSUBPS)
			s.arith("div", f, false, VDIVPS)
			s.arith("min", f, true, VMINPS)
			s.arith("max", f, true, VMAXPS)
			s.choose(f)
		}
		s.fma()
		s.convert()
		for mode, name := range []string{"round", "floor", "ceil", "trunc"} { // the numbers are the instruction's
			s.unary(name, func() {}, func(from Mem, to reg.VecPhysical) {
				if s.lanes == 16 {
					VRNDSCALEPS(Imm(uint64(mode)), from, to)
				} else {
					VROUNDPS(Imm(uint64(mode)), from, to)
				}
			})
		}
		s.unary("neg", func() { s.word(1<<31, constant) }, func(from Mem, to reg.VecPhysical) { VXORPS(from, s.reg[constant], to) })
		s.unary("abs", func() { s.word(1<<31-1, constant) }, func(from Mem, to reg.VecPhysical) { VANDPS(from, s.reg[constant], to) })
	}
}
