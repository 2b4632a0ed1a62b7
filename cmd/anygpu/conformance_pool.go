package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/anygpu/anygpu/conformance"
)

// workerProgram is the program that workers are started from; main sets it. Where it is empty, as in tests, whose program is
// another one, cases run in this process.
var workerProgram string

// mostWorkers is how many processes use one device at a time, and mostEnds how many of a device's processes may end before their
// time until the device is given up.
const (
	mostWorkers = 4
	mostEnds    = 20
)

// compiledAhead is how many times a case's limit the compilation of the kernels of many cases may take.
const compiledAhead = 6

// casePool runs the cases of several devices in worker processes.
type casePool struct {
	cfg   conformanceConfig
	opts  conformance.Options
	start func(ctx context.Context, device string) (*worker, error)

	mu      sync.Mutex
	changed *sync.Cond
	devices []*pooledDevice
}

// pooledDevice is a device's state in a pool. The pool's lock guards it.
type pooledDevice struct {
	name    string
	plan    *workerPlan // nil until a worker has listed the cases
	pieces  []workerPiece
	workers int
	ends    int // processes that ended before their time
	results []*conformance.Result
	started time.Time
	seconds float64
	bar     *bar
	err     error
}

func newCasePool(cfg conformanceConfig, opts conformance.Options) *casePool {
	p := &casePool{cfg: cfg, opts: opts}
	p.changed = sync.NewCond(&p.mu)
	p.start = func(ctx context.Context, device string) (*worker, error) {
		return startWorker(ctx, workerProgram, cfg.workerArgs(device))
	}
	return p
}

// check runs the cases on all devices, in as many processes at a time as were asked for, and returns the reports in the order of
// names.
func (p *casePool) check(ctx context.Context, names []string, bars *progress) []deviceResult {
	for _, name := range names {
		p.devices = append(p.devices, &pooledDevice{name: name})
	}
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})()
	var group sync.WaitGroup
	for range p.cfg.jobs {
		group.Go(func() {
			for d := p.next(ctx); d != nil; d = p.next(ctx) {
				p.work(ctx, d, bars)
			}
		})
	}
	group.Wait()
	out := make([]deviceResult, len(names))
	for i, d := range p.devices {
		out[i] = d.result(ctx)
	}
	return out
}

// result is the report of what was run.
func (d *pooledDevice) result(ctx context.Context) deviceResult {
	out := deviceResult{err: d.err}
	if d.plan != nil {
		out.report = d.plan.Report
		out.report.Seconds = d.seconds
		missing := 0
		for _, r := range d.results {
			if r != nil {
				out.report.Results = append(out.report.Results, *r)
			} else {
				missing++
			}
		}
		if d.bar != nil {
			d.bar.note(fmt.Sprintf("%d failed", out.report.Counts()[conformance.Fail]))
			d.bar.abort()
		}
		if d.err != nil && missing > 0 {
			out.err = fmt.Errorf("%d cases did not run: %w", missing, d.err)
		}
	}
	if out.err == nil {
		out.err = ctx.Err()
	}
	return out
}

// next returns the device that a process should be started for, and waits while there may be one later: nil is the end.
func (p *casePool) next(ctx context.Context) *pooledDevice {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ctx.Err() == nil {
		listing := false
		var best *pooledDevice
		for _, d := range p.devices {
			if d.err != nil {
				continue
			}
			unlisted := d.plan == nil
			if unlisted && d.workers > 0 {
				listing = true
				continue
			}
			// Devices that nobody works on come first, so that each is known to open early.
			if (unlisted || len(d.pieces) > 0) && d.workers < mostWorkers && (best == nil || d.workers < best.workers) {
				best = d
			}
		}
		if best != nil {
			best.workers++
			if best.started.IsZero() {
				best.started = time.Now()
			}
			return best
		}
		if !listing && !p.busy() {
			return nil
		}
		p.changed.Wait()
	}
	return nil
}

// busy reports whether a worker is at a piece, of which something may come back. The lock is held.
func (p *casePool) busy() bool {
	for _, d := range p.devices {
		if d.workers > 0 && d.err == nil {
			return true
		}
	}
	return false
}

// work starts a worker for a device and gives it pieces until there are none or it ends.
func (p *casePool) work(ctx context.Context, d *pooledDevice, bars *progress) {
	defer func() {
		p.mu.Lock()
		d.workers--
		d.seconds = time.Since(d.started).Seconds()
		p.changed.Broadcast()
		p.mu.Unlock()
	}()
	w, err := p.start(ctx, d.name)
	if err != nil {
		p.giveUp(d, err)
		return
	}
	defer w.close()
	line, err := w.read(p.cfg.caseTimeout)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		p.giveUp(d, fmt.Errorf("the device could not be opened: %w", err))
		return
	case line.Error != "":
		p.giveUp(d, errors.New(line.Error))
		return
	case line.Plan == nil || !p.planned(d, line.Plan, bars):
		p.giveUp(d, errors.New("its processes list different cases"))
		return
	}
	for {
		p.mu.Lock()
		if len(d.pieces) == 0 || d.err != nil || ctx.Err() != nil {
			p.mu.Unlock()
			return
		}
		piece := d.pieces[0]
		d.pieces = d.pieces[1:]
		p.mu.Unlock()
		if !p.runPiece(ctx, d, w, piece) {
			return
		}
	}
}

// planned takes a worker's list of cases; the first is the device's.
func (p *casePool) planned(d *pooledDevice, plan *workerPlan, bars *progress) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.plan != nil {
		return len(plan.Cases) == len(d.plan.Cases)
	}
	d.plan = plan
	d.results = make([]*conformance.Result, len(plan.Cases))
	for _, cases := range plan.Pieces {
		d.pieces = append(d.pieces, workerPiece{Cases: cases, Rehearsed: true})
	}
	if len(plan.Cases) > 0 {
		d.bar = bars.add(d.name, len(plan.Cases))
	}
	p.changed.Broadcast()
	return true
}

func (p *casePool) giveUp(d *pooledDevice, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
	p.changed.Broadcast()
}

// runPiece has a worker run a piece, and reports whether the worker can run another. The case in which it ended has failed; those
// that did not run go back.
func (p *casePool) runPiece(ctx context.Context, d *pooledDevice, w *worker, piece workerPiece) bool {
	current := -1
	ran := map[int]bool{}
	record := func(i int, r *conformance.Result) {
		if i < 0 || i >= len(d.results) || ran[i] {
			return
		}
		ran[i] = true
		p.mu.Lock()
		d.results[i] = r
		p.mu.Unlock()
		d.bar.increment()
	}
	err := w.ask(piece)
	for err == nil {
		limit := p.cfg.caseTimeout
		if current < 0 && piece.Rehearsed {
			limit *= compiledAhead
		}
		var line workerLine
		if line, err = w.read(limit); err != nil {
			break
		}
		switch {
		case line.Started != nil:
			current = *line.Started
		case line.Result != nil:
			record(line.Case, line.Result)
			current = -1
		case line.Done:
			return true
		case line.Error != "": // the device was lost in a case, whose result is there
			err = errors.New(line.Error)
		}
	}
	if ctx.Err() != nil {
		return false
	}
	if current < 0 && !piece.Rehearsed && len(ran) == 0 && len(piece.Cases) > 0 {
		current = piece.Cases[0] // it does not come to the case
	}
	if current >= 0 && current < len(d.plan.Cases) {
		record(current, p.ended(d, current, err))
	}
	rest := workerPiece{Rehearsed: piece.Rehearsed && (current >= 0 || len(ran) > 0)}
	for _, i := range piece.Cases {
		if !ran[i] {
			rest.Cases = append(rest.Cases, i)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.ends++; d.ends > mostEnds && d.err == nil {
		d.err = fmt.Errorf("given up after %d processes that ended before their time, the last with: %w", d.ends, err)
	}
	if len(rest.Cases) > 0 {
		d.pieces = append(d.pieces, rest)
	}
	p.changed.Broadcast()
	return false
}

// ended is the result of a case in which a worker ended.
func (p *casePool) ended(d *pooledDevice, i int, err error) *conformance.Result {
	name := d.plan.Cases[i]
	suite, _, _ := strings.Cut(name, "/")
	return &conformance.Result{Name: name, Suite: suite, Status: conformance.Fail, Message: err.Error(), Rerun: p.opts.RerunCommand(d.name, name)}
}
