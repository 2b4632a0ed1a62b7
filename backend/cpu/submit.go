package cpu

import (
	"context"
	"errors"
	"fmt"
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
	work []work
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
	s := &submission{d: d, done: make(chan struct{}), work: make([]work, 0, len(batch))}
	params, buffers := 0, 0
	for _, l := range batch {
		params, buffers = params+len(l.Params), buffers+len(l.Buffers)
	}
	room := room{make([]uint32, params), make([][]byte, buffers)}
	for i, l := range batch {
		w, err := d.prepare(l, &room)
		if err != nil {
			return nil, fmt.Errorf("%s: launch %d: %w", d.info, i, err)
		}
		if l.Groups[0] != 0 && l.Groups[1] != 0 && l.Groups[2] != 0 {
			s.work = append(s.work, w)
		}
	}
	for _, l := range batch {
		for _, r := range l.Buffers {
			r.Buffer.(*buffer).last = s
		}
	}
	d.submitted++
	s.seq = d.submitted
	d.last = s
	d.queue = append(d.queue, s)
	if !d.running {
		d.running = true
		go d.drain()
	}
	return s, nil
}

// room is for the parameters and buffers of a batch's launches.
type room struct {
	params  []uint32
	buffers [][]byte
}

// prepare holds a launch against its program. d.mu is held.
func (d *Device) prepare(l backend.Launch, r *room) (work, error) {
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
		d.mu.Unlock()

		s.run()

		d.mu.Lock()
		if s.err != nil && d.failed == nil {
			d.failed, d.failedSeq = s.err, s.seq
		}
		close(s.done)
		d.idle.Broadcast()
		d.mu.Unlock()
	}
}

// run runs the launches in order and stops at the first that fails.
func (s *submission) run() {
	for _, w := range s.work {
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
	s.work = nil
}

// run keeps a panic, which would be a mistake of ours, from ending the user's program.
func (w work) run() (err error) {
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
