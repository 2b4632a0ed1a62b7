package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
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

	Error string `json:"error,omitempty"` // why there are no figures

	Tuned int    `json:"tuned,omitempty"` // with --tune: choices of variants that the device's tuning file has
	Note  string `json:"note,omitempty"`  // why an old tuning file was ignored

	PeakBytes int64 `json:"peak_bytes"`         // device memory in use
	PeakRSS   int64 `json:"peak_rss,omitempty"` // of the process, on Linux
}

// benchFlags are the flags of bench.
type benchFlags struct {
	workload, device, json, match, profile, scaling string
	list, cold, once, tune                          bool
	threads                                         int
	seconds                                         float64
	options                                         benchOptions
}

func newBench() *cobra.Command {
	var c benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time a workload and print one line of JSON, or all and print a table",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.threads < 1 || c.seconds < 0 || c.options.batch < 0 || c.options.width < 0 {
				return usagef("--threads must be at least 1, --seconds, --batch and --width not negative")
			}
			switch {
			case c.list:
				return listWorkloads(cmd.OutOrStdout())
			case c.scaling != "":
				return c.writeScaling(cmd.Context(), cmd.OutOrStdout())
			case c.workload == "":
				return c.table(cmd.Context(), cmd.OutOrStdout())
			case c.profile != "":
				return c.writeProfile(cmd.OutOrStdout())
			}
			r, err := c.one(cmd.Context(), c.workload)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.workload, "workload", "", "what to time; without it all of them, as a table")
	f.StringVar(&c.match, "match", "", "leave out of the table what this regular expression does not match")
	f.StringVar(&c.profile, "profile", "", "profile some runs of the workload: prints time by operator, and writes FILE.trace.json for Perfetto and FILE.pb.gz for pprof")
	f.StringVar(&c.scaling, "scaling", "", "time the mlp's step over batch sizes and widths, and draw the times to this PNG file")
	f.BoolVar(&c.list, "list", false, "print the names of the workloads")
	f.StringVar(&c.device, "device", "", "the device; without it the default one")
	f.StringVar(&c.json, "json", "", "write the table's figures to this file, too")
	f.IntVar(&c.threads, "threads", runtime.GOMAXPROCS(0), "CPU threads, for the CPU device and drivers that run on the CPU")
	f.Float64Var(&c.seconds, "seconds", 2, "how long to repeat")
	f.IntVar(&c.options.batch, "batch", 0, "batch of a training step; 0 is the workload's own")
	f.IntVar(&c.options.width, "width", 0, "width of the mlp's hidden layers; 0 is 512 and 256")
	f.BoolVar(&c.options.amp, "amp", false, "training steps in mixed precision")
	f.BoolVar(&c.cold, "cold", false, "of "+firstStep+": without the caches of compiled kernels")
	f.BoolVar(&c.tune, "tune", false, "measure the variants of each kernel in the first run, and keep the best ones for later processes")
	f.BoolVar(&c.once, "once", false, "one run, the first, and no more")
	return cmd
}

// one times one workload on a device opened for it.
func (c *benchFlags) one(ctx context.Context, name string) (*benchReport, error) {
	if name == firstStep {
		return benchFirstStep(ctx, c.device, c.threads, c.cold)
	}
	w, err := findWorkload(name)
	if err != nil {
		return nil, err
	}
	useThreads(c.threads)
	dev, err := openDevice(c.device)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	return c.on(dev, w)
}

func (c *benchFlags) on(dev backend.Device, w workload) (*benchReport, error) {
	if c.tune {
		if err := tensor.SetTuning(dev, true); err != nil {
			return nil, err
		}
	}
	r, err := bench(dev, w, c.options, time.Duration(c.seconds*float64(time.Second)), c.once)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", w.name, dev.Info(), err)
	}
	r.Threads = c.threads
	if c.tune {
		if r.Tuned, r.Note, err = tensor.SaveTuning(dev); err != nil {
			return nil, fmt.Errorf("the tuning file cannot be written: %w", err)
		}
	}
	return r, nil
}

func listWorkloads(w io.Writer) error {
	names := make([]string, 0, len(workloads)+1)
	for _, l := range workloads {
		names = append(names, l.name)
	}
	_, err := fmt.Fprintln(w, strings.Join(append(names, firstStep), "\n"))
	return err
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

// A run that takes longer than slowRun is repeated slowRuns times, and others minRuns times at least.
const (
	slowRun  = 2 * time.Second
	slowRuns = 3
	minRuns  = 7
	warmUps  = 5 // runs that do not count, the first of them apart
)

// bench runs w again and again for at least d after some runs that do not count, or once.
func bench(dev backend.Device, w workload, o benchOptions, d time.Duration, once bool) (*benchReport, error) {
	runtime.GC() // what an earlier workload left
	if err := tensor.EmptyCache(dev); err != nil {
		return nil, err
	}
	tensor.ResetPeakMemory(dev)
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
	first := time.Since(start)
	r := &benchReport{Workload: w.name, Device: dev.Info().String(), Driver: dev.Info().Driver + " " + dev.Info().DriverVersion, FirstMS: milliseconds(first)}
	if once {
		r.setTimes([]time.Duration{first})
		return r, nil
	}
	last := first
	for range warmUps - 1 {
		start := time.Now()
		if err := run(); err != nil {
			return nil, err
		}
		if last = time.Since(start); last > slowRun {
			break
		}
	}
	least := minRuns
	if last > slowRun {
		least = slowRuns
	}
	var before, after runtime.MemStats
	launches, allocs := tensor.Launches(dev), tensor.MemoryStats(dev).Segments.Allocated
	runtime.ReadMemStats(&before)
	var times []time.Duration
	for start := time.Now(); len(times) < least || time.Since(start) < d; {
		t := time.Now()
		if err := run(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(t))
	}
	runtime.ReadMemStats(&after)
	done := tensor.Launches(dev)
	n := float64(len(times))
	r.setTimes(times)
	r.GFLOPs, r.GBs = w.flops/r.MedianMS/1e6, w.bytes/r.MedianMS/1e6
	r.Operators, r.Launches = float64(done.Nodes-launches.Nodes)/n, float64(done.Launches-launches.Launches)/n
	r.DeviceAllocations = float64(tensor.MemoryStats(dev).Segments.Allocated-allocs) / n
	r.HeapAllocations = float64(after.Mallocs-before.Mallocs) / n
	r.PeakBytes, r.PeakRSS = tensor.MemoryStats(dev).AllocatedBytes.Peak, peakRSS()
	return r, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 1e4 }
