// Package jit compiles kernels of package ir to machine code of x86-64 processors with AVX-512.
//
// # Overview
//
// [Compile] lowers a kernel, makes instructions with virtual registers of it, assigns registers by linear scan and encodes it. [Program.Run] calls
// the code from several goroutines, for short times each. Package interp runs the kernels for which there is no code ([ErrUnsupported]).
//
// Sixteen invocations of a workgroup (eight if the kernel has 64-bit values) are the lanes of a vector register. What is the same for all of them is
// in general registers; positions are a general register and a step from lane to lane, so that neighbours load and store whole
// vectors. Where lanes take different branches a mask register says which are active. A kernel that has vectors itself runs one
// invocation after the other, with its vectors in vector registers.
//
// # Invariants
//
//   - Results are those of package interp but for math functions, which are within the bounds of package ir's replacements, and Fma, which rounds once.
//   - The bits of a result do not depend on the number of threads.
//   - Each access to memory is checked against the buffer's size, each integer division against zero, each loop for progress; a fault ends the run with an
//     error. Lanes that are not active access nothing.
//   - Code is never writable and executable at once.
package jit

// Name says what kernels are compiled to.
const Name = "AVX-512 machine code"
