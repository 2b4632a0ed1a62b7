package interp

import (
	"unsafe"

	vloop "github.com/anygpu/anygpu/shaders/interp/internal/vec"
	"github.com/anygpu/anygpu/shaders/ir"
)

// Loops over float32 in vector instructions, where the processor has them. They do as many elements as fill vectors, and
// the plain loops the rest. The functions here return the plain loops for other types and processors.

var vecOps = map[ir.Op]vloop.Op{
	ir.OpAdd: vloop.Add, ir.OpSub: vloop.Sub, ir.OpMul: vloop.Mul, ir.OpDiv: vloop.Div, ir.OpMin: vloop.Min, ir.OpMax: vloop.Max,
	ir.OpEq: vloop.Eq, ir.OpNe: vloop.Ne, ir.OpLt: vloop.Lt, ir.OpLe: vloop.Le, ir.OpGt: vloop.Gt, ir.OpGe: vloop.Ge,
	ir.OpNeg: vloop.Neg, ir.OpAbs: vloop.Abs,
	ir.OpRound: vloop.Round, ir.OpFloor: vloop.Floor, ir.OpCeil: vloop.Ceil, ir.OpTrunc: vloop.Trunc,
	ir.OpAnd: vloop.And, ir.OpOr: vloop.Or, ir.OpXor: vloop.Xor, ir.OpMulHi: vloop.MulHi, ir.OpShl: vloop.Shl, ir.OpShr: vloop.Shr,
}

// vectorArith returns the loops of an operation that the given ones are the plain loops of.
func vectorArith[T any](op ir.Op, f binLoops[T]) binLoops[T] {
	vop, known := vecOps[op]
	if !known {
		return f
	}
	switch plain := any(f).(type) {
	case binLoops[float32]:
		if v := vloop.Arith(vop); v != nil {
			return any(joined(v, plain)).(binLoops[T])
		}
	case binLoops[uint32]:
		if v := vloop.Integer(vop, false); v != nil {
			return any(joined(v, plain)).(binLoops[T])
		}
	case binLoops[int32]:
		if v := vloop.Integer(vop, true); v != nil {
			return any(binLoops[int32]{
				vv: func(d, a, b []int32) { n := v.VV(asWords(d), asWords(a), asWords(b)); plain.vv(d[n:], a[n:], b[n:]) },
				vs: func(d, a []int32, b int32) { n := v.VS(asWords(d), asWords(a), uint32(b)); plain.vs(d[n:], a[n:], b) },
				sv: func(d []int32, a int32, b []int32) {
					n := v.SV(asWords(d), uint32(a), asWords(b))
					plain.sv(d[n:], a, b[n:])
				},
			}).(binLoops[T])
		}
	case binLoops[uint8]: // four bytes are a word
		if v := vloop.Integer(vop, false); v != nil && (op == ir.OpAnd || op == ir.OpOr || op == ir.OpXor) {
			return any(binLoops[uint8]{
				vv: func(d, a, b []uint8) {
					n := 4 * v.VV(bytesAsWords(d), bytesAsWords(a), bytesAsWords(b))
					plain.vv(d[n:], a[n:], b[n:])
				},
				vs: func(d, a []uint8, b uint8) {
					n := 4 * v.VS(bytesAsWords(d), bytesAsWords(a), uint32(b)*0x01010101)
					plain.vs(d[n:], a[n:], b)
				},
				sv: func(d []uint8, a uint8, b []uint8) {
					n := 4 * v.VS(bytesAsWords(d), bytesAsWords(b), uint32(a)*0x01010101)
					plain.vs(d[n:], b[n:], a)
				},
			}).(binLoops[T])
		}
	}
	return f
}

// joined does what fills vectors by v and the rest by plain.
func joined[T float32 | uint32](v *vloop.Binary[T], plain binLoops[T]) binLoops[T] {
	return binLoops[T]{
		vv: func(d, a, b []T) { n := v.VV(d, a, b); plain.vv(d[n:], a[n:], b[n:]) },
		vs: func(d, a []T, b T) { n := v.VS(d, a, b); plain.vs(d[n:], a[n:], b) },
		sv: func(d []T, a T, b []T) { n := v.SV(d, a, b); plain.sv(d[n:], a, b[n:]) },
	}
}

func asWords(x []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// bytesAsWords returns the whole words of bytes. On the architectures with vector loops they need not be aligned.
func bytesAsWords(x []uint8) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/4)
}

// vectorShift is vectorArith for shifts by a scalar.
func vectorShift[T integer](op ir.Op, plain func(d, a []T, b T)) func(d, a []T, b T) {
	switch f := any(plain).(type) {
	case func(d, a []uint32, b uint32):
		if v := vloop.Shift(vecOps[op], false); v != nil {
			return any(func(d, a []uint32, b uint32) {
				if b < 32 {
					n := v(d, a, b)
					d, a = d[n:], a[n:]
				}
				f(d, a, b)
			}).(func(d, a []T, b T))
		}
	case func(d, a []int32, b int32):
		if v := vloop.Shift(vecOps[op], true); v != nil {
			return any(func(d, a []int32, b int32) {
				if uint32(b) < 32 {
					n := v(asWords(d), asWords(a), uint32(b))
					d, a = d[n:], a[n:]
				}
				f(d, a, b)
			}).(func(d, a []T, b T))
		}
	}
	return plain
}

// vectorCompare is vectorArith for comparisons.
func vectorCompare[T any](op ir.Op, f cmpLoops[T]) cmpLoops[T] {
	switch plain := any(f).(type) {
	case cmpLoops[float32]:
		if v := vloop.Compare(vecOps[op]); v != nil {
			return any(joinedCompare(v, plain)).(cmpLoops[T])
		}
	case cmpLoops[uint32]:
		if v := vloop.CompareIntegers(vecOps[op], false); v != nil {
			return any(joinedCompare(v, plain)).(cmpLoops[T])
		}
	case cmpLoops[int32]:
		if v := vloop.CompareIntegers(vecOps[op], true); v != nil {
			return any(cmpLoops[int32]{
				vv: func(d []uint8, a, b []int32) { n := v.VV(d, asWords(a), asWords(b)); plain.vv(d[n:], a[n:], b[n:]) },
				vs: func(d []uint8, a []int32, b int32) { n := v.VS(d, asWords(a), uint32(b)); plain.vs(d[n:], a[n:], b) },
			}).(cmpLoops[T])
		}
	}
	return f
}

func joinedCompare[T float32 | uint32](v *vloop.Comparison[T], plain cmpLoops[T]) cmpLoops[T] {
	return cmpLoops[T]{
		vv: func(d []uint8, a, b []T) { n := v.VV(d, a, b); plain.vv(d[n:], a[n:], b[n:]) },
		vs: func(d []uint8, a []T, b T) { n := v.VS(d, a, b); plain.vs(d[n:], a[n:], b) },
	}
}

// vectorUnary is vectorArith for operations of one operand.
func vectorUnary[T any](op ir.Op, f func(d, a []T)) func(d, a []T) {
	plain, ok := any(f).(func(d, a []float32))
	if !ok {
		return f
	}
	vop, known := vecOps[op]
	if !known {
		return f
	}
	v := vloop.Unary(vop)
	if v == nil {
		return f
	}
	return any(func(d, a []float32) { n := v(d, a); plain(d[n:], a[n:]) }).(func(d, a []T))
}

// fmaLoop returns the loop of products and sums, each rounded.
func fmaLoop[T floating]() func(d, a, b, c []T) {
	f := fmaVVV[T]
	plain, ok := any(f).(func(d, a, b, c []float32))
	v := vloop.Fma()
	if !ok || v == nil {
		return f
	}
	return any(func(d, a, b, c []float32) { n := v(d, a, b, c); plain(d[n:], a[n:], b[n:], c[n:]) }).(func(d, a, b, c []T))
}

// selLoops has the loops of a choice.
type selLoops[T any] struct {
	vv func(d []T, c []uint8, a, b []T)
	vs func(d []T, c []uint8, a []T, b T)
	sv func(d []T, c []uint8, a T, b []T)
}

// selectLoops returns the loops of a choice.
func selectLoops[T word]() selLoops[T] {
	f := selLoops[T]{selectVV[T], selectVS[T], selectSV[T]}
	plain, ok := any(f).(selLoops[uint32])
	v := vloop.Select()
	if !ok || v == nil {
		return f
	}
	return any(selLoops[uint32]{
		vv: func(d []uint32, c []uint8, a, b []uint32) {
			n := v.VV(asFloat32(d), c, asFloat32(a), asFloat32(b))
			plain.vv(d[n:], c[n:], a[n:], b[n:])
		},
		vs: func(d []uint32, c []uint8, a []uint32, b uint32) {
			n := v.VS(asFloat32(d), c, asFloat32(a), f32of(uint64(b)))
			plain.vs(d[n:], c[n:], a[n:], b)
		},
		sv: func(d []uint32, c []uint8, a uint32, b []uint32) {
			n := v.SV(asFloat32(d), c, f32of(uint64(a)), asFloat32(b))
			plain.sv(d[n:], c[n:], a, b[n:])
		},
	}).(selLoops[T])
}

func asFloat32(x []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// halves has the conversions from and to float16 and bfloat16; its functions are nil where there are none.
var halves = func() vloop.Halves {
	if h := vloop.Half(); h != nil {
		return *h
	}
	return vloop.Halves{}
}()

// numberLoops has conversions of numbers; its functions are nil where there are none.
var numberLoops = func() vloop.Numbers {
	if n := vloop.Number(); n != nil {
		return *n
	}
	return vloop.Numbers{}
}()

// vectorConvert returns a conversion in vector instructions, and plain code for the rest or if v is nil.
func vectorConvert[D, A any](v func(d []D, a []A) int, plain func(d []D, a []A)) func(d []D, a []A) {
	if v == nil {
		return plain
	}
	return func(d []D, a []A) { n := v(d, a); plain(d[n:], a[n:]) }
}
