package interp

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// linger is how long a helper that has finished looks for more work before it ends, and a caller for its helpers' end before it sleeps: waking a
// thread that sleeps takes 30 to 100 µs, and a training step has launches for one worker between those for all. Whoever looks lets other goroutines run.
const linger = 400 * time.Microsecond

// Pool bounds how many goroutines compute at once, over all concurrent users. It starts goroutines when there is work; they end soon
// after it. The zero value is not usable; see [NewPool].
type Pool struct {
	tokens chan struct{} // one for each helper that may exist

	mu   sync.Mutex
	idle []*helper // helpers that look for work
}

// helper is a goroutine that computes for callers of Do.
type helper struct {
	job atomic.Pointer[job] // an invitation that was not taken yet
}

// job is a call of Do.
type job struct {
	f        func()
	left     atomic.Int32 // helpers that are invited or at work
	done     sync.WaitGroup
	panicked atomic.Pointer[any]
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
// returned. f takes pieces of work until there are none: helpers that did not start before the caller's f returned do not call it. A panic in
// any of them is a panic of the caller.
func (p *Pool) Do(workers int, f func()) {
	if workers < 2 || p.Size() < 2 {
		f()
		return
	}
	j := &job{f: f}
	invited := p.invite(j, workers-1)
	defer func() {
		p.withdraw(j, invited)
		j.wait()
		if v := j.panicked.Load(); v != nil {
			panic(*v)
		}
	}()
	f()
}

// invite gives a job to up to n helpers: those that look for work, then new ones.
func (p *Pool) invite(j *job, n int) []*helper {
	p.mu.Lock()
	k := min(n, len(p.idle))
	invited := slices.Clone(p.idle[len(p.idle)-k:])
	p.idle = p.idle[:len(p.idle)-k]
	p.mu.Unlock()
	j.left.Store(int32(k))
	j.done.Add(k)
	for _, h := range invited {
		h.job.Store(j)
	}
	for len(invited) < n {
		select {
		case p.tokens <- struct{}{}:
		default:
			return invited
		}
		h := &helper{}
		h.job.Store(j)
		j.left.Add(1)
		j.done.Add(1)
		invited = append(invited, h)
		go p.help(h)
	}
	return invited
}

// withdraw takes back the invitations that no helper has taken.
func (p *Pool) withdraw(j *job, invited []*helper) {
	for _, h := range invited {
		if h.job.CompareAndSwap(j, nil) {
			p.rest(h)
			j.finish()
		}
	}
}

func (p *Pool) rest(h *helper) {
	p.mu.Lock()
	p.idle = append(p.idle, h)
	p.mu.Unlock()
}

func (j *job) finish() {
	j.left.Add(-1)
	j.done.Done()
}

// wait waits for the helpers.
func (j *job) wait() {
	if j.left.Load() != 0 {
		for start := time.Now(); j.left.Load() != 0 && time.Since(start) < linger; {
			runtime.Gosched()
		}
	}
	j.done.Wait()
}

// help does jobs until there has been none for a while.
func (p *Pool) help(h *helper) {
	for {
		if j := p.next(h); j != nil {
			j.run()
			p.rest(h)
			j.finish()
		} else {
			<-p.tokens
			return
		}
	}
}

func (j *job) run() {
	defer func() {
		if v := recover(); v != nil {
			j.panicked.Store(&v)
		}
	}()
	j.f()
}

// next waits for an invitation, nil after a while without one.
func (p *Pool) next(h *helper) *job {
	for start := time.Now(); ; {
		if j := h.job.Load(); j != nil {
			if h.job.CompareAndSwap(j, nil) {
				return j
			}
			continue
		}
		if time.Since(start) > linger && p.leave(h) {
			return nil
		}
		runtime.Gosched()
	}
}

// leave takes a helper out of those that look for work; false if it was invited meanwhile.
func (p *Pool) leave(h *helper) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, h)
	if i < 0 {
		return false
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	return true
}
