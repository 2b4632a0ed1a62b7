package ir

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is.
var (
	// ErrInvalid is matched by every error of Verify.
	ErrInvalid = errors.New("ir: kernel is ill-formed")
	// ErrUnsupported is matched by errors of Lower about something a device cannot do and no rewriting can replace.
	ErrUnsupported = errors.New("ir: not supported by the device")
	// ErrLimit is matched by errors of Lower about a limit of the device.
	ErrLimit = errors.New("ir: device limit exceeded")

	errNilKernel = fmt.Errorf("%w: kernel is nil", ErrInvalid)
)

// VerifyError says which rule a kernel breaks, and where. It matches ErrInvalid.
type VerifyError struct {
	Kernel string // its name
	Instr  string // the instruction as printed; empty if the rule is about a declaration
	Rule   string // what is wrong
}

func (e *VerifyError) Error() string {
	if e.Instr == "" {
		return fmt.Sprintf("ir: kernel %s: %s", e.Kernel, e.Rule)
	}
	return fmt.Sprintf("ir: kernel %s: in %q: %s", e.Kernel, e.Instr, e.Rule)
}

// Is matches ErrInvalid.
func (e *VerifyError) Is(target error) bool { return target == ErrInvalid }

// UnsupportedError says what a device lacks. It matches ErrUnsupported.
type UnsupportedError struct {
	Kernel string
	Instr  string // the instruction that needs it, as printed; may be empty
	What   string // the missing capability
}

func (e *UnsupportedError) Error() string {
	if e.Instr == "" {
		return fmt.Sprintf("ir: kernel %s: the device has no %s", e.Kernel, e.What)
	}
	return fmt.Sprintf("ir: kernel %s: in %q: the device has no %s", e.Kernel, e.Instr, e.What)
}

// Is matches ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// LimitError says which limit of a device a kernel exceeds. It matches ErrLimit.
type LimitError struct {
	Kernel  string
	Limit   string // such as "workgroup memory in bytes"
	Wanted  int64
	Allowed int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("ir: kernel %s: %s: the kernel wants %d, the device allows %d", e.Kernel, e.Limit, e.Wanted, e.Allowed)
}

// Is matches ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
