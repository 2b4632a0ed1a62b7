package tensor

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/anygpu/anygpu/backend"
)

// Scope gives device memory a lifetime: what is computed from its tensors belongs to it and is freed by [Scope.Close]. A
// training step usually has one. Where operands belong to several scopes, the result belongs to the innermost,
// which is the one made last. A scope and its tensors belong to one goroutine at a time.
type Scope struct {
	eng      *engine
	parent   *Scope
	serial   uint64
	owned    *refList
	children map[*Scope]struct{}
	err      error // the first error of the scope's operators
	checks   []*check
	closed   bool

	// Properties for the extent of a call.
	noGrad   int
	caster   Caster
	noCast   bool
	redirect *Scope // where results go while a backward pass runs
	observer *observation
	origin   *site // of the operator whose gradient is being computed: its place is the one that errors name

	originModule string // the layer of that operator, if it was observed

	stock stock // of its device
}

// refList is apart from the scope so that a cleanup can free a scope that was dropped without Close.
type refList struct {
	mu   sync.Mutex
	refs []*ref
	room *[]*ref // of refLists, where refs came from
}

// refLists has lists to be used again.
var refLists = sync.Pool{New: func() any { return new([]*ref) }}

// add appends a reference; l.mu is held.
func (l *refList) add(r *ref) {
	if l.room == nil {
		l.room = refLists.Get().(*[]*ref)
		l.refs = (*l.room)[:0]
	}
	l.refs = append(l.refs, r)
}

func (l *refList) releaseAll() {
	l.mu.Lock()
	refs, room := l.refs, l.room
	l.refs, l.room = nil, nil
	l.mu.Unlock()
	if room == nil {
		return
	}
	var e *engine // whose lock is held
	for _, r := range refs {
		if r.done.Swap(true) {
			continue
		}
		r.leave()
		if st := r.st; st.refs.Add(-1) == 0 {
			if st.eng != e {
				if e != nil {
					e.mu.Unlock()
				}
				e = st.eng
				e.mu.Lock()
			}
			st.drop()
		}
	}
	if e != nil {
		e.mu.Unlock()
	}
	clear(refs)
	*room = refs[:0]
	refLists.Put(room)
}

// failure returns the error of the first storage that could not be made.
func (l *refList) failure() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e *engine // whose lock is held
	for _, r := range l.refs {
		if r.done.Load() {
			continue
		}
		if r.st.eng != e {
			if e != nil {
				e.mu.Unlock()
			}
			e = r.st.eng
			e.mu.Lock()
		}
		if err = r.st.err; err != nil {
			break
		}
	}
	if e != nil {
		e.mu.Unlock()
	}
	return err
}

func (l *refList) buryAll() {
	for _, r := range l.refs { // unreachable: no lock needed
		r.bury()
	}
}

var scopeSerial atomic.Uint64

// NewScope returns a scope for tensors on dev. A nil device gives a scope whose operations fail.
func NewScope(dev backend.Device) *Scope { return newScope(nil, dev) }

// NewScope returns a scope inside s: made later, so innermost, and closed with s at the latest.
func (s *Scope) NewScope() *Scope {
	if s == nil {
		return newScope(nil, nil)
	}
	return newScope(s, s.Device())
}

// newTemporary returns a scope that is discarded for sure, by the function that makes it.
func newTemporary(parent *Scope, e *engine) *Scope {
	t := &struct {
		scope Scope
		owned refList
	}{}
	t.scope = Scope{eng: e, parent: parent, serial: scopeSerial.Add(1), owned: &t.owned}
	if parent != nil {
		t.scope.eng = parent.eng
	}
	return &t.scope
}

func newScope(parent *Scope, dev backend.Device) *Scope {
	s := &Scope{parent: parent, serial: scopeSerial.Add(1), owned: &refList{}}
	if parent != nil {
		s.eng, s.err = parent.eng, nil
		if parent.children == nil {
			parent.children = map[*Scope]struct{}{}
		}
		parent.children[s] = struct{}{}
	} else {
		s.eng, s.err = engineFor(dev)
	}
	runtime.AddCleanup(s, (*refList).buryAll, s.owned)
	return s
}

// Device returns the scope's device.
func (s *Scope) Device() backend.Device {
	if s == nil || s.eng == nil {
		return nil
	}
	return s.eng.dev
}

// To returns t on the scope's device, in the scope: a copy, or the same memory if t is there already. It is
// differentiable.
func (s *Scope) To(t *Tensor) *Tensor {
	c := begin(opTo, t)
	c.scope = s
	switch {
	case c.err != nil:
		return c.failed()
	case s == nil || s.eng == nil || s.closed:
		return c.fail("", errorOf(ErrDevice, "the scope is closed or has no device"))
	}
	return c.to(s.eng)
}

// Close frees what belongs to the scope, after submitting the work that is pending, and returns the first error of
// the scope's operators: with operator, shapes and line, also one that was found only when it ran. A second call
// does nothing.
func (s *Scope) Close() error {
	if s == nil || s.closed {
		return nil
	}
	for c := range s.children {
		s.note(c.Close())
	}
	if s.eng != nil {
		s.note(s.eng.flush())
		s.note(s.owned.failure())
		s.note(runChecks(s.checks))
	}
	s.closed = true
	s.owned.releaseAll()
	s.stock.giveBack(s.eng)
	s.checks = nil
	if s.parent != nil {
		delete(s.parent.children, s)
	}
	return s.err
}

// Err returns the first error of the scope so far, without waiting for pending work.
func (s *Scope) Err() error {
	if s == nil {
		return nil
	}
	return s.err
}

// String names the scope's device and state.
func (s *Scope) String() string {
	switch {
	case s == nil:
		return "scope(nil)"
	case s.closed:
		return "scope(closed)"
	case s.eng == nil:
		return fmt.Sprintf("scope(failed: %v)", s.err)
	}
	return fmt.Sprintf("scope(%s, %d tensors)", s.eng.name, len(s.owned.refs))
}

// note remembers the first error.
func (s *Scope) note(err error) {
	if s != nil && s.err == nil && err != nil {
		s.err = err
	}
}

// own takes the reference of a new tensor of the scope.
func (s *Scope) own(r *ref) {
	r.scoped = true
	r.st.scoped.Add(1)
	s.owned.mu.Lock()
	s.owned.add(r)
	s.owned.mu.Unlock()
	if s.closed {
		r.release()
	}
}

// innermost returns the scope made last among the tensors' scopes, or where it sends results to.
func innermost(ts []*Tensor) *Scope {
	var s *Scope
	for _, t := range ts {
		if t != nil && t.scope != nil && (s == nil || t.scope.serial > s.serial) {
			s = t.scope
		}
	}
	for s != nil && s.redirect != nil {
		s = s.redirect
	}
	return s
}

// gradOff reports whether NoGrad is in force for results of the scope.
func (s *Scope) gradOff() bool {
	for ; s != nil; s = s.parent {
		if s.noGrad > 0 {
			return true
		}
	}
	return false
}

// GradEnabled reports whether operators whose results belong to s record gradients now: NoGrad is not in force.
func (s *Scope) GradEnabled() bool { return !s.gradOff() }

// NoGrad runs f; operators whose results belong to s or a scope inside it record no gradient meanwhile. It returns f's
// result. Calls nest.
func NoGrad(s *Scope, f func() *Tensor) *Tensor {
	if s == nil {
		return failed(trap(fmt.Errorf("no_grad: the scope is nil")), nil)
	}
	s.noGrad++
	defer func() { s.noGrad-- }()
	return f()
}

// Caster rewrites an operator's operands before it runs: autocast. op.Class says what the operator wants.
type Caster func(op *OpInfo, in []*Tensor) ([]*Tensor, error)

// SetCaster sets the caster for results of s and of scopes inside it, and returns the one before, to be set again at the end
// of the call for which it holds. A nil caster leaves the outer scope's in force; [NoCast] switches it off.
func (s *Scope) SetCaster(c Caster) Caster {
	old := s.caster
	s.caster = c
	return old
}

// NoCast is a caster that leaves operands as they are.
func NoCast(op *OpInfo, in []*Tensor) ([]*Tensor, error) { return in, nil }

// noCasts switches autocast off for results of s until the function that it returns is called.
func (s *Scope) noCasts() (restore func()) {
	if s == nil || s.noCast {
		return func() {}
	}
	s.noCast = true
	return func() { s.noCast = false }
}

// currentCaster returns the innermost caster in force.
func (s *Scope) currentCaster() Caster {
	for ; s != nil; s = s.parent {
		if s.noCast {
			return nil
		}
		if s.caster != nil {
			return s.caster
		}
	}
	return nil
}
