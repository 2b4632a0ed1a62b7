package opencl

import "fmt"

// BuildError is the error of a kernel that the device's compiler refused.
type BuildError struct {
	Device string
	Kernel string
	Log    string // what the compiler said
	Source string // the OpenCL C text, whose lines the log refers to
	Err    error
}

func (e *BuildError) Error() string {
	s := fmt.Sprintf("%s: kernel %s does not compile: %v", e.Device, e.Kernel, e.Err)
	if e.Log != "" {
		s += "\n" + e.Log
	}
	return s
}

// Unwrap returns the API's error.
func (e *BuildError) Unwrap() error { return e.Err }
