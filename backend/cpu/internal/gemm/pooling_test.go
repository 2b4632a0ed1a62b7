package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMaxTap holds the kernel against plain Go, on memory that ends with the last element that may be read.
func TestMaxTap(t *testing.T) {
	if maxTap == nil {
		t.Skip("no kernel for this processor")
	}
	kernel := maxTap
	defer func() { maxTap = kernel }()
	r := rand.New(rand.NewPCG(41, 42))
	for range 300 {
		tap := Tap{Rows: 1 + r.IntN(4), N: 1 + r.IntN(50), Stride: 1 + r.IntN(2), First: r.IntN(5)}
		tap.RowStep = tap.N*tap.Stride + r.IntN(5)
		width := tap.N + r.IntN(4)
		image := make([]float32, tap.First+(tap.Rows-1)*tap.RowStep+(tap.N-1)*tap.Stride+1)
		fill := func(v []float32) {
			for i := range v {
				v[i] = [...]float32{float32(r.IntN(5)), float32(math.NaN()), float32(math.Inf(-1)), float32(r.NormFloat64())}[r.IntN(4)]
			}
		}
		fill(image)
		n := (tap.Rows-1)*width + tap.N
		best, place := make([]float32, n), make([]int32, n)
		fill(best)
		for i := range place {
			place[i] = int32(r.IntN(4)) - 1
		}
		fresh := r.IntN(3) == 0
		b2, p2 := slices.Clone(best), slices.Clone(place)
		maxTap = kernel
		MaxTap(best, place, width, image, tap, fresh)
		maxTap = nil
		MaxTap(b2, p2, width, image, tap, fresh)
		for i := range best {
			if math.Float32bits(best[i]) != math.Float32bits(b2[i]) || place[i] != p2[i] {
				t.Fatalf("%+v: window %d is %v at %d, want %v at %d", tap, i, best[i], place[i], b2[i], p2[i])
			}
		}
	}
}
