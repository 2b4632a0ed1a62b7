//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"context"
	"testing"
	"time"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

// TestTimestamps holds the times of launches against the host's clock, and the results of launches that are timed and not timed in turns.
func TestTimestamps(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const n = 1 << 12
		if !d.Timestamps() {
			t.Skip("the device's queue has no clock")
		}
		b := ir.NewBuilder("increment", 64, 1, 1)
		x := b.Buffer("x", ir.U32, ir.ReadWrite)
		i := b.LinearID()
		b.Store(x, i, b.Add(b.Load(x, i, 1), b.U32(1)))
		p := compile(t, d, build(t, b))
		defer p.Free()
		buf, err := d.Alloc(4 * n)
		if err != nil {
			t.Fatal(err)
		}
		defer buf.Free()
		if err := buf.Write(0, make([]byte, 4*n)); err != nil {
			t.Fatal(err)
		}
		launch := func(timing *backend.Timing) backend.Launch {
			return backend.Launch{Program: p, Groups: [3]int{n / 64, 1, 1}, Buffers: []backend.Region{{Buffer: buf, Size: 4 * n}}, Timing: timing}
		}
		times := make([]backend.Timing, 6)
		before := time.Now()
		for i := range times {
			if _, err := d.Submit([]backend.Launch{launch(nil)}); err != nil {
				t.Fatal(err)
			}
			f, err := d.Submit([]backend.Launch{launch(nil), launch(&times[i])})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		const slack = 20 * time.Millisecond // between the clocks
		after := time.Now()
		for i, tm := range times {
			if tm.Start.Before(before.Add(-slack)) || tm.End.After(after.Add(slack)) || tm.End.Before(tm.Start) {
				t.Errorf("launch %d ran from %v to %v after the start, all took %v", i, tm.Start.Sub(before), tm.End.Sub(before), after.Sub(before))
			}
			if i > 0 && tm.Start.Before(times[i-1].End.Add(-slack)) {
				t.Errorf("launch %d began before the one before it ended", i)
			}
		}
		out := make([]byte, 4*n)
		if err := buf.Read(0, out); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < n; i++ {
			if out[4*i] != 3*6 {
				t.Fatalf("element %d is %d, want %d", i, out[4*i], 3*6)
			}
		}
	})
}
