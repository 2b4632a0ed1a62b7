package conformance_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/anygpu/anygpu/"

// layers gives each folder its height; a package may import what is lower, and its own folder. train and amp are of one
// height: they do not import one another.
var layers = []struct {
	prefix string
	height int
}{
	{"cmd/", 6}, {"docs/examples", 6}, {"conformance", 5}, {"train", 4}, {"amp", 4}, {"tensor", 3}, {"backend", 2}, {"shaders", 1},
}

func layerOf(path string) (string, int) {
	rel := strings.TrimPrefix(path, module)
	for _, l := range layers {
		if strings.HasPrefix(rel, l.prefix) {
			return l.prefix, l.height
		}
	}
	return "", 0
}

// driverOf returns the name of the driver a package belongs to, or an empty string. A driver imports no other driver.
func driverOf(path string) string {
	rel := strings.TrimPrefix(path, module+"backend/")
	if rel == path {
		return ""
	}
	name, _, _ := strings.Cut(rel, "/")
	return name
}

func TestImportsPointDown(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages++
		from, height := layerOf(p.ImportPath)
		if height == 0 {
			t.Errorf("%s is in no layer; add its folder to the table and to docs/architecture", p.ImportPath)
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				continue
			}
			to, h := layerOf(imp)
			if h > height || h == height && from != to {
				t.Errorf("%s imports %s: the arrow goes up", p.ImportPath, imp)
			}
			if d := driverOf(p.ImportPath); d != "" && d != "all" && driverOf(imp) != "" && driverOf(imp) != d {
				t.Errorf("driver %s imports driver package %s", p.ImportPath, imp)
			}
		}
	}
	if packages < 15 {
		t.Fatalf("go list named %d packages only", packages)
	}
}

// TestFilesAreSmall holds every Go and C file to about 600 lines.
func TestFilesAreSmall(t *testing.T) {
	const most = 620
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".git") {
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go", ".c", ".h":
		default:
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			lines++
		}
		if lines > most {
			t.Errorf("%s has %d lines; split it by subject", path, lines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
