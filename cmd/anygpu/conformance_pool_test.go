package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anygpu/anygpu/conformance"
)

// built builds a program for a test. The test's own program is never started as a worker: it would run the tests again.
func built(t *testing.T, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// pooled runs the devices' cases with the program of testdata/worker.
func pooled(t *testing.T, ctx context.Context, program string, jobs int, devices ...string) []deviceResult {
	t.Helper()
	p := newCasePool(conformanceConfig{jobs: jobs, caseTimeout: 2 * time.Second}, conformance.Options{Seed: 5})
	p.start = func(ctx context.Context, device string) (*worker, error) {
		return startWorker(ctx, program, []string{device})
	}
	bars := newProgress(io.Discard)
	defer bars.wait()
	return p.check(ctx, devices, bars)
}

// TestPool holds what becomes of processes that end, hang or do not start.
func TestPool(t *testing.T) {
	program := built(t, "./testdata/worker")
	for name, tc := range map[string]struct {
		failed map[int]string // parts of messages, by case
		err    string
	}{
		"good":     {},
		"crash":    {failed: map[int]string{3: "\nSIGSEGV: segmentation violation"}},
		"hang":     {failed: map[int]string{7: "no end after 2s"}},
		"compiler": {failed: map[int]string{11: ""}}, // the compiler ends the process, until it is given one kernel at a time
		"lost":     {failed: map[int]string{13: ""}},
		"absent":   {err: "there is no such device"},
		"broken":   {err: "could not be opened: the process ended: exit status 7\nthe loader fell over"},
		"all":      {err: "given up after 21 processes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pooled(t, t.Context(), program, 2, name, "other")
			if len(r) != 2 {
				t.Fatalf("%d reports", len(r))
			}
			if got := r[1].report; r[1].err != nil || got == nil || len(got.Results) != 30 || got.Failed() {
				t.Errorf("the other device: %+v", r[1])
			}
			if tc.err != "" {
				if r[0].err == nil || !strings.Contains(r[0].err.Error(), tc.err) {
					t.Errorf("error %v, want %q", r[0].err, tc.err)
				}
				// The other process may have ended in a case of its own meanwhile.
				if name == "all" && (len(r[0].report.Results) < 21 || len(r[0].report.Results) > 22 || !strings.Contains(r[0].err.Error(), "cases did not run")) {
					t.Errorf("%d results; %v", len(r[0].report.Results), r[0].err)
				}
				return
			}
			if r[0].err != nil || len(r[0].report.Results) != 30 {
				t.Fatalf("%d results, %v", len(r[0].report.Results), r[0].err)
			}
			pids := map[string]bool{}
			for i, res := range r[0].report.Results {
				if !strings.HasSuffix(res.Name, fmt.Sprintf("/%d", i)) {
					t.Errorf("result %d is of case %s", i, res.Name)
				}
				want, fails := tc.failed[i]
				if (res.Status == conformance.Fail) != fails || !strings.Contains(res.Message, want) || strings.Contains(res.Message, "warnings") {
					t.Errorf("case %s: %s: %s", res.Name, res.Status, res.Message)
				}
				if fails && want != "" && !strings.Contains(res.Rerun, "--device "+name+" --suite '^kernels$' --case '^"+res.Name+"$' --seed 5") {
					t.Errorf("case %s: rerun %s", res.Name, res.Rerun)
				}
				if name == "crash" && fails && !strings.HasPrefix(res.Message, "the process ended: exit status 2\n") {
					t.Errorf("case %s: %s", res.Name, res.Message)
				}
				if res.Status == conformance.Pass {
					pids[res.Message] = true
				}
			}
			if name == "crash" && len(pids) < 2 {
				t.Error("no process went on after the crash")
			}
		})
	}
}

// TestPoolInterrupted: an interrupt kills the processes.
func TestPoolInterrupted(t *testing.T) {
	program := built(t, "./testdata/worker")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	start := time.Now()
	p := newCasePool(conformanceConfig{jobs: 2, caseTimeout: time.Hour}, conformance.Options{})
	var started []*worker
	p.start = func(ctx context.Context, device string) (*worker, error) {
		w, err := startWorker(ctx, program, []string{device})
		if err == nil {
			p.mu.Lock()
			started = append(started, w)
			p.mu.Unlock()
		}
		return w, err
	}
	bars := newProgress(io.Discard)
	defer bars.wait()
	r := p.check(ctx, []string{"hang", "hang too"}, bars)
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("it took %s", d)
	}
	for _, x := range r {
		if x.err == nil {
			t.Error("an interrupted run has no error")
		}
	}
	for _, w := range started {
		if w.cmd.ProcessState == nil {
			t.Error("a process goes on")
		}
	}
}

// TestConformanceJobs: processes find what this one finds, and report it in the same order.
func TestConformanceJobs(t *testing.T) {
	workerProgram = built(t, ".")
	defer func() { workerProgram = "" }()
	dir := t.TempDir()
	type outcome struct {
		Reports []struct {
			Device  conformance.DeviceInfo
			Results []struct{ Name, Op, DType, Status, Bound string }
		}
	}
	run := func(jobs string) outcome {
		t.Helper()
		file := filepath.Join(dir, jobs+".json")
		out, status := runCommand(t, "conformance", "--device", "cpu", "--quick", "--jobs", jobs, "--json", file, "--skip", "/empty$",
			"--case", "^(memory/copy|kernels/(atomics|shared)|operators/(add|exp|sum|matmul)|gradients/(mul|sum)|training/mlp_sgd)")
		if status != 0 {
			t.Fatalf("--jobs %s: status %d:\n%s", jobs, status, out)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var o outcome
		if err := json.Unmarshal(b, &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	one, three := run("1"), run("3")
	a, _ := json.Marshal(one)
	b, _ := json.Marshal(three)
	if len(one.Reports) != 1 || len(one.Reports[0].Results) < 40 || !bytes.Equal(a, b) {
		t.Errorf("in one process:\n%s\nin three:\n%s", a, b)
	}
	if out, status := runCommand(t, "conformance", "--device", "cpu", "--jobs", "0"); status != 2 {
		t.Errorf("--jobs 0: status %d: %s", status, out)
	}
	if out, status := runCommand(t, "conformance", "--device", "cpu", "--case", "^no/such$", "--jobs", "2"); status != 2 {
		t.Errorf("no case: status %d: %s", status, out)
	}
}
