package backend

import (
	"fmt"
	"strings"
)

// Stat is a statistic over an allocator's life.
type Stat struct {
	Current   int64 // now
	Peak      int64 // highest since the start or [Allocator.ResetPeak]
	Allocated int64 // sum of the increases
	Freed     int64 // sum of the decreases
}

func (s *Stat) add(n int64) {
	s.Current += n
	if n >= 0 {
		s.Allocated += n
		s.Peak = max(s.Peak, s.Current)
	} else {
		s.Freed -= n
	}
}

// PoolStats are the statistics of a pool, with the meaning they have in torch.cuda.memory_stats.
type PoolStats struct {
	Allocations   Stat // blocks in use
	Segments      Stat // allocations of the device
	Active        Stat // blocks in use or not yet reusable; equal to Allocations, since a freed block is reusable at once
	InactiveSplit Stat // free blocks in segments that are also in use: what EmptyCache cannot give back

	AllocatedBytes     Stat // in use, rounded up to the allocator's granularity
	ReservedBytes      Stat // held from the device
	ActiveBytes        Stat
	InactiveSplitBytes Stat
	RequestedBytes     Stat // in use, as asked for
}

func (p *PoolStats) each() []*Stat {
	return []*Stat{&p.Allocations, &p.Segments, &p.Active, &p.InactiveSplit,
		&p.AllocatedBytes, &p.ReservedBytes, &p.ActiveBytes, &p.InactiveSplitBytes, &p.RequestedBytes}
}

// Stats are an allocator's statistics: of both pools together, and of each.
type Stats struct {
	PoolStats           // both pools
	Small     PoolStats // requests up to 1 MiB
	Large     PoolStats

	Retries int64 // times that memory ran out and cached segments were given back to try again
	OOMs    int64 // out-of-memory errors returned
	Limit   int64 // of the reserved bytes; 0 if none
}

func (s *Stats) count(pool int, f func(*PoolStats)) {
	f(&s.PoolStats)
	if pool == smallPool {
		f(&s.Small)
	} else {
		f(&s.Large)
	}
}

// Stats returns the statistics.
func (a *Allocator) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Limit = a.limit
	return s
}

// ResetPeak sets the peaks to the current values.
func (a *Allocator) ResetPeak() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range []*PoolStats{&a.stats.PoolStats, &a.stats.Small, &a.stats.Large} {
		for _, s := range p.each() {
			s.Peak = s.Current
		}
	}
}

// Summary returns the statistics as a table for people.
func (a *Allocator) Summary() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.summary()
}

func (a *Allocator) summary() string {
	var sb strings.Builder
	s := &a.stats
	fmt.Fprintf(&sb, "memory of %s", a.info)
	if a.info.Memory > 0 {
		fmt.Fprintf(&sb, " (%s)", FormatBytes(a.info.Memory))
	}
	if a.limit > 0 {
		fmt.Fprintf(&sb, ", limited to %s", FormatBytes(a.limit))
	}
	fmt.Fprintf(&sb, ": %d retries, %d out of memory\n", s.Retries, s.OOMs)
	const row = "  %-22s %12s %12s %12s %12s\n"
	fmt.Fprintf(&sb, row, "", "current", "peak", "allocated", "freed")
	number := func(n int64) string { return fmt.Sprint(n) }
	line := func(name string, st Stat, format func(int64) string) {
		fmt.Fprintf(&sb, row, name, format(st.Current), format(st.Peak), format(st.Allocated), format(st.Freed))
	}
	line("in use", s.AllocatedBytes, FormatBytes)
	line("  small pool", s.Small.AllocatedBytes, FormatBytes)
	line("  large pool", s.Large.AllocatedBytes, FormatBytes)
	line("requested", s.RequestedBytes, FormatBytes)
	line("reserved", s.ReservedBytes, FormatBytes)
	line("  small pool", s.Small.ReservedBytes, FormatBytes)
	line("  large pool", s.Large.ReservedBytes, FormatBytes)
	line("free in used segments", s.InactiveSplitBytes, FormatBytes)
	line("blocks", s.Allocations, number)
	line("segments", s.Segments, number)
	return strings.TrimSuffix(sb.String(), "\n")
}

// FormatBytes returns n bytes in a binary unit: "512 B", "20.0 MiB".
func FormatBytes(n int64) string {
	const units = "KMGTPE"
	if n > -1024 && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n) / 1024
	u := 0
	// 1023.95 prints as 1024.0.
	for (v >= 1023.95 || v <= -1023.95) && u < len(units)-1 {
		v /= 1024
		u++
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}
