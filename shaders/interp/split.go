package interp

import "sync/atomic"

// Split divides numbered work among workers. Each worker has a part, a run of neighbours, and takes pieces of the others' parts when its own is
// done. A worker's part follows from the processor that it runs on: the same work of the next launch, or work on its result, finds its memory in that
// processor's caches. A [Share] is a worker's view of it.
type Split struct {
	parts []part
	unit  int64
	stop  atomic.Bool
}

// part is the numbers from next to end.
type part struct {
	next, end atomic.Int64
	taken     atomic.Bool
	_         [40]byte // parts have cache lines of their own
}

// NewSplit returns the division of the numbers below n among workers. A piece's first number is a multiple of unit.
func NewSplit(n int64, workers int, unit int64) *Split {
	workers = max(workers, 1)
	s := &Split{parts: make([]part, workers), unit: unit}
	units := (n + unit - 1) / unit
	for i := range s.parts {
		s.parts[i].next.Store(min(n, units*int64(i)/int64(workers)*unit))
		s.parts[i].end.Store(min(n, units*int64(i+1)/int64(workers)*unit))
	}
	return s
}

// Stop ends the work: nobody gets another piece.
func (s *Split) Stop() { s.stop.Store(true) }

// Share is a worker's view of a Split.
type Share struct {
	s  *Split
	at int // the part that pieces are taken from
}

// Share returns the view of one more worker, which runs on the caller's goroutine.
func (s *Split) Share() Share {
	n := len(s.parts)
	if n == 1 {
		return Share{s: s}
	}
	at := processorNumber() % n
	for range n {
		if s.parts[at].taken.CompareAndSwap(false, true) {
			break
		}
		at = (at + 1) % n
	}
	return Share{s, at}
}

// Next returns the next piece: count numbers from the given one on, at most want (rounded up to the Split's unit), and
// about half of what is left of a part unless that is little. count is 0 when all work is given out.
func (w *Share) Next(want int64) (from, count int64) {
	n := len(w.s.parts)
	for range n {
		p := &w.s.parts[w.at]
		for !w.s.stop.Load() {
			from, end := p.next.Load(), p.end.Load()
			if from >= end {
				break
			}
			count := max(1, min(want, max((end-from)/2, want/16)))
			count = min((count+w.s.unit-1)/w.s.unit*w.s.unit, end-from)
			if p.next.CompareAndSwap(from, from+count) {
				return from, count
			}
		}
		w.at = (w.at + 1) % n
	}
	return 0, 0
}
