package vec

import (
	"github.com/anygpu/anygpu/shaders/ir"
	"golang.org/x/sys/cpu"
)

var avx512 = &set{
	name:  "AVX512",
	lanes: 16,
	arith: map[Op]*Binary[float32]{
		Add: binary(16, addVVAVX512, addVSAVX512, nil),
		Sub: binary(16, subVVAVX512, subVSAVX512, subSVAVX512),
		Mul: binary(16, mulVVAVX512, mulVSAVX512, nil),
		Div: binary(16, divVVAVX512, divVSAVX512, divSVAVX512),
		Min: binary(16, minVVAVX512, minVSAVX512, minSVAVX512),
		Max: binary(16, maxVVAVX512, maxVSAVX512, maxSVAVX512),
	},
	compare: map[Op]*Comparison[float32]{
		Eq: comparison(16, eqVVAVX512, eqVSAVX512),
		Ne: comparison(16, neVVAVX512, neVSAVX512),
		Lt: comparison(16, ltVVAVX512, ltVSAVX512),
		Le: comparison(16, leVVAVX512, leVSAVX512),
		Gt: comparison(16, gtVVAVX512, gtVSAVX512),
		Ge: comparison(16, geVVAVX512, geVSAVX512),
	},
	choose: selection(16, selectVVAVX512, selectVSAVX512, selectSVAVX512),
	fma:    ternary(16, fmaVVVAVX512),
	unary: map[Op]func(d, a []float32) int{
		Neg: unary(16, negAVX512), Abs: unary(16, absAVX512),
		Round: unary(16, roundAVX512), Floor: unary(16, floorAVX512), Ceil: unary(16, ceilAVX512), Trunc: unary(16, truncAVX512),
	},
	half: &Halves{
		FromF16: unary(16, fromF16AVX512), FromBF16: unary(16, fromBF16AVX512),
		ToF16: unary(16, toF16AVX512), ToBF16: unary(16, toBF16AVX512),
	},
	math: map[ir.Op]func(d, a *float32, n uintptr){
		ir.OpSqrt: sqrtMathAVX512, ir.OpRsqrt: rsqrtMathAVX512, ir.OpExp: expMathAVX512, ir.OpExp2: exp2MathAVX512,
		ir.OpExpm1: expm1MathAVX512, ir.OpLog: logMathAVX512, ir.OpLog2: log2MathAVX512, ir.OpLog10: log10MathAVX512,
		ir.OpLog1p: log1pMathAVX512, ir.OpTanh: tanhMathAVX512, ir.OpErf: erfMathAVX512,
	},
	limited:  map[ir.Op]func(d, a *float32, n uintptr) (done uintptr){ir.OpSin: sinMathAVX512, ir.OpCos: cosMathAVX512},
	integers: integersAVX512,
}

var avx2 = &set{
	name:  "AVX2",
	lanes: 8,
	arith: map[Op]*Binary[float32]{
		Add: binary(8, addVVAVX2, addVSAVX2, nil),
		Sub: binary(8, subVVAVX2, subVSAVX2, subSVAVX2),
		Mul: binary(8, mulVVAVX2, mulVSAVX2, nil),
		Div: binary(8, divVVAVX2, divVSAVX2, divSVAVX2),
		Min: binary(8, minVVAVX2, minVSAVX2, minSVAVX2),
		Max: binary(8, maxVVAVX2, maxVSAVX2, maxSVAVX2),
	},
	compare: map[Op]*Comparison[float32]{
		Eq: comparison(8, eqVVAVX2, eqVSAVX2),
		Ne: comparison(8, neVVAVX2, neVSAVX2),
		Lt: comparison(8, ltVVAVX2, ltVSAVX2),
		Le: comparison(8, leVVAVX2, leVSAVX2),
		Gt: comparison(8, gtVVAVX2, gtVSAVX2),
		Ge: comparison(8, geVVAVX2, geVSAVX2),
	},
	choose: selection(8, selectVVAVX2, selectVSAVX2, selectSVAVX2),
	fma:    ternary(8, fmaVVVAVX2),
	unary: map[Op]func(d, a []float32) int{
		Neg: unary(8, negAVX2), Abs: unary(8, absAVX2),
		Round: unary(8, roundAVX2), Floor: unary(8, floorAVX2), Ceil: unary(8, ceilAVX2), Trunc: unary(8, truncAVX2),
	},
	half: &Halves{
		FromF16: unary(8, fromF16AVX2), FromBF16: unary(8, fromBF16AVX2),
		ToF16: unary(8, toF16AVX2), ToBF16: unary(8, toBF16AVX2),
	},
	math: map[ir.Op]func(d, a *float32, n uintptr){
		ir.OpSqrt: sqrtMathAVX2, ir.OpRsqrt: rsqrtMathAVX2, ir.OpExp: expMathAVX2, ir.OpExp2: exp2MathAVX2,
		ir.OpExpm1: expm1MathAVX2, ir.OpLog: logMathAVX2, ir.OpLog2: log2MathAVX2, ir.OpLog10: log10MathAVX2,
		ir.OpLog1p: log1pMathAVX2, ir.OpTanh: tanhMathAVX2, ir.OpErf: erfMathAVX2,
	},
	limited:  map[ir.Op]func(d, a *float32, n uintptr) (done uintptr){ir.OpSin: sinMathAVX2, ir.OpCos: cosMathAVX2},
	integers: integersAVX2,
}

// sets are the instruction sets of this processor, best first.
var sets = func() []*set {
	var out []*set
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA && x.HasF16C && x.HasAVX512F && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512BW {
		out = append(out, avx512)
	}
	if x.HasAVX2 && x.HasFMA && x.HasF16C {
		out = append(out, avx2)
	}
	return out
}()

var best = func() *set {
	if len(sets) == 0 {
		return nil
	}
	return sets[0]
}()
