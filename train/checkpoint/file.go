package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/anygpu/anygpu/tensor"
)

// SaveFile writes tensors to a safetensors file, whole or not at all (see writeFile).
func SaveFile(path string, tensors map[string]*tensor.Tensor, metadata map[string]string) error {
	_, err := saveFile(path, tensors, metadata)
	return err
}

func saveFile(path string, tensors map[string]*tensor.Tensor, metadata map[string]string) (sum string, err error) {
	hash := sha256.New()
	err = writeFile(path, func(w io.Writer) error {
		return WriteSafetensors(io.MultiWriter(w, hash), tensors, metadata)
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// LoadFile reads a safetensors file as CPU tensors, such as a state dict saved from PyTorch, for nn's LoadStateDict.
func LoadFile(path string) (map[string]*tensor.Tensor, map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	tensors, metadata, err := ReadSafetensors(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	return tensors, metadata, nil
}

// loadChecked is LoadFile for a file of known hash.
func loadChecked(path, sum string) (map[string]*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	hash := sha256.New()
	tensors, _, err := ReadSafetensors(io.TeeReader(bufio.NewReaderSize(f, 1<<20), hash))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		for _, t := range tensors {
			t.Free()
		}
		return nil, fmt.Errorf("%s: the file is damaged: its SHA-256 is %s, not %s", path, got, sum)
	}
	return tensors, nil
}

// writeFile replaces a file whole or not at all: what write makes goes to a temporary file of the same folder, which is synced and
// renamed; then the folder is synced. After an error, such as a full disk, the previous file is as it was, and the
// temporary one is gone.
func writeFile(path string, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("checkpoint: %s was not written; a previous file is unchanged: %w", path, err)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncDir(dir)
	return nil
}

// syncDir makes a rename last through a power cut. File systems without it need nothing, and the file is whole either way.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	_ = d.Sync()
}

// removeAll removes files that may be gone already.
func removeAll(paths ...string) error {
	var errs []error
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
