package gemm

import "unsafe"

// Tap is an element of the windows of max pooling: for each of Rows rows of N windows, values Stride apart, which begin at
// First and RowStep further in each row, both counted in an image's elements.
type Tap struct{ Rows, N, Stride, First, RowStep int }

// tapFunc is MaxTap; steps are in bytes but for placeStep.
type tapFunc func(best *float32, place *int32, step uintptr, src *float32, srcStep, rows, n, stride, first, placeStep, fresh uintptr)

// MaxTap takes an element of each window into the largest so far and their places in the image, as PyTorch does: a NaN is
// larger than anything, and the first of equal values stays. A place below zero stands for no value so far; with fresh there
// is none. A row of windows has width values in best and place.
func MaxTap(best []float32, place []int32, width int, image []float32, t Tap, fresh bool) {
	if t.Rows == 0 || t.N == 0 {
		return
	}
	last := (t.Rows-1)*width + t.N - 1
	_, _, _ = best[last], place[last], image[t.First+(t.Rows-1)*t.RowStep+(t.N-1)*t.Stride]
	if maxTap != nil && t.Stride <= 2 {
		f := uintptr(0)
		if fresh {
			f = 1
		}
		maxTap(&best[0], &place[0], uintptr(4*width), &image[t.First], uintptr(4*t.RowStep), uintptr(t.Rows), uintptr(t.N), uintptr(t.Stride), uintptr(t.First), uintptr(t.RowStep), f)
		return
	}
	for r := range t.Rows {
		at := t.First + r*t.RowStep
		y, where := best[r*width:][:t.N], place[r*width:][:t.N]
		for i := range y {
			v := *(*float32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(image)), 4*at)) // checked above
			if v > y[i] || v != v || fresh || where[i] < 0 {
				y[i], where[i] = v, int32(at)
			}
			at += t.Stride
		}
	}
}
