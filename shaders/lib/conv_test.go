package lib_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// convCase makes a case of a spec with a reference by direct loops over windows.
func convCase(c lib.Conv) kcase {
	na, nb, nout, nbias := c.Elements()
	a := array{kind: c.A, data: noise(c.A, na, uint64(na+nb))}
	b := array{kind: c.B, data: noise(c.B, nb, uint64(na+nout))}
	out := array{kind: c.Out, data: make([]float64, nout), want: make([]float64, nout), rel: 1e-5, abs: 1e-5}
	if c.Out == ir.F16 || c.Out == ir.BF16 {
		out.rel, out.abs = 1.0/128, 1.0/128
	}
	members, _ := windowMembers(lib.Window{Image: c.Image, Grid: c.Grid, Kernel: c.Kernel, Stride: c.Stride, Pad: c.Pad, Dilation: c.Dilation})
	image, grid, kernel := product(c.Image), product(c.Grid), product(c.Kernel)
	ci, co := c.C/c.Groups, c.O/c.Groups
	for n := range c.N {
		for o := range c.O {
			for i := range ci {
				for g, ms := range members {
					for _, m := range ms {
						x, w, z := (n*c.C+o/co*ci+i)*image+m.place, (o*ci+i)*kernel+m.k, (n*c.O+o)*grid+g
						switch c.Op {
						case lib.ConvForward:
							out.want[z] += a.data[x] * b.data[w]
						case lib.ConvInput:
							out.want[x] += a.data[z] * b.data[w]
						case lib.ConvWeight:
							out.want[w] += a.data[x] * b.data[z]
						}
					}
				}
			}
		}
	}
	bufs := []array{a, b}
	if c.Bias != ir.Void && c.Op != lib.ConvWeight {
		bias := array{kind: c.Bias, data: noise(c.Bias, nbias, 99)}
		for i := range out.want {
			out.want[i] += bias.data[i/(nout/c.N/nbias)%nbias]
		}
		bufs = append(bufs, bias)
	}
	for i, v := range out.want {
		out.want[i] = round(c.Out, v)
	}
	bufs = append(bufs, out)
	if c.Bias != ir.Void && c.Op == lib.ConvWeight {
		sums := array{kind: c.Out, data: make([]float64, nbias), want: make([]float64, nbias), rel: out.rel, abs: out.abs}
		for i, v := range b.data {
			sums.want[i/grid%c.O] += v
		}
		for i, v := range sums.want {
			sums.want[i] = round(c.Out, v)
		}
		bufs = append(bufs, sums)
	}
	return kcase{name: fmt.Sprintf("%s/%dx%d>%d/%d %v>%v k%v s%v p%v d%v bias %s %s,%s>%s", c.Op, c.N, c.C, c.O, c.Groups, c.Image, c.Grid, c.Kernel, c.Stride, c.Pad, c.Dilation, c.Bias, c.A, c.B, c.Out),
		bufs: bufs, steps: one(&c, len(bufs))}
}

func convCases() []kcase {
	var out []kcase
	for i, c := range []lib.Conv{
		{N: 2, Groups: 1, C: 3, O: 4, Image: []int{9}, Grid: []int{5}, Kernel: []int{3}, Stride: []int{2}, Pad: []int{1}, Dilation: []int{1}},
		{N: 2, Groups: 1, C: 2, O: 3, Image: []int{5, 4}, Grid: []int{5, 4}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Pad: []int{1, 1}, Dilation: []int{1, 1}},
		{N: 1, Groups: 2, C: 4, O: 6, Image: []int{8, 7}, Grid: []int{3, 3}, Kernel: []int{2, 3}, Stride: []int{3, 2}, Pad: []int{1, 1}, Dilation: []int{3, 2}},
		{N: 2, Groups: 1, C: 1, O: 2, Image: []int{3, 4, 3}, Grid: []int{2, 2, 2}, Kernel: []int{2, 3, 2}, Stride: []int{1, 2, 1}, Pad: []int{0, 1, 0}, Dilation: []int{1, 1, 1}},
		// Channels enough for packed panels (Conv.Panels).
		{N: 3, Groups: 1, C: 8, O: 35, Image: []int{5, 6}, Grid: []int{5, 6}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Pad: []int{1, 1}, Dilation: []int{1, 1}},
		{N: 4, Groups: 1, C: 9, O: 8, Image: []int{7, 8}, Grid: []int{3, 4}, Kernel: []int{2, 3}, Stride: []int{2, 2}, Pad: []int{0, 2}, Dilation: []int{2, 1}},
		{N: 2, Groups: 1, C: 8, O: 8, Image: []int{20}, Grid: []int{24}, Kernel: []int{1}, Stride: []int{1}, Pad: []int{2}, Dilation: []int{1}},
		{N: 2, Groups: 1, C: 8, O: 16, Image: []int{3, 4, 3}, Grid: []int{2, 2, 3}, Kernel: []int{2, 3, 1}, Stride: []int{1, 2, 1}, Pad: []int{0, 1, 0}, Dilation: []int{1, 1, 1}},
	} {
		for op := lib.ConvForward; op <= lib.ConvWeight; op++ {
			for _, k := range []ir.Kind{ir.F32, ir.F16, ir.BF16, ir.F64} {
				c.Op, c.A, c.B, c.Out, c.Bias = op, k, k, k, ir.Void
				if k == ir.F32 || i == 2 {
					out = append(out, convCase(c))
				}
				if k == ir.F32 && i != 1 || k == ir.F16 && i == 1 {
					c.Bias = k
					out = append(out, convCase(c))
				}
			}
		}
	}
	return out
}

// TestConvPanels counts the cases that go by way of packed panels: all images at once, and in pieces as large batches do.
func TestConvPanels(t *testing.T) {
	d := pocl()
	staged := func() (cases []kcase, stages int) {
		for _, c := range convCases() {
			if !supports(d.t, c) {
				continue
			}
			if steps, _, _ := staged(d.t, c.steps(d.t), nil, nil, nil); len(steps) > 1 {
				cases, stages = append(cases, c), stages+len(steps)
			}
		}
		return cases, stages
	}
	whole, few := staged()
	for _, c := range whole {
		runCase(t, d, c)
	}
	if len(whole) < 20 {
		t.Errorf("%d cases go by way of panels, want at least 20", len(whole))
	}
	defer lib.SetConvWorkspace(1, 0)()
	pieces, many := staged()
	if many < few+len(whole) {
		t.Errorf("%d kernels with little workspace and %d with much", many, few)
	}
	for _, c := range pieces {
		runCase(t, d, c)
	}
}

// TestConvWorkspace: the workspace of a large batch is in proportion to its images and grids, and of 16-bit ones half of that.
func TestConvWorkspace(t *testing.T) {
	d := pocl()
	for op := lib.ConvForward; op <= lib.ConvWeight; op++ {
		for _, kind := range []ir.Kind{ir.F32, ir.F16, ir.BF16} {
			c := lib.Conv{Op: op, N: 128, Groups: 1, C: 32, O: 64, Image: []int{14, 14}, Grid: []int{14, 14}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Pad: []int{1, 1}, Dilation: []int{1, 1},
				A: kind, B: kind, Out: kind}
			_, scratch := c.Stages(d.t)
			total := int64(0)
			for _, n := range scratch {
				total += n
			}
			const sums, weights, tables = 8 * 64 * 288 * 4, 64 * 288 * 4, 64 << 10
			if most := int64(128*(32+64)*14*14*kind.Size()*5/4) + sums + weights + tables; total > most {
				t.Errorf("%s of %s: %d bytes of workspace, want at most %d", op, kind, total, most)
			}
		}
	}
}

func TestConvErrors(t *testing.T) {
	ok := lib.Conv{N: 2, Groups: 2, C: 4, O: 6, Image: []int{8, 7}, Grid: []int{7, 6}, Kernel: []int{2, 2}, Stride: []int{1, 1}, Pad: []int{0, 0}, Dilation: []int{1, 1}, A: ir.F32, B: ir.F32, Out: ir.F32}
	if _, _, err := ok.Launch(targets()[0].t); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		edit func(*lib.Conv)
		want string
	}{
		{"groups", func(c *lib.Conv) { c.Groups = 3 }, "must divide the channels"},
		{"rank", func(c *lib.Conv) { c.Grid = []int{4} }, "one number for each"},
		{"kind", func(c *lib.Conv) { c.B = ir.I32 }, "takes floats"},
		{"double", func(c *lib.Conv) { c.B = ir.F64 }, "f64 only with f64"},
		{"bias", func(c *lib.Conv) { c.Bias = ir.I32 }, "bias i32"},
		{"stride", func(c *lib.Conv) { c.Stride = []int{1, 0} }, "stride [1 0]"},
		{"large", func(c *lib.Conv) { c.N, c.Image, c.Grid = 1<<20, []int{1 << 10, 1 << 10}, []int{1, 1} }, "split the batch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := ok
			c.edit(&bad)
			if _, _, err := bad.Launch(targets()[0].t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := bad.Build(targets()[0].t); err == nil {
				t.Error("the kernel was built")
			}
		})
	}
}
