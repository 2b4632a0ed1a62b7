package tensor

import (
	"fmt"
	"math"
	"slices"
)

// maxNumel bounds the elements of a tensor: kernels index elements with 32 bits.
const maxNumel = math.MaxUint32 & math.MaxInt // indices in kernels have 32 bits; where int has too, it is about half

// Numel returns the number of elements of a shape, 1 for the empty one.
func Numel(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// checkShape returns the number of elements, or an error for a negative or too large shape.
func checkShape(shape []int) (int, error) {
	n := 1
	empty := false
	for i, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v: dimension %d is negative", shape, i)
		}
		empty = empty || d == 0
		if d > 0 && n > maxNumel/d {
			return 0, fmt.Errorf("shape %v: a tensor has at most %d elements", shape, maxNumel)
		}
		n *= max(d, 1)
	}
	if empty {
		return 0, nil
	}
	return n, nil
}

// contiguousStrides returns the row-major strides of a shape, in elements.
func contiguousStrides(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(shape[i], 1)
	}
	return s
}

// isContiguous reports whether strides are row-major for shape; strides of dimensions of size 1 do not matter.
func isContiguous(shape, strides []int) bool {
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 0 {
			return true
		}
		if shape[i] != 1 && strides[i] != n {
			return false
		}
		n *= shape[i]
	}
	return true
}

// BroadcastShapes returns the shape that the shapes broadcast to, by NumPy's rule: aligned at the last dimension, sizes
// are equal or 1.
func BroadcastShapes(shapes ...[]int) ([]int, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]int, rank)
	for i := range out {
		out[i] = 1
	}
	for _, s := range shapes {
		for i, d := range s {
			j := rank - len(s) + i
			switch {
			case d == out[j] || d == 1:
			case out[j] == 1:
				out[j] = d
			default:
				return nil, fmt.Errorf("shapes %s cannot be broadcast: sizes %d and %d in dimension %d must be equal or 1", shapesText(shapes), out[j], d, j)
			}
		}
	}
	return out, nil
}

func shapesText(shapes [][]int) string {
	s := ""
	for i, sh := range shapes {
		if i > 0 {
			s += " and "
		}
		s += fmt.Sprint(sh)
	}
	return s
}

// broadcastStrides returns the strides of a tensor of shape with strides when it is seen as the larger shape to.
func broadcastStrides(shape, strides, to []int) []int {
	out := make([]int, len(to))
	lead := len(to) - len(shape)
	for i := range shape {
		if shape[i] != 1 || to[lead+i] == 1 {
			out[lead+i] = strides[i]
		}
	}
	return out
}

// normDim maps a dimension that may count from the end to 0..rank-1. A 0-dimensional tensor takes 0 and -1.
func normDim(dim, rank int) (int, error) {
	r := max(rank, 1)
	if dim < -r || dim >= r {
		return 0, fmt.Errorf("dimension out of range (expected to be in range of [%d, %d], but got %d)", -r, r-1, dim)
	}
	if dim < 0 {
		dim += r
	}
	return dim, nil
}

// normDims normalises and sorts dims; none means all dimensions.
func normDims(dims []int, rank int) ([]int, error) {
	if len(dims) == 0 {
		out := make([]int, rank)
		for i := range out {
			out[i] = i
		}
		return out, nil
	}
	out := make([]int, 0, len(dims))
	for _, d := range dims {
		n, err := normDim(d, rank)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, n) {
			return nil, fmt.Errorf("dim %d appears multiple times in the list of dims %v", n, dims)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	if rank == 0 {
		return nil, nil
	}
	return out, nil
}

// reducedShape returns shape without dims, or with size 1 there.
func reducedShape(shape, dims []int, keepdim bool) []int {
	out := make([]int, 0, len(shape))
	for i, d := range shape {
		switch {
		case !slices.Contains(dims, i):
			out = append(out, d)
		case keepdim:
			out = append(out, 1)
		}
	}
	return out
}
