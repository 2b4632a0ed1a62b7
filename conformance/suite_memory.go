package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// memoryCases are about the device's buffers, below the tensors, and about many tensors.
func memoryCases(e *env) ([]testCase, error) {
	if e.opts.Golden != nil {
		return nil, nil
	}
	big := 16 << 20
	tensors := 10_000
	if e.opts.Quick {
		big = 4 << 20
	}
	return []testCase{
		{name: "copy/sizes", run: func(x *run) error {
			for _, n := range []int{4, 8, 60, 252, 256, 260, 4096, 65_540, 1<<20 + 4} {
				if err := x.roundTrip(n); err != nil {
					return fmt.Errorf("%d bytes: %w", n, err)
				}
			}
			return nil
		}},
		{name: "copy/large", run: func(x *run) error { return x.roundTrip(big) }},
		{name: "copy/offsets", run: func(x *run) error { return x.offsets() }},
		{name: "copy/last_write_wins", run: func(x *run) error { return x.lastWrite() }},
		{name: "reuse/freed_while_in_use", run: func(x *run) error { return x.reuse() }},
		{name: "reuse/tensors", run: func(x *run) error { return x.reuseTensors() }},
		{name: "order/launches", run: func(x *run) error { return x.ordered() }},
		{name: "many/live_tensors", run: func(x *run) error { return x.manyTensors(tensors) }},
		{name: "many/allocations", run: func(x *run) error { return x.manyBuffers() }},
		{name: "limits/too_large", run: func(x *run) error { return x.tooLarge() }},
		{name: "limits/empty", run: func(x *run) error {
			return x.scoped(func(s *tensor.Scope) error {
				t := s.Zeros(tensor.Float32, 3, 0, 2).AddScalar(1)
				v, err := t.CPU().Float32s()
				if err == nil && len(v) != 0 {
					err = fmt.Errorf("an empty tensor has %d elements", len(v))
				}
				return err
			})
		}},
		{name: "limits/freed_memory_comes_back", run: func(x *run) error {
			before := tensor.MemoryStats(x.dev).AllocatedBytes.Current
			for range 3 {
				err := x.scoped(func(s *tensor.Scope) error {
					_, err := s.Full(tensor.Float32, 1, 1000, 100).AddScalar(1).Sum().Item()
					return err
				})
				if err != nil {
					return err
				}
			}
			if after := tensor.MemoryStats(x.dev).AllocatedBytes.Current; after > before {
				return fmt.Errorf("%d bytes are in use after the scopes closed, %d before", after, before)
			}
			return nil
		}},
	}, nil
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 4 {
		v := rng.Uint32()
		b[i], b[i+1], b[i+2], b[i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	return b
}

// sameBytes names the first byte that differs.
func sameBytes(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	n, first := 0, -1
	for i := range want {
		if got[i] != want[i] {
			if first < 0 {
				first = i
			}
			n++
		}
	}
	return fmt.Errorf("%s: %d of %d bytes differ, the first at %d: %#02x, want %#02x", what, n, len(want), first, got[first], want[first])
}

func (x *run) roundTrip(n int) error {
	b, err := x.dev.Alloc(int64(n))
	if err != nil {
		return err
	}
	defer b.Free()
	if b.Size() < int64(n) {
		return fmt.Errorf("the buffer has %d bytes", b.Size())
	}
	want, got := randomBytes(x.rng(), n), make([]byte, n)
	if err := b.Write(0, want); err != nil {
		return err
	}
	if err := b.Read(0, got); err != nil {
		return err
	}
	return sameBytes("read back", got, want)
}

// offsets writes and reads parts of a buffer.
func (x *run) offsets() error {
	const n = 4096
	b, err := x.dev.Alloc(n)
	if err != nil {
		return err
	}
	defer b.Free()
	rng := x.rng()
	want := make([]byte, n)
	if err := b.Write(0, want); err != nil {
		return err
	}
	for range 40 {
		off := 4 * rng.IntN(n/4)
		part := randomBytes(rng, 4*(1+rng.IntN((n-off)/4)))
		copy(want[off:], part)
		if err := b.Write(int64(off), part); err != nil {
			return err
		}
		off = 4 * rng.IntN(n/4)
		got := make([]byte, 4*(1+rng.IntN((n-off)/4)))
		if err := b.Read(int64(off), got); err != nil {
			return err
		}
		if err := sameBytes(fmt.Sprintf("%d bytes from %d", len(got), off), got, want[off:off+len(got)]); err != nil {
			return err
		}
	}
	if err := b.Write(n, []byte{1, 2, 3, 4}); err == nil {
		return errors.New("writing past the end of a buffer gives no error")
	}
	if err := b.Read(n-4, make([]byte, 8)); err == nil {
		return errors.New("reading past the end of a buffer gives no error")
	}
	return nil
}

func (x *run) lastWrite() error {
	b, err := x.dev.Alloc(1024)
	if err != nil {
		return err
	}
	defer b.Free()
	var want []byte
	rng := x.rng()
	for range 8 {
		want = randomBytes(rng, 1024)
		if err := b.Write(0, want); err != nil {
			return err
		}
	}
	got := make([]byte, 1024)
	if err := b.Read(0, got); err != nil {
		return err
	}
	return sameBytes("after 8 writes", got, want)
}

// addKernel copies n words from its first buffer to its second and adds a parameter.
func addKernel() (*ir.Kernel, error) {
	b := ir.NewBuilder("conformance_add", 64, 1, 1)
	in, out := b.Buffer("in", ir.U32, ir.Read), b.Buffer("out", ir.U32, ir.Write)
	n, v := b.Param("n", ir.U32), b.Param("v", ir.U32)
	i := b.GlobalID(0)
	b.If(b.Lt(i, n), func() { b.Store(out, i, b.Add(b.Load(in, i, 1), v)) }, nil)
	return b.Build()
}

// whole is a launch binding of all of a buffer.
func whole(b backend.Buffer) backend.Region { return backend.Region{Buffer: b, Size: b.Size()} }

// launchAdd submits out = in + v.
func (x *run) launchAdd(p backend.Program, in, out backend.Buffer, v uint32) (backend.Fence, error) {
	n := int(in.Size() / 4)
	return x.dev.Submit([]backend.Launch{{Program: p, Groups: [3]int{(n + 63) / 64, 1, 1}, Buffers: []backend.Region{whole(in), whole(out)}, Params: []uint32{uint32(n), v}}})
}

// reuse frees a buffer right after the submission that reads it, as callers may, and fills new buffers of its size before
// the result is read: memory that came back too early changes the result.
func (x *run) reuse() error {
	k, err := addKernel()
	if err != nil {
		return err
	}
	p, err := x.dev.Compile(k)
	if err != nil {
		return err
	}
	defer p.Free()
	const n = 1 << 16
	rng := x.rng()
	for round := range 8 {
		in, err := x.dev.Alloc(n)
		if err != nil {
			return err
		}
		out, err := x.dev.Alloc(n)
		if err != nil {
			return err
		}
		data := randomBytes(rng, n)
		if err := in.Write(0, data); err != nil {
			return err
		}
		if _, err := x.launchAdd(p, in, out, 0); err != nil {
			return err
		}
		in.Free()
		var later []backend.Buffer
		for range 3 {
			b, err := x.dev.Alloc(n)
			if err != nil {
				return err
			}
			later = append(later, b)
			if err := b.Write(0, make([]byte, n)); err != nil {
				return err
			}
		}
		got := make([]byte, n)
		if err := out.Read(0, got); err != nil {
			return err
		}
		for _, b := range append(later, out) {
			b.Free()
		}
		if err := sameBytes(fmt.Sprintf("round %d: copy of a buffer that was freed after the submission", round), got, data); err != nil {
			return err
		}
	}
	return nil
}

// reuseTensors is the same through the caching allocator: temporaries of a long chain are freed while work is pending.
func (x *run) reuseTensors() error {
	return x.scoped(func(s *tensor.Scope) error {
		sum := s.Zeros(tensor.Float32, 1000)
		want := 0.0
		for i := range 60 {
			t := s.Full(tensor.Float32, float64(i), 1000)
			u := t.MulScalar(2)
			sum = sum.Add(u)
			want += 2 * float64(i)
			t.Free()
			u.Free()
		}
		v, err := sum.CPU().Float64s()
		if err != nil {
			return err
		}
		for i, g := range v {
			if g != want {
				return fmt.Errorf("element %d of a sum of freed temporaries is %v, want %v", i, g, want)
			}
		}
		return nil
	})
}

// ordered submits a chain of launches, in one batch and in several, whose result depends on their order.
func (x *run) ordered() error {
	k, err := addKernel()
	if err != nil {
		return err
	}
	p, err := x.dev.Compile(k)
	if err != nil {
		return err
	}
	defer p.Free()
	const n = 4096
	a, err := x.dev.Alloc(n)
	if err != nil {
		return err
	}
	defer a.Free()
	b, err := x.dev.Alloc(n)
	if err != nil {
		return err
	}
	defer b.Free()
	if err := a.Write(0, make([]byte, n)); err != nil {
		return err
	}
	launch := func(in, out backend.Buffer, v uint32) backend.Launch {
		return backend.Launch{Program: p, Groups: [3]int{n / 256, 1, 1}, Buffers: []backend.Region{whole(in), whole(out)}, Params: []uint32{n / 4, v}}
	}
	var batch []backend.Launch
	want := uint32(0)
	for i := range uint32(16) {
		batch = append(batch, launch(a, b, 2*i), launch(b, a, 1))
		want += 2*i + 1
	}
	var last backend.Fence
	for range 2 {
		if last, err = x.dev.Submit(batch); err != nil {
			return err
		}
	}
	if err := last.Wait(context.Background()); err != nil {
		return err
	}
	if !last.Done() {
		return errors.New("a fence that was waited for is not done")
	}
	got := make([]byte, n)
	if err := a.Read(0, got); err != nil {
		return err
	}
	want *= 2
	full := bytes.Repeat([]byte{byte(want), byte(want >> 8), byte(want >> 16), byte(want >> 24)}, n/4)
	return sameBytes("after 64 launches", got, full)
}

// manyTensors holds many small tensors at once; drivers may limit allocations to 4,096.
func (x *run) manyTensors(n int) error {
	return x.scoped(func(s *tensor.Scope) error {
		all := make([]*tensor.Tensor, n)
		for i := range all {
			all[i] = s.To(tensor.FromFloat32s([]float32{float32(i), 1}, 2))
			if err := all[i].Err(); err != nil {
				return fmt.Errorf("tensor %d: %w", i, err)
			}
		}
		for i := 0; i < n; i += 997 {
			v, err := all[i].CPU().Float32s()
			if err != nil {
				return err
			}
			if v[0] != float32(i) || v[1] != 1 {
				return fmt.Errorf("tensor %d of %d holds %v", i, n, v)
			}
		}
		return nil
	})
}

// manyBuffers allocates and frees more buffers than may be alive at once, and keeps some alive.
func (x *run) manyBuffers() error {
	var alive []backend.Buffer
	defer func() {
		for _, b := range alive {
			b.Free()
		}
	}()
	for i := range 5000 {
		b, err := x.dev.Alloc(256)
		if err != nil {
			return fmt.Errorf("allocation %d, with %d alive: %w", i, len(alive), err)
		}
		if i%50 != 0 {
			b.Free()
			continue
		}
		alive = append(alive, b)
		if err := b.Write(0, bytes.Repeat([]byte{byte(i / 50)}, 256)); err != nil {
			return err
		}
	}
	got := make([]byte, 256)
	for i, b := range alive {
		if err := b.Read(0, got); err != nil {
			return err
		}
		if err := sameBytes(fmt.Sprintf("buffer %d", i), got, bytes.Repeat([]byte{byte(i)}, 256)); err != nil {
			return err
		}
	}
	return nil
}

// tooLarge asks for more than the device can give and expects an error of the documented kinds; the device goes on.
func (x *run) tooLarge() error {
	size := int64(1) << 60
	b, err := x.dev.Alloc(size)
	if err == nil {
		b.Free()
		return fmt.Errorf("%d bytes were allocated", size)
	}
	if !errors.Is(err, backend.ErrOutOfMemory) && !errors.Is(err, backend.ErrLimit) {
		return fmt.Errorf("the error of %d bytes matches neither ErrOutOfMemory nor ErrLimit: %w", size, err)
	}
	return x.roundTrip(1024)
}
