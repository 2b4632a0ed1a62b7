//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"errors"
	"fmt"

	vk "github.com/vulkan-go/vulkan"
)

// apiError is a failed call of the API.
type apiError struct {
	Call   string
	Result vk.Result
}

func (e *apiError) Error() string { return e.Call + ": " + resultName(e.Result) }

// resultNames covers what the calls of this package may return, with what it means to a person where that is not plain.
var resultNames = map[vk.Result]string{
	vk.ErrorOutOfHostMemory:      "VK_ERROR_OUT_OF_HOST_MEMORY",
	vk.ErrorOutOfDeviceMemory:    "VK_ERROR_OUT_OF_DEVICE_MEMORY",
	vk.ErrorInitializationFailed: "VK_ERROR_INITIALIZATION_FAILED (the driver could not start)",
	vk.ErrorDeviceLost:           "VK_ERROR_DEVICE_LOST (a crash of the driver or the device, or work that ran longer than its watchdog allows)",
	vk.ErrorMemoryMapFailed:      "VK_ERROR_MEMORY_MAP_FAILED",
	vk.ErrorLayerNotPresent:      "VK_ERROR_LAYER_NOT_PRESENT",
	vk.ErrorExtensionNotPresent:  "VK_ERROR_EXTENSION_NOT_PRESENT",
	vk.ErrorFeatureNotPresent:    "VK_ERROR_FEATURE_NOT_PRESENT",
	vk.ErrorIncompatibleDriver:   "VK_ERROR_INCOMPATIBLE_DRIVER (no driver was found, or none that fits the loader)",
	vk.ErrorTooManyObjects:       "VK_ERROR_TOO_MANY_OBJECTS",
	vk.ErrorFragmentedPool:       "VK_ERROR_FRAGMENTED_POOL",
	vk.ErrorOutOfPoolMemory:      "VK_ERROR_OUT_OF_POOL_MEMORY",
	vk.ErrorInvalidShaderNv:      "VK_ERROR_INVALID_SHADER_NV",
	-13:                          "VK_ERROR_UNKNOWN",
}

func resultName(r vk.Result) string {
	if s, ok := resultNames[r]; ok {
		return s
	}
	return fmt.Sprintf("VkResult %d", int32(r))
}

// outOfMemory reports whether err is the API's lack of memory.
func outOfMemory(err error) bool {
	var e *apiError
	if !errors.As(err, &e) {
		return false
	}
	return e.Result == vk.ErrorOutOfDeviceMemory || e.Result == vk.ErrorOutOfHostMemory || e.Result == vk.ErrorTooManyObjects ||
		e.Result == vk.ErrorMemoryMapFailed
}
