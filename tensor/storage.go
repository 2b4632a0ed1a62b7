package tensor

import (
	"sync/atomic"
)

// storage is what tensors share: memory of a device, or a pending computation of it.
type storage struct {
	eng    *engine
	dtype  DType
	n      int // elements
	serial uint64
	refs   atomic.Int32

	version atomic.Uint32 // counts updates in place

	scoped atomic.Int32 // claims of tensors that a scope owns

	taken bool // first is in use; set before the storage is shared

	// Guarded by eng.mu.
	leaf   bool    // it is some leaf's gradient
	node   *node   // the pending node that makes it
	mem    *memory // once made
	err    error   // why it could not be made
	checks []*check

	recipe  *recipe // how to compute it, if it was fused away
	latent  int32   // claims of recipes
	writes  uint32  // updates in place that were recorded
	written uint32  // of them, those that were launched

	epoch uint64 // when slot was given
	slot  int32  // its number in the planner's description

	own    memory  // where mem points to
	first  ref     // the first tensor's claim
	record *record // room for the node that makes it, until that is used
}

// record is a node of one kernel with room for its parts. Records are used again: they live from the call of an operator to the end of
// the flush that launches it, or of the recipe that it becomes.
type record struct {
	node
	step [1]step
	outs [1]*storage
	bufs [3]binding
}

// Storages are allocated some at a time, and records are kept to be used again, because the collector's work is much of what small operators
// cost. One storage that lives long keeps its neighbours' memory on Go's heap.
const (
	storagesAtOnce = 8
	maxRecords     = 2 * maxPending
)

// freeRecords keeps the records of nodes that were flushed; e.mu is held.
func (e *engine) freeRecords(nodes []*node) {
	for _, n := range nodes {
		e.freeRecord(n)
	}
}

// freeRecord keeps the record of a node that nothing refers to any more, if it has one and no recipe; e.mu is held.
func (e *engine) freeRecord(n *node) {
	r := n.room
	if r == nil || n.kept || len(e.records) >= maxRecords {
		return
	}
	for _, st := range n.outs {
		if st.node == n {
			return
		}
	}
	*r = record{}
	e.records = append(e.records, r)
}

// claim returns a claim for a new tensor.
func (st *storage) claim() *ref {
	if st.taken {
		return &ref{st: st}
	}
	st.taken = true
	st.first.st = st
	return &st.first
}

var storageSerial atomic.Uint64

// newStorage returns a storage with one claim on it and no memory yet.
func (e *engine) newStorage(dtype DType, n int) *storage {
	e.mu.Lock()
	if len(e.stock.storages) == 0 {
		e.stock.storages = make([]storage, storagesAtOnce)
	}
	if k := len(e.records); k > 0 && len(e.stock.records) == 0 {
		e.stock.records = append(e.stock.records, e.records[k-1])
		e.records = e.records[:k-1]
	}
	st := e.stock.take()
	e.mu.Unlock()
	st.make(e, dtype, n)
	return st
}

func (st *storage) make(e *engine, dtype DType, n int) {
	st.eng, st.dtype, st.n, st.serial = e, dtype, n, storageSerial.Add(1)
	st.refs.Store(1)
}

// newStorage is engine.newStorage for a result that goes to the call's scope, which has some in stock.
func (c *call) newStorage(dtype DType, n int) *storage {
	s := c.scope
	if s == nil || s.eng != c.eng || s.closed {
		return c.eng.newStorage(dtype, n)
	}
	if len(s.stock.storages) == 0 {
		c.eng.mu.Lock()
		s.stock.storages, c.eng.stock.storages = c.eng.stock.storages, nil
		k := max(0, len(c.eng.records)-storagesAtOnce)
		s.stock.records = append(s.stock.records, c.eng.records[k:]...)
		c.eng.records = c.eng.records[:k]
		c.eng.mu.Unlock()
		if len(s.stock.storages) == 0 {
			s.stock.storages = make([]storage, storagesAtOnce)
		}
	}
	st := s.stock.take()
	st.make(c.eng, dtype, n)
	return st
}

// stock is storages and records to be used.
type stock struct {
	storages []storage
	records  []*record
}

// take returns a storage, with a record if there is one.
func (s *stock) take() *storage {
	st := &s.storages[0]
	s.storages = s.storages[1:]
	if k := len(s.records); k > 0 {
		st.record, s.records = s.records[k-1], s.records[:k-1]
	}
	return st
}

// giveBack returns what is left.
func (s *stock) giveBack(e *engine) {
	if e == nil || len(s.storages)+len(s.records) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records = append(e.records, s.records...)
	if len(s.storages) > len(e.stock.storages) {
		e.stock.storages = s.storages
	}
	*s = stock{}
}

// bytes is the size of the storage's memory: whole words, and never empty, so that it can be bound.
func (st *storage) bytes() int64 {
	return max(4, (int64(st.n)*int64(st.dtype.Size())+3)&^3)
}

func (st *storage) retain() { st.refs.Add(1) }

// release gives up a claim; the last frees the memory, or drops the pending node that nobody needs any more.
func (st *storage) release() {
	if st.refs.Add(-1) == 0 {
		st.eng.mu.Lock()
		st.drop()
		st.eng.mu.Unlock()
	}
}

// releaseLocked is release with eng.mu held.
func (st *storage) releaseLocked() {
	if st.refs.Add(-1) == 0 {
		st.drop()
	}
}

// drop frees a storage without claims; eng.mu is held.
func (st *storage) drop() {
	if st.mem != nil {
		st.mem.free()
		st.mem = nil
	}
	st.checks = nil
	if r := st.record; r != nil {
		st.record = nil
		if len(st.eng.records) < maxRecords {
			st.eng.records = append(st.eng.records, r)
		}
	}
	if r := st.recipe; r != nil {
		st.recipe = nil
		r.forget()
		r.node.releaseInputs()
		if !st.eng.flushing { // else it may be a node of the flush, which ends with it
			r.node.kept = false
			st.eng.freeRecord(r.node)
		}
	}
	n := st.node
	if n == nil || n.dead {
		return
	}
	st.node = nil
	n.alive--
	if n.alive > 0 {
		return
	}
	n.dead = true
	if t := st.eng.plans.tape; t != nil {
		t.node(planDie, n)
	}
	n.releaseInputs()
}

// failure returns why the storage could not be made, if that is known.
func (st *storage) failure() error {
	st.eng.mu.Lock()
	defer st.eng.mu.Unlock()
	return st.err
}
