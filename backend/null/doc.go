// Package null is a device that runs nothing: for tests of scheduling, code generation, memory plans and error paths
// without hardware.
//
// # Overview
//
// Buffers have a size but no memory: writes are counted, reads give zeros. [Device.Compile] verifies and lowers the
// kernel for the configured capabilities, so that a faulty kernel is found. [Device.Submit] checks each launch against
// its program (buffers, sizes, alignment, parameters, grid, use after free) and records it.
//
// The device can be told to fail: [Device.Lose], [Device.LoseAfter], [Device.FailAllocAfter], and Config.Memory for a device
// that is full.
//
// # Registration
//
// Importing the package registers the driver "null" with one device, which is never the default. [New] makes further
// devices that no device string leads to. To get at the methods of a device from [backend.Open], use
// backend.As[*null.Device].
package null
