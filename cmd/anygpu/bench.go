package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// benchReport is the line of JSON that bench prints for a workload.
type benchReport struct {
	Workload string  `json:"workload"`
	Device   string  `json:"device"`
	Driver   string  `json:"driver"`
	Threads  int     `json:"threads"`
	BestMS   float64 `json:"best_ms"`
	MedianMS float64 `json:"median_ms"`
	Runs     int     `json:"runs"`
	FirstMS  float64 `json:"first_ms"` // the first run: with compilation and allocation

	GFLOPs float64 `json:"gflops,omitempty"` // of the median run
	GBs    float64 `json:"gb_s,omitempty"`   // of the bytes that must move, median run

	// Of one steady run.
	Operators         float64 `json:"operators"`
	Launches          float64 `json:"launches"`
	DeviceAllocations float64 `json:"device_allocations"`
	HeapAllocations   float64 `json:"heap_allocations"`

	PeakBytes int64 `json:"peak_bytes"`         // device memory in use
	PeakRSS   int64 `json:"peak_rss,omitempty"` // of the process, on Linux
}

func newBench() *cobra.Command {
	var name, device string
	var list bool
	var threads int
	var seconds float64
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time a workload and print one line of JSON",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return listWorkloads(cmd.OutOrStdout())
			}
			if name == "" {
				return usagef("--workload NAME is needed; 'anygpu bench --list' prints them")
			}
			w, err := findWorkload(name)
			if err != nil {
				return err
			}
			if threads < 1 || seconds < 0 || o.batch < 0 || o.width < 0 {
				return usagef("--threads must be at least 1, --seconds, --batch and --width not negative")
			}
			useThreads(threads)
			dev, err := openDevice(device)
			if err != nil {
				return err
			}
			defer dev.Close()
			r, err := bench(dev, w, o, time.Duration(seconds*float64(time.Second)))
			if err != nil {
				return fmt.Errorf("%s on %s: %w", w.name, dev.Info().Name, err)
			}
			r.Threads = threads
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "workload", "", "what to time")
	f.BoolVar(&list, "list", false, "print the names of the workloads")
	f.StringVar(&device, "device", "", "the device; without it the default one")
	f.IntVar(&threads, "threads", runtime.GOMAXPROCS(0), "CPU threads, for the CPU device and drivers that run on the CPU")
	f.Float64Var(&seconds, "seconds", 2, "how long to repeat")
	f.IntVar(&o.batch, "batch", 0, "batch of a training step; 0 is the workload's own")
	f.IntVar(&o.width, "width", 0, "width of the mlp's hidden layers; 0 is 512 and 256")
	f.BoolVar(&o.amp, "amp", false, "training steps in mixed precision")
	return cmd
}

func listWorkloads(w io.Writer) error {
	for _, l := range workloads {
		if _, err := fmt.Fprintln(w, l.name); err != nil {
			return err
		}
	}
	return nil
}

// useThreads bounds the threads of the CPU device and of drivers that run on the CPU; it works only before they are opened.
func useThreads(n int) {
	runtime.GOMAXPROCS(n)
	for _, env := range []string{"POCL_MAX_PTHREAD_COUNT", "LP_NUM_THREADS"} {
		if _, set := os.LookupEnv(env); !set {
			os.Setenv(env, strconv.Itoa(n))
		}
	}
}

func openDevice(name string) (backend.Device, error) {
	if name == "" {
		return backend.Default()
	}
	return backend.Open(name)
}

// bench runs w again and again for at least d, and at least 7 times after 5 runs that do not count.
func bench(dev backend.Device, w workload, o benchOptions, d time.Duration) (*benchReport, error) {
	run, err := w.prepare(dev, o)
	if err != nil {
		return nil, err
	}
	if err := tensor.Synchronize(dev); err != nil { // the operands are not part of the first run
		return nil, err
	}
	start := time.Now()
	if err := run(); err != nil {
		return nil, err
	}
	r := &benchReport{Workload: w.name, Device: dev.Info().String(), Driver: dev.Info().Driver + " " + dev.Info().DriverVersion, FirstMS: milliseconds(time.Since(start))}
	for range 4 {
		if err := run(); err != nil {
			return nil, err
		}
	}
	var before, after runtime.MemStats
	launches, allocs := tensor.Launches(dev), tensor.MemoryStats(dev).Segments.Allocated
	runtime.ReadMemStats(&before)
	var times []time.Duration
	for start := time.Now(); len(times) < 7 || time.Since(start) < d; {
		t := time.Now()
		if err := run(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(t))
	}
	runtime.ReadMemStats(&after)
	done := tensor.Launches(dev)
	n := float64(len(times))
	slices.Sort(times)
	r.Runs, r.BestMS, r.MedianMS = len(times), milliseconds(times[0]), milliseconds(times[len(times)/2])
	r.GFLOPs, r.GBs = w.flops/r.MedianMS/1e6, w.bytes/r.MedianMS/1e6
	r.Operators, r.Launches = float64(done.Nodes-launches.Nodes)/n, float64(done.Launches-launches.Launches)/n
	r.DeviceAllocations = float64(tensor.MemoryStats(dev).Segments.Allocated-allocs) / n
	r.HeapAllocations = float64(after.Mallocs-before.Mallocs) / n
	r.PeakBytes, r.PeakRSS = tensor.MemoryStats(dev).AllocatedBytes.Peak, peakRSS()
	return r, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 1e4 }
