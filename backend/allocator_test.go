package backend

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
)

const mib = 1 << 20

func newAllocator(l Limits, cfg AllocatorConfig) (*Allocator, *fakeDevice) {
	dev := &fakeDevice{info: Info{API: "vulkan", Memory: 8 << 30, Limits: l}}
	return NewAllocator(dev, cfg), dev
}

func alloc(t *testing.T, a *Allocator, size int64) *Block {
	t.Helper()
	b, err := a.Alloc(size)
	if err != nil {
		t.Fatalf("Alloc(%d): %v", size, err)
	}
	return b
}

func TestAllocatorSizeClasses(t *testing.T) {
	for _, c := range []struct {
		name    string
		limits  Limits
		size    int64
		segment int64
		region  int64
	}{
		{"empty", Limits{}, 0, 2 * mib, 4},
		{"one byte", Limits{}, 1, 2 * mib, 4},
		{"odd", Limits{}, 10, 2 * mib, 12},
		{"largest small", Limits{}, mib, 2 * mib, mib},
		{"smallest large", Limits{}, mib + 1, 20 * mib, mib + 4},
		{"large", Limits{}, 10*mib - 256, 20 * mib, 10*mib - 256},
		{"huge", Limits{}, 10 * mib, 10 * mib, 10 * mib},
		{"huge, rounded", Limits{}, 11*mib + 4, 12 * mib, 11*mib + 4},
		{"segment larger than an allocation may be", Limits{MaxAllocBytes: mib}, 5, mib, 8},
		{"large, too", Limits{MaxAllocBytes: 16 * mib}, 5 * mib, 16 * mib, 5 * mib},
		{"just what is possible", Limits{MaxAllocBytes: 12*mib + 4}, 12*mib + 1, 12*mib + 4, 12*mib + 4},
		{"limit that is no multiple of 4", Limits{MaxAllocBytes: 1003}, 999, 1000, 1000},
	} {
		a, dev := newAllocator(c.limits, AllocatorConfig{})
		for range 2 { // the second time from the cache
			b := alloc(t, a, c.size)
			r := b.Region()
			if got, n := dev.reserved(); got != c.segment || n != 1 {
				t.Errorf("%s: %d bytes in %d segments, want %d in one", c.name, got, n, c.segment)
			}
			if r.Size != c.region || r.Offset != 0 || b.Size() != c.size {
				t.Errorf("%s: region of %d bytes at %d, size %d; want %d at 0, %d", c.name, r.Size, r.Offset, b.Size(), c.region, c.size)
			}
			b.Free()
		}
	}
}

func TestAllocatorAlignment(t *testing.T) {
	for _, c := range []struct{ device, want int64 }{{0, 256}, {64, 256}, {256, 256}, {4096, 4096}} {
		a, _ := newAllocator(Limits{BufferOffsetAlign: c.device}, AllocatorConfig{})
		alloc(t, a, 5)
		if off := alloc(t, a, 5).Region().Offset; off != c.want {
			t.Errorf("BufferOffsetAlign %d: second block at %d, want %d", c.device, off, c.want)
		}
	}
}

func TestAllocatorReusesAndMerges(t *testing.T) {
	a, dev := newAllocator(Limits{}, AllocatorConfig{})
	var bs []*Block
	for range 4 {
		bs = append(bs, alloc(t, a, 512*1024))
	}
	// Full: 2 MiB. The two in the middle make room for one of twice the size.
	bs[1].Free()
	bs[2].Free()
	big := alloc(t, a, mib)
	if r := big.Region(); r.Offset != 512*1024 {
		t.Errorf("the merged block is at %d, want %d", r.Offset, 512*1024)
	}
	// The smallest hole that fits is taken: 256 bytes at the start rather than a new segment's rest.
	bs[0].Free()
	small := alloc(t, a, 1)
	if r := small.Region(); r.Offset != 0 {
		t.Errorf("the hole was not reused: offset %d", r.Offset)
	}
	if got, n := dev.reserved(); n != 1 || got != 2*mib {
		t.Errorf("%d bytes in %d segments, want one of 2 MiB", got, n)
	}
	small.Free()
	big.Free()
	bs[3].Free()
	if st := a.Stats(); st.InactiveSplit.Current != 0 || st.AllocatedBytes.Current != 0 || len(a.pools[smallPool].free) != 1 {
		t.Errorf("after the last Free: %+v, %d free blocks, want one", st.PoolStats, len(a.pools[smallPool].free))
	}
}

func TestAllocatorFreeTwice(t *testing.T) {
	a, _ := newAllocator(Limits{}, AllocatorConfig{})
	b := alloc(t, a, 100)
	b.Free()
	if r := b.Region(); r != (Region{}) {
		t.Errorf("region of a freed block: %+v", r)
	}
	c := alloc(t, a, 100) // the same place
	b.Free()
	if c.Region().Buffer == nil || a.Stats().Allocations.Current != 1 {
		t.Error("freeing a block twice freed the next owner's")
	}
}

// The number of API allocations stays far below 4,096.
func TestAllocatorFewAllocations(t *testing.T) {
	a, dev := newAllocator(Limits{MaxAllocs: 4096}, AllocatorConfig{})
	for range 20000 {
		alloc(t, a, 10_000)
	}
	if _, n := dev.reserved(); n > 120 {
		t.Errorf("%d allocations for 20,000 blocks of 10 kB", n)
	}
	// Large blocks share segments once many of the allocations are used up.
	a, dev = newAllocator(Limits{MaxAllocs: 40}, AllocatorConfig{})
	for range 400 {
		alloc(t, a, 12*mib)
	}
	if _, n := dev.reserved(); n > 40 {
		t.Errorf("%d allocations, 40 are possible", n)
	}
}

func TestAllocatorStats(t *testing.T) {
	a, _ := newAllocator(Limits{}, AllocatorConfig{})
	s1, l1 := alloc(t, a, 1000), alloc(t, a, 3*mib)
	s2 := alloc(t, a, 300)
	s1.Free()
	l1.Free()
	st := a.Stats()
	stat := func(cur, peak, allocated, freed int64) Stat { return Stat{cur, peak, allocated, freed} }
	want := PoolStats{
		Allocations:    stat(1, 3, 3, 2),
		Active:         stat(1, 3, 3, 2),
		Segments:       stat(2, 2, 2, 0),
		InactiveSplit:  stat(2, 3, 4, 2),
		AllocatedBytes: stat(512, 1024+512+3*mib, 1024+512+3*mib, 1024+3*mib),
		ActiveBytes:    stat(512, 1024+512+3*mib, 1024+512+3*mib, 1024+3*mib),
		ReservedBytes:  stat(22*mib, 22*mib, 22*mib, 0),
		RequestedBytes: stat(300, 1300+3*mib, 1300+3*mib, 1000+3*mib),
	}
	want.InactiveSplitBytes = st.InactiveSplitBytes
	if st.PoolStats != want {
		t.Errorf("stats\n got %+v\nwant %+v", st.PoolStats, want)
	}
	if got := st.InactiveSplitBytes.Current; got != 2*mib-512 {
		t.Errorf("%d inactive split bytes, want %d", got, 2*mib-512)
	}
	if st.Small.AllocatedBytes != stat(512, 1536, 1536, 1024) || st.Large.AllocatedBytes != stat(0, 3*mib, 3*mib, 3*mib) {
		t.Errorf("pools: small %+v, large %+v", st.Small.AllocatedBytes, st.Large.AllocatedBytes)
	}
	a.ResetPeak()
	if st := a.Stats(); st.AllocatedBytes.Peak != 512 || st.Allocations.Peak != 1 || st.Large.AllocatedBytes.Peak != 0 || st.ReservedBytes.Peak != 22*mib {
		t.Errorf("peaks after ResetPeak: %+v", st)
	}
	s2.Free()
}

func TestAllocatorEmptyCache(t *testing.T) {
	flushed := 0
	a, dev := newAllocator(Limits{}, AllocatorConfig{Flush: func() error { flushed++; return nil }})
	keep, drop := alloc(t, a, 100), alloc(t, a, 5*mib)
	if err := a.EmptyCache(); err != nil || flushed != 0 {
		t.Errorf("EmptyCache with nothing to free: %v, flushed %d times", err, flushed)
	}
	drop.Free()
	if err := a.EmptyCache(); err != nil || flushed != 1 {
		t.Errorf("EmptyCache: %v, flushed %d times, want once, before buffers are freed", err, flushed)
	}
	if got, n := dev.reserved(); got != 2*mib || n != 1 || a.Stats().ReservedBytes.Current != got {
		t.Errorf("%d bytes in %d segments are reserved, want the small one; stats %+v", got, n, a.Stats().ReservedBytes)
	}
	keep.Free()
	if err := a.EmptyCache(); err != nil {
		t.Error(err)
	}
	if got, _ := dev.reserved(); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
	alloc(t, a, 100) // works as before
}

func TestAllocatorLimit(t *testing.T) {
	a, dev := newAllocator(Limits{}, AllocatorConfig{Limit: 24 * mib})
	cached := alloc(t, a, 12*mib)
	cached.Free()
	b := alloc(t, a, 16*mib) // only when the cached segment is gone
	if st := a.Stats(); st.Retries != 1 || st.OOMs != 0 || st.Limit != 24*mib || st.ReservedBytes.Current != 16*mib {
		t.Errorf("stats %+v", st)
	}
	c := alloc(t, a, 6*mib) // a segment of 20 MiB does not fit, one of 6 does
	if got, _ := dev.reserved(); got != 22*mib {
		t.Errorf("%d bytes reserved, want 22 MiB", got)
	}
	_, err := a.Alloc(4 * mib)
	var oom *OutOfMemoryError
	if !errors.As(err, &oom) || !errors.Is(err, ErrOutOfMemory) {
		t.Fatalf("beyond the limit: %v", err)
	}
	if oom.Device != "vulkan:0" || oom.Requested != 4*mib || oom.Allocated != 22*mib || oom.Reserved != 22*mib || oom.Total != 8<<30 ||
		oom.Summary == "" || oom.Err == nil || oom.Err.Error() != "the allocator's limit is 25165824 bytes" {
		t.Errorf("the error is %+v", oom)
	}
	for _, s := range []string{"vulkan:0: out of memory: tried to allocate 4194304 bytes; 23068672 bytes are in use by tensors, 23068672 bytes are reserved, " +
		"the device has 8589934592 bytes (the allocator's limit is 25165824 bytes)\nmemory of vulkan:0 (8.0 GiB), limited to 24.0 MiB: 2 retries, 1 out of memory\n"} {
		if !strings.HasPrefix(err.Error(), s) {
			t.Errorf("error\n got %v\nwant prefix %s", err, s)
		}
	}
	a.SetLimit(0)
	alloc(t, a, 40*mib)
	a.SetLimit(1)
	if _, err := a.Alloc(mib); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("limit below what is held: %v", err)
	}
	b.Free()
	c.Free()
	alloc(t, a, 15*mib) // no: there is a free block, which the limit does not concern
}

func TestAllocatorRetriesAfterOutOfMemory(t *testing.T) {
	var dead []*Block
	reclaimed := 0
	a, dev := newAllocator(Limits{}, AllocatorConfig{Reclaim: func() {
		reclaimed++
		for _, b := range dead {
			b.Free()
		}
		dead = nil
	}})
	held := int64(0)
	dev.allocErr = func(size int64) error {
		held = 0
		for b := range dev.live {
			held += b.size
		}
		if held+size > 64*mib {
			return &OutOfMemoryError{Device: "vulkan:0", Requested: size, Err: errors.New("VK_ERROR_OUT_OF_DEVICE_MEMORY")}
		}
		return nil
	}
	dead = append(dead, alloc(t, a, 40*mib))
	b := alloc(t, a, 50*mib) // by Reclaim
	if st := a.Stats(); reclaimed != 1 || st.Retries != 1 || st.OOMs != 0 {
		t.Errorf("reclaimed %d times, %+v", reclaimed, st)
	}
	_, err := a.Alloc(30 * mib)
	var oom *OutOfMemoryError
	if !errors.As(err, &oom) || oom.Err == nil || oom.Err.Error() != "VK_ERROR_OUT_OF_DEVICE_MEMORY" || reclaimed != 2 || a.Stats().OOMs != 1 {
		t.Errorf("out of memory: %v, reclaimed %d times", err, reclaimed)
	}
	b.Free()
	alloc(t, a, 60*mib) // cached 50 MiB are given back
	if st := a.Stats(); st.Retries != 3 || st.ReservedBytes.Current != 60*mib {
		t.Errorf("%+v", st)
	}
}

func TestAllocatorTooLarge(t *testing.T) {
	a, dev := newAllocator(Limits{MaxAllocBytes: mib}, AllocatorConfig{})
	_, err := a.Alloc(4 * mib)
	var le *LimitError
	if !errors.As(err, &le) || err.Error() != "vulkan:0: the maximum size of one allocation in bytes is 1048576, but 4194304 was requested" {
		t.Errorf("too large: %v", err)
	}
	if _, err := a.Alloc(-1); err == nil || err.Error() != "vulkan:0: cannot allocate -1 bytes: the size must not be negative" {
		t.Errorf("negative: %v", err)
	}
	a, _ = newAllocator(Limits{}, AllocatorConfig{})
	if _, err := a.Alloc(math.MaxInt64); !errors.Is(err, ErrLimit) {
		t.Errorf("MaxInt64: %v", err)
	}
	// As many allocations as possible: out of memory, with the limit as its cause.
	a, dev = newAllocator(Limits{MaxAllocs: 1}, AllocatorConfig{})
	alloc(t, a, mib)
	if _, err := a.Alloc(2 * mib); !errors.Is(err, ErrOutOfMemory) || !errors.Is(err, ErrLimit) {
		t.Errorf("too many allocations: %v", err)
	}
	// Other errors of the device are passed on at once.
	dev.allocErr = func(int64) error { return errLost }
	a.segments = map[*segment]struct{}{}
	if _, err := a.Alloc(2 * mib); err != error(errLost) || a.Stats().Retries != 1 {
		t.Errorf("lost: %v", err)
	}
}

func TestAllocatorFlushFails(t *testing.T) {
	a, dev := newAllocator(Limits{}, AllocatorConfig{Flush: func() error { return errLost }})
	alloc(t, a, 5*mib).Free()
	if err := a.EmptyCache(); err != error(errLost) {
		t.Errorf("EmptyCache: %v", err)
	}
	if got, _ := dev.reserved(); got != 0 {
		t.Errorf("%d bytes left", got)
	}
	alloc(t, a, 5*mib).Free()
	a.SetLimit(30 * mib)
	if _, err := a.Alloc(25 * mib); err != error(errLost) {
		t.Errorf("Alloc: %v", err)
	}
}

func TestAllocatorClose(t *testing.T) {
	a, dev := newAllocator(Limits{}, AllocatorConfig{})
	b := alloc(t, a, 100)
	alloc(t, a, 5*mib).Free()
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if got, _ := dev.reserved(); got != 0 || a.Stats().ReservedBytes.Current != 0 {
		t.Errorf("%d bytes left", got)
	}
	if b.Region() != (Region{}) {
		t.Error("a block outlives Close")
	}
	b.Free()
	if _, err := a.Alloc(4); !errors.Is(err, ErrClosed) || err.Error() != "vulkan:0: the allocator: device is closed" {
		t.Errorf("Alloc after Close: %v", err)
	}
	if err := a.EmptyCache(); err != nil {
		t.Error(err)
	}
}

func TestAllocatorSummary(t *testing.T) {
	a, _ := newAllocator(Limits{}, AllocatorConfig{})
	alloc(t, a, 1000)
	alloc(t, a, 3*mib).Free()
	const want = `memory of vulkan:0 (8.0 GiB): 0 retries, 0 out of memory
                              current         peak    allocated        freed
  in use                      1.0 KiB      3.0 MiB      3.0 MiB      3.0 MiB
    small pool                1.0 KiB      1.0 KiB      1.0 KiB          0 B
    large pool                    0 B      3.0 MiB      3.0 MiB      3.0 MiB
  requested                    1000 B      3.0 MiB      3.0 MiB      3.0 MiB
  reserved                   22.0 MiB     22.0 MiB     22.0 MiB          0 B
    small pool                2.0 MiB      2.0 MiB      2.0 MiB          0 B
    large pool               20.0 MiB     20.0 MiB     20.0 MiB          0 B
  free in used segments       2.0 MiB     19.0 MiB     19.0 MiB     17.0 MiB
  blocks                            1            2            2            1
  segments                          2            2            2            0`
	if got := a.Summary(); got != want {
		t.Errorf("summary\n%s\nwant\n%s", got, want)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", mib - 1: "1.0 MiB", mib: "1.0 MiB",
		20 * mib: "20.0 MiB", 8 << 30: "8.0 GiB", math.MaxInt64: "8.0 EiB", -2048: "-2.0 KiB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestAllocatorConcurrently(t *testing.T) {
	a, dev := newAllocator(Limits{}, AllocatorConfig{Limit: 256 * mib, Flush: func() error { return nil }})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var mine []*Block
			for i := range 500 {
				b, err := a.Alloc(int64((i*7919+g*104729)%(3*mib) + 1))
				if err != nil {
					t.Error(err)
					return
				}
				mine = append(mine, b)
				if len(mine) > 5 {
					mine[i%5].Free()
					mine[i%5] = mine[5]
					mine = mine[:5]
				}
				if i%100 == 0 {
					a.EmptyCache()
					a.Summary()
					a.ResetPeak()
				}
			}
			for _, b := range mine {
				b.Free()
			}
		})
	}
	wg.Wait()
	if err := a.EmptyCache(); err != nil {
		t.Error(err)
	}
	st := a.Stats()
	if got, _ := dev.reserved(); got != 0 || st.AllocatedBytes.Current != 0 || st.ReservedBytes.Current != 0 || st.Allocations.Allocated != 8*500 {
		t.Errorf("%d bytes left, stats %+v", got, st.PoolStats)
	}
}
