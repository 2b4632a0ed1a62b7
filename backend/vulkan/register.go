package vulkan

import "github.com/anygpu/anygpu/backend"

func init() { backend.Register("vulkan", theDriver) }
