//go:build !cgo

package opencl

import (
	"errors"

	"github.com/anygpu/anygpu/backend"
)

// Driver returns a driver without devices: this program was built without cgo.
func Driver() backend.Driver { return driver{} }

type driver struct{}

var errNoCgo = errors.New("opencl: this program was built without cgo, which the OpenCL driver needs; build it with CGO_ENABLED=1, a C compiler, pkg-config and the OpenCL headers (Debian: gcc pkg-config ocl-icd-opencl-dev)")

// Devices returns an error that says that the program was built without cgo.
func (driver) Devices() ([]backend.Info, error) { return nil, errNoCgo }

// Open returns the same error as Devices.
func (driver) Open(int) (backend.Device, error) { return nil, errNoCgo }

// Diagnose returns the reason that there are no devices.
func (driver) Diagnose() []string { return []string{errNoCgo.Error()} }
