// Package tune keeps which variant of a kernel was the fastest on a device, in a file for each device and version of its driver.
// It knows keys and numbers only: package lib has the variants, package tensor measures them.
package tune

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/anygpu/anygpu/backend"
)

// format is the version of the file's form.
const format = 1

// Choice is the variant found for a key.
type Choice struct {
	Variant  int     `json:"variant"`  // counted from 1; 0 is the generator's own choice
	BestMS   float64 `json:"best_ms"`  // of the variant
	OwnMS    float64 `json:"own_ms"`   // of the generator's own choice
	Measured int     `json:"measured"` // variants that gave the right result
}

// file is what a file holds.
type file struct {
	Format  int               `json:"format"`
	API     string            `json:"api"`
	Device  string            `json:"device"`
	Driver  string            `json:"driver"`
	Version string            `json:"version"`
	Choices map[string]Choice `json:"choices"`
}

// Table is the choices for one device. Its methods may be called from several goroutines.
type Table struct {
	mu   sync.Mutex
	path string
	data file
	note string
	news bool // something that the file has not
}

// Folder returns the folder of tuning files: ANYGPU_CACHE_DIR, or anygpu in the user's cache folder; empty if there is none.
func Folder() string {
	if dir := os.Getenv("ANYGPU_CACHE_DIR"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "anygpu")
}

// Open reads the table of a device from folder. A file that is damaged, or another device's or driver's, is ignored; Note says so.
// Without a folder the table is kept in memory only.
func Open(folder string, info backend.Info) *Table {
	t := &Table{data: file{Format: format, API: info.API, Device: info.Name, Driver: info.Driver, Version: info.DriverVersion, Choices: map[string]Choice{}}}
	if folder == "" {
		return t
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{info.API, info.Name, info.Driver}))
	t.path = filepath.Join(folder, fmt.Sprintf("tune-%s-%x.json", info.API, sum[:8]))
	raw, err := os.ReadFile(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t
	case err != nil:
		t.note = fmt.Sprintf("the tuning file cannot be read: %v", err)
		return t
	}
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		t.note = fmt.Sprintf("the tuning file %s is damaged and ignored: %v", t.path, err)
		return t
	}
	if f.Format != format || f.API != info.API || f.Device != info.Name || f.Driver != info.Driver || f.Version != info.DriverVersion {
		t.note = fmt.Sprintf("the tuning file %s is of %s with driver %s %s and ignored; 'anygpu bench --tune' makes a new one", t.path, f.Device, f.Driver, f.Version)
		return t
	}
	for key, c := range f.Choices {
		if c.Variant >= 0 {
			t.data.Choices[key] = c
		}
	}
	return t
}

// Note says why a file was ignored, or is empty.
func (t *Table) Note() string { return t.note }

// Len returns the number of choices.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.data.Choices)
}

// Get returns the choice for a key.
func (t *Table) Get(key string) (Choice, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.data.Choices[key]
	return c, ok
}

// Set notes a choice; Save writes it.
func (t *Table) Set(key string, c Choice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data.Choices[key] = c
	t.news = true
}

// Save writes the file if there is something new. Other processes see the old file or the new one, never a part.
func (t *Table) Save() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.news || t.path == "" {
		return nil
	}
	raw, err := json.MarshalIndent(t.data, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(t.path), filepath.Base(t.path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), t.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	t.news = false
	return nil
}
