package conformance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anygpu/anygpu/backend"
)

// Session is a device with the cases of a run, for programs that run the cases some at a time: 'anygpu conformance' has several
// processes with a session each, so that a driver that ends its process takes one case with it and not the run.
type Session struct {
	e    *env
	jobs []job
}

// NewSession lists the cases that opts asks for on a device. The list is the same for each session with the same device and
// options. Modes other than check and grad have no cases and are an error.
func NewSession(dev backend.Device, opts Options) (*Session, error) {
	e, err := newEnv(dev, &opts)
	if err != nil {
		return nil, err
	}
	if opts.Mode != ModeCheck && opts.Mode != ModeGrad {
		return nil, fmt.Errorf("conformance: mode %s has no cases", opts.Mode)
	}
	return newSession(e)
}

func newEnv(dev backend.Device, opts *Options) (*env, error) {
	if dev == nil {
		return nil, errors.New("conformance: the device is nil")
	}
	if err := opts.defaults(); err != nil {
		return nil, err
	}
	golden, err := loadGoldenSet(opts)
	if err != nil {
		return nil, err
	}
	return &env{dev: dev, info: dev.Info(), opts: opts, golden: golden}, nil
}

func newSession(e *env) (*Session, error) {
	s := &Session{e: e}
	for _, suite := range suiteTable() {
		if !e.opts.wantsSuite(suite.name) {
			continue
		}
		cases, err := suite.cases(e)
		if err != nil {
			return nil, fmt.Errorf("suite %s: %w", suite.name, err)
		}
		for _, c := range cases {
			c.name = suite.name + "/" + c.name
			if e.opts.Case == nil || e.opts.Case.MatchString(c.name) {
				s.jobs = append(s.jobs, job{suite.name, c})
			}
		}
	}
	return s, nil
}

// Report returns a report about the session's device and options that has no results yet.
func (s *Session) Report() *Report { return newReport(s.e) }

// Cases returns the full names of the cases in the order of a report.
func (s *Session) Cases() []string {
	out := make([]string, len(s.jobs))
	for i, j := range s.jobs {
		out[i] = j.name
	}
	return out
}

// Pieces deals the cases, by their places in Cases, into pieces of about size that may run in different processes. Cases that
// have programs in common, those of one operator, are in one piece, so that each is compiled once. Pieces with the longest
// cases come first.
func (s *Session) Pieces(size int) [][]int {
	groups := map[string][]int{}
	var order []string
	for i, j := range s.jobs {
		key := j.group()
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	var out [][]int
	var piece []int
	weight := 0
	for i := len(order) - 1; i >= 0; i-- { // the last suites, training above all, have the longest cases
		for _, k := range groups[order[i]] {
			piece = append(piece, k)
			weight += s.jobs[k].weight()
		}
		if weight >= size || i == 0 {
			out = append(out, piece)
			piece, weight = nil, 0
		}
	}
	return out
}

// group names what a case shares programs with.
func (j job) group() string {
	switch {
	case j.joint != "":
		return j.joint
	case j.op != "":
		return j.op
	case j.suite == "training":
		return j.name
	case j.suite == "kernels":
		return strings.Join(strings.SplitN(j.name, "/", 3)[:2], "/")
	}
	return j.suite
}

// weight is about how many other cases' time a case takes.
func (j job) weight() int {
	if j.suite == "training" {
		return 50
	}
	return 1
}

// Observer is told what a session does. Its functions may be nil.
type Observer struct {
	Started func(i int)           // case i begins; what its kernels' compilation ahead took is over
	Done    func(i int, r Result) // case i has ended
}

// Run runs the cases at some places of Cases. Rehearsed, a device whose compiler takes long to start is given the kernels of
// several cases at a time, before the first of them begins. The error is that of a device that was lost or of a context that
// ended; the cases after it did not run.
func (s *Session) Run(cases []int, rehearsed bool, o Observer) error {
	jobs := make([]job, len(cases))
	for i, c := range cases {
		if c < 0 || c >= len(s.jobs) {
			return fmt.Errorf("conformance: there is no case %d: %d were listed", c, len(s.jobs))
		}
		jobs[i] = s.jobs[c]
	}
	var ahead *rehearser
	if rehearsed {
		ahead = newRehearser(s.e, jobs)
		defer ahead.close()
	}
	for i, j := range jobs {
		ahead.before(i)
		if err := s.e.opts.Context.Err(); err != nil {
			return err
		}
		if o.Started != nil {
			o.Started(cases[i])
		}
		res, err := s.e.runCase(j.suite, j.testCase)
		if o.Done != nil {
			o.Done(cases[i], res)
		}
		if errors.Is(err, backend.ErrDeviceLost) {
			return fmt.Errorf("%s was lost in case %s; %d cases did not run: %w", s.e.info, j.name, len(jobs)-i-1, err)
		}
	}
	return nil
}

// Check runs the suites on a device. The error is about the run itself (wrong options, a context that ended, cases that
// cannot be read); what a case finds is in the report.
func Check(dev backend.Device, opts Options) (*Report, error) {
	start := time.Now()
	e, err := newEnv(dev, &opts)
	if err != nil {
		return nil, err
	}
	r := newReport(e)
	defer func() { r.Seconds = time.Since(start).Seconds() }()
	switch opts.Mode {
	case ModeSupport:
		r.Support, err = support(e)
		return r, err
	case ModePerf:
		r.Perf, err = perf(e)
		return r, err
	}
	s, err := newSession(e)
	if err != nil {
		return r, err
	}
	all := make([]int, len(s.jobs))
	for i := range all {
		all[i] = i
	}
	err = s.Run(all, true, Observer{Done: func(i int, res Result) {
		r.Results = append(r.Results, res)
		opts.Progress(i+1, len(all), res.Name)
	}})
	return r, err
}
