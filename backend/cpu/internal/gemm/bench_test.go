package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestPeak(t *testing.T) {
	p := Peak()
	t.Logf("%s: %.0f GFLOP/s on one thread", Name(), p/1e9)
	if p < 0 || p > 0 && p < 1e8 {
		t.Errorf("measured %v FLOP/s", p)
	}
}

func BenchmarkProduct(b *testing.B) {
	peak := Peak()
	bench := func(name string, sh shape, workers int, s *isa) {
		b.Run(name, func(b *testing.B) {
			f := newFixture(rand.New(rand.NewPCG(1, 2)), sh, heap)
			run := func() {
				if err := f.p.run(threads(workers), s); err != nil {
					b.Fatal(err)
				}
			}
			run() // brings the memory that is kept
			b.ReportAllocs()
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				run()
				best = min(best, time.Since(start))
			}
			flops := 2 * float64(sh.m) * float64(sh.n) * float64(sh.k) * float64(sh.batch)
			b.ReportMetric(flops*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			// A busy machine takes time away: the best run tells more.
			b.ReportMetric(flops/1e9/best.Seconds(), "best-GFLOP/s")
			if s == sets[0] && peak > 0 {
				b.ReportMetric(100*flops/peak/float64(workers)/best.Seconds(), "%peak")
			}
		})
	}
	for _, s := range sets {
		for _, n := range []int{256, 512, 1024} {
			if s == plain && n > 256 {
				continue
			}
			for _, workers := range []int{1, 2} {
				bench(fmt.Sprintf("%s/%d/threads=%d", s.name, n, workers), shape{m: n, n: n, k: n, batch: 1}, workers, s)
			}
		}
	}
	best := sets[0]
	bench("transposed/1024", shape{m: 1024, n: 1024, k: 1024, batch: 1, la: columnMajor, lb: columnMajor}, 1, best)
	for _, k := range []Kind{F16, BF16} {
		bench(fmt.Sprintf("kind=%d/1024", k), shape{m: 1024, n: 1024, k: 1024, batch: 1, ka: k, kb: k}, 1, best)
	}
	for _, sh := range []shape{
		{m: 128, n: 512, k: 784, batch: 1, lb: columnMajor}, {m: 512, n: 784, k: 128, batch: 1, la: columnMajor},
		{m: 128, n: 10, k: 784, batch: 1}, {m: 128, n: 10, k: 784, batch: 1, lb: columnMajor}, {m: 784, n: 10, k: 128, batch: 1, la: columnMajor}, {m: 128, n: 784, k: 10, batch: 1},
		{m: 128, n: 128, k: 64, batch: 48, lb: columnMajor}, {m: 128, n: 64, k: 128, batch: 48},
		{m: 16, n: 16, k: 16, batch: 1}, {m: 64, n: 64, k: 64, batch: 1},
		{m: 1, n: 1024, k: 1024, batch: 1}, {m: 1, n: 1024, k: 1024, batch: 1, lb: columnMajor}, {m: 8, n: 1024, k: 1024, batch: 1}, {m: 8, n: 1024, k: 1024, batch: 1, lb: columnMajor},
		{m: 1024, n: 1, k: 1024, batch: 1}, {m: 1024, n: 1, k: 1024, batch: 1, la: columnMajor},
	} {
		bench("shape/"+sh.String(), sh, 1, best)
	}
}
