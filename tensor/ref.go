package tensor

import (
	"fmt"
	"slices"
)

// This file has what references and samples of operators are written with.

// at returns the element at idx.
func (a Array) at(idx ...int) float64 {
	k := 0
	for i, n := range a.Shape {
		k = k*n + idx[i]
	}
	return a.Data[k]
}

// size returns the size of a dimension that may count from the end.
func (a Array) size(d int) int {
	if d < 0 {
		d += len(a.Shape)
	}
	return a.Shape[d]
}

// dim returns d counted from the front.
func (a Array) dim(d int) int {
	if d < 0 {
		return d + max(1, len(a.Shape))
	}
	return d
}

// makeArray computes an array element by element; f must not keep idx.
func makeArray(shape []int, f func(idx []int) float64) Array {
	a := Array{Shape: slices.Clone(shape), Data: make([]float64, Numel(shape))}
	eachIndex(shape, func(i int, idx []int) { a.Data[i] = f(idx) })
	return a
}

// eachIndex calls f for the indices of a shape in row-major order.
func eachIndex(shape []int, f func(i int, idx []int)) {
	idx := make([]int, len(shape))
	for i := range Numel(shape) {
		rest := i
		for d := len(shape) - 1; d >= 0; d-- {
			idx[d] = rest % shape[d]
			rest /= shape[d]
		}
		f(i, idx)
	}
}

// with returns idx with another value at dimension d.
func with(idx []int, d, v int) []int {
	out := slices.Clone(idx)
	out[d] = v
	return out
}

// withSize returns shape with another size of dimension d.
func withSize(shape []int, d, n int) []int { return with(shape, d, n) }

// refOne is a reference with one result and no failure.
func refOne(f func(in []Array, a Attrs) Array) func(in []Array, a Attrs) ([]Array, error) {
	return func(in []Array, a Attrs) ([]Array, error) { return []Array{f(in, a)}, nil }
}

// lines calls f with each line of x along dim, and returns the lines that f returns, put together again; they may have
// another length, but all the same.
func (a Array) lines(dim int, f func(line []float64) []float64) Array {
	d := a.dim(dim)
	shape := slices.Clone(a.Shape)
	if len(shape) == 0 {
		return Array{Data: f(slices.Clone(a.Data))}
	}
	n := shape[d]
	shape[d] = 1
	var lines [][]float64
	eachIndex(shape, func(_ int, idx []int) {
		line := make([]float64, n)
		for k := range line {
			line[k] = a.at(with(idx, d, k)...)
		}
		lines = append(lines, f(line))
	})
	m := 0
	if len(lines) > 0 {
		m = len(lines[0])
	} else if n > 0 {
		m = len(f(make([]float64, n)))
	}
	inner := Numel(a.Shape[d+1:])
	shape[d] = m
	return makeArray(shape, func(idx []int) float64 {
		line := 0
		for i, v := range idx {
			if i != d {
				line = line*a.Shape[i] + v
			}
		}
		_ = inner
		return lines[line][idx[d]]
	})
}

// sampleArray returns distinct values with signs and fractions, none of them 0, in no order.
func sampleArray(shape ...int) Array {
	return makeArray(shape, func(idx []int) float64 {
		k := 1
		for i, v := range idx {
			k = k*shape[i] + v
		}
		return float64((k*37)%64-32)/8 + 0.0625
	})
}

// positiveArray is sampleArray with values from 1/16 to 2.
func positiveArray(shape ...int) Array {
	a := sampleArray(shape...)
	for i, v := range a.Data {
		a.Data[i] = (v+4)/4 + 0.05
	}
	return a
}

// ints64 returns an int64 array.
func ints64(shape []int, data ...float64) Array { return Array{Shape: shape, Data: data, DType: Int64} }

// boolArray returns a bool array.
func boolArray(shape []int, data ...float64) Array {
	return Array{Shape: shape, Data: data, DType: Bool}
}

// valid and invalid make samples.
func valid(name string, attrs Attrs, in ...Array) Sample {
	return Sample{Name: name, In: in, Attrs: attrs}
}

func invalid(err string, attrs Attrs, in ...Array) Sample {
	return Sample{Name: "error: " + err, In: in, Attrs: attrs, Err: err}
}

// Tensor makes the array a tensor on the CPU.
func (a Array) Tensor() *Tensor {
	d := a.DType
	if d == InvalidDType {
		d = Float32
	}
	return FromFloat64s(a.Data, a.Shape...).Cast(d)
}

// String describes the array without its data.
func (a Array) String() string { return fmt.Sprintf("%s %v", a.DType, a.Shape) }
