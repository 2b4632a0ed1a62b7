package kerneltest

import (
	"bytes"
	"math"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

func TestSeedsAreReproducible(t *testing.T) {
	cfg := Config{Control: true, Shared: true, Math: true}
	distinct := map[string]bool{}
	for seed := range uint64(20) {
		a, err := New(seed, cfg)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(seed, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if a.Kernel.Hash() != b.Kernel.Hash() {
			t.Errorf("seed %d gives two kernels", seed)
		}
		for i, d := range a.Data() {
			if !bytes.Equal(d, b.Data()[i]) || len(d)%4 != 0 {
				t.Errorf("seed %d: data of binding %d differ, or their size %d is no multiple of 4", seed, i, len(d))
			}
		}
		distinct[a.Kernel.Hash()] = true
	}
	if len(distinct) < 20 {
		t.Errorf("20 seeds give %d kernels", len(distinct))
	}
}

// TestCoverage: a few hundred kernels together have every operation and kind.
func TestCoverage(t *testing.T) {
	seen := map[ir.Op]bool{}
	for seed := range uint64(300) {
		c, err := New(seed, Config{Control: true, Shared: true, Math: true, Subgroup: 8})
		if err != nil {
			t.Fatal(err)
		}
		c.Kernel.Walk(func(in *ir.Instr) { seen[in.Op] = true })
	}
	for op := ir.OpConst; int(op) < ir.NumOps; op++ {
		if !seen[op] && op != ir.OpNumGroups && op != ir.OpAtomicXchg {
			t.Errorf("no kernel has %s", op)
		}
	}
}

func TestCompare(t *testing.T) {
	c, err := New(1, Config{Kinds: []ir.Kind{ir.F32}})
	if err != nil {
		t.Fatal(err)
	}
	out := c.Written[0]
	for _, tc := range []struct {
		x, y float32
		same bool
	}{{1, 1, true}, {0, float32(math.Copysign(0, -1)), true}, {1, 1.0000001, false}, {float32(math.NaN()), float32(math.NaN()), true}, {float32(math.NaN()), 0, false}} {
		a, b := c.Data(), c.Data()
		putBits(a[out], 0, 4, uint64(math.Float32bits(tc.x)))
		putBits(b[out], 0, 4, uint64(math.Float32bits(tc.y)))
		if err := c.Compare(a, b); (err == nil) != tc.same {
			t.Errorf("%v and %v: %v", tc.x, tc.y, err)
		}
	}
}
