// Package interp executes kernels of package ir on the CPU, in two ways.
//
// # Overview
//
// [Check] is the checking executor. It runs a kernel slowly, all invocations of a workgroup in lockstep, and reports
// out-of-bounds and misaligned access, races between invocations, reads of memory that nobody wrote, divergent
// barriers, integer division by zero, shifts that are too large and loops that cannot end. It defines what the IR means.
//
// [Compile] makes a [Program] for the block executor, which the CPU device runs: the same results (the same scalar
// functions), a block of about 1,024 lanes an instruction, on several cores. Float32 arithmetic, comparisons, choices and
// conversions of halves use vector instructions where internal/vec has them, with the same bits.
//
// # Invariants
//
//   - Float operations are rounded one by one: F32 in float32, F64 in float64, F16 in float32 rounded to F16 after each
//     operation. Fma is a product and a sum, each rounded.
//   - Math functions of F32 are those of package vmath, within 2 ULP and with the same bits on every processor; the few
//     that it has not are computed in float64 and rounded. F16 goes by way of F32, as do all conversions to F16 and BF16.
//   - Min(x, y) is y if y < x, else x; Max(x, y) is y if y > x, else x. That gives NaN or a number if an operand is NaN;
//     no kernel may rely on which.
//   - Both run original kernels and kernels that [ir.Lower] rewrote: a load or store whose value has another kind than
//     the memory converts as [ir.OpConvert] does.
//   - Memory is in the byte order of the host.
//   - A fault of a kernel is an error and never a panic; no access leaves the buffers given.
//
// # Example
//
//	p, err := interp.Compile(k)
//	if err != nil { … }
//	err = p.Run([3]int{groups, 1, 1}, [][]byte{x, y, out}, []uint32{n})
package interp
