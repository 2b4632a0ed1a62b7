package interp

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

func build(t *testing.T, b *ir.Builder) *ir.Kernel {
	t.Helper()
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func u32s(vals ...uint32) []byte {
	out := make([]byte, 4*len(vals))
	for i, v := range vals {
		binary.NativeEndian.PutUint32(out[4*i:], v)
	}
	return out
}

func f32s(vals ...float32) []byte {
	out := make([]byte, 4*len(vals))
	for i, v := range vals {
		binary.NativeEndian.PutUint32(out[4*i:], math.Float32bits(v))
	}
	return out
}

func getU32(b []byte, i int) uint32 { return binary.NativeEndian.Uint32(b[4*i:]) }

// sumKernel adds the elements of each workgroup of 8 in shared memory, with or without the barrier in the loop.
func sumKernel(t *testing.T, barrier bool) *ir.Kernel {
	b := ir.NewBuilder("sum", 8, 1, 1)
	x, out := b.Buffer("x", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	sh := b.SharedArray("sh", ir.F32, 8)
	lid := b.LocalID(0)
	b.Store(sh, lid, b.Load(x, b.GlobalID(0), 1))
	for s := uint32(4); s > 0; s /= 2 {
		if barrier {
			b.Barrier()
		}
		b.If(b.Lt(lid, b.U32(s)), func() {
			b.Store(sh, lid, b.Add(b.Load(sh, lid, 1), b.Load(sh, b.Named(b.Add(lid, b.U32(s)), "partner"), 1)))
		}, nil)
	}
	b.If(b.Eq(lid, b.U32(0)), func() { b.Store(out, b.GroupID(0), b.Load(sh, lid, 1)) }, nil)
	return build(t, b)
}

func TestCheckCleanSum(t *testing.T) {
	out := make([]byte, 8)
	x := f32s(1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80)
	if err := Check(sumKernel(t, true), [3]int{2, 1, 1}, [][]byte{x, out}, nil, CheckOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{36, 360} {
		if got := math.Float32frombits(getU32(out, i)); got != want {
			t.Errorf("sum %d is %v, want %v", i, got, want)
		}
	}
}

// simple builds a kernel of 4 invocations over a buffer x (read and write) with the given body.
func simple(t *testing.T, body func(b *ir.Builder, x *ir.Mem)) *ir.Kernel {
	b := ir.NewBuilder("simple", 4, 1, 1)
	body(b, b.Buffer("x", ir.U32, ir.ReadWrite))
	return build(t, b)
}

// addBarrier puts a barrier into the first if of the kernel, which the verifier would not allow.
func addBarrier(k *ir.Kernel) *ir.Kernel {
	k.Walk(func(in *ir.Instr) {
		if in.Op == ir.OpIf {
			in.Blocks[0].Instrs = append(in.Blocks[0].Instrs, &ir.Instr{Op: ir.OpBarrier, ID: k.NumInstr})
		}
	})
	k.NumInstr++
	return k
}

func TestCheckFinds(t *testing.T) {
	cases := []struct {
		name   string
		want   FaultKind
		text   string // part of the finding
		kernel func(t *testing.T) *ir.Kernel
		groups int
		opt    CheckOptions
	}{
		{"missing barrier", Race, "sh[", func(t *testing.T) *ir.Kernel {
			b := ir.NewBuilder("shift", 4, 1, 1)
			x, sh := b.Buffer("x", ir.U32, ir.ReadWrite), b.SharedArray("sh", ir.U32, 4)
			b.Store(sh, b.LocalID(0), b.U32(1))
			b.Store(x, b.LocalID(0), b.Load(sh, b.Named(b.Sub(b.U32(3), b.LocalID(0)), "mirror"), 1))
			return build(t, b)
		}, 1, CheckOptions{}},
		{"race on shared memory", Race, "same group", func(t *testing.T) *ir.Kernel {
			b := ir.NewBuilder("k", 4, 1, 1)
			b.Buffer("x", ir.U32, ir.ReadWrite)
			b.Store(b.SharedArray("sh", ir.U32, 4), b.U32(2), b.LocalID(0))
			return build(t, b)
		}, 1, CheckOptions{}},
		{"race on global memory in a group", Race, "x[1]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.U32(1), b.LocalID(0)) })
		}, 1, CheckOptions{}},
		{"read before another's write", Race, "x[0]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				v := b.Load(x, b.U32(0), 1)
				b.If(b.Eq(b.LocalID(0), b.U32(3)), func() { b.Store(x, b.U32(0), v) }, nil)
			})
		}, 1, CheckOptions{}},
		{"race across groups, in spite of barriers", Race, "group 0", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Barrier()
				b.If(b.Eq(b.LocalID(0), b.U32(0)), func() { b.Store(x, b.U32(7), b.GroupID(0)) }, nil)
			})
		}, 2, CheckOptions{}},
		{"store and atomic", Race, "x[0]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Atomic(ir.OpAtomicAdd, x, b.U32(0), b.U32(1))
				b.If(b.Eq(b.LocalID(0), b.U32(0)), func() { b.Store(x, b.U32(0), b.U32(0)) }, nil)
			})
		}, 1, CheckOptions{}},
		{"load out of bounds", OutOfBounds, "x[8]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Store(x, b.GlobalID(0), b.Load(x, b.Named(b.Add(b.GlobalID(0), b.U32(8)), "far"), 1))
			})
		}, 1, CheckOptions{}},
		{"store out of bounds", OutOfBounds, "value far", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Store(x, b.Named(b.Add(b.GlobalID(0), b.U32(6)), "far"), b.U32(0))
			})
		}, 1, CheckOptions{}},
		{"store into the padding", OutOfBounds, "x[3]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.GlobalID(0), b.U32(0)) })
		}, 1, CheckOptions{Elems: []int{3}}},
		{"index below zero", OutOfBounds, "x[4294967295]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.Sub(b.GlobalID(0), b.U32(1)), b.U32(0)) })
		}, 1, CheckOptions{}},
		{"vector over the end", OutOfBounds, "4 lanes", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Store(x, b.Mul(b.GlobalID(0), b.U32(4)), b.Splat(b.U32(0), 4))
			})
		}, 1, CheckOptions{}},
		{"misaligned vector", Misaligned, "multiple of 2", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.If(b.Eq(b.LocalID(0), b.U32(0)), func() { b.Store(x, b.U32(3), b.Splat(b.U32(0), 2)) }, nil)
			})
		}, 1, CheckOptions{}},
		{"private array never written", Uninitialised, "tmp[2]", func(t *testing.T) *ir.Kernel {
			b := ir.NewBuilder("k", 2, 1, 1)
			x, p := b.Buffer("x", ir.F32, ir.Write), b.PrivateArray("tmp", ir.F32, 4)
			b.Store(p, b.U32(1), b.F32(1))
			b.Store(x, b.LocalID(0), b.Load(p, b.U32(2), 1))
			return build(t, b)
		}, 1, CheckOptions{}},
		{"shared array never written", Uninitialised, "sh[", func(t *testing.T) *ir.Kernel {
			b := ir.NewBuilder("k", 2, 1, 1)
			x, sh := b.Buffer("x", ir.F32, ir.Write), b.SharedArray("sh", ir.F32, 2)
			b.If(b.Eq(b.GroupID(0), b.U32(0)), func() { b.Store(sh, b.LocalID(0), b.F32(1)) }, nil)
			b.Store(x, b.GlobalID(0), b.Load(sh, b.LocalID(0), 1))
			return build(t, b)
		}, 2, CheckOptions{}},
		{"buffer never written", Uninitialised, "x[0]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.LocalID(0), b.Load(x, b.LocalID(0), 1)) })
		}, 1, CheckOptions{Uninit: []int{0}}},
		{"atomic add to a buffer never written", Uninitialised, "x[0]", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) { b.Atomic(ir.OpAtomicAdd, x, b.U32(0), b.U32(1)) })
		}, 1, CheckOptions{Uninit: []int{0}}},
		{"divergent barrier in an if", DivergentBarrier, "1 of 4", func(t *testing.T) *ir.Kernel {
			return addBarrier(simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.If(b.Eq(b.LocalID(0), b.U32(2)), func() { b.Store(x, b.U32(0), b.U32(1)) }, nil)
			}))
		}, 1, CheckOptions{}},
		{"divergent barrier in a loop", DivergentBarrier, "3 of 4", func(t *testing.T) *ir.Kernel {
			return addBarrier(simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Range(b.LocalID(0), func(i ir.Value) { b.If(b.Bool(true), func() { b.Add(i, i) }, nil) })
			}))
		}, 1, CheckOptions{}},
		{"division by zero", DivisionByZero, "value divisor", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Store(x, b.LocalID(0), b.Div(b.U32(1), b.Named(b.Sub(b.LocalID(0), b.U32(1)), "divisor")))
			})
		}, 1, CheckOptions{}},
		{"shift too large", ShiftTooLarge, "amount 32", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.Store(x, b.LocalID(0), b.Shl(b.U32(1), b.Add(b.LocalID(0), b.U32(29))))
			})
		}, 1, CheckOptions{}},
		{"step of zero", EndlessLoop, "does not grow", func(t *testing.T) *ir.Kernel {
			return simple(t, func(b *ir.Builder, x *ir.Mem) {
				b.For(b.U32(0), b.U32(4), b.Load(x, b.U32(0), 1), func(i ir.Value) {})
			})
		}, 1, CheckOptions{}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			k := tc.kernel(t)
			bufs := make([][]byte, len(k.Globals()))
			for i := range bufs {
				bufs[i] = make([]byte, 4*8)
			}
			err := Check(k, [3]int{tc.groups, 1, 1}, bufs, nil, tc.opt)
			var ce *CheckError
			if !errors.As(err, &ce) || !ce.Has(tc.want) {
				t.Fatalf("got %v, want a finding of %q", err, tc.want)
			}
			for _, f := range ce.Findings {
				if f.Fault != tc.want {
					t.Errorf("also found: %s", f)
				}
			}
			if s := err.Error(); !strings.Contains(s, tc.text) || !strings.Contains(s, "kernel "+k.Name) {
				t.Errorf("finding %q does not mention %q", s, tc.text)
			}
		})
	}
}

func TestCheckMissingBarrierInReduction(t *testing.T) {
	var ce *CheckError
	err := Check(sumKernel(t, false), [3]int{1, 1, 1}, [][]byte{make([]byte, 32), make([]byte, 4)}, nil, CheckOptions{})
	if !errors.As(err, &ce) || !ce.Has(Race) {
		t.Fatalf("got %v, want a race", err)
	}
}

func TestCheckAllowsAtomics(t *testing.T) {
	k := simple(t, func(b *ir.Builder, x *ir.Mem) { b.Atomic(ir.OpAtomicAdd, x, b.U32(0), b.LocalID(0)) })
	buf := u32s(5, 0)
	if err := Check(k, [3]int{3, 1, 1}, [][]byte{buf}, nil, CheckOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := getU32(buf, 0); got != 5+3*(0+1+2+3) {
		t.Errorf("sum %d, want 23", got)
	}
}

func TestCheckArguments(t *testing.T) {
	k := simple(t, func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.LocalID(0), b.Param("p", ir.U32)) })
	for _, tc := range []struct {
		bufs   [][]byte
		params []uint32
		groups [3]int
	}{{nil, []uint32{1}, [3]int{1, 1, 1}}, {[][]byte{u32s(1)}, nil, [3]int{1, 1, 1}}, {[][]byte{u32s(1)}, []uint32{1}, [3]int{-1, 1, 1}}} {
		if err := Check(k, tc.groups, tc.bufs, tc.params, CheckOptions{}); err == nil || !strings.Contains(err.Error(), "kernel simple") {
			t.Errorf("%v: got %v, want an error that names the kernel", tc, err)
		}
	}
	if err := Check(nil, [3]int{}, nil, nil, CheckOptions{}); err == nil {
		t.Error("nil kernel: no error")
	}
}

func TestCheckFindingsAreBounded(t *testing.T) {
	k := simple(t, func(b *ir.Builder, x *ir.Mem) {
		for range 10 {
			b.Store(x, b.U32(100), b.U32(0))
		}
	})
	err := Check(k, [3]int{1, 1, 1}, [][]byte{u32s(0)}, nil, CheckOptions{MaxFindings: 3})
	var ce *CheckError
	if !errors.As(err, &ce) || len(ce.Findings) != 3 || ce.Dropped != 7 || ce.Findings[0].Count != 4 {
		t.Fatalf("got %v, want 3 findings of 4 invocations each and 7 dropped", err)
	}
}
