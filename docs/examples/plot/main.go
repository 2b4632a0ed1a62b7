// Plot brings results back to Go's memory and draws them. A tensor of a GPU has no Go slice: CPU copies it first, as in PyTorch's
//
//	plt.plot(y.detach().cpu().numpy())
//
// Usage: go run ./docs/examples/plot [-device NAME] [-o FILE.png]
package main

import (
	"flag"
	"fmt"
	"log"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

func main() {
	name := flag.String("device", backend.DefaultName(), "a device string")
	file := flag.String("o", "fit.png", "the image")
	steps := flag.Int("steps", 500, "optimizer steps")
	flag.Parse()
	if err := run(*name, *file, *steps); err != nil {
		log.Fatal(err)
	}
}

func run(name, file string, steps int) error {
	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()

	// A small network learns a sine.
	data := tensor.NewScope(dev)
	defer data.Close()
	x := data.To(tensor.Linspace(tensor.CPU(), tensor.Float32, -3, 3, 200).Reshape(200, 1))
	y := x.Sin()
	model := nn.NewSequential(nn.NewLinear(1, 32), nn.NewTanh(), nn.NewLinear(32, 1))
	defer model.Free()
	if err := model.To(dev); err != nil {
		return err
	}
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 0.01})
	defer opt.Free()
	for range steps {
		s := data.NewScope()
		opt.ZeroGrad()
		nn.MSELoss(model.Forward(s.To(x)), y).Backward()
		opt.Step()
		if err := s.Close(); err != nil {
			return err
		}
	}

	// What is plotted leaves the graph (Detach) and the device (CPU).
	fit, err := model.Forward(x).Detach().CPU().Float64s()
	if err != nil {
		return err
	}
	xs, err := x.CPU().Float64s()
	if err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text = fmt.Sprintf("sin, learned on %s", dev.Info()), "x"
	points := make(plotter.XYs, len(xs))
	for i := range xs {
		points[i] = plotter.XY{X: xs[i], Y: fit[i]}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	p.Add(plotter.NewGrid(), line)
	if err := p.Save(12*vg.Centimeter, 8*vg.Centimeter, file); err != nil {
		return err
	}
	fmt.Println("drawn to", file)
	return nil
}
