package backend

import (
	"errors"
	"fmt"
)

// Errors that devices return, to be tested with errors.Is. Errors of the types below match their sentinel.
var (
	ErrUnknownDevice = errors.New("unknown device")
	ErrOutOfMemory   = errors.New("out of device memory")
	ErrDeviceLost    = errors.New("device lost")
	ErrLimit         = errors.New("device limit exceeded")
	ErrUnsupported   = errors.New("not supported by the device")
	ErrClosed        = errors.New("device is closed")
)

// OutOfMemoryError says what was asked for; Summary is the allocator's memory summary.
type OutOfMemoryError struct {
	Device    string
	Requested int64 // bytes
	Allocated int64 // bytes in use by tensors
	Reserved  int64 // bytes held from the device
	Total     int64 // bytes of the device, 0 if unknown
	Summary   string
	Err       error // the API's error
}

func (e *OutOfMemoryError) Error() string {
	s := fmt.Sprintf("%s: out of memory: tried to allocate %d bytes; %d bytes are in use by tensors, %d bytes are reserved", e.Device, e.Requested, e.Allocated, e.Reserved)
	if e.Total > 0 {
		s += fmt.Sprintf(", the device has %d bytes", e.Total)
	}
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	if e.Summary != "" {
		s += "\n" + e.Summary
	}
	return s
}

// Is matches ErrOutOfMemory.
func (e *OutOfMemoryError) Is(target error) bool { return target == ErrOutOfMemory }

// Unwrap returns the API's error.
func (e *OutOfMemoryError) Unwrap() error { return e.Err }

// LimitError says which limit of the device was exceeded.
type LimitError struct {
	Device    string
	Limit     string // the limit's name, such as "maxStorageBufferRange"
	Requested int64
	Allowed   int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %s is %d, but %d was requested", e.Device, e.Limit, e.Allowed, e.Requested)
}

// Is matches ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// LostError says that the device was lost, and during what.
type LostError struct {
	Device string
	During string
	Err    error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s: device lost during %s: %v; close it and open it again, its contents are gone", e.Device, e.During, e.Err)
}

// Is matches ErrDeviceLost.
func (e *LostError) Is(target error) bool { return target == ErrDeviceLost }

// Unwrap returns the API's error.
func (e *LostError) Unwrap() error { return e.Err }
