package tensor

import (
	"slices"
	"testing"
)

//go:noinline
func siteDirect(n int) []*site {
	var out []*site
	for range n {
		out = append(out, here(0))
	}
	return out
}

func siteInlined() *site { return here(0) }

// TestSiteIsThatOfCallers holds the sites that frame pointers find against those of the runtime, also through inlined functions, at their
// first use and later, and from several goroutines.
func TestSiteIsThatOfCallers(t *testing.T) {
	for range 3 {
		got, want := here(0), callers(0)
		gf, gl := got.resolve()
		wf, wl := want.resolve()
		if gf != wf || gl != wl {
			t.Errorf("here is %s:%d, not %s:%d", gf, gl, wf, wl)
		}
	}
	for i, f := range []func() *site{siteInlined, func() *site { return siteInlined() }, func() *site { return siteDirect(1)[0] }} {
		first, second := f(), f()
		if _, line := first.resolve(); line == 0 {
			t.Errorf("case %d: no line", i)
		}
		if slices.Equal(first.callers, second.callers) {
			t.Errorf("case %d: calls in two places are told apart by nothing", i)
		}
	}
	same := siteDirect(2)
	if !slices.Equal(same[0].callers, same[1].callers) || frames(new([maxFrames]uintptr)) > 0 && same[0] != same[1] {
		t.Error("a place that was seen before is taken again")
	}
	done := make(chan *site)
	for range 4 {
		go func() { done <- siteInlined() }()
	}
	for range 4 {
		if file, line := (<-done).resolve(); file != "site_test.go" || line == 0 {
			t.Errorf("in a goroutine: %s:%d", file, line)
		}
	}
	deep := func() (s *site) {
		var f func(n int)
		f = func(n int) {
			if n > 0 {
				f(n - 1)
				return
			}
			s = here(0)
		}
		f(100)
		return s
	}()
	if file, _ := deep.resolve(); file != "site_test.go" || len(deep.callers) > maxFrames {
		t.Errorf("deep: %s, %d frames", file, len(deep.callers))
	}
}

func BenchmarkSite(b *testing.B) {
	b.Run("here", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			here(0)
		}
	})
	b.Run("callers", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			callers(0)
		}
	})
}
