package main

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// curvePoints is about how many losses a row's curve has: each is read from the device, which waits for it.
const curvePoints = 200

// plotRows draws each row's losses as a curve.
func plotRows(path string, rows []demoRow) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "step", "loss"
	p.Add(plotter.NewGrid())
	for i, r := range rows {
		var points plotter.XYs
		for _, at := range r.curve {
			if !math.IsNaN(at.loss) && !math.IsInf(at.loss, 0) {
				points = append(points, plotter.XY{X: float64(at.step + 1), Y: at.loss})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("--plot: %s, %s: %w", r.Device, r.Precision, err)
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i)
		p.Add(line)
		p.Legend.Add(r.Device+" "+r.Precision, line)
	}
	p.Legend.Top = true
	img := vgimg.New(16*vg.Centimeter, 11*vg.Centimeter)
	p.Draw(draw.New(img))
	return writeFile(path, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(w)
		return err
	})
}
