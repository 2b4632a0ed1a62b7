package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/anygpu/anygpu/backend"
)

// scalingPoint is the time of a training step of some size.
type scalingPoint struct {
	size         int     // batch or width
	gflop        float64 // of the step's products
	milliseconds float64 // median
	fit          float64 // of the line
}

// sweep is a row of sizes of the mlp's training step.
type sweep struct {
	name   string
	sizes  []int
	option func(size int) benchOptions
	gflop  func(size int) float64
}

// powersOf2 returns the powers of 2 from lo to hi.
func powersOf2(lo, hi int) (ps []int) {
	for n := lo; n <= hi; n *= 2 {
		ps = append(ps, n)
	}
	return ps
}

// stepGFLOP counts the products of a training step: two operations for each weight and example forward, and twice as many backward,
// less the gradient of the input.
func stepGFLOP(batch int, layers ...int) float64 {
	n := 0.0
	for i := 1; i < len(layers); i++ {
		products := 3.0
		if i == 1 {
			products = 2
		}
		n += products * 2 * float64(batch) * float64(layers[i-1]) * float64(layers[i])
	}
	return n / 1e9
}

var sweeps = []sweep{
	{"batch", powersOf2(1, 1024), func(n int) benchOptions { return benchOptions{batch: n} },
		func(n int) float64 { return stepGFLOP(n, 784, 512, 256, 10) }},
	{"width", powersOf2(64, 4096), func(n int) benchOptions { return benchOptions{width: n} },
		func(n int) float64 { return stepGFLOP(128, 784, n, n, 10) }},
}

// fitLine fits milliseconds = a + b·gflop with a, b >= 0 so that the relative deviations' squares are least.
func fitLine(ps []scalingPoint) (a, b float64) {
	fit := func(useA, useB bool) (a, b, loss float64) {
		// Normal equations of (a + b·w)/t = 1.
		var aa, ab, bb, a1, b1 float64
		for _, p := range ps {
			u, v := 1/p.milliseconds, p.gflop/p.milliseconds
			aa, ab, bb, a1, b1 = aa+u*u, ab+u*v, bb+v*v, a1+u, b1+v
		}
		switch det := aa*bb - ab*ab; {
		case useA && useB && det > 0:
			a, b = (a1*bb-b1*ab)/det, (aa*b1-ab*a1)/det
		case useA:
			a = a1 / aa
		default:
			b = b1 / bb
		}
		if a < 0 || b < 0 {
			return 0, 0, math.Inf(1)
		}
		for _, p := range ps {
			d := (a+b*p.gflop)/p.milliseconds - 1
			loss += d * d
		}
		return a, b, loss
	}
	best := math.Inf(1)
	for _, use := range [][2]bool{{true, true}, {false, true}, {true, false}} {
		if x, y, loss := fit(use[0], use[1]); loss < best {
			a, b, best = x, y, loss
		}
	}
	return a, b
}

// writeScaling times the mlp's training step over batch sizes and widths, holds the times against a line, and draws both.
func (c *benchFlags) writeScaling(ctx context.Context, out io.Writer) error {
	useThreads(c.threads)
	dev, err := openDevice(c.device)
	if err != nil {
		return err
	}
	defer dev.Close()
	w, err := findWorkload("mlp_sgd_step")
	if err != nil {
		return err
	}
	points := make([][]scalingPoint, len(sweeps))
	warm := *c // the first size timed in a process would pay for what the others find: a grown heap
	warm.options = sweeps[0].option(sweeps[0].sizes[len(sweeps[0].sizes)/2])
	if _, err := warm.on(dev, w); err != nil {
		return err
	}
	for i, s := range sweeps {
		for _, n := range s.sizes {
			if err := ctx.Err(); err != nil {
				return err
			}
			f := *c
			f.options = s.option(n)
			r, err := f.on(dev, w)
			if err != nil {
				return err
			}
			points[i] = append(points[i], scalingPoint{size: n, gflop: s.gflop(n), milliseconds: r.MedianMS})
		}
	}
	if err := printScaling(out, points); err != nil {
		return err
	}
	return drawScaling(c.scaling, dev.Info(), points)
}

// printScaling fits a line to each sweep and prints how far the times are from it.
func printScaling(out io.Writer, points [][]scalingPoint) error {
	for i, ps := range points {
		a, b := fitLine(ps)
		fmt.Fprintf(out, "%s: ms = %.4g + %.4g GFLOP\n", sweeps[i].name, a, b)
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "%s\tGFLOP\tms\tline\tdeviation\t\n", sweeps[i].name)
		for j := range ps {
			p := &ps[j]
			p.fit = a + b*p.gflop
			fmt.Fprintf(t, "%d\t%.4g\t%.4g\t%.4g\t%+.0f %%\t\n", p.size, p.gflop, p.milliseconds, p.fit, 100*(p.milliseconds/p.fit-1))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// drawScaling draws the times and the lines, both axes logarithmic.
func drawScaling(path string, info backend.Info, points [][]scalingPoint) error {
	p := plot.New()
	p.Title.Text = "a training step of the mlp on " + info.String()
	p.X.Label.Text, p.Y.Label.Text = "GFLOP", "ms"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, ps := range points {
		var measured, line plotter.XYs
		for _, q := range ps {
			measured = append(measured, plotter.XY{X: q.gflop, Y: q.milliseconds})
			line = append(line, plotter.XY{X: q.gflop, Y: q.fit})
		}
		dots, err := plotter.NewScatter(measured)
		if err != nil {
			return err
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return err
		}
		dots.Color, dots.Shape, l.Color = plotutil.Color(i), plotutil.Shape(i), plotutil.Color(i)
		p.Add(l, dots)
		sizes := sweeps[i].sizes
		p.Legend.Add(fmt.Sprintf("%s %d to %d", sweeps[i].name, sizes[0], sizes[len(sizes)-1]), dots, l)
	}
	img, err := p.WriterTo(7*vg.Inch, 5*vg.Inch, "png")
	if err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error {
		_, err := img.WriteTo(w)
		return err
	})
}
