package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kind is a type of element in memory, with its loads as float32.
type kind struct {
	name   string
	size   int
	vector func(m Mem, to reg.VecPhysical)        // eight elements
	single func(m Mem, tmp reg.GPVirtual, to Mem) // one, to memory
}

var kinds = []kind{
	{"F32", 4, func(m Mem, to reg.VecPhysical) { VMOVUPS(m, to) }, func(m Mem, tmp reg.GPVirtual, to Mem) {
		MOVL(m, tmp.As32())
		MOVL(tmp.As32(), to)
	}},
	{"F16", 2, func(m Mem, to reg.VecPhysical) { VCVTPH2PS(m, to) }, func(m Mem, tmp reg.GPVirtual, to Mem) {
		MOVWLZX(m, tmp.As32())
		VMOVD(tmp.As32(), reg.X15)
		VCVTPH2PS(reg.X15, reg.X15)
		VMOVSS(reg.X15, to)
	}},
	{"BF16", 2, func(m Mem, to reg.VecPhysical) {
		VPMOVZXWD(m, to)
		VPSLLD(Imm(16), to, to)
	}, func(m Mem, tmp reg.GPVirtual, to Mem) {
		MOVWLZX(m, tmp.As32())
		SHLL(Imm(16), tmp.As32())
		MOVL(tmp.As32(), to)
	}},
}

// packRows copies rows.
func (k kind) packRows() {
	name := "packRows" + k.name
	function(name, "func(dst *float32, dstStep uintptr, src *byte, srcStep, rows, width uintptr)",
		fmt.Sprintf("%s converts rows of width elements to float32; the steps are in bytes.", name))
	dst, dstStep, src, srcStep, rows, width := param("dst"), param("dstStep"), param("src"), param("srcStep"), param("rows"), param("width")
	TESTQ(rows, rows)
	JEQ(LabelRef("end"))
	CMPQ(width, Imm(32))
	JNE(LabelRef("row"))

	Label("row32")
	for i := range 4 {
		k.vector(Mem{Base: src, Disp: 8 * i * k.size}, avx2.reg[i])
	}
	for i := range 4 {
		VMOVUPS(avx2.reg[i], Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(srcStep, src)
	ADDQ(dstStep, dst)
	DECQ(rows)
	JNE(LabelRef("row32"))
	JMP(LabelRef("end"))

	Label("row")
	s, d, n, tmp := GP64(), GP64(), GP64(), GP64()
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(width, n)
	SUBQ(Imm(8), n)
	JCS(LabelRef("rest"))
	Label("eight")
	k.vector(Mem{Base: s}, reg.Y0)
	VMOVUPS(reg.Y0, Mem{Base: d})
	ADDQ(Imm(uint64(8*k.size)), s)
	ADDQ(Imm(32), d)
	SUBQ(Imm(8), n)
	JCC(LabelRef("eight"))
	Label("rest")
	ADDQ(Imm(8), n)
	JEQ(LabelRef("next"))
	Label("single")
	k.single(Mem{Base: s}, tmp, Mem{Base: d})
	ADDQ(Imm(uint64(k.size)), s)
	ADDQ(Imm(4), d)
	DECQ(n)
	JNE(LabelRef("single"))
	Label("next")
	ADDQ(srcStep, src)
	ADDQ(dstStep, dst)
	DECQ(rows)
	JNE(LabelRef("row"))
	Label("end")
	VZEROUPPER()
	RET()
}

// transpose writes eight rows as columns.
func (k kind) transpose() {
	name := "transpose" + k.name
	function(name, "func(dst *float32, dstStep uintptr, rows *[8]*byte, n uintptr)",
		fmt.Sprintf("%s writes n elements of eight rows as n groups of eight, dstStep bytes apart, converted to float32.", name))
	dst, dstStep, n, table := param("dst"), param("dstStep"), param("n"), param("rows")
	var row [8]reg.GPVirtual
	for i := range row {
		row[i] = GP64()
		MOVQ(Mem{Base: table, Disp: 8 * i}, row[i])
	}
	SUBQ(Imm(8), n)
	JCS(LabelRef("rest"))
	Label("loop")
	y := avx2.reg
	for i := range 8 {
		k.vector(Mem{Base: row[i]}, y[i])
		ADDQ(Imm(uint64(8*k.size)), row[i])
	}
	for i := 0; i < 8; i += 2 { // pairs of rows
		VUNPCKLPS(y[i+1], y[i], y[8+i])
		VUNPCKHPS(y[i+1], y[i], y[9+i])
	}
	for i := 0; i < 8; i += 4 { // fours of rows; y[i+j] has elements j and j+4
		VSHUFPS(Imm(0x44), y[10+i], y[8+i], y[i])
		VSHUFPS(Imm(0xee), y[10+i], y[8+i], y[i+1])
		VSHUFPS(Imm(0x44), y[11+i], y[9+i], y[i+2])
		VSHUFPS(Imm(0xee), y[11+i], y[9+i], y[i+3])
	}
	for j := range 4 {
		VPERM2F128(Imm(0x20), y[4+j], y[j], y[8+j])
		VPERM2F128(Imm(0x31), y[4+j], y[j], y[12+j])
	}
	for j := range 8 {
		VMOVUPS(y[8+j], Mem{Base: dst})
		ADDQ(dstStep, dst)
	}
	SUBQ(Imm(8), n)
	JCC(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(8), n)
	JEQ(LabelRef("end"))
	tmp := table // done with
	Label("single")
	for i := range 8 {
		k.single(Mem{Base: row[i]}, tmp, Mem{Base: dst, Disp: 4 * i})
		ADDQ(Imm(uint64(k.size)), row[i])
	}
	ADDQ(dstStep, dst)
	DECQ(n)
	JNE(LabelRef("single"))
	Label("end")
	VZEROUPPER()
	RET()
}
