// Package clc turns kernels of package ir into OpenCL C 1.2 text.
//
// # Overview
//
// [Emit] takes a kernel that [ir.Lower] has rewritten to an OpenCL device's capabilities, verifies it and prints it:
// one statement an instruction, structured control flow as if and for. The text needs no include and no build option
// but -cl-std=CL1.2. [EntryPoint] is the name of its only kernel function.
//
// # Arguments
//
// For each global buffer, in order of binding, the function takes a pointer and a ulong: the offset in bytes of the
// region within the buffer (OpenCL's sub-buffers have alignment rules of their own and exist in no binding). The
// scalar parameters follow, 4 bytes each, in order.
//
// # Invariants
//
//   - Floating-point operations are rounded one by one: contraction is off, mad is never used, and no construct
//     depends on an unsafe build option. Constants are exact: hexadecimal literals, or bits where there is no literal.
//   - Signed integer arithmetic wraps: C leaves signed overflow undefined, so it is done on the unsigned type.
//   - A scalar Bool is an int that is 0 or 1; a Bool vector is an int vector whose lanes are 0 or -1, which is what
//     OpenCL's vector comparisons give. Where a mask of another width is needed it is converted at the use.
//   - Vector accesses are aligned: an index is a multiple of the number of lanes, and every region starts at a
//     multiple of [Align] bytes.
//   - Without F16 values (a device without cl_khr_fp16) F16 memory is read and written as float with the core functions
//     vload_half and vstore_half_rte, which convert exactly and round to nearest even.
//   - The text is deterministic.
//
// # Example
//
//	k, err := ir.Lower(kernel, device.Info().Caps)
//	text, err := clc.Emit(k, clc.Options{})
package clc
