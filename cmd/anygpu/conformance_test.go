package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runCommand runs anygpu with arguments and returns what it printed and its exit status.
func runCommand(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(context.Background()); err != nil {
		return out.String() + err.Error(), exitStatus(err)
	}
	return out.String(), 0
}

func TestConformanceCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	out, status := runCommand(t, "conformance", "--device", "cpu", "--quick", "--case", "^operators/add/", "--html", file("r.html"), "--json", file("r.json"), "--junit", file("r.xml"))
	if status != 0 || !strings.Contains(out, "operators") || !strings.Contains(out, "seed 0") {
		t.Errorf("status %d:\n%s", status, out)
	}
	for _, f := range []string{"r.html", "r.json", "r.xml"} {
		if b, err := os.ReadFile(file(f)); err != nil || !bytes.Contains(b, []byte("cpu")) {
			t.Errorf("%s: %v, %d bytes", f, err, len(b))
		}
	}
	for name, args := range map[string][]string{
		"mode":    {"--mode", "fast"},
		"suite":   {"--suite", "nothing"},
		"regexp":  {"--case", "("},
		"device":  {"--device", "nodriver:0"},
		"golden":  {"--golden", file("absent")},
		"no case": {"--case", "^no/such/case$", "--suite", "memory"},
		"flag":    {"--fast"},
		"args":    {"more"},
	} {
		if out, status := runCommand(t, append([]string{"conformance", "--device", "cpu"}, args...)...); status != 2 {
			t.Errorf("%s: status %d, want 2: %s", name, status, out)
		}
	}
	if out, status := runCommand(t, "conformance", "--device", "cpu", "--mode", "support", "--case", "^exp$"); status != 0 || !strings.Contains(out, "bfloat16") {
		t.Errorf("support: status %d:\n%s", status, out)
	}
}

// TestConformanceGolden runs recorded cases of a folder, and expects a wrong one to fail with status 1.
func TestConformanceGolden(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"relu.npz", "neg.npz"} {
		b, err := os.ReadFile(filepath.Join("../../conformance/testdata/ops", f))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write := func(op string) {
		t.Helper()
		text := `{"cases": [{"name": "mine", "op": "` + op + `", "attrs": {}, "inputs": ["x"], "outputs": 1, "grads": ["x"], "rtol": 2e-5, "atol": 1e-6, "file": "neg.npz"}]}`
		if err := os.WriteFile(filepath.Join(dir, "cases.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("neg")
	if out, status := runCommand(t, "conformance", "--device", "cpu", "--golden", dir); status != 0 || !strings.Contains(out, "operators") {
		t.Errorf("status %d:\n%s", status, out)
	}
	write("abs")
	out, status := runCommand(t, "conformance", "--device", "cpu", "--golden", dir)
	if status != 1 || !strings.Contains(out, "golden/mine/float32") || !strings.Contains(out, "--golden "+dir) {
		t.Errorf("a wrong case: status %d:\n%s", status, out)
	}
}
