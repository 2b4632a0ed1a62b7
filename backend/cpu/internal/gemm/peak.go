package gemm

import "time"

// Name returns the instruction set in use.
func Name() string { return sets[0].name }

// Peak measures how many floating-point operations a second one thread does at best, in a loop of nothing but vector
// multiply-adds: the limit of products. It takes about a hundredth of a second, and is 0 where there is no such loop.
func Peak() float64 {
	loop := peakLoops[sets[0]]
	if loop == nil {
		return 0
	}
	const rounds = 100_000
	flops := float64(2*12*rounds) * float64(sets[0].lanes)
	best := time.Hour
	for range 12 {
		start := time.Now()
		loop(rounds)
		best = min(best, time.Since(start))
	}
	return flops / best.Seconds()
}
