package conformance

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// readNPZ reads the arrays of a NumPy .npz file as CPU tensors, by name.
func readNPZ(fsys fs.FS, path string) (map[string]*tensor.Tensor, error) {
	data, err := fs.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := make(map[string]*tensor.Tensor, len(z.File))
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			return nil, fmt.Errorf("%s: member %s is no .npy array", path, f.Name)
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name, err)
		}
		t, err := tensor.ReadNPY(r)
		if cerr := r.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name, err)
		}
		out[name] = t
	}
	return out, nil
}
