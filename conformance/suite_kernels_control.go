package conformance

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// controlCases are kernels with control flow, workgroup memory, atomics and grids of three dimensions.
func controlCases() []testCase {
	kernels := []struct {
		name   string
		local  [3]int
		groups [3]int
		elems  int
		build  func(b *ir.Builder, out *ir.Mem)
	}{
		{"control/loop", [3]int{64, 1, 1}, [3]int{3, 1, 1}, 192, func(b *ir.Builder, out *ir.Mem) {
			i := b.GlobalID(0)
			sum := b.Var(b.U32(0))
			b.For(b.U32(0), b.Rem(i, b.U32(17)), b.U32(2), func(j ir.Value) {
				b.If(b.Eq(b.Rem(j, b.U32(4)), b.U32(0)), func() { b.Set(sum, b.Add(b.Get(sum), j)) }, func() { b.Set(sum, b.Add(b.Get(sum), b.U32(100))) })
			})
			b.Store(out, i, b.Get(sum))
		}},
		{"control/nested_loops", [3]int{32, 1, 1}, [3]int{2, 1, 1}, 64, func(b *ir.Builder, out *ir.Mem) {
			i := b.GlobalID(0)
			sum := b.Var(b.U32(1))
			b.Range(b.U32(5), func(j ir.Value) {
				b.Range(b.Add(j, b.U32(1)), func(k ir.Value) {
					b.Set(sum, b.Add(b.Mul(b.Get(sum), b.U32(3)), b.Xor(k, i)))
				})
			})
			b.Store(out, i, b.Get(sum))
		}},
		{"control/grid3", [3]int{4, 2, 2}, [3]int{3, 2, 5}, 12 * 4 * 10, func(b *ir.Builder, out *ir.Mem) {
			w, h := b.Mul(b.NumGroups(0), b.U32(4)), b.Mul(b.NumGroups(1), b.U32(2))
			at := b.Add(b.Mul(b.Add(b.Mul(b.GlobalID(2), h), b.GlobalID(1)), w), b.GlobalID(0))
			v := b.Add(b.Mul(b.GroupID(2), b.U32(10000)), b.Add(b.Mul(b.LocalID(1), b.U32(100)), b.LocalID(0)))
			b.Store(out, at, b.Add(v, b.Mul(b.GroupID(1), b.U32(1000))))
		}},
		{"control/private_array", [3]int{32, 1, 1}, [3]int{2, 1, 1}, 64, func(b *ir.Builder, out *ir.Mem) {
			i := b.GlobalID(0)
			a := b.PrivateArray("a", ir.U32, 8)
			b.Range(b.U32(8), func(j ir.Value) { b.Store(a, j, b.Mul(b.Add(i, j), b.U32(7))) })
			b.Store(out, i, b.Load(a, b.Rem(i, b.U32(8)), 1))
		}},
		{"shared/reversal", [3]int{64, 1, 1}, [3]int{3, 1, 1}, 192, func(b *ir.Builder, out *ir.Mem) {
			s := b.SharedArray("s", ir.U32, 64)
			b.Store(s, b.LocalID(0), b.Mul(b.GlobalID(0), b.U32(3)))
			b.Barrier()
			b.Store(out, b.GlobalID(0), b.Load(s, b.Sub(b.U32(63), b.LocalID(0)), 1))
		}},
		{"shared/tree", [3]int{64, 1, 1}, [3]int{4, 1, 1}, 4, func(b *ir.Builder, out *ir.Mem) {
			s, l := b.SharedArray("s", ir.U32, 64), b.LocalID(0)
			b.Store(s, l, b.Mul(b.GlobalID(0), b.GlobalID(0)))
			b.Barrier()
			for step := uint32(32); step > 0; step /= 2 {
				b.If(b.Lt(l, b.U32(step)), func() {
					b.Store(s, l, b.Add(b.Load(s, l, 1), b.Load(s, b.Add(l, b.U32(step)), 1)))
				}, nil)
				b.Barrier()
			}
			b.If(b.Eq(l, b.U32(0)), func() { b.Store(out, b.GroupID(0), b.Load(s, b.U32(0), 1)) }, nil)
		}},
	}
	var out []testCase
	for _, k := range kernels {
		out = append(out, testCase{name: k.name, run: func(x *run) error {
			if n := k.local[0] * k.local[1] * k.local[2]; x.info.Caps.MaxInvocations > 0 && n > x.info.Caps.MaxInvocations {
				return notSupported("%d invocations in a workgroup", n)
			}
			b := ir.NewBuilder("conformance_control", k.local[0], k.local[1], k.local[2])
			k.build(b, b.Buffer("out", ir.U32, ir.Write))
			kernel, err := b.Build()
			if err != nil {
				return err
			}
			return x.compareKernel(kernel, k.groups, [][]byte{make([]byte, 4*k.elems)}, nil, []int{0}, func(_, e int) (string, float64, []string) { return k.name, 0, nil })
		}})
	}
	for _, op := range []ir.Op{ir.OpAtomicAdd, ir.OpAtomicMin, ir.OpAtomicMax, ir.OpAtomicAnd, ir.OpAtomicOr} {
		out = append(out, testCase{name: "atomics/" + op.String(), run: func(x *run) error { return x.atomics(op) }})
	}
	return append(out, testCase{name: "shared/atomics", run: func(x *run) error { return x.sharedAtomics() }})
}

// atomics has 192 invocations change 7 words; the result does not depend on their order.
func (x *run) atomics(op ir.Op) error {
	b := ir.NewBuilder("conformance_"+op.String(), 64, 1, 1)
	out := b.Buffer("out", ir.U32, ir.ReadWrite)
	i := b.GlobalID(0)
	b.Atomic(op, out, b.Rem(i, b.U32(7)), b.Or(b.Mul(i, b.U32(2654435761)), b.U32(1)))
	k, err := b.Build()
	if err != nil {
		return err
	}
	return x.compareKernel(k, [3]int{3, 1, 1}, [][]byte{kindData(x.rng(), ir.U32, 7, false)}, nil, []int{0}, func(_, e int) (string, float64, []string) {
		return fmt.Sprintf("%s, word %d", op, e), 0, nil
	})
}

func (x *run) sharedAtomics() error {
	b := ir.NewBuilder("conformance_shared_atomics", 64, 1, 1)
	out := b.Buffer("out", ir.U32, ir.Write)
	s, l := b.SharedArray("s", ir.U32, 4), b.LocalID(0)
	b.If(b.Lt(l, b.U32(4)), func() { b.Store(s, l, b.U32(0)) }, nil)
	b.Barrier()
	b.Atomic(ir.OpAtomicAdd, s, b.Rem(l, b.U32(4)), b.GlobalID(0))
	b.Barrier()
	b.If(b.Lt(l, b.U32(4)), func() { b.Store(out, b.Add(b.Mul(b.GroupID(0), b.U32(4)), l), b.Load(s, l, 1)) }, nil)
	k, err := b.Build()
	if err != nil {
		return err
	}
	return x.compareKernel(k, [3]int{3, 1, 1}, [][]byte{make([]byte, 48)}, nil, []int{0}, func(_, e int) (string, float64, []string) { return "atomic sums in workgroup memory", 0, nil })
}
