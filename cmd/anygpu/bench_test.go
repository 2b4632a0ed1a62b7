package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchRunsEveryWorkload runs each workload a few times and reads the line it prints.
func TestBenchRunsEveryWorkload(t *testing.T) {
	for _, w := range workloads {
		if w.name == "gelu_chain_16m" || w.flops > 3e9 && w.bytes == 0 && strings.HasPrefix(w.name, "matmul") {
			continue // heavy, and of a kind of which a smaller one runs
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
			if r.Workload != w.name || r.Device != "cpu" || r.Runs < 7 || r.BestMS <= 0 || r.MedianMS < r.BestMS || r.Launches < 1 && !strings.HasPrefix(w.name, "transfer") || r.PeakBytes <= 0 {
				t.Errorf("got %+v", r)
			}
			if r.DeviceAllocations != 0 {
				t.Errorf("%v allocations of device memory in a steady run", r.DeviceAllocations)
			}
		})
	}
}

func TestBenchUsage(t *testing.T) {
	for _, args := range [][]string{{"--workload", "nothing"}, {"--workload", "mlp_sgd_step", "--threads", "0"}} {
		if out, status := runCommand(t, append([]string{"bench"}, args...)...); status != 2 {
			t.Errorf("%q: status %d, want 2; it printed %q", args, status, out)
		}
	}
	out, status := runCommand(t, "bench", "--list")
	if status != 0 || !strings.Contains(out, "cnn_adam_step\n") {
		t.Errorf("--list printed %q, status %d", out, status)
	}
}

// TestBenchFirstStep times the start of processes, with the caches of kernels empty.
func TestBenchFirstStep(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	exe := filepath.Join(t.TempDir(), "anygpu")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe, "bench", "--workload", firstStep, "--device", "cpu", "--cold").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r benchReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if r.Workload != firstStep || r.Runs <= firstStepRuns || r.MedianMS <= r.FirstMS {
		t.Errorf("got %+v: a process takes longer than its first step", r)
	}
}

func TestBenchTable(t *testing.T) {
	var sb strings.Builder
	reports := []*benchReport{{Workload: "copy_64m", MedianMS: 10, BestMS: 9, Runs: 7, GBs: 13.4, Launches: 1}, {Workload: "matmul_f32_256", MedianMS: 1, Runs: 9, GFLOPs: 33.5},
		{Workload: "gone", Error: "device lost"}}
	if err := writeBenchTable(&sb, reports, 26.8, 67); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"50 %", "failed: device lost", "67.0 GFLOP/s", "26.8 GB/s"} {
		if !strings.Contains(sb.String(), want) {
			t.Errorf("no %q in\n%s", want, sb.String())
		}
	}
}
