package conformance_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/conformance"
	"github.com/anygpu/anygpu/tensor"
)

// TestSession holds what a program that spreads cases over processes relies on.
func TestSession(t *testing.T) {
	for _, quick := range []bool{true, false} {
		list := func() *conformance.Session {
			t.Helper()
			s, err := conformance.NewSession(tensor.CPU(), conformance.Options{Quick: quick})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := list()
		names := s.Cases()
		if again := list().Cases(); strings.Join(again, "\n") != strings.Join(names, "\n") {
			t.Error("two sessions list different cases")
		}
		seen := map[string]bool{}
		for _, n := range names {
			if seen[n] {
				t.Errorf("two cases are called %s", n)
			}
			seen[n] = true
		}
		const size = 80
		dealt, pieceOf := map[int]bool{}, map[string]int{}
		pieces := s.Pieces(size)
		for i, p := range pieces {
			for _, c := range p {
				if dealt[c] {
					t.Errorf("case %s is dealt twice", names[c])
				}
				dealt[c] = true
				// The cases of one operator share programs.
				if parts := strings.Split(names[c], "/"); parts[0] == "operators" && parts[1] != "golden" && strings.HasPrefix(parts[2], "float32") {
					if at, ok := pieceOf[parts[1]]; ok && at != i {
						t.Errorf("cases of %s are in two pieces", parts[1])
					}
					pieceOf[parts[1]] = i
				}
			}
		}
		if len(dealt) != len(names) || len(pieces) < len(names)/(3*size) {
			t.Errorf("%d of %d cases are dealt, in %d pieces", len(dealt), len(names), len(pieces))
		}
	}
	if _, err := conformance.NewSession(tensor.CPU(), conformance.Options{Mode: conformance.ModePerf}); err == nil {
		t.Error("a mode without cases has a session")
	}
	s, err := conformance.NewSession(tensor.CPU(), conformance.Options{Quick: true, Case: regexp.MustCompile("^operators/add/")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run([]int{len(s.Cases())}, false, conformance.Observer{}); err == nil {
		t.Error("a case that is not listed gives no error")
	}
	var started, done []int
	err = s.Run([]int{2, 0}, true, conformance.Observer{Started: func(i int) { started = append(started, i) }, Done: func(i int, r conformance.Result) {
		done = append(done, i)
		if r.Name != s.Cases()[i] || r.Status != conformance.Pass {
			t.Errorf("case %d: %+v", i, r)
		}
	}})
	if err != nil || len(started) != 2 || started[0] != 2 || done[1] != 0 {
		t.Errorf("started %v, done %v, %v", started, done, err)
	}
}
