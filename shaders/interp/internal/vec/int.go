package vec

import "unsafe"

// Integers are loops over 32-bit integers; where signed and unsigned ones differ, there are two.
type integers struct {
	signed, unsigned               map[Op]*Binary[uint32]
	compareSigned, compareUnsigned map[Op]*Comparison[uint32]

	shl, shr, sar       func(d, a *uint32, b uint32, n uintptr)
	quotient, remainder func(d, a *uint32, b, ml, mh uint32, n uintptr)
	numbers             *Numbers
	rows                map[int]func(d, a *byte, n, dstep, astep uintptr)
	splat               func(d, a *uint32, n uintptr)
}

// Numbers has conversions. F32ToI32 truncates, saturates, and makes NaN 0.
type Numbers struct {
	I32ToF32 func(d []float32, a []int32) int
	U8ToF32  func(d []float32, a []uint8) int
	U8ToU32  func(d []uint32, a []uint8) int
	F32ToI32 func(d []int32, a []float32) int
}

// Integer returns the loops of Add, Sub, Mul, Min, Max, And, Or, Xor or, unsigned, MulHi of 32-bit integers; nil if there
// are none.
func Integer(op Op, signed bool) *Binary[uint32] {
	if best == nil {
		return nil
	}
	return best.integer(op, signed)
}

func (s *integers) integer(op Op, signed bool) *Binary[uint32] {
	if f := s.unsigned[op]; f != nil && !signed {
		return f
	}
	if op == MulHi {
		return nil
	}
	return s.signed[op]
}

// CompareIntegers returns the loops of Eq, Ne, Lt, Le, Gt or Ge of 32-bit integers; nil if there are none.
func CompareIntegers(op Op, signed bool) *Comparison[uint32] {
	if best == nil {
		return nil
	}
	return best.compareInteger(op, signed)
}

func (s *integers) compareInteger(op Op, signed bool) *Comparison[uint32] {
	if f := s.compareUnsigned[op]; f != nil && !signed {
		return f
	}
	return s.compareSigned[op]
}

// Shift returns the loop of Shl or Shr (arithmetic if signed) of 32-bit integers by a scalar, which is below 32; nil if
// there is none.
func Shift(op Op, signed bool) func(d, a []uint32, b uint32) int {
	if best == nil {
		return nil
	}
	return best.shift(op, signed)
}

func (s *set) shift(op Op, signed bool) func(d, a []uint32, b uint32) int {
	f := s.shr
	switch {
	case op == Shl:
		f = s.shl
	case signed:
		f = s.sar
	}
	lanes := s.lanes
	return func(d, a []uint32, b uint32) int {
		n := whole(len(d), lanes, len(a))
		if n > 0 {
			f(&d[0], &a[0], b, uintptr(n))
		}
		return n
	}
}

// Divide computes the quotients, or the remainders if rem is set, of unsigned numbers by b > 1, for as many elements as it
// returns. It multiplies by the reciprocal in 64 bits, which is exact for 32-bit numbers (D. Lemire, O. Kaser, N. Kurz,
// "Faster remainder by direct computation", 2019).
func Divide(d, a []uint32, b uint32, rem bool) int {
	if best == nil {
		return 0
	}
	return best.divide(d, a, b, rem)
}

func (s *set) divide(d, a []uint32, b uint32, rem bool) int {
	n := whole(len(d), s.lanes, len(a))
	if n == 0 {
		return 0
	}
	f, m := s.quotient, ^uint64(0)/uint64(b)+1
	if rem {
		f = s.remainder
	}
	f(&d[0], &a[0], b, uint32(m), uint32(m>>32), uintptr(n))
	return n
}

// Number returns the conversions, nil if there are none.
func Number() *Numbers {
	if best == nil {
		return nil
	}
	return best.numbers
}

// Rows copies n rows of size bytes, which begin every dstep and astep bytes, and reports whether it has a loop for the size.
func Rows(d, a unsafe.Pointer, n, size, dstep, astep int) bool {
	if best == nil || best.rows[size] == nil || n < 1 {
		return false
	}
	best.rows[size]((*byte)(d), (*byte)(a), uintptr(n), uintptr(dstep), uintptr(astep))
	return true
}

// Splat writes each element of a 16 times to d, and reports whether it can.
func Splat(d, a []uint32) bool {
	if best == nil || len(a) == 0 || len(d) < 16*len(a) {
		return false
	}
	best.splat(&d[0], &a[0], uintptr(len(a)))
	return true
}
