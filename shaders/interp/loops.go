package interp

import (
	"encoding/binary"
	"math/bits"

	vloop "github.com/anygpu/anygpu/shaders/interp/internal/vec"
	"github.com/anygpu/anygpu/shaders/ir"
)

// The inner loops of the block executor, over the elements of blocks. All slices of a call have one length; the
// reslicing at the top lets the compiler drop bounds checks.

type integer interface{ int32 | uint32 | int64 }
type floating interface{ float32 | float64 }
type number interface{ integer | floating }
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// binLoops has the loops of a binary operation by which operands are blocks and which are scalars.
type binLoops[T any] struct {
	vv func(d, a, b []T)
	vs func(d, a []T, b T)
	sv func(d []T, a T, b []T)
}

func swapped[T any](vs func(d, a []T, b T)) func(d []T, a T, b []T) {
	return func(d []T, a T, b []T) { vs(d, b, a) }
}

func addVV[T number](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for len(d) >= 4 && len(a) >= 4 && len(b) >= 4 {
		d[0], d[1], d[2], d[3] = a[0]+b[0], a[1]+b[1], a[2]+b[2], a[3]+b[3]
		d, a, b = d[4:], a[4:], b[4:]
	}
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func addVS[T number](d, a []T, b T) {
	a = a[:len(d)]
	for len(d) >= 4 && len(a) >= 4 {
		d[0], d[1], d[2], d[3] = a[0]+b, a[1]+b, a[2]+b, a[3]+b
		d, a = d[4:], a[4:]
	}
	for i := range d {
		d[i] = a[i] + b
	}
}

func subVV[T number](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for len(d) >= 4 && len(a) >= 4 && len(b) >= 4 {
		d[0], d[1], d[2], d[3] = a[0]-b[0], a[1]-b[1], a[2]-b[2], a[3]-b[3]
		d, a, b = d[4:], a[4:], b[4:]
	}
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func subVS[T number](d, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = a[i] - b
	}
}

func subSV[T number](d []T, a T, b []T) {
	b = b[:len(d)]
	for i := range d {
		d[i] = a - b[i]
	}
}

func mulVV[T number](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for len(d) >= 4 && len(a) >= 4 && len(b) >= 4 {
		d[0], d[1], d[2], d[3] = a[0]*b[0], a[1]*b[1], a[2]*b[2], a[3]*b[3]
		d, a, b = d[4:], a[4:], b[4:]
	}
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mulVS[T number](d, a []T, b T) {
	a = a[:len(d)]
	for len(d) >= 4 && len(a) >= 4 {
		d[0], d[1], d[2], d[3] = a[0]*b, a[1]*b, a[2]*b, a[3]*b
		d, a = d[4:], a[4:]
	}
	for i := range d {
		d[i] = a[i] * b
	}
}

func divVV[T floating](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = a[i] / b[i]
	}
}

func divVS[T floating](d, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = a[i] / b
	}
}

func divSV[T floating](d []T, a T, b []T) {
	b = b[:len(d)]
	for i := range d {
		d[i] = a / b[i]
	}
}

func minVV[T number](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		x := a[i]
		if b[i] < x {
			x = b[i]
		}
		d[i] = x
	}
}

func minVS[T number](d, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		x := a[i]
		if b < x {
			x = b
		}
		d[i] = x
	}
}

func minSV[T number](d []T, a T, b []T) {
	b = b[:len(d)]
	for i := range d {
		x := a
		if b[i] < x {
			x = b[i]
		}
		d[i] = x
	}
}

func maxVV[T number](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		x := a[i]
		if b[i] > x {
			x = b[i]
		}
		d[i] = x
	}
}

func maxVS[T number](d, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		x := a[i]
		if b > x {
			x = b
		}
		d[i] = x
	}
}

func maxSV[T number](d []T, a T, b []T) {
	b = b[:len(d)]
	for i := range d {
		x := a
		if b[i] > x {
			x = b[i]
		}
		d[i] = x
	}
}

func andVV[T word](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func andVS[T word](d, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = a[i] & b
	}
}

func orVV[T word](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func orVS[T word](d, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = a[i] | b
	}
}

func xorVV[T word](d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func xorVS[T word](d, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = a[i] ^ b
	}
}

func shlVS[T integer](d, a []T, b T) {
	a = a[:len(d)]
	n := uint64(b)
	for i := range d {
		d[i] = a[i] << n
	}
}

func shrVS[T integer](d, a []T, b T) {
	a = a[:len(d)]
	n := uint64(b)
	for i := range d {
		d[i] = a[i] >> n
	}
}

func mulHiVV(d, a, b []uint32) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		hi, _ := bits.Mul32(a[i], b[i])
		d[i] = hi
	}
}

func mulHiVS(d, a []uint32, b uint32) {
	a = a[:len(d)]
	for i := range d {
		d[i] = uint32(uint64(a[i]) * uint64(b) >> 32)
	}
}

// divideU32 divides by b, which is not 0, through the reciprocal (see vec.Divide).
func divideU32(d, a []uint32, b uint32, rem bool) {
	a = a[:len(d)]
	if b == 1 {
		if rem {
			clear(d)
		} else {
			copy(d, a)
		}
		return
	}
	n := vloop.Divide(d, a, b, rem)
	d, a = d[n:], a[n:]
	m := ^uint64(0)/uint64(b) + 1
	if rem {
		for i, x := range a {
			q, _ := bits.Mul64(m, uint64(x))
			d[i] = x - uint32(q)*b
		}
		return
	}
	for i, x := range a {
		q, _ := bits.Mul64(m, uint64(x))
		d[i] = uint32(q)
	}
}

func fmaVVV[T floating](d, a, b, c []T) {
	a, b, c = a[:len(d)], b[:len(d)], c[:len(d)]
	for i := range d {
		d[i] = T(a[i]*b[i]) + c[i]
	}
}

// arithLoops returns the loops of an operation on numbers; vv is nil if there are none.
func arithLoops[T number](op ir.Op) binLoops[T] { return vectorArith(op, plainArith[T](op)) }

func plainArith[T number](op ir.Op) binLoops[T] {
	switch op {
	case ir.OpAdd:
		return binLoops[T]{addVV[T], addVS[T], swapped(addVS[T])}
	case ir.OpSub:
		return binLoops[T]{subVV[T], subVS[T], subSV[T]}
	case ir.OpMul:
		return binLoops[T]{mulVV[T], mulVS[T], swapped(mulVS[T])}
	case ir.OpMin:
		return binLoops[T]{minVV[T], minVS[T], minSV[T]}
	case ir.OpMax:
		return binLoops[T]{maxVV[T], maxVS[T], maxSV[T]}
	}
	return binLoops[T]{}
}

func bitLoops[T word](op ir.Op) binLoops[T] { return vectorArith(op, plainBits[T](op)) }

func plainBits[T word](op ir.Op) binLoops[T] {
	switch op {
	case ir.OpAnd:
		return binLoops[T]{andVV[T], andVS[T], swapped(andVS[T])}
	case ir.OpOr:
		return binLoops[T]{orVV[T], orVS[T], swapped(orVS[T])}
	case ir.OpXor:
		return binLoops[T]{xorVV[T], xorVS[T], swapped(xorVS[T])}
	}
	return binLoops[T]{}
}

func b2u(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func eqVV[T number | word](d []uint8, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] == b[i])
	}
}

func eqVS[T number | word](d []uint8, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] == b)
	}
}

func neVV[T number | word](d []uint8, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] != b[i])
	}
}

func neVS[T number | word](d []uint8, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] != b)
	}
}

func ltVV[T number](d []uint8, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] < b[i])
	}
}

func ltVS[T number](d []uint8, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] < b)
	}
}

func leVV[T number](d []uint8, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] <= b[i])
	}
}

func leVS[T number](d []uint8, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] <= b)
	}
}

func gtVS[T number](d []uint8, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] > b)
	}
}

func geVS[T number](d []uint8, a []T, b T) {
	a = a[:len(d)]
	for i := range d {
		d[i] = b2u(a[i] >= b)
	}
}

// cmpLoops has the loops of a comparison.
type cmpLoops[T any] struct {
	vv func(d []uint8, a, b []T)
	vs func(d []uint8, a []T, b T)
}

// compareLoops returns the loops of a comparison.
func compareLoops[T number](op ir.Op) cmpLoops[T] { return vectorCompare(op, plainCompare[T](op)) }

func plainCompare[T number](op ir.Op) cmpLoops[T] {
	switch op {
	case ir.OpEq:
		return cmpLoops[T]{eqVV[T], eqVS[T]}
	case ir.OpNe:
		return cmpLoops[T]{neVV[T], neVS[T]}
	case ir.OpLt:
		return cmpLoops[T]{ltVV[T], ltVS[T]}
	case ir.OpLe:
		return cmpLoops[T]{leVV[T], leVS[T]}
	case ir.OpGt:
		return cmpLoops[T]{func(d []uint8, a, b []T) { ltVV(d, b, a) }, gtVS[T]}
	default: // OpGe
		return cmpLoops[T]{func(d []uint8, a, b []T) { leVV(d, b, a) }, geVS[T]}
	}
}

// mirrored returns the comparison with its operands exchanged.
func mirrored(op ir.Op) ir.Op {
	switch op {
	case ir.OpLt:
		return ir.OpGt
	case ir.OpLe:
		return ir.OpGe
	case ir.OpGt:
		return ir.OpLt
	case ir.OpGe:
		return ir.OpLe
	}
	return op
}

func selectVV[T word](d []T, c []uint8, a, b []T) {
	c, a, b = c[:len(d)], a[:len(d)], b[:len(d)]
	for i := range d {
		x, y := a[i], b[i]
		if c[i] != 0 {
			y = x
		}
		d[i] = y
	}
}

func selectVS[T word](d []T, c []uint8, a []T, b T) {
	c, a = c[:len(d)], a[:len(d)]
	for i := range d {
		x, y := a[i], b
		if c[i] != 0 {
			y = x
		}
		d[i] = y
	}
}

func selectSV[T word](d []T, c []uint8, a T, b []T) {
	c, b = c[:len(d)], b[:len(d)]
	for i := range d {
		y := b[i]
		if c[i] != 0 {
			y = a
		}
		d[i] = y
	}
}

func selectSS[T word](d []T, c []uint8, a, b T) {
	c = c[:len(d)]
	for i := range d {
		y := b
		if c[i] != 0 {
			y = a
		}
		d[i] = y
	}
}

func fill[T any](d []T, v T) {
	for i := range d {
		d[i] = v
	}
}

// copyMasked copies the lanes of active invocations.
func copyMasked[T any](d, a []T, mask []uint8, lanes int) {
	if lanes == 1 {
		d, a = d[:len(mask)], a[:len(mask)]
		for i, m := range mask {
			if m != 0 {
				d[i] = a[i]
			}
		}
		return
	}
	for i, m := range mask {
		if m != 0 {
			copy(d[i*lanes:(i+1)*lanes], a[i*lanes:(i+1)*lanes])
		}
	}
}

func fillMasked[T any](d []T, v T, mask []uint8, lanes int) {
	for i, m := range mask {
		if m != 0 {
			fill(d[i*lanes:(i+1)*lanes], v)
		}
	}
}

// countSet counts the elements of a mask that are 1; all are 0 or 1.
func countSet(mask []uint8) int {
	n := 0
	for ; len(mask) >= 8; mask = mask[8:] {
		n += bits.OnesCount64(binary.NativeEndian.Uint64(mask))
	}
	for _, m := range mask {
		n += int(m)
	}
	return n
}
