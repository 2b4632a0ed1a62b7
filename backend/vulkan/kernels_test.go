//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

// eachDevice runs f on every Vulkan device of the machine, with a device of its own that is closed afterwards.
func eachDevice(t *testing.T, f func(t *testing.T, d *device)) {
	t.Helper()
	infos, err := theDriver.Devices()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("no Vulkan device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.Problem != "" {
			t.Logf("%s (%s) is left out: %s", info, info.Name, info.Problem)
			continue
		}
		t.Run(info.Driver, func(t *testing.T) {
			dev, err := theDriver.Open(info.Index)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			f(t, dev.(*device))
		})
	}
}

// affine is y[i] = y[i]*mul + add over U32: a chain of them depends on the order of every link.
func affine(t testing.TB) *ir.Kernel {
	b := ir.NewBuilder("affine", 64, 1, 1)
	y := b.Buffer("y", ir.U32, ir.ReadWrite)
	n, mul, add := b.Param("n", ir.U32), b.Param("mul", ir.U32), b.Param("add", ir.U32)
	i := b.LinearID()
	b.If(b.Lt(i, n), func() { b.Store(y, i, b.Add(b.Mul(b.Load(y, i, 1), mul), add)) }, nil)
	return build(t, b)
}

// mix is y[i] = x[i]*3 + y[i].
func mix(t testing.TB) *ir.Kernel {
	b := ir.NewBuilder("mix", 64, 1, 1)
	x := b.Buffer("x", ir.U32, ir.Read)
	y := b.Buffer("y", ir.U32, ir.ReadWrite)
	n := b.Param("n", ir.U32)
	i := b.LinearID()
	b.If(b.Lt(i, n), func() { b.Store(y, i, b.Add(b.Mul(b.Load(x, i, 1), b.U32(3)), b.Load(y, i, 1))) }, nil)
	return build(t, b)
}

// spin keeps one lane of the device busy for rounds steps and then counts y[0] up.
func spin(t testing.TB) *ir.Kernel {
	b := ir.NewBuilder("spin", 1, 1, 1)
	y := b.Buffer("y", ir.U32, ir.ReadWrite)
	rounds := b.Param("rounds", ir.U32)
	v := b.Var(b.Load(y, b.U32(0), 1))
	b.Range(rounds, func(i ir.Value) {
		x := b.Get(v)
		b.Set(v, b.Xor(b.Mul(x, b.U32(1664525)), b.Add(x, i)))
	})
	// The sum depends on v, so that the loop is not removed, and is always 1.
	one := b.Select(b.Eq(b.Get(v), b.U32(0xdeadbeef)), b.U32(1), b.U32(1))
	b.Store(y, b.U32(0), b.Add(b.Load(y, b.U32(0), 1), one))
	b.Store(y, b.U32(1), b.Get(v))
	return build(t, b)
}

// longWork returns n launches that keep the device busy for some time and count b[0] up. They are many, because lavapipe
// ends a loop silently after 65,535 iterations.
func longWork(t testing.TB, d *device, b *buffer, n int) []backend.Launch {
	l := backend.Launch{Program: compile(t, d, spin(t)), Groups: [3]int{1, 1, 1}, Buffers: []backend.Region{{Buffer: b, Size: b.size}}, Params: []uint32{60_000}}
	return slices.Repeat([]backend.Launch{l}, n)
}

func build(t testing.TB, b *ir.Builder) *ir.Kernel {
	t.Helper()
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func compile(t testing.TB, d *device, k *ir.Kernel) backend.Program {
	t.Helper()
	p, err := d.Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func alloc(t testing.TB, d *device, size int64) *buffer {
	t.Helper()
	b, err := d.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	return b.(*buffer)
}

func submit(t testing.TB, d *device, batch ...backend.Launch) backend.Fence {
	t.Helper()
	f, err := d.Submit(batch)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// launch makes a launch over n elements of whole buffers.
func launch(p backend.Program, n int, params []uint32, bufs ...*buffer) backend.Launch {
	l := backend.Launch{Program: p, Groups: [3]int{(n + 63) / 64, 1, 1}, Params: params}
	for _, b := range bufs {
		l.Buffers = append(l.Buffers, backend.Region{Buffer: b, Size: b.size})
	}
	return l
}

func words(vs ...uint32) []byte {
	var out []byte
	for _, v := range vs {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

func write(t testing.TB, b *buffer, vs []uint32) {
	t.Helper()
	if err := b.Write(0, words(vs...)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, b *buffer) []uint32 {
	t.Helper()
	data := make([]byte, b.size)
	if err := b.Read(0, data); err != nil {
		t.Fatal(err)
	}
	out := make([]uint32, b.size/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}

func iota(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// hide makes a buffer's memory look invisible to the host, as on a discrete GPU, so that transfers are staged.
func hide(b *buffer) *buffer {
	b.memory.ptr = nil
	b.memory.flags &^= hostVisible
	return b
}

// narrow stores x rounded to f16, x truncated to u8, and an i64 sum, and so needs what many devices lack.
func narrow(t testing.TB) *ir.Kernel {
	b := ir.NewBuilder("narrow", 64, 1, 1)
	x := b.Buffer("x", ir.F32, ir.Read)
	h, u := b.Buffer("h", ir.F16, ir.Write), b.Buffer("u", ir.U8, ir.Write)
	l := b.Buffer("l", ir.I64, ir.ReadWrite)
	n := b.Param("n", ir.U32)
	i := b.LinearID()
	b.If(b.Lt(i, n), func() {
		v := b.Load(x, i, 1)
		b.Store(h, i, b.Convert(v, ir.F16))
		b.Store(u, i, b.Convert(b.Convert(v, ir.I32), ir.U8))
		b.Store(l, i, b.Add(b.Load(l, i, 1), b.ConstBits(ir.Scalar(ir.I64), 0x1_0000_0001)))
	}, nil)
	return build(t, b)
}
