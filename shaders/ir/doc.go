// Package ir is the kernel language: a small typed intermediate representation that every compute kernel of
// anygpu is written in, once for all devices.
//
// # Overview
//
// A kernel is built by a Go function that calls methods of a [Builder]. Each call appends an instruction; the Go
// code itself is a macro language (a Go loop is unrolled code, [Builder.For] is a loop on the device). [Verify]
// checks a finished kernel against one rule per instruction, [Lower] rewrites it to what a device can do
// ([Caps]), and the emitters of packages spirv and clc turn the result into SPIR-V words or OpenCL C text.
// Package interp executes kernels on the CPU and so defines what they mean.
//
// # Values and types
//
// A [Value] is the result of an instruction, in static single assignment form. Its [Type] is a scalar kind with
// 1, 2, 4, 8 or 16 lanes. Operations work lane by lane; where one operand is a scalar and the other a vector of the
// same kind, the builder splats the scalar. Mutable state is explicit: [Builder.Var] declares a variable, and
// [Builder.Get] and [Builder.Set] read and write it.
//
//   - Bool has no memory representation; memory holds U8.
//   - F32, F64, I32, U32 and I64 take arithmetic. F16 takes arithmetic too, rounded to F16 after each operation.
//   - BF16, U8 and U16 are storage kinds: they can be loaded, stored, selected, converted and bit-cast only.
//
// # Memory
//
// A [Mem] is an array of one scalar kind: a global buffer (a binding, in order of declaration), workgroup (shared)
// memory, or a private array of each invocation. An index is a U32 that counts scalar elements, also for a vector
// access, and for a vector access it must be a multiple of the number of lanes. The size in bytes of a global
// buffer is a multiple of 4; the last word may reach past the last element. Out-of-bounds access is a fault of
// the kernel; it has to guard itself.
//
// # Invariants
//
//   - Floating-point operations are rounded one by one (no contraction, no reassociation); only [Builder.Fma] may be
//     computed with one rounding or two.
//   - Conversion of a float to an integer truncates and saturates; NaN gives 0. Conversion to a narrower integer
//     wraps. Conversion to a narrower float rounds to nearest even. Conversion to Bool is x != 0; Bool converts to 0 or 1.
//     Conversions between F16 or BF16 and any kind but F32 go by way of F32, so F64 to F16 rounds twice. NaN stays NaN,
//     but its other bits may change.
//   - Float Min and Max are unspecified if an operand is NaN; [Builder.MaxNaN] and [Builder.MinNaN] propagate NaN.
//     Tests for NaN and infinity ([Builder.IsNaN], [Builder.IsInf], [Builder.IsFinite]) are integer bit tests,
//     because compilers may assume that there are none.
//   - Integer division by zero, a shift by the width or more, and reading memory or a variable that nobody wrote are faults.
//   - A barrier must be reached by every invocation of a workgroup; there is no return instruction. So must an exchange within a
//     subgroup ([Builder.ShuffleXor]); a kernel with exchanges says how large its subgroups are.
//   - Scalar parameters are 4-byte values, [MaxParams] at most (Vulkan's 128 bytes of push constants).
//   - A builder never panics: the first error sticks and [Builder.Build] returns it.
//   - A value is visible after its definition, in the same block and in blocks inside it.
//
// There are no matrix units yet: decision 0009 says what cooperative matrices will look like here, and why they wait.
//
// # Lowering
//
// [Lower] runs passes that each remove something a device lacks; the comment of each pass says what holds after it,
// that of Lower what holds at the end. Math functions that are too inaccurate on a device ([VulkanMath], [OpenCLMath]) are
// replaced by code within OpenCL's bounds, made of operations that all devices round alike.
//
// # Example
//
//	b := ir.NewBuilder("axpy", 64, 1, 1)
//	x, y := b.Buffer("x", ir.F32, ir.Read), b.Buffer("y", ir.F32, ir.ReadWrite)
//	n, a := b.Param("n", ir.U32), b.Param("a", ir.F32)
//	i := b.LinearID()
//	b.If(b.Lt(i, n), func() {
//		b.Store(y, i, b.Add(b.Mul(a, b.Load(x, i, 1)), b.Load(y, i, 1)))
//	}, nil)
//	k, err := b.Build()
package ir
