package tensor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/tensor"
)

// profileSteps runs a few steps of a classifier.
func profileSteps(t *testing.T, dev backend.Device, steps int) *tensor.DeviceProfile {
	t.Helper()
	c := newClassifier(dev, 16, 32, 24, 10)
	if err := c.step(); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Synchronize(dev); err != nil {
		t.Fatal(err)
	}
	before := tensor.Launches(dev).Launches
	p, err := tensor.Profile(dev, func() error {
		for range steps {
			if err := c.step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := tensor.Launches(dev).Launches - before; uint64(len(p.Kernels)) != n {
		t.Errorf("%d kernels in the profile, %d were launched", len(p.Kernels), n)
	}
	return p
}

// TestProfile holds the three forms of a profile against what ran, on each device.
func TestProfile(t *testing.T) {
	for _, name := range []string{"cpu", "opencl:0", "vulkan:0"} {
		t.Run(name, func(t *testing.T) {
			dev, err := backend.Open(name)
			if err != nil {
				t.Skip(err) // scripts/test fails where a device is absent that must be there
			}
			defer dev.Close()
			p := profileSteps(t, dev, 2)
			var products int
			for i, k := range p.Kernels {
				if len(k.Operators) == 0 || k.Duration < 0 || k.Start < 0 || k.Start+k.Duration > p.Wall {
					t.Errorf("kernel %d: %+v does not lie within the profile's %v", i, k, p.Wall)
				}
				if strings.Contains(k.Name(), "matmul") || strings.Contains(k.Name(), "linear") {
					products++
				}
				if k.File != "schedule_step_test.go" || k.Line == 0 {
					t.Errorf("kernel %d (%s): caller %s:%d", i, k.Name(), k.File, k.Line)
				}
			}
			if products != 2*5 { // two layers: forward, weights' gradients, and the input's of the second
				t.Errorf("%d products in two steps, want 10", products)
			}
			if len(p.Host) == 0 {
				t.Error("nothing on the host's lane")
			}

			var table, trace, pprof bytes.Buffer
			if err := errors.Join(p.WriteTable(&table), p.WriteChromeTrace(&trace), p.WritePprof(&pprof)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(table.String(), p.Device) || strings.Count(table.String(), "\n") < 5 {
				t.Errorf("table:\n%s", table.String())
			}
			var events struct{ TraceEvents []map[string]any }
			if err := json.Unmarshal(trace.Bytes(), &events); err != nil {
				t.Fatal(err)
			}
			if n := len(events.TraceEvents); n != 2+len(p.Host)+len(p.Kernels) {
				t.Errorf("%d events in the trace", n)
			}
			back, err := profile.Parse(&pprof)
			if err != nil {
				t.Fatal(err)
			}
			var total int64
			for _, s := range back.Sample {
				total += s.Value[1]
			}
			var want int64
			for _, k := range p.Kernels {
				want += k.Duration.Nanoseconds()
			}
			if total != want {
				t.Errorf("%d ns in the pprof profile, want %d", total, want)
			}
			if !strings.Contains(back.String(), "(*classifier).step") {
				t.Error("the pprof profile does not name the caller")
			}
		})
	}
}

// TestProfileWithoutClock times kernels one by one where the device cannot.
func TestProfileWithoutClock(t *testing.T) {
	dev := null.New(null.Config{})
	defer dev.Close()
	if p := profileSteps(t, dev, 1); !p.Serial || len(p.Kernels) == 0 {
		t.Errorf("serial %v, %d kernels", p.Serial, len(p.Kernels))
	}
	if _, err := tensor.Profile(dev, func() error {
		_, err := tensor.Profile(dev, func() error { return nil })
		return err
	}); err == nil || !strings.Contains(err.Error(), "one is at work") {
		t.Errorf("two at a time: %v", err)
	}
	stop := errors.New("stop")
	if _, err := tensor.Profile(dev, func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the function's error", err)
	}
}
