package null

import (
	"context"
	"errors"
	"fmt"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

type buffer struct {
	d     *Device
	size  int64
	freed bool // guarded by d.mu
}

func (b *buffer) Size() int64 { return b.size }

func (b *buffer) Write(offset int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if err := b.check("write", offset, len(data)); err != nil {
		return err
	}
	b.d.counts.Writes++
	b.d.counts.WriteBytes += int64(len(data))
	return nil
}

func (b *buffer) Read(offset int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if err := b.check("read", offset, len(data)); err != nil {
		return err
	}
	clear(data)
	b.d.counts.Reads++
	b.d.counts.ReadBytes += int64(len(data))
	return nil
}

func (b *buffer) check(what string, offset int64, n int) error {
	if err := b.d.check(); err != nil {
		return err
	}
	switch {
	case b.freed:
		return fmt.Errorf("%s: %s of a buffer that was freed", b.d.info, what)
	case offset < 0 || offset%4 != 0:
		return fmt.Errorf("%s: %s at byte %d: the offset must be a multiple of 4", b.d.info, what, offset)
	case offset+int64(n) > b.size:
		return fmt.Errorf("%s: %s of %d bytes at byte %d reaches beyond the buffer's %d bytes", b.d.info, what, n, offset, b.size)
	}
	return nil
}

func (b *buffer) Free() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if !b.freed {
		b.freed = true
		b.d.counts.Frees++
		b.d.counts.LiveBytes -= b.size
	}
}

type program struct {
	d       *Device
	kernel  *ir.Kernel
	lowered *ir.Kernel
	globals []*ir.Mem // of kernel
	freed   bool      // guarded by d.mu
}

func (p *program) Free() {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if !p.freed {
		p.freed = true
		p.d.counts.LivePrograms--
	}
}

// Kernels returns the kernel that a program of a null device was made from, and its lowered form; nil for other programs.
func Kernels(p backend.Program) (kernel, lowered *ir.Kernel) {
	if q, ok := p.(*program); ok {
		return q.kernel, q.lowered
	}
	return nil, nil
}

// checkLaunch holds a launch against its program. d.mu is held.
func (d *Device) checkLaunch(l backend.Launch) (*program, error) {
	p, ok := l.Program.(*program)
	if !ok || p.d != d {
		return nil, fmt.Errorf("a %T is no program of this device", l.Program)
	}
	name := p.kernel.Name
	if p.freed {
		return nil, fmt.Errorf("kernel %s: its program was freed", name)
	}
	for i, g := range l.Groups {
		if m := d.info.Caps.MaxGroups[i]; g < 0 || m > 0 && g > m {
			return nil, fmt.Errorf("kernel %s: %d groups in dimension %d, where 0 to %d are possible", name, g, i, m)
		}
	}
	if len(l.Params) != len(p.kernel.Params) {
		return nil, fmt.Errorf("kernel %s: %d parameters were given, it has %d", name, len(l.Params), len(p.kernel.Params))
	}
	mems := p.globals
	if len(l.Buffers) != len(mems) {
		return nil, fmt.Errorf("kernel %s: %d buffers were given, it has %d", name, len(l.Buffers), len(mems))
	}
	for i, r := range l.Buffers {
		b, ok := r.Buffer.(*buffer)
		where := func() string { return fmt.Sprintf("kernel %s: buffer %d (%s)", name, i, mems[i].Name) } // for errors alone
		switch {
		case !ok || b.d != d:
			return nil, fmt.Errorf("%s: a %T is no buffer of this device", where(), r.Buffer)
		case b.freed:
			return nil, errors.New(where() + " was freed")
		case r.Offset < 0 || r.Offset%d.info.Limits.BufferOffsetAlign != 0:
			return nil, fmt.Errorf("%s: offset %d is no multiple of %d", where(), r.Offset, d.info.Limits.BufferOffsetAlign)
		case r.Size <= 0 || r.Size%4 != 0:
			return nil, fmt.Errorf("%s: size %d is no positive multiple of 4", where(), r.Size)
		case r.Offset+r.Size > b.size:
			return nil, fmt.Errorf("%s: bytes %d to %d are beyond its %d bytes", where(), r.Offset, r.Offset+r.Size, b.size)
		}
	}
	return p, nil
}

// fence is done at once.
type fence struct{ d *Device }

func (f *fence) Wait(ctx context.Context) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.counts.Synchronization++
	if err := f.d.check(); err != nil {
		return err
	}
	return ctx.Err()
}

func (f *fence) Done() bool { return true }
