package interp_test

import (
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

// TestValuesInBuffers has kernels in which a value that lies in a buffer, loaded or made there, must outlive a change of
// the buffer, and kernels in which it may stay there.
func TestValuesInBuffers(t *testing.T) {
	const n = 5000
	for name, body := range map[string]func(b *ir.Builder, x *ir.Mem, i ir.Value){
		"exchange": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			j := b.Add(i, b.U32(n))
			v, w := b.Load(x, i, 1), b.Load(x, j, 1)
			b.Store(x, i, w)
			b.Store(x, j, v)
		},
		"used after its store": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			v := b.Add(b.Load(x, i, 1), b.U32(3))
			b.Store(x, i, v)
			b.Store(x, b.Add(i, b.U32(n)), b.Mul(v, v))
		},
		"made in place, then overwritten": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			v := b.Mul(b.Load(x, i, 1), b.U32(5))
			b.Store(x, i, v)
			b.Store(x, i, b.Add(v, b.U32(1)))
			b.Store(x, b.Add(i, b.U32(n)), b.Xor(v, b.U32(99)))
		},
		"overwritten in a loop": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			v := b.Load(x, i, 1)
			b.For(b.U32(0), b.U32(3), b.U32(1), func(c ir.Value) {
				b.Store(x, i, b.Add(b.Mul(v, c), b.Load(x, b.Add(i, b.U32(n)), 1)))
			})
		},
		"a cast of it is used after its store": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			v := b.Load(x, i, 1)
			f := b.BitCast(v, ir.F32)
			b.Store(x, i, b.Add(v, b.U32(1)))
			b.Store(x, b.Add(i, b.U32(n)), b.BitCast(b.Neg(b.BitCast(b.BitCast(f, ir.U32), ir.F32)), ir.U32))
		},
		"under a mask": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			b.If(b.Eq(b.And(b.Load(x, i, 1), b.U32(1)), b.U32(0)), func() {
				b.Store(x, i, b.Add(b.Load(x, i, 1), b.U32(1000)))
			}, func() {
				b.Store(x, b.Add(i, b.U32(n)), b.Mul(b.Load(x, i, 1), b.U32(3)))
			})
		},
		"variable": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			v, w := b.Var(b.Load(x, i, 1)), b.Var(b.U32(7))
			b.For(b.U32(0), b.U32(5), b.U32(1), func(c ir.Value) {
				old := b.Get(v)
				next := b.Add(b.Mul(old, b.U32(3)), c)
				b.Set(v, next)
				b.If(b.Lt(b.And(next, b.U32(7)), b.U32(3)), func() {
					b.Set(w, b.Add(b.Get(w), next))
				}, nil)
				b.Set(w, b.Xor(b.Get(w), old))
			})
			b.Store(x, i, b.Get(v))
			b.Store(x, b.Add(i, b.U32(n)), b.Get(w))
		},
		"variables exchanged": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			v, w := b.Var(b.Load(x, i, 1)), b.Var(b.Load(x, b.Add(i, b.U32(n)), 1))
			b.For(b.U32(0), b.U32(4), b.U32(1), func(ir.Value) {
				p, q := b.Get(v), b.Get(w)
				sum := b.Add(p, q)
				b.Set(v, sum)
				b.Set(w, b.Sub(p, q))
				b.Set(v, b.Xor(b.Get(v), b.Mul(sum, q)))
			})
			b.Store(x, i, b.Get(v))
			b.Store(x, b.Add(i, b.U32(n)), b.Get(w))
		},
		"read between making and store": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			j := b.Add(i, b.U32(n))
			v := b.Add(b.Load(x, j, 1), b.U32(3))
			old := b.Load(x, i, 1)
			b.Store(x, i, v)
			b.Store(x, j, old)
		},
		"read between making and assignment": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			v := b.Var(b.Load(x, i, 1))
			next := b.Mul(b.Load(x, b.Add(i, b.U32(n)), 1), b.U32(3))
			old := b.Add(b.Get(v), b.U32(1))
			b.Set(v, next)
			b.Store(x, i, b.Xor(old, b.Get(v)))
		},
		"outlives its variable": func(b *ir.Builder, x *ir.Mem, i ir.Value) {
			j := b.Add(i, b.U32(n))
			v := b.Var(b.Load(x, i, 1))
			next := b.Mul(b.Load(x, j, 1), b.U32(3))
			b.Set(v, next)
			sum := b.Add(b.Load(x, i, 1), b.Load(x, j, 1))
			more := b.Xor(b.Mul(sum, sum), sum)
			b.Store(x, i, b.Sub(more, next))
		},
		"rows": func(b *ir.Builder, x *ir.Mem, i ir.Value) { // of 4, one after the other and apart
			at := b.Mul(i, b.U32(4))
			v := b.Load(x, at, 4)
			b.Store(x, at, b.Add(v, b.Splat(b.Extract(v, 1), 4)))
			b.Store(x, b.Add(b.Mul(i, b.U32(8)), b.U32(4*n)), v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, local := range []int{1, 7, 64, 1000} {
				k := kernel(t, [3]int{local, 1, 1}, func(b *ir.Builder, x *ir.Mem) {
					i := b.GlobalID(0)
					b.If(b.Lt(i, b.U32(n)), func() { body(b, x, i) }, nil)
				})
				same(t, k, [3]int{(n + local - 1) / local, 1, 1}, 12*n)
			}
		})
	}
}
