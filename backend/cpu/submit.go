package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

// program is a kernel that can be launched: machine code, the block executor's form, or a native one.
type program struct {
	d      *Device
	kernel *ir.Kernel
	run    func(groups [3]int, buffers [][]byte, params []uint32) error
	freed  bool // guarded by d.mu

	globals []*ir.Mem // of the kernel
}

// Free forgets the program; pending submissions keep what they use.
func (p *program) Free() {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.freed = true
}

// work is a launch with what it needs.
type work struct {
	program *program
	groups  [3]int
	buffers [][]byte
	params  []uint32
	timing  *backend.Timing // nil if nobody asks
}

// submission is a batch of launches, and its fence.
type submission struct {
	d    *Device
	room *room
	seq  int // number among the device's submissions
	done chan struct{}
	err  error // set before done is closed
}

// Submit checks the launches and queues them. It waits while too many submissions are pending.
func (d *Device) Submit(batch []backend.Launch) (backend.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) >= maxPending && !d.closed {
		d.idle.Wait()
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	s := &submission{d: d, done: make(chan struct{}), room: d.takeRoom(batch)}
	free := *s.room
	small := 0.0 // the work, if all launches say how much it is
	for i := range batch {
		l := &batch[i]
		w, err := d.prepare(l, &free)
		if err != nil {
			d.giveRoom(s.room)
			return nil, fmt.Errorf("%s: launch %d: %w", d.info, i, err)
		}
		if l.Groups[0] != 0 && l.Groups[1] != 0 && l.Groups[2] != 0 {
			s.room.work = append(s.room.work, w)
		}
		if !(l.Cost > 0) || l.Timing != nil {
			small = math.Inf(1)
		}
		small += l.Cost + launchCost
	}
	for i := range batch {
		for _, r := range batch[i].Buffers {
			r.Buffer.(*buffer).last = s
		}
	}
	d.submitted++
	s.seq = d.submitted
	d.last = s
	switch {
	case d.running:
		d.queue = append(d.queue, s)
	case small <= inlineCost:
		// Waking another thread would take longer than the work.
		d.running = true
		d.complete(s)
		d.running = len(d.queue) > 0
		if d.running {
			go d.drain()
		}
		d.idle.Broadcast()
	default:
		d.queue = append(d.queue, s)
		d.running = true
		go d.drain()
	}
	return s, nil
}

// A batch of at most inlineCost is run by the goroutine that submits it, if the device is idle. Launch.Cost counts operations and bytes, of which
// a core does about 10 in a nanosecond; launchCost is a launch's own.
const (
	launchCost = 5e3
	inlineCost = 3e5
)

// room is for a batch's launches with their parameters and buffers. Submissions use the same ones again.
type room struct {
	work    []work
	params  []uint32
	buffers [][]byte
}

// maxRooms bounds the rooms that are kept, and maxRoom the launches of one.
const (
	maxRooms = 4
	maxRoom  = 1024
)

// takeRoom returns room for a batch. d.mu is held.
func (d *Device) takeRoom(batch []backend.Launch) *room {
	params, buffers := 0, 0
	for i := range batch {
		params, buffers = params+len(batch[i].Params), buffers+len(batch[i].Buffers)
	}
	r := &room{}
	if n := len(d.rooms); n > 0 {
		r, d.rooms = d.rooms[n-1], d.rooms[:n-1]
	}
	r.work = slices.Grow(r.work, len(batch))
	r.params = slices.Grow(r.params, params)[:params]
	r.buffers = slices.Grow(r.buffers, buffers)[:buffers]
	return r
}

// giveRoom takes a room back, and forgets the buffers in it. d.mu is held.
func (d *Device) giveRoom(r *room) {
	if len(d.rooms) >= maxRooms || cap(r.work) > maxRoom {
		return
	}
	clear(r.work)
	clear(r.buffers)
	*r = room{r.work[:0], r.params[:0], r.buffers[:0]}
	d.rooms = append(d.rooms, r)
}

// complete runs a submission. d.mu is held before and after, but not meanwhile.
func (d *Device) complete(s *submission) {
	d.mu.Unlock()
	s.run()
	d.mu.Lock()
	d.giveRoom(s.room)
	s.room = nil
	if s.err != nil && d.failed == nil {
		d.failed, d.failedSeq = s.err, s.seq
	}
	close(s.done)
}

// prepare holds a launch against its program. d.mu is held.
func (d *Device) prepare(l *backend.Launch, r *room) (work, error) {
	p, ok := l.Program.(*program)
	if !ok || p.d != d {
		return work{}, fmt.Errorf("a %T is no program of this device", l.Program)
	}
	name := p.kernel.Name
	if p.freed {
		return work{}, fmt.Errorf("kernel %s: its program was freed", name)
	}
	for i, g := range l.Groups {
		if most := d.info.Caps.MaxGroups[i]; g < 0 || g > most {
			return work{}, fmt.Errorf("kernel %s: %d groups in dimension %d, where 0 to %d are possible", name, g, i, most)
		}
	}
	if len(l.Params) != len(p.kernel.Params) {
		return work{}, fmt.Errorf("kernel %s: %d parameters were given, it has %d", name, len(l.Params), len(p.kernel.Params))
	}
	mems := p.globals
	if len(l.Buffers) != len(mems) {
		return work{}, fmt.Errorf("kernel %s: %d buffers were given, it has %d", name, len(l.Buffers), len(mems))
	}
	w := work{program: p, groups: l.Groups, params: r.params[:len(l.Params):len(l.Params)], buffers: r.buffers[:len(mems):len(mems)], timing: l.Timing}
	r.params, r.buffers = r.params[len(w.params):], r.buffers[len(mems):]
	copy(w.params, l.Params)
	for i, r := range l.Buffers {
		b, ok := r.Buffer.(*buffer)
		where := func() string { return fmt.Sprintf("kernel %s: buffer %d (%s)", name, i, mems[i].Name) } // for errors alone
		switch {
		case !ok || b.d != d:
			return work{}, fmt.Errorf("%s: a %T is no buffer of this device", where(), r.Buffer)
		case b.mem == nil:
			return work{}, errors.New(where() + " was freed")
		case r.Offset < 0 || r.Offset%offsetAlign != 0:
			return work{}, fmt.Errorf("%s: offset %d is no multiple of %d", where(), r.Offset, offsetAlign)
		case r.Size <= 0 || r.Size%4 != 0:
			return work{}, fmt.Errorf("%s: size %d is no positive multiple of 4", where(), r.Size)
		case r.Size > b.size || r.Offset > b.size-r.Size:
			return work{}, fmt.Errorf("%s: bytes %d to %d are beyond its %d bytes", where(), r.Offset, r.Offset+r.Size, b.size)
		}
		w.buffers[i] = b.mem[r.Offset : r.Offset+r.Size]
	}
	return w, nil
}

// drain runs submissions until there are none.
func (d *Device) drain() {
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.running = false
			d.queue = nil
			d.idle.Broadcast()
			d.mu.Unlock()
			return
		}
		s := d.queue[0]
		d.queue[0] = nil
		d.queue = d.queue[1:]
		d.complete(s)
		d.idle.Broadcast()
		d.mu.Unlock()
	}
}

// run runs the launches in order and stops at the first that fails.
func (s *submission) run() {
	for i := range s.room.work {
		w := &s.room.work[i]
		if w.timing != nil {
			w.timing.Start = time.Now()
		}
		err := w.run()
		if w.timing != nil {
			w.timing.End = time.Now()
		}
		if err != nil {
			s.err = fmt.Errorf("%s: %w", s.d.info, err)
			break
		}
	}
}

// run keeps a panic, which would be a mistake of ours, from ending the user's program.
func (w *work) run() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel %s: internal error: %v", w.program.kernel.Name, p)
		}
	}()
	return w.program.run(w.groups, w.buffers, w.params)
}

// Wait waits for the submission, and reports the failure of one of its launches, or of an earlier one that nobody was
// told of.
func (s *submission) Wait(ctx context.Context) error {
	if err := wait(ctx, s); err != nil {
		return err
	}
	err := s.d.takeFailure(s.seq)
	if s.err != nil {
		return s.err
	}
	return err
}

// Done reports whether the submission has run.
func (s *submission) Done() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
