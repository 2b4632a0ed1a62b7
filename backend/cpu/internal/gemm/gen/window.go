package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packVectors copies what 16 neighbouring windows take from an image to a packed panel: for each channel and each element of
// the kernel (tap) one vector, whose lanes come from up to four rows of the image.
func packVectors() {
	function("packVectorsAVX512", "func(dst *float32, dstStep uintptr, runs *[8]uintptr, n uintptr, taps *uintptr, ntaps, channel, channels uintptr)",
		"packVectorsAVX512 gathers a vector from n runs, at least one, each an address and a mask, for each tap of each channel; steps, taps and the size of a channel are in bytes.")
	dst, dstStep, runs, taps, ntaps, channel, channels := param("dst"), param("dstStep"), param("runs"), param("taps"), param("ntaps"), param("channel"), param("channels")
	var src [4]reg.GPVirtual
	var mask [4]reg.Register
	for i := range src {
		src[i], mask[i] = GP64(), K()
		MOVQ(Mem{Base: runs, Disp: 16 * i}, src[i])
		KMOVW(Mem{Base: runs, Disp: 16*i + 8}, mask[i])
	}
	n := runs // done with
	MOVQ(NewParamAddr("n", 24), n)
	for i := 1; i < len(src); i++ {
		CMPQ(n, Imm(uint64(i)))
		JEQ(LabelRef(label("channel", i)))
	}
	t, left, at := n, GP64(), GP64()
	for i := len(src); i > 0; i-- {
		Label(label("channel", i))
		MOVQ(taps, t)
		MOVQ(ntaps, left)
		Label(label("tap", i))
		MOVQ(Mem{Base: t}, at)
		ADDQ(Imm(8), t)
		VMOVUPS_Z(Mem{Base: src[0], Index: at, Scale: 1}, mask[0], reg.Z0)
		for j := 1; j < i; j++ {
			VMOVUPS(Mem{Base: src[j], Index: at, Scale: 1}, mask[j], reg.Z0)
		}
		VMOVUPS(reg.Z0, Mem{Base: dst})
		ADDQ(dstStep, dst)
		DECQ(left)
		JNE(LabelRef(label("tap", i)))
		for j := range i {
			ADDQ(channel, src[j])
		}
		DECQ(channels)
		JNE(LabelRef(label("channel", i)))
		VZEROUPPER()
		RET()
	}
}

// packPairs is packVectors for 32 windows, each vector of which has at most two runs.
func packPairs() {
	function("packPairsAVX512", "func(dst *float32, dstStep uintptr, runs *[8]uintptr, taps *uintptr, ntaps, channel, channels uintptr)",
		"packPairsAVX512 gathers two vectors, from two runs each, for each tap of each channel; steps, taps and the size of a channel are in bytes.")
	dst, dstStep, runs, taps, ntaps, channel, channels := param("dst"), param("dstStep"), param("runs"), param("taps"), param("ntaps"), param("channel"), param("channels")
	var src [4]reg.GPVirtual
	var mask [4]reg.Register
	for i := range src {
		src[i], mask[i] = GP64(), K()
		MOVQ(Mem{Base: runs, Disp: 16 * i}, src[i])
		KMOVW(Mem{Base: runs, Disp: 16*i + 8}, mask[i])
	}
	t, left, at := runs, GP64(), GP64()
	Label("channel")
	MOVQ(taps, t)
	MOVQ(ntaps, left)
	Label("tap")
	MOVQ(Mem{Base: t}, at)
	ADDQ(Imm(8), t)
	for v, z := range []reg.VecPhysical{reg.Z0, reg.Z1} {
		VMOVUPS_Z(Mem{Base: src[2*v], Index: at, Scale: 1}, mask[2*v], z)
		VMOVUPS(Mem{Base: src[2*v+1], Index: at, Scale: 1}, mask[2*v+1], z)
		VMOVUPS(z, Mem{Base: dst, Disp: 64 * v})
	}
	ADDQ(dstStep, dst)
	DECQ(left)
	JNE(LabelRef("tap"))
	for i := range src {
		ADDQ(channel, src[i])
	}
	DECQ(channels)
	JNE(LabelRef("channel"))
	VZEROUPPER()
	RET()
}

func label(name string, i int) string { return name + string(rune('0'+i)) }

// table writes 16 constants.
func table(name string, f func(i int) int) Mem {
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(f(i))))
	}
	return m
}

// windowMax finds the largest values of windows and their places.
func windowMax() {
	function("windowMaxAVX512", "func(best *float32, place *int32, step uintptr, src *float32, srcStep, rows, n, stride uintptr, taps *uintptr, ntaps, first, placeStep uintptr)",
		"windowMaxAVX512 computes n windows in each of rows rows, which are stride (1 or 2) elements apart, rows step bytes in the result and srcStep in the image. Each takes the elements at taps, at least one, from its first one. The place of the first element of the first window is first, and placeStep more in each further row.")
	lanes, even := table("lanes", func(i int) int { return i }), table("even", func(i int) int { return 2 * i })
	places, start, ahead, down, pick := reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4
	v, high, best, where, here := reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9
	stride := param("stride")
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

	toBest, toPlace, src := param("best"), param("place"), param("src")
	col, s, n, t, left, at := GP64(), GP64(), GP64(), GP64(), GP64(), GP64() // col: bytes from the start of a row of results
	take, nan, inside := K(), K(), K()
	lower, upper := K(), K() // of the elements read
	all := K()
	KXNORW(all, all, all)

	Label("row")
	XORQ(col, col)
	MOVQ(src, s)
	MOVQ(NewParamAddr("n", 48), n)
	VMOVDQA32(start, places)
	Label("vector")
	// All ones below the number of windows left, and with stride 2 below twice that less one.
	w := reg.RCX
	ones := at
	MOVQ(U32(16), w)
	CMPQ(n, w)
	CMOVQLT(n, w)
	MOVQ(U32(1), ones)
	SHLQ(reg.CL, ones)
	DECQ(ones)
	KMOVW(ones.As32(), inside)
	KMOVW(ones.As32(), lower)
	CMPQ(stride, Imm(1))
	JEQ(LabelRef("ready"))
	LEAQ(Mem{Base: w, Index: w, Scale: 1, Disp: -1}, w)
	MOVQ(U32(1), ones)
	SHLQ(reg.CL, ones)
	DECQ(ones)
	KMOVW(ones.As32(), lower)
	SHRQ(Imm(16), ones)
	KMOVW(ones.As32(), upper)
	Label("ready")
	MOVQ(NewParamAddr("taps", 64), t)
	MOVQ(NewParamAddr("ntaps", 72), left)
	KMOVW(all, take)
	JMP(LabelRef("load"))
	Label("tap")
	VCMPPS(Imm(0x1e), best, v, take) // greater, not NaN
	VCMPPS(Imm(0x03), v, v, nan)
	KORW(take, nan, take)
	Label("take")
	VMOVAPS(v, take, best)
	VMOVDQA32(here, take, where)
	ADDQ(Imm(8), t)
	DECQ(left)
	JEQ(LabelRef("store"))
	Label("load")
	MOVQ(Mem{Base: t}, at)
	VPBROADCASTD(at.As32(), here)
	VPADDD(places, here, here)
	VMOVUPS_Z(Mem{Base: s, Index: at, Scale: 4}, lower, v)
	CMPQ(stride, Imm(1))
	JEQ(LabelRef("loaded"))
	VMOVUPS_Z(Mem{Base: s, Index: at, Scale: 4, Disp: 64}, upper, high)
	VPERMT2PS(high, pick, v)
	Label("loaded")
	CMPQ(left, NewParamAddr("ntaps", 72))
	JEQ(LabelRef("take"))
	JMP(LabelRef("tap"))
	Label("store")
	VMOVUPS(best, inside, Mem{Base: toBest, Index: col, Scale: 1})
	VMOVDQU32(where, inside, Mem{Base: toPlace, Index: col, Scale: 1})
	VPADDD(ahead, places, places)
	ADDQ(Imm(64), col)
	MOVQ(stride, at)
	SHLQ(Imm(6), at)
	ADDQ(at, s)
	SUBQ(Imm(16), n)
	JGT(LabelRef("vector"))
	VPADDD(down, start, start)
	ADDQ(NewParamAddr("step", 16), toBest)
	ADDQ(NewParamAddr("step", 16), toPlace)
	ADDQ(NewParamAddr("srcStep", 32), src)
	DECQ(NewParamAddr("rows", 40))
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}
