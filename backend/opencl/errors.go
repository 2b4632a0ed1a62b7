//go:build cgo

package opencl

import (
	"fmt"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// check passes the outcome of a call of the API through the test hook.
func (d *device) check(during string, code clload.Code) clload.Code {
	if d.inject != nil {
		return d.inject(during, code)
	}
	return code
}

// fail makes the error of a failed call. The lock is held.
func (d *device) fail(during string, code clload.Code) error {
	switch {
	case d.lost != nil:
		return d.lost
	case isLost(code):
		return d.lose(during, code)
	case isOutOfMemory(code):
		return d.outOfMemory(0, fmt.Errorf("%s: %w", during, code))
	}
	return fmt.Errorf("%s: %s: %w", d.info, during, code)
}

// failWork makes the error of a command that ended with an error. Whatever the code, the queue's state and the buffers' contents are unknown
// then: NVIDIA reports an illegal access as CL_OUT_OF_RESOURCES here, and refuses all later work.
func (d *device) failWork(during string, code clload.Code) error {
	if d.lost != nil {
		return d.lost
	}
	return d.lose(during, code)
}

// lose records that the device is lost.
func (d *device) lose(during string, code clload.Code) error {
	d.lost = &backend.LostError{Device: d.info.String(), During: during, Err: code}
	return d.lost
}

func (d *device) outOfMemory(size int64, err error) error {
	return &backend.OutOfMemoryError{
		Device: d.info.String(), Requested: size, Allocated: d.allocated, Reserved: d.allocated, Total: d.info.Memory, Err: err,
	}
}

// isLost reports whether a code means that the device or its context is gone. Drivers have no common code for it: after a
// fault of a kernel NVIDIA's queue becomes invalid.
func isLost(code clload.Code) bool {
	switch code {
	case clload.DeviceNotAvailable, clload.InvalidCommandQueue, clload.InvalidContext, clload.ExecStatusError, clload.IllegalAccessNVIDIA:
		return true
	}
	return false
}

func isOutOfMemory(code clload.Code) bool {
	return code == clload.AllocationFailure || code == clload.OutOfResources || code == clload.OutOfHostMemory
}
