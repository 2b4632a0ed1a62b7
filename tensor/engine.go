package tensor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/cpu" // the device that is always there
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// maxPending bounds the nodes that wait for a flush.
const maxPending = 512

// engine runs the operators of one device: it keeps what is pending, compiled programs and memory.
type engine struct {
	dev    backend.Device
	name   string
	isCPU  bool
	target lib.Target
	align  int64
	closed atomic.Bool

	mu       sync.Mutex
	pending  []*node
	spare    []*node // an empty list for pending
	stock    stock
	records  []*record // to be used again
	flushing bool
	programs map[string]*program
	stats    LaunchStats

	sched  scheduler             // guarded by mu
	tables map[string]placeTable // of packed kernels; guarded by mu
	plans  planner               // guarded by mu
	tune   tuner                 // guarded by mu
	prof   *recorder             // guarded by mu; nil unless Profile is at work

	applied appliedTable

	alloc *backend.Allocator
	queue *backend.Queue

	inUse      int64 // bytes of memory; guarded by mu
	tableBytes int64 // of them, the tables'
	inUseAfter int64 // the same after the collector was last asked

	graveMu sync.Mutex
	graves  []*storage // found dead by the collector, to be freed at the next occasion
}

// program is a compiled kernel, or why there is none.
type program struct {
	prog backend.Program
	err  error
}

// LaunchStats counts an engine's work since the device was opened.
type LaunchStats struct {
	Nodes    uint64 // operators recorded
	Skipped  uint64 // of them, never run because nobody needed the result
	Launches uint64 // kernels launched
	Fused    uint64 // operators that ran in the kernel of another one
	Flushes  uint64 // submissions of pending work
	Planned  uint64 // of them, those that repeated an earlier one and were not scheduled anew
	Programs uint64 // kernels compiled
}

// binding is a storage as a kernel sees it.
type binding struct {
	st     *storage
	offset int64 // bytes
	write  bool
}

// step is a kernel of a node, with its buffers in the kernel's order.
type step struct {
	gen  lib.Generator
	bufs []binding
}

// node is pending work: the kernels of one operator.
type node struct {
	op    string
	site  *site
	steps []step     // each buffer holds a claim unless it is of outs
	outs  []*storage // what the node makes
	alive int        // outs that are still claimed
	dead  bool       // nobody needs the result

	base   *lib.Elementwise // the generator of an [applied], from which that of the only step differs in the values of scalars at most; nil if there is none
	number int32            // its place in the planner's description

	cluster *cluster // the kernel that it waits to be part of, and the number of its first result there
	value   int

	room   *record // that it is part of, if it may be used again
	kept   bool    // by a recipe, or was since the last flush began
	recipe recipe

	failed *error // where an update in place, which has no result, reports its error
}

// releaseInputs gives up the node's claims; eng.mu is held.
func (n *node) releaseInputs() {
	for i := range n.steps {
		for _, b := range n.steps[i].bufs {
			if !n.makes(b.st) {
				b.st.releaseLocked()
			}
		}
	}
	n.steps = nil
}

// each calls f for the node's buffers that are not made by it.
func (n *node) each(f func(b binding)) {
	for _, s := range n.steps {
		for _, b := range s.bufs {
			if !n.makes(b.st) {
				f(b)
			}
		}
	}
}

func (n *node) makes(st *storage) bool {
	for _, o := range n.outs {
		if o == st {
			return true
		}
	}
	return false
}

var engines struct {
	sync.Mutex
	byDevice map[backend.Device]*engine
	cpu      *engine
	cpuErr   error
}

// engineFor returns the engine of a device.
func engineFor(dev backend.Device) (*engine, error) {
	if dev == nil {
		return nil, errorOf(ErrDevice, "no device given (nil)")
	}
	engines.Lock()
	defer engines.Unlock()
	if e := engines.byDevice[dev]; e != nil {
		return e, nil
	}
	info := dev.Info()
	e := &engine{dev: dev, name: info.String(), isCPU: info.API == "cpu", target: info.Target(), align: max(1, info.Limits.BufferOffsetAlign),
		programs: map[string]*program{}, sched: newScheduler(), plans: newPlanner()}
	e.openMemory()
	e.openTuning()
	if engines.byDevice == nil {
		engines.byDevice = map[backend.Device]*engine{}
	}
	engines.byDevice[dev] = e
	if h, ok := backend.As[backend.CloseHooker](dev); ok {
		h.OnClose(e.close)
	}
	return e, nil
}

// close forgets the device: its tensors are gone.
func (e *engine) close() {
	engines.Lock()
	delete(engines.byDevice, e.dev)
	engines.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed.Store(true)
	e.pending = nil
	_, _ = e.queue.Flush() // programs must outlive the launches that wait
	for _, p := range e.programs {
		if p.prog != nil {
			p.prog.Free()
		}
	}
	e.programs = map[string]*program{}
	e.sched = newScheduler()
	e.plans = newPlanner()
	_ = e.alloc.Close() // the device closes next and says what is wrong with it
}

// CPU returns the CPU device, which is always there. Tensors made from Go slices are on it.
func CPU() backend.Device {
	e, err := cpuEngine()
	if err != nil {
		return nil
	}
	return e.dev
}

// cpuEngine opens the CPU once.
func cpuEngine() (*engine, error) {
	engines.Lock()
	e, err := engines.cpu, engines.cpuErr
	engines.Unlock()
	if e != nil && !e.closed.Load() || err != nil {
		return e, err
	}
	dev, err := backend.Open("cpu")
	if err == nil {
		e, err = engineFor(dev)
	}
	engines.Lock()
	engines.cpu, engines.cpuErr = e, err
	engines.Unlock()
	return e, err
}

// add records a node that makes outs. It takes a claim on each input.
func (e *engine) add(n *node) error {
	if e.closed.Load() {
		return fmt.Errorf("%s: %w", e.name, backend.ErrClosed)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Nodes++
	n.alive = len(n.outs)
	var checks []*check
	writes := false
	for i := range n.steps {
		for j := range n.steps[i].bufs {
			b := &n.steps[i].bufs[j]
			if n.makes(b.st) {
				continue
			}
			b.st.retain()
			e.revive(b.st)
			checks = mergeChecks(checks, b.st.checks)
			writes = writes || b.write
		}
	}
	for _, st := range n.outs {
		st.node = n
		st.checks = checks
	}
	if writes {
		n.each(func(b binding) {
			if b.write {
				b.st.checks = mergeChecks(b.st.checks, checks)
				b.st.writes++
			}
		})
	}
	e.pending = append(e.pending, n)
	if len(e.pending) >= maxPending {
		return e.flushLocked()
	}
	return nil
}

// flush submits what is pending. The error is the device's; errors of single nodes stick to their results.
func (e *engine) flush() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.flushLocked()
}

func (e *engine) flushLocked() error {
	if e.closed.Load() {
		return fmt.Errorf("%s: %w", e.name, backend.ErrClosed)
	}
	e.drain()
	if len(e.pending) == 0 {
		return e.queue.Err()
	}
	nodes := e.pending
	e.pending, e.spare = e.spare, nil
	e.stats.Flushes++
	if e.prof != nil {
		defer e.prof.host("submit")()
	}
	for _, n := range nodes {
		n.kept = false
	}
	e.flushing = true
	e.runPending(nodes)
	e.flushing = false
	e.freeRecords(nodes)
	clear(nodes)
	e.spare = nodes[:0]
	_, err := e.queue.Flush()
	e.plans.submitted()
	return err
}

// failNode makes a node's results carry its error, with the operator and the place of the call.
func (e *engine) failNode(n *node, err error) {
	e.plans.tape.fail()
	var op *Error
	if !errors.As(err, &op) {
		w := &Error{Op: n.op, Err: err}
		w.File, w.Line = n.site.resolve()
		err = trap(w)
	}
	for _, st := range n.outs {
		st.err = err
	}
	switch {
	case n.failed != nil:
		*n.failed = err
	case len(n.outs) == 0: // an overwritten tensor must not seem to have its new value
		n.each(func(b binding) {
			if b.write {
				b.st.err = err
			}
		})
	}
}

// launch allocates a node's results and queues its kernels; e.mu is held.
func (e *engine) launch(n *node) error {
	var err error
	n.each(func(b binding) {
		if err == nil {
			err = b.st.err
		}
	})
	if err != nil {
		return err
	}
	for _, st := range n.outs {
		if st.mem != nil {
			continue
		}
		if err := e.allocateStorage(st); err != nil {
			return err
		}
	}
	if e.prof != nil {
		e.prof.operators(n)
	}
	e.plans.tape.computes(n)
	for k, st := range n.steps {
		regions := make([]backend.Region, len(st.bufs))
		for i, b := range st.bufs {
			if b.st.mem == nil {
				return errorOf(ErrFreed, "an operand's memory is gone")
			}
			regions[i] = b.region()
		}
		if g, ok := st.gen.(*lib.Elementwise); ok {
			e.plans.tape.ends(source{n, g.ScalarBits})
		} else {
			e.plans.tape.ends()
		}
		end := e.plans.tape.step(e, n, k)
		err := e.launchGen(st.gen, regions)
		end()
		if err != nil {
			return err
		}
	}
	for _, st := range n.outs {
		e.plans.tape.storage(planUnclaimed, st)
		if st.refs.Load() == 0 {
			st.drop() // one of several results that nobody kept
		}
	}
	return nil
}

// launchGen queues the kernels of a generator, or of the variant that was found to be the fastest.
func (e *engine) launchGen(gen lib.Generator, regions []backend.Region) error {
	return e.launchStages(e.tuned(gen, regions), regions)
}

// launchStages queues the kernels of a generator: one, or its stages with scratch memory between them.
func (e *engine) launchStages(gen lib.Generator, regions []backend.Region) error {
	if _, ok := gen.(lib.Staged); !ok {
		return e.launchOne(gen, regions)
	}
	stages, sizes := lib.Stages(gen, e.target, len(regions))
	scratch := make([]*memory, 0, len(sizes))
	numbers := make([]int32, 0, len(sizes))
	defer func() {
		for i, m := range scratch {
			e.plans.tape.unscratch(numbers[i])
			m.free() // the queue keeps the order, so the next owner comes after
		}
	}()
	for _, n := range sizes {
		m, err := e.allocate(max(4, n))
		if err != nil {
			return err
		}
		scratch, numbers = append(scratch, m), append(numbers, e.plans.tape.scratch(m, max(4, n)))
	}
	for _, s := range stages {
		bufs := make([]backend.Region, len(s.Buffers))
		for i, j := range s.Buffers {
			if j < 0 {
				bufs[i] = scratch[^j].region
			} else {
				bufs[i] = regions[j]
			}
		}
		if err := e.launchOne(s.Gen, bufs); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) launchOne(gen lib.Generator, regions []backend.Region) error {
	if g, ok := gen.(*lib.Elementwise); ok {
		return e.launchElementwise(g, regions)
	}
	if done, err := e.launchMulti(gen, regions); done {
		return err
	}
	groups, params, err := gen.Launch(e.target)
	if err != nil {
		return err
	}
	if groups[0]*groups[1]*groups[2] == 0 {
		return nil
	}
	prog, err := e.program(gen)
	if err != nil {
		return err
	}
	e.stats.Launches++
	return e.enqueue(backend.Launch{Program: prog, Groups: groups, Buffers: regions, Params: params, Cost: gen.Cost()})
}

// enqueue hands a launch to the queue.
func (e *engine) enqueue(l backend.Launch) error {
	if e.prof != nil {
		return e.prof.launch(e, l)
	}
	e.plans.tape.launch(l)
	return e.queue.Add(l)
}

// program returns the compiled kernel of a generator, compiling it at its first use.
func (e *engine) program(gen lib.Generator) (backend.Program, error) {
	key := gen.Key()
	if p := e.programs[key]; p != nil {
		return p.prog, p.err
	}
	p := &program{}
	e.programs[key] = p
	k, err := gen.Build(e.target)
	if err != nil {
		p.err = err
		return nil, err
	}
	p.prog, p.err = e.compile(k)
	e.stats.Programs++
	return p.prog, p.err
}

func (e *engine) compile(k *ir.Kernel) (backend.Program, error) {
	if o, ok := backend.As[backend.Overrider](e.dev); ok && k.Template != nil {
		prog, err := o.Override(k)
		if err != nil || prog != nil {
			return prog, err
		}
	}
	return e.dev.Compile(k)
}

// read copies a storage's bytes from offset on to dst, after the work that makes them.
func (e *engine) read(st *storage, offset int64, dst []byte) error {
	e.mu.Lock()
	st.retain()
	e.revive(st)
	err := e.flushLocked()
	if st.err != nil {
		err = st.err
	}
	checks := st.checks
	var m *memory
	if err == nil {
		m = st.mem
	}
	e.mu.Unlock()
	defer st.release()
	if err != nil {
		return err
	}
	if m == nil {
		return errorOf(ErrFreed, "the tensor's memory is gone")
	}
	if err := runChecks(checks); err != nil {
		return err
	}
	if len(dst) == 0 {
		return nil
	}
	return m.region.Buffer.Read(m.region.Offset+offset, dst)
}

// Synchronize submits what is pending on dev and waits until the device has done it.
func Synchronize(dev backend.Device) error {
	e, err := engineFor(dev)
	if err != nil {
		return err
	}
	if err := e.flush(); err != nil {
		return err
	}
	e.mu.Lock()
	wait := e.prof.host("wait")
	e.mu.Unlock()
	defer wait()
	return e.queue.Wait(context.Background())
}

// Flush submits what is pending on dev without waiting for it.
func Flush(dev backend.Device) error {
	e, err := engineFor(dev)
	if err != nil {
		return err
	}
	return e.flush()
}

// Launches returns the counters of dev's work.
func Launches(dev backend.Device) LaunchStats {
	e, err := engineFor(dev)
	if err != nil {
		return LaunchStats{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}
