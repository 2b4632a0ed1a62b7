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
}

// vectorArith returns the loops of an operation that the given ones are the plain loops of.
func vectorArith[T any](op ir.Op, f binLoops[T]) binLoops[T] {
	plain, ok := any(f).(binLoops[float32])
	vop, known := vecOps[op]
	if !ok || !known {
		return f
	}
	v := vloop.Arith(vop)
	if v == nil {
		return f
	}
	return any(binLoops[float32]{
		vv: func(d, a, b []float32) { n := v.VV(d, a, b); plain.vv(d[n:], a[n:], b[n:]) },
		vs: func(d, a []float32, b float32) { n := v.VS(d, a, b); plain.vs(d[n:], a[n:], b) },
		sv: func(d []float32, a float32, b []float32) { n := v.SV(d, a, b); plain.sv(d[n:], a, b[n:]) },
	}).(binLoops[T])
}

// vectorCompare is vectorArith for comparisons.
func vectorCompare[T any](op ir.Op, f cmpLoops[T]) cmpLoops[T] {
	plain, ok := any(f).(cmpLoops[float32])
	if !ok {
		return f
	}
	v := vloop.Compare(vecOps[op])
	if v == nil {
		return f
	}
	return any(cmpLoops[float32]{
		vv: func(d []uint8, a, b []float32) { n := v.VV(d, a, b); plain.vv(d[n:], a[n:], b[n:]) },
		vs: func(d []uint8, a []float32, b float32) { n := v.VS(d, a, b); plain.vs(d[n:], a[n:], b) },
	}).(cmpLoops[T])
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

// vectorConvert returns a conversion in vector instructions, and plain code for the rest or if v is nil.
func vectorConvert[D, A any](v func(d []D, a []A) int, plain func(d []D, a []A)) func(d []D, a []A) {
	if v == nil {
		return plain
	}
	return func(d []D, a []A) { n := v(d, a); plain(d[n:], a[n:]) }
}
