package tensor

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/null"
)

// TestPlansRepeat runs random programs again and again: the third run and later ones go by plans, and read the same bytes as a run
// without fusion, which has no plans.
func TestPlansRepeat(t *testing.T) {
	defer func(n int) { keptElements = n }(keptElements)
	for _, c := range []struct {
		dev   backend.Device
		seeds uint64
	}{{CPU(), 12}, {newChecked("vulkan"), 1}} {
		planned, flushes := Launches(c.dev).Planned, Launches(c.dev).Flushes
		for seed := range c.seeds {
			keptElements = int(seed%2) * 1024
			for _, d := range []DType{Float32, Float16, Int32, Bool} {
				want, err := runProgram(c.dev, false, d, seed+100, 40)
				if err != nil {
					t.Fatal(err)
				}
				before := Launches(c.dev)
				var scheduled LaunchStats
				for round := range 4 {
					got, err := runProgram(c.dev, true, d, seed+100, 40)
					if err != nil {
						t.Fatal(err)
					}
					if got.lost {
						break
					}
					if len(got.out) != len(want.out) {
						t.Fatalf("seed %d %s round %d: %d things read, %d without fusion", seed, d, round, len(got.out), len(want.out))
					}
					for i := range got.out {
						if bytes.Contains(got.out[i], []byte("and not kept")) {
							continue
						}
						if !bytes.Equal(got.out[i], want.out[i]) {
							for _, l := range got.log {
								t.Log(l)
							}
							t.Fatalf("seed %d %s round %d: %s is\n%x, but\n%x without fusion", seed, d, round, got.what[i], got.out[i], want.out[i])
						}
					}
					after := Launches(c.dev)
					stats := LaunchStats{Nodes: after.Nodes - before.Nodes, Skipped: after.Skipped - before.Skipped, Launches: after.Launches - before.Launches,
						Fused: after.Fused - before.Fused, Flushes: after.Flushes - before.Flushes}
					if round > 0 && stats != scheduled {
						t.Errorf("seed %d %s round %d: the counters are %+v, and were %+v", seed, d, round, stats, scheduled)
					}
					before, scheduled = after, stats
				}
			}
		}
		after := Launches(c.dev)
		t.Logf("%s: %d of %d flushes by plans", c.dev.Info(), after.Planned-planned, after.Flushes-flushes)
		if n := after.Planned - planned; n < (after.Flushes-flushes)/6 {
			t.Errorf("%d of %d flushes went by plans", n, after.Flushes-flushes)
		}
		_ = SetFusion(c.dev, true)
	}
}

// TestPlanWithoutMemory has memory run out in a step that goes by a plan: the error names an operator and says that it is memory, and the
// step works again afterwards.
func TestPlanWithoutMemory(t *testing.T) {
	dev := null.New(null.Config{}) // results are zeros: the property test compares values
	e, err := engineFor(dev)
	if err != nil {
		t.Fatal(err)
	}
	x, row := Uniform(dev, NewGenerator(1), Float32, 0, 1, 600, 1), Uniform(dev, NewGenerator(2), Float32, 0, 1, 1, 600) // the product is in the pool of large memory
	step := func() ([]byte, error) {
		s := NewScope(dev)
		y := s.To(x).MatMul(row).Sum(0).Exp()
		b, err := y.bytes()
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		return b, err
	}
	want, err := step()
	for range 3 {
		got, rerr := step()
		if err != nil || rerr != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x (%v), want %x (%v)", got, rerr, want, err)
		}
	}
	planned := Launches(dev).Planned
	if planned == 0 {
		t.Fatal("no step went by a plan")
	}
	if err := EmptyCache(dev); err != nil {
		t.Fatal(err)
	}
	e.alloc.SetLimit(1)
	_, err = step()
	var op *Error
	if !errors.Is(err, backend.ErrOutOfMemory) || !errors.As(err, &op) || op.Op == "" || op.File != "plan_test.go" {
		t.Errorf("without memory: %v", err)
	}
	e.alloc.SetLimit(0)
	if got, err := step(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("with memory again: %x (%v), want %x", got, err, want)
	}
	if n := Launches(dev).Planned; n < planned+2 {
		t.Errorf("%d flushes by plans, want %d", n, planned+2)
	}
}

// TestPlanWithOtherNumbers repeats a step with other numbers in it: the plan is used, with the new ones. Two operators that had the same
// number, and so shared a kernel, may have different ones later.
func TestPlanWithOtherNumbers(t *testing.T) {
	dev := CPU()
	x := FromFloat32s([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4).To(dev)
	step := func(a, b float64) []float32 {
		s := NewScope(dev)
		defer s.Close()
		y := s.To(x)
		p, q := y.MulScalar(a), y.MulScalar(b)
		u := s.Full(Float32, 1, 4).MulScalar(a).Add(s.Full(Float32, 3, 4).MulScalar(b)) // uniform
		z := Cat(0, p.Sub(q.Square()), u.Reshape(1, 4), p.MulScalar(b).Tanh().SumKeep(0))
		vs, err := z.CPU().Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return vs
	}
	for i, c := range [][2]float64{{2, 2}, {2, 2}, {2, 2}, {2, 3}, {5, 2}, {0.5, -1}, {2, 2}} {
		if i == 3 {
			if n := Launches(dev).Planned; n == 0 {
				t.Fatal("no step went by a plan")
			}
		}
		if err := SetFusion(dev, false); err != nil {
			t.Fatal(err)
		}
		want := step(c[0], c[1])
		if err := SetFusion(dev, true); err != nil {
			t.Fatal(err)
		}
		before := Launches(dev)
		got := step(c[0], c[1])
		if !slices.Equal(got, want) {
			t.Errorf("with %v: %v, want %v", c, got, want)
		}
		if after := Launches(dev); i == 2 && after.Planned == before.Planned {
			t.Errorf("with %v: no plan was used", c)
		}
	}
}
