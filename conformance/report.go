package conformance

import (
	"iter"
	"maps"
	"strings"
	"time"
)

// DeviceInfo describes a device and its driver in reports.
type DeviceInfo struct {
	Device        string   `json:"device"` // device string, "vulkan:0"
	API           string   `json:"api"`
	Name          string   `json:"name"`
	Vendor        string   `json:"vendor,omitempty"`
	Driver        string   `json:"driver,omitempty"`
	DriverVersion string   `json:"driver_version,omitempty"`
	APIVersion    string   `json:"api_version,omitempty"`
	Type          string   `json:"type"`
	MemoryBytes   int64    `json:"memory_bytes,omitempty"`
	Features      []string `json:"features"`
	Lacks         []string `json:"lacks,omitempty"`
	Notes         []string `json:"notes,omitempty"`
}

// String names device and driver in one line.
func (d DeviceInfo) String() string {
	s := d.Device + " (" + d.Name
	if v := strings.TrimSpace(d.Driver + " " + d.DriverVersion); v != "" {
		s += ", " + v
	}
	return s + ")"
}

// Report is the outcome of a run on one device.
type Report struct {
	Device  DeviceInfo   `json:"device"`
	Mode    Mode         `json:"mode"`
	Quick   bool         `json:"quick"`
	Seed    uint64       `json:"seed"`
	Started time.Time    `json:"started"`
	Seconds float64      `json:"seconds"`
	Results []Result     `json:"results,omitempty"`
	Support []SupportRow `json:"support,omitempty"`
	Perf    *PerfReport  `json:"perf,omitempty"`
}

func newReport(e *env) *Report {
	i := e.info
	d := DeviceInfo{Device: i.String(), API: i.API, Name: i.Name, Vendor: i.Vendor, Driver: i.Driver, DriverVersion: i.DriverVersion,
		APIVersion: i.APIVersion, Type: i.Type.String(), MemoryBytes: i.Memory, Notes: i.Notes}
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"float16 arithmetic", i.Caps.F16Arith}, {"16-bit storage", i.Caps.F16Storage}, {"8-bit storage", i.Caps.U8Storage},
		{"64-bit integers", i.Caps.I64}, {"double precision", i.Caps.F64},
	} {
		if f.has {
			d.Features = append(d.Features, f.name)
		} else {
			d.Lacks = append(d.Lacks, f.name)
		}
	}
	return &Report{Device: d, Mode: e.opts.Mode, Quick: e.opts.Quick, Seed: e.opts.Seed, Started: time.Now().UTC().Truncate(time.Second)}
}

// Counts returns the number of cases by status.
func (r *Report) Counts() map[Status]int {
	c := map[Status]int{}
	for _, res := range r.Results {
		c[res.Status]++
	}
	return c
}

// Failed reports whether a case failed.
func (r *Report) Failed() bool { return r.Counts()[Fail] > 0 }

// Missing returns what is not supported, with the number of cases that need it.
func (r *Report) Missing() map[string]int {
	m := map[string]int{}
	for _, res := range r.Results {
		if res.Status == NotSupported {
			m[res.Message]++
		}
	}
	return m
}

// Suites returns the counts by suite.
func (r *Report) Suites() map[string]map[Status]int {
	m := map[string]map[Status]int{}
	for _, res := range r.Results {
		if m[res.Suite] == nil {
			m[res.Suite] = map[Status]int{}
		}
		m[res.Suite][res.Status]++
	}
	return m
}

func mapsKeys(m map[string]int) iter.Seq[string] { return maps.Keys(m) }
