package vec

// The loops over 32-bit integers of this architecture's instruction sets.

var integersAVX512 = integers{
	signed: map[Op]*Binary[uint32]{
		Add: binary(16, iaddVVAVX512, iaddVSAVX512, nil), Mul: binary(16, imulVVAVX512, imulVSAVX512, nil),
		Sub: binary(16, isubVVAVX512, isubVSAVX512, isubSVAVX512),
		And: binary(16, iandVVAVX512, iandVSAVX512, nil), Or: binary(16, iorVVAVX512, iorVSAVX512, nil), Xor: binary(16, ixorVVAVX512, ixorVSAVX512, nil),
		Min: binary(16, iminVVAVX512, iminVSAVX512, nil), Max: binary(16, imaxVVAVX512, imaxVSAVX512, nil),
	},
	unsigned: map[Op]*Binary[uint32]{
		Min: binary(16, uminVVAVX512, uminVSAVX512, nil), Max: binary(16, umaxVVAVX512, umaxVSAVX512, nil), MulHi: binary(16, mulhiVVAVX512, mulhiVSAVX512, nil),
	},
	compareSigned: map[Op]*Comparison[uint32]{
		Eq: comparison(16, ieqVVAVX512, ieqVSAVX512), Ne: comparison(16, ineVVAVX512, ineVSAVX512), Lt: comparison(16, iltVVAVX512, iltVSAVX512),
		Le: comparison(16, ileVVAVX512, ileVSAVX512), Gt: comparison(16, igtVVAVX512, igtVSAVX512), Ge: comparison(16, igeVVAVX512, igeVSAVX512),
	},
	compareUnsigned: map[Op]*Comparison[uint32]{
		Lt: comparison(16, ultVVAVX512, ultVSAVX512), Le: comparison(16, uleVVAVX512, uleVSAVX512), Gt: comparison(16, ugtVVAVX512, ugtVSAVX512), Ge: comparison(16, ugeVVAVX512, ugeVSAVX512),
	},
	shl: shlVSAVX512, shr: shrVSAVX512, sar: sarVSAVX512,
	quotient: quotientAVX512, remainder: remainderAVX512,
	numbers: &Numbers{
		I32ToF32: unary(16, i32ToF32AVX512), U8ToF32: unary(16, u8ToF32AVX512),
		U8ToU32: unary(16, u8ToU32AVX512), F32ToI32: unary(16, f32ToI32AVX512),
	},
	rows:  map[int]func(d, a *byte, n, dstep, astep uintptr){16: rows16AVX512, 32: rows32AVX512, 64: rows64AVX512},
	splat: splatAVX512,
}

var integersAVX2 = integers{
	signed: map[Op]*Binary[uint32]{
		Add: binary(8, iaddVVAVX2, iaddVSAVX2, nil), Mul: binary(8, imulVVAVX2, imulVSAVX2, nil),
		Sub: binary(8, isubVVAVX2, isubVSAVX2, isubSVAVX2),
		And: binary(8, iandVVAVX2, iandVSAVX2, nil), Or: binary(8, iorVVAVX2, iorVSAVX2, nil), Xor: binary(8, ixorVVAVX2, ixorVSAVX2, nil),
		Min: binary(8, iminVVAVX2, iminVSAVX2, nil), Max: binary(8, imaxVVAVX2, imaxVSAVX2, nil),
	},
	unsigned: map[Op]*Binary[uint32]{
		Min: binary(8, uminVVAVX2, uminVSAVX2, nil), Max: binary(8, umaxVVAVX2, umaxVSAVX2, nil), MulHi: binary(8, mulhiVVAVX2, mulhiVSAVX2, nil),
	},
	compareSigned: map[Op]*Comparison[uint32]{
		Eq: comparison(8, ieqVVAVX2, ieqVSAVX2), Ne: comparison(8, ineVVAVX2, ineVSAVX2), Lt: comparison(8, iltVVAVX2, iltVSAVX2),
		Le: comparison(8, ileVVAVX2, ileVSAVX2), Gt: comparison(8, igtVVAVX2, igtVSAVX2), Ge: comparison(8, igeVVAVX2, igeVSAVX2),
	},
	compareUnsigned: map[Op]*Comparison[uint32]{
		Lt: comparison(8, ultVVAVX2, ultVSAVX2), Le: comparison(8, uleVVAVX2, uleVSAVX2), Gt: comparison(8, ugtVVAVX2, ugtVSAVX2), Ge: comparison(8, ugeVVAVX2, ugeVSAVX2),
	},
	shl: shlVSAVX2, shr: shrVSAVX2, sar: sarVSAVX2,
	quotient: quotientAVX2, remainder: remainderAVX2,
	numbers: &Numbers{
		I32ToF32: unary(8, i32ToF32AVX2), U8ToF32: unary(8, u8ToF32AVX2),
		U8ToU32: unary(8, u8ToU32AVX2), F32ToI32: unary(8, f32ToI32AVX2),
	},
	rows:  map[int]func(d, a *byte, n, dstep, astep uintptr){16: rows16AVX2, 32: rows32AVX2, 64: rows64AVX2},
	splat: splatAVX2,
}
