package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// allDots emits the kernels of dot products, which have files of their own.
func (s isa) allDots() {
	for rows := 1; rows <= s.dot; rows++ {
		for columns := 1; columns <= 4; columns++ {
			s.dots(rows, columns)
		}
	}
	for columns := 1; columns <= 4; columns++ {
		s.preciseDots(columns)
	}
}

// dots computes dot products of rows of A with rows of B (columns of the result), both contiguous along k: each has a
// vector of partial sums, which are added at the end.
func (s isa) dots(rows, columns int) {
	name := fmt.Sprintf("dot%sx%dx%d", s.name, rows, columns)
	function(name, "func(a *float32, aRow uintptr, b *float32, bRow, k uintptr, mask *int32, out *float32)",
		fmt.Sprintf("%s computes %d by %d dot products.", name, rows, columns))
	acc := func(r, c int) reg.VecPhysical { return s.reg[len(s.reg)-1-r*columns-c] }
	a, b, k := param("a"), param("b"), param("k")
	aRows := rowMultiples(param("aRow"), rows)
	bRows := rowMultiples(param("bRow"), columns)
	for r := range rows {
		for c := range columns {
			VXORPS(acc(r, c).AsY(), acc(r, c).AsY(), acc(r, c).AsY())
		}
	}
	x := s.reg[columns]
	step := func(load func(m Mem, to reg.VecPhysical)) {
		for c := range columns {
			load(rowAddress(b, bRows, c), s.reg[c])
		}
		for r := range rows {
			load(rowAddress(a, aRows, r), x)
			for c := range columns {
				VFMADD231PS(s.reg[c], x, acc(r, c))
			}
		}
	}
	SUBQ(Imm(uint64(s.lanes)), k)
	JCS(LabelRef("rest"))
	Label("loop")
	step(func(m Mem, to reg.VecPhysical) { VMOVUPS(m, to) })
	ADDQ(Imm(uint64(s.vecBytes())), a)
	ADDQ(Imm(uint64(s.vecBytes())), b)
	SUBQ(Imm(uint64(s.lanes)), k)
	JCC(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(s.lanes)), k)
	JEQ(LabelRef("sum"))
	mask := param("mask")
	if s.lanes == 16 {
		m := K()
		VMOVDQU32(Mem{Base: mask}, s.reg[0])
		VPMOVD2M(s.reg[0], m)
		step(func(from Mem, to reg.VecPhysical) { VMOVUPS_Z(from, m, to) })
	} else {
		m := s.reg[columns+1]
		VMOVDQU(Mem{Base: mask}, m)
		step(func(from Mem, to reg.VecPhysical) { VMASKMOVPS(from, m, to) })
	}

	Label("sum")
	out := param("out")
	for r := range rows {
		for c := range 4 {
			to := s.reg[c]
			if c >= columns {
				VXORPS(to.AsX(), to.AsX(), to.AsX())
				continue
			}
			from, tmp := acc(r, c), s.reg[4]
			if s.lanes == 16 {
				VEXTRACTF64X4(Imm(1), from, to.AsY())
				VADDPS(from.AsY(), to.AsY(), to.AsY())
			} else {
				VMOVAPS(from, to)
			}
			VEXTRACTF128(Imm(1), to.AsY(), tmp.AsX())
			VADDPS(tmp.AsX(), to.AsX(), to.AsX())
		}
		x := func(i int) reg.Register { return s.reg[i].AsX() }
		VHADDPS(x(1), x(0), x(0))
		VHADDPS(x(3), x(2), x(2))
		VHADDPS(x(2), x(0), x(0))
		VMOVUPS(x(0), Mem{Base: out, Disp: 16 * r})
	}
	VZEROUPPER()
	RET()
}

// preciseDots is dots of one row, summed in float64: a vector has half as many values, and out is of float64.
func (s isa) preciseDots(columns int) {
	name := fmt.Sprintf("preciseDot%sx%d", s.name, columns)
	function(name, "func(a *float32, aRow uintptr, b *float32, bRow, k uintptr, mask *int32, out *float32)",
		fmt.Sprintf("%s computes 1 by %d dot products.", name, columns))
	lanes := s.lanes / 2
	acc := func(c int) reg.VecPhysical { return s.reg[len(s.reg)-1-c] }
	half := func(r reg.VecPhysical) reg.Register { // of float32 values
		if s.lanes == 16 {
			return r.AsY()
		}
		return r.AsX()
	}
	a, b, k := param("a"), param("b"), param("k")
	bRows := rowMultiples(param("bRow"), columns)
	for c := range columns {
		VXORPS(acc(c).AsY(), acc(c).AsY(), acc(c).AsY())
	}
	x := s.reg[columns]
	step := func(load func(m Mem, to reg.VecPhysical)) {
		load(Mem{Base: a}, x)
		for c := range columns {
			load(rowAddress(b, bRows, c), s.reg[c])
			VFMADD231PD(s.reg[c], x, acc(c))
		}
	}
	SUBQ(Imm(uint64(lanes)), k)
	JCS(LabelRef("rest"))
	Label("loop")
	step(func(m Mem, to reg.VecPhysical) { VCVTPS2PD(m, to) })
	ADDQ(Imm(uint64(4*lanes)), a)
	ADDQ(Imm(uint64(4*lanes)), b)
	SUBQ(Imm(uint64(lanes)), k)
	JCC(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(lanes)), k)
	JEQ(LabelRef("sum"))
	mask := param("mask")
	m := s.reg[columns+1]
	if s.lanes == 16 {
		VMOVDQU(Mem{Base: mask}, m.AsY())
		kmask := K()
		VPMOVD2M(m.AsY(), kmask)
		step(func(from Mem, to reg.VecPhysical) { VCVTPS2PD_Z(from, kmask, to) })
	} else {
		VMOVDQU(Mem{Base: mask}, m.AsX())
		step(func(from Mem, to reg.VecPhysical) {
			VMASKMOVPS(from, m.AsX(), to.AsX())
			VCVTPS2PD(half(to), to)
		})
	}

	Label("sum")
	out := param("out")
	for c := range columns {
		from, to, tmp := acc(c), s.reg[0], s.reg[1]
		if s.lanes == 16 {
			VEXTRACTF64X4(Imm(1), from, to.AsY())
			VADDPD(from.AsY(), to.AsY(), to.AsY())
		} else {
			VMOVAPS(from, to)
		}
		VEXTRACTF128(Imm(1), to.AsY(), tmp.AsX())
		VADDPD(tmp.AsX(), to.AsX(), to.AsX())
		VHADDPD(to.AsX(), to.AsX(), to.AsX())
		VMOVSD(to.AsX(), Mem{Base: out, Disp: 8 * c})
	}
	VZEROUPPER()
	RET()
}
