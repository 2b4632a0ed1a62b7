package data

import (
	"fmt"
	"math"
)

// Dataset gives samples by index. At may be called from several goroutines.
type Dataset[S any] interface {
	Len() int
	At(i int) (S, error)
}

// Example is a sample of supervised learning: features and a class.
type Example struct {
	X     []float32
	Shape []int // of X, without the batch dimension
	Y     int64
}

// Subset is a part of a dataset: the samples at Indices, in that order.
type Subset[S any] struct {
	Of      Dataset[S]
	Indices []int
}

// Len returns the number of samples.
func (s Subset[S]) Len() int { return len(s.Indices) }

// At returns sample i of the subset.
func (s Subset[S]) At(i int) (S, error) {
	if err := checkIndex(i, len(s.Indices)); err != nil {
		var zero S
		return zero, err
	}
	return s.Of.At(s.Indices[i])
}

// Range returns the samples from index lo up to but not including hi.
func Range[S any](d Dataset[S], lo, hi int) (Dataset[S], error) {
	if lo < 0 || hi < lo || hi > d.Len() {
		return nil, fmt.Errorf("data: range [%d, %d) of a dataset of %d samples", lo, hi, d.Len())
	}
	indices := make([]int, hi-lo)
	for i := range indices {
		indices[i] = lo + i
	}
	return Subset[S]{Of: d, Indices: indices}, nil
}

func checkIndex(i, n int) error {
	if i < 0 || i >= n {
		return fmt.Errorf("data: sample %d of a dataset of %d samples", i, n)
	}
	return nil
}

// Memory is a dataset in memory.
type Memory struct {
	x       []float32
	shape   []int
	size    int
	y       []int64
	classes int
}

// FromSlices makes a dataset of len(y) samples out of x, which holds their features one after the other, each of the
// given shape. Labels must be in [0, classes). Features must be finite.
func FromSlices(x []float32, shape []int, y []int64, classes int) (*Memory, error) {
	size := 1
	for _, d := range shape {
		if d < 1 {
			return nil, fmt.Errorf("data: sample shape %v: each dimension must be at least 1", shape)
		}
		size *= d
	}
	if len(x) != len(y)*size {
		return nil, fmt.Errorf("data: %d feature values for %d labels of shape %v, expected %d", len(x), len(y), shape, len(y)*size)
	}
	for i, v := range x {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("data: feature %d of sample %d is %v; features must be finite", i%size, i/size, v)
		}
	}
	if err := checkLabels(y, classes); err != nil {
		return nil, err
	}
	return &Memory{x: x, shape: append([]int(nil), shape...), size: size, y: y, classes: classes}, nil
}

// Len returns the number of samples.
func (m *Memory) Len() int { return len(m.y) }

// At returns sample i; its X is a part of the dataset's memory and must not be changed.
func (m *Memory) At(i int) (Example, error) {
	if err := checkIndex(i, len(m.y)); err != nil {
		return Example{}, err
	}
	return Example{X: m.x[i*m.size : (i+1)*m.size], Shape: m.shape, Y: m.y[i]}, nil
}

func checkLabels(y []int64, classes int) error {
	for i, v := range y {
		if v < 0 || v >= int64(classes) {
			return fmt.Errorf("data: label of sample %d is %d; %d classes accept 0 to %d", i, v, classes, classes-1)
		}
	}
	return nil
}
