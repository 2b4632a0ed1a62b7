package tensor

import (
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// maxFrames bounds the calls that a site remembers.
const maxFrames = 24

// site is a place in the program: cheap to take, looked up only for a message. An operator is called from the same places again and
// again, and walking the frame pointers is much cheaper than [runtime.Callers], which expands inlined calls.
type site struct {
	n       int
	stack   [maxFrames]uintptr // the return addresses by which it is found
	callers []uintptr          // those of runtime.Callers
}

// knownSites are found by a hash of the addresses; an entry makes way for another one with the same place.
var knownSites [1024]atomic.Pointer[site]

// here takes the current place; skip counts the library's frames that are known to be above.
func here(skip int) *site {
	var pcs [maxFrames]uintptr
	n := frames(&pcs)
	if n == 0 {
		return callers(skip + 1)
	}
	var h uint64
	for _, pc := range pcs[:n] {
		h = (h ^ uint64(pc)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	slot := &knownSites[h%uint64(len(knownSites))]
	if k := slot.Load(); k != nil && k.n == n && k.stack == pcs {
		return k
	}
	s := callers(skip + 1)
	s.n, s.stack = n, pcs
	slot.Store(s)
	return s
}

func callers(skip int) *site {
	var pcs [maxFrames]uintptr
	n := runtime.Callers(skip+2, pcs[:])
	return &site{callers: append([]uintptr(nil), pcs[:n]...)}
}

const modulePath = "github.com/anygpu/anygpu/"

// insideLibrary reports whether a frame belongs to the library and not to its user.
func insideLibrary(f runtime.Frame) bool {
	rest, ok := strings.CutPrefix(f.Function, modulePath)
	if !ok || strings.HasSuffix(f.File, "_test.go") {
		return strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "iter.")
	}
	for _, p := range [...]string{"tensor", "train/", "amp", "backend", "shaders/"} {
		if after, ok := strings.CutPrefix(rest, p); ok && (strings.HasSuffix(p, "/") || after[0] == '.' || after[0] == '/') {
			return true
		}
	}
	return false
}

// resolve returns the file (without folder) and line of the first frame outside the library.
func (s *site) resolve() (file string, line int) {
	if s == nil || len(s.callers) == 0 {
		return "", 0
	}
	frames := runtime.CallersFrames(s.callers)
	for {
		f, more := frames.Next()
		if f.File != "" && !insideLibrary(f) {
			return filepath.Base(f.File), f.Line
		}
		if !more {
			return "", 0
		}
	}
}
