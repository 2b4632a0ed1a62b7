package backend

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func one(cost float64) Launch { return Launch{Groups: [3]int{1, 1, 1}, Cost: cost} }

func TestQueueBatches(t *testing.T) {
	many := func(n int, cost float64) []float64 {
		c := make([]float64, n)
		for i := range c {
			c[i] = cost
		}
		return c
	}
	for _, c := range []struct {
		name  string
		cfg   QueueConfig
		costs []float64
		want  []int // lengths of the submissions, with the flush
	}{
		{"nothing", QueueConfig{}, nil, nil},
		{"one", QueueConfig{}, many(1, 1), []int{1}},
		{"grows to the maximum", QueueConfig{}, many(1000, 1), []int{16, 32, 64, 128, 256, 256, 248}},
		{"count", QueueConfig{MaxLaunches: 4}, many(10, 0), []int{4, 4, 2}},
		{"one at a time", QueueConfig{MaxLaunches: 1}, many(3, 0), []int{1, 1, 1}},
		{"cost", QueueConfig{MaxCost: 10}, many(9, 4), []int{2, 2, 2, 2, 1}},
		{"cost is reached", QueueConfig{MaxCost: 10}, many(4, 5), []int{2, 2}},
		{"one that costs too much", QueueConfig{MaxCost: 10}, []float64{1, 1, 100, 1}, []int{2, 1, 1}},
		{"costs that are none", QueueConfig{MaxCost: 10}, []float64{math.NaN(), -5, 9, 2}, []int{3, 1}},
		{"infinite cost", QueueConfig{}, []float64{1, math.Inf(1), 1}, []int{1, 1, 1}},
		{"nonsense config", QueueConfig{MaxLaunches: -1, MaxCost: math.NaN(), MaxInFlight: -1}, many(20, 1), []int{16, 4}},
	} {
		dev := &fakeDevice{}
		q := NewQueue(dev, c.cfg)
		for _, cost := range c.costs {
			if err := q.Add(one(cost)); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(dev.batches, c.want) {
			t.Errorf("%s: submissions of %v launches, want %v", c.name, dev.batches, c.want)
		}
		if got, want := q.Stats(), (QueueStats{Launches: int64(len(c.costs)), Submissions: int64(len(c.want))}); got != want {
			t.Errorf("%s: stats %+v, want %+v", c.name, got, want)
		}
	}
}

// No submission of several launches is estimated to work longer than the bound.
func TestQueueBoundsWork(t *testing.T) {
	dev := &fakeDevice{}
	q := NewQueue(dev, QueueConfig{MaxCost: 100})
	for i := range 500 {
		if err := q.Add(one(float64(i * 37 % 120))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Flush(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, n := range dev.batches {
		total += n
		if n > 1 && dev.costs[i] > 100 {
			t.Errorf("submission %d of %d launches costs %v", i, n, dev.costs[i])
		}
	}
	if total != 500 {
		t.Errorf("%d launches arrived, want 500", total)
	}
}

func TestQueueLeavesOutEmptyLaunches(t *testing.T) {
	dev := &fakeDevice{}
	q := NewQueue(dev, QueueConfig{})
	for _, g := range [][3]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}} {
		if err := q.Add(Launch{Groups: g}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := q.Flush()
	if err != nil || !f.Done() || f.Wait(t.Context()) != nil || len(dev.batches) != 0 {
		t.Errorf("Flush: %v, %v, %v", f, err, dev.batches)
	}
}

func TestQueueBoundsSubmissionsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fences []*chanFence
		dev := &fakeDevice{}
		dev.fence = func() Fence {
			f := &chanFence{done: make(chan struct{})}
			fences = append(fences, f)
			return f
		}
		q := NewQueue(dev, QueueConfig{MaxLaunches: 1, MaxInFlight: 2})
		added := 0
		go func() {
			for range 4 {
				if err := q.Add(one(1)); err != nil {
					t.Error(err)
				}
				added++
			}
		}()
		for i, want := range []int{2, 3, 4, 4, 4} {
			synctest.Wait()
			if added != want {
				t.Errorf("after %d fences %d launches were added, want %d", i, added, want)
			}
			if i < 4 {
				close(fences[i].done)
			}
		}
		if s := q.Stats(); s.InFlight != 0 || s.Submissions != 4 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestQueueWaitEndsWithContext(t *testing.T) {
	dev := &fakeDevice{}
	f := &chanFence{done: make(chan struct{})}
	dev.fence = func() Fence { return f }
	q := NewQueue(dev, QueueConfig{})
	if err := q.Add(one(1)); err != nil {
		t.Fatal(err)
	}
	if s := q.Stats(); s.Pending != 1 {
		t.Errorf("stats %+v, want 1 pending", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	if s := q.Stats(); s.InFlight != 1 {
		t.Errorf("stats %+v, want 1 in flight", s)
	}
	// That is no error of the queue.
	close(f.done)
	if err := q.Wait(t.Context()); err != nil || q.Err() != nil {
		t.Errorf("Wait: %v, Err: %v", err, q.Err())
	}
}

func TestQueueErrorsStay(t *testing.T) {
	lost := func() Fence { return lostFence() }
	pendingLost := &chanFence{done: make(chan struct{}), err: errLost}
	for name, c := range map[string]func(q *Queue, d *fakeDevice) error{
		"submission by Add":   func(q *Queue, d *fakeDevice) error { d.submitErr = errLost; return q.Add(one(math.Inf(1))) },
		"submission by Flush": func(q *Queue, d *fakeDevice) error { d.submitErr = errLost; _, err := q.Flush(); return err },
		"fence by Wait":       func(q *Queue, d *fakeDevice) error { d.fence = lost; return q.Wait(context.Background()) },
		"fence found by a later submission": func(q *Queue, d *fakeDevice) error {
			d.fence = lost
			if _, err := q.Flush(); err != nil {
				return err
			}
			return q.Add(one(math.Inf(1)))
		},
		"fence found by Stats": func(q *Queue, d *fakeDevice) error {
			d.fence = lost
			q.Flush()
			q.Stats()
			return q.Err()
		},
		"fence waited for because many are in flight": func(q *Queue, d *fakeDevice) error {
			d.fence = func() Fence { return pendingLost }
			q.Flush()
			go close(pendingLost.done)
			return q.Add(one(math.Inf(1)))
		},
	} {
		dev := &fakeDevice{}
		q := NewQueue(dev, QueueConfig{MaxInFlight: 1})
		if err := q.Add(one(1)); err != nil {
			t.Fatal(err)
		}
		if err := c(q, dev); !errors.Is(err, ErrDeviceLost) {
			t.Errorf("%s: %v", name, err)
		}
		n := len(dev.batches)
		_, ferr := q.Flush()
		for call, err := range map[string]error{"Add": q.Add(one(1)), "Flush": ferr, "Wait": q.Wait(context.Background()), "Err": q.Err()} {
			if err != error(errLost) {
				t.Errorf("%s: %s afterwards: %v", name, call, err)
			}
		}
		if s := q.Stats(); s.Pending != 0 || s.InFlight != 0 || len(dev.batches) != n {
			t.Errorf("%s: stats %+v; the queue goes on", name, s)
		}
	}
}

func TestQueueConcurrently(t *testing.T) {
	dev := &fakeDevice{}
	q := NewQueue(dev, QueueConfig{MaxLaunches: 7})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 300 {
				if err := q.Add(one(1)); err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					if err := q.Wait(context.Background()); err != nil {
						t.Error(err)
					}
					q.Stats()
				}
			}
		})
	}
	wg.Wait()
	if err := q.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	total := 0
	for _, n := range dev.batches {
		total += n
	}
	if s := q.Stats(); total != 2400 || s.Launches != 2400 || s.Submissions != int64(len(dev.batches)) {
		t.Errorf("%d launches arrived, stats %+v", total, s)
	}
}
