package backend

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestAllocatorAgainstModel runs random requests and holds the allocator against a model that knows only the blocks that
// are alive: they are aligned, inside their segments and never overlap; the statistics are exact; memory is refused only when
// it is short; in the end everything is returned.
func TestAllocatorAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			BufferOffsetAlign: rapid.SampledFrom([]int64{0, 4, 64, 256, 1024}).Draw(t, "align"),
			MaxAllocBytes:     rapid.SampledFrom([]int64{0, 3*mib + 100, 16 * mib, 1 << 30}).Draw(t, "maxAlloc"),
			MaxAllocs:         rapid.SampledFrom([]int{0, 6, 4096}).Draw(t, "maxAllocs"),
		}
		memory := rapid.SampledFrom([]int64{24 * mib, 100 * mib, 1 << 40}).Draw(t, "memory")
		dev := &fakeDevice{info: Info{API: "fake", Limits: limits}}
		dev.allocErr = func(size int64) error {
			held := int64(0)
			for b := range dev.live {
				held += b.size
			}
			if held+size > memory {
				return ErrOutOfMemory
			}
			return nil
		}
		a := NewAllocator(dev, AllocatorConfig{})
		align := max(256, limits.BufferOffsetAlign)
		type live struct {
			b *Block
			r Region
		}
		var blocks []live
		var allocs, frees, ooms, peakRequested int64
		check := func() {
			t.Helper()
			var requested int64
			for i, x := range blocks {
				if r := x.b.Region(); r != x.r {
					t.Fatalf("a live block moved from %v to %v", x.r, r)
				}
				requested += x.b.Size()
				for _, y := range blocks[:i] {
					if x.r.Buffer == y.r.Buffer && x.r.Offset < y.r.Offset+y.r.Size && y.r.Offset < x.r.Offset+x.r.Size {
						t.Fatalf("blocks overlap: %d+%d and %d+%d", x.r.Offset, x.r.Size, y.r.Offset, y.r.Size)
					}
				}
			}
			peakRequested = max(peakRequested, requested)
			st := a.Stats()
			held, n := dev.reserved()
			switch {
			case st.RequestedBytes.Current != requested || st.RequestedBytes.Peak != peakRequested:
				t.Fatalf("requested %+v, want %d, peak %d", st.RequestedBytes, requested, peakRequested)
			case st.Allocations.Current != int64(len(blocks)) || st.Allocations.Allocated != allocs || st.Allocations.Freed != frees:
				t.Fatalf("blocks %+v, want %d, %d, %d", st.Allocations, len(blocks), allocs, frees)
			case st.ReservedBytes.Current != held || st.Segments.Current != int64(n):
				t.Fatalf("reserved %+v in %+v segments, want %d in %d", st.ReservedBytes, st.Segments, held, n)
			case st.OOMs != ooms:
				t.Fatalf("%d out of memory, want %d", st.OOMs, ooms)
			case st.AllocatedBytes.Current < requested || st.AllocatedBytes.Current > held || st.Active != st.Allocations || st.ActiveBytes != st.AllocatedBytes:
				t.Fatalf("%d bytes allocated for %d requested of %d held", st.AllocatedBytes.Current, requested, held)
			}
			for i, s := range st.PoolStats.each() {
				if small, large := st.Small.each()[i], st.Large.each()[i]; s.Current != small.Current+large.Current ||
					s.Allocated != small.Allocated+large.Allocated || s.Freed != small.Freed+large.Freed || s.Current != s.Allocated-s.Freed {
					t.Fatalf("statistic %d: %+v is not the sum of %+v and %+v", i, s, small, large)
				}
			}
			checkChunks(t, a, len(blocks))
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"alloc": func(t *rapid.T) {
				size := rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64Range(0, 2*mib), rapid.Int64Range(0, 30*mib)).Draw(t, "size")
				b, err := a.Alloc(size)
				if limits.MaxAllocBytes > 0 && size > limits.MaxAllocBytes/4*4 {
					if !errors.Is(err, ErrLimit) {
						t.Fatalf("Alloc(%d) over the limit: %v", size, err)
					}
					return
				}
				if errors.Is(err, ErrOutOfMemory) {
					ooms++
					// Nothing cached may be left: what is held is in use, and a segment just large enough does not fit.
					held, n := dev.reserved()
					if held+roundUp(max(size, 1), align) <= memory && (limits.MaxAllocs == 0 || n < limits.MaxAllocs) {
						t.Fatalf("out of memory for %d bytes with %d of %d held", size, held, memory)
					}
					return
				}
				if err != nil {
					t.Fatalf("Alloc(%d): %v", size, err)
				}
				allocs++
				r := b.Region()
				if r.Offset%align != 0 || r.Size%4 != 0 || r.Size < size || r.Size > max(size, 1)+3 || r.Offset < 0 || r.Offset+r.Size > r.Buffer.Size() {
					t.Fatalf("Alloc(%d): region %d+%d of %d", size, r.Offset, r.Size, r.Buffer.Size())
				}
				blocks = append(blocks, live{b, r})
			},
			"free": func(t *rapid.T) {
				if len(blocks) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(blocks)-1).Draw(t, "i")
				blocks[i].b.Free()
				blocks[i].b.Free()
				blocks = append(blocks[:i:i], blocks[i+1:]...)
				frees++
			},
			"empty": func(t *rapid.T) {
				if err := a.EmptyCache(); err != nil {
					t.Fatal(err)
				}
				used := map[Buffer]bool{}
				for _, x := range blocks {
					used[x.r.Buffer] = true
				}
				if _, n := dev.reserved(); n != len(used) {
					t.Fatalf("%d segments after EmptyCache, %d are used", n, len(used))
				}
			},
		})
		for _, x := range blocks {
			x.b.Free()
			frees++
		}
		blocks = nil
		check()
		if st := a.Stats(); st.AllocatedBytes.Current != 0 || st.InactiveSplit.Current != 0 {
			t.Fatalf("after the last Free: %+v", st.PoolStats)
		}
		if err := a.EmptyCache(); err != nil {
			t.Fatal(err)
		}
		check()
		if held, n := dev.reserved(); held != 0 || n != 0 {
			t.Fatalf("%d bytes in %d segments are left", held, n)
		}
	})
}

// checkChunks checks the allocator's lists: chunks tile their segments, no two free ones are neighbours, the pools hold
// exactly the free ones.
func checkChunks(t *rapid.T, a *Allocator, used int) {
	t.Helper()
	free := map[*chunk]bool{}
	for i := range a.pools {
		p := a.pools[i].free
		for j, c := range p {
			if !c.free || c.seg.pool != i || j > 0 && compareChunks(p[j-1], c) >= 0 {
				t.Fatalf("pool %d is not in order at %d", i, j)
			}
			free[c] = true
		}
	}
	// From each free chunk walk its segment; wholly used segments are covered by the model's check for overlaps.
	seen := map[*segment]bool{}
	for c := range free {
		if seen[c.seg] {
			continue
		}
		seen[c.seg] = true
		for c.prev != nil {
			c = c.prev
		}
		off := int64(0)
		for ; c != nil; c = c.next {
			if c.off != off || c.size <= 0 || c.free != free[c] || c.next != nil && (c.next.prev != c || c.free && c.next.free) {
				t.Fatalf("segment %d is broken at %d", c.seg.id, off)
			}
			off += c.size
			if c.next == nil && off != c.seg.size {
				t.Fatalf("segment %d: chunks end at %d of %d", c.seg.id, off, c.seg.size)
			}
		}
	}
}

func BenchmarkAllocator(b *testing.B) {
	a := NewAllocator(&fakeDevice{info: Info{API: "fake"}}, AllocatorConfig{})
	var blocks [64]*Block
	for i := 0; b.Loop(); i++ {
		k := i % len(blocks)
		if blocks[k] != nil {
			blocks[k].Free()
		}
		var err error
		if blocks[k], err = a.Alloc(int64(i%7)*100_000 + 1); err != nil {
			b.Fatal(err)
		}
	}
}
