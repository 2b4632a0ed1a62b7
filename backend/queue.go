package backend

import (
	"context"
	"slices"
	"sync"
)

// QueueConfig bounds a queue's submissions. Zero values are defaults.
type QueueConfig struct {
	// MaxLaunches is the number of launches in a submission; 256 by default.
	MaxLaunches int

	// MaxCost is the estimated work of a submission, in units of Launch.Cost; 1e10 by default, about half a second on a
	// slow integrated GPU. Drivers reset a device that works on one submission for too long: after 2 seconds on Windows,
	// 10 with amdgpu. A launch that costs more than that is submitted by itself.
	MaxCost float64

	// MaxInFlight is the number of submissions that may be under way; 8 by default. Add and Flush wait when it is
	// reached, so that the host cannot run ahead of the device without bound.
	MaxInFlight int
}

const (
	defaultMaxLaunches = 256
	defaultMaxCost     = 1e10
	defaultMaxInFlight = 8
	firstLaunches      = 16 // in the first submission after a flush
)

// QueueStats are a queue's counters.
type QueueStats struct {
	Launches    int64 // launches added, less empty ones
	Submissions int64
	Pending     int // launches not yet submitted
	InFlight    int // submissions not known to be done
}

// Queue collects launches for a device and submits them in batches, in order. The first batch after a flush is small and
// the next ones grow, so that an idle device starts soon.
//
// An error of a submission or a fence, such as a lost device, stays: that call and every later one return it, because
// results that later launches build on are missing. Launches that were pending are dropped.
//
// Launches see the work before them in the order of Add. Host transfers do not wait for pending launches: call Flush
// before Buffer.Write and Buffer.Read. Programs and buffers of pending launches must not be freed; [Allocator]
// blocks may be. All methods may be called from several goroutines.
type Queue struct {
	dev Device
	cfg QueueConfig

	mu       sync.Mutex
	err      error
	pending  []Launch
	spare    []Launch // an empty list for pending
	cost     float64
	batch    int // launches at which the next submission is due
	inflight []Fence
	last     Fence
	stats    QueueStats
}

// NewQueue returns a queue of dev.
func NewQueue(dev Device, cfg QueueConfig) *Queue {
	if cfg.MaxLaunches <= 0 {
		cfg.MaxLaunches = defaultMaxLaunches
	}
	if !(cfg.MaxCost > 0) { // also NaN
		cfg.MaxCost = defaultMaxCost
	}
	if cfg.MaxInFlight <= 0 {
		cfg.MaxInFlight = defaultMaxInFlight
	}
	q := &Queue{dev: dev, cfg: cfg, last: doneFence{}}
	q.restart()
	return q
}

func (q *Queue) restart() { q.batch = min(firstLaunches, q.cfg.MaxLaunches) }

// Add appends a launch, whose slices must stay as they are until a Flush has returned, and submits a batch if one is due. An empty launch (a zero in
// Groups) is left out.
func (q *Queue) Add(l Launch) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	if l.Groups[0] == 0 || l.Groups[1] == 0 || l.Groups[2] == 0 {
		return nil
	}
	// Before it, so that the bound holds for the batch with the launch, too.
	if len(q.pending) > 0 && q.cost+l.Cost > q.cfg.MaxCost {
		if err := q.submit(); err != nil {
			return err
		}
	}
	if q.pending == nil {
		if q.pending, q.spare = q.spare, nil; q.pending == nil {
			q.pending = make([]Launch, 0, q.batch)
		}
	}
	q.pending = append(q.pending, l)
	q.stats.Launches++
	if l.Cost > 0 {
		q.cost += l.Cost
	}
	if len(q.pending) < q.batch && q.cost < q.cfg.MaxCost {
		return nil
	}
	if err := q.submit(); err != nil {
		return err
	}
	q.batch = min(2*q.batch, q.cfg.MaxLaunches)
	return nil
}

// Flush submits what is pending and returns the fence of the last submission. Where nothing was ever submitted the
// fence is done.
func (q *Queue) Flush() (Fence, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return nil, q.err
	}
	q.restart()
	if len(q.pending) > 0 {
		if err := q.submit(); err != nil {
			return nil, err
		}
	}
	return q.last, nil
}

// Wait flushes and waits until everything added is done or ctx ends. The end of ctx is no lasting error.
func (q *Queue) Wait(ctx context.Context) error {
	f, err := q.Flush()
	if err != nil {
		return err
	}
	err = f.Wait(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			q.fail(err)
		}
		return err
	}
	return q.reap()
}

// Err returns the error that stays, or nil.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Stats returns the counters.
func (q *Queue) Stats() QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	_ = q.reap() // an error stays in q.err
	s := q.stats
	s.Pending, s.InFlight = len(q.pending), len(q.inflight)
	return s
}

// submit hands the pending launches to the device. q.mu is held; others who want to add launches wait as well, which
// keeps the order.
func (q *Queue) submit() error {
	if err := q.reap(); err != nil {
		return err
	}
	for len(q.inflight) >= q.cfg.MaxInFlight {
		if err := q.inflight[0].Wait(context.Background()); err != nil {
			return q.fail(err)
		}
		q.inflight = slices.Delete(q.inflight, 0, 1)
	}
	batch := q.pending
	q.pending, q.cost = nil, 0
	f, err := q.dev.Submit(batch)
	clear(batch)
	q.spare = batch[:0]
	if err != nil {
		return q.fail(err)
	}
	q.stats.Submissions++
	q.inflight = append(q.inflight, f)
	q.last = f
	return nil
}

// reap forgets submissions that are done, and finds their errors.
func (q *Queue) reap() error {
	n := 0
	for n < len(q.inflight) && q.inflight[n].Done() {
		if err := q.inflight[n].Wait(context.Background()); err != nil {
			return q.fail(err)
		}
		n++
	}
	q.inflight = slices.Delete(q.inflight, 0, n)
	return q.err
}

func (q *Queue) fail(err error) error {
	if q.err == nil {
		q.err = err
	}
	if s, ok := As[*shared](q.dev); ok {
		s.note(err)
	}
	q.pending, q.cost, q.inflight = nil, 0, nil
	return q.err
}

// doneFence is the fence of no work.
type doneFence struct{}

func (doneFence) Wait(context.Context) error { return nil }
func (doneFence) Done() bool                 { return true }
