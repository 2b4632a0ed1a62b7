package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// suite is a group of cases about one subject.
type suite struct {
	name  string
	doc   string
	cases func(e *env) ([]testCase, error)
}

// suiteTable returns all suites in the order they run.
func suiteTable() []suite {
	return []suite{
		{"memory", "allocation, copies, offsets, reuse only after the work is done, many live tensors, limits", memoryCases},
		{"kernels", "instructions of the kernel language by kind and width, control flow, random kernels; against the checking executor", kernelCases},
		{"operators", "the operator table: dtypes, shapes, strides, special values, errors; against float64 references and PyTorch's results", operatorCases},
		{"gradients", "central differences in float64 on the CPU, and the device against the CPU", gradientCases},
		{"rules", "operands on one device, what leaves a device and how, errors that say what to do", ruleCases},
		{"precision", "casts to float16 and bfloat16 over all values and midpoints, accumulation in float32", precisionCases},
		{"random", "the same stream on every device, moments", randomCases},
		{"determinism", "the same bits on a second run", determinismCases},
		{"amp", "autocast's classes, the loss scaler, the cache of cast weights", ampCases},
		{"training", "short runs against PyTorch's trajectories", trainingCases},
	}
}

// SuiteNames returns the names of the suites in the order they run.
func SuiteNames() []string {
	var out []string
	for _, s := range suiteTable() {
		out = append(out, s.name)
	}
	return out
}

// env is what the cases of a run share.
type env struct {
	dev    backend.Device
	info   backend.Info
	opts   *Options
	golden *goldenSet
}

// testCase is one case. run returns nil, a *Mismatch, a *NotSupportedError or another error, which is a failure.
type testCase struct {
	name  string // after the suite's name
	op    string
	dtype string
	joint string // what is computed for this case and others together, where that is so
	run   func(x *run) error
}

// run is one case being run.
type run struct {
	*env
	measured
	name string
}

// rng returns the case's random numbers, which depend on the seed and the case's name only.
func (x *run) rng() *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(x.name))
	return rand.New(rand.NewPCG(x.opts.Seed, h.Sum64()))
}

// scoped runs f with a scope on the device and returns f's error, or the scope's.
func (x *run) scoped(f func(s *tensor.Scope) error) error {
	s := tensor.NewScope(x.dev)
	err := f(s)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// job is a case of a suite, under its full name.
type job struct {
	suite string
	testCase
}

// skips reports whether the caller leaves a case out.
func (e *env) skips(name string) bool { return e.opts.Skip != nil && e.opts.Skip.MatchString(name) }

func (o *Options) wantsSuite(name string) bool {
	switch {
	case o.Mode == ModeGrad:
		return name == "gradients"
	case o.Suite != nil:
		return o.Suite.MatchString(name)
	case o.Golden != nil:
		return name == "operators" || name == "training"
	}
	return true
}

// runCase runs one case and turns its error into a status. The error is the case's, for what ends a run.
func (e *env) runCase(suite string, c testCase) (Result, error) {
	res := Result{Name: c.name, Suite: suite, Op: c.op, DType: c.dtype, Status: Pass}
	if e.skips(c.name) {
		res.Status, res.Message = Skip, "left out by the caller"
		return res, nil
	}
	x := &run{env: e, name: c.name}
	start := time.Now()
	err := guarded(func() error { return c.run(x) })
	res.Seconds = time.Since(start).Seconds()
	if x.has {
		res.WorstULP, res.OfBound = &x.ulp, &x.ofBound
	}
	res.Bound = x.bound
	var missing *NotSupportedError
	switch {
	case err == nil:
	case errors.As(err, &missing):
		res.Status, res.Message = NotSupported, missing.What
	default:
		res.Status, res.Message, res.Rerun = Fail, err.Error(), e.opts.RerunCommand(e.info.String(), c.name)
		errors.As(err, &res.Mismatch)
	}
	return res, err
}

// guarded turns a panic into an error: a case may not end the program.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// RerunCommand is the command that runs one case alone, by its full name.
func (o *Options) RerunCommand(device, name string) string {
	cmd := fmt.Sprintf("anygpu conformance --device %s --suite '^%s$' --case '^%s$'", device, strings.SplitN(name, "/", 2)[0], quoteMeta(name))
	if o.Seed != 0 {
		cmd += fmt.Sprintf(" --seed %d", o.Seed)
	}
	if o.Golden != nil {
		cmd += " --golden " + o.GoldenName
	}
	return cmd
}

// quoteMeta quotes the characters of case names that mean something in a regular expression.
func quoteMeta(s string) string {
	return strings.NewReplacer(".", `\.`, "+", `\+`, "(", `\(`, ")", `\)`, "[", `\[`, "]", `\]`).Replace(s)
}

// T is the part of testing.TB that Test needs; it keeps package testing out of programs.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Context() context.Context
}

// Test holds dev against all suites, quickly, and reports each failed case with the command that reruns it. It is the one line
// that a new backend's own test needs.
func Test(t T, dev backend.Device) {
	t.Helper()
	r, err := Check(dev, Options{Quick: true, Context: t.Context()})
	if err != nil {
		t.Errorf("conformance: %v", err)
	}
	if r == nil {
		return
	}
	for _, res := range r.Results {
		if res.Status == Fail {
			t.Errorf("%s: %s\n  rerun: %s", res.Name, res.Message, res.Rerun)
		}
	}
	c := r.Counts()
	missing := r.Missing()
	t.Logf("%s: %d passed, %d failed, %d not supported", r.Device.String(), c[Pass], c[Fail], c[NotSupported])
	for _, what := range slices.Sorted(mapsKeys(missing)) {
		t.Logf("not supported: %s (%d cases)", what, missing[what])
	}
}
