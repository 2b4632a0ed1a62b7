package jit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// TestColumns holds reductions of columns, several vectors of which go together, against package interp: the same bits, whatever the number of
// workers. Columns that do not fill the vectors go one vector at a time.
func TestColumns(t *testing.T) {
	needCode(t)
	target := lib.Target{API: "cpu", Caps: ir.InterpCaps()}
	together := 0
	for _, op := range []lib.ReduceOp{lib.ReduceSum, lib.ReduceMax, lib.ReduceArgMin, lib.ReduceAny} {
		for _, kind := range []ir.Kind{ir.F32, ir.F16, ir.I32, ir.F64} {
			for _, shape := range [][3]int{{1, 1, 1024}, {1, 40, 1024}, {2, 17, 1000}, {3, 16, 128}, {5, 33, 131}, {1, 300, 2053}, {7, 5, 96}} {
				out := lib.Operand{Kind: kind}
				switch op {
				case lib.ReduceArgMin:
					out.Kind = ir.I64
				case lib.ReduceAny:
					out = lib.Operand{Kind: ir.I32}
				}
				r := &lib.Reduce{Name: "reduce", BodyKey: "reduce", Op: op, Outer: shape[0], N: shape[1], Inner: shape[2], In: []lib.Operand{{Kind: kind}}, Out: out}
				name := fmt.Sprintf("%s of %s %v", op, kind, shape)
				k, err := r.Build(target)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				groups, params, err := r.Launch(target)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				p, err := Compile(k)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if p.jam > 1 {
					together++
				}
				slow, err := interp.Compile(k)
				if err != nil {
					t.Fatal(err)
				}
				in := make([]byte, shape[0]*shape[1]*shape[2]*kind.Size()+(-shape[0]*shape[1]*shape[2]*kind.Size())&3)
				fillNumbers(in, kind)
				n := shape[0] * shape[2] * out.Kind.Size()
				n += -n & 3
				want := aligned([][]byte{in, make([]byte, n)})
				if err := slow.Run(groups, want, params, nil); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, workers := range []int{1, 2, 3} {
					got := aligned([][]byte{in, make([]byte, n)})
					if err := p.Run(groups, got, params, interp.NewPool(workers)); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					for i := range got[1] {
						if got[1][i] != want[1][i] {
							t.Errorf("%s, %d workers: byte %d of %d is %d, the block executor's %d", name, workers, i, n, got[1][i], want[1][i])
							break
						}
					}
				}
			}
		}
	}
	if together < 30 {
		t.Errorf("vectors go together in %d kernels only", together)
	}
}

// fillNumbers writes numbers of different sizes, zeros and, of floats, a NaN and infinities.
func fillNumbers(b []byte, kind ir.Kind) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := len(b) / kind.Size()
	for i := range n {
		v := rng.NormFloat64() * math.Exp2(float64(rng.IntN(8)))
		switch rng.IntN(500) {
		case 0:
			v = math.NaN()
		case 1:
			v = math.Inf(1)
		case 2:
			v = 0
		}
		at := unsafe.Pointer(&b[i*kind.Size()])
		switch kind {
		case ir.F32:
			*(*float32)(at) = float32(v)
		case ir.F64:
			*(*float64)(at) = v
		case ir.I32:
			*(*int32)(at) = int32(rng.IntN(100) - 50)
		default:
			*(*uint16)(at) = uint16(ir.ConstBits(ir.F16, v))
		}
	}
}

// TestColumnsFault wants the error of a load beyond its buffer, from several vectors that go together.
func TestColumnsFault(t *testing.T) {
	needCode(t)
	k := build(t, "columns", 1024, func(b *ir.Builder) {
		in, out := b.Buffer("in", ir.F32, ir.Read), b.Buffer("out", ir.F32, ir.Write)
		i, total := b.GlobalID(0), b.Var(b.F32(0))
		b.For(b.U32(0), b.U32(8), b.U32(1), func(j ir.Value) {
			b.Set(total, b.Add(b.Get(total), b.Load(in, b.Add(i, b.Mul(j, b.U32(1024))), 1)))
		})
		b.Store(out, i, b.Get(total))
	})
	p, err := Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	if p.jam == 1 {
		t.Fatal("vectors do not go together")
	}
	err = p.Run([3]int{1, 1, 1}, aligned([][]byte{make([]byte, 4*(7*1024+500)), make([]byte, 4*1024)}), nil, interp.NewPool(1))
	e, ok := err.(*interp.RunError)
	if !ok || e.Fault != interp.OutOfBounds || e.Mem != "in" {
		t.Fatalf("the error is %v", err)
	}
}
