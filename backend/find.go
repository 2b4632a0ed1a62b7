package backend

import (
	"fmt"
	"strings"
)

const modulePath = "github.com/anygpu/anygpu/backend/"

// find resolves a device string.
func (r *registry) find(name string) (Info, error) {
	n, hasIndex, err := ParseName(name)
	if err != nil {
		return Info{}, err
	}
	if n.API == gpuName {
		gpus := r.gpus()
		if n.Index < len(gpus) {
			return gpus[n.Index], nil
		}
		return Info{}, r.noGPU(name, gpus)
	}
	e := r.entry(n.API)
	if e == nil {
		return Info{}, &UnknownDeviceError{Device: name, Drivers: r.drivers(), Hint: r.importHint(n.API)}
	}
	infos, err := e.devices()
	if !hasIndex {
		// The first that works; where none does, the first one's problem is what there is to say.
		for _, i := range infos {
			if i.Problem == "" {
				return i, nil
			}
		}
	}
	if n.Index < len(infos) {
		return infos[n.Index], nil
	}
	u := &UnknownDeviceError{Device: name, Drivers: r.drivers(), Devices: describe(infos), Err: err}
	if len(infos) == 0 {
		u.Hint = "run `anygpu devices` to see what was looked for"
	}
	return Info{}, u
}

// describe returns "vulkan:0 (name)" for each device.
func describe(infos []Info) []string {
	var out []string
	for _, i := range infos {
		s := i.String()
		if i.Name != "" {
			s += " (" + i.Name + ")"
		}
		out = append(out, s)
	}
	return out
}

func (r *registry) noGPU(name string, gpus []Info) error {
	u := &UnknownDeviceError{Device: name, Drivers: r.drivers()}
	for i, g := range gpus {
		u.Devices = append(u.Devices, fmt.Sprintf("gpu:%d (%s, %s)", i, g, g.Name))
	}
	var hints []string
	for _, i := range r.list() {
		if i.Problem != "" {
			hints = append(hints, fmt.Sprintf("%s cannot be opened: %s", i, i.Problem))
		}
	}
	if r.entry("vulkan") == nil || r.entry("opencl") == nil {
		hints = append(hints, `more drivers come with import _ "`+modulePath+`all"`)
	}
	hints = append(hints, "run `anygpu devices` to see what was looked for")
	u.Hint = strings.Join(hints, "; ")
	return u
}

// importHint says what a user who asked for an unregistered API probably wants.
func (r *registry) importHint(api string) string {
	low := strings.ToLower(api)
	if low != api && r.entry(low) != nil {
		return fmt.Sprintf("device strings are in lower case: %q", low)
	}
	switch low {
	case "vulkan", "opencl":
		return fmt.Sprintf("forgotten import? import _ %q or import _ %q", modulePath+low, modulePath+"all")
	case "cpu", "null":
		return fmt.Sprintf("forgotten import? import _ %q", modulePath+low)
	case "cuda", "hip", "xpu", "mps":
		return fmt.Sprintf("such a GPU is reached as \"gpu\", \"vulkan\" or \"opencl\", with import _ %q", modulePath+"all")
	}
	return fmt.Sprintf("forgotten import of the driver's package? the drivers of this module come with import _ %q", modulePath+"all")
}
