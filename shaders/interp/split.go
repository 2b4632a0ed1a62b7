package interp

import (
	"math"
	"sync/atomic"
)

// Split divides numbered work among workers. Each worker has a part, a run of neighbours, and takes pieces of the others' parts when its own is
// done. A worker's part follows from the processor that it runs on: the same work of the next launch, or work on its result, finds its memory in that
// processor's caches. For the same reason a part's own worker takes pieces from its front and the others take them from its end: what changes hands is
// much the same in each launch, and the memory that a worker reads in order stays so. A [Share] is a worker's view of it.
type Split struct {
	parts []part
	n     int64
	unit  int64
	stop  atomic.Bool
}

// part is a run of units that nobody has taken: the first in the low half of left, the end in the high half.
type part struct {
	left  atomic.Uint64
	taken atomic.Bool
	_     [48]byte // parts have cache lines of their own
}

// NewSplit returns the division of the numbers below n among workers. A piece's first number is a multiple of unit.
func NewSplit(n int64, workers int, unit int64) *Split {
	workers = max(workers, 1)
	for n/unit >= math.MaxUint32 {
		unit *= 2
	}
	s := &Split{parts: make([]part, workers), n: n, unit: unit}
	units := (n + unit - 1) / unit
	for i := range s.parts {
		s.parts[i].left.Store(run(units*int64(i)/int64(workers), units*int64(i+1)/int64(workers)))
	}
	return s
}

func run(from, end int64) uint64 { return uint64(from) | uint64(end)<<32 }

// Stop ends the work: nobody gets another piece.
func (s *Split) Stop() { s.stop.Store(true) }

// Share is a worker's view of a Split.
type Share struct {
	s   *Split
	own int // the worker's own part
	at  int // the part that pieces are taken from
}

// Share returns the view of one more worker, which runs on the caller's goroutine.
func (s *Split) Share() Share {
	n := len(s.parts)
	if n == 1 {
		return Share{s: s}
	}
	own := processorNumber() % n
	for range n {
		if s.parts[own].taken.CompareAndSwap(false, true) {
			break
		}
		own = (own + 1) % n
	}
	return Share{s, own, own}
}

// Next returns the next piece: count numbers from the given one on, at most want (rounded up to the Split's unit), and
// about half of what is left of a part unless that is little. count is 0 when all work is given out.
func (w *Share) Next(want int64) (from, count int64) {
	s := w.s
	want = (want + s.unit - 1) / s.unit
	for range len(s.parts) {
		p := &s.parts[w.at]
		for !s.stop.Load() {
			left := p.left.Load()
			first, end := int64(left&math.MaxUint32), int64(left>>32)
			if first >= end {
				break
			}
			count := min(max(1, min(want, max((end-first)/2, want/16))), end-first)
			from, rest := first, run(first+count, end)
			if w.at != w.own {
				from, rest = end-count, run(first, end-count)
			}
			if p.left.CompareAndSwap(left, rest) {
				from, end := from*s.unit, min((from+count)*s.unit, s.n)
				return from, end - from
			}
		}
		w.at = (w.at + 1) % len(s.parts)
	}
	return 0, 0
}
