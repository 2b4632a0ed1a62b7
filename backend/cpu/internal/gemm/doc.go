// Package gemm multiplies matrices of float32 values on the host's processor.
//
// # Overview
//
// A [Product] says what to compute: C = A B + bias for a batch of matrices in memory of any strides, whose elements may
// be float16 or bfloat16. Its Run picks one of three ways by the shape alone:
//
//   - Dot products, if both operands are contiguous along K and one of them is small: nothing is packed.
//   - Outer products straight from memory, for the operands where packing would cost more than it saves.
//   - Outer products of packed panels, in blocks that fit the caches (Goto and van de Geijn, "Anatomy of High-Performance
//     Matrix Multiplication", 2008). float16 and bfloat16 become float32 while they are packed.
//
// The kernels are assembly for AVX-512 (8 rows by 32 columns) and AVX2 with FMA (6 by 16), chosen when the program
// starts, NEON for arm64 (8 by 8), and plain Go elsewhere. Directory gen writes the assembly.
//
// # Invariants
//
//   - The result depends on the operands, the shape and the instruction set, not on the number of workers or the alignment. Outer products
//     add along K in order, in blocks of fixed depth, so that AVX-512 and AVX2 give the same bits.
//   - No product is left out: a zero times NaN or infinity gives NaN, as in a plain loop.
//   - Nothing outside the operands is read and nothing outside C is written, not even within a vector.
//   - No cgo.
//
// # Example
//
//	p := gemm.Product{M: m, N: n, K: k, Batch: 1,
//		A: gemm.Matrix{Data: a, Row: k, Col: 1}, // row-major float32
//		B: gemm.Matrix{Data: b, Row: 1, Col: k}, // the transpose of a row-major matrix
//		C: c}
//	err := p.Run(pool)
package gemm

//go:generate go run -C gen . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg gemm
//go:generate go run -C gen . -out ../dots_amd64.s -stubs ../dots_amd64.go -pkg gemm dots
//go:generate go run -C gen . arm64 ../kernels_arm64.s ../kernels_arm64.go
//go:generate go test -run ^TestGenerated$ -record .
