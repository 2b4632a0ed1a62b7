package data

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// Sampler chooses the samples of an epoch, by index.
type Sampler interface {
	// Len returns how many samples an epoch has.
	Len() int
	// Order returns their indices; it depends on the epoch only.
	Order(epoch int) []int
}

type weighted struct {
	sums []float64 // of the weights up to each sample
	n    int
	seed uint64
}

// NewWeightedSampler draws n samples an epoch with replacement, each with a probability in proportion to its weight: for classes of
// unequal sizes. Weights are finite and not negative, and not all 0.
func NewWeightedSampler(weights []float64, n int, seed uint64) (Sampler, error) {
	w := &weighted{n: n, seed: seed}
	sum := 0.0
	for i, v := range weights {
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("data: weight %d is %v; it must be finite and not negative", i, v)
		}
		sum += v
		w.sums = append(w.sums, sum)
	}
	if !(sum > 0) || math.IsInf(sum, 0) || n < 1 {
		return nil, fmt.Errorf("data: weighted sampler: weights of sum %v for %d samples", sum, n)
	}
	return w, nil
}

func (w *weighted) Len() int { return w.n }

func (w *weighted) Order(epoch int) []int {
	r := rand.New(rand.NewPCG(w.seed, uint64(epoch)))
	total := w.sums[len(w.sums)-1]
	out := make([]int, w.n)
	for i := range out {
		v := r.Float64() * total
		// The first whose sum is beyond v: samples of weight 0 are never it.
		at := sort.Search(len(w.sums), func(j int) bool { return w.sums[j] > v })
		out[i] = min(at, len(w.sums)-1)
	}
	return out
}

// Distributed says how a dataset of Samples samples is shared by World processes, of which this is number Rank. Each gets the same
// number of them: samples at the front are taken twice to fill up, or with DropLast those at the end left out. (torch's
// DistributedSampler)
type Distributed struct {
	Samples, Rank, World int
	Shuffle              bool
	Seed                 uint64 // equal in all processes
	DropLast             bool
}

// NewDistributedSampler returns the sampler of one rank.
func NewDistributedSampler(d Distributed) (Sampler, error) {
	if d.World < 1 || d.Rank < 0 || d.Rank >= d.World || d.Samples < 1 {
		return nil, fmt.Errorf("data: rank %d of %d with %d samples; ranks are 0 to %d", d.Rank, d.World, d.Samples, d.World-1)
	}
	return d, nil
}

// Len returns the number of samples of one rank.
func (d Distributed) Len() int {
	if d.DropLast {
		return d.Samples / d.World
	}
	return (d.Samples + d.World - 1) / d.World
}

// Order returns the rank's samples: every World-th of the epoch's order.
func (d Distributed) Order(epoch int) []int {
	all := make([]int, d.Samples)
	for i := range all {
		all[i] = i
	}
	if d.Shuffle {
		r := rand.New(rand.NewPCG(d.Seed, uint64(epoch)))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	out := make([]int, d.Len())
	for i := range out {
		out[i] = all[(d.Rank+i*d.World)%d.Samples]
	}
	return out
}
