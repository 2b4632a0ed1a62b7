package vec

import "github.com/anygpu/anygpu/shaders/ir"

// Op is an operation of [Arith], [Compare], [Unary], [Integer], [CompareIntegers] or [Shift].
type Op int

// The operations. Min and Max return the first operand if either is NaN, and for zeros of different signs.
const (
	Add Op = iota
	Sub
	Mul
	Div
	Min
	Max
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	Neg
	Abs
	Round // to even
	Floor
	Ceil
	Trunc
	And
	Or
	Xor
	MulHi // the high word of the product of unsigned numbers
	Shl
	Shr
)

// Binary has the loops of an operation on two operands, each of them a slice (V) or a scalar (S). All slices of a call
// have at least len(d) elements.
type Binary[T element] struct {
	VV func(d, a, b []T) int
	VS func(d, a []T, b T) int
	SV func(d []T, a T, b []T) int
}

type element interface{ float32 | uint32 }

// Comparison has the loops of a comparison, which gives 0 or 1.
type Comparison[T element] struct {
	VV func(d []uint8, a, b []T) int
	VS func(d []uint8, a []T, b T) int
}

// Selection has the loops of a choice: a where c is not 0, else b.
type Selection struct {
	VV func(d []float32, c []uint8, a, b []float32) int
	VS func(d []float32, c []uint8, a []float32, b float32) int
	SV func(d []float32, c []uint8, a float32, b []float32) int
}

// Halves has the conversions of elements of 16 bits, float16 or bfloat16, to float32 and back, rounding to nearest even.
type Halves struct {
	FromF16, FromBF16 func(d []float32, a []uint16) int
	ToF16, ToBF16     func(d []uint16, a []float32) int
}

// Arith returns the loops of Add, Sub, Mul, Div, Min or Max, nil if there are none.
func Arith(op Op) *Binary[float32] {
	if best == nil {
		return nil
	}
	return best.arith[op]
}

// Compare returns the loops of Eq, Ne, Lt, Le, Gt or Ge, nil if there are none.
func Compare(op Op) *Comparison[float32] {
	if best == nil {
		return nil
	}
	return best.compare[op]
}

// Select returns the loops of a choice, nil if there are none.
func Select() *Selection {
	if best == nil {
		return nil
	}
	return best.choose
}

// Fma returns the loop of d = a*b + c, with two roundings; nil if there is none.
func Fma() func(d, a, b, c []float32) int {
	if best == nil {
		return nil
	}
	return best.fma
}

// Unary returns the loop of an operation from Neg to Trunc; nil if there is none.
func Unary(op Op) func(d, a []float32) int {
	if best == nil {
		return nil
	}
	return best.unary[op]
}

// Half returns the conversions from and to kinds of 16 bits, nil if there are none.
func Half() *Halves {
	if best == nil {
		return nil
	}
	return best.half
}

// set is the loops of an instruction set.
type set struct {
	name    string
	lanes   int
	arith   map[Op]*Binary[float32]
	compare map[Op]*Comparison[float32]
	choose  *Selection
	fma     func(d, a, b, c []float32) int
	unary   map[Op]func(d, a []float32) int
	half    *Halves
	math    map[ir.Op]func(d, a *float32, n uintptr)
	limited map[ir.Op]func(d, a *float32, n uintptr) (done uintptr)
	integers
}

// The following make loops over slices from functions on n elements, a multiple of lanes.

func binary[T element](lanes int, vv func(d, a, b *T, n uintptr), vs func(d, a *T, b T, n uintptr), sv func(d *T, a T, b *T, n uintptr)) *Binary[T] {
	f := &Binary[T]{
		VV: func(d, a, b []T) int {
			n := whole(len(d), lanes, len(a), len(b))
			if n > 0 {
				vv(&d[0], &a[0], &b[0], uintptr(n))
			}
			return n
		},
		VS: func(d, a []T, b T) int {
			n := whole(len(d), lanes, len(a))
			if n > 0 {
				vs(&d[0], &a[0], b, uintptr(n))
			}
			return n
		},
	}
	if sv == nil { // the order does not matter
		f.SV = func(d []T, a T, b []T) int { return f.VS(d, b, a) }
		return f
	}
	f.SV = func(d []T, a T, b []T) int {
		n := whole(len(d), lanes, len(b))
		if n > 0 {
			sv(&d[0], a, &b[0], uintptr(n))
		}
		return n
	}
	return f
}

func comparison[T element](lanes int, vv func(d *uint8, a, b *T, n uintptr), vs func(d *uint8, a *T, b T, n uintptr)) *Comparison[T] {
	return &Comparison[T]{
		VV: func(d []uint8, a, b []T) int {
			n := whole(len(d), lanes, len(a), len(b))
			if n > 0 {
				vv(&d[0], &a[0], &b[0], uintptr(n))
			}
			return n
		},
		VS: func(d []uint8, a []T, b T) int {
			n := whole(len(d), lanes, len(a))
			if n > 0 {
				vs(&d[0], &a[0], b, uintptr(n))
			}
			return n
		},
	}
}

func selection(lanes int, vv func(d *float32, c *uint8, a, b *float32, n uintptr), vs func(d *float32, c *uint8, a *float32, b float32, n uintptr), sv func(d *float32, c *uint8, a float32, b *float32, n uintptr)) *Selection {
	return &Selection{
		VV: func(d []float32, c []uint8, a, b []float32) int {
			n := whole(len(d), lanes, len(c), len(a), len(b))
			if n > 0 {
				vv(&d[0], &c[0], &a[0], &b[0], uintptr(n))
			}
			return n
		},
		VS: func(d []float32, c []uint8, a []float32, b float32) int {
			n := whole(len(d), lanes, len(c), len(a))
			if n > 0 {
				vs(&d[0], &c[0], &a[0], b, uintptr(n))
			}
			return n
		},
		SV: func(d []float32, c []uint8, a float32, b []float32) int {
			n := whole(len(d), lanes, len(c), len(b))
			if n > 0 {
				sv(&d[0], &c[0], a, &b[0], uintptr(n))
			}
			return n
		},
	}
}

func ternary(lanes int, f func(d, a, b, c *float32, n uintptr)) func(d, a, b, c []float32) int {
	return func(d, a, b, c []float32) int {
		n := whole(len(d), lanes, len(a), len(b), len(c))
		if n > 0 {
			f(&d[0], &a[0], &b[0], &c[0], uintptr(n))
		}
		return n
	}
}

func unary[D, A float32 | uint32 | int32 | uint16 | uint8](lanes int, f func(d *D, a *A, n uintptr)) func(d []D, a []A) int {
	return func(d []D, a []A) int {
		n := whole(len(d), lanes, len(a))
		if n > 0 {
			f(&d[0], &a[0], uintptr(n))
		}
		return n
	}
}

// whole returns how many of n elements fill vectors.
func whole(n, lanes int, lengths ...int) int {
	for _, have := range lengths {
		if have < n {
			panic("vec: an operand is shorter than the result")
		}
	}
	return n &^ (lanes - 1)
}
