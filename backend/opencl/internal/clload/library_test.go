//go:build cgo

package clload

import (
	"debug/elf"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jgillich/go-opencl/cl"
)

// TestNotLinked checks what the package is for: this program, which contains the binding, does not need libOpenCL to start,
// and shows none of the cl functions to libraries that are loaded later.
func TestNotLinked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads an ELF file")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libs {
		if strings.Contains(l, "OpenCL") {
			t.Errorf("the program needs %s", l)
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return strings.HasPrefix(s.Name, "cl") && s.Name != "clearenv" && s.Name != "close" && s.Name != "clock_gettime"
	}) {
		t.Error("cl functions are dynamic symbols")
	}
}

// TestNoLibrary runs this test program again with a library that does not exist.
func TestNoLibrary(t *testing.T) {
	const missing = "libOpenCL-that-is-not-there.so"
	if os.Getenv("CLLOAD_TEST_CHILD") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoLibrary$")
		cmd.Env = append(os.Environ(), "CLLOAD_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if !Use(missing) {
		t.Fatal("Use came too late")
	}
	if _, err := cl.GetPlatforms(); CodeOf(err) != PlatformNotFound {
		t.Errorf("GetPlatforms: %v, want -1001", err)
	}
	var e cl.Event
	if err := e.SetUserEventStatus(0); CodeOf(err) != PlatformNotFound {
		t.Errorf("a function that returns a code: %v, want -1001", err)
	}
	var c cl.Context
	if _, err := c.CreateUserEvent(); CodeOf(err) != PlatformNotFound {
		t.Errorf("a function that returns an object: %v, want -1001", err)
	}
	if _, err := Library(); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("Library: %v, want an error that names %s", err, missing)
	}
	if Use("another") {
		t.Error("Use after the first call must report that it is too late")
	}
}

func TestCodes(t *testing.T) {
	cases := []struct {
		err  error
		code Code
		text string
	}{
		{nil, 0, "OpenCL error 0"},
		{cl.ErrOutOfResources, OutOfResources, "CL_OUT_OF_RESOURCES (-5)"},
		{cl.ErrOther(-9999), IllegalAccessNVIDIA, "illegal access by a kernel (NVIDIA) (-9999)"},
		{cl.ErrOther(-77), -77, "OpenCL error -77"},
		{cl.ErrUnknown, -59, "CL_INVALID_OPERATION (-59)"},
	}
	for _, c := range cases {
		if got := CodeOf(c.err); got != c.code || got.Error() != c.text {
			t.Errorf("%v: got %d %q, want %d %q", c.err, got, got.Error(), c.code, c.text)
		}
	}
}
