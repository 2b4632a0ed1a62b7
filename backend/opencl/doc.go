// Package opencl is the driver for OpenCL devices (1.2 and later). Importing it registers the API "opencl".
//
// # Overview
//
// The driver enumerates every platform and device. Objects are made through github.com/jgillich/go-opencl/cl; what that
// binding lacks or does unsafely (a real flush, event status, a batch of launches in one call into C, long property
// strings, build logs) is in internal/clload, which also loads the OpenCL library at run time, so that a program
// starts where there is none. Without cgo the driver reports why it has no devices.
//
// A device has one in-order command queue. Submit sets the arguments of the batch's kernels, enqueues them and
// flushes; a fence is the last command's event.
//
// # Invariants
//
//   - Kernels do not keep their buffers alive in OpenCL. The device holds every buffer and program until it is freed, and a
//     freed one until the commands that use it are complete.
//   - Every event is released exactly once: by the poll that finds its command complete, or by Close.
//   - Nothing that blocks happens under the device's lock, except where the API itself may block in an enqueue.
//   - Host memory of a pending transfer is a C copy, or Go memory that is pinned and whose owner waits.
//   - The first error that means a lost device sticks.
//
// # Devices
//
// Devices are ordered by type (discrete GPUs first, CPUs last), those that cannot be opened at the end. Big-endian
// devices, devices without a compiler and OpenCL 1.1 are listed with a problem. rusticl in Mesa before 23.1 is listed
// with a note: it computed wrong results for some kernels.
package opencl
