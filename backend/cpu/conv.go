package cpu

import (
	"fmt"

	"github.com/anygpu/anygpu/backend/cpu/internal/gemm"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// gemmKinds are the kinds that package gemm reads.
var gemmKinds = map[ir.Kind]gemm.Kind{ir.F32: gemm.F32, ir.F16: gemm.F16, ir.BF16: gemm.BF16}

// newConv returns the native program of a convolution or of one of its gradients, or nil if it has none.
func newConv(spec *lib.Conv, pool *interp.Pool) native {
	for _, k := range []ir.Kind{spec.A, spec.B, spec.Out} {
		if _, ok := gemmKinds[k]; !ok {
			return nil
		}
	}
	return func(b [][]byte, params []uint32) error {
		c, err := lib.ParseConv(spec, params)
		if err != nil {
			return err
		}
		if err := checkConv(c, b); err != nil {
			return err
		}
		return runConv(c, b, pool)
	}
}

// checkConv reports buffers that are too small for the launch.
func checkConv(c *lib.Conv, b [][]byte) error {
	na, nb, nout, nbias := c.Elements()
	need := []int{na * c.A.Size(), nb * c.B.Size(), nout * c.Out.Size()}
	if c.Bias != ir.Void {
		if c.Op == lib.ConvWeight {
			need = append(need, nbias*c.Out.Size())
		} else {
			need = []int{need[0], need[1], nbias * c.Bias.Size(), need[2]}
		}
	}
	if len(b) != len(need) {
		return fmt.Errorf("%s: %d buffers, want %d", c.Op, len(b), len(need))
	}
	for i, n := range need {
		if len(b[i]) < n {
			return fmt.Errorf("%s of images %v: buffer %d needs %d bytes, has %d", c.Op, c.Image, i, n, len(b[i]))
		}
	}
	return nil
}

func runConv(c *lib.Conv, b [][]byte, pool *interp.Pool) error {
	three := func(x []int, rest int) [3]int {
		out := [3]int{rest, rest, rest}
		copy(out[3-len(x):], x)
		return out
	}
	g := gemm.Conv{N: c.N, Groups: c.Groups, C: c.C, O: c.O, Image: three(c.Image, 1), Grid: three(c.Grid, 1), Kernel: three(c.Kernel, 1),
		Stride: three(c.Stride, 1), Pad: three(c.Pad, 0), Dilation: three(c.Dilation, 1), Precise: c.Precise()}
	_, _, nout, nbias := c.Elements()
	x, y := gemm.Array{Kind: gemmKinds[c.A], Data: b[0]}, gemm.Array{Kind: gemmKinds[c.B], Data: b[1]}
	out := b[2]
	var bias []float32
	if c.Bias != ir.Void && c.Op != lib.ConvWeight {
		bias, out = make([]float32, nbias), b[3]
		interp.ConvertSlice(bytesOf(bias), ir.F32, b[2][:nbias*c.Bias.Size()], c.Bias)
	}
	var to gemm.Result
	if size := c.Out.Size(); c.Out == ir.F32 {
		to.Values = sliceOf[float32](out)[:nout]
	} else {
		to.Store = func(at int, v []float32) {
			interp.ConvertSlice(out[at*size:(at+len(v))*size], c.Out, bytesOf(v), ir.F32)
		}
	}
	switch c.Op {
	case lib.ConvForward:
		return g.Forward(pool, x, y, bias, to)
	case lib.ConvInput:
		return g.Input(pool, x, y, bias, to)
	}
	var sums []float32
	if c.Bias != ir.Void {
		sums = make([]float32, nbias)
	}
	if err := g.Weight(pool, x, y, to, sums); err != nil || sums == nil {
		return err
	}
	interp.ConvertSlice(b[3][:nbias*c.Out.Size()], c.Out, bytesOf(sums), ir.F32)
	return nil
}
