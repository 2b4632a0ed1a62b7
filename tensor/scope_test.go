package tensor

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anygpu/anygpu/backend"
)

func TestScopeOwnsResults(t *testing.T) {
	w := FromFloat32s([]float32{1, 2, 3, 4}, 2, 2) // no scope
	outer := NewScope(CPU())
	inner := outer.NewScope()
	x, y := outer.To(w), inner.To(w)
	for _, tc := range []struct {
		name string
		got  *Tensor
		want *Scope
	}{
		{"no scope", w.Add(w), nil}, {"outer", w.MatMul(x), outer}, {"inner", x.Add(y), inner}, {"view", y.T(), inner}, {"reduction", x.Sum(), outer},
		{"cat", Cat(0, w, x, y), inner}, {"cast", x.Cast(Float16), outer}, {"where", Where(w.GtScalar(1), x, w), outer}, {"detach", y.Detach(), inner},
	} {
		if err := tc.got.Err(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.got.Scope() != tc.want {
			t.Errorf("%s: in %v, expected %v", tc.name, tc.got.Scope(), tc.want)
		}
	}
	kept := x.Add(y).Keep()
	lost := x.Add(y)
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := kept.Float32s(); err != nil || v[3] != 8 {
		t.Errorf("a kept tensor after Close: %v, %v", v, err)
	}
	_, err := lost.AddScalar(1).Item()
	wantErr(t, err, ErrFreed, "add_scalar at scope_test.go", "was freed when its scope was closed; Keep")
	if _, err := x.Sum().Item(); err != nil {
		t.Errorf("the outer scope's tensor after the inner's Close: %v", err)
	}
	if inner2 := outer.NewScope(); outer.Close() != nil || !inner2.closed {
		t.Error("an outer scope does not close those inside it")
	}
	if kept.Scope() != nil {
		t.Error("a kept tensor still has a scope")
	}
	kept.Free()
	kept.Free()
	wantErr(t, kept.Err(), ErrFreed, "was freed")
	wantErr(t, second(kept.Float32s()), ErrFreed, "was freed")
	if !strings.Contains(kept.String(), "freed") {
		t.Errorf("String of a freed tensor is %q", kept)
	}
}

func TestViewsShareMemory(t *testing.T) {
	x := FromFloat32s([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	v := x.T().Slice(0, 1, 3, 1)
	x.Free()
	got, err := v.Float32s()
	if err != nil || len(got) != 4 || got[0] != 2 || got[3] != 6 {
		t.Errorf("a view after its source was freed: %v, %v", got, err)
	}
}

// allocated returns the bytes that tensors of the device use, after dead ones were collected.
func allocated(t *testing.T, dev backend.Device) int64 {
	t.Helper()
	e, err := engineFor(dev)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
		time.Sleep(2 * time.Millisecond)
	}
	if err := EmptyCache(dev); err != nil {
		t.Fatal(err)
	}
	return e.alloc.Stats().AllocatedBytes.Current
}

func TestMemoryIsFlat(t *testing.T) {
	dev := gpuLike(t)
	w := FromFloat32s(make([]float32, 64), 8, 8).To(dev).SetRequiresGrad(true)
	step := func() {
		s := NewScope(dev)
		x := s.To(FromFloat32s(make([]float32, 32), 4, 8))
		loss := CrossEntropy(x.MatMul(w).Tanh(), s.To(FromInt64s([]int64{0, 1, 2, 3}, 4)), CrossEntropyOptions{})
		if err := loss.Backward(); err != nil {
			t.Fatal(err)
		}
		if _, err := loss.Item(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	step()
	e, _ := engineFor(dev)
	before := e.alloc.Stats().AllocatedBytes.Current
	for range 20 {
		step()
	}
	if after := e.alloc.Stats().AllocatedBytes.Current; after != before {
		t.Errorf("20 steps changed the memory in use from %d to %d bytes", before, after)
	}
}

func TestCollectorFreesWhatIsDropped(t *testing.T) {
	dev := gpuLike(t)
	base := allocated(t, dev)
	func() {
		x := Ones(dev, Float32, 1024)
		for range 10 {
			x = x.AddScalar(1)
		}
		if _, err := x.Sum().Item(); err != nil {
			t.Fatal(err)
		}
		s := NewScope(dev) // dropped without Close
		if _, err := s.To(x).Sum().Item(); err != nil {
			t.Fatal(err)
		}
	}()
	if now := allocated(t, dev); now != base {
		t.Errorf("%d bytes are in use after everything was dropped, %d before", now, base)
	}
}

// A loop without scopes does not need the collector's own pace, which knows nothing of device memory.
func TestMemoryPressureStartsTheCollector(t *testing.T) {
	defer func(old int64) { collectAbove = old }(collectAbove)
	collectAbove = 64 << 10
	dev := gpuLike(t)
	x := Ones(dev, Float32, 1024)
	ResetPeakMemory(dev)
	const steps = 500
	for range steps {
		x = x.AddScalar(1)
		Flush(dev)
	}
	if v, err := x.Mean().Item(); err != nil || v != steps+1 {
		t.Fatalf("%v, %v", v, err)
	}
	if peak := MemoryStats(dev).AllocatedBytes.Peak; peak > steps*4096/2 {
		t.Errorf("%d bytes were in use at the peak of %d steps of 4096 bytes", peak, steps)
	}
}

func TestDeadWorkIsSkipped(t *testing.T) {
	dev := gpuLike(t)
	s := NewScope(dev)
	x := s.Full(Float32, 2, 8)
	dead := x.Exp().Tanh().Sum()
	live := x.Square().Sum()
	dead.Free()
	for _, r := range s.owned.refs { // the intermediate results of dead
		if n := r.st.node; n != nil && (n.op == "exp" || n.op == "tanh") {
			r.release()
		}
	}
	if v, err := live.Item(); err != nil || v != 32 {
		t.Errorf("%v, %v", v, err)
	}
	if st := Launches(dev); st.Skipped != 3 {
		t.Errorf("%d nodes were skipped, expected the 3 that nobody needs: %+v", st.Skipped, st)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Backward runs nothing for operands that need no gradient, and keeps no temporaries.
func TestBackwardDoesNoExtraWork(t *testing.T) {
	dev := gpuLike(t)
	s := NewScope(dev)
	w := Ones(dev, Float32, 3, 3).SetRequiresGrad(true)
	x := s.Full(Float32, 1, 2, 3)
	y := x.MatMul(w).Sum()
	Flush(dev)
	before, n := Launches(dev).Launches, len(s.owned.refs)
	if err := y.Backward(); err != nil {
		t.Fatal(err)
	}
	if len(s.owned.refs) != n {
		t.Errorf("Backward left %d tensors in the scope", len(s.owned.refs)-n)
	}
	Flush(dev)
	// ones, and x^T dy, whose dy is ones expanded and copied; no product for x's gradient.
	if got := Launches(dev).Launches - before; got > 3 {
		t.Errorf("Backward launched %d kernels, expected 3", got)
	}
	s.Close()
	if g, err := w.Grad().CPU().Float32s(); err != nil || g[0] != 2 {
		t.Errorf("gradient %v, %v", g, err)
	}
}

func TestNoGrad(t *testing.T) {
	s := NewScope(CPU())
	defer s.Close()
	w := FromFloat32s([]float32{2}, 1).SetRequiresGrad(true)
	x := s.To(FromFloat32s([]float32{3}, 1))
	y := NoGrad(s, func() *Tensor {
		inner := s.NewScope()
		if inner.To(x).Mul(w).RequiresGrad() {
			t.Error("a scope inside records gradients")
		}
		return x.Mul(w)
	})
	if y.RequiresGrad() || !x.Mul(w).RequiresGrad() {
		t.Error("NoGrad is not in force for its extent only")
	}
	if v, err := y.Item(); err != nil || v != 6 {
		t.Errorf("%v, %v", v, err)
	}
	wantErr(t, y.Backward(), ErrGrad, "does not require grad")
}

func TestClosedDevice(t *testing.T) {
	dev := newChecked("vulkan")
	x := Ones(dev, Float32, 2)
	s := NewScope(dev)
	y := s.To(x)
	e, _ := engineFor(dev)
	e.close()
	wantErr(t, second(x.Item()), ErrFreed, "its device was closed")
	wantErr(t, x.Add(x).Err(), ErrFreed, "its device was closed")
	wantErr(t, y.Err(), ErrFreed)
	if err := s.Close(); err == nil {
		t.Error("Close of a scope whose device is gone gives no error")
	}
	x.Free()
}

func TestManyGoroutines(t *testing.T) {
	w := FromFloat32s([]float32{1, 2, 3, 4}, 2, 2).SetRequiresGrad(true)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				s := NewScope(CPU())
				x := s.To(FromFloat32s([]float32{1, 1}, 1, 2))
				loss := CrossEntropy(x.MatMul(w), s.To(FromInt64s([]int64{0}, 1)), CrossEntropyOptions{})
				if err := loss.Backward(); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				_ = Ones(CPU(), Float32, 3).Sum()
			}
		})
	}
	wg.Wait()
	g, err := w.Grad().Float32s()
	if err != nil {
		t.Fatal(err)
	}
	// x^T (softmax - onehot), 160 times; logits are [4 6].
	if want := float32(160 * -0.8807970779778823); g[0] < want-0.01 || g[0] > want+0.01 {
		t.Errorf("gradient %v, expected %v", g[0], want)
	}
}
