package conformance

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"regexp"
)

// Mode is what a run does.
type Mode string

// The modes.
const (
	ModeCheck   Mode = "check"   // all suites
	ModeGrad    Mode = "grad"    // the gradients only
	ModePerf    Mode = "perf"    // measure operators against the device's copy bandwidth and product rate
	ModeSupport Mode = "support" // which operators and dtypes the device takes; nothing is computed
)

// Options says what to run. The zero value is a full check.
type Options struct {
	Mode  Mode
	Suite *regexp.Regexp // suites to run, by name; nil is all
	Case  *regexp.Regexp // cases to run, by full name ("operators/add/float32/contiguous"); nil is all. Others are not counted
	Skip  *regexp.Regexp // cases to leave out; they are reported as skipped
	Quick bool           // a sample of the cases: minutes instead of tens of minutes
	Seed  uint64         // of operands and random kernels

	// Golden is a directory of recorded cases to run instead of those that come with the package: operators (cases.json)
	// or training (one folder a case), or a folder with such folders. Unless Suite is set only these cases run.
	Golden fs.FS
	// GoldenName names Golden in the commands that rerun a case.
	GoldenName string

	// Progress is called after each case with the number of cases done and of all; nil is no report.
	Progress func(done, total int, name string)
	// Context ends a run early; the cases not run are then missing from the report, and Check returns the context's error.
	Context context.Context
}

// samples reports whether a quick run takes something of an operator that it takes of one in n: which, depends on the seed.
func (o *Options) samples(op string, n int) bool {
	if n <= 0 {
		return false
	}
	h := fnv.New64a()
	h.Write([]byte(op))
	return (h.Sum64()+o.Seed)%uint64(n) == 0
}

func (o *Options) defaults() error {
	switch o.Mode {
	case "":
		o.Mode = ModeCheck
	case ModeCheck, ModeGrad, ModePerf, ModeSupport:
	default:
		return fmt.Errorf("conformance: unknown mode %q: there are check, grad, perf and support", o.Mode)
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
	return nil
}
