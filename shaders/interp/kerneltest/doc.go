// Package kerneltest makes random well-formed kernels with data, so that tests can compare executors and devices.
//
// # Overview
//
// [New] builds a kernel from a seed: expressions over the kinds and widths of a [Config], with branches, loops, private
// and workgroup arrays where asked. Its inputs and parameters come with it. A test runs [Case.Kernel] on what it tests and
// on interp.Check and compares the buffers with [Case.Compare].
//
// # Invariants
//
//   - The kernels have no faults: no access out of bounds, no race, no division by zero.
//   - With Config.Exact every float is a small integer, or such an integer times a constant, so that each device must give
//     the same bits: no result depends on rounding modes, subnormal numbers, NaN or fused operations. Without it, inputs
//     hold NaN, infinities, subnormal numbers and extremes, for executors that share their arithmetic.
//
// # Example
//
//	c, err := kerneltest.New(seed, kerneltest.Config{Exact: true, Control: true})
//	want, got := c.Data(), c.Data()
//	err = interp.Check(c.Kernel, c.Groups, want, c.Params, interp.CheckOptions{Uninit: c.Written})
//	// run the kernel on a device with got
//	err = c.Compare(want, got)
package kerneltest
