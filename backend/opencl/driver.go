//go:build cgo

package opencl

import (
	"errors"
	"fmt"
	"sync"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// Driver returns the OpenCL driver.
func Driver() backend.Driver { return &driver{} }

// driver remembers what the last enumeration found, so that Open means the same devices.
type driver struct {
	mu      sync.Mutex
	scanned bool
	found   []candidate
	notes   []string // what happened on each platform
	err     error
}

// Devices lists the devices of all platforms (see the package comment for the order). The error, where there is no
// device at all, says whether the library, the platforms or the devices were missing.
func (d *driver) Devices() ([]backend.Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scan()
	return d.infos(), d.err
}

func (d *driver) scan() {
	d.scanned = true
	d.found, d.notes, d.err = enumerate()
	for i := range d.found {
		d.found[i].info.Index = i
	}
}

func (d *driver) infos() []backend.Info {
	var out []backend.Info
	for _, c := range d.found {
		out = append(out, c.info)
	}
	return out
}

// Open opens device index of the last enumeration, or of a first one.
func (d *driver) Open(index int) (backend.Device, error) {
	d.mu.Lock()
	if !d.scanned {
		d.scan()
	}
	found, err := d.found, d.err
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(found) {
		return nil, fmt.Errorf("opencl:%d: %w; there are %d OpenCL devices", index, backend.ErrUnknownDevice, len(found))
	}
	c := found[index]
	if c.info.Problem != "" {
		return nil, fmt.Errorf("%s (%s): %w: %s", c.info, c.info.Name, backend.ErrUnsupported, c.info.Problem)
	}
	return open(c)
}

// open makes the context and the queue of a device.
func open(c candidate) (*device, error) {
	fail := func(what string, err error) error {
		if code := clload.CodeOf(err); code == clload.DeviceNotAvailable {
			return &backend.LostError{Device: c.info.String(), During: what, Err: code}
		}
		return fmt.Errorf("%s (%s): cannot make a %s: %w", c.info, c.info.Name, what, err)
	}
	ctx, err := cl.CreateContext([]*cl.Device{c.device})
	if err != nil {
		return nil, fail("context", err)
	}
	queue, err := ctx.CreateCommandQueue(c.device, 0)
	if err != nil {
		ctx.Release()
		return nil, fail("command queue", err)
	}
	return newDevice(c, ctx, queue), nil
}

// errNoDevices is the error of an enumeration that found nothing, with the notes that explain it.
func errNoDevices(notes []string) error {
	text := "opencl: no devices"
	for _, n := range notes {
		text += "; " + n
	}
	return errors.New(text)
}
