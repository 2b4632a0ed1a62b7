package tensor

import (
	"slices"
	"sync"
	"sync/atomic"
)

// check is an assertion about a value that only the device knows, such as a label's range. It is evaluated when something
// computed from the value is read, or when its scope closes.
type check struct {
	passed atomic.Bool

	mu   sync.Mutex
	val  *Tensor // one int64; nil once evaluated
	test func(v int64) error
	err  error
}

// assert adds a check of val (one int64, in no scope; the check frees it) to the result t of the call and to its scope.
func (c *call) assert(t, val *Tensor, test func(v int64) error) {
	k := &check{val: val, test: test}
	if c.scope != nil {
		c.scope.checks = append(c.scope.checks, k)
	}
	t.eng.mu.Lock()
	t.ref.st.checks = mergeChecks(t.ref.st.checks, []*check{k})
	t.eng.mu.Unlock()
}

// run evaluates the check once.
func (k *check) run() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.val != nil {
		v := k.val
		k.val = nil
		vs, err := v.readInt64s()
		v.Free()
		switch {
		case err != nil:
			k.err = err
		case len(vs) == 1:
			k.err = k.test(vs[0])
		}
		k.passed.Store(k.err == nil)
	}
	return k.err
}

func runChecks(ks []*check) error {
	for _, k := range ks {
		if err := k.run(); err != nil {
			return err
		}
	}
	return nil
}

// mergeChecks returns the checks of both lists that are still of interest. Those that passed are dropped from both: parameters collect the
// checks of every step that updates them.
func mergeChecks(a, b []*check) []*check {
	if len(b) == 0 {
		return a
	}
	// Lists are never changed, so that one can be that of many storages.
	same := len(a) == 0 || len(a) == len(b) && &a[0] == &b[0]
	for _, k := range b {
		same = same && !k.passed.Load()
	}
	if same {
		return b
	}
	var out []*check // a new list: a may be that of several storages
	for _, list := range [][]*check{a, b} {
		for _, k := range list {
			if !k.passed.Load() && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}
