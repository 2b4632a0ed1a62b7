package backend

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// EnvDevice is the environment variable that chooses the default device by its string.
const EnvDevice = "ANYGPU_DEVICE"

var std = &registry{getenv: os.Getenv}

// Default opens the default device: the one that the environment variable ANYGPU_DEVICE names, else the best GPU that can be
// opened, else the CPU. Discrete GPUs come before integrated and those before virtual ones; then more memory counts.
// Where two APIs show one GPU, Vulkan comes before OpenCL. Software rasterisers, CPU OpenCL devices and accelerators are
// opened by name only. A GPU that fails to open is passed over; [List] then shows its problem.
func Default() (Device, error) { return std.defaultDevice() }

// DefaultName returns the device string of what [Default] would open, or an empty string if it would fail.
func DefaultName() string {
	info, err := std.defaultInfo()
	if err != nil {
		return ""
	}
	return info.String()
}

// Why says in a few words why the device is or is not the default.
func Why(info Info) string { return std.why(info) }

func (r *registry) env() string {
	if r.getenv == nil {
		return ""
	}
	return r.getenv(EnvDevice)
}

func (r *registry) defaultDevice() (Device, error) {
	if name := r.env(); name != "" {
		d, err := r.open(name)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", EnvDevice, name, err)
		}
		return d, nil
	}
	// A GPU that fails is no longer among gpus, but the same GPU through another API may be.
	for tried := map[string]bool{}; ; {
		gpus := r.gpus()
		if len(gpus) == 0 || tried[gpus[0].String()] {
			return r.open("cpu")
		}
		tried[gpus[0].String()] = true
		if d, err := r.open(gpus[0].String()); err == nil {
			return d, nil
		}
	}
}

func (r *registry) defaultInfo() (Info, error) {
	name := r.env()
	if name == "" {
		if g := r.gpus(); len(g) > 0 {
			return g[0], nil
		}
		name = "cpu"
	}
	info, err := r.find(name)
	if err == nil && info.Problem != "" {
		err = &UnavailableError{Device: info.String(), Name: info.Name, Problem: info.Problem}
	}
	return info, err
}

// gpus returns the GPUs that can be opened, best first, each once: the second device is the second GPU, not the first
// seen through another API.
func (r *registry) gpus() []Info {
	var out []Info
	for _, g := range r.ranked() {
		if !slices.ContainsFunc(out, func(o Info) bool { return sameGPU(o, g) }) {
			out = append(out, g)
		}
	}
	return out
}

// ranked returns the GPUs that can be opened, best first, with all their APIs.
func (r *registry) ranked() []Info {
	var gpus []Info
	for _, i := range r.list() {
		if i.Problem == "" && i.Type.IsGPU() && !software(i) {
			gpus = append(gpus, i)
		}
	}
	// APIs disagree about the memory of one GPU by a few per cent; the preferred API's figure counts for all.
	memory := make(map[Name]int64, len(gpus))
	for _, g := range gpus {
		best := g
		for _, o := range gpus {
			if sameGPU(o, g) && apiRank(o.API) < apiRank(best.API) {
				best = o
			}
		}
		memory[Name{g.API, g.Index}] = best.Memory
	}
	slices.SortStableFunc(gpus, func(a, b Info) int {
		return cmp.Or(
			cmp.Compare(typeRank(a.Type), typeRank(b.Type)),
			-cmp.Compare(memory[Name{a.API, a.Index}], memory[Name{b.API, b.Index}]),
			cmp.Compare(apiRank(a.API), apiRank(b.API)),
			strings.Compare(a.API, b.API),
			cmp.Compare(a.Index, b.Index),
		)
	})
	return gpus
}

func typeRank(t DeviceType) int {
	switch t {
	case DiscreteGPU:
		return 0
	case IntegratedGPU:
		return 1
	}
	return 2
}

func apiRank(api string) int {
	switch api {
	case "vulkan":
		return 0
	case "opencl":
		return 2
	}
	return 1
}

// software reports whether a device that calls itself a GPU is known to be a program on the CPU.
func software(i Info) bool {
	if i.Type == CPUDevice {
		return true
	}
	name := strings.ToLower(i.Name)
	for _, s := range []string{"llvmpipe", "lavapipe", "softpipe", "swiftshader", "basic render driver"} {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}

// sameGPU reports whether two infos show one GPU. Where a UUID is missing the names decide, across APIs only: one API
// lists two cards of a kind as two devices.
func sameGPU(a, b Info) bool {
	if a.API == b.API {
		return a.Index == b.Index
	}
	var zero [16]byte
	if a.UUID != zero && b.UUID != zero {
		return a.UUID == b.UUID
	}
	n := plainName(a.Name)
	return n != "" && n == plainName(b.Name)
}

var parenthesised = regexp.MustCompile(`\([^)]*\)`)

// plainName drops what drivers add to a GPU's name: "AMD Radeon RX 6800 (RADV NAVI21)", "Intel(R) Arc(TM) A770".
func plainName(s string) string {
	return strings.ToLower(strings.Join(strings.Fields(parenthesised.ReplaceAllString(s, " ")), " "))
}

func (r *registry) why(info Info) string {
	def, err := r.defaultInfo()
	self := info.String()
	env := r.env()
	switch {
	case err == nil && def.String() == self && env != "":
		return "default: " + EnvDevice + "=" + env
	case err == nil && def.String() == self && info.API == "cpu":
		return "default: no GPU is available"
	case err == nil && def.String() == self:
		return "default: the best GPU"
	case info.Problem != "":
		return "cannot be opened: " + info.Problem
	case env != "" && err != nil:
		return fmt.Sprintf("there is no default: %s=%s: %v", EnvDevice, env, err)
	case env != "":
		return fmt.Sprintf("%s=%s chooses %s", EnvDevice, env, def)
	case info.API == "cpu":
		return "a GPU is preferred: " + def.String()
	case software(info):
		return "runs on the CPU: used only by name"
	case !info.Type.IsGPU():
		return "no GPU: used only by name"
	case err != nil:
		return "there is no default: " + err.Error()
	case sameGPU(info, def):
		return fmt.Sprintf("the same GPU as %s, which is preferred", def)
	case typeRank(info.Type) != typeRank(def.Type):
		return fmt.Sprintf("%s is preferred: %s before %s", def, def.Type, info.Type)
	case info.Memory != def.Memory:
		return fmt.Sprintf("%s is preferred: it has more memory", def)
	}
	return fmt.Sprintf("%s is preferred: it comes first", def)
}
