package gemm

import "unsafe"

// MaxWindows are windows of max pooling that lie in their image: Rows rows of N windows, Stride elements apart. The first begins at
// First, those of the next row RowStep further. Taps are the places of a window's elements after its first one. All count an
// image's elements.
type MaxWindows struct {
	Rows, N, Stride, First, RowStep int
	Taps                            []uintptr
}

// maxFunc computes MaxWindows; step and srcStep are in bytes.
type maxFunc func(best *float32, place *int32, step uintptr, src *float32, srcStep, rows, n, stride uintptr, taps *uintptr, ntaps, first, placeStep uintptr)

// Run finds the largest element of each window and its place in the image, as PyTorch does: a NaN is larger than anything,
// and the first of equal values counts. A row of windows has width values in best and place.
func (w *MaxWindows) Run(best []float32, place []int32, width int, image []float32) {
	if w.Rows == 0 || w.N == 0 || len(w.Taps) == 0 {
		return
	}
	// All places are checked here.
	last, end := (w.Rows-1)*width+w.N-1, w.First+(w.Rows-1)*w.RowStep+(w.N-1)*w.Stride
	_, _ = best[last], place[last]
	for _, t := range w.Taps {
		_, _ = image[w.First+int(t)], image[end+int(t)]
	}
	if maxKernel != nil && w.Stride <= 2 {
		maxKernel(&best[0], &place[0], uintptr(4*width), &image[w.First], uintptr(4*w.RowStep), uintptr(w.Rows), uintptr(w.N), uintptr(w.Stride), &w.Taps[0], uintptr(len(w.Taps)), uintptr(w.First), uintptr(w.RowStep))
		return
	}
	base := unsafe.Pointer(unsafe.SliceData(image))
	for r := range w.Rows {
		y, where := best[r*width:][:w.N], place[r*width:][:w.N]
		for i, t := range w.Taps {
			at := uintptr(w.First+r*w.RowStep) + t
			for j := range y {
				if v := *(*float32)(unsafe.Add(base, 4*at)); i == 0 || v > y[j] || v != v {
					y[j], where[j] = v, int32(at)
				}
				at += uintptr(w.Stride)
			}
		}
	}
}
