//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"time"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
)

var _ backend.Timestamper = (*device)(nil)

// Timestamps reports whether the device's queue has a clock.
func (d *device) Timestamps() bool { return d.ticks > 0 && d.limits.timestampPeriod > 0 }

// timedSlot is what a submission needs for the launches that are timed.
type timedSlot struct {
	queries   vk.QueryPool
	room      int // queries in it
	timings   []*backend.Timing
	submitted time.Time
}

// clock relates the device's clock to the host's: no submission begins before it was submitted, and one to an idle device begins soon
// after, so the largest difference that was seen is the best.
type clock struct {
	set    bool
	offset time.Duration // from the device's zero, in the host's clock after base
	base   time.Time
}

// reserveQueries makes room for the timestamps of the launches being recorded.
func (d *device) reserveQueries(s *slot) error {
	t := &s.timed
	t.timings = t.timings[:0]
	if len(d.work.timings) == 0 || !d.Timestamps() {
		for i := range d.work.ops {
			d.work.ops[i].timed = 0
		}
		return nil
	}
	if need := 2 * len(d.work.timings); need > t.room {
		d.destroyQueries(s)
		info := vk.QueryPoolCreateInfo{SType: vk.StructureTypeQueryPoolCreateInfo, QueryType: vk.QueryTypeTimestamp, QueryCount: uint32(2 * need)}
		defer info.Free()
		var pool vk.QueryPool
		if err := d.do("vkCreateQueryPool", func() vk.Result { return vk.CreateQueryPool(d.dev, &info, nil, &pool) }); err != nil {
			return err
		}
		t.queries, t.room = pool, 2*need
	}
	t.timings = append(t.timings, d.work.timings...)
	t.submitted = time.Now()
	return nil
}

func (d *device) destroyQueries(s *slot) {
	if s.timed.room > 0 {
		vk.DestroyQueryPool(d.dev, s.timed.queries, nil)
		s.timed.queries, s.timed.room = vk.QueryPool(vk.NullHandle), 0
	}
}

// readTimes fills the timings of a submission that is done. d.mu is held.
func (d *device) readTimes(s *slot) {
	t := &s.timed
	n := len(t.timings)
	if n == 0 {
		return
	}
	seen := time.Now()
	ticks := make([]uint64, 2*n)
	err := d.do("vkGetQueryPoolResults", func() vk.Result {
		return vk.GetQueryPoolResults(d.dev, t.queries, 0, uint32(2*n), uint(16*n), unsafe.Pointer(unsafe.SliceData(ticks)), 8,
			vk.QueryResultFlags(vk.QueryResult64Bit|vk.QueryResultWaitBit))
	})
	if err != nil {
		return // the launches then have no times
	}
	at := func(i int) time.Duration { // the counter wraps where it has few bits; a submission is taken to be shorter than that
		since := (ticks[i] - ticks[0]) & (1<<d.ticks - 1)
		return time.Duration(float64(since) * float64(d.limits.timestampPeriod))
	}
	first := time.Duration(float64(ticks[0]) * float64(d.limits.timestampPeriod))
	last := at(2*n - 1)
	c := &d.clock
	if !c.set {
		*c = clock{set: true, base: t.submitted, offset: -first}
	}
	c.offset = max(c.offset, t.submitted.Sub(c.base)-first)
	c.offset = min(c.offset, seen.Sub(c.base)-first-last)
	start := c.base.Add(c.offset + first)
	for i, timing := range t.timings {
		timing.Start, timing.End = start.Add(at(2*i)), start.Add(max(at(2*i), at(2*i+1)))
	}
	clear(t.timings)
	t.timings = t.timings[:0]
}
