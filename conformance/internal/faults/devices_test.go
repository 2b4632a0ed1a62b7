package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// faulty is the CPU device under another name, with places to plant faults.
type faulty struct {
	inner backend.Device
	caps  ir.Caps
	edit  func(k *ir.Kernel) // changes a kernel, a copy of its own, before it is compiled
	lower bool               // kernels are lowered to caps before edit
	read  func(data []byte)  // changes what is read

	submit func() error // an error of a submission
}

func newFaulty() *faulty {
	d := tensor.CPU()
	return &faulty{inner: d, caps: d.Info().Caps}
}

func (d *faulty) Info() backend.Info {
	i := d.inner.Info()
	i.API, i.Name, i.Caps = "faulty", "the CPU with a fault", d.caps
	return i
}

type faultyBuffer struct {
	backend.Buffer
	d *faulty
}

func (b *faultyBuffer) Read(off int64, data []byte) error {
	err := b.Buffer.Read(off, data)
	if err == nil && b.d.read != nil {
		b.d.read(data)
	}
	return err
}

func (d *faulty) Alloc(size int64) (backend.Buffer, error) {
	b, err := d.inner.Alloc(size)
	if err != nil {
		return nil, err
	}
	return &faultyBuffer{b, d}, nil
}

func (d *faulty) Compile(k *ir.Kernel) (backend.Program, error) {
	if d.lower {
		low, err := ir.Lower(k, d.caps)
		if err != nil {
			return nil, err
		}
		k = low
	}
	if d.edit != nil {
		k = cloneKernel(k)
		d.edit(k)
	}
	return d.inner.Compile(k)
}

func (d *faulty) Submit(batch []backend.Launch) (backend.Fence, error) {
	if d.submit != nil {
		if err := d.submit(); err != nil {
			return nil, err
		}
	}
	return d.inner.Submit(unwrapped(batch, func(b backend.Buffer) backend.Buffer { return b.(*faultyBuffer).Buffer }))
}

func (d *faulty) Close() error { return nil }

// unwrapped returns the launches with the buffers that the wrapped device knows.
func unwrapped(batch []backend.Launch, f func(b backend.Buffer) backend.Buffer) []backend.Launch {
	out := slices.Clone(batch)
	for i := range out {
		out[i].Buffers = slices.Clone(out[i].Buffers)
		for j := range out[i].Buffers {
			out[i].Buffers[j].Buffer = f(out[i].Buffers[j].Buffer)
		}
	}
	return out
}

// flips flips one bit in a million of what passes through, at random places.
func flips() func(data []byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	next := rng.IntN(2_000_000)
	return func(data []byte) {
		for bits := 8 * len(data); ; {
			if next >= bits {
				next -= bits
				return
			}
			data[next/8] ^= 1 << (next % 8)
			next += 1 + rng.IntN(2_000_000)
		}
	}
}

// lazy is the CPU device with a queue that runs when somebody waits. With early set a freed buffer's memory is given to
// the next buffer of its size although launches that are still in the queue use it.
type lazy struct {
	*faulty
	early bool
	mu    sync.Mutex
	queue []backend.Launch
	users map[*lazyBuffer]bool // buffers that the queue uses
	free  map[int64][]backend.Buffer
}

func newLazy(early bool) *lazy {
	return &lazy{faulty: newFaulty(), early: early, users: map[*lazyBuffer]bool{}, free: map[int64][]backend.Buffer{}}
}

type lazyBuffer struct {
	inner backend.Buffer
	d     *lazy
	freed bool
}

func (d *lazy) Alloc(size int64) (backend.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.free[size]; len(l) > 0 {
		d.free[size] = l[:len(l)-1]
		return &lazyBuffer{inner: l[len(l)-1], d: d}, nil
	}
	b, err := d.inner.Alloc(size)
	if err != nil {
		return nil, err
	}
	return &lazyBuffer{inner: b, d: d}, nil
}

// run empties the queue; the lock is held.
func (d *lazy) run() error {
	batch := d.queue
	d.queue = nil
	clear(d.users)
	if len(batch) == 0 {
		return nil
	}
	f, err := d.inner.Submit(batch)
	if err != nil {
		return err
	}
	return f.Wait(context.Background())
}

func (d *lazy) Submit(batch []backend.Launch) (backend.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, unwrapped(batch, func(b backend.Buffer) backend.Buffer {
		d.users[b.(*lazyBuffer)] = true
		return b.(*lazyBuffer).inner
	})...)
	return &lazyFence{d: d}, nil
}

type lazyFence struct {
	d    *lazy
	done bool
}

func (f *lazyFence) Wait(context.Context) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.done = true
	return f.d.run()
}

func (f *lazyFence) Done() bool { return f.done }

func (b *lazyBuffer) Size() int64 { return b.inner.Size() }

func (b *lazyBuffer) Write(off int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.d.users[b] {
		if err := b.d.run(); err != nil {
			return err
		}
	}
	return b.inner.Write(off, data)
}

func (b *lazyBuffer) Read(off int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if err := b.d.run(); err != nil {
		return err
	}
	return b.inner.Read(off, data)
}

func (b *lazyBuffer) Free() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.freed {
		return
	}
	b.freed = true
	if b.d.users[b] && !b.d.early {
		if b.d.run() != nil {
			return
		}
	}
	b.d.free[b.Size()] = append(b.d.free[b.Size()], b.inner)
}

// checked runs every kernel with the checking executor, and kernels are made for it as for a GPU.
type checked struct {
	mu   sync.Mutex
	caps ir.Caps
	edit func(k *ir.Kernel)
}

func newChecked() *checked {
	caps := ir.InterpCaps()
	caps.MaxInvocations, caps.MaxLocal = 64, [3]int{64, 64, 64}
	caps.SharedBytes = 32 << 10
	return &checked{caps: caps}
}

func (d *checked) Info() backend.Info {
	return backend.Info{API: "checked", Name: "checking executor", Type: backend.DiscreteGPU, Caps: d.caps, Limits: backend.Limits{MaxAllocBytes: 1 << 30, BufferOffsetAlign: 16}}
}

type checkedBuffer struct {
	d    *checked
	data []byte
}

func (d *checked) Alloc(size int64) (backend.Buffer, error) {
	return &checkedBuffer{d, slices.Repeat([]byte{0xfb}, int(size))}, nil
}

func (b *checkedBuffer) Size() int64 { return int64(len(b.data)) }
func (b *checkedBuffer) Free()       {}
func (b *checkedBuffer) Write(off int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	copy(b.data[off:], data)
	return nil
}

func (b *checkedBuffer) Read(off int64, data []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	copy(data, b.data[off:])
	return nil
}

type checkedProgram struct{ k *ir.Kernel }

func (checkedProgram) Free() {}

func (d *checked) Compile(k *ir.Kernel) (backend.Program, error) {
	l, err := ir.Lower(k, d.caps)
	if err != nil {
		return nil, err
	}
	if d.edit != nil {
		l = cloneKernel(l)
		d.edit(l)
	}
	return checkedProgram{l}, nil
}

func (d *checked) Submit(batch []backend.Launch) (backend.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range batch {
		var bufs [][]byte
		for _, r := range l.Buffers {
			bufs = append(bufs, slices.Clip(r.Buffer.(*checkedBuffer).data[r.Offset:r.Offset+r.Size]))
		}
		if err := interp.Check(l.Program.(checkedProgram).k, l.Groups, bufs, l.Params, interp.CheckOptions{}); err != nil {
			return nil, err
		}
	}
	return doneFence{}, nil
}

func (d *checked) Close() error { return nil }

type doneFence struct{}

func (doneFence) Wait(context.Context) error { return nil }
func (doneFence) Done() bool                 { return true }

// cloneKernel copies a kernel with its instructions, so that one may be changed.
func cloneKernel(k *ir.Kernel) *ir.Kernel {
	out := *k
	instrs := map[*ir.Instr]*ir.Instr{}
	var block func(b *ir.Block) *ir.Block
	block = func(b *ir.Block) *ir.Block {
		nb := &ir.Block{}
		for _, in := range b.Instrs {
			n := *in
			instrs[in] = &n
			n.Args = slices.Clone(in.Args)
			n.Blocks = nil
			for _, inner := range in.Blocks {
				n.Blocks = append(n.Blocks, block(inner))
			}
			nb.Instrs = append(nb.Instrs, &n)
		}
		return nb
	}
	out.Body = block(k.Body)
	out.Template = nil
	out.Walk(func(in *ir.Instr) {
		for i, a := range in.Args {
			in.Args[i] = instrs[a]
		}
	})
	return &out
}

// blocks calls f for every block of a kernel.
func blocks(b *ir.Block, f func(b *ir.Block)) {
	f(b)
	for _, in := range b.Instrs {
		for _, inner := range in.Blocks {
			blocks(inner, f)
		}
	}
}

// dropBarriers removes the barriers of a kernel.
func dropBarriers(k *ir.Kernel) {
	blocks(k.Body, func(b *ir.Block) {
		b.Instrs = slices.DeleteFunc(b.Instrs, func(in *ir.Instr) bool { return in.Op == ir.OpBarrier })
	})
}

// truncateHalves makes conversions of float32 to float16 drop the bits that float16 has not.
func truncateHalves(k *ir.Kernel) {
	blocks(k.Body, func(b *ir.Block) {
		var out []*ir.Instr
		add := func(op ir.Op, t ir.Type, imm uint64, args ...ir.Value) *ir.Instr {
			in := &ir.Instr{Op: op, Type: t, ID: k.NumInstr, Imm: imm, Args: args}
			k.NumInstr++
			out = append(out, in)
			return in
		}
		for _, in := range b.Instrs {
			if in.Op == ir.OpConvert && in.Type.Kind == ir.F16 && in.Args[0].Type.Kind == ir.F32 {
				x := in.Args[0]
				u := x.Type.With(ir.U32)
				masked := add(ir.OpAnd, u, 0, add(ir.OpBitCast, u, 0, x), add(ir.OpConst, u, 0xffffe000))
				in.Args[0] = add(ir.OpBitCast, x.Type, 0, masked)
			}
			out = append(out, in)
		}
		b.Instrs = out
	})
}
