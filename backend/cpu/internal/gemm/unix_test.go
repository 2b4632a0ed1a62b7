//go:build unix

package gemm

import (
	"math/rand/v2"
	"syscall"
	"testing"
)

// guarded returns n bytes that end where a page without access begins, or start behind one.
func guarded(t *testing.T, n int, atEnd bool) []byte {
	page := syscall.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	for _, g := range [][]byte{m[:page], m[page+size:]} {
		if err := syscall.Mprotect(g, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if atEnd {
		return m[page+size-n : page+size]
	}
	return m[page : page+n]
}

// TestGuardPages runs products whose operands and results touch memory without access: a read or write of one element
// too many ends the test.
func TestGuardPages(t *testing.T) {
	eachSet(t, func(t *testing.T, s *isa) {
		r := rand.New(rand.NewPCG(11, 12))
		for i := range 400 {
			sh := shape{m: 1 + r.IntN(50), n: 1 + r.IntN(70), k: 1 + r.IntN(70), batch: 1, la: layout(r.IntN(4)), lb: layout(r.IntN(4)), ka: Kind(r.IntN(3)), kb: Kind(r.IntN(3)), bias: r.IntN(2) == 0, precise: r.IntN(3) == 0}
			if i%2 == 0 {
				sh.ka, sh.kb = F32, F32
			}
			if i%5 == 0 {
				sh.m = 1 + r.IntN(3)
				sh.n = 1 + r.IntN(300)
			}
			atEnd := r.IntN(3) > 0
			f := newFixture(r, sh, func(n int) []byte { return guarded(t, n, atEnd) })
			if err := f.p.run(one{}, s); err != nil {
				t.Fatal(sh, err)
			}
			f.check(t)
			if t.Failed() {
				t.Fatal(sh)
			}
		}
	})
}

// TestConvolutionGuardPages is TestGuardPages for convolutions.
func TestConvolutionGuardPages(t *testing.T) {
	eachSet(t, func(t *testing.T, s *isa) {
		r := rand.New(rand.NewPCG(31, 32))
		for i := range 60 {
			var kinds [3]Kind
			if i%2 == 0 {
				kinds = [3]Kind{Kind(r.IntN(3)), Kind(r.IntN(3)), Kind(r.IntN(3))}
			}
			alloc := func(n int) []byte { return guarded(t, n, i%3 > 0) }
			f := newConvCase(r, randomConv(r), kinds, alloc)
			forward, input, weight := f.run(t, one{}, s, false, alloc)
			f.check(t, forward, input, weight)
		}
	})
}
