package tensor

import (
	"runtime"
	"time"

	"github.com/anygpu/anygpu/backend"
)

// memory is a piece of device memory.
type memory struct {
	e      *engine
	block  backend.Block
	region backend.Region
}

// free gives the memory back; e.mu is held.
func (m *memory) free() {
	m.block.Free()
	m.e.inUse -= m.region.Size
	if m.e.inUse == m.e.tableBytes { // nobody has a tensor
		m.e.forgetTables()
	}
}

// allocate returns memory; e.mu is held.
func (e *engine) allocate(size int64) (*memory, error) {
	m := new(memory)
	if err := e.allocateTo(m, size); err != nil {
		return nil, err
	}
	return m, nil
}

// allocateTo is allocate for memory that is part of another structure, and was freed if it was in use before; e.mu is held.
func (e *engine) allocateTo(m *memory, size int64) error {
	if err := e.alloc.AllocTo(&m.block, size); err != nil {
		return err
	}
	m.e, m.region = e, m.block.Region()
	e.inUse += m.region.Size
	e.press()
	return nil
}

// allocateStorage gives a storage its memory; e.mu is held.
func (e *engine) allocateStorage(st *storage) error {
	if err := e.allocateTo(&st.own, st.bytes()); err != nil {
		return err
	}
	st.mem = &st.own
	e.plans.tape.storage(planAlloc, st)
	return nil
}

// collectAbove is how many bytes in use make the engine ask the collector for dead tensors before memory runs out.
var collectAbove int64 = 256 << 20

// press runs the collector when the memory in use has doubled since its last run: it sees only the small Go objects that
// stand for device memory, and would come too late by itself. Programs with scopes double only while they warm up.
// e.mu is held.
func (e *engine) press() {
	if e.inUse <= collectAbove || e.inUse <= 2*e.inUseAfter {
		return
	}
	runtime.GC()
	time.Sleep(cleanupDelay)
	e.drain()
	e.inUseAfter = e.inUse
}

// openMemory makes the engine's allocator and queue.
func (e *engine) openMemory() {
	e.queue = backend.NewQueue(e.dev, backend.QueueConfig{})
	e.alloc = backend.NewAllocator(e.dev, backend.AllocatorConfig{
		Flush: func() error {
			_, err := e.queue.Flush()
			return err
		},
		Reclaim: e.reclaim,
	})
}

// bury is called by the collector for a tensor that became unreachable. It takes no engine lock, because the engine may be
// waiting for the collector just then.
func (r *ref) bury() {
	if r.done.Swap(true) {
		return
	}
	r.leave()
	if st := r.st; st.refs.Add(-1) == 0 {
		e := st.eng
		e.graveMu.Lock()
		e.graves = append(e.graves, st)
		e.graveMu.Unlock()
	}
}

// drain frees what the collector found; e.mu is held.
func (e *engine) drain() {
	e.graveMu.Lock()
	graves := e.graves
	e.graves = nil
	e.graveMu.Unlock()
	for _, st := range graves {
		e.plans.tape.fail() // whatever that does to the nodes at hand
		st.drop()
	}
	if len(graves) > 0 {
		e.inUseAfter = min(e.inUseAfter, e.inUse) // cleanups may come later than press waits
	}
}

// cleanupDelay is how long after a collection the engine waits for the cleanups, which run in a goroutine of their own.
const cleanupDelay = 2 * time.Millisecond

// reclaim asks the collector for tensors that nobody can reach, when memory has run out; e.mu is held.
func (e *engine) reclaim() {
	for range 2 { // the second round finds what only the first round's tensors held
		runtime.GC()
		time.Sleep(cleanupDelay)
	}
	e.drain()
}

// MemoryStats returns the statistics of dev's memory, as torch.cuda.memory_stats.
func MemoryStats(dev backend.Device) backend.Stats {
	e, err := engineFor(dev)
	if err != nil {
		return backend.Stats{}
	}
	return e.alloc.Stats()
}

// MemorySummary returns the statistics of dev's memory as a table for people.
func MemorySummary(dev backend.Device) string {
	e, err := engineFor(dev)
	if err != nil {
		return err.Error()
	}
	return e.alloc.Summary()
}

// ResetPeakMemory sets the peaks of dev's memory statistics to the current values.
func ResetPeakMemory(dev backend.Device) {
	if e, err := engineFor(dev); err == nil {
		e.alloc.ResetPeak()
	}
}

// SetMemoryLimit bounds the bytes that may be held from dev; 0 is no bound.
func SetMemoryLimit(dev backend.Device, bytes int64) error {
	e, err := engineFor(dev)
	if err == nil {
		e.alloc.SetLimit(bytes)
	}
	return err
}

// EmptyCache gives dev's memory that no tensor uses back to it.
func EmptyCache(dev backend.Device) error {
	e, err := engineFor(dev)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.drain()
	err = e.flushLocked()
	e.forgetTables()
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return e.alloc.EmptyCache()
}
