package tensor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/pprof/profile"
)

// WriteTable writes the time by kernel, the longest first, for people.
func (p *DeviceProfile) WriteTable(w io.Writer) error {
	type row struct {
		name  string
		runs  int
		total time.Duration
	}
	byName := map[string]*row{}
	var all time.Duration
	for i := range p.Kernels {
		k := &p.Kernels[i]
		r := byName[k.Name()]
		if r == nil {
			r = &row{name: k.Name()}
			byName[r.name] = r
		}
		r.runs++
		r.total += k.Duration
		all += k.Duration
	}
	rows := slices.SortedFunc(maps.Values(byName), func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "ms\tof all\truns\tµs a run\t operators of the kernel")
	for _, r := range rows {
		share := 0.0
		if all > 0 {
			share = 100 * float64(r.total) / float64(all)
		}
		fmt.Fprintf(t, "%.3f\t%.1f %%\t%d\t%.1f\t %s\n", r.total.Seconds()*1e3, share, r.runs, r.total.Seconds()*1e6/float64(r.runs), r.name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	note := ""
	if p.Serial {
		note = "; the device has no clock: each kernel was waited for"
	}
	_, err := fmt.Fprintf(w, "%s: %d kernels, %.3f ms of %.3f ms%s\n", p.Device, len(p.Kernels), all.Seconds()*1e3, p.Wall.Seconds()*1e3, note)
	return err
}

// chromeEvent is an event of the Trace Event Format, which Perfetto and chrome://tracing read.
type chromeEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X: a span; M: metadata
	Time  float64        `json:"ts"` // µs
	Dur   float64        `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// WriteChromeTrace writes the profile in the Trace Event Format, with a lane for the device and one for the host. Perfetto
// (ui.perfetto.dev) and chrome://tracing open it.
func (p *DeviceProfile) WriteChromeTrace(w io.Writer) error {
	const host, device = 1, 2
	micro := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	lane := func(id int, name string) chromeEvent {
		return chromeEvent{Name: "thread_name", Phase: "M", PID: 1, TID: id, Args: map[string]any{"name": name}}
	}
	events := []chromeEvent{lane(host, "host"), lane(device, p.Device)}
	for _, h := range p.Host {
		events = append(events, chromeEvent{Name: h.Name, Phase: "X", Time: micro(h.Start), Dur: micro(h.Duration), PID: 1, TID: host})
	}
	for i := range p.Kernels {
		k := &p.Kernels[i]
		e := chromeEvent{Name: k.Name(), Phase: "X", Time: micro(k.Start), Dur: micro(k.Duration), PID: 1, TID: device}
		if k.File != "" {
			e.Args = map[string]any{"caller": fmt.Sprintf("%s:%d", k.File, k.Line)}
		}
		events = append(events, e)
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}

// WritePprof writes a profile for 'go tool pprof', in which the device's time is charged to the lines of Go that called the
// operators, below a frame named by the kernel's operators. The sample values are runs and nanoseconds of device time.
func (p *DeviceProfile) WritePprof(w io.Writer) error {
	b := &pprofBuilder{
		p: &profile.Profile{
			SampleType:        []*profile.ValueType{{Type: "runs", Unit: "count"}, {Type: "device", Unit: "nanoseconds"}},
			DefaultSampleType: "device",
			TimeNanos:         p.Start.UnixNano(),
			DurationNanos:     p.Wall.Nanoseconds(),
		},
		functions: map[[2]string]*profile.Function{}, locations: map[pprofLine]*profile.Location{},
	}
	for i := range p.Kernels {
		k := &p.Kernels[i]
		stack := []*profile.Location{b.location(pprofLine{function: k.Name()})}
		frames := runtime.CallersFrames(k.site.callers)
		for len(k.site.callers) > 0 {
			f, more := frames.Next()
			if f.Function != "" {
				stack = append(stack, b.location(pprofLine{f.Function, f.File, f.Line}))
			}
			if !more {
				break
			}
		}
		b.p.Sample = append(b.p.Sample, &profile.Sample{Location: stack, Value: []int64{1, k.Duration.Nanoseconds()}})
	}
	if err := b.p.CheckValid(); err != nil {
		return err
	}
	return b.p.Write(w)
}

type pprofLine struct {
	function, file string
	line           int
}

// pprofBuilder numbers what a profile's samples share.
type pprofBuilder struct {
	p         *profile.Profile
	functions map[[2]string]*profile.Function
	locations map[pprofLine]*profile.Location
}

func (b *pprofBuilder) location(l pprofLine) *profile.Location {
	if loc := b.locations[l]; loc != nil {
		return loc
	}
	key := [2]string{l.function, l.file}
	f := b.functions[key]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: l.function, SystemName: l.function, Filename: l.file}
		b.functions[key] = f
		b.p.Function = append(b.p.Function, f)
	}
	loc := &profile.Location{ID: uint64(len(b.p.Location) + 1), Line: []profile.Line{{Function: f, Line: int64(l.line)}}}
	b.locations[l] = loc
	b.p.Location = append(b.p.Location, loc)
	return loc
}
