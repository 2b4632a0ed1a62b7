package cpu

import (
	"fmt"

	"github.com/anygpu/anygpu/backend"
)

func init() { backend.Register("cpu", driver{}) }

type driver struct{}

// Devices lists the one device.
func (driver) Devices() ([]backend.Info, error) { return []backend.Info{describe()}, nil }

// Open opens it.
func (driver) Open(index int) (backend.Device, error) {
	if index != 0 {
		return nil, fmt.Errorf("cpu: there is one device, cpu; device %d was asked for", index)
	}
	return New(), nil
}
