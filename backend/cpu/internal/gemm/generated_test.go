package gemm

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var record = flag.Bool("record", false, "record the sums of the assembly and of its generator")

// sumsFile holds the sums of the generator's sources and of what it wrote.
const sumsFile = "kernels.sum"

// TestGenerated: the assembly is what the generator in gen writes. If this fails, run go generate.
func TestGenerated(t *testing.T) {
	names, err := filepath.Glob("gen/*")
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, "dots_amd64.go", "dots_amd64.s", "kernels_amd64.go", "kernels_amd64.s", "kernels_arm64.go", "kernels_arm64.s")
	slices.Sort(names)
	var sums strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b), filepath.ToSlash(name))
	}
	if *record {
		if err := os.WriteFile(sumsFile, []byte(sums.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(sumsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != sums.String() {
		t.Errorf("the assembly or its generator was changed without the other: run go generate\nrecorded:\n%snow:\n%s", want, sums.String())
	}
}
