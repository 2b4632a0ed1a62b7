package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/anygpu/anygpu/backend"
)

// firstStep is the workload that starts a process of its own: from the start of the process to the end of the first training step.
const firstStep = "first_step"

// firstStepRuns is how often the process is started.
const firstStepRuns = 5

// benchFirstStep times whole processes that train one step of the mlp. With cold set, each has empty folders for the caches of kernels:
// its own, Mesa's and PoCL's.
func benchFirstStep(ctx context.Context, device string, threads int, cold bool) (*benchReport, error) {
	if device == "" {
		device = backend.DefaultName()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var times []time.Duration
	var last benchReport
	for i := range firstStepRuns + 1 {
		cmd := exec.CommandContext(ctx, self, "bench", "--workload", "mlp_sgd_step", "--device", device, "--once", "--threads", fmt.Sprint(threads))
		cmd.Env = os.Environ()
		cmd.Stderr = os.Stderr
		if cold {
			dir, err := os.MkdirTemp("", "anygpu-cold-")
			if err != nil {
				return nil, err
			}
			defer os.RemoveAll(dir)
			cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+dir, "POCL_CACHE_DIR="+filepath.Join(dir, "pocl"), "MESA_SHADER_CACHE_DIR="+filepath.Join(dir, "mesa"))
		}
		start := time.Now()
		out, err := cmd.Output()
		took := time.Since(start)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", firstStep, err)
		}
		if err := json.Unmarshal(out, &last); err != nil {
			return nil, fmt.Errorf("%s: %w", firstStep, err)
		}
		if i > 0 || cold { // the first may fill the caches
			times = append(times, took)
		}
	}
	last.Workload = firstStep
	last.setTimes(times)
	return &last, nil
}

// setTimes sets the figures that follow from the runs' times.
func (r *benchReport) setTimes(times []time.Duration) {
	slices.Sort(times)
	r.Runs, r.BestMS, r.MedianMS = len(times), milliseconds(times[0]), milliseconds(times[len(times)/2])
}
