package data

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func ramp(t *testing.T, n int) *Memory {
	t.Helper()
	x, y := make([]float32, 2*n), make([]int64, n)
	for i := range y {
		x[2*i], x[2*i+1], y[i] = float32(i), -float32(i), int64(i%3)
	}
	m, err := FromSlices(x, []int{2}, y, 3)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func collect(t *testing.T, l *Loader[Example, Batch], epoch int) (firsts []float32, sizes []int) {
	t.Helper()
	for b, err := range l.Epoch(epoch) {
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.X.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(x); i += 2 {
			firsts = append(firsts, x[i])
		}
		sizes = append(sizes, b.Len())
	}
	return firsts, sizes
}

func TestLoader(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ds := ramp(t, 10)
	inOrder, sizes := collect(t, NewLoader(ds, LoaderConfig{BatchSize: 4}), 0)
	if !slices.Equal(sizes, []int{4, 4, 2}) || !slices.IsSorted(inOrder) || len(inOrder) != 10 {
		t.Errorf("sizes %v, order %v", sizes, inOrder)
	}
	if _, sizes = collect(t, NewLoader(ds, LoaderConfig{BatchSize: 4, DropLast: true}), 0); !slices.Equal(sizes, []int{4, 4}) {
		t.Errorf("drop last: sizes %v", sizes)
	}
	shuffled := LoaderConfig{BatchSize: 3, Shuffle: true, Seed: 7}
	a, _ := collect(t, NewLoader(ds, shuffled), 0)
	b, _ := collect(t, NewLoader(ds, shuffled), 0)
	next, _ := collect(t, NewLoader(ds, shuffled), 1)
	shuffled.Prefetch = -1
	c, _ := collect(t, NewLoader(ds, shuffled), 0)
	if !slices.Equal(a, b) || !slices.Equal(a, c) {
		t.Errorf("the same seed and epoch gave %v, %v and without prefetching %v", a, b, c)
	}
	if slices.Equal(a, next) || slices.IsSorted(a) {
		t.Errorf("epoch 0 %v, epoch 1 %v: expected two shuffles", a, next)
	}
	slices.Sort(a)
	if !slices.Equal(a, inOrder) {
		t.Errorf("an epoch visits %v", a)
	}
}

func TestLoaderStopsEarly(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for range NewLoader(ramp(t, 100), LoaderConfig{BatchSize: 2}).Epoch(0) {
		break
	}
}

type failing struct{ Dataset[Example] }

func (f failing) At(i int) (Example, error) {
	if i == 5 {
		return Example{}, errors.New("disk on fire")
	}
	return f.Dataset.At(i)
}

type nanAt struct{ Dataset[Example] }

func (f nanAt) At(i int) (Example, error) {
	return Example{X: []float32{float32(math.NaN())}, Shape: []int{1}}, nil
}

func TestLoaderErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		loader     *Loader[Example, Batch]
	}{
		{"batch too large", "batch size 11 is larger than the dataset of 10 samples", NewLoader(ramp(t, 10), LoaderConfig{BatchSize: 11})},
		{"negative batch", "batch size -1", NewLoader(ramp(t, 10), LoaderConfig{BatchSize: -1})},
		{"empty", "empty", NewLoader(ramp(t, 0), LoaderConfig{})},
		{"sample", "sample 5: disk on fire", NewLoader(failing{ramp(t, 10)}, LoaderConfig{BatchSize: 4})},
		{"NaN", "is NaN; features must be finite", NewLoader(nanAt{ramp(t, 10)}, LoaderConfig{BatchSize: 4})},
	} {
		var last error
		steps := 0
		for _, err := range c.loader.Epoch(0) {
			steps++
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), c.want) {
			t.Errorf("%s: error %v after %d steps, want %q", c.name, last, steps, c.want)
		}
	}
}

func TestFromSlicesErrors(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		want  string
		x     []float32
		shape []int
		y     []int64
	}{
		{"3 feature values for 2 labels", []float32{1, 2, 3}, []int{2}, []int64{0, 1}},
		{"feature 1 of sample 1 is NaN", []float32{1, 2, 3, nan}, []int{2}, []int64{0, 1}},
		{"label of sample 1 is -1; 2 classes accept 0 to 1", []float32{1, 2}, []int{1}, []int64{0, -1}},
		{"each dimension must be at least 1", nil, []int{0}, nil},
	} {
		if _, err := FromSlices(c.x, c.shape, c.y, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
