package opencl

import "github.com/anygpu/anygpu/backend"

func init() { backend.Register("opencl", Driver()) }
