package backend

import (
	"cmp"
	"fmt"
	"slices"
)

// segment is one allocation of the device.
type segment struct {
	buf  Buffer // nil once given back
	id   int    // in order of creation
	size int64
	pool int
}

// chunk is a piece of a segment, in use or free. The chunks of a segment are a list without gaps; two free ones are never
// neighbours.
type chunk struct {
	seg        *segment
	off, size  int64
	prev, next *chunk
	free       bool
}

// split reports whether the chunk is not its whole segment.
func (c *chunk) split() bool { return c.prev != nil || c.next != nil }

// pool is the free chunks of one class, sorted by size, then by address.
type pool struct {
	free []*chunk
}

const (
	smallPool = iota
	largePool
)

func compareChunks(a, b *chunk) int {
	switch {
	case a.size != b.size:
		return cmp.Compare(a.size, b.size)
	case a.seg != b.seg:
		return cmp.Compare(a.seg.id, b.seg.id)
	}
	return cmp.Compare(a.off, b.off)
}

func (p *pool) add(c *chunk) {
	i, _ := slices.BinarySearchFunc(p.free, c, compareChunks)
	p.free = slices.Insert(p.free, i, c)
}

func (p *pool) remove(c *chunk) {
	if i, ok := slices.BinarySearchFunc(p.free, c, compareChunks); ok {
		p.free = slices.Delete(p.free, i, i+1)
	}
}

// take removes and returns the smallest chunk of at least size bytes, or nil.
func (p *pool) take(size int64) *chunk {
	i, _ := slices.BinarySearchFunc(p.free, size, func(c *chunk, size int64) int {
		if c.size < size {
			return -1
		}
		return 1 // never equal: find the first of the size, the one at the lowest address
	})
	if i == len(p.free) {
		return nil
	}
	c := p.free[i]
	p.free = slices.Delete(p.free, i, i+1)
	return c
}

// try allocates from the cache or the device. a.mu is held.
func (a *Allocator) try(size int64) (*chunk, error) {
	if a.closed {
		return nil, fmt.Errorf("%s: the allocator: %w", a.info, ErrClosed)
	}
	rounded := a.fit(roundUp(max(size, 1), a.align))
	pool := smallPool
	if rounded > smallSize {
		pool = largePool
	}
	c := a.pools[pool].take(rounded)
	if c == nil {
		seg, err := a.newSegment(rounded, pool)
		if err != nil {
			return nil, err
		}
		c = a.newChunk()
		*c = chunk{seg: seg, size: seg.size}
	} else {
		a.inactive(c, -1)
		c.free = false
	}
	rest := c.size - rounded
	// A small rest of a large chunk would serve no large request, as in PyTorch.
	if rest >= a.align && (pool == smallPool || rest > smallSize) {
		r := a.newChunk()
		*r = chunk{seg: c.seg, off: c.off + rounded, size: rest, prev: c, next: c.next}
		if r.next != nil {
			r.next.prev = r
		}
		c.next, c.size = r, rounded
		a.addFree(r)
	}
	a.stats.count(pool, func(s *PoolStats) {
		s.Allocations.add(1)
		s.Active.add(1)
		s.AllocatedBytes.add(c.size)
		s.ActiveBytes.add(c.size)
		s.RequestedBytes.add(size)
	})
	return c, nil
}

// newChunk returns a chunk to be filled, one that was merged before if there is one.
func (a *Allocator) newChunk() *chunk {
	c := a.spare
	if c == nil {
		return new(chunk)
	}
	a.spare = c.next
	return c
}

// merged keeps a chunk that is now part of another one for reuse. No block has it: it was free.
func (a *Allocator) merged(c *chunk) {
	*c = chunk{next: a.spare}
	a.spare = c
}

// freeChunk returns a chunk to its pool, merged with its free neighbours. a.mu is held.
func (a *Allocator) freeChunk(c *chunk, requested int64) {
	a.stats.count(c.seg.pool, func(s *PoolStats) {
		s.Allocations.add(-1)
		s.Active.add(-1)
		s.AllocatedBytes.add(-c.size)
		s.ActiveBytes.add(-c.size)
		s.RequestedBytes.add(-requested)
	})
	if p := c.prev; p != nil && p.free {
		a.removeFree(p)
		c.off, c.size, c.prev = p.off, c.size+p.size, p.prev
		if c.prev != nil {
			c.prev.next = c
		}
		a.merged(p)
	}
	if n := c.next; n != nil && n.free {
		a.removeFree(n)
		c.size, c.next = c.size+n.size, n.next
		if c.next != nil {
			c.next.prev = c
		}
		a.merged(n)
	}
	a.addFree(c)
}

func (a *Allocator) addFree(c *chunk) {
	c.free = true
	a.pools[c.seg.pool].add(c)
	a.inactive(c, 1)
}

func (a *Allocator) removeFree(c *chunk) {
	a.pools[c.seg.pool].remove(c)
	a.inactive(c, -1)
	c.free = false
}

// inactive counts a free chunk, if its segment is also in use.
func (a *Allocator) inactive(c *chunk, sign int64) {
	if !c.split() {
		return
	}
	a.stats.count(c.seg.pool, func(s *PoolStats) {
		s.InactiveSplit.add(sign)
		s.InactiveSplitBytes.add(sign * c.size)
	})
}

// newSegment allocates from the device a segment for a request of size bytes: of the size of its class, or if that is too
// much of just that size. a.mu is held.
func (a *Allocator) newSegment(size int64, pool int) (*segment, error) {
	want := max(size, a.fit(a.segmentSize(size, pool)))
	buf, err := a.allocDevice(want)
	if err != nil && exhausted(err) && want > size {
		want = size
		buf, err = a.allocDevice(want)
	}
	if err != nil {
		return nil, err
	}
	seg := &segment{buf: buf, id: a.nextSeg, size: want, pool: pool}
	a.nextSeg++
	a.segments[seg] = struct{}{}
	a.stats.count(pool, func(s *PoolStats) {
		s.Segments.add(1)
		s.ReservedBytes.add(want)
	})
	return seg, nil
}

// fit lowers a size to what the device can allocate at once. A request near that limit so gets less than it would be
// rounded up to, never less than it asked for.
func (a *Allocator) fit(size int64) int64 { return min(size, a.maxAlloc()) }

// maxAlloc returns the largest size of a segment.
func (a *Allocator) maxAlloc() int64 {
	if m := a.info.Limits.MaxAllocBytes; m > 0 {
		return min(m/4*4, maxRequest)
	}
	return maxRequest
}

func (a *Allocator) segmentSize(size int64, pool int) int64 {
	if pool == smallPool {
		return smallSegment
	}
	least := int64(largeSegment)
	// The number of allocations is limited on some devices; the more of it is used up, the larger are further ones.
	if m := a.info.Limits.MaxAllocs; m > 0 {
		switch n := len(a.segments); {
		case n >= m/2:
			least *= 16
		case n >= m/4:
			least *= 4
		}
	}
	if size < minLarge || least > largeSegment {
		size = max(size, least)
	}
	return roundUp(size, largeRounding)
}

func (a *Allocator) allocDevice(size int64) (Buffer, error) {
	if held := a.stats.ReservedBytes.Current; a.limit > 0 && held+size > a.limit {
		return nil, &OutOfMemoryError{Device: a.info.String(), Requested: size, Err: fmt.Errorf("the allocator's limit is %d bytes", a.limit)}
	}
	if m := a.info.Limits.MaxAllocs; m > 0 && len(a.segments) >= m {
		return nil, &LimitError{Device: a.info.String(), Limit: "the maximum number of allocations", Requested: int64(len(a.segments) + 1), Allowed: int64(m)}
	}
	return a.dev.Alloc(size)
}

// releaseCached gives the segments without a used chunk back to the device. a.mu is held, and released during the owner's
// Flush.
func (a *Allocator) releaseCached() error {
	var drop []*segment
	for i := range a.pools {
		p := &a.pools[i]
		p.free = slices.DeleteFunc(p.free, func(c *chunk) bool {
			if !c.split() {
				drop = append(drop, c.seg)
			}
			return !c.split()
		})
	}
	if len(drop) == 0 {
		return nil
	}
	// Out of the pools first, then the flush: a launch that uses one of them was added before its block was freed.
	err := a.flush()
	for _, s := range drop {
		a.dropSegment(s)
	}
	return err
}

func (a *Allocator) dropSegment(s *segment) {
	if s.buf == nil { // Close was faster
		return
	}
	s.buf.Free()
	s.buf = nil
	delete(a.segments, s)
	a.stats.count(s.pool, func(st *PoolStats) {
		st.Segments.add(-1)
		st.ReservedBytes.add(-s.size)
	})
}
