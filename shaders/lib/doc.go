// Package lib holds the kernels: Go functions that build ir for a device's needs.
//
// # Overview
//
// Each kernel family is a spec type ([Elementwise], [Reduce], [Softmax], [MatMul], [Window], [Resample], [Random],
// [MultiTensor]) that implements [Generator]. A spec says what is computed and on what shapes; the generator picks tile sizes, vector
// widths and workgroup sizes for the [Target] and builds the kernel.
//
// # Invariants
//
//   - Key identifies the kernel: specs with the same key and target build interchangeable kernels, so callers cache
//     compiled programs by key. Sizes that would make one kernel into many are launch parameters, not constants.
//   - Values of F16 and BF16 memory are computed in F32; U8 memory is computed in I32, or as Bool if so declared.
//   - Kernels guard their accesses: any size, also 0, is safe. No floating-point atomics: results are deterministic.
//   - No kernel knows an operator: bodies come from the caller as functions that build ir, with a BodyKey that
//     identifies the function.
//
// # Example
//
//	relu := &lib.Elementwise{Name: "relu", BodyKey: "relu", Shape: []int{128, 512},
//		In: []lib.Operand{{Kind: ir.F32}}, Out: []lib.Operand{{Kind: ir.F32}},
//		Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value {
//			return []ir.Value{b.MaxNaN(in[0], b.ConstLike(in[0], 0))}
//		}}
//	target := device.Info().Target()
//	kernel, err := relu.Build(target) // once for each relu.Key()
//	program, err := device.Compile(kernel)
//	groups, params, err := relu.Launch(target)
package lib
