package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/conformance"
)

// conformanceConfig holds the flags of 'anygpu conformance'.
type conformanceConfig struct {
	devices, suite, cases, skip, mode, golden string
	quick                                     bool
	seed                                      uint64
	html, json, junit                         string
	jobs                                      int
	caseTimeout                               time.Duration
}

// caseFlags are the flags that choose cases, which a worker has too.
func (c *conformanceConfig) caseFlags(f *pflag.FlagSet) {
	f.StringVar(&c.devices, "device", "all", "device strings, separated by commas, or all")
	f.StringVar(&c.suite, "suite", "", "run the suites whose name matches this regular expression")
	f.StringVar(&c.cases, "case", "", "run the cases whose full name matches this regular expression, such as operators/add/")
	f.StringVar(&c.skip, "skip", "", "leave out the cases whose full name matches; they are reported as skipped")
	f.StringVar(&c.mode, "mode", "check", "check, grad (gradients only), perf (speed of operators) or support (which operators and dtypes a device takes)")
	f.StringVar(&c.golden, "golden", "", "folder with recorded cases to run instead of the embedded ones; FORMAT.md describes it")
	f.BoolVar(&c.quick, "quick", false, "a sample of the cases")
	f.Uint64Var(&c.seed, "seed", 0, "seed of operands and random kernels")
}

func newConformance() *cobra.Command {
	var cfg conformanceConfig
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Hold devices and their drivers against the operator table",
		Long: "Hold devices and their drivers against the operator table: what is right, what is wrong by how much and on which\n" +
			"operands, and what a device cannot do. The exit status is 1 if a case failed.\n\nSuites: " + strings.Join(conformance.SuiteNames(), ", ") + ".",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runConformance(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	cfg.caseFlags(f)
	f.IntVar(&cfg.jobs, "jobs", runtime.NumCPU(), "processes that run cases; 1 runs them in this process, where a driver that crashes ends the run")
	f.DurationVar(&cfg.caseTimeout, "case-timeout", 5*time.Minute, "a case that takes longer has failed, and its process is ended; with --jobs 2 or more")
	f.StringVar(&cfg.html, "html", "", "write an HTML report to this file")
	f.StringVar(&cfg.json, "json", "", "write a JSON report to this file")
	f.StringVar(&cfg.junit, "junit", "", "write a JUnit XML report to this file")
	return cmd
}

// options checks the flags.
func (c conformanceConfig) options() (conformance.Options, error) {
	o := conformance.Options{Mode: conformance.Mode(c.mode), Quick: c.quick, Seed: c.seed}
	switch o.Mode {
	case conformance.ModeCheck, conformance.ModeGrad, conformance.ModePerf, conformance.ModeSupport:
	default:
		return o, usagef("unknown mode %q: check, grad, perf and support are accepted", c.mode)
	}
	for _, f := range []struct {
		flag, text string
		into       **regexp.Regexp
	}{{"suite", c.suite, &o.Suite}, {"case", c.cases, &o.Case}, {"skip", c.skip, &o.Skip}} {
		if f.text == "" {
			continue
		}
		re, err := regexp.Compile(f.text)
		if err != nil {
			return o, usagef("--%s: %v", f.flag, err)
		}
		*f.into = re
	}
	if o.Suite != nil {
		found := false
		for _, s := range conformance.SuiteNames() {
			found = found || o.Suite.MatchString(s)
		}
		if !found {
			return o, usagef("--suite %q matches none of %s", c.suite, strings.Join(conformance.SuiteNames(), ", "))
		}
	}
	if c.golden != "" {
		info, err := os.Stat(c.golden)
		if err != nil {
			return o, usagef("--golden: %v", err)
		}
		if !info.IsDir() {
			return o, usagef("--golden %s is no folder", c.golden)
		}
		o.Golden, o.GoldenName = os.DirFS(c.golden), c.golden
	}
	return o, nil
}

// errCasesFailed is the exit status 1 of a run that found something; the report says what.
var errCasesFailed = errors.New("cases failed")

func runConformance(ctx context.Context, cfg conformanceConfig, out, errOut io.Writer) error {
	opts, err := cfg.options()
	if err != nil {
		return err
	}
	if cfg.jobs < 1 {
		return usagef("--jobs %d: at least 1 process is needed", cfg.jobs)
	}
	opts.Context = ctx
	names, err := chooseDevices(cfg.devices)
	if err != nil {
		return usageError{err}
	}
	bars := newProgress(errOut)
	defer bars.wait()
	var reports conformance.Reports
	var runErr error
	results := checkDevices(ctx, cfg, opts, names, bars)
	for i, r := range results {
		if r.report != nil {
			reports = append(reports, r.report)
		}
		if r.err != nil {
			runErr = errors.Join(runErr, fmt.Errorf("%s: %w", names[i], r.err))
		}
	}
	bars.wait()
	if err := writeReports(cfg, reports, out); err != nil {
		return errors.Join(runErr, err)
	}
	cases := 0
	for _, r := range reports {
		cases += len(r.Results) + len(r.Support)
		if r.Perf != nil {
			cases += len(r.Perf.Rows)
		}
	}
	switch {
	case runErr != nil:
		return runErr
	case cases == 0:
		return usagef("no case matches the flags")
	case reports.Failed():
		return errCasesFailed
	}
	return nil
}

type deviceResult struct {
	report *conformance.Report
	err    error
}

// checkDevices runs the cases in processes of their own, or in this one where that was asked for or the mode has no cases.
func checkDevices(ctx context.Context, cfg conformanceConfig, opts conformance.Options, names []string, bars *progress) []deviceResult {
	cases := opts.Mode == conformance.ModeCheck || opts.Mode == conformance.ModeGrad
	if cases && cfg.jobs > 1 && workerProgram != "" {
		return newCasePool(cfg, opts).check(ctx, names, bars)
	}
	// Devices are checked two at a time, the CPU first and alone: it is the others' host, and its cases count its work.
	results := make([]deviceResult, len(names))
	var group sync.WaitGroup
	slots := make(chan struct{}, parallelDevices(cfg, opts.Mode))
	for i, name := range names {
		if name == "cpu" {
			group.Wait()
			results[i].report, results[i].err = checkDevice(name, opts, bars)
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			results[i].report, results[i].err = checkDevice(name, opts, bars)
		})
	}
	group.Wait()
	return results
}

// parallelDevices is how many devices are checked at once in this process; one where speed is measured.
func parallelDevices(cfg conformanceConfig, m conformance.Mode) int {
	if m == conformance.ModePerf {
		return 1
	}
	return max(1, min(2, cfg.jobs))
}

func checkDevice(name string, opts conformance.Options, bars *progress) (*conformance.Report, error) {
	dev, err := backend.Open(name)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	bar := (*bar)(nil)
	failed := 0
	opts.Progress = func(done, total int, _ string) {
		if bar == nil {
			bar = bars.add(name, total)
		}
		bar.increment()
	}
	r, err := conformance.Check(dev, opts)
	if bar != nil {
		if r != nil {
			failed = r.Counts()[conformance.Fail]
		}
		bar.note(fmt.Sprintf("%d failed", failed))
		bar.abort()
	}
	return r, err
}

// writeReports prints the summary and writes the files that were asked for.
func writeReports(cfg conformanceConfig, reports conformance.Reports, out io.Writer) error {
	if err := reports.WriteText(out); err != nil {
		return err
	}
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{{cfg.html, reports.WriteHTML}, {cfg.json, reports.WriteJSON}, {cfg.junit, reports.WriteJUnit}} {
		if f.path != "" {
			if err := writeFile(f.path, f.write); err != nil {
				return err
			}
		}
	}
	return nil
}
