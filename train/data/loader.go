package data

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/anygpu/anygpu/tensor"
)

// Batch is a batch of examples on the CPU: move its tensors to the device that trains.
type Batch struct {
	X *tensor.Tensor // float32 [n, …sample shape]; int64 for token sequences
	Y *tensor.Tensor // int64 [n], or [n, length] for token sequences; float32 [n, targets] for regression
}

// Len returns the number of examples in the batch.
func (b Batch) Len() int { return b.Y.Size(0) }

// LoaderConfig says how a Loader makes batches. The zero value of a field is its default.
type LoaderConfig struct {
	BatchSize int    // 1 if 0
	Shuffle   bool   // visit the samples in a random order, another one each epoch
	Seed      uint64 // of the order
	DropLast  bool   // leave out a last batch that is not full
	Prefetch  int    // batches prepared ahead; 2 if 0, none if negative

	Workers int     // goroutines that prepare batches; 1 if 0. The batches and their order do not depend on it
	Sampler Sampler // which samples an epoch visits, in which order; Shuffle and Seed then do not choose it
	// SkipErrors leaves out samples that fail, and counts them (Skipped); a batch without any other is still an error. Without it
	// the first failing sample ends the epoch with an error that has its index.
	SkipErrors bool
}

// Loader makes batches of B out of samples of S.
type Loader[S, B any] struct {
	ds      Dataset[S]
	cfg     LoaderConfig
	collate func([]S) (B, error)
	change  func(r *rand.Rand, s S) (S, error)
	skipped atomic.Int64
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

// Transform makes the loader change each sample before it is collated, such as by a random crop, and returns the loader. The random
// numbers depend on the seed, the epoch and the sample's place in it, not on the workers. f must not change the sample's memory.
func (l *Loader[S, B]) Transform(f func(r *rand.Rand, s S) (S, error)) *Loader[S, B] {
	l.change = f
	return l
}

// Skipped returns how many failing samples were left out so far (SkipErrors).
func (l *Loader[S, B]) Skipped() int { return int(l.skipped.Load()) }

// samples is the number of samples an epoch visits.
func (l *Loader[S, B]) samples() int {
	if l.cfg.Sampler != nil {
		return l.cfg.Sampler.Len()
	}
	return l.ds.Len()
}

// Steps returns the number of batches in an epoch.
func (l *Loader[S, B]) Steps() int {
	n, b := l.samples(), l.cfg.BatchSize
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
	case l.cfg.Workers < 0:
		return fmt.Errorf("data: %d workers; there must be at least 1, or 0 for the default", l.cfg.Workers)
	case l.cfg.Sampler != nil && l.samples() == 0:
		return fmt.Errorf("data: the sampler gives no samples")
	case l.cfg.BatchSize > l.samples():
		return fmt.Errorf("data: batch size %d is larger than the dataset of %d samples; choose at most %d", l.cfg.BatchSize, l.samples(), l.samples())
	}
	return nil
}

// Order returns the order in which epoch visits the samples.
func (l *Loader[S, B]) Order(epoch int) []int {
	if l.cfg.Sampler != nil {
		return l.cfg.Sampler.Order(epoch)
	}
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
				b, err := l.batch(epoch, order, step)
				if !yield(b, err) || err != nil {
					return
				}
			}
			return
		}
		l.prefetch(epoch, first, order, yield)
	}
}

// prefetch yields batches that workers prepare ahead, in order.
func (l *Loader[S, B]) prefetch(epoch, first int, order []int, yield func(B, error) bool) {
	type result struct {
		batch B
		err   error
	}
	type job struct {
		step int
		done chan result // of capacity 1: a worker never waits
	}
	workers := max(l.cfg.Workers, 1)
	queue := make(chan chan result, max(l.cfg.Prefetch, workers))
	jobs := make(chan job)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(queue)
		defer close(jobs)
		for step := first; step < l.Steps(); step++ {
			done := make(chan result, 1)
			select {
			case queue <- done:
			case <-stop:
				return
			}
			select {
			case jobs <- job{step, done}:
			case <-stop:
				return
			}
		}
	})
	for range workers {
		wg.Go(func() {
			for j := range jobs {
				b, err := l.batch(epoch, order, j.step)
				j.done <- result{b, err}
			}
		})
	}
	defer wg.Wait()
	defer close(stop)
	for done := range queue {
		r := <-done
		if !yield(r.batch, r.err) || r.err != nil {
			return
		}
	}
}

func (l *Loader[S, B]) batch(epoch int, order []int, step int) (b B, err error) {
	lo := step * l.cfg.BatchSize
	indices := order[lo:min(lo+l.cfg.BatchSize, len(order))]
	samples := make([]S, 0, len(indices))
	var failure error
	for i, index := range indices {
		s, err := l.sample(epoch, lo+i, index)
		switch {
		case err == nil:
			samples = append(samples, s)
		case !l.cfg.SkipErrors:
			return b, fmt.Errorf("data: sample %d: %w", index, err)
		default:
			l.skipped.Add(1)
			failure = fmt.Errorf("sample %d: %w", index, err)
		}
	}
	if len(samples) == 0 {
		return b, fmt.Errorf("data: batch %d: every sample failed; the last: %w", step, failure)
	}
	if b, err = l.collate(samples); err != nil {
		return b, fmt.Errorf("data: batch %d, samples %v: %w", step, indices[:min(len(indices), 8)], err)
	}
	return b, nil
}

// sample reads and changes the sample at a place of an epoch. A panic of the dataset is an error: it would end the program from a
// goroutine that nobody can guard.
func (l *Loader[S, B]) sample(epoch, place, index int) (s S, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if s, err = l.ds.At(index); err != nil || l.change == nil {
		return s, err
	}
	return l.change(rand.New(rand.NewPCG(l.cfg.Seed^0x9e3779b97f4a7c15, uint64(epoch)<<32|uint64(place))), s)
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
