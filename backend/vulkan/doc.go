// Package vulkan is the driver for Vulkan devices: GPUs of every vendor, and software devices (lavapipe, SwiftShader),
// which are listed as CPUs. Importing it registers the driver under the name "vulkan".
//
// # Overview
//
// The driver opens the Vulkan loader itself (libvulkan.so.1, vulkan-1.dll, libvulkan.1.dylib or MoltenVK), so that a
// program starts where there is none. It needs Vulkan 1.1. Objects are made through github.com/vulkan-go/vulkan; calls
// that take arrays of structures, queue submission and the recording of batches are in a small C shim (shim.h), because the
// binding may free its copies of such arrays during the call.
//
// A device has one queue, used in order. Each Submit is one command buffer and one submission; a barrier stands only
// between commands that touch the same bytes, one of them writing. Serial numbers count submissions; a fence, a
// buffer's last use and a deferred destruction are serial numbers.
//
// Memory that is both on the device and visible to the host (integrated GPUs, resizable BAR, software devices) is mapped
// and written directly while no pending work uses the buffer. Otherwise data goes through a ring of staging memory, and
// the copy is recorded in queue order, at the start of the next submission.
//
// Without cgo, and on macOS without the build tag moltenvk (the binding links MoltenVK there), the driver only says why it
// has no devices.
//
// # Environment
//
//   - ANYGPU_VULKAN_LOADER: path of the loader library to use in place of the usual names.
//   - ANYGPU_DISABLE: features to leave unused, see [backend.EnvDisable].
//   - ANYGPU_CACHE_DIR: folder of the pipeline cache in place of os.UserCacheDir()/anygpu.
//   - VK_DRIVER_FILES, VK_ICD_FILENAMES, VK_INSTANCE_LAYERS: read by the Vulkan loader.
//
// # Invariants
//
//   - device.mu guards everything but what its fields say otherwise. It is never held while waiting for the device.
//   - An object that a submission uses is destroyed only after the submission's fence.
//   - VK_ERROR_DEVICE_LOST from any call is kept: every later call returns the same [backend.LostError].
//   - Vulkan handles are never converted to unsafe.Pointer: they need not be pointers.
//   - Devices has the optional interface [backend.Diagnoser]; a device has [backend.Syncer] and [backend.LostReporter].
package vulkan
