package lib

import (
	"fmt"
	"math"
	"slices"
)

// layout is an iteration space with the strides of several operands in it, reduced to as few dimensions as the
// strides allow.
type layout struct {
	dims    []int   // outermost first; never empty: the last is the inner dimension
	strides [][]int // of each operand, one for each of dims
	size    uint64  // number of elements
}

// rowMajor returns the strides of a contiguous tensor.
func rowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(shape[i], 1)
	}
	return s
}

// newLayout drops dimensions of size 1, sorts the others by the strides of operand lead (descending), so that
// it is traversed in memory order, and merges neighbours that are contiguous in every operand.
func newLayout(shape []int, strides [][]int, lead int) (layout, error) {
	size := uint64(1)
	for _, d := range shape {
		if d < 0 {
			return layout{}, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		if d > 0 && size > math.MaxUint64/uint64(d) {
			return layout{}, fmt.Errorf("shape %v has more than 2^64 elements", shape)
		}
		size *= uint64(d)
	}
	for i, s := range strides {
		if len(s) != len(shape) {
			return layout{}, fmt.Errorf("operand %d has %d strides for the %d dimensions of shape %v", i, len(s), len(shape), shape)
		}
	}
	if slices.Contains(shape, 0) {
		return trivialLayout(0, len(strides)), nil
	}
	var order []int
	for d, n := range shape {
		if n != 1 {
			order = append(order, d)
		}
	}
	if len(order) == 0 {
		return trivialLayout(1, len(strides)), nil
	}
	slices.SortStableFunc(order, func(a, b int) int { return abs(strides[lead][b]) - abs(strides[lead][a]) })
	l := layout{strides: make([][]int, len(strides)), size: size}
	for _, d := range order {
		last := len(l.dims) - 1
		merge := last >= 0
		for i := range strides {
			merge = merge && l.strides[i][last] == strides[i][d]*shape[d]
		}
		if merge {
			l.dims[last] *= shape[d]
		} else {
			l.dims = append(l.dims, shape[d])
		}
		for i := range strides {
			if merge {
				l.strides[i][last] = strides[i][d]
			} else {
				l.strides[i] = append(l.strides[i], strides[i][d])
			}
		}
	}
	return l, nil
}

// trivialLayout has at most one element, so that every operand may count as contiguous.
func trivialLayout(n, operands int) layout {
	l := layout{dims: []int{n}, strides: make([][]int, operands), size: uint64(n)}
	for i := range l.strides {
		l.strides[i] = []int{1}
	}
	return l
}

// alongStrided looks among the first inputs operands for one that is strided in the inner dimension and contiguous in
// another, as in a transposition. It makes that other dimension the last but one, so that invocations can go along it and
// use what they share of a cache line.
func (l layout) alongStrided(inputs int) bool {
	last := len(l.dims) - 1
	for _, s := range l.strides[:inputs] {
		if abs(s[last]) < 2 {
			continue
		}
		for d := range last {
			if abs(s[d]) != 1 {
				continue
			}
			l.moveDim(d, last-1)
			return true
		}
	}
	return false
}

// moveDim moves dimension from to place to, in place.
func (l layout) moveDim(from, to int) {
	for _, x := range append(l.strides[:len(l.strides):len(l.strides)], l.dims) {
		v := x[from]
		copy(x[from:], x[from+1:to+1])
		x[to] = v
	}
}

// inner is the size of the inner dimension, rows the number of times it is traversed.
func (l layout) inner() int { return l.dims[len(l.dims)-1] }

func (l layout) rows() int {
	n := 1
	for _, d := range l.dims[:len(l.dims)-1] {
		n *= d
	}
	return n
}

// extent returns the smallest and the largest element that an operand reaches.
func (l layout) extent(operand, offset int) (lo, hi int) {
	lo, hi = offset, offset
	if l.size == 0 {
		return offset, offset - 1
	}
	for d, n := range l.dims {
		if s := l.strides[operand][d] * (n - 1); s > 0 {
			hi += s
		} else {
			lo += s
		}
	}
	return lo, hi
}

func abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}
