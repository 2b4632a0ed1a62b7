package jit

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// Program is a kernel compiled to machine code. It may be run from several goroutines at once.
type Program struct {
	k      *ir.Kernel // as it was given
	low    *ir.Kernel // as it was compiled
	bufs   []*ir.Mem  // its buffers
	exec   *executable
	lanes  int
	blocks int // of a workgroup
	jam    int // vectors that go together
	frames sync.Pool
}

// Available returns nil if this machine runs the code of [Compile], or why it does not.
func Available() error { return available() }

// Compile makes machine code of a kernel. The error wraps [ErrUnsupported] if the kernel has something for which there is none; package
// interp runs it then.
func Compile(k *ir.Kernel) (*Program, error) {
	if err := available(); err != nil {
		return nil, unsupported("%v", err)
	}
	m, err := generate(k)
	if err != nil {
		return nil, err
	}
	exec, err := newExecutable(m.code)
	if err != nil {
		return nil, unsupported("%v", err)
	}
	p := &Program{k: k, low: m.kernel, bufs: m.kernel.Globals(), exec: exec, lanes: m.lanes, blocks: m.blocks, jam: m.jam}
	p.frames.New = func() any { return newFrame(m.frame) }
	return p, nil
}

// frame is the memory of calls on one goroutine.
type frame struct {
	words []uint64 // keeps the memory alive
	base  unsafe.Pointer
}

func newFrame(bytes int) *frame {
	words := make([]uint64, bytes/8+8)
	skip := -uintptr(unsafe.Pointer(&words[0])) % 64
	return &frame{words, unsafe.Add(unsafe.Pointer(&words[0]), skip)}
}

func (f *frame) put(off int, v uint64) { *(*uint64)(unsafe.Add(f.base, off)) = v }
func (f *frame) get(off int) uint64    { return *(*uint64)(unsafe.Add(f.base, off)) }

// maxElements bounds the elements of a buffer: the code's indices are signed where it gathers.
const maxElements = math.MaxInt32 - 64

// Fits reports whether the code can run on buffers: they must be aligned to 8 bytes and have fewer than 2^31-65 elements each.
func (p *Program) Fits(buffers [][]byte) bool {
	for _, m := range p.bufs {
		b := buffers[m.Index]
		if len(b) == 0 || len(b)%4 != 0 || uintptr(unsafe.Pointer(&b[0]))%8 != 0 || len(b)/m.Kind.Size() > maxElements {
			return false
		}
	}
	return true
}

// Times of calls. A call cannot be interrupted: the garbage collector waits for it.
const (
	wantCall  = 200 * time.Microsecond // how long a call is to take
	spawnWork = 30 * time.Microsecond  // the work for which it is worth another goroutine
)

// Run runs groups workgroups on buffers, which fit (see Fits) and are written in place, with the scalar parameters params, on workers of pool. It returns when all is done. An error is
// an [*interp.RunError]; after one, the contents of written buffers are undefined.
func (p *Program) Run(groups [3]int, buffers [][]byte, params []uint32, pool *interp.Pool) error {
	if len(buffers) != len(p.bufs) || len(params) != len(p.low.Params) {
		return fmt.Errorf("jit: kernel %s: %d buffers and %d parameters, it has %d and %d", p.k.Name, len(buffers), len(params), len(p.bufs), len(p.low.Params))
	}
	total := int64(groups[0]) * int64(groups[1]) * int64(groups[2]) * int64(p.blocks)
	if total == 0 {
		return nil
	}
	if total < 0 || groups[0] < 0 || groups[1] < 0 || groups[2] < 0 {
		return fmt.Errorf("jit: kernel %s: workgroups %v", p.k.Name, groups)
	}
	r := launches.Get().(*launch)
	defer r.put()
	r.p, r.groups, r.buffers, r.params, r.total, r.start, r.workers = p, groups, buffers, params, total, 0, pool.Size()
	r.run(pool)
	runtime.KeepAlive(buffers)
	runtime.KeepAlive(p.exec)
	return r.err
}

// launches are used again. Nobody works on one when its run is over.
var launches = sync.Pool{New: func() any { return new(launch) }}

func (r *launch) put() {
	r.p, r.buffers, r.params, r.split, r.err = nil, nil, nil, nil, nil
	launches.Put(r)
}

// launch is a run of a program. Its work is the blocks of all workgroups, by number.
type launch struct {
	p       *Program
	groups  [3]int
	buffers [][]byte
	params  []uint32
	total   int64
	start   int64 // what comes before is done
	workers int

	split *interp.Split
	mu    sync.Mutex
	err   error
}

func (r *launch) frame() *frame {
	f := r.p.frames.Get().(*frame)
	for i, n := range r.groups {
		f.put(frameNumGroups+8*i, uint64(n))
	}
	for i, v := range r.params {
		*(*uint32)(unsafe.Add(f.base, frameParams+4*i)) = v
	}
	for _, m := range r.p.bufs {
		b := r.buffers[m.Index]
		f.put(frameBuffers+16*m.Index, uint64(uintptr(unsafe.Pointer(&b[0]))))
		f.put(frameBuffers+16*m.Index+8, uint64(len(b)/m.Kind.Size()))
	}
	return f
}

// Sizes of all buffers together.
const (
	sureBytes   = 1 << 20 // from which kernels are shared without a measurement
	littleBytes = 1 << 16 // below which a first piece is done before the work is divided
)

// run does a first piece of the work, and the rest with as many workers as it is worth. Of large buffers all is shared at once.
func (r *launch) run(pool *interp.Pool) {
	f := r.frame()
	defer r.p.frames.Put(f)
	unit := int64(r.p.jam)
	if r.total <= max(unit, 256/int64(r.p.lanes)) { // nothing to share
		r.blocks(f, 0, r.total)
		return
	}
	r.workers = int(min(int64(r.workers), (r.total+unit-1)/unit))
	if r.workers == 1 {
		r.alone(f, unit)
		return
	}
	bytes := 0
	for _, b := range r.buffers {
		bytes += len(b)
	}
	if bytes < littleBytes && r.little(f, unit) {
		return
	}
	r.split = interp.NewSplit(r.total-r.start, r.workers, unit)
	share := r.split.Share()
	perBlock := float64(bytes) / float64(r.total) / 16 // ns, if it is memory that it waits for
	if bytes < sureBytes && r.start == 0 {
		start := time.Now()
		from, piece := share.Next(max(unit, 256/int64(r.p.lanes)))
		if !r.blocks(f, from, from+piece) || piece == r.total {
			return
		}
		perBlock = float64(time.Since(start)) / float64(piece)
		if work := perBlock * float64(r.total-piece); work < float64(spawnWork) {
			r.work(f, share, perBlock)
			return
		}
	}
	var first atomic.Bool
	pool.Do(r.workers, func() {
		if first.CompareAndSwap(false, true) {
			r.work(f, share, perBlock)
			return
		}
		f := r.frame()
		defer r.p.frames.Put(f)
		r.work(f, r.split.Share(), perBlock)
	})
}

// little does a first piece of the work, and the rest if that is not worth another worker; it reports whether all is done. Asking which
// processor it is on, to find a part of the work, takes longer than a small launch.
func (r *launch) little(f *frame, unit int64) bool {
	n := min(r.total, max(unit, 256/int64(r.p.lanes)))
	start := time.Now()
	if !r.blocks(f, 0, n) || n == r.total {
		return true
	}
	r.start = n
	if perBlock := float64(time.Since(start)) / float64(n); perBlock*float64(r.total-n) >= float64(spawnWork) {
		return false
	}
	r.alone(f, unit)
	return true
}

// alone does all of the work from r.start on, in pieces as work does.
func (r *launch) alone(f *frame, unit int64) {
	n := max(unit, 256/int64(r.p.lanes))
	for from := r.start; from < r.total; {
		n = min(n, r.total-from)
		start := time.Now()
		if !r.blocks(f, from, from+n) {
			return
		}
		perBlock := float64(time.Since(start)) / float64(n)
		from += n
		n = r.pieceOf(perBlock)
		n = (n + unit - 1) / unit * unit
	}
}

// pieceOf returns how many blocks take about as long as a call is to take: whole workgroups, if it is more than one.
func (r *launch) pieceOf(perBlock float64) int64 {
	n := max(1, int64(float64(wantCall)/max(perBlock, 0.1)))
	if n > int64(r.p.blocks) {
		n -= n % int64(r.p.blocks)
	}
	return n
}

// work does pieces until there are none. They start from an estimate of the time of a block and follow what is measured.
func (r *launch) work(f *frame, share interp.Share, perBlock float64) {
	for {
		from, n := share.Next(r.pieceOf(perBlock))
		if n == 0 {
			return
		}
		start := time.Now()
		if !r.blocks(f, r.start+from, r.start+from+n) {
			r.split.Stop()
			return
		}
		perBlock = float64(time.Since(start)) / float64(n)
	}
}

// blocks runs blocks from to to, in calls that do not leave a row of workgroups.
func (r *launch) blocks(f *frame, from, to int64) bool {
	per := int64(r.p.blocks)
	for from < to {
		group, block := from/per, from%per
		x := group % int64(r.groups[0])
		row := group / int64(r.groups[0])
		groups, end := int64(1), per
		if block == 0 && to-from >= per {
			groups = min((to-from)/per, int64(r.groups[0])-x)
		} else {
			end = min(per, block+to-from)
		}
		f.put(frameGroup, uint64(x))
		f.put(frameGroupEnd, uint64(x+groups))
		f.put(frameGroupY, uint64(row%int64(r.groups[1])))
		f.put(frameGroupZ, uint64(row/int64(r.groups[1])))
		f.put(frameFirst, uint64(block))
		f.put(frameEnd, uint64(end))
		f.put(frameFault, 0)
		call(r.p.exec.entry(), uintptr(f.base))
		runtime.KeepAlive(f)
		if code := f.get(frameFault); code != 0 {
			r.fail(int(code-1), int64(f.get(frameFaultIndex)))
			return false
		}
		from += (groups-1)*per + end - block
	}
	return true
}

func (r *launch) fail(code int, index int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	e := &interp.RunError{Kernel: r.p.k.Name, Index: index}
	r.p.low.Walk(func(in *ir.Instr) {
		if in.ID != code/int(numFaults) {
			return
		}
		e.Instr, e.Lanes = in.String(), max(1, in.Type.Lanes)
		if in.Mem != nil {
			e.Mem, e.Elems = in.Mem.Name, len(r.buffers[in.Mem.Index])/in.Mem.Kind.Size()
		}
	})
	switch faultKind(code % int(numFaults)) {
	case faultBounds:
		e.Fault = interp.OutOfBounds
	case faultAligned:
		e.Fault = interp.Misaligned
	case faultDivision:
		e.Fault = interp.DivisionByZero
	default:
		e.Fault = interp.EndlessLoop
	}
	r.err = e
}
