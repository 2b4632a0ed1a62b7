// Package all brings every driver of this module: cpu, vulkan and opencl. Import it for its effect:
//
//	import _ "github.com/anygpu/anygpu/backend/all"
//
// A program that wants fewer imports the drivers' own packages. Without cgo the Vulkan and OpenCL drivers report why
// they have no devices.
package all

import (
	_ "github.com/anygpu/anygpu/backend/cpu"    // the device that is always there
	_ "github.com/anygpu/anygpu/backend/opencl" // OpenCL 1.2 and later
	_ "github.com/anygpu/anygpu/backend/vulkan" // Vulkan 1.1 and later
)
