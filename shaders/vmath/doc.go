// Package vmath defines float32 math functions as short straight programs of vector operations.
//
// # Overview
//
// [Of] returns the definition of a math function of package ir: a [Func], whose instructions each have a vector
// instruction of AVX-512, AVX2 and NEON or a few. Generators translate it: package interp to assembly and plain Go, a
// compiler of kernels to machine code in place. There is one definition, so all give the same bits.
//
// # Invariants
//
//   - Results are within 2 ULP for every float32, subnormal ones too; infinities, NaN and the sign of zero are as in C.
//     exp and exp2 are within 1 ULP; the tests of package interp/internal/vec state the bound of each function.
//   - Every operation rounds to nearest even, once; [Fma] and [Fnma] round the sum of the exact product once. Subnormal
//     numbers are not flushed.
//   - A program has no branches, and no instruction faults. A function with a [Func.Limit] leaves other arguments to its user.
//
// # Example
//
//	f := vmath.Of(ir.OpExp)
//	for i, in := range f.Code {
//		switch in.Op { … } // value i, from values in.A, in.B and in.C
//	}
package vmath
