// Package cpu is the device that is always there: the host's processor, in pure Go.
//
// # Overview
//
// Kernels are compiled to machine code by package jit where the processor has AVX-512, and run on the block executor of package interp
// elsewhere, or where a kernel has something that has no machine code; both use as many cores as GOMAXPROCS allows. Matrix products
// (kernels whose template is a lib.MatMul) run as native programs: those that accumulate in float32 by package
// internal/gemm, which has assembly for AVX-512, AVX2 and NEON; others are packed so that each result is a dot product of two
// contiguous rows. Convolutions and their gradients (lib.Conv) are products too, packed from the image as they go, and
// pooling (lib.Window) goes row by row.
//
// # Invariants
//
//   - No cgo: the package builds for every GOOS and GOARCH with CGO_ENABLED=0.
//   - Submissions run in order on one goroutine, which exists only while there is work. Transfers wait for the last submission
//     that uses the buffer.
//   - Results are deterministic: they do not depend on the number of cores.
//   - A launch that fails (a fault of a kernel, such as integer division by zero) is reported by its fence and by the next
//     synchronisation of the device, and then the device goes on.
//
// # Registration
//
// Importing the package registers the driver "cpu" with one device.
package cpu
