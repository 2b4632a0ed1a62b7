package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readmeProgram returns the first complete Go program of README.md.
func readmeProgram(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(b), "```go\n")[1:] {
		code, _, ok := strings.Cut(block, "```")
		if ok && strings.HasPrefix(code, "package main") {
			return code
		}
	}
	t.Fatal("README.md has no complete Go program")
	return ""
}

// TestReadmeProgram builds and runs the README's program as a user would: in a module of its own with the replace directive that
// the README gives.
func TestReadmeProgram(t *testing.T) {
	program := readmeProgram(t)
	if n := strings.Count(program, "\n"); n > 60 {
		t.Errorf("the README's program has %d lines", n)
	}
	runReadme(t, program)
}

// TestReadmeLoop does the same with the loop of package train, which the README puts in place of the program's end.
func TestReadmeLoop(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	begin, _, found := strings.Cut(readmeProgram(t), "\tscaler :=")
	_, rest, has := strings.Cut(string(b), "```go\n\tctx, stop :=")
	end, _, closed := strings.Cut(rest, "```")
	if !found || !has || !closed {
		t.Fatal("README.md has no line of scaler in the program, or no second part that begins with ctx")
	}
	imports := `import (
	"context"
	"os"
	"os/signal"

	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/checkpoint"
	"github.com/anygpu/anygpu/train/progress"
`
	runReadme(t, strings.Replace(begin, "import (\n", imports, 1)+"\tctx, stop :="+end)
}

// runReadme builds and runs a program that prints its accuracy.
func runReadme(t *testing.T, program string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "ANYGPU_DEVICE=cpu")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("go", "mod", "init", "example.com/readme")
	run("go", "mod", "edit", "-require=github.com/anygpu/anygpu@v0.0.0", "-replace=github.com/anygpu/anygpu="+root)
	run("go", "build", "-o", "readme", ".")
	out := run(filepath.Join(dir, "readme"))
	if !strings.Contains(out, "accuracy 0.8") {
		t.Errorf("the program printed:\n%s", out)
	}
}
