// Package spirv turns kernels into SPIR-V, the binary shader language of Vulkan.
//
// # Overview
//
// [Emit] takes a kernel that [ir.Lower] has rewritten for the device and returns a module of SPIR-V 1.3 for the Vulkan
// 1.1 environment, so that any device of Vulkan 1.1 or later takes it. No shader compiler is involved. [Text] prints a
// module as assembly that spirv-as accepts.
//
// # Interface of a module
//
// The entry point is "main". Global buffer i is the storage buffer at binding i of descriptor set 0. Scalar parameters
// are push constants: parameter i is the 4-byte word at offset 4*i.
//
// # Invariants
//
//   - The module declares a capability only if the kernel needs it: a device without 16-bit storage takes every kernel
//     without 16-bit memory.
//   - Float additions, subtractions, multiplications and divisions carry NoContraction. Converting stores to f16 memory
//     round to nearest even on every device (FPRoundingMode, which comes with 16-bit storage).
//   - A buffer that is accessed with several vector widths has one variable of each width at the same binding, decorated
//     Aliased. An index counts scalars, so it is shifted by the width.
//   - U8 and U16 are storage kinds: their values are 32-bit unsigned words whose upper bits are zero, so that neither
//     Int8 nor Int16 is needed.
//   - The remainder of signed integers is made of a division, because Vulkan leaves OpSRem of negative operands undefined.
//   - Emission is deterministic: equal kernels and options give equal words.
//
// # Example
//
//	low, err := ir.Lower(k, caps)
//	...
//	words, err := spirv.Emit(low, spirv.Options{})
//	fmt.Print(spirv.Text(words))
package spirv

import "github.com/anygpu/anygpu/shaders/ir"

// Widths is a set of float widths.
type Widths uint8

// The float widths.
const (
	Width16 Widths = 1 << iota
	Width32
	Width64
)

// Options says which float controls (VK_KHR_shader_float_controls, core in Vulkan 1.2) a device promises. A mode is
// declared for a width only if the kernel has floats of that width. The zero value declares none and suits every device.
type Options struct {
	// SignedZeroInfNanPreserve: infinities, NaN and the sign of zero are kept; without it a compiler may assume there are none.
	SignedZeroInfNanPreserve Widths
	// RoundingModeRTE: arithmetic and conversions round to nearest even; without it the rounding mode is undefined.
	RoundingModeRTE Widths
	// DenormPreserve: subnormal numbers are not flushed to zero.
	DenormPreserve Widths
	// Texels is how many uniform texel buffers a kernel may have ([Texels]): buffers that it only reads are then read through
	// these, which some drivers do faster.
	Texels int
}

// NativeMath returns the math functions that have an instruction in GLSL.std.450, for 32-bit floats. Not all of them are
// precise enough: Vulkan bounds the error of tanh, atan, sin and others only loosely, so a device's caps are a subset.
func NativeMath() ir.MathSet {
	var s ir.MathSet
	for o := range extMath {
		s |= ir.MathOps(o)
	}
	return s
}

// native64 is the subset that GLSL.std.450 defines for 64-bit floats.
var native64 = ir.MathOps(ir.OpSqrt, ir.OpRsqrt, ir.OpFloor, ir.OpCeil, ir.OpTrunc, ir.OpRound)

var extMath = map[ir.Op]glsl{
	ir.OpSqrt: glslSqrt, ir.OpRsqrt: glslInverseSqrt, ir.OpExp: glslExp, ir.OpExp2: glslExp2, ir.OpLog: glslLog, ir.OpLog2: glslLog2,
	ir.OpSin: glslSin, ir.OpCos: glslCos, ir.OpTan: glslTan, ir.OpAsin: glslAsin, ir.OpAcos: glslAcos, ir.OpAtan: glslAtan,
	ir.OpAtan2: glslAtan2, ir.OpSinh: glslSinh, ir.OpCosh: glslCosh, ir.OpTanh: glslTanh, ir.OpPow: glslPow,
	ir.OpFloor: glslFloor, ir.OpCeil: glslCeil, ir.OpTrunc: glslTrunc, ir.OpRound: glslRoundEven,
}
