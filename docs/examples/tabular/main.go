// Tabular predicts a column of a CSV file from the others: numbers in, a number out.
//
// Usage: go run ./docs/examples/tabular [-device NAME] [-data FILE.csv -target COLUMN] [-epochs N]
// Without -data it makes a table of houses and predicts their prices.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

func main() {
	name := flag.String("device", backend.DefaultName(), "a device string")
	file := flag.String("data", "", "a CSV file with a header and numbers; a made table of houses if empty")
	target := flag.String("target", "price", "the column to predict")
	epochs := flag.Int("epochs", 30, "passes over the data")
	flag.Parse()
	if err := run(*name, *file, *target, *epochs); err != nil {
		log.Fatal(err)
	}
}

func run(name, file, target string, epochs int) error {
	var source io.Reader = strings.NewReader(houses())
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		source = f
	}
	table, err := data.ReadCSV(source, data.CSVOptions{})
	if err != nil {
		return err
	}
	unit := standardize(table)[target] // of the column to predict, to tell errors in
	all, err := table.Pairs(target)
	if err != nil {
		return err
	}
	// The last fifth is for testing. Shuffle a file that has an order.
	cut := all.Len() * 4 / 5
	trainSet, err := data.Range(all, 0, cut)
	if err != nil {
		return err
	}
	testSet, err := data.Range(all, cut, all.Len())
	if err != nil {
		return err
	}

	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()
	model := nn.NewSequential(nn.NewLinear(len(table.Columns)-1, 32), nn.NewReLU(), nn.NewLinear(32, 32), nn.NewReLU(), nn.NewLinear(32, 1))
	defer model.Free()
	if err := model.To(dev); err != nil {
		return err
	}
	opt := optim.NewAdamW(model.Parameters(), optim.AdamConfig{LR: 5e-3})
	defer opt.Free()
	load := func(set data.Dataset[data.Pair], shuffle bool) *data.Loader[data.Pair, data.Batch] {
		return data.NewLoaderOf(set, data.LoaderConfig{BatchSize: min(32, set.Len()), Shuffle: shuffle}, data.CollatePairs)
	}
	loop := &train.Loop[data.Batch]{
		Model: model, Optimizer: opt, Device: dev, Data: load(trainSet, true), Validation: load(testSet, false), Epochs: epochs,
		Forward: func(s *tensor.Scope, b data.Batch) (output, target *tensor.Tensor) {
			return model.Forward(s.To(b.X)), s.To(b.Y)
		},
		Loss:    nn.MSELoss,
		Metrics: []train.Metric{train.Mean("error", nn.L1Loss)},
	}
	history, err := loop.Run(context.Background())
	if err != nil {
		return err
	}
	last := history.Epochs[len(history.Epochs)-1]
	fmt.Printf("%d rows; the mean error of %s in the test rows is %.4g, %.1f %% of the column's deviation\n",
		table.Rows(), target, last.Metrics["error"]*unit, 100*last.Metrics["error"])
	return nil
}

// standardize gives every column mean 0 and deviation 1, and returns the deviations that the columns had.
func standardize(t *data.Table) map[string]float64 {
	deviations := map[string]float64{}
	for c, name := range t.Columns {
		column := make([]float64, t.Rows())
		for r := range column {
			column[r] = float64(t.Values[r*len(t.Columns)+c])
		}
		mean, std := stat.MeanStdDev(column, nil)
		if std == 0 || math.IsNaN(std) {
			std = 1
		}
		deviations[name] = std
		for r, v := range column {
			t.Values[r*len(t.Columns)+c] = float32((v - mean) / std)
		}
	}
	return deviations
}

// houses returns a table with prices that follow from the other columns, and some noise.
func houses() string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	fmt.Fprintln(&b, "area,rooms,age,distance,price")
	for range 600 {
		area, rooms, age, distance := 40+160*r.Float64(), 1+r.IntN(6), 80*r.Float64(), 30*r.Float64()
		price := area*(2000+3000*math.Exp(-distance/8)) + 8000*float64(rooms) - 500*age + 10000*r.NormFloat64()
		fmt.Fprintf(&b, "%.1f,%d,%.0f,%.2f,%.0f\n", area, rooms, age, distance, price)
	}
	return b.String()
}
