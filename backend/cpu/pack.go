package cpu

import (
	"sync"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// scratch is memory for packed operands and sums, kept between products.
type scratch struct{ a, b, c []uint64 }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func getScratch() *scratch { return scratches.Get().(*scratch) }

// put keeps the memory for the next product, unless it is much.
func (s *scratch) put() {
	if 8*(cap(s.a)+cap(s.b)+cap(s.c)) <= 4*scratchBytes {
		scratches.Put(s)
	}
}

// take returns n elements of scratch memory with any contents.
func take[T element](mem *[]uint64, n int) []T {
	var v T
	words := (n*int(unsafe.Sizeof(v)) + 7) / 8
	if words == 0 {
		return nil
	}
	if cap(*mem) < words {
		*mem = make([]uint64, words)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData((*mem)[:words]))), n)
}

// sliceOf returns the elements in b, which is aligned to them.
func sliceOf[T element](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}

func bytesOf[T element](x []T) []byte {
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(v)))
}

// operand is one side of a product: matrices of rows by columns, where a dot product takes a row. If trans is set, memory
// holds the transposes.
type operand[T element] struct {
	kind, acc      ir.Kind
	src            []byte
	offset, stride int
	rows, columns  int
	trans          bool

	packed []T
	step   int // elements from one matrix of packed to the next
}

// matrix returns the packed rows of a matrix of the group.
func (o *operand[T]) matrix(i int) []T {
	return o.packed[i*o.step : i*o.step+o.rows*o.columns]
}

// chunk is how many elements a worker converts or transposes at a time, about.
const chunk = 1 << 14

// pack prepares count matrices of the batch from the given one on: memory as it is, if that is what is needed.
func (o *operand[T]) pack(pool *interp.Pool, mem *[]uint64, first, count int) {
	size := o.rows * o.columns
	start := o.offset + first*o.stride
	if size == 0 {
		return
	}
	if o.kind == o.acc && !o.trans {
		o.packed, o.step = sliceOf[T](o.src)[start:], o.stride
		return
	}
	if o.stride == 0 {
		count = 1
	} else {
		o.step = size
	}
	o.packed = take[T](mem, count*size)
	bytes := o.kind.Size()
	source := func(i int) []byte { return o.src[(start+i*o.stride)*bytes : (start+i*o.stride+size)*bytes] }
	if !o.trans {
		pieces := (size + chunk - 1) / chunk
		parallel(pool, count*pieces, chunk, func(i int) {
			matrix, from := i/pieces, i%pieces*chunk
			to := min(from+chunk, size)
			interp.ConvertSlice(bytesOf(o.packed[matrix*size+from:matrix*size+to]), o.acc, source(matrix)[from*bytes:to*bytes], o.kind)
		})
		return
	}
	// Memory has columns rows of length rows. A worker takes some of those and writes them as columns.
	deep := max(1, chunk/o.rows)
	pieces := (o.columns + deep - 1) / deep
	parallel(pool, count*pieces, 2*chunk, func(i int) {
		matrix, from := i/pieces, i%pieces*deep
		to := min(from+deep, o.columns)
		src := source(matrix)[from*o.rows*bytes : to*o.rows*bytes]
		var stored []T
		if o.kind == o.acc {
			stored = sliceOf[T](src)
		} else {
			s := getScratch()
			defer s.put()
			stored = take[T](&s.c, (to-from)*o.rows)
			interp.ConvertSlice(bytesOf(stored), o.acc, src, o.kind)
		}
		transpose(o.packed[matrix*size:(matrix+1)*size], o.columns, from, stored, o.rows)
	})
}

// transpose writes the rows of src, which have the given width, as columns of dst from column on.
func transpose[T element](dst []T, columns, column int, src []T, width int) {
	const block = 16
	n := len(src) / width
	for r0 := 0; r0 < n; r0 += block {
		r1 := min(r0+block, n)
		for c := range width {
			out := dst[c*columns+column+r0:]
			for r := r0; r < r1; r++ {
				out[r-r0] = src[r*width+c]
			}
		}
	}
}

// parallelWork is the work, in elements touched or multiplied, below which it is not worth another goroutine.
const parallelWork = 1 << 15

// parallel calls f for each i below n, of the given work each, from the pool's workers.
func parallel(pool *interp.Pool, n int, work float64, f func(i int)) {
	workers := min(n, pool.Size())
	if float64(n)*work < parallelWork {
		workers = 1
	}
	split := interp.NewSplit(int64(n), workers, 1)
	pool.Do(workers, func() {
		share := split.Share()
		for i, count := share.Next(1); count > 0; i, count = share.Next(1) {
			f(int(i))
		}
	})
}
