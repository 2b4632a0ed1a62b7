// Gradients draws why float16 needs a gradient scaler: the magnitudes of one gradient in float32, in float16 without and with a scale, and
// in bfloat16. A small classifier is trained in float32 first: the better it is, the smaller its gradients are.
//
// Usage: go run ./docs/examples/gradients [-device NAME] [-epochs N] [-o FILE.png]
package main

import (
	"flag"
	"fmt"
	"image/color"
	"log"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

func main() {
	name := flag.String("device", backend.DefaultName(), "a device string")
	epochs := flag.Int("epochs", 10, "passes over the data before the gradient is taken")
	file := flag.String("o", "gradients.png", "the image")
	flag.Parse()
	if err := run(*name, *epochs, *file); err != nil {
		log.Fatal(err)
	}
}

// classifier is two halves of a network; the gradient for what flows between them is drawn.
type classifier struct{ first, second *nn.Sequential }

func run(name string, epochs int, file string) error {
	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()
	images, _, err := data.FashionMNIST("")
	if err != nil {
		return err
	}
	gen := nn.WithGenerator(tensor.NewGenerator(0))
	c := classifier{nn.NewSequential(nn.NewFlatten(), nn.NewLinear(784, 128, gen), nn.NewGELU(), nn.NewLinear(128, 128, gen), nn.NewGELU()),
		nn.NewSequential(nn.NewLinear(128, 10, gen))}
	model := nn.NewSequential(c.first, c.second)
	defer model.Free()
	if err := model.To(dev); err != nil {
		return err
	}
	if err := learn(dev, model, images, epochs); err != nil {
		return err
	}

	var pictures []*plot.Plot
	for _, way := range []struct {
		title  string
		dtype  tensor.DType
		scaled bool
	}{{"float32", tensor.Float32, false}, {"float16", tensor.Float16, false}, {"float16, loss times 65536", tensor.Float16, true}, {"bfloat16", tensor.BFloat16, false}} {
		g, err := c.gradient(dev, images, way.dtype, amp.NewGradScaler(amp.GradScalerConfig{Disabled: !way.scaled}))
		if err != nil {
			return err
		}
		h := count(g)
		fmt.Printf("%-25s %4.1f %% zero, %4.1f %% with fewer than all bits in float16, %.1f %% infinite\n", way.title, h.percent(h.zero), h.percent(h.small()), h.percent(h.infinite))
		pictures = append(pictures, h.plot(way.title))
	}
	if err := save(pictures, file); err != nil {
		return err
	}
	fmt.Println("drawn to", file)
	return nil
}

func learn(dev backend.Device, model *nn.Sequential, images data.Dataset[data.Example], epochs int) error {
	opt := optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 2e-3})
	defer opt.Free()
	for epoch := range epochs {
		for batch, err := range data.NewLoader(images, data.LoaderConfig{BatchSize: 128, Shuffle: true}).Epoch(epoch) {
			if err != nil {
				return err
			}
			s := tensor.NewScope(dev)
			opt.ZeroGrad()
			nn.CrossEntropy(model.Forward(s.To(batch.X)), s.To(batch.Y)).Backward()
			opt.Step()
			if err := s.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// gradient returns the gradient of the loss of 512 images for the activations between the halves, as the backward pass has it.
func (c classifier) gradient(dev backend.Device, images data.Dataset[data.Example], dtype tensor.DType, scaler *amp.GradScaler) ([]float64, error) {
	for batch, err := range data.NewLoader(images, data.LoaderConfig{BatchSize: 512}).Epoch(0) {
		if err != nil {
			return nil, err
		}
		s := tensor.NewScope(dev)
		defer s.Close()
		var hidden, loss *tensor.Tensor
		amp.Autocast(s, func() {
			hidden = c.first.Forward(s.To(batch.X))
			loss = nn.CrossEntropy(c.second.Forward(hidden), s.To(batch.Y))
		}, amp.DType(dtype), amp.Enabled(dtype != tensor.Float32))
		g, err := tensor.Grad([]*tensor.Tensor{scaler.Scale(loss)}, []*tensor.Tensor{hidden})
		if err != nil {
			return nil, err
		}
		return g[0].Detach().CPU().Float64s()
	}
	return nil, fmt.Errorf("there are no images")
}

// The powers of two of the histogram, and those of float16: its smallest number, its smallest with all 11 bits, and the first past its largest.
const (
	low, high                        = -44, 18
	f16Smallest, f16Normal, f16Above = -24, -14, 16
)

// histogram counts magnitudes by powers of two.
type histogram struct {
	zero, infinite, all int
	counts              [high - low]int // of [2^(low+i), 2^(low+i+1)); the first takes all below
}

func count(vs []float64) histogram {
	h := histogram{all: len(vs)}
	for _, v := range vs {
		switch {
		case v == 0:
			h.zero++
		case math.IsInf(v, 0) || math.IsNaN(v):
			h.infinite++
		default:
			h.counts[min(max(math.Ilogb(v)-low, 0), high-low-1)]++
		}
	}
	return h
}

// small counts what is not zero and below float16's smallest number with all bits.
func (h histogram) small() int {
	n := 0
	for _, c := range h.counts[:f16Normal-low] {
		n += c
	}
	return n
}

func (h histogram) percent(n int) float64 { return 100 * float64(n) / float64(h.all) }

// plot draws the histogram; zeros are a bar at the left end.
func (h histogram) plot(title string) *plot.Plot {
	const tallest = 25 // percent; the same for all pictures, so that they can be compared
	p := plot.New()
	p.Title.Text = title
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low-4, high, 0, tallest
	p.X.Tick.Marker = plot.ConstantTicks{{Value: low - 2.5, Label: "0"}, {Value: -40, Label: "2^-40"}, {Value: -32, Label: "2^-32"}, {Value: f16Smallest, Label: "2^-24"},
		{Value: f16Normal, Label: "2^-14"}, {Value: -4, Label: "2^-4"}, {Value: 6, Label: "2^6"}, {Value: f16Above, Label: "2^16"}}
	p.Y.Label.Text = "percent"
	// What float16 has with all its bits, and with fewer.
	for _, zone := range []struct {
		from, to float64
		shade    uint8
	}{{f16Normal, f16Above, 225}, {f16Smallest, f16Normal, 240}} {
		p.Add(box(zone.from, zone.to, tallest, color.Gray{zone.shade}))
	}
	red, blue := color.NRGBA{200, 40, 40, 255}, color.NRGBA{40, 90, 170, 255}
	p.Add(box(low-3.5, low-1.5, h.percent(h.zero), red))
	for i, n := range h.counts {
		if n > 0 {
			p.Add(box(float64(low+i)+0.1, float64(low+i)+0.9, h.percent(n), blue))
		}
	}
	return p
}

// box is a filled rectangle that stands on the axis.
func box(from, to, height float64, c color.Color) *plotter.Polygon {
	p, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: 0}, {X: to, Y: 0}, {X: to, Y: height}, {X: from, Y: height}})
	if err != nil {
		log.Fatal(err) // a coordinate is not finite: a fault of this program
	}
	p.Color, p.LineStyle.Width = c, 0
	return p
}

// save draws the pictures one above the other.
func save(pictures []*plot.Plot, file string) error {
	pictures[len(pictures)-1].X.Label.Text = "magnitude of an element; dark grey: float16 has it with all its bits; light grey: with fewer; red: zero"
	img := vgimg.New(18*vg.Centimeter, vg.Length(len(pictures))*5*vg.Centimeter)
	var rows [][]*plot.Plot
	for _, p := range pictures {
		rows = append(rows, []*plot.Plot{p})
	}
	canvases := plot.Align(rows, draw.Tiles{Rows: len(pictures), Cols: 1, PadY: 4 * vg.Millimeter, PadRight: 6 * vg.Millimeter, PadTop: 2 * vg.Millimeter}, draw.New(img))
	for i, p := range pictures {
		p.Draw(canvases[i][0])
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
