package tune_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/tune"
)

var device = backend.Info{API: "opencl", Name: "Some GPU", Driver: "Some driver", DriverVersion: "1.2"}

func TestTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	table := tune.Open(dir, device)
	if _, ok := table.Get("a"); ok || table.Note() != "" {
		t.Fatalf("a new table has a choice or a note %q", table.Note())
	}
	table.Set("a", tune.Choice{Variant: 3, BestMS: 1, OwnMS: 2, Measured: 4})
	if err := table.Save(); err != nil {
		t.Fatal(err)
	}
	again := tune.Open(dir, device)
	if c, ok := again.Get("a"); !ok || c.Variant != 3 || again.Len() != 1 {
		t.Errorf("read back %+v, %v", c, ok)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 1 {
		t.Fatalf("%d files are left, want 1", len(files))
	}

	updated := device
	updated.DriverVersion = "1.3"
	if other := tune.Open(dir, updated); other.Len() != 0 || !strings.Contains(other.Note(), "1.2") {
		t.Errorf("another driver's file: %d choices, note %q", other.Len(), other.Note())
	}
	path := filepath.Join(dir, files[0].Name())
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{string(raw[:len(raw)/2]), "", "[]", `{"format":9}`, strings.Replace(string(raw), "Some GPU", "Other GPU", 1)} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if other := tune.Open(dir, device); other.Len() != 0 || !strings.Contains(other.Note(), "ignored") {
			t.Errorf("file %.20q: %d choices, note %q", bad, other.Len(), other.Note())
		}
	}
}

func TestTableWithoutFolder(t *testing.T) {
	table := tune.Open("", device)
	table.Set("a", tune.Choice{Variant: 1})
	if err := table.Save(); err != nil {
		t.Error(err)
	}
}
