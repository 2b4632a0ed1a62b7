package main

import (
	"fmt"
	"os"
	"strings"
)

// The kernels for arm64 are written as text: avo knows only amd64. A tile has up to eight rows of eight columns, two vectors;
// V16 to V31 are its sums. Go's assembler has a vector's fused multiply-add, but none by an element and no sum of
// vectors: the first is encoded here, and sums are products with one.

const arm64Rows = 8

type arm64 struct{ strings.Builder }

func (a *arm64) f(format string, args ...any) {
	if !strings.HasSuffix(format, ":") {
		format = "\t" + format
	}
	fmt.Fprintf(&a.Builder, format+"\n", args...)
}

// acc returns the registers of a row's sums.
func (a *arm64) acc(row int) (int, int) { return 16 + 2*row, 17 + 2*row }

// fmlaElement adds vector n times element i of vector m to vector d.
func (a *arm64) fmlaElement(d, n, m, i int) {
	word := 0x4f801000 | i&1<<21 | m&16<<16 | m&15<<16 | i>>1<<11 | n<<5 | d
	a.f("WORD $0x%08x // FMLA V%d.S[%d], V%d.S4, V%d.S4", word, m, i, n, d)
}

func (a *arm64) begin(name, signature, comment string, stubs *strings.Builder) {
	fmt.Fprintf(&a.Builder, "\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $256-96\n", name, signature, name)
	fmt.Fprintf(stubs, "\n// %s\n//\n//go:noescape\nfunc %s%s\n", comment, name, signature)
}

func (a *arm64) clear(rows int) {
	for r := range rows {
		x, y := a.acc(r)
		a.f("VEOR V%d.B16, V%d.B16, V%d.B16", x, x, x)
		a.f("VEOR V%d.B16, V%d.B16, V%d.B16", y, y, y)
	}
}

// step multiplies the values at R4 and the registers after it, which move on by R2 bytes, by the vectors at R3.
func (a *arm64) step(rows int) {
	a.f("VLD1 (R3), [V0.S4, V1.S4]")
	a.f("ADD R12, R3")
	for r := range rows {
		x, y := a.acc(r)
		a.f("VLD1R.P (R%d)(R2), [V%d.S4]", 4+r, 2+r)
		a.f("VFMLA V0.S4, V%d.S4, V%d.S4", 2+r, x)
		a.f("VFMLA V1.S4, V%d.S4, V%d.S4", 2+r, y)
	}
}

// finish stores the tile as tileFunc says.
func (a *arm64) finish(rows int) {
	a.f("MOVD c+48(FP), R0")
	a.f("MOVD cRow+56(FP), R1")
	a.f("MOVD mask+64(FP), R2")
	a.f("MOVD add+72(FP), R3")
	a.f("MOVD bias+80(FP), R4")
	a.f("MOVD rowBias+88(FP), R5")
	a.f("CBNZ R2, edge")
	a.f("FMOVS $1.0, F2")
	a.f("VDUP V2.S[0], V2.S4")
	sum := func(load func(r int), each string) {
		a.f("%s", each)
		for r := range rows {
			x, y := a.acc(r)
			load(r)
			a.f("VFMLA V0.S4, V2.S4, V%d.S4", x)
			a.f("VFMLA V1.S4, V2.S4, V%d.S4", y)
		}
	}
	a.f("CBZ R3, fresh")
	sum(func(int) {
		a.f("VLD1 (R6), [V0.S4, V1.S4]")
		a.f("ADD R1, R6")
	}, "MOVD R0, R6")
	a.f("fresh:")
	a.f("CBZ R4, rows")
	sum(func(int) {}, "VLD1 (R4), [V0.S4, V1.S4]")
	a.f("rows:")
	a.f("CBZ R5, store")
	a.f("MOVD $4, R6")
	sum(func(int) {
		a.f("VLD1R.P (R5)(R6), [V0.S4]")
		a.f("VMOV V0.B16, V1.B16")
	}, "NOP")
	a.f("store:")
	for r := range rows {
		x, y := a.acc(r)
		a.f("VST1 [V%d.S4, V%d.S4], (R0)", x, y)
		a.f("ADD R1, R0")
	}
	a.f("RET")

	// Some columns: by way of the stack, value by value.
	a.f("edge:")
	a.f("MOVD $sums-256(SP), R6")
	a.f("MOVD R6, R7")
	for r := range rows {
		x, y := a.acc(r)
		a.f("VST1.P [V%d.S4, V%d.S4], 32(R7)", x, y)
	}
	a.f("MOVD $%d, R8", rows)
	a.f("edgeRow:")
	a.f("MOVD R2, R9") // masks
	a.f("MOVD R6, R10")
	a.f("MOVD R0, R11")
	a.f("MOVD R4, R12")
	a.f("MOVD $8, R14")
	a.f("edgeColumn:")
	a.f("MOVW.P 4(R9), R13")
	a.f("CBZ R13, edgeNext")
	a.f("FMOVS.P 4(R10), F0")
	a.f("CBZ R3, edgeFresh")
	a.f("FMOVS (R11), F1")
	a.f("FADDS F1, F0, F0")
	a.f("edgeFresh:")
	a.f("CBZ R4, edgeBias")
	a.f("FMOVS.P 4(R12), F1")
	a.f("FADDS F1, F0, F0")
	a.f("edgeBias:")
	a.f("CBZ R5, edgeStore")
	a.f("FMOVS (R5), F1")
	a.f("FADDS F1, F0, F0")
	a.f("edgeStore:")
	a.f("FMOVS.P F0, 4(R11)")
	a.f("SUB $1, R14")
	a.f("CBNZ R14, edgeColumn")
	a.f("edgeNext:")
	a.f("ADD $32, R6")
	a.f("ADD R1, R0")
	a.f("CBZ R5, edgeSame")
	a.f("ADD $4, R5")
	a.f("edgeSame:")
	a.f("SUB $1, R8")
	a.f("CBNZ R8, edgeRow")
	a.f("RET")
}

func (a *arm64) tile(rows int, stubs *strings.Builder) {
	name := fmt.Sprintf("tileNEONx%d", rows)
	a.begin(name, "(a *float32, aRow, aCol uintptr, b *float32, bStep, k uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32)",
		fmt.Sprintf("%s computes %d rows of 8 columns.", name, rows), stubs)
	a.f("MOVD a+0(FP), R4")
	a.f("MOVD aRow+8(FP), R1")
	a.f("MOVD aCol+16(FP), R2")
	a.f("MOVD b+24(FP), R3")
	a.f("MOVD bStep+32(FP), R12")
	a.f("MOVD k+40(FP), R13")
	a.clear(rows)
	a.f("CBZ R13, sum")
	a.f("CMP $4, R1")
	a.f("BNE apart")
	a.f("CMP $32, R2")
	a.f("BNE apart")
	// A packed panel: its values are elements of two vectors.
	a.f("packed:")
	a.f("VLD1 (R3), [V0.S4, V1.S4]")
	a.f("ADD R12, R3")
	a.f("VLD1.P 32(R4), [V2.S4, V3.S4]")
	for r := range rows {
		x, y := a.acc(r)
		a.fmlaElement(x, 0, 2+r/4, r%4)
		a.fmlaElement(y, 1, 2+r/4, r%4)
	}
	a.f("SUB $1, R13")
	a.f("CBNZ R13, packed")
	a.f("B sum")
	a.f("apart:")
	for r := 1; r < rows; r++ {
		a.f("ADD R1, R%d, R%d", 3+r, 4+r)
	}
	a.f("loop:")
	a.step(rows)
	a.f("SUB $1, R13")
	a.f("CBNZ R13, loop")
	a.f("sum:")
	a.finish(rows)
}

func (a *arm64) runs(rows int, stubs *strings.Builder) {
	name := fmt.Sprintf("runsNEONx%d", rows)
	a.begin(name, "(rows *[8]*float32, k, runs, skip uintptr, b *float32, bStep uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32)",
		fmt.Sprintf("%s computes %d rows of 8 columns; each row of A is runs of k values, at least one.", name, rows), stubs)
	a.f("MOVD rows+0(FP), R0")
	for r := range rows {
		a.f("MOVD %d(R0), R%d", 8*r, 4+r)
	}
	a.f("MOVD k+8(FP), R0")
	a.f("MOVD runs+16(FP), R14")
	a.f("MOVD skip+24(FP), R15")
	a.f("MOVD b+32(FP), R3")
	a.f("MOVD bStep+40(FP), R12")
	a.f("MOVD $4, R2")
	a.clear(rows)
	a.f("run:")
	a.f("MOVD R0, R13")
	a.f("loop:")
	a.step(rows)
	a.f("SUB $1, R13")
	a.f("CBNZ R13, loop")
	for r := range rows {
		a.f("ADD R15, R%d", 4+r)
	}
	a.f("SUB $1, R14")
	a.f("CBNZ R14, run")
	a.finish(rows)
}

// writeARM64 writes the kernels and their declarations.
func writeARM64(asm, stubs string) error {
	const head = "// Code generated by command: go run . arm64 %s %s. DO NOT EDIT.\n\n"
	var a arm64
	var s strings.Builder
	fmt.Fprintf(&a.Builder, head+"#include \"textflag.h\"\n", asm, stubs)
	fmt.Fprintf(&s, head+"package gemm\n", asm, stubs)
	for rows := 1; rows <= arm64Rows; rows++ {
		a.tile(rows, &s)
		a.runs(rows, &s)
	}
	if err := os.WriteFile(asm, []byte(a.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(stubs, []byte(s.String()), 0o644)
}
