package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestBenchRunsEveryWorkload runs each workload a few times and reads the line it prints.
func TestBenchRunsEveryWorkload(t *testing.T) {
	heavy := map[string]bool{"matmul_f32_2048": true, "gelu_chain_16m": true} // of their kind: another size is run
	for _, w := range workloads {
		if heavy[w.name] {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			out, status := runCommand(t, "bench", "--workload", w.name, "--device", "cpu", "--seconds", "0", "--batch", "4")
			if status != 0 {
				t.Fatal(out)
			}
			var r benchReport
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			if r.Workload != w.name || r.Device != "cpu" || r.Runs < 7 || r.BestMS <= 0 || r.MedianMS < r.BestMS || r.Launches < 1 || r.PeakBytes <= 0 {
				t.Errorf("got %+v", r)
			}
			if r.DeviceAllocations != 0 {
				t.Errorf("%v allocations of device memory in a steady run", r.DeviceAllocations)
			}
		})
	}
}

func TestBenchUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"--workload", "nothing"}, {"--workload", "mlp_sgd_step", "--threads", "0"}} {
		if out, status := runCommand(t, append([]string{"bench"}, args...)...); status != 2 {
			t.Errorf("%q: status %d, want 2; it printed %q", args, status, out)
		}
	}
	out, status := runCommand(t, "bench", "--list")
	if status != 0 || !strings.Contains(out, "cnn_adam_step\n") {
		t.Errorf("--list printed %q, status %d", out, status)
	}
}
