package interp

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/ir"
)

// blockLanes is the number of elements that a block aims at: temporaries of some instructions stay in the first-level
// cache, and the cost of dispatching an instruction is spread thin.
const blockLanes = 1024

// op is one step of a compiled kernel, on a block.
type op func(s *state)

// Program is a kernel compiled for the block executor. It may be run from several goroutines at once.
type Program struct {
	k         *ir.Kernel
	n         int // invocations of a workgroup
	maxGroups int // workgroups of a block
	prologue  []op
	body      []op
	arena     int // bytes of a state's arena
	slots     int // values that stay in the launch's buffers
	weight    int // estimated operations of an invocation
	states    sync.Pool
}

// globalMem is a buffer of the launch.
type globalMem struct {
	ptr   unsafe.Pointer
	elems int
}

// state is what a worker needs to run blocks.
type state struct {
	p      *Program
	arena  []uint64 // keeps the memory alive; base points to it
	base   unsafe.Pointer
	ptr    []unsafe.Pointer // where the values are that stay in the launch's buffers, by slot
	uni    []uint64         // uniform values by instruction
	aff    []linear         // affine values by instruction
	index  []uint32         // scratch for one index operand
	n      int              // invocations of the block that are run; more than this are not looked at
	g      int              // workgroups of the block
	stride int              // invocations for which there is room
	mask   []uint8          // which of the n invocations are active; nil if all are
	group  [3]int           // the first workgroup of the block
	groups [3]int
	params []uint32
	global []globalMem
	err    error
}

// RunError is a fault that the block executor met.
type RunError struct {
	Kernel string
	Fault  FaultKind
	Mem    string // the memory, or empty
	Index  int64  // the element
	Elems  int    // elements that Mem has
	Lanes  int
	Instr  string
}

func (e *RunError) Error() string {
	s := fmt.Sprintf("kernel %s: %s", e.Kernel, e.Fault)
	if e.Mem != "" {
		s += fmt.Sprintf(": %d lanes at %s[%d], which has %d elements", e.Lanes, e.Mem, e.Index, e.Elems)
	}
	return s + " in \"" + e.Instr + "\"; run it with the checking executor to find the invocation"
}

// Compile makes a program for the block executor. The kernel must pass [ir.Verify].
func Compile(k *ir.Kernel) (*Program, error) {
	if err := ir.Verify(k); err != nil {
		return nil, err
	}
	n := k.Invocations()
	if n < 1 {
		return nil, fmt.Errorf("interp: kernel %s: workgroup size %v has no invocations", k.Name, k.Local)
	}
	lanes, weight := 1, 0
	k.Walk(func(in *ir.Instr) {
		lanes = max(lanes, in.Type.Lanes)
		weight += max(1, in.Type.Lanes)
		if in.Op == ir.OpFor {
			weight += 64
		}
	})
	want := blockLanes
	if lanes > 1 {
		want = max(2*blockLanes/lanes, 64)
	}
	p := &Program{k: k, n: n, maxGroups: max(1, want/n), weight: weight}
	generate(p)
	return p, nil
}

// Kernel returns the kernel.
func (p *Program) Kernel() *ir.Kernel { return p.k }

// Run runs groups workgroups on buffers, which are written in place, with the scalar parameters params, on workers of
// pool (nil: [DefaultPool]). It returns when all is done. An error is a [*RunError] or says which argument does not fit;
// after one, the contents of written buffers are undefined. Buffers are best aligned to 8 bytes; others are copied.
func (p *Program) Run(groups [3]int, buffers [][]byte, params []uint32, pool *Pool) error {
	if err := checkArgs(p.k, groups, buffers, params); err != nil {
		return err
	}
	if groups[0] == 0 || groups[1] == 0 || groups[2] == 0 {
		return nil
	}
	global := make([]globalMem, len(buffers))
	for _, m := range p.k.Globals() {
		b := buffers[m.Index]
		size := m.Kind.Size()
		if len(b) == 0 {
			continue
		}
		if uintptr(unsafe.Pointer(&b[0]))%uintptr(max(size, 4)) != 0 {
			aligned := alignedCopy(b)
			if m.Access&ir.Write != 0 {
				defer copy(b, aligned)
			}
			b = aligned
		}
		global[m.Index] = globalMem{unsafe.Pointer(&b[0]), len(b) / size}
	}
	if pool == nil {
		pool = DefaultPool()
	}
	return p.run(groups, global, params, pool)
}

func alignedCopy(b []byte) []byte {
	w := make([]uint64, (len(b)+7)/8)
	out := unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(b))
	copy(out, b)
	return out
}

// inlineWork is the estimated number of lane operations below which a launch stays on the caller's goroutine.
const inlineWork = 1 << 16

func (p *Program) run(groups [3]int, global []globalMem, params []uint32, pool *Pool) error {
	rows := groups[1] * groups[2]
	per, workers := min(p.maxGroups, groups[0]), 1
	if work := float64(groups[0]) * float64(rows) * float64(p.n) * float64(p.weight); work > inlineWork {
		workers = pool.Size()
		if share := (groups[0]*rows + 2*workers - 1) / (2 * workers); share < per {
			per = max(share, min(per, (256+p.n-1)/p.n))
		}
	}
	perRow := (groups[0] + per - 1) / per
	total := perRow * rows
	workers = min(workers, total)

	split := NewSplit(int64(total), workers, 1)
	var mu sync.Mutex
	var firstErr error
	pool.Do(workers, func() {
		s := p.state()
		defer p.release(s)
		s.groups, s.params, s.global, s.g = groups, params, global, 1
		s.n, s.mask, s.err = per*p.n, nil, nil
		runOps(s, p.prologue)
		share := split.Share()
		for n, count := share.Next(1); count > 0; n, count = share.Next(1) {
			i := int(n)
			row, x := i/perRow, i%perRow*per
			s.group = [3]int{x, row % groups[1], row / groups[1]}
			s.g = min(per, groups[0]-x)
			s.n, s.mask = s.g*p.n, nil
			runOps(s, p.body)
			if s.err != nil {
				split.Stop()
				mu.Lock()
				if firstErr == nil {
					firstErr = s.err
				}
				mu.Unlock()
				return
			}
		}
	})
	return firstErr
}

func (p *Program) state() *state {
	if s, ok := p.states.Get().(*state); ok {
		return s
	}
	arena := make([]uint64, p.arena/8+8)
	stride := p.maxGroups * p.n
	return &state{p: p, arena: arena, base: unsafe.Pointer(&arena[0]), uni: make([]uint64, p.k.NumInstr), aff: make([]linear, p.k.NumInstr), ptr: make([]unsafe.Pointer, p.slots),
		index: make([]uint32, stride), stride: stride}
}

// release gives a state back; it must not keep the launch's memory alive.
func (p *Program) release(s *state) {
	s.global, s.params, s.mask, s.err = nil, nil, nil, nil
	clear(s.ptr)
	p.states.Put(s)
}

func runOps(s *state, ops []op) {
	for _, f := range ops {
		f(s)
		if s.err != nil {
			return
		}
	}
}

// at returns the address of a block: off is its place in the arena, or the complement of a slot.
func (s *state) at(off int) unsafe.Pointer {
	if off < 0 {
		return s.ptr[^off]
	}
	return unsafe.Add(s.base, off)
}

// vec returns n elements of a block.
func vec[T any](s *state, off, n int) []T { return unsafe.Slice((*T)(s.at(off)), n) }

// buffer returns the elements of a global buffer.
func buffer[T any](s *state, binding int) []T {
	g := s.global[binding]
	return unsafe.Slice((*T)(g.ptr), g.elems)
}

func (s *state) fault(kind FaultKind, in *ir.Instr, index int64, elems, lanes int) {
	if s.err != nil {
		return
	}
	e := &RunError{Kernel: s.p.k.Name, Fault: kind, Index: index, Elems: elems, Lanes: lanes, Instr: in.String()}
	if in.Mem != nil {
		e.Mem = in.Mem.Name
	}
	s.err = e
}
