package data

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// maxNPZ bounds what the arrays of one file may take when uncompressed.
const maxNPZ = 16 << 30

// ReadNPZFile reads the arrays of NumPy's .npz, compressed or not, as CPU tensors, by their names without ".npy". For a single .npy see
// tensor.ReadNPY.
func ReadNPZFile(path string) (map[string]*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npz: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("npz: %w", err)
	}
	out, err := ReadNPZ(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// ReadNPZ reads an .npz archive of a size. Sizes that the archive claims are checked against what is there.
func ReadNPZ(r io.ReaderAt, size int64) (map[string]*tensor.Tensor, error) {
	out := map[string]*tensor.Tensor{}
	if err := readNPZ(r, size, maxNPZ, out); err != nil {
		for _, t := range out {
			t.Free()
		}
		return nil, fmt.Errorf("npz: %w", err)
	}
	return out, nil
}

func readNPZ(r io.ReaderAt, size int64, room uint64, out map[string]*tensor.Tensor) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return err
	}
	for _, f := range z.File {
		name, isNPY := strings.CutSuffix(f.Name, ".npy")
		switch {
		case !isNPY:
			return fmt.Errorf("%s is not an .npy file", f.Name)
		case out[name] != nil:
			return fmt.Errorf("the array %s appears twice", name)
		case f.UncompressedSize64 > room:
			return fmt.Errorf("%s: the arrays claim more than %d bytes", name, int64(maxNPZ))
		}
		room -= f.UncompressedSize64
		if out[name], err = readMember(f); err != nil {
			delete(out, name)
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func readMember(f *zip.File) (*tensor.Tensor, error) {
	rc, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	t, err := tensor.ReadNPY(rc)
	if err != nil {
		return nil, err
	}
	// Read to the end: the checksum is there, and nothing else may be.
	if n, err := io.Copy(io.Discard, io.LimitReader(rc, 1)); err != nil || n > 0 {
		t.Free()
		return nil, fmt.Errorf("data after the array, or a damaged archive: %v", err)
	}
	return t, nil
}
