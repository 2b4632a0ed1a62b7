package data

import (
	"fmt"

	"github.com/anygpu/anygpu/tensor"
)

// Pair is a sample of regression: features and what is to be predicted from them.
type Pair struct{ X, Y []float32 }

// Pairs is a dataset in memory for regression.
type Pairs struct {
	x, y              []float32
	features, targets int
}

// Pairs returns a dataset that predicts columns, in the order of their names, from all others. NewLoaderOf with [CollatePairs] makes its
// batches.
func (t *Table) Pairs(targets ...string) (*Pairs, error) {
	x, y, err := t.split(targets)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 || len(targets) == len(t.Columns) {
		return nil, fmt.Errorf("data: %d of %d columns are to be predicted; there must be at least one, and one to predict from", len(targets), len(t.Columns))
	}
	return &Pairs{x, y, len(t.Columns) - len(targets), len(targets)}, nil
}

// Len returns the number of samples.
func (p *Pairs) Len() int { return len(p.x) / p.features }

// At returns sample i; its slices are parts of the dataset's memory and must not be changed.
func (p *Pairs) At(i int) (Pair, error) {
	if err := checkIndex(i, p.Len()); err != nil {
		return Pair{}, err
	}
	return Pair{p.x[i*p.features : (i+1)*p.features], p.y[i*p.targets : (i+1)*p.targets]}, nil
}

// CollatePairs stacks samples of one size: X is float32 [n, features], Y float32 [n, targets].
func CollatePairs(samples []Pair) (Batch, error) {
	if len(samples) == 0 {
		return Batch{}, fmt.Errorf("no samples")
	}
	features, targets := len(samples[0].X), len(samples[0].Y)
	x, y := make([]float32, 0, len(samples)*features), make([]float32, 0, len(samples)*targets)
	for i, s := range samples {
		if len(s.X) != features || len(s.Y) != targets {
			return Batch{}, fmt.Errorf("sample %d of the batch has %d features and %d targets, the first has %d and %d", i, len(s.X), len(s.Y), features, targets)
		}
		x, y = append(x, s.X...), append(y, s.Y...)
	}
	b := Batch{X: tensor.FromFloat32s(x, len(samples), features), Y: tensor.FromFloat32s(y, len(samples), targets)}
	if err := b.X.Err(); err != nil {
		return Batch{}, err
	}
	return b, b.Y.Err()
}
