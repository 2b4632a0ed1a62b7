package conformance

import (
	"context"
	"regexp"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// preparing is the CPU as a device that compiles kernels together, and counts those that nobody prepared.
type preparing struct {
	understudy
	mu                   sync.Mutex
	known                map[string]bool
	prepares             int
	expected, unexpected int
}

func (d *preparing) Prepare(ks []*ir.Kernel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prepares++
	for _, k := range ks {
		d.known[k.String()] = true
	}
}

func (d *preparing) Compile(k *ir.Kernel) (backend.Program, error) {
	d.mu.Lock()
	if d.known[k.String()] {
		d.expected++
	} else {
		d.unexpected++
	}
	d.mu.Unlock()
	return d.Device.Compile(k)
}

func TestRehearsal(t *testing.T) {
	d := &preparing{known: map[string]bool{}}
	d.Device, d.info = tensor.CPU(), tensor.CPU().Info()
	d.info.API, d.info.Caps.MaxLanes = "opencl", 8
	defer d.leave()
	opts := Options{Quick: true, Case: regexp.MustCompile("^(kernels/(arithmetic|convert)|operators/(exp|add|sum|matmul|conv2d|masked_select|relu)|gradients/(mul|softmax|conv1d)|memory/copy)/")}
	r, err := Check(d, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range r.Results {
		if res.Status == Fail {
			t.Errorf("%s: %s", res.Name, res.Message)
		}
	}
	t.Logf("%d cases, %d kernels prepared in %d goes, %d not", len(r.Results), d.expected, d.prepares, d.unexpected)
	if d.expected < 100 || d.unexpected > d.expected/50 || d.prepares < 2 {
		t.Errorf("%d kernels were prepared in %d goes, %d not", d.expected, d.prepares, d.unexpected)
	}
	// A run that ends early ends its rehearsals.
	ctx, cancel := context.WithCancel(t.Context())
	opts.Context = ctx
	opts.Progress = func(done, _ int, _ string) { cancel() }
	if r, err := Check(d, opts); err == nil || len(r.Results) > 1 {
		t.Errorf("a run that is ended ran %d cases: %v", len(r.Results), err)
	}
}
