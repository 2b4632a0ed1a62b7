package backend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// ErrUnavailable is matched by the error of opening a device that is listed but cannot be opened.
var ErrUnavailable = errors.New("device is not available")

// NameError is a malformed device string. It matches [ErrUnknownDevice]; the wording is PyTorch's.
type NameError struct {
	Device string // the string
	Index  string // its index, where that is what is wrong
}

func (e *NameError) Error() string {
	const want = `; expected a form like "cpu", "gpu" or "vulkan:1"`
	switch {
	case e.Device == "":
		return "Device string must not be empty" + want
	case e.Index != "":
		return fmt.Sprintf("Could not parse device index '%s' in device string '%s'", e.Index, e.Device)
	}
	return fmt.Sprintf("Invalid device string: '%s'", e.Device) + want
}

// Is matches ErrUnknownDevice.
func (e *NameError) Is(target error) bool { return target == ErrUnknownDevice }

// UnknownDeviceError says that no registered driver has the device, and what there is instead.
type UnknownDeviceError struct {
	Device  string   // the device string
	Drivers []string // the registered drivers
	Devices []string // where the driver is known: its devices, such as "vulkan:0 (llvmpipe)"
	Hint    string   // what to do, such as which import is probably forgotten
	Err     error    // why the driver has no devices, if it said so
}

func (e *UnknownDeviceError) Error() string {
	var sb strings.Builder
	api, _, _ := strings.Cut(e.Device, ":")
	known := api == gpuName
	for _, d := range e.Drivers {
		known = known || d == api
	}
	switch {
	case len(e.Drivers) == 0:
		fmt.Fprintf(&sb, "unknown device %s: no driver is registered", e.Device)
	case !known:
		fmt.Fprintf(&sb, "Expected one of %s device type at start of device string: %s", strings.Join(e.Drivers, ", "), e.Device)
	case api == gpuName && len(e.Devices) == 0:
		fmt.Fprintf(&sb, "unknown device %s: no GPU was found (registered drivers: %s)", e.Device, strings.Join(e.Drivers, ", "))
	case len(e.Devices) == 0:
		fmt.Fprintf(&sb, "unknown device %s: %s has no devices", e.Device, api)
	default:
		fmt.Fprintf(&sb, "unknown device %s: there is only %s", e.Device, strings.Join(e.Devices, ", "))
	}
	if e.Err != nil {
		fmt.Fprintf(&sb, ": %v", e.Err)
	}
	if e.Hint != "" {
		sb.WriteString("; " + e.Hint)
	}
	return sb.String()
}

// Is matches ErrUnknownDevice.
func (e *UnknownDeviceError) Is(target error) bool { return target == ErrUnknownDevice }

// Unwrap returns the driver's error.
func (e *UnknownDeviceError) Unwrap() error { return e.Err }

// UnavailableError says why a device that is listed cannot be opened. It matches [ErrUnavailable].
type UnavailableError struct {
	Device  string // the device string
	Name    string // as the API reports it
	Problem string // Info.Problem, or empty
	Err     error  // the driver's error, or nil
}

func (e *UnavailableError) Error() string {
	s := e.Device
	if e.Name != "" {
		s += " (" + e.Name + ")"
	}
	s += " cannot be opened"
	switch {
	case e.Err != nil:
		s += ": " + e.Err.Error()
	case e.Problem != "":
		s += ": " + e.Problem
	}
	return s
}

// Is matches ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns the driver's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// FromIR makes errors of ir.Lower about limits and missing capabilities also match [ErrLimit] and [ErrUnsupported];
// other errors are returned as they are. Compile of a device from [Open] does that for every driver.
func FromIR(err error) error {
	for from, to := range map[error]error{ir.ErrLimit: ErrLimit, ir.ErrUnsupported: ErrUnsupported} {
		if errors.Is(err, from) && !errors.Is(err, to) {
			return &irError{err, to}
		}
	}
	return err
}

// irError is an error of package ir that matches this package's sentinel too.
type irError struct {
	error
	as error
}

func (e *irError) Is(target error) bool { return target == e.as }
func (e *irError) Unwrap() error        { return e.error }
