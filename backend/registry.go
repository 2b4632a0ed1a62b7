package backend

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Diagnoser is a driver that can say what it looked for and found: loader, ICD files, platforms, reasons. One finding a string.
type Diagnoser interface {
	Diagnose() []string
}

// registry is the set of drivers and of opened devices. The package has one; tests make their own.
type registry struct {
	mu      sync.Mutex
	entries map[string]*entry
	getenv  func(string) string
}

// entry is a registered driver. Its lock is not the registry's: looking for Vulkan devices, which may take a second, does
// not hold up opening the CPU.
type entry struct {
	name   string
	driver Driver

	mu      sync.Mutex
	listed  bool
	infos   []Info
	err     error           // of Devices
	openErr map[int]error   // last failure to open, until the next success or enumeration
	open    map[int]*shared // opened devices
}

// Register makes a driver available under a name, which becomes the API part of device strings. Drivers call it in init. It
// panics if the name is empty or not made of letters and underscores, if it is "gpu" (which means the best GPU of any
// API), if d is nil, or if the name is taken.
func Register(name string, d Driver) { std.register(name, d) }

// Drivers returns the names of the registered drivers, "cpu" first, the others sorted.
func Drivers() []string { return std.drivers() }

// List returns the devices of all registered drivers, in the order of [Drivers]. Drivers look for devices once; [Rescan]
// makes them look again. A device that cannot be opened has Info.Problem set, and so has a single entry that stands for a
// driver that panicked. Why a driver found nothing at all is for [Diagnose] to say.
func List() []Info { return std.list() }

// Rescan makes each driver that has no opened device look for devices again at the next use. The names of opened devices
// stay valid.
func Rescan() { std.rescan() }

// Find returns the device that [Open] would open, without opening it. The error is that of Open.
func Find(name string) (Info, error) { return std.find(name) }

// IsAvailable reports whether name is a device that is listed without a problem. It never fails and never panics, whatever
// name is.
func IsAvailable(name string) bool {
	info, err := std.find(name)
	return err == nil && info.Problem == ""
}

// Diagnose returns what the drivers have to say about their search for devices, each line beginning with the driver's
// name: the findings of a [Diagnoser], and the error of a driver that found nothing.
func Diagnose() []string { return std.diagnose() }

func (r *registry) register(name string, d Driver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case name == "":
		panic("backend: Register with an empty driver name")
	case !apiGrammar.MatchString(name):
		panic(fmt.Sprintf("backend: Register with an invalid driver name %q: only letters and underscores fit in a device string", name))
	case name == gpuName:
		panic(`backend: Register with the reserved driver name "gpu"`)
	case d == nil:
		panic("backend: Register driver " + name + " is nil")
	case r.entries[name] != nil:
		panic("backend: Register called twice for driver " + name)
	}
	if r.entries == nil {
		r.entries = map[string]*entry{}
	}
	r.entries[name] = &entry{name: name, driver: d}
}

func (r *registry) drivers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.entries))
	for n := range r.entries {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if (a == "cpu") != (b == "cpu") {
			if a == "cpu" {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}

func (r *registry) entry(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[name]
}

// all returns the entries in the order of drivers.
func (r *registry) all() []*entry {
	var es []*entry
	for _, n := range r.drivers() {
		es = append(es, r.entry(n))
	}
	return es
}

func (r *registry) list() []Info {
	var out []Info
	for _, e := range r.all() {
		infos, _ := e.devices()
		out = append(out, infos...)
	}
	return out
}

func (r *registry) rescan() {
	for _, e := range r.all() {
		e.mu.Lock()
		if len(e.open) == 0 {
			e.listed, e.infos, e.err, e.openErr = false, nil, nil, nil
		}
		e.mu.Unlock()
	}
}

func (r *registry) diagnose() []string {
	var out []string
	for _, e := range r.all() {
		_, err := e.devices()
		lines := e.diagnose()
		if err != nil && !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, err.Error()) }) {
			lines = append(lines, err.Error())
		}
		for _, l := range lines {
			if !strings.HasPrefix(l, e.name+": ") {
				l = e.name + ": " + l
			}
			out = append(out, l)
		}
	}
	return out
}

func (e *entry) diagnose() (lines []string) {
	d, ok := e.driver.(Diagnoser)
	if !ok {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			lines = append(lines, fmt.Sprintf("the driver panicked while it was asked for a diagnosis: %v", p))
		}
	}()
	return slices.Clone(d.Diagnose())
}

// devices returns a copy of the driver's devices, and why there are none.
func (e *entry) devices() ([]Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enumerate()
	out := slices.Clone(e.infos)
	for i := range out {
		out[i].Notes = slices.Clone(out[i].Notes)
		if err := e.openErr[i]; err != nil && out[i].Problem == "" {
			out[i].Problem = err.Error()
		}
	}
	return out, e.err
}

// enumerate asks the driver for its devices unless it was asked before. e.mu is held.
func (e *entry) enumerate() {
	if e.listed {
		return
	}
	e.listed, e.openErr = true, nil
	defer func() {
		if p := recover(); p != nil {
			e.err = fmt.Errorf("the driver panicked while it looked for devices: %v", p)
			e.infos = []Info{{API: e.name, Problem: e.err.Error()}}
		}
	}()
	e.infos, e.err = e.driver.Devices()
	e.infos = slices.Clone(e.infos)
	for i := range e.infos {
		// What the driver says of itself is not relied on: names must lead back to it.
		e.infos[i].API, e.infos[i].Index = e.name, i
	}
}
