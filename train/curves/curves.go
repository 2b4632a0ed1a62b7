// Package curves draws the curves of a training run as a PNG image.
//
// # Overview
//
// [Observer] makes a train.Loop rewrite the image after each epoch; [Draw] draws what a run's history has:
//
//	loop.Observers = append(loop.Observers, curves.Observer("curves.png"))
//
// Losses share one plot, the other metrics have another below it.
package curves

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/anygpu/anygpu/train"
)

// Draw writes a PNG of 16 by 16 centimetres with the curves of the epochs' losses and metrics. Values that are not finite are
// left out.
func Draw(w io.Writer, epochs []train.EpochInfo) error {
	series := map[string]plotter.XYs{}
	add := func(name string, epoch int, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			series[name] = append(series[name], plotter.XY{X: float64(epoch + 1), Y: v})
		}
	}
	for _, e := range epochs {
		add("loss", e.Epoch, e.Loss)
		for name, v := range e.Metrics {
			add(name, e.Epoch, v)
		}
	}
	var losses, metrics []string
	for name := range series {
		if strings.HasSuffix(name, "loss") {
			losses = append(losses, name)
		} else {
			metrics = append(metrics, name)
		}
	}
	var rows [][]*plot.Plot
	for _, group := range []struct {
		title string
		names []string
	}{{"loss", losses}, {"metrics", metrics}} {
		if len(group.names) == 0 {
			continue
		}
		sort.Strings(group.names)
		p := plot.New()
		p.Title.Text, p.X.Label.Text = group.title, "epoch"
		for i, name := range group.names {
			line, points, err := plotter.NewLinePoints(series[name])
			if err != nil {
				return fmt.Errorf("curves: %s: %w", name, err)
			}
			line.Color, points.Color, points.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
			p.Add(line, points)
			p.Legend.Add(name, line, points)
		}
		p.Add(plotter.NewGrid())
		p.Legend.Top = true
		rows = append(rows, []*plot.Plot{p})
	}
	if len(rows) == 0 {
		return fmt.Errorf("curves: there is nothing to draw")
	}
	img := vgimg.New(16*vg.Centimeter, 16*vg.Centimeter)
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadY: 4 * vg.Millimeter}
	canvases := plot.Align(rows, tiles, draw.New(img))
	for i := range rows {
		rows[i][0].Draw(canvases[i][0])
	}
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(w); err != nil {
		return fmt.Errorf("curves: %w", err)
	}
	return nil
}

// Observer returns an observer that writes the curves to a file after each epoch. A resumed run's curves begin where it went on;
// Draw with the whole history after the run has them all.
func Observer(path string) train.Observer { return &observer{path: path} }

type observer struct {
	path   string
	epochs []train.EpochInfo
}

func (o *observer) OnSteps(train.StepInfo) error { return nil }

func (o *observer) OnEpoch(e train.EpochInfo) error {
	o.epochs = append(o.epochs, e)
	return WriteFile(o.path, o.epochs)
}

func (o *observer) OnEnd(error) error { return nil }

// WriteFile draws to a file, which is replaced whole or not at all.
func WriteFile(path string, epochs []train.EpochInfo) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".curves-*")
	if err != nil {
		return fmt.Errorf("curves: %w", err)
	}
	defer os.Remove(f.Name()) // after the rename there is none
	if err := Draw(f, epochs); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return fmt.Errorf("curves: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("curves: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("curves: %w", err)
	}
	return nil
}
