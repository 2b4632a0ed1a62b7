package gemm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMaxWindows holds the kernel against plain Go, on memory that ends with the last element that may be read.
func TestMaxWindows(t *testing.T) {
	if maxKernel == nil {
		t.Skip("no kernel for this processor")
	}
	kernel := maxKernel
	defer func() { maxKernel = kernel }()
	r := rand.New(rand.NewPCG(41, 42))
	for range 300 {
		w := MaxWindows{Rows: 1 + r.IntN(4), N: 1 + r.IntN(50), Stride: 1 + r.IntN(2), First: r.IntN(5)}
		w.RowStep = w.N*w.Stride + r.IntN(5)
		reach := uintptr(0)
		for range 1 + r.IntN(5) {
			t := uintptr(r.IntN(20))
			w.Taps, reach = append(w.Taps, t), max(reach, t)
		}
		width := w.N + r.IntN(4)
		image := make([]float32, w.First+(w.Rows-1)*w.RowStep+(w.N-1)*w.Stride+int(reach)+1)
		for i := range image {
			image[i] = [...]float32{float32(r.IntN(5)), float32(math.NaN()), float32(math.Inf(-1)), float32(r.NormFloat64())}[r.IntN(4)]
		}
		n := (w.Rows-1)*width + w.N
		var best [2][]float32
		var place [2][]int32
		for i := range 2 {
			best[i], place[i] = make([]float32, n), make([]int32, n)
			maxKernel = kernel
			if i == 1 {
				maxKernel = nil
			}
			w.Run(best[i], place[i], width, image)
		}
		for i, v := range best[0] {
			if math.Float32bits(v) != math.Float32bits(best[1][i]) || place[0][i] != place[1][i] {
				t.Fatalf("%+v: window %d is %v at %d, want %v at %d", w, i, v, place[0][i], best[1][i], place[1][i])
			}
		}
	}
}
