// Package backend is what lies between tensors and hardware: the interfaces that a driver implements, the registry of
// drivers, device strings, the choice of the default device, errors, and what all drivers share: the caching allocator
// and the launch queue.
//
// # Overview
//
// A backend moves memory and runs programs; it knows no operators. A [Driver] lists and opens devices, and registers
// itself in init ([Register]), so that a program chooses its drivers by import, as with database/sql:
//
//	import _ "github.com/anygpu/anygpu/backend/all"
//
// [List] describes the devices there are, [Diagnose] says what was looked for, [IsAvailable] answers for one name.
// [Open] opens by name, [Default] what is best; several users of one device share it, and the last Close closes it.
// An [Allocator] hands out the device's memory, and a [Queue] collects launches and submits them.
//
// # Device strings
//
// They follow PyTorch's grammar ([ParseName]): the driver's name, and an index after a colon.
//
//	cpu        the CPU, always there
//	vulkan     the first Vulkan device that can be opened
//	opencl:1   the second OpenCL device, whatever it is
//	gpu        the best GPU of any API
//	gpu:1      the second best
//
// The environment variable ANYGPU_DEVICE holds such a string to choose the default device. Without it that is the best
// GPU, else the CPU. A software rasteriser or an OpenCL device on the CPU is opened by name only.
//
// ANYGPU_DISABLE names optional features that drivers are to leave unused ([EnvDisable]); [Info].Notes says what was switched off.
//
// # Optional interfaces
//
// Driver and Device are small. What only some have is an interface of its own, found by type assertion on what a driver
// made, or by [As] on a device from Open:
//
//   - [Diagnoser], of a driver: what it looked for and found
//   - [Overrider]: native programs for whole kernel templates
//   - [Syncer]: waiting for all work without a fence
//   - [LostReporter]: knowing that the device was lost
//   - [Wrapper]: standing for another device
//   - [CloseHooker]: functions to run before the device closes
//
// A device from Open is a Wrapper and a CloseHooker, and passes Overrider and Syncer on, with the obvious substitute where
// the driver's device has none.
//
// # Invariants
//
//   - A device's queue is in order: a launch or a transfer sees everything submitted before it. Hence memory may be used
//     anew as soon as its last use was submitted.
//   - Programs and buffers may be freed right after the submission that uses them, not before it.
//   - No panic of a driver reaches the caller of List, Open, IsAvailable, Diagnose or Compile.
//   - A lost device returns errors that match [ErrDeviceLost], at the next wait and from then on; Close is quiet, other
//     devices go on, and Open opens it anew.
//   - Errors match the sentinels ([ErrUnknownDevice], [ErrOutOfMemory], [ErrDeviceLost], [ErrLimit], [ErrUnsupported],
//     [ErrClosed], [ErrUnavailable]) by errors.Is.
//
// # A backend of one's own
//
// Implement Driver, Device, Buffer, Program and Fence, and register the driver under a new name. Devices of GPU type take
// part in the choice of the default. Package null is the smallest complete device to start from.
package backend
