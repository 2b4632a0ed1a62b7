package data_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anygpu/anygpu/train/data"
)

// slow is a dataset of its indices; some fail.
type slow struct {
	n     int
	delay time.Duration
	bad   map[int]bool
}

var errBad = errors.New("bad sample")

func (s slow) Len() int { return s.n }

func (s slow) At(i int) (int, error) {
	time.Sleep(s.delay)
	switch {
	case s.bad[i] && i%2 == 0:
		return 0, errBad
	case s.bad[i]:
		panic("worse")
	}
	return i, nil
}

func same(s []int) ([]int, error) { return s, nil }

// TestWorkers: the batches and their order, random changes included, do not depend on the number of workers.
func TestWorkers(t *testing.T) {
	defer goleak.VerifyNone(t)
	read := func(workers, first int) [][]int {
		l := data.NewLoaderOf(slow{n: 50}, data.LoaderConfig{BatchSize: 4, Shuffle: true, Seed: 9, Workers: workers}, same).
			Transform(func(r *rand.Rand, s int) (int, error) { return s + 100*r.IntN(1000), nil })
		var out [][]int
		for b, err := range l.EpochFrom(2, first) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b)
		}
		return out
	}
	want := read(1, 0)
	if len(want) != 13 {
		t.Errorf("%d batches", len(want))
	}
	for _, workers := range []int{2, 7} {
		for _, first := range []int{0, 5, 13} {
			if got := read(workers, first); fmt.Sprint(got) != fmt.Sprint(want[first:]) {
				t.Errorf("%d workers from batch %d: %v, want %v", workers, first, got, want[first:])
			}
		}
	}
	// Leaving the loop ends the workers.
	for range data.NewLoaderOf(slow{n: 50}, data.LoaderConfig{Workers: 4}, same).Epoch(0) {
		break
	}
}

// TestWorkersKeepUp: with four workers, samples that take 5 ms each do not hold up a consumer that takes as long as four of them
// do together. The clock is synctest's: it moves when every goroutine waits, so the machine's load does not matter.
func TestWorkersKeepUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := data.NewLoaderOf(slow{n: 400, delay: 5 * time.Millisecond}, data.LoaderConfig{BatchSize: 4, Workers: 4, Prefetch: 8}, same)
		begin := time.Now()
		var busy time.Duration
		for _, err := range l.Epoch(0) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // a batch takes a worker as long
			busy += 20 * time.Millisecond
		}
		total := time.Since(begin)
		if share := (total - busy).Seconds() / total.Seconds(); share > 0.05 {
			t.Errorf("the consumer waited %.1f %% of %v, want at most 5", 100*share, total)
		}
	})
}

func TestFailingSamples(t *testing.T) {
	ds := slow{n: 8, bad: map[int]bool{2: true, 5: true}}
	read := func(cfg data.LoaderConfig) (out []int, l *data.Loader[int, []int], err error) {
		cfg.BatchSize = 4
		l = data.NewLoaderOf(ds, cfg, same)
		for b, err := range l.Epoch(0) {
			if err != nil {
				return out, l, err
			}
			out = append(out, b...)
		}
		return out, l, nil
	}
	_, _, err := read(data.LoaderConfig{})
	if !errors.Is(err, errBad) || !strings.Contains(err.Error(), "sample 2: bad sample") {
		t.Errorf("error %v", err)
	}
	out, l, err := read(data.LoaderConfig{SkipErrors: true, Workers: 2})
	if err != nil || !slices.Equal(out, []int{0, 1, 3, 4, 6, 7}) || l.Skipped() != 2 {
		t.Errorf("%v, %d skipped, %v", out, l.Skipped(), err)
	}
	ds.bad = map[int]bool{0: true, 1: true, 2: true, 3: true}
	if _, _, err := read(data.LoaderConfig{SkipErrors: true}); err == nil || !strings.Contains(err.Error(), "every sample failed; the last: sample 3: panic: worse") {
		t.Errorf("error %v", err)
	}
	if _, _, err := read(data.LoaderConfig{Workers: -1}); err == nil {
		t.Error("-1 workers were accepted")
	}
}

func TestWeightedSampler(t *testing.T) {
	s, err := data.NewWeightedSampler([]float64{1, 0, 3}, 40000, 7)
	if err != nil {
		t.Fatal(err)
	}
	count := [3]int{}
	for _, i := range s.Order(0) {
		count[i]++
	}
	if count[1] != 0 || count[0] < 9700 || count[0] > 10300 { // 10000 expected, a deviation is 87
		t.Errorf("counts %v", count)
	}
	if !slices.Equal(s.Order(3), s.Order(3)) || slices.Equal(s.Order(0), s.Order(1)) {
		t.Error("the order does not depend on the epoch only")
	}
	for _, w := range [][]float64{{}, {0}, {-1, 2}} {
		if _, err := data.NewWeightedSampler(w, 1, 0); err == nil {
			t.Errorf("weights %v were accepted", w)
		}
	}
	l := data.NewLoaderOf(slow{n: 3}, data.LoaderConfig{BatchSize: 10, Sampler: s}, same)
	if l.Steps() != 4000 {
		t.Errorf("%d steps", l.Steps())
	}
}

func TestDistributedSampler(t *testing.T) {
	for _, drop := range []bool{false, true} {
		seen := map[int]int{}
		for rank := range 3 {
			s, err := data.NewDistributedSampler(data.Distributed{Samples: 10, Rank: rank, World: 3, Shuffle: true, Seed: 1, DropLast: drop})
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{false: 4, true: 3}[drop]; s.Len() != want || len(s.Order(0)) != want {
				t.Errorf("rank %d has %d samples, want %d", rank, s.Len(), want)
			}
			for _, i := range s.Order(0) {
				seen[i]++
			}
		}
		if want := map[bool]int{false: 10, true: 9}[drop]; len(seen) != want {
			t.Errorf("drop last %t: %d samples are visited, want %d", drop, len(seen), want)
		}
	}
	if _, err := data.NewDistributedSampler(data.Distributed{Samples: 1, Rank: 2, World: 2}); err == nil {
		t.Error("rank 2 of 2 was accepted")
	}
}

func TestTransforms(t *testing.T) {
	e := data.Example{X: []float32{1, 2, 3, 4, 5, 6}, Shape: []int{1, 2, 3}, Y: 5}
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name  string
		f     data.Transform
		want  []float32
		shape []int
	}{
		{"normalise", data.Normalize([]float32{1}, []float32{2}), []float32{0, 0.5, 1, 1.5, 2, 2.5}, []int{1, 2, 3}},
		{"flip", data.RandomFlip(1), []float32{3, 2, 1, 6, 5, 4}, []int{1, 2, 3}},
		{"no flip", data.RandomFlip(0), []float32{1, 2, 3, 4, 5, 6}, []int{1, 2, 3}},
		{"centre", data.CenterCrop(2, 1), []float32{2, 5}, []int{1, 2, 1}},
		{"whole", data.RandomCrop(2, 3, 0), []float32{1, 2, 3, 4, 5, 6}, []int{1, 2, 3}},
		{"padded", data.RandomCrop(4, 5, 1), []float32{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0}, []int{1, 4, 5}},
		{"two", data.Compose(data.RandomFlip(1), data.CenterCrop(1, 3)), []float32{3, 2, 1}, []int{1, 1, 3}},
	} {
		got, err := c.f(r, e)
		if err != nil || !slices.Equal(got.X, c.want) || !slices.Equal(got.Shape, c.shape) || got.Y != 5 {
			t.Errorf("%s: %v %v, want %v", c.name, got, err, c.want)
		}
	}
	if !slices.Equal(e.X, []float32{1, 2, 3, 4, 5, 6}) {
		t.Errorf("a transform changed its sample: %v", e.X)
	}
	places := map[string]bool{}
	for range 200 {
		got, err := data.RandomCrop(2, 2, 0)(r, e)
		if err != nil {
			t.Fatal(err)
		}
		places[fmt.Sprint(got.X)] = true
	}
	if len(places) != 2 {
		t.Errorf("%d places, want 2", len(places))
	}
	for _, f := range []data.Transform{data.RandomCrop(5, 5, 0), data.Normalize([]float32{1, 2}, []float32{1, 1}), data.Normalize([]float32{1}, []float32{0}), data.CenterCrop(0, 1)} {
		if _, err := f(r, e); err == nil {
			t.Error("a transform that does not fit gave no error")
		}
	}
}

func ExampleNewWindows() {
	v := data.NewVocabulary("hello")
	tokens, _ := v.Encode("hello")
	w, _ := data.NewWindows(tokens, 3, 1)
	s, _ := w.At(1)
	fmt.Println(v.Decode(s.X), v.Decode(s.Y))
	// Output: ell llo
}
