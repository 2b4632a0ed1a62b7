package jit

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

func build(t testing.TB, name string, local int, f func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	b := ir.NewBuilder(name, local, 1, 1)
	f(b)
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// guarded returns n bytes with others around them, and a check that those are as they were.
func guarded(t *testing.T, n int) ([]byte, func()) {
	const guard = 1 << 12
	words := make([]uint64, (n+2*guard)/8+8)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	for i := range all {
		all[i] = 0xa5
	}
	start := guard + int(-uintptr(unsafe.Pointer(&all[guard]))%64)
	mem := all[start : start+n : start+n]
	clear(mem)
	return mem, func() {
		t.Helper()
		for i, b := range all {
			if (i < start || i >= start+n) && b != 0xa5 {
				t.Fatalf("byte %d around the buffer was written", i-start)
			}
		}
	}
}

// TestFaults: a fault of a kernel is an error and nothing outside of the buffers changes.
func TestFaults(t *testing.T) {
	needCode(t)
	type launch struct {
		name  string
		fault interp.FaultKind // empty: none
		param uint32
	}
	for _, c := range []struct {
		name     string
		local    int
		f        func(b *ir.Builder, in, out *ir.Mem, p ir.Value)
		launches []launch
	}{
		{"neighbours", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			i := b.GlobalID(0)
			b.Store(out, b.Add(i, p), b.Load(in, i, 1))
		}, []launch{{"inside", "", 0}, {"one beyond", interp.OutOfBounds, 1}, {"before", interp.OutOfBounds, 1<<32 - 1}, {"far", interp.OutOfBounds, 1 << 31}}},
		{"guarded neighbours", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			i := b.Add(b.GlobalID(0), p)
			b.If(b.Lt(i, b.U32(128)), func() { b.Store(out, i, b.Load(in, i, 1)) }, nil)
		}, []launch{{"all", "", 0}, {"some wrap around", "", 1<<32 - 5}, {"some beyond", "", 100}, {"none", "", 1 << 31}}},
		{"wrong guard", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			i := b.Add(b.GlobalID(0), p)
			b.If(b.Lt(i, b.U32(130)), func() { b.Store(out, i, b.F32(1)) }, nil)
		}, []launch{{"one beyond", interp.OutOfBounds, 1}, {"some wrap around", "", 1<<32 - 128}}},
		{"gather", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			i := b.GlobalID(0)
			b.Store(out, i, b.Load(in, b.Mul(i, p), 1))
		}, []launch{{"inside", "", 1}, {"beyond", interp.OutOfBounds, 3}, {"negative", interp.OutOfBounds, 1<<32 - 1}}},
		{"scatter", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			i := b.GlobalID(0)
			b.Store(out, b.Mul(i, p), b.Load(in, i, 1))
		}, []launch{{"inside", "", 1}, {"beyond", interp.OutOfBounds, 3}, {"negative", interp.OutOfBounds, 1<<32 - 1}}},
		{"uniform", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			b.Store(out, b.GlobalID(0), b.Load(in, p, 1))
		}, []launch{{"inside", "", 127}, {"beyond", interp.OutOfBounds, 128}}},
		{"vectors", 4, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			b.Store(out, p, b.Load(in, p, 8))
		}, []launch{{"inside", "", 120}, {"beyond", interp.OutOfBounds, 128}, {"aligned to less", interp.Misaligned, 4}, {"wrapping", interp.OutOfBounds, 1<<32 - 8}}},
		{"division", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			b.Store(out, b.GlobalID(0), b.Convert(b.Div(b.GlobalID(0), p), ir.F32))
		}, []launch{{"by one", "", 1}, {"by zero", interp.DivisionByZero, 0}}},
		{"division by lanes", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			b.Store(out, b.GlobalID(0), b.Convert(b.Rem(b.U32(77), b.Add(b.GlobalID(0), p)), ir.F32))
		}, []launch{{"by others", "", 1}, {"by zero", interp.DivisionByZero, 0}}},
		{"endless loop", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			b.For(b.U32(0), b.U32(1<<32-1), b.Add(p, b.U32(0)), func(i ir.Value) { b.Store(out, b.U32(0), b.F32(0)) })
		}, []launch{{"wraps", interp.EndlessLoop, 1 << 31}, {"stands", interp.EndlessLoop, 0}}},
		{"endless loop of lanes", 64, func(b *ir.Builder, in, out *ir.Mem, p ir.Value) {
			b.For(b.GlobalID(0), b.U32(1<<32-1), b.Add(p, b.U32(0)), func(i ir.Value) { b.Store(out, b.GlobalID(0), b.F32(0)) })
		}, []launch{{"wraps", interp.EndlessLoop, 1 << 31}, {"stands", interp.EndlessLoop, 0}}},
	} {
		k := build(t, "fault", c.local, func(b *ir.Builder) {
			in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.ReadWrite)
			c.f(b, in, out, b.Param("p", ir.U32))
		})
		p, err := Compile(k)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, l := range c.launches {
			t.Run(c.name+"/"+l.name, func(t *testing.T) {
				in, check := guarded(t, 512)
				out, checkOut := guarded(t, 512)
				err := p.Run([3]int{128 / c.local, 1, 1}, [][]byte{in, out}, []uint32{l.param}, interp.DefaultPool())
				var fault *interp.RunError
				if errors.As(err, &fault) != (l.fault != "") || fault != nil && fault.Fault != l.fault {
					t.Errorf("got %v, want %q", err, l.fault)
				}
				check()
				checkOut()
			})
		}
	}
}

// TestThreads: the bits of a result are the same for any number of threads.
func TestThreads(t *testing.T) {
	needCode(t)
	k := build(t, "rows", 8, func(b *ir.Builder) {
		in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
		row := b.LinearID()
		sum := b.Var(b.Const(ir.Vec(ir.F32, 16), 0))
		b.For(b.U32(0), b.U32(64), b.U32(16), func(i ir.Value) {
			b.Set(sum, b.Add(b.Get(sum), b.Exp(b.Load(in, b.Add(b.Mul(row, b.U32(64)), i), 16))))
		})
		s := b.F32(0)
		for i := range 16 {
			s = b.Add(s, b.Extract(b.Get(sum), i))
		}
		b.Store(out, row, s)
	})
	p, err := Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 4096
	in := make([]byte, 4*64*rows)
	for i := range in {
		in[i] = byte(i*i>>3) & 0x3f // small positive numbers, mostly
	}
	var first []byte
	for _, threads := range []int{1, 2, 3, 16} {
		bufs := aligned([][]byte{in, make([]byte, 4*rows)})
		if err := p.Run([3]int{rows / 8, 1, 1}, bufs, nil, interp.NewPool(threads)); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = bufs[1]
		} else if !bytes.Equal(first, bufs[1]) {
			t.Errorf("%d threads give other bits than 1", threads)
		}
	}
}

// TestWorkgroups runs workgroups of all kinds of sizes, in which the last vector may be incomplete, on grids of three dimensions.
func TestWorkgroups(t *testing.T) {
	needCode(t)
	for _, local := range [][3]int{{1, 1, 1}, {3, 1, 1}, {4, 1, 1}, {16, 1, 1}, {17, 1, 1}, {64, 1, 1}, {5, 3, 1}, {2, 3, 4}, {1, 1, 20}, {16, 2, 1}} {
		t.Run(fmt.Sprint(local), func(t *testing.T) {
			b := ir.NewBuilder("ids", local[0], local[1], local[2])
			out := b.Buffer("out", ir.U32, ir.Write)
			n := b.U32(uint32(local[0] * local[1] * local[2]))
			lin := b.Add(b.LocalID(0), b.Mul(b.U32(uint32(local[0])), b.Add(b.LocalID(1), b.Mul(b.U32(uint32(local[1])), b.LocalID(2)))))
			group := b.Add(b.GroupID(0), b.Mul(b.NumGroups(0), b.Add(b.GroupID(1), b.Mul(b.NumGroups(1), b.GroupID(2)))))
			v := b.Add(b.GlobalID(0), b.Mul(b.U32(1000), b.Add(b.GlobalID(1), b.Mul(b.U32(1000), b.GlobalID(2)))))
			b.If(b.Ne(b.Rem(v, b.U32(7)), b.U32(0)), func() { b.Store(out, b.Add(b.Mul(group, n), lin), v) }, func() {
				b.Store(out, b.Add(b.Mul(group, n), lin), b.Not(v))
			})
			k, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			p, err := Compile(k)
			if err != nil {
				t.Fatal(err)
			}
			groups := [3]int{5, 2, 3}
			size := 4 * k.Invocations() * 30
			want := [][]byte{make([]byte, size)}
			if err := interp.Check(k, groups, want, nil, interp.CheckOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, threads := range []int{1, 3} {
				got := aligned([][]byte{make([]byte, size)})
				if err := p.Run(groups, got, nil, interp.NewPool(threads)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(want[0], got[0]) {
					t.Errorf("results differ with %d threads", threads)
				}
			}
		})
	}
}
