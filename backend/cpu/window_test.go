package cpu

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// TestWindow holds the native programs against the kernels they stand in for, run by the checking executor. Values are small
// multiples of 1/8, whose sums are exact in any order.
func TestWindow(t *testing.T) {
	target := lib.Target{API: "cpu", Caps: ir.InterpCaps()}
	pool := interp.NewPool(2)
	shapes := []lib.Window{
		{Outer: 3, Image: []int{11}, Grid: []int{6}, Kernel: []int{3}, Stride: []int{2}, Pad: []int{1}, Dilation: []int{1}},
		{Outer: 4, Image: []int{9, 8}, Grid: []int{9, 8}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Pad: []int{1, 1}, Dilation: []int{1, 1}},
		{Outer: 2, Image: []int{9, 7}, Grid: []int{3, 3}, Kernel: []int{2, 3}, Stride: []int{3, 2}, Pad: []int{1, 1}, Dilation: []int{3, 2}},
		{Outer: 2, Image: []int{2, 1}, Grid: []int{4, 5}, Kernel: []int{3, 5}, Stride: []int{1, 1}, Pad: []int{2, 4}, Dilation: []int{1, 1}},
		{Outer: 1, Image: []int{3, 4, 5}, Grid: []int{2, 2, 4}, Kernel: []int{2, 3, 2}, Stride: []int{1, 2, 1}, Pad: []int{0, 1, 0}, Dilation: []int{1, 1, 1}},
		{Outer: 5, Image: []int{6, 6}, Grid: []int{4, 4}, Kernel: []int{3, 3}, Stride: []int{2, 2}, Pad: []int{1, 1}, Dilation: []int{1, 1}},
		{Outer: 2, Image: []int{12, 70}, Grid: []int{6, 35}, Kernel: []int{2, 2}, Stride: []int{2, 2}, Pad: []int{0, 0}, Dilation: []int{1, 1}},
		{Outer: 2, Image: []int{5, 37}, Grid: []int{3, 19}, Kernel: []int{3, 3}, Stride: []int{2, 2}, Pad: []int{1, 1}, Dilation: []int{1, 1}},
		{Outer: 2, Image: []int{3, 50}, Grid: []int{2, 49}, Kernel: []int{2, 2}, Stride: []int{1, 1}, Pad: []int{0, 0}, Dilation: []int{1, 1}},
		{Outer: 2, Image: []int{7, 5}, Grid: []int{3, 2}, Adaptive: true},
		{Outer: 0, Image: []int{4}, Grid: []int{3}, Kernel: []int{2}, Stride: []int{1}, Pad: []int{0}, Dilation: []int{1}},
	}
	native := 0
	for _, w := range shapes {
		for op := lib.WindowUnfold; op <= lib.WindowPlace; op++ {
			for _, kind := range []ir.Kind{ir.F32, ir.F64, ir.F16} {
				w.Op, w.In, w.Out = op, kind, kind
				w.OffsetIn, w.OffsetOut = 0, 0
				if op == lib.WindowUnfold || op == lib.WindowFold {
					w.OffsetIn, w.OffsetOut = 5, 3
				}
				run := newWindow(&lib.Window{Op: op, In: kind, Out: kind, Adaptive: w.Adaptive, Image: w.Image}, pool)
				if run == nil || w.Adaptive && op < lib.WindowSum {
					continue
				}
				native++
				spec := w
				t.Run(fmt.Sprintf("%s/%s/%v/%v", op, kind, w.Image, w.Kernel), func(t *testing.T) { compareWindow(t, target, &spec, run) })
			}
		}
	}
	if native < 40 {
		t.Errorf("only %d native programs", native)
	}
}

func compareWindow(t *testing.T, target lib.Target, w *lib.Window, run native) {
	r := rand.New(rand.NewPCG(7, 9))
	in, out := w.Elements()
	grid := w.Outer * product(w.Grid)
	x, _ := reals(r, w.In, w.OffsetIn+in)
	y := make([]byte, ((w.OffsetOut+out)*w.Out.Size()+7)&^3)
	for i := range y {
		y[i] = 0x55
	}
	if v := sliceOf[float32](x); w.Op == lib.WindowMax && w.In == ir.F32 && len(v) > 20 {
		for i := 0; i < len(v); i += 9 {
			v[i] = [...]float32{float32(math.NaN()), float32(math.Inf(-1)), float32(math.Inf(1))}[i/9%3]
		}
	}
	places := make([]byte, 4*grid)
	buffers := [][]byte{x, y}
	switch w.Op {
	case lib.WindowMax:
		buffers = append(buffers, places)
	case lib.WindowPlace:
		// Places that lie in their windows: those of the maxima.
		m := *w
		m.Op = lib.WindowMax
		z, _ := reals(r, w.In, w.Outer*product(w.Image))
		execute(t, target, &m, [][]byte{z, make([]byte, len(x)+8), places})
		buffers = [][]byte{x, places, y}
	}
	want := make([][]byte, len(buffers))
	for i, b := range buffers {
		want[i] = bytes.Clone(b)
	}
	execute(t, target, w, want)
	_, params, err := w.Launch(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(buffers, params); err != nil {
		t.Fatal(err)
	}
	for i := range buffers {
		if !bytes.Equal(buffers[i], want[i]) {
			t.Errorf("buffer %d differs from the kernel's", i)
		}
	}
	if in > 0 {
		buffers[0] = buffers[0][:4]
		if err := run(buffers, params); err == nil {
			t.Error("a buffer that is too small is no error")
		}
	}
}

func execute(t *testing.T, target lib.Target, w *lib.Window, buffers [][]byte) {
	t.Helper()
	k, err := w.Build(target)
	if err != nil {
		t.Fatal(err)
	}
	groups, params, err := w.Launch(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := interp.Check(k, groups, buffers, params, interp.CheckOptions{}); err != nil {
		t.Fatal(err)
	}
}
