// Package clload defines the OpenCL functions that the binding and the driver call, as C functions that load the
// OpenCL library when the first of them is called.
//
// # Overview
//
// The binding (github.com/jgillich/go-opencl/cl) is linked with -lOpenCL: a plain program that uses it does not start on
// a machine without libOpenCL. Here every cl function exists in the program itself, so that the linker, told
// --as-needed, records no dependency. The functions forward to the library found by dlopen; where there is none, each
// returns CL_PLATFORM_NOT_FOUND_KHR (-1001), which is also what OpenCL's own loader returns where it finds no
// driver.
//
// # Invariants
//
//   - The functions are hidden: no library loaded later binds to them in place of its own.
//   - They are typed as in the Khronos headers, so that they are right for every calling convention.
//   - The library is loaded once and never unloaded; drivers do not survive that.
package clload
