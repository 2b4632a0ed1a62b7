package tensor

import (
	"math"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// eachDevice runs a test on every device of the machine.
func eachDevice(t *testing.T, test func(t *testing.T, dev backend.Device)) {
	for _, info := range backend.List() {
		if info.Problem != "" || info.API == "null" {
			continue
		}
		t.Run(info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			test(t, dev)
		})
	}
}

func floats(t *testing.T, x *Tensor) []float32 {
	t.Helper()
	v, err := x.CPU().Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// wrongVariants is a product whose variants are wrong, each in its way.
type wrongVariants struct{ *lib.MatMul }

func (w wrongVariants) TuneKey(lib.Target) string { return "wrong" }

func (w wrongVariants) Variants(lib.Target) []lib.Generator {
	half, other := *w.MatMul, *w.MatMul
	half.K /= 2 // a part of the sum: faster
	other.EpilogueKey, other.Epilogue = "more", func(b *ir.Builder, x ir.Value) ir.Value { return b.Add(x, b.ConstLike(x, 1)) }
	return []lib.Generator{nil, &half, &other}
}

func TestTuningChecksResults(t *testing.T) {
	t.Setenv("ANYGPU_CACHE_DIR", t.TempDir())
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		e, err := engineFor(dev)
		if err != nil {
			t.Fatal(err)
		}
		s := NewScope(dev)
		defer s.Close()
		gen := NewGenerator(1)
		a, b := s.To(Uniform(dev, gen, Float32, 0, 1, 90, 90)), s.To(Uniform(dev, gen, Float32, 0, 1, 90, 90))
		out := a.MatMul(b)
		if err := Synchronize(dev); err != nil {
			t.Fatal(err)
		}
		before := floats(t, out)
		spec := &lib.MatMul{M: 90, N: 90, K: 90, Batch: 1, A: ir.F32, B: ir.F32, Out: ir.F32}
		e.mu.Lock()
		c, err := e.measure(wrongVariants{spec}, []backend.Region{a.ref.st.mem.region, b.ref.st.mem.region, out.ref.st.mem.region})
		e.mu.Unlock()
		if err != nil || c.Variant != 0 || c.Measured != 0 || c.OwnMS <= 0 {
			t.Errorf("of wrong variants %+v was chosen, %v", c, err)
		}
		for i, v := range floats(t, out) {
			if v != before[i] {
				t.Fatal("the result in place was overwritten by a measurement")
			}
		}
	})
}

func TestTuning(t *testing.T) {
	t.Setenv("ANYGPU_CACHE_DIR", t.TempDir())
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		e, err := engineFor(dev)
		if err != nil {
			t.Fatal(err)
		}
		if e.isCPU {
			t.Skip("has one program")
		}
		e.mu.Lock()
		e.openTuning() // of the test's folder
		e.mu.Unlock()
		if err := SetTuning(dev, true); err != nil {
			t.Fatal(err)
		}
		defer SetTuning(dev, false)
		s := NewScope(dev)
		defer s.Close()
		gen := NewGenerator(1)
		a, b := s.To(Uniform(dev, gen, Float32, 0, 1, 96, 80)), s.To(Uniform(dev, gen, Float32, 0, 1, 80, 100))
		got := floats(t, a.MatMul(b))
		x, y := floats(t, a), floats(t, b)
		for i := range got {
			want := 0.0
			for k := range 80 {
				want += float64(x[i/100*80+k]) * float64(y[k*100+i%100])
			}
			if math.Abs(float64(got[i])-want) > 1e-3 {
				t.Fatalf("element %d is %v, want %v", i, got[i], want)
			}
		}
		n, note, err := SaveTuning(dev)
		if err != nil || n != 1 || note != "" {
			t.Errorf("%d choices, note %q, %v; want one", n, note, err)
		}
		e.mu.Lock()
		e.openTuning()
		n = e.tune.table.Len()
		e.mu.Unlock()
		if n != 1 {
			t.Errorf("%d choices were read back, want 1", n)
		}
	})
}

func TestAgree(t *testing.T) {
	bytes := func(v ...float32) []byte {
		var out []byte
		for _, x := range v {
			b := math.Float32bits(x)
			out = append(out, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
		}
		return out
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		got, want []byte
		agree     bool
	}{
		{bytes(1, 100.001), bytes(1, 100), true},
		{bytes(1, 100.1), bytes(1, 100), false},
		{bytes(nan, inf), bytes(nan, inf), true},
		{bytes(nan, 1), bytes(1, 1), false},
		{bytes(1, 1), bytes(inf, 1), false},
		{bytes(1, 1), bytes(nan, 1), false},
	} {
		if got := agree(ir.F32, 2, c.got, c.want, 1e-4); got != c.agree {
			t.Errorf("agree(%v, %v) is %v", c.got, c.want, got)
		}
	}
}
