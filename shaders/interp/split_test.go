package interp_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anygpu/anygpu/shaders/interp"
)

func TestSplitGivesEachNumberOnce(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 7, 64, 1000} {
		for _, workers := range []int{1, 2, 3, 8} {
			for _, unit := range []int64{1, 3, 64} {
				s := interp.NewSplit(n, workers, unit)
				times := make([]atomic.Int32, n)
				var wg sync.WaitGroup
				for range workers + 1 { // one more than it was made for
					wg.Go(func() {
						share := s.Share()
						for {
							from, count := share.Next(5)
							if count == 0 {
								return
							}
							for i := from; i < from+count; i++ {
								times[i].Add(1)
							}
						}
					})
				}
				wg.Wait()
				for i := range times {
					if c := times[i].Load(); c != 1 {
						t.Fatalf("n=%d, workers=%d, unit=%d: number %d was given out %d times", n, workers, unit, i, c)
					}
				}
			}
		}
	}
}

// TestSplitPartsKeepTheirFront: a part's own worker takes it in order from the front, others from the end.
func TestSplitPartsKeepTheirFront(t *testing.T) {
	s := interp.NewSplit(2000, 2, 1)
	x, y := s.Share(), s.Share()
	first, n := x.Next(10)
	for end := first%1000 + n; end < 1000; end += n { // the rest of its own part
		var from int64
		if from, n = x.Next(10); from != first+end {
			t.Fatalf("the next piece of a worker's own part starts at %d, want %d", from, first+end)
		}
	}
	end := (first+1000)%2000 + 1000 // of the other part
	if from, n := x.Next(10); from+n != end {
		t.Errorf("the other part's piece is %d to %d, want one that ends at %d", from, from+n, end)
	}
	if from, _ := y.Next(10); from != end-1000 {
		t.Errorf("the other worker's piece starts at %d, want its part's front, %d", from, end-1000)
	}
}

func TestSplitStops(t *testing.T) {
	s := interp.NewSplit(100, 2, 1)
	share := s.Share()
	if _, n := share.Next(1); n != 1 {
		t.Fatalf("the first piece has %d numbers", n)
	}
	s.Stop()
	if _, n := share.Next(1); n != 0 {
		t.Errorf("a piece of %d numbers after Stop", n)
	}
}

// TestPoolConcurrentUsers has several callers share few helpers, which come and go.
func TestPoolConcurrentUsers(t *testing.T) {
	for _, size := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			pool := interp.NewPool(size)
			var busy, most atomic.Int32
			var wg sync.WaitGroup
			for c := range 3 {
				wg.Go(func() {
					for round := range 300 {
						const n = 20
						var next, sum atomic.Int64
						pool.Do(size, func() {
							for b := busy.Add(1); b > most.Load(); {
								most.Store(b)
							}
							defer busy.Add(-1)
							for i := next.Add(1); i <= n; i = next.Add(1) {
								sum.Add(i)
							}
						})
						if got := sum.Load(); got != n*(n+1)/2 {
							t.Errorf("caller %d, round %d: the sum is %d", c, round, got)
							return
						}
						if round%50 == 0 {
							time.Sleep(time.Millisecond) // helpers end
						}
					}
				})
			}
			wg.Wait()
			if m := int(most.Load()); m > size-1+3 {
				t.Errorf("%d goroutines computed at once for 3 callers of a pool of %d", m, size)
			}
		})
	}
}

// TestPoolHelpersEnd: nobody computes or looks for work when there has been none for a while.
func TestPoolHelpersEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	pool := interp.NewPool(4)
	for range 20 {
		pool.Do(4, func() { time.Sleep(100 * time.Microsecond) })
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
