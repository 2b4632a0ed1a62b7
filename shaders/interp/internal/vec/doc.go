// Package vec has loops over slices of float32 and 32-bit integers in vector instructions.
//
// # Overview
//
// The functions return the loops of an operation: [Arith], [Compare], [Select], [Fma], [Unary], [Integer] and so on. They
// are assembly for AVX-512 and AVX2, chosen when the program starts. A loop does as many elements as fill its vectors and
// returns how many that were; its caller does the rest. Where there are no such instructions, the functions return nil for
// all loops.
//
// [Math] and [Scalar] have the math functions of package vmath, for all elements and on every processor: where there are
// no vector instructions, in plain Go, which has the same bits but is some ten times slower than the functions of package
// math where the processor has no fused multiplication and addition of float32 that Go uses (it has on arm64).
//
// # Invariants
//
//   - Results have the bits that a plain loop in Go gives, other than which NaN a NaN is. Nothing is fused.
//   - The result may be one of the operands (in full, not shifted).
//   - No cgo.
//
// # Example
//
//	if f := vec.Arith(vec.Add); f != nil {
//		n := f.VV(d, a, b)
//		d, a, b = d[n:], a[n:], b[n:]
//	}
//	for i := range d {
//		d[i] = a[i] + b[i]
//	}
package vec

//go:generate go run -C gen . -out ../loops_amd64.s -stubs ../loops_amd64.go -pkg vec
//go:generate go run -C gen . -loops integer -out ../int_amd64.s -stubs ../int_amd64.go -pkg vec
//go:generate go run -C gen . -loops math -go ../math_go.go -out ../math_amd64.s -stubs ../math_amd64.go -pkg vec
//go:generate go test -run ^TestGenerated$ -record .
