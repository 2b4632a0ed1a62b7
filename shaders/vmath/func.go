package vmath

import "github.com/anygpu/anygpu/shaders/ir"

// Op is a vector operation. Values are 32 bits a lane, read as float32 or as integers, or masks, a bit a lane.
type Op uint8

// The operations. x86 notes name the instruction that an operation is defined by.
const (
	Arg   Op = iota // the argument
	Const           // Bits in every lane

	// float32.
	Add
	Sub
	Mul
	Div
	Fma   // A*B + C, rounded once
	Fnma  // C - A*B, rounded once
	Sqrt  //
	Min   // A if A < B, else B: also B if either is NaN (MINPS)
	Max   // A if A > B, else B: also B if either is NaN (MAXPS)
	Scale // A * 2^B for 1/2 <= |A| <= 2 and an integer B in [-252, 254], rounded once; NaN if both are NaN

	// 32-bit integers and bits.
	And
	Or
	Xor
	IAdd
	ISub
	Shl // A << Bits
	Shr // A >> Bits, zeros from the left
	ToF // float32 of the signed integer

	// Masks.
	Lt     // A < B as float32, false for NaN
	Eq     // A == B as float32, false for NaN
	SignOf // the top bit of A
	Select // B where the mask A is set, else C
)

// Instr computes a value from values that stand before it.
type Instr struct {
	Op      Op
	A, B, C int    // indices of the operands
	Bits    uint32 // of Const; the amount of a shift
}

// Operands returns the operands that the operation has.
func (in Instr) Operands() []int {
	switch in.Op {
	case Arg, Const:
		return nil
	case Sqrt, Shl, Shr, ToF, SignOf:
		return []int{in.A}
	case Fma, Fnma, Select:
		return []int{in.A, in.B, in.C}
	}
	return []int{in.A, in.B}
}

// IsMask reports whether the value is a mask.
func (in Instr) IsMask() bool { return in.Op == Lt || in.Op == Eq || in.Op == SignOf }

// Func is the program of a function of one argument. The last value is the result.
type Func struct {
	Name string
	Code []Instr

	// Limit, if not 0, bounds the arguments: for |x| > Limit and NaN the result is undefined. Such arguments are rare, and
	// the functions of package math in float64, rounded, serve them.
	Limit float32
}

// Of returns the program of a math function, nil if there is none. It is shared and must not be changed.
func Of(op ir.Op) *Func { return funcs[op] }

// Ops returns the functions that have programs.
func Ops() []ir.Op {
	var out []ir.Op
	for op, f := range funcs {
		if f != nil {
			out = append(out, ir.Op(op))
		}
	}
	return out
}

var funcs = [ir.NumOps]*Func{
	ir.OpSqrt:  define("sqrt", func(b *builder, x val) val { return b.op(Sqrt, x) }),
	ir.OpRsqrt: define("rsqrt", func(b *builder, x val) val { return b.div(b.c(1), b.op(Sqrt, x)) }),
	ir.OpExp:   define("exp", (*builder).exp),
	ir.OpExp2:  define("exp2", (*builder).exp2),
	ir.OpExpm1: define("expm1", (*builder).expm1),
	ir.OpLog:   define("log", (*builder).log),
	ir.OpLog2:  define("log2", (*builder).log2),
	ir.OpLog10: define("log10", (*builder).log10),
	ir.OpLog1p: define("log1p", (*builder).log1p),
	ir.OpTanh:  define("tanh", (*builder).tanh),
	ir.OpErf:   define("erf", (*builder).erf),
	ir.OpSin:   limited(trigLimit, define("sin", (*builder).sin)),
	ir.OpCos:   limited(trigLimit, define("cos", (*builder).cos)),
}

func limited(limit float32, f *Func) *Func {
	f.Limit = limit
	return f
}
