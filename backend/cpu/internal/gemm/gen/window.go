package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// windowRuns copies what a run of neighbouring windows takes from an image to a packed panel: for each channel and each
// element of the kernel (tap), up to 32 values side by side.
func windowRuns() {
	function("packRunAVX512", "func(dst *float32, dstStep uintptr, src *float32, taps *uintptr, ntaps, channel, channels uintptr, mask *int32)",
		"packRunAVX512 copies up to 32 values from each tap of each channel; steps, taps and the size of a channel are in bytes.")
	dst, dstStep, src, taps, ntaps, channel, channels, mask := param("dst"), param("dstStep"), param("src"), param("taps"), param("ntaps"), param("channel"), param("channels"), param("mask")
	low, high := K(), K()
	VMOVDQU32(Mem{Base: mask}, reg.Z0)
	VPMOVD2M(reg.Z0, low)
	VMOVDQU32(Mem{Base: mask, Disp: 64}, reg.Z0)
	VPMOVD2M(reg.Z0, high)
	t, n, at := GP64(), GP64(), GP64()
	KTESTW(high, high)
	JNE(LabelRef("channel2"))
	for _, vecs := range []int{1, 2} {
		suffix := string(rune('0' + vecs))
		Label("channel" + suffix)
		MOVQ(taps, t)
		MOVQ(ntaps, n)
		Label("tap" + suffix)
		MOVQ(Mem{Base: t}, at)
		VMOVUPS_Z(Mem{Base: src, Index: at, Scale: 1}, low, reg.Z0)
		VMOVUPS(reg.Z0, low, Mem{Base: dst})
		if vecs == 2 {
			VMOVUPS_Z(Mem{Base: src, Index: at, Scale: 1, Disp: 64}, high, reg.Z1)
			VMOVUPS(reg.Z1, high, Mem{Base: dst, Disp: 64})
		}
		ADDQ(Imm(8), t)
		ADDQ(dstStep, dst)
		DECQ(n)
		JNE(LabelRef("tap" + suffix))
		ADDQ(channel, src)
		DECQ(channels)
		JNE(LabelRef("channel" + suffix))
		VZEROUPPER()
		RET()
	}
}

// table writes 16 constants.
func table(name string, f func(i int) int) Mem {
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(f(i))))
	}
	return m
}

// windowMax takes an element of the kernel into the largest values of windows and their places.
func windowMax() {
	function("windowMaxAVX512", "func(best *float32, place *int32, step uintptr, src *float32, srcStep, rows, n, stride, first, placeStep, fresh uintptr)",
		"windowMaxAVX512 takes n elements of each of rows rows into the largest values so far: windows are stride (1 or 2) elements apart, rows step bytes in the result and srcStep in the image. The place of the first element is first, and placeStep more in each further row. With fresh there are no values so far.")
	lanes, even := table("lanes", func(i int) int { return i }), table("even", func(i int) int { return 2 * i })
	places, start, ahead, down, pick := reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4
	v, high, best := reg.Z5, reg.Z6, reg.Z7
	stride, fresh := param("stride"), param("fresh")
	VMOVDQU32(lanes, start)
	VMOVDQU32(even, pick)
	x := param("first")
	VPBROADCASTD(x.As32(), places)
	VPMULLD_BCST(NewParamAddr("stride", 56), start, start)
	VPADDD(places, start, start)
	MOVQ(stride, x)
	SHLQ(Imm(4), x)
	VPBROADCASTD(x.As32(), ahead)
	x = param("placeStep")
	VPBROADCASTD(x.As32(), down)

	toBest, toPlace, src, step := param("best"), param("place"), param("src"), param("step")
	rows, srcStep := param("rows"), param("srcStep")
	b, p, s, n := GP64(), GP64(), GP64(), GP64()
	take, other, here := K(), K(), K()
	lower, upper := K(), K() // of the elements read, with stride 2

	Label("row")
	MOVQ(toBest, b)
	MOVQ(toPlace, p)
	MOVQ(src, s)
	MOVQ(NewParamAddr("n", 48), n)
	VMOVDQA32(start, places)
	Label("vector")
	TESTQ(n, n)
	JEQ(LabelRef("next"))
	// All ones below the number of elements left, and below twice that less one.
	w := reg.RCX
	ones := GP64()
	MOVQ(U32(16), w)
	CMPQ(n, w)
	CMOVQLT(n, w)
	MOVQ(U32(1), ones)
	SHLQ(reg.CL, ones)
	DECQ(ones)
	KMOVW(ones.As32(), here)
	CMPQ(stride, Imm(1))
	JNE(LabelRef("two"))
	VMOVUPS_Z(Mem{Base: s}, here, v)
	ADDQ(Imm(64), s)
	JMP(LabelRef("compare"))
	Label("two")
	LEAQ(Mem{Base: w, Index: w, Scale: 1, Disp: -1}, w)
	MOVQ(U32(1), ones)
	SHLQ(reg.CL, ones)
	DECQ(ones)
	KMOVW(ones.As32(), lower)
	SHRQ(Imm(16), ones)
	KMOVW(ones.As32(), upper)
	VMOVUPS_Z(Mem{Base: s}, lower, v)
	VMOVUPS_Z(Mem{Base: s, Disp: 64}, upper, high)
	VPERMT2PS(high, pick, v)
	ADDQ(Imm(128), s)
	Label("compare")
	TESTQ(fresh, fresh)
	JNE(LabelRef("store"))
	VMOVUPS_Z(Mem{Base: b}, here, best)
	VCMPPS(Imm(0x1e), best, v, take) // greater, not NaN
	VCMPPS(Imm(0x03), v, v, other)   // NaN
	KORW(take, other, take)
	VMOVDQU32_Z(Mem{Base: p}, here, best)
	VPMOVD2M(best, other) // a window without elements so far
	KORW(take, other, take)
	KANDW(take, here, here)
	Label("store")
	VMOVUPS(v, here, Mem{Base: b})
	VMOVDQU32(places, here, Mem{Base: p})
	VPADDD(ahead, places, places)
	ADDQ(Imm(64), b)
	ADDQ(Imm(64), p)
	SUBQ(Imm(16), n)
	JGT(LabelRef("vector"))
	Label("next")
	VPADDD(down, start, start)
	ADDQ(step, toBest)
	ADDQ(step, toPlace)
	ADDQ(srcStep, src)
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}
