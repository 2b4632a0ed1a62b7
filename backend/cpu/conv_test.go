package cpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// TestConv holds the native programs against the kernels they stand in for, run by the checking executor. Values are small
// multiples of 1/8, whose sums are exact in any order.
func TestConv(t *testing.T) {
	target := lib.Target{API: "cpu", Caps: ir.InterpCaps()}
	pool := interp.NewPool(2)
	for _, c := range []lib.Conv{
		{N: 2, Groups: 1, C: 3, O: 4, Image: []int{19}, Grid: []int{10}, Kernel: []int{3}, Stride: []int{2}, Pad: []int{1}, Dilation: []int{1}},
		{N: 2, Groups: 1, C: 9, O: 5, Image: []int{7, 6}, Grid: []int{7, 6}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Pad: []int{1, 1}, Dilation: []int{1, 1}},
		{N: 1, Groups: 2, C: 4, O: 6, Image: []int{9, 7}, Grid: []int{3, 3}, Kernel: []int{2, 3}, Stride: []int{3, 2}, Pad: []int{1, 1}, Dilation: []int{3, 2}},
		{N: 2, Groups: 3, C: 3, O: 3, Image: []int{4, 5, 3}, Grid: []int{3, 3, 2}, Kernel: []int{2, 3, 2}, Stride: []int{1, 2, 1}, Pad: []int{0, 1, 0}, Dilation: []int{1, 1, 1}},
		{N: 0, Groups: 1, C: 2, O: 2, Image: []int{4}, Grid: []int{3}, Kernel: []int{2}, Stride: []int{1}, Pad: []int{0}, Dilation: []int{1}},
	} {
		for op := lib.ConvForward; op <= lib.ConvWeight; op++ {
			for _, kind := range []ir.Kind{ir.F32, ir.F16, ir.BF16} {
				for _, bias := range []ir.Kind{ir.Void, kind} {
					c.Op, c.A, c.B, c.Out, c.Bias = op, kind, kind, kind, bias
					spec := c
					t.Run(fmt.Sprintf("%s/%v/%v/%s bias %s", op, c.Image, c.Kernel, kind, bias), func(t *testing.T) { compareConv(t, target, pool, &spec) })
				}
			}
		}
	}
	if newConv(&lib.Conv{A: ir.F64, B: ir.F64, Out: ir.F64}, pool) != nil {
		t.Error("a native program for float64")
	}
}

func compareConv(t *testing.T, target lib.Target, pool *interp.Pool, c *lib.Conv) {
	r := rand.New(rand.NewPCG(5, 6))
	na, nb, nout, nbias := c.Elements()
	var buffers [][]byte
	add := func(kind ir.Kind, n int) {
		b, _ := reals(r, kind, n)
		buffers = append(buffers, b)
	}
	add(c.A, na)
	add(c.B, nb)
	if c.Bias != ir.Void && c.Op != lib.ConvWeight {
		add(c.Bias, nbias)
	}
	add(c.Out, nout)
	if c.Bias != ir.Void && c.Op == lib.ConvWeight {
		add(c.Out, nbias)
	}
	var want [][]byte
	for _, b := range buffers {
		want = append(want, bytes.Clone(b))
	}
	k, err := c.Build(target)
	if err != nil {
		t.Fatal(err)
	}
	groups, params, err := c.Launch(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := interp.Check(k, groups, want, params, interp.CheckOptions{}); err != nil {
		t.Fatal(err)
	}
	run := newConv(k.Template.(*lib.Conv), pool)
	if err := run(buffers, params); err != nil {
		t.Fatal(err)
	}
	for i := range buffers {
		if !bytes.Equal(buffers[i], want[i]) {
			t.Errorf("buffer %d differs from the kernel's", i)
		}
	}
	if nout > 0 && na > 0 {
		buffers[0] = buffers[0][:0]
		if err := run(buffers, params); err == nil {
			t.Error("a buffer that is too small is no error")
		}
	}
}
