package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows copies rows of a fixed size.
func (s isa) rows(size int) {
	TEXT(fmt.Sprintf("rows%d%s", size, s.name), attr.NOSPLIT, "func(d, a *byte, n, dstep, astep uintptr)")
	Pragma("noescape")
	Doc(fmt.Sprintf("rows%d%s copies n > 0 rows of %d bytes, dstep and astep bytes apart.", size, s.name, size))
	d, a, n, dstep, astep := param("d"), param("a"), param("n"), param("dstep"), param("astep")
	Label("loop")
	if size == 64 { // more rows than the processor follows: the rows go on in the next calls
		PREFETCHT1(Mem{Base: a, Disp: 256})
	}
	for at := 0; at < size; at += 4 * s.lanes {
		r := s.reg[at/(4*s.lanes)]
		var part reg.Register = r
		switch min(size, 4*s.lanes) {
		case 16:
			part = r.AsX()
		case 32:
			part = r.AsY()
		}
		VMOVUPS(Mem{Base: a, Disp: at}, part)
		VMOVUPS(part, Mem{Base: d, Disp: at})
	}
	ADDQ(astep, a)
	ADDQ(dstep, d)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// splat repeats each element of 4 bytes 16 times.
func (s isa) splat() {
	TEXT("splat"+s.name, attr.NOSPLIT, "func(d, a *uint32, n uintptr)")
	Pragma("noescape")
	Doc(fmt.Sprintf("splat%s writes each of n > 0 elements 16 times.", s.name))
	d, a, n := param("d"), param("a"), param("n")
	Label("loop")
	VBROADCASTSS(Mem{Base: a}, s.reg[0])
	for at := 0; at < 64; at += 4 * s.lanes {
		VMOVUPS(s.reg[0], Mem{Base: d, Disp: at})
	}
	ADDQ(Imm(4), a)
	ADDQ(Imm(64), d)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
