package gemm

import (
	"math"
	"unsafe"

	"github.com/x448/float16"
)

// plain has the kernels in Go.
var plain = &isa{
	name: "Go", lanes: 8, vecs: 1, rows: 4, dotRows: 4,
	tiles: [2][8]tileFunc{{plainTile[float32](1), plainTile[float32](2), plainTile[float32](3), plainTile[float32](4)}},
	dots: [4][4]dotFunc{
		{plainDot(1, 1), plainDot(1, 2), plainDot(1, 3), plainDot(1, 4)},
		{plainDot(2, 1), plainDot(2, 2), plainDot(2, 3), plainDot(2, 4)},
		{plainDot(3, 1), plainDot(3, 2), plainDot(3, 3), plainDot(3, 4)},
		{plainDot(4, 1), plainDot(4, 2), plainDot(4, 3), plainDot(4, 4)},
	},
	copyRows:  [3]rowsFunc{plainRows(F32), plainRows(F16), plainRows(BF16)},
	transpose: [3]transposeFunc{plainTranspose(F32), plainTranspose(F16), plainTranspose(BF16)},
	runs:      [2][8]runsFunc{{plainRuns[float32](1), plainRuns[float32](2), plainRuns[float32](3), plainRuns[float32](4)}},
	size:      4,
	precise: &isa{name: "Go", lanes: 8, vecs: 1, rows: 4, size: 8,
		tiles:     [2][8]tileFunc{{plainTile[float64](1), plainTile[float64](2), plainTile[float64](3), plainTile[float64](4)}},
		runs:      [2][8]runsFunc{{plainRuns[float64](1), plainRuns[float64](2), plainRuns[float64](3), plainRuns[float64](4)}},
		copyRows:  [3]rowsFunc{plainRows(F32), plainRows(F16), plainRows(BF16)},
		transpose: [3]transposeFunc{plainTranspose(F32), plainTranspose(F16), plainTranspose(BF16)},
	},
}

// at returns the float32 at a distance in bytes.
func at(p *float32, bytes uintptr) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes)) }

// number is what plain kernels sum in.
type number interface{ float32 | float64 }

func plainTile[T number](rows int) tileFunc {
	return func(a *float32, aRow, aCol uintptr, b *float32, bStep, k uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32) {
		for i := range uintptr(rows) {
			var sums [8]T
			plainRow(&sums, at(a, i*aRow), aCol, b, bStep, k)
			plainStore(&sums, (*T)(unsafe.Add(unsafe.Pointer(c), i*cRow)), mask, add, bias, rowBias, i)
		}
	}
}

func plainRuns[T number](rows int) runsFunc {
	return func(from *[group]*float32, k, runs, skip uintptr, b *float32, bStep uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32) {
		for i := range uintptr(rows) {
			var sums [8]T
			for r := range runs {
				plainRow(&sums, at(from[i], r*(4*k+skip)), 4, at(b, r*k*bStep), bStep, k)
			}
			plainStore(&sums, (*T)(unsafe.Add(unsafe.Pointer(c), i*cRow)), mask, add, bias, rowBias, i)
		}
	}
}

// plainStore stores a row of a tile.
func plainStore[T number](sums *[8]T, c *T, mask *int32, add uintptr, bias, rowBias *float32, row uintptr) {
	columns := 8
	if mask != nil {
		for columns = 0; columns < 8 && *(*int32)(unsafe.Add(unsafe.Pointer(mask), 4*columns)) != 0; columns++ {
		}
	}
	to := unsafe.Slice(c, columns)
	for j := range to {
		v := sums[j]
		if add != 0 {
			v += to[j]
		}
		if bias != nil {
			v += T(*at(bias, 4*uintptr(j)))
		}
		if rowBias != nil {
			v += T(*at(rowBias, 4*row))
		}
		to[j] = v
	}
}

// plainRow adds the products of a row of a tile.
func plainRow[T number](sums *[8]T, a *float32, aCol uintptr, b *float32, bStep, k uintptr) {
	s0, s1, s2, s3, s4, s5, s6, s7 := sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7]
	for i := range k { // no pointer past the end, for the garbage collector's sake
		x, y := T(*at(a, i*aCol)), (*[8]float32)(unsafe.Pointer(at(b, i*bStep)))
		s0 += x * T(y[0])
		s1 += x * T(y[1])
		s2 += x * T(y[2])
		s3 += x * T(y[3])
		s4 += x * T(y[4])
		s5 += x * T(y[5])
		s6 += x * T(y[6])
		s7 += x * T(y[7])
	}
	*sums = [8]T{s0, s1, s2, s3, s4, s5, s6, s7}
}

func plainDot(rows, columns int) dotFunc {
	return func(a *float32, aRow uintptr, b *float32, bRow, k uintptr, _ *int32, out *float32) {
		for j := range columns {
			y := unsafe.Slice(at(b, uintptr(j)*bRow), k)
			for i := range rows {
				x := unsafe.Slice(at(a, uintptr(i)*aRow), k)
				var s [4]float32
				n := len(x) &^ 3
				for t := 0; t < n; t += 4 {
					u, v := (*[4]float32)(x[t:]), (*[4]float32)(y[t:])
					s[0] += u[0] * v[0]
					s[1] += u[1] * v[1]
					s[2] += u[2] * v[2]
					s[3] += u[3] * v[3]
				}
				for t := n; t < len(x); t++ {
					s[0] += x[t] * y[t]
				}
				*at(out, uintptr(16*i+4*j)) = s[0] + s[1] + (s[2] + s[3])
			}
		}
	}
}

// element reads an element of memory as float32.
func element(k Kind, p *byte, i int) float32 {
	switch k {
	case F16:
		return float16.Frombits(*(*uint16)(unsafe.Add(unsafe.Pointer(p), 2*i))).Float32()
	case BF16:
		return math.Float32frombits(uint32(*(*uint16)(unsafe.Add(unsafe.Pointer(p), 2*i))) << 16)
	}
	return *(*float32)(unsafe.Add(unsafe.Pointer(p), 4*i))
}

func plainRows(kind Kind) rowsFunc {
	return func(dst *float32, dstStep uintptr, src *byte, srcStep, rows, width uintptr) {
		for r := range rows {
			to := unsafe.Slice(at(dst, r*dstStep), width)
			from := (*byte)(unsafe.Add(unsafe.Pointer(src), r*srcStep))
			if kind == F32 {
				copy(to, unsafe.Slice((*float32)(unsafe.Pointer(from)), width))
				continue
			}
			for i := range to {
				to[i] = element(kind, from, i)
			}
		}
	}
}

func plainTranspose(kind Kind) transposeFunc {
	return func(dst *float32, dstStep uintptr, rows *[8]*byte, n uintptr) {
		for i := range n {
			to := (*[8]float32)(unsafe.Pointer(at(dst, i*dstStep)))
			for r, p := range rows {
				to[r] = element(kind, p, int(i))
			}
		}
	}
}
