// Package tensor holds the tensors: shapes, dtypes, devices, operators, gradients, and the engine that runs them.
//
// # Overview
//
// A [Tensor] is immutable. Operators are methods and functions that check shapes, dtypes and devices at the call and
// return a new tensor at once; the arithmetic runs later, in batches, when a value is needed ([Tensor.Item],
// [Tensor.Float32s], [Tensor.To]), a scope closes, an optimizer steps, or much work is pending. Every operator is one
// row of a table ([Ops]), from which its kernel for every device, its gradient and its tests follow;
// [DefineElementwise] adds rows.
//
// # Errors
//
// Errors stick to the tensor that failed. A chain of operators goes on, the first error wins, and every way out returns
// it: Err, Item, Float32s, Backward, [Scope.Close]. The error names the operator, the caller's file and line, and the
// operands' shapes, dtypes and devices. [Must] panics, for examples; the environment variable ANYGPU_PANIC=1 makes the
// library panic at the origin, for debugging.
//
// # Memory
//
// A [Scope] gives memory a lifetime: a result belongs to the innermost scope of its operands and is freed when that
// closes. [Tensor.Keep] moves a tensor out. Tensors that belong to no scope (parameters, tensors made directly)
// are freed by [Tensor.Free], or by the collector as a backstop. Using a freed tensor is an error that says so.
// Views (reshape, permute, expand, slice, transpose) share memory with their source, which lives until its last
// tensor is freed.
//
// # Devices
//
// Operands must be on one device; only a 0-dimensional CPU tensor may join tensors of another device in elementwise
// operators. Data leaves a device only through [Tensor.To] and [Tensor.CPU]; Item works anywhere.
//
// # Invariants
//
//   - Nothing in the public behaviour assumes that an operator has run when it returns.
//   - Operators run in program order as far as values can tell; in-place updates ([UpdateInPlace]) included.
//   - Several goroutines may use one device; a scope and its tensors belong to one goroutine at a time.
package tensor
