package data

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func idxBytes(typ byte, dims []uint32, data []byte) []byte {
	b := []byte{0, 0, typ, byte(len(dims))}
	for _, d := range dims {
		b = append(b, byte(d>>24), byte(d>>16), byte(d>>8), byte(d))
	}
	return append(b, data...)
}

func gzipped(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

func TestReadIDX(t *testing.T) {
	want := []byte{1, 2, 3, 4, 5, 6}
	plain := idxBytes(8, []uint32{2, 3}, want)
	for name, file := range map[string][]byte{"plain": plain, "gzip": gzipped(plain)} {
		a, err := ReadIDX(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !equalShapes(a.Shape, []int{2, 3}) || !bytes.Equal(a.Data, want) {
			t.Errorf("%s: got %v %v", name, a.Shape, a.Data)
		}
	}
}

func TestReadIDXHostile(t *testing.T) {
	good := idxBytes(8, []uint32{2, 3}, make([]byte, 6))
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"empty", "ends within the 4-byte magic", nil},
		{"wrong magic", "wrong magic number 0x01020803", []byte{1, 2, 8, 3, 0, 0, 0, 0}},
		{"float elements", "element type 0x0d", idxBytes(0x0d, []uint32{1}, []byte{0})},
		{"no dimensions", "0 dimensions", idxBytes(8, nil, nil)},
		{"too many dimensions", "200 dimensions", []byte{0, 0, 8, 200}},
		{"truncated header", "dimension 1 of 3", []byte{0, 0, 8, 3, 0, 0, 0, 1}},
		{"oversized header", "promises more than", idxBytes(8, []uint32{1 << 31, 1 << 31, 1 << 31}, nil)},
		{"big header, little data", "promises 4000000000 bytes of data, but the file ends after 3", idxBytes(8, []uint32{4000000000}, []byte{1, 2, 3})},
		{"truncated data", "promises 6 bytes of data, but the file ends after 5", good[:len(good)-1]},
		{"trailing data", "data goes on", append(append([]byte{}, good...), 7)},
		{"truncated gzip", "", gzipped(good)[:20]},
		{"broken gzip", "bad gzip", []byte{0x1f, 0x8b, 0, 0}},
	} {
		_, err := ReadIDX(bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that contains %q", c.name, err, c.want)
		}
	}
}

func FuzzReadIDX(f *testing.F) {
	good := idxBytes(8, []uint32{2, 3}, make([]byte, 6))
	f.Add(good)
	f.Add(gzipped(good))
	f.Add(good[:5])
	f.Fuzz(func(t *testing.T, file []byte) {
		a, err := ReadIDX(bytes.NewReader(file))
		if err != nil {
			return
		}
		n := 1
		for _, d := range a.Shape {
			n *= d
		}
		if n != len(a.Data) {
			t.Fatalf("shape %v with %d bytes", a.Shape, len(a.Data))
		}
	})
}

func TestFashionMNISTEmbedded(t *testing.T) {
	train, test, err := FashionMNIST("")
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 9000 || test.Len() != 1000 {
		t.Fatalf("%d to train and %d to test, want 9000 and 1000", train.Len(), test.Len())
	}
	s, err := train.At(0)
	if err != nil || s.Y != 9 || !equalShapes(s.Shape, []int{1, 28, 28}) || len(s.X) != 784 {
		t.Fatalf("first sample: label %d shape %v, %v; the first test image of Fashion-MNIST is an ankle boot (9)", s.Y, s.Shape, err)
	}
	if _, err := train.At(9000); err == nil {
		t.Error("sample 9000 of 9000 gave no error")
	}
}

func TestFashionMNISTFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		_, _, err := FashionMNIST(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Fatalf("error %v, want %q", err, want)
		}
	}
	expect("neither train-images-idx3-ubyte nor")
	images, labels := idxBytes(8, []uint32{2, 1, 2}, []byte{0, 255, 1, 2}), idxBytes(8, []uint32{2}, []byte{3, 9})
	for _, part := range []string{"train", "t10k"} {
		write(part+"-images-idx3-ubyte.gz", gzipped(images))
		write(part+"-labels-idx1-ubyte", labels)
	}
	expect("")
	write("t10k-labels-idx1-ubyte", idxBytes(8, []uint32{2}, []byte{3, 10}))
	expect("label of sample 1 is 10; 10 classes accept 0 to 9")
	write("t10k-labels-idx1-ubyte", idxBytes(8, []uint32{3}, []byte{3, 1, 1}))
	expect("2 images but 3 labels")
	write("t10k-labels-idx1-ubyte", images)
	expect("labels have shape")
	if _, _, err := FashionMNIST(filepath.Join(dir, "absent")); err == nil {
		t.Error("an absent folder gave no error")
	}
	if _, _, err := FashionMNIST(filepath.Join(dir, "train-labels-idx1-ubyte")); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a file in place of the folder: %v", err)
	}
}
