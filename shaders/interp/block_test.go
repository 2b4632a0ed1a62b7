package interp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/interp/kerneltest"
	"github.com/anygpu/anygpu/shaders/ir"
)

// kernel builds a kernel over a U32 buffer x.
func kernel(t *testing.T, local [3]int, body func(b *ir.Builder, x *ir.Mem)) *ir.Kernel {
	t.Helper()
	b := ir.NewBuilder("k", local[0], local[1], local[2])
	body(b, b.Buffer("x", ir.U32, ir.ReadWrite))
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func compile(t *testing.T, k *ir.Kernel) *interp.Program {
	t.Helper()
	p, err := interp.Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// same runs a kernel with both executors on n words and compares them.
func same(t *testing.T, k *ir.Kernel, groups [3]int, n int, params ...uint32) {
	t.Helper()
	want := make([]byte, 4*n)
	for i := range n {
		binary.NativeEndian.PutUint32(want[4*i:], uint32(i*7919))
	}
	got := bytes.Clone(want)
	if err := interp.Check(k, groups, [][]byte{want}, params, interp.CheckOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := compile(t, k).Run(groups, [][]byte{got}, params, nil); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if w, g := binary.NativeEndian.Uint32(want[4*i:]), binary.NativeEndian.Uint32(got[4*i:]); w != g {
			t.Fatalf("element %d is %d, want %d\n%s", i, g, w, k)
		}
	}
}

// flat returns the invocation's number in a grid of up to three dimensions.
func flat(b *ir.Builder) ir.Value {
	l := b.Local()
	wide, high := b.Mul(b.NumGroups(0), b.U32(uint32(l[0]))), b.Mul(b.NumGroups(1), b.U32(uint32(l[1])))
	return b.Add(b.GlobalID(0), b.Mul(wide, b.Add(b.GlobalID(1), b.Mul(high, b.GlobalID(2)))))
}

func TestGrids(t *testing.T) {
	for _, local := range [][3]int{{1, 1, 1}, {8, 1, 1}, {4, 3, 1}, {1, 5, 2}, {2, 2, 2}, {1, 1, 7}, {2000, 1, 1}} {
		for _, groups := range [][3]int{{1, 1, 1}, {5, 1, 1}, {3, 4, 1}, {2, 2, 3}, {300, 1, 2}} {
			k := kernel(t, local, func(b *ir.Builder, x *ir.Mem) {
				id := b.Add(b.Mul(b.LocalID(0), b.U32(100)), b.Add(b.Mul(b.LocalID(1), b.U32(10)), b.LocalID(2)))
				b.Store(x, flat(b), b.Add(b.Mul(id, b.U32(1000)), b.Add(b.GroupID(0), b.Mul(b.GroupID(2), b.GroupID(1)))))
			})
			same(t, k, groups, local[0]*local[1]*local[2]*groups[0]*groups[1]*groups[2])
		}
	}
}

// TestControlFlow runs the forms that the block executor treats specially.
func TestControlFlow(t *testing.T) {
	i32 := func(b *ir.Builder, v ir.Value) ir.Value { return b.Convert(v, ir.I32) }
	count := func(b *ir.Builder, lo, hi, step ir.Value, f func(i, sum ir.Value) ir.Value) ir.Value {
		sum := b.Var(b.U32(0))
		b.For(lo, hi, step, func(i ir.Value) { b.Set(sum, f(i, b.Get(sum))) })
		return b.Convert(b.Get(sum), ir.U32)
	}
	mix := func(b *ir.Builder) func(i, sum ir.Value) ir.Value {
		return func(i, sum ir.Value) ir.Value { return b.Add(b.Mul(sum, b.U32(3)), b.Convert(i, ir.U32)) }
	}
	cases := map[string]func(b *ir.Builder, x *ir.Mem, id ir.Value){
		"prefix": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.Lt(id, b.U32(37)), func() { b.Store(x, id, id) }, nil)
		},
		"prefix, swapped": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.Gt(b.U32(37), id), func() { b.Store(x, id, id) }, nil)
		},
		"le": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.Le(id, b.U32(37)), func() { b.Store(x, id, id) }, nil)
		},
		"suffix": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.Ge(id, b.U32(37)), func() { b.Store(x, id, id) }, nil)
		},
		"else": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.Lt(id, b.U32(37)), func() { b.Store(x, id, b.U32(1)) }, func() { b.Store(x, id, b.U32(2)) })
		},
		"both": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.And(b.Lt(id, b.U32(90)), b.Lt(b.LocalID(0), b.U32(5))), func() { b.Store(x, id, b.U32(1)) }, nil)
		},
		"signed": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.Lt(b.Sub(i32(b, id), b.I32(50)), b.I32(-3)), func() { b.Store(x, id, b.U32(1)) }, nil)
		},
		"wrapping": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.If(b.Lt(b.Sub(id, b.U32(50)), b.U32(20)), func() { b.Store(x, id, b.U32(1)) }, nil)
		},
		"strided index": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Barrier()
			b.If(b.Lt(id, b.U32(40)), func() { b.Store(x, b.Add(b.Mul(id, b.U32(3)), b.U32(1)), id) }, nil)
		},
		"uniform loop": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, b.U32(2), b.U32(9), b.U32(3), mix(b)))
		},
		"loop to a value": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, b.U32(0), b.Rem(b.Load(x, id, 1), b.U32(7)), b.U32(1), mix(b)))
		},
		"loop from a value": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, b.Rem(b.Load(x, id, 1), b.U32(7)), b.U32(7), b.U32(1), mix(b)))
		},
		"strided loop": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, b.LocalID(0), b.U32(21), b.U32(8), mix(b)))
		},
		"loop from the id": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, id, b.U32(90), b.U32(11), mix(b)))
		},
		"loop to the id": func(b *ir.Builder, x *ir.Mem, id ir.Value) { b.Store(x, id, count(b, b.U32(1), id, b.U32(5), mix(b))) },
		"signed loop": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, b.Sub(i32(b, id), b.I32(20)), b.I32(5), b.I32(4), mix(b)))
		},
		"step of a value": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, b.U32(0), b.U32(30), b.Add(b.Rem(b.Load(x, id, 1), b.U32(5)), b.U32(1)), mix(b)))
		},
		"loop from before zero": func(b *ir.Builder, x *ir.Mem, id ir.Value) { // unsigned: the first invocations do not run it
			b.Store(x, id, count(b, b.Sub(id, b.U32(3)), b.U32(60), b.U32(7), mix(b)))
		},
		"nested": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			b.Store(x, id, count(b, b.U32(0), b.Rem(id, b.U32(5)), b.U32(1), func(i, sum ir.Value) ir.Value {
				v := b.Var(sum)
				b.If(b.Eq(b.Rem(id, b.U32(2)), b.U32(0)), func() {
					b.For(i, b.U32(4), b.U32(1), func(j ir.Value) { b.Set(v, b.Add(b.Get(v), b.Mul(j, id))) })
				}, func() { b.Set(v, b.U32(7)) })
				return b.Get(v)
			}))
		},
		"variable set after it was read": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			v := b.Var(id)
			old := b.Get(v)
			b.Set(v, b.Add(old, b.U32(5)))
			b.Store(x, id, b.Sub(b.Mul(b.Get(v), b.U32(2)), old))
		},
		"uniform variable": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			v := b.Var(b.U32(1))
			b.Range(b.U32(4), func(i ir.Value) { b.Set(v, b.Add(b.Get(v), i)) })
			b.Store(x, id, b.Get(v))
		},
		"uniform variable set by some": func(b *ir.Builder, x *ir.Mem, id ir.Value) {
			v := b.Var(b.U32(1))
			b.If(b.Eq(b.Rem(id, b.U32(3)), b.U32(0)), func() { b.Set(v, b.U32(9)) }, nil)
			b.Store(x, id, b.Get(v))
		},
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			for _, local := range []int{1, 8, 16, 120} {
				k := kernel(t, [3]int{local, 1, 1}, func(b *ir.Builder, x *ir.Mem) { body(b, x, b.LinearID()) })
				same(t, k, [3]int{120 / local, 1, 1}, 125)
				if !strings.Contains(name, "strided index") {
					same(t, k, [3]int{1920 / local, 1, 1}, 1920)
				}
			}
		})
	}
}

func TestFaultsAreErrors(t *testing.T) {
	cases := []struct {
		name string
		want interp.FaultKind
		mem  string
		body func(b *ir.Builder, x *ir.Mem)
	}{
		{"load", interp.OutOfBounds, "x", func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.U32(0), b.Load(x, b.Add(b.GlobalID(0), b.U32(30)), 1)) }},
		{"gather", interp.OutOfBounds, "x", func(b *ir.Builder, x *ir.Mem) {
			b.Store(x, b.U32(0), b.Load(x, b.Mul(b.GlobalID(0), b.GlobalID(0)), 1))
		}},
		{"uniform load", interp.OutOfBounds, "x", func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.U32(0), b.Load(x, b.U32(1<<31), 1)) }},
		{"vector load", interp.OutOfBounds, "x", func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.U32(0), b.Load(x, b.Mul(b.GlobalID(0), b.U32(4)), 4)) }},
		{"misaligned load", interp.Misaligned, "x", func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.U32(0), b.Load(x, b.GlobalID(0), 2)) }},
		{"store", interp.OutOfBounds, "x", func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.Sub(b.GlobalID(0), b.U32(1)), b.U32(3)) }},
		{"uniform store", interp.OutOfBounds, "x", func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.U32(0xfffffffe), b.Splat(b.U32(3), 2)) }},
		{"shared", interp.OutOfBounds, "s", func(b *ir.Builder, x *ir.Mem) {
			b.Store(b.SharedArray("s", ir.F64, 3), b.LocalID(0), b.Const(ir.Scalar(ir.F64), 1))
		}},
		{"shared load", interp.OutOfBounds, "s", func(b *ir.Builder, x *ir.Mem) {
			b.Store(x, b.GlobalID(0), b.Load(b.SharedArray("s", ir.U32, 3), b.LocalID(0), 1))
		}},
		{"private", interp.OutOfBounds, "p", func(b *ir.Builder, x *ir.Mem) {
			p := b.PrivateArray("p", ir.U32, 3)
			b.Store(p, b.GlobalID(0), b.U32(1))
		}},
		{"private, unrolled", interp.OutOfBounds, "p", func(b *ir.Builder, x *ir.Mem) {
			b.Store(x, b.GlobalID(0), b.Load(b.PrivateArray("p", ir.U32, 3), b.U32(3), 1))
		}},
		{"atomic", interp.OutOfBounds, "x", func(b *ir.Builder, x *ir.Mem) { b.Atomic(ir.OpAtomicAdd, x, b.Mul(b.GlobalID(0), b.U32(9)), b.U32(1)) }},
		{"division", interp.DivisionByZero, "", func(b *ir.Builder, x *ir.Mem) { b.Store(x, b.GlobalID(0), b.Div(b.U32(1), b.GlobalID(0))) }},
		{"division by a parameter", interp.DivisionByZero, "", func(b *ir.Builder, x *ir.Mem) {
			b.Store(x, b.GlobalID(0), b.Rem(b.GlobalID(0), b.Sub(b.NumGroups(0), b.U32(1))))
		}},
		{"endless loop", interp.EndlessLoop, "", func(b *ir.Builder, x *ir.Mem) {
			b.For(b.U32(0), b.U32(3), b.Sub(b.NumGroups(0), b.U32(1)), func(i ir.Value) { b.Atomic(ir.OpAtomicAdd, x, i, i) })
		}},
		{"endless loop of some", interp.EndlessLoop, "", func(b *ir.Builder, x *ir.Mem) {
			b.For(b.U32(0), b.U32(3), b.LocalID(0), func(i ir.Value) { b.Atomic(ir.OpAtomicAdd, x, i, i) })
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			k := kernel(t, [3]int{8, 1, 1}, tc.body)
			var re *interp.RunError
			err := compile(t, k).Run([3]int{1, 1, 1}, [][]byte{make([]byte, 4*30)}, nil, nil)
			if !errors.As(err, &re) || re.Fault != tc.want || re.Mem != tc.mem || re.Kernel != "k" || !strings.Contains(err.Error(), "kernel k") {
				t.Fatalf("got %v, want %s of %q", err, tc.want, tc.mem)
			}
			var ce *interp.CheckError
			if err := interp.Check(k, [3]int{1, 1, 1}, [][]byte{make([]byte, 4*30)}, nil, interp.CheckOptions{}); !errors.As(err, &ce) || !ce.Has(tc.want) {
				t.Errorf("the checking executor says %v", err)
			}
		})
	}
}

// TestGuardedFaults: what invocations that are not active would do is no fault.
func TestGuardedFaults(t *testing.T) {
	k := kernel(t, [3]int{8, 1, 1}, func(b *ir.Builder, x *ir.Mem) {
		id := b.GlobalID(0)
		p, s := b.PrivateArray("p", ir.U32, 2), b.SharedArray("s", ir.U32, 2)
		odd := b.Eq(b.Rem(id, b.U32(2)), b.U32(1))
		b.If(odd, func() {
			q := b.Div(b.U32(100), b.Rem(id, b.U32(2)))
			far := b.Mul(b.Sub(b.Rem(id, b.U32(2)), b.U32(1)), b.U32(1000))
			b.Store(p, far, q)
			b.If(b.Lt(id, b.U32(2)), func() { b.Store(s, far, b.Load(p, far, 1)) }, nil)
			b.Store(x, id, b.Load(x, b.Add(far, id), 1))
		}, nil)
	})
	same(t, k, [3]int{2, 1, 1}, 16)
}

func TestGlobalAtomics(t *testing.T) {
	k := kernel(t, [3]int{64, 1, 1}, func(b *ir.Builder, x *ir.Mem) {
		b.Atomic(ir.OpAtomicAdd, x, b.U32(0), b.U32(1))
		b.Atomic(ir.OpAtomicMax, x, b.U32(1), b.GlobalID(0))
		b.Atomic(ir.OpAtomicOr, x, b.U32(2), b.Shl(b.U32(1), b.Rem(b.GlobalID(0), b.U32(32))))
	})
	buf := make([]byte, 12)
	const groups = 500
	if err := compile(t, k).Run([3]int{groups, 1, 1}, [][]byte{buf}, nil, interp.NewPool(4)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{groups * 64, groups*64 - 1, 0xffffffff} {
		if got := binary.NativeEndian.Uint32(buf[4*i:]); got != want {
			t.Errorf("word %d is %#x, want %#x", i, got, want)
		}
	}
}

// TestConcurrentRuns uses one program from several goroutines, on buffers that are not aligned too.
func TestConcurrentRuns(t *testing.T) {
	k := kernel(t, [3]int{32, 1, 1}, func(b *ir.Builder, x *ir.Mem) {
		n := b.Param("n", ir.U32)
		i := b.LinearID()
		b.If(b.Lt(i, n), func() { b.Store(x, i, b.Add(b.Load(x, i, 1), b.Param("p", ir.U32))) }, nil)
	})
	p, pool := compile(t, k), interp.NewPool(3)
	var wg sync.WaitGroup
	for user := range 8 {
		wg.Go(func() {
			n := 1000 + 777*user
			buf := make([]byte, 4*n+8)[user%4:][:4*n]
			for range 10 {
				if err := p.Run([3]int{(n + 31) / 32, 1, 1}, [][]byte{buf}, []uint32{uint32(n), uint32(user)}, pool); err != nil {
					t.Error(err)
				}
			}
			for i := range n {
				if got := binary.NativeEndian.Uint32(buf[4*i:]); got != uint32(10*user) {
					t.Errorf("user %d: element %d is %d", user, i, got)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestPoolPanicReachesTheCaller(t *testing.T) {
	defer func() {
		if v := recover(); v != "stop" {
			t.Errorf("recovered %v", v)
		}
	}()
	interp.NewPool(2).Do(2, func() { panic("stop") })
}

// lowCaps are devices that need much lowering.
var lowCaps = map[string]func(c *ir.Caps){
	"f16 as f32":     func(c *ir.Caps) { c.F16Arith = false },
	"packed words":   func(c *ir.Caps) { c.F16Arith, c.F16Storage, c.U8Storage = false, false, false },
	"no i64":         func(c *ir.Caps) { c.I64 = false },
	"narrow":         func(c *ir.Caps) { c.MaxLanes = 4 },
	"least of all":   func(c *ir.Caps) { *c = ir.Caps{MaxLanes: 4, MaxInvocations: 128, SharedBytes: 16384, MaxBuffers: 32} },
	"no math at all": func(c *ir.Caps) { c.NativeMath = 0 },
}

// TestLoweredKernels: a kernel and its lowered form give the same, on both executors.
func TestLoweredKernels(t *testing.T) {
	for name, edit := range lowCaps {
		t.Run(name, func(t *testing.T) {
			caps := ir.InterpCaps()
			edit(&caps)
			for seed := range uint64(25) {
				c, err := kerneltest.New(seed, kerneltest.Config{Exact: true, Control: true, Shared: true, Subgroup: 2 * min(caps.MaxSubgroups, 1), Lanes: []int{2, 4, 8},
					Kinds: []ir.Kind{ir.Bool, ir.U8, ir.I32, ir.U32, ir.I64, ir.F16, ir.BF16, ir.F32}})
				if err != nil {
					t.Fatal(err)
				}
				low, err := ir.Lower(c.Kernel, caps)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				want, got, fast := c.Data(), c.Data(), c.Data()
				if err := interp.Check(c.Kernel, c.Groups, want, c.Params, interp.CheckOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := interp.Check(low, c.Groups, got, c.Params, interp.CheckOptions{Uninit: c.Written}); err != nil {
					t.Fatalf("seed %d: faults of the lowered kernel: %v", seed, err)
				}
				if err := c.Compare(want, got); err != nil {
					t.Fatalf("seed %d: %v\n%s\n%s", seed, err, c.Kernel, low)
				}
				if err := compile(t, low).Run(c.Groups, fast, c.Params, nil); err != nil {
					t.Fatal(err)
				}
				if err := c.Compare(want, fast); err != nil {
					t.Fatalf("seed %d, block executor: %v", seed, err)
				}
			}
		})
	}
}

func ExampleProgram_Run() {
	b := ir.NewBuilder("double", 64, 1, 1)
	x := b.Buffer("x", ir.U32, ir.ReadWrite)
	n, i := b.Param("n", ir.U32), b.LinearID()
	b.If(b.Lt(i, n), func() { b.Store(x, i, b.Mul(b.Load(x, i, 1), b.U32(2))) }, nil)
	k, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := interp.Compile(k)
	if err != nil {
		fmt.Println(err)
		return
	}
	buf := binary.NativeEndian.AppendUint32(nil, 21)
	fmt.Println(p.Run([3]int{1, 1, 1}, [][]byte{buf}, []uint32{1}, nil), binary.NativeEndian.Uint32(buf))
	// Output: <nil> 42
}
