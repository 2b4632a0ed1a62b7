package gemm

import (
	"sync"
	"unsafe"
)

// scratch is memory for packed operands, kept between products.
type scratch struct {
	mem  []float32
	from rowTable
}

// There are two sorts, so that a large one is found where it is needed: for operands, and for the rows of a tile.
var (
	scratches = sync.Pool{New: func() any { return new(scratch) }}
	smalls    = sync.Pool{New: func() any { return new(scratch) }}
)

// keep is how many values of scratch memory are kept for the next product.
const keep = 16 << 20

func getScratch() *scratch { return scratches.Get().(*scratch) }

func getSmall() *scratch { return smalls.Get().(*scratch) }

func (s *scratch) putSmall() {
	s.from = rowTable{}
	smalls.Put(s)
}

func (s *scratch) put() {
	s.from = rowTable{}
	if cap(s.mem) <= keep {
		scratches.Put(s)
	}
}

// take returns n values with any contents, aligned to a cache line.
func (s *scratch) take(n int) []float32 {
	const line = 16
	if cap(s.mem) < n+line {
		s.mem = make([]float32, n+line)
	}
	m := s.mem[:n+line]
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(m)))%(4*line)) / 4
	return m[skip : skip+n]
}

// takeDoubles returns n float64 with any contents.
func (s *scratch) takeDoubles(n int) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(s.take(2*n)))), n)
}

// rowTable is where a transposition finds its rows. It is kept by the caller for several, because it escapes to the heap.
type rowTable [group]*byte

// pack writes rows from row0 on and n steps of K from k0 on to a panel of the given width: the values of a step side by
// side. Values of rows that are not there are zero or those of another row.
func (s *isa) pack(from *rowTable, panel []float32, width int, v view, row0, rows, k0, n int) {
	if n == 0 {
		return
	}
	panel = panel[:n*width]
	step, dst := uintptr(4*width), unsafe.SliceData(panel)
	switch {
	case v.across == 1:
		if rows < width && width > group {
			clear(panel)
		}
		s.copyRows[v.kind](dst, step, v.at(row0, k0), uintptr(v.along*v.kind.Size()), uintptr(n), uintptr(rows))
	case v.along == 1 || n == 1:
		if rows <= width-group {
			clear(panel)
		}
		for g := 0; g < rows; g += group {
			for i := range from {
				from[i] = v.at(row0+min(g+i, rows-1), k0)
			}
			s.transpose[v.kind](&panel[g], step, (*[group]*byte)(from), uintptr(n))
		}
	default:
		clear(panel)
		for k := range n {
			for i := range rows {
				panel[k*width+i] = element(v.kind, v.at(row0+i, k0+k), 0)
			}
		}
	}
}

// floats returns the view with its rows contiguous along K as float32: itself, or a copy in scratch memory.
func (t *task) floats(v view, rows int, s *scratch) view {
	contiguous := v.contiguous(t.K)
	if v.kind == F32 && contiguous {
		return v
	}
	width := (t.K + group - 1) / group * group // the transposition writes whole groups
	mem := s.take(rows * width)
	out := view{kind: F32, base: (*byte)(unsafe.Pointer(unsafe.SliceData(mem))), across: width, along: 1}
	if contiguous {
		piece := max(1, (1<<14)/t.K)
		parallel(t.workers, ceil(rows, piece), piece*t.K, func(i int) {
			r := i * piece
			t.isa.copyRows[v.kind](&mem[r*width], uintptr(4*width), v.at(r, 0), uintptr(v.across*v.kind.Size()), uintptr(min(piece, rows-r)), uintptr(t.K))
		})
		return out
	}
	var from rowTable
	for k := 0; k < t.K; k += group {
		for i := range from {
			from[i] = v.at(0, min(k+i, t.K-1))
		}
		t.isa.transpose[v.kind](&mem[k], uintptr(4*width), (*[group]*byte)(&from), uintptr(rows))
	}
	return out
}
