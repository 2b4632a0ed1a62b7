package interp

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool bounds how many goroutines compute at once, over all concurrent users. It starts goroutines when there is work and
// keeps none when there is not. The zero value is not usable; see [NewPool].
type Pool struct {
	tokens chan struct{} // one for each helper that may run
}

// NewPool returns a pool of n workers, the caller of Do included; n below 1 is GOMAXPROCS.
func NewPool(n int) *Pool {
	if n < 1 {
		n = runtime.GOMAXPROCS(0)
	}
	return &Pool{tokens: make(chan struct{}, n-1)}
}

var defaultPool = sync.OnceValue(func() *Pool { return NewPool(0) })

// DefaultPool returns the pool shared by the process, with GOMAXPROCS workers.
func DefaultPool() *Pool { return defaultPool() }

// Size returns the number of workers, the caller included.
func (p *Pool) Size() int { return cap(p.tokens) + 1 }

// Do calls f from the caller's goroutine and from up to workers-1 others, as many as are free, and returns when all have
// returned. f takes pieces of work until there are none. A panic in any of them is a panic of the caller.
func (p *Pool) Do(workers int, f func()) {
	var wg sync.WaitGroup
	var panicked atomic.Pointer[any]
	for range workers - 1 {
		select {
		case p.tokens <- struct{}{}:
			wg.Go(func() {
				defer func() {
					if v := recover(); v != nil {
						panicked.Store(&v)
					}
					<-p.tokens
				}()
				f()
			})
			continue
		default:
		}
		break
	}
	func() {
		defer wg.Wait()
		f()
	}()
	if v := panicked.Load(); v != nil {
		panic(*v)
	}
}
