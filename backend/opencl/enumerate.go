//go:build cgo

package opencl

import (
	"fmt"
	"slices"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// candidate is a device found by an enumeration.
type candidate struct {
	info   backend.Info
	device *cl.Device
	config fpConfig
}

// enumerate finds the devices of all platforms. A platform that fails is passed over with a note; the error is set only if
// there is no device at all.
func enumerate() (found []candidate, notes []string, err error) {
	library, err := clload.Library()
	if err != nil {
		return nil, nil, fmt.Errorf("opencl: no OpenCL library: %w; %s", err, installHint)
	}
	platforms, err := platforms()
	if err != nil {
		return nil, nil, fmt.Errorf("opencl: %s found no platform: %w; %s", library, err, installHint)
	}
	for i, p := range platforms {
		name := fmt.Sprintf("platform %d", i)
		if s, code := clload.PlatformString(clload.HandleOf(p), platformName); code == 0 {
			name = fmt.Sprintf("platform %s", s)
		}
		devices, err := devicesOf(p)
		switch {
		case clload.CodeOf(err) == clload.DeviceNotFound:
			notes = append(notes, name+": no devices")
			continue
		case err != nil:
			notes = append(notes, fmt.Sprintf("%s: passed over: %v", name, err))
			continue
		}
		n := 0
		for _, dev := range devices {
			c, err := describe(p, dev)
			if err != nil {
				notes = append(notes, fmt.Sprintf("%s: a device was passed over: %v", name, err))
				continue
			}
			found = append(found, c)
			n++
		}
		notes = append(notes, fmt.Sprintf("%s: %d devices", name, n))
	}
	sortCandidates(found)
	if len(found) == 0 {
		return nil, notes, errNoDevices(append(slices.Clone(notes), installHint))
	}
	return found, notes, nil
}

// sortCandidates orders devices by rank, and keeps the platforms' order of equals.
func sortCandidates(list []candidate) {
	slices.SortStableFunc(list, func(a, b candidate) int { return a.rank() - b.rank() })
}

// rank orders devices: usable ones before those with a problem, then by type, then those without doubts first.
func (c candidate) rank() int {
	r := map[backend.DeviceType]int{
		backend.DiscreteGPU: 0, backend.VirtualGPU: 1, backend.IntegratedGPU: 2, backend.Accelerator: 3, backend.OtherDevice: 4, backend.CPUDevice: 5,
	}[c.info.Type] * 2
	if suspect(c.info) {
		r++
	}
	if c.info.Problem != "" {
		r += 100
	}
	return r
}

// platforms is the binding's GetPlatforms, which panics where there are more platforms than it has room for.
func platforms() (ps []*cl.Platform, err error) {
	defer rescue("platforms", &err)
	ps, err = cl.GetPlatforms()
	if err != nil {
		return nil, clload.CodeOf(err)
	}
	if len(ps) == 0 {
		return nil, clload.PlatformNotFound
	}
	return ps, nil
}

func devicesOf(p *cl.Platform) (ds []*cl.Device, err error) {
	defer rescue("devices", &err)
	return cl.GetDevices(p, cl.DeviceTypeAll)
}

// rescue makes an error of a panic of the binding.
func rescue(what string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the binding failed to list %s: %v", what, r)
	}
}
