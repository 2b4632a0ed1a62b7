package data

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/anygpu/anygpu/tensor"
)

// Batch is a batch of examples on the CPU: move its tensors to the device that trains.
type Batch struct {
	X *tensor.Tensor // float32 [n, …sample shape]
	Y *tensor.Tensor // int64 [n]
}

// Len returns the number of examples in the batch.
func (b Batch) Len() int { return b.Y.Numel() }

// LoaderConfig says how a Loader makes batches. The zero value of a field is its default.
type LoaderConfig struct {
	BatchSize int    // 1 if 0
	Shuffle   bool   // visit the samples in a random order, another one each epoch
	Seed      uint64 // of the order
	DropLast  bool   // leave out a last batch that is not full
	Prefetch  int    // batches prepared ahead; 2 if 0, none if negative
}

// Loader makes batches of B out of samples of S.
type Loader[S, B any] struct {
	ds      Dataset[S]
	cfg     LoaderConfig
	collate func([]S) (B, error)
}

// NewLoader returns a loader of labelled examples. Mistakes in the configuration are returned by the first step of Epoch.
func NewLoader(ds Dataset[Example], cfg LoaderConfig) *Loader[Example, Batch] {
	return NewLoaderOf(ds, cfg, Collate)
}

// NewLoaderOf returns a loader for any kind of sample; collate makes a batch of samples, whose number is at most
// BatchSize.
func NewLoaderOf[S, B any](ds Dataset[S], cfg LoaderConfig, collate func([]S) (B, error)) *Loader[S, B] {
	if cfg.BatchSize == 0 {
		cfg.BatchSize = 1
	}
	if cfg.Prefetch == 0 {
		cfg.Prefetch = 2
	}
	return &Loader[S, B]{ds: ds, cfg: cfg, collate: collate}
}

// Steps returns the number of batches in an epoch.
func (l *Loader[S, B]) Steps() int {
	n, b := l.ds.Len(), l.cfg.BatchSize
	if b < 1 {
		return 0
	}
	if l.cfg.DropLast {
		return n / b
	}
	return (n + b - 1) / b
}

func (l *Loader[S, B]) check() error {
	switch {
	case l.ds.Len() == 0:
		return fmt.Errorf("data: the dataset is empty")
	case l.cfg.BatchSize < 1:
		return fmt.Errorf("data: batch size %d; it must be at least 1", l.cfg.BatchSize)
	case l.cfg.BatchSize > l.ds.Len():
		return fmt.Errorf("data: batch size %d is larger than the dataset of %d samples; choose at most %d", l.cfg.BatchSize, l.ds.Len(), l.ds.Len())
	}
	return nil
}

// Order returns the order in which epoch visits the samples.
func (l *Loader[S, B]) Order(epoch int) []int {
	order := make([]int, l.ds.Len())
	for i := range order {
		order[i] = i
	}
	if l.cfg.Shuffle {
		r := rand.New(rand.NewPCG(l.cfg.Seed, uint64(epoch)))
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// Epoch yields the batches of an epoch (0, 1, …). An error ends it. The next batches are prepared in the background
// while the loop's body runs; the background work has ended when the loop has.
func (l *Loader[S, B]) Epoch(epoch int) iter.Seq2[B, error] { return l.EpochFrom(epoch, 0) }

// EpochFrom is Epoch from a batch on, to go on with an epoch that was interrupted: those before are not read.
func (l *Loader[S, B]) EpochFrom(epoch, first int) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		if err := l.check(); err != nil {
			var none B
			yield(none, err)
			return
		}
		order, first := l.Order(epoch), max(first, 0)
		if l.cfg.Prefetch < 0 {
			for step := first; step < l.Steps(); step++ {
				b, err := l.batch(order, step)
				if !yield(b, err) || err != nil {
					return
				}
			}
			return
		}
		type result struct {
			batch B
			err   error
		}
		results := make(chan result, l.cfg.Prefetch)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer close(results)
			for step := first; step < l.Steps(); step++ {
				b, err := l.batch(order, step)
				select {
				case results <- result{b, err}:
				case <-stop:
					return
				}
				if err != nil {
					return
				}
			}
		}()
		defer wg.Wait()
		defer close(stop)
		for r := range results {
			if !yield(r.batch, r.err) || r.err != nil {
				return
			}
		}
	}
}

func (l *Loader[S, B]) batch(order []int, step int) (b B, err error) {
	lo := step * l.cfg.BatchSize
	indices := order[lo:min(lo+l.cfg.BatchSize, len(order))]
	samples := make([]S, len(indices))
	for i, index := range indices {
		if samples[i], err = l.ds.At(index); err != nil {
			return b, fmt.Errorf("data: sample %d: %w", index, err)
		}
	}
	if b, err = l.collate(samples); err != nil {
		return b, fmt.Errorf("data: batch %d, samples %v: %w", step, indices[:min(len(indices), 8)], err)
	}
	return b, nil
}

// Collate stacks examples of one shape into a batch. Features must be finite.
func Collate(samples []Example) (Batch, error) {
	if len(samples) == 0 {
		return Batch{}, fmt.Errorf("no samples")
	}
	shape, size := samples[0].Shape, len(samples[0].X)
	x := make([]float32, 0, len(samples)*size)
	y := make([]int64, len(samples))
	for i, s := range samples {
		if len(s.X) != size || !equalShapes(s.Shape, shape) {
			return Batch{}, fmt.Errorf("sample %d of the batch has shape %v, the first has %v", i, s.Shape, shape)
		}
		for j, v := range s.X {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return Batch{}, fmt.Errorf("feature %d of sample %d of the batch is %v; features must be finite", j, i, v)
			}
		}
		x = append(x, s.X...)
		y[i] = s.Y
	}
	b := Batch{
		X: tensor.FromFloat32s(x, append([]int{len(samples)}, shape...)...),
		Y: tensor.FromInt64s(y, len(samples)),
	}
	if err := b.X.Err(); err != nil {
		return Batch{}, err
	}
	return b, b.Y.Err()
}

func equalShapes(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
