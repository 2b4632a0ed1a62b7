package jit

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// TestDivideWide divides 64-bit integers, in lanes and in vectors of the kernel, against Go, and wants the fault of a division by zero.
func TestDivideWide(t *testing.T) {
	needCode(t)
	const n = 1000 // not a multiple of the lanes
	kernels := map[string]*ir.Kernel{
		"lanes": build(t, "divide", 64, func(b *ir.Builder) {
			x, y, q, r := b.Buffer("x", ir.I64, ir.Read), b.Buffer("y", ir.I64, ir.Read), b.Buffer("q", ir.I64, ir.Write), b.Buffer("r", ir.I64, ir.Write)
			i := b.GlobalID(0)
			b.If(b.Lt(i, b.U32(n)), func() {
				b.Store(q, i, b.Div(b.Load(x, i, 1), b.Load(y, i, 1)))
				b.Store(r, i, b.Rem(b.Load(x, i, 1), b.Load(y, i, 1)))
			}, nil)
		}),
		"vectors": build(t, "divide", 64, func(b *ir.Builder) {
			x, y, q, r := b.Buffer("x", ir.I64, ir.Read), b.Buffer("y", ir.I64, ir.Read), b.Buffer("q", ir.I64, ir.Write), b.Buffer("r", ir.I64, ir.Write)
			i := b.Mul(b.GlobalID(0), b.U32(4))
			b.If(b.Lt(i, b.U32(n)), func() {
				b.Store(q, i, b.Div(b.Load(x, i, 4), b.Load(y, i, 4)))
				b.Store(r, i, b.Rem(b.Load(x, i, 4), b.Load(y, i, 4)))
			}, nil)
		}),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	some := func() int64 {
		edges := []int64{1, -1, 2, -3, math.MinInt64, math.MaxInt64, math.MinInt64 + 1}
		if rng.IntN(3) == 0 {
			return edges[rng.IntN(len(edges))]
		}
		return int64(rng.Uint64()) >> rng.IntN(63)
	}
	for name, k := range kernels {
		p, err := Compile(k)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		bufs := aligned([][]byte{make([]byte, 8*n), make([]byte, 8*n), make([]byte, 8*n), make([]byte, 8*n)})
		ints := func(i int) []int64 { return unsafe.Slice((*int64)(unsafe.Pointer(&bufs[i][0])), n) }
		x, y, q, r := ints(0), ints(1), ints(2), ints(3)
		for i := range n {
			x[i] = some()
			for y[i] == 0 {
				y[i] = some()
			}
		}
		if err := p.Run([3]int{16, 1, 1}, bufs, nil, interp.NewPool(2)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range n {
			if q[i] != x[i]/y[i] || r[i] != x[i]%y[i] {
				t.Fatalf("%s: %d / %d = %d, rest %d; want %d, rest %d", name, x[i], y[i], q[i], r[i], x[i]/y[i], x[i]%y[i])
			}
		}
		y[777] = 0
		err = p.Run([3]int{16, 1, 1}, bufs, nil, interp.NewPool(2))
		if e, ok := err.(*interp.RunError); !ok || e.Fault != interp.DivisionByZero {
			t.Errorf("%s: the error of a division by zero is %v", name, err)
		}
	}
}
