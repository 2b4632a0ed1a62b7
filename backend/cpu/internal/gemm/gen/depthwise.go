package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// depthwise sums the products of one channel's taps by their weights for all windows that are neighbours in memory.
func depthwise() {
	const wide = 8
	function("depthwiseAVX512", "func(dst, src *float32, taps *uintptr, ntaps uintptr, weights *float32, weightStep uintptr, bias *float32, vectors uintptr)",
		"depthwiseAVX512 computes vectors of 16 windows: the sums of the values at taps (in bytes), at least one, by weights weightStep bytes apart, and the bias.")
	dst, src, taps, weights, step, vectors := param("dst"), param("src"), param("taps"), param("weights"), param("weightStep"), param("vectors")
	bias := param("bias")
	VBROADCASTSS(Mem{Base: bias}, reg.Z31)
	t, n, w, at := GP64(), GP64(), GP64(), GP64()
	acc := func(v int) reg.VecPhysical { return avx512.reg[v] }
	for _, vecs := range []int{wide, 1} {
		suffix := label("", vecs)
		CMPQ(vectors, Imm(uint64(vecs)))
		JLT(LabelRef("done" + suffix))
		Label("block" + suffix)
		for v := range vecs {
			VXORPS(acc(v).AsY(), acc(v).AsY(), acc(v).AsY())
		}
		MOVQ(taps, t)
		MOVQ(NewParamAddr("ntaps", 24), n)
		MOVQ(weights, w)
		Label("tap" + suffix)
		MOVQ(Mem{Base: t}, at)
		VBROADCASTSS(Mem{Base: w}, reg.Z30)
		for v := range vecs {
			VFMADD231PS(Mem{Base: src, Index: at, Scale: 1, Disp: 64 * v}, reg.Z30, acc(v))
		}
		ADDQ(Imm(8), t)
		ADDQ(step, w)
		DECQ(n)
		JNE(LabelRef("tap" + suffix))
		for v := range vecs {
			VADDPS(reg.Z31, acc(v), acc(v))
			VMOVUPS(acc(v), Mem{Base: dst, Disp: 64 * v})
		}
		ADDQ(U32(uint32(64*vecs)), dst)
		ADDQ(U32(uint32(64*vecs)), src)
		SUBQ(Imm(uint64(vecs)), vectors)
		CMPQ(vectors, Imm(uint64(vecs)))
		JGE(LabelRef("block" + suffix))
		Label("done" + suffix)
	}
	VZEROUPPER()
	RET()
}

// depthwiseWeight sums, for each tap, the products of what windows take by the grid, lane by lane.
func depthwiseWeight() {
	function("depthwiseWeightAVX512", "func(sums, image *float32, taps *uintptr, ntaps uintptr, grid *float32, rows, length, imageStep, gridStep uintptr)",
		"depthwiseWeightAVX512 adds to 16 sums for each tap (in bytes) the products of rows of length windows with the grid; the steps from row to row are in bytes.")
	sums, image, taps, ntaps, grid, imageStep, gridStep := param("sums"), param("image"), param("taps"), param("ntaps"), param("grid"), param("imageStep"), param("gridStep")
	x, z, n, rows, at := GP64(), GP64(), GP64(), GP64(), GP64()
	xRow, zRow := GP64(), GP64()
	tail := K()
	// The mask of the last vector of a row, which has 1 to 16 values.
	w := reg.RCX
	MOVQ(NewParamAddr("length", 48), w)
	DECQ(w)
	ANDQ(Imm(15), w)
	MOVQ(U32(2), at)
	SHLQ(reg.CL, at)
	DECQ(at)
	KMOVW(at.As32(), tail)
	Label("tap")
	VMOVUPS(Mem{Base: sums}, reg.Z0)
	VXORPS(reg.Y1, reg.Y1, reg.Y1)
	MOVQ(Mem{Base: taps}, at)
	LEAQ(Mem{Base: image, Index: at, Scale: 1}, xRow)
	MOVQ(grid, zRow)
	MOVQ(NewParamAddr("rows", 40), rows)
	Label("row")
	MOVQ(xRow, x)
	MOVQ(zRow, z)
	MOVQ(NewParamAddr("length", 48), n)
	SUBQ(Imm(16), n)
	JLE(LabelRef("last"))
	Label("vector")
	VMOVUPS(Mem{Base: z}, reg.Z2)
	VFMADD231PS(Mem{Base: x}, reg.Z2, reg.Z0)
	ADDQ(Imm(64), x)
	ADDQ(Imm(64), z)
	SUBQ(Imm(16), n)
	JGT(LabelRef("vector"))
	Label("last")
	VMOVUPS_Z(Mem{Base: z}, tail, reg.Z2)
	VMOVUPS_Z(Mem{Base: x}, tail, reg.Z3)
	VFMADD231PS(reg.Z2, reg.Z3, reg.Z1)
	ADDQ(imageStep, xRow)
	ADDQ(gridStep, zRow)
	DECQ(rows)
	JNE(LabelRef("row"))
	VADDPS(reg.Z0, reg.Z1, reg.Z0)
	VMOVUPS(reg.Z0, Mem{Base: sums})
	ADDQ(Imm(64), sums)
	ADDQ(Imm(8), taps)
	DECQ(ntaps)
	JNE(LabelRef("tap"))
	VZEROUPPER()
	RET()
}
