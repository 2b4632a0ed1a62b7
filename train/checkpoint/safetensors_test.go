package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
)

// file makes a safetensors file of a header and a number of data bytes.
func file(header string, data int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	out = append(out, header...)
	for i := range data {
		out = append(out, byte(i))
	}
	return out
}

func TestRead(t *testing.T) {
	header := `{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},` +
		`"none":{"shape":[0,5],"data_offsets":[12,12],"dtype":"I64"},"one":{"dtype":"BF16","shape":[],"data_offsets":[12,14]}}    `
	ts, meta, err := ReadSafetensors(bytes.NewReader(file(header, 14)))
	if err != nil {
		t.Fatal(err)
	}
	if meta["format"] != "pt" || len(meta) != 1 || len(ts) != 4 {
		t.Errorf("%d tensors, metadata %v", len(ts), meta)
	}
	for name, want := range map[string]string{"a": "uint8 [4]", "b": "float32 [2 1]", "none": "int64 [0 5]", "one": "bfloat16 []"} {
		if got := fmt.Sprintf("%s %v", ts[name].DType(), ts[name].Shape()); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if v, err := ts["b"].Bytes(); err != nil || !bytes.Equal(v, []byte{4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("b has bytes % x %v", v, err)
	}
}

func TestReadHostile(t *testing.T) {
	f32 := func(name, shape string, begin, end int) string {
		return fmt.Sprintf(`%q:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, name, shape, begin, end)
	}
	for _, c := range []struct {
		want   string
		header string
		data   int
	}{
		{"overlap", `{` + f32("a", "[2]", 0, 8) + `,` + f32("b", "[2]", 4, 12) + `}`, 12},
		{"overlap", `{` + f32("a", "[2]", 0, 8) + `,` + f32("b", "[2]", 0, 8) + `}`, 8},
		{"a hole of 4 bytes", `{` + f32("a", "[1]", 0, 4) + `,` + f32("b", "[1]", 8, 12) + `}`, 12},
		{"a hole of 4 bytes", `{` + f32("a", "[1]", 4, 8) + `}`, 8},
		{"ends after 4 of them", `{` + f32("a", "[2]", 0, 8) + `}`, 4},
		{"ends after 0 of them", `{` + f32("a", "[100000,100000]", 0, 40000000000) + `}`, 0},
		{"data after the last tensor", `{` + f32("a", "[1]", 0, 4) + `}`, 5},
		{"shape [3] of F32 needs 12 bytes", `{` + f32("a", "[3]", 0, 8) + `}`, 8},
		{"too large", `{` + f32("a", "[2147483647,2147483647,2147483647]", 0, 8) + `}`, 8},
		{"too large", `{` + f32("a", "[4294967296]", 0, 8) + `}`, 8},
		{"not a begin and an end", `{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4},
		{"not a begin and an end", `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}`, 4},
		{`the name "a" appears twice`, `{` + f32("a", "[1]", 0, 4) + `,` + f32("a", "[1]", 4, 8) + `}`, 8},
		{`the name "dtype" appears twice`, `{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4},
		{`the name "__metadata__" appears twice`, `{"__metadata__":{},"__metadata__":{}}`, 0},
		{`the name "k" appears twice`, `{"__metadata__":{"k":"1","k":"2"}}`, 0},
		{"a string is expected", `{"__metadata__":{"k":1}}`, 0},
		{`unknown dtype "f32"`, `{"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}}`, 4},
		{"dtype I16 is not supported", `{"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}`, 4},
		{`unknown field "DTYPE"`, `{"a":{"DTYPE":"F32","shape":[1],"data_offsets":[0,4]}}`, 4},
		{"dtype, shape and data_offsets are needed", `{"a":{"dtype":"F32","shape":[1]}}`, 4},
		{"a whole number is expected", `{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4},
		{"a whole number is expected", `{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}`, 4},
		{"a number is expected", `{"a":{"dtype":"F32","shape":[null],"data_offsets":[0,4]}}`, 4},
		{"a number is expected", `{"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}}`, 4},
		{"does not start with '{'", ` {}`, 0},
		{"does not start with '{'", ``, 0},
		{"something follows", `{}{}`, 0},
		{"unexpected EOF", `{"a":`, 0},
	} {
		_, _, err := ReadSafetensors(bytes.NewReader(file(c.header, c.data)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.header, err, c.want)
		}
	}
	for want, data := range map[string][]byte{
		"header claims 104857601 bytes":           binary.LittleEndian.AppendUint64(nil, 100<<20+1),
		"header claims 18446744073709551615":      binary.LittleEndian.AppendUint64(nil, 1<<64-1),
		"100000 bytes claimed, but the file ends": binary.LittleEndian.AppendUint64(nil, 100000),
		"header's length":                         {1, 2, 3},
	} {
		if _, _, err := ReadSafetensors(bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func allDTypes() map[string]*tensor.Tensor {
	ts := map[string]*tensor.Tensor{"scalar": tensor.Scalar(2), "none": tensor.FromFloat32s(nil, 0, 3), `odd "näme"`: tensor.FromBools([]bool{true, false, true}, 3)}
	for d := tensor.Bool; d <= tensor.Float64; d++ {
		data := make([]byte, 6*d.Size())
		for i := range data {
			data[i] = byte(i*31) & 0x3f
			if d == tensor.Bool {
				data[i] &= 1
			}
		}
		ts["x."+d.String()] = tensor.FromBytes(d, data, 2, 3)
	}
	return ts
}

func TestWriteRoundTrip(t *testing.T) {
	ts := allDTypes()
	var a, b bytes.Buffer
	if err := WriteSafetensors(&a, ts, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	if err := WriteSafetensors(&b, ts, map[string]string{"format": "pt"}); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("two files of the same tensors differ, or %v", err)
	}
	if n := binary.LittleEndian.Uint64(a.Bytes()); n%8 != 0 {
		t.Errorf("the header has %d bytes; data are not aligned", n)
	}
	got, meta, err := ReadSafetensors(&a)
	if err != nil || meta["format"] != "pt" || len(got) != len(ts) {
		t.Fatalf("%d tensors, metadata %v, %v", len(got), meta, err)
	}
	for name, x := range ts {
		want, _ := x.Bytes()
		have, err := got[name].Bytes()
		if err != nil || !bytes.Equal(have, want) || got[name].DType() != x.DType() || !slices.Equal(got[name].Shape(), x.Shape()) {
			t.Errorf("%s: %v, want %v", name, got[name], x)
		}
	}
	if err := WriteSafetensors(io.Discard, map[string]*tensor.Tensor{"__metadata__": tensor.Scalar(1)}, nil); err == nil {
		t.Error("a tensor with the name of the metadata was written")
	}
}

// TestWriteExact holds a small file to its bytes.
func TestWriteExact(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSafetensors(&b, map[string]*tensor.Tensor{"w": tensor.FromFloat32s([]float32{1}, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	want := "\x38\x00\x00\x00\x00\x00\x00\x00" + `{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  ` + "\x00\x00\x80\x3f"
	if got := b.String(); got != want {
		t.Errorf("file %q, want %q", got, want)
	}
}

// fullDisk fails after some bytes, like a full disk.
type fullDisk struct {
	w    io.Writer
	left int
}

var errFull = errors.New("no space left on device")

func (f *fullDisk) Write(p []byte) (int, error) {
	if len(p) > f.left {
		n, _ := f.w.Write(p[:f.left])
		f.left = 0
		return n, errFull
	}
	f.left -= len(p)
	return f.w.Write(p)
}

func TestFullDiskKeepsPreviousFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	if err := SaveFile(path, allDTypes(), nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for room := 0; room < len(before); room += 97 {
		err := writeFile(path, func(w io.Writer) error { return WriteSafetensors(&fullDisk{w, room}, allDTypes(), nil) })
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "previous file is unchanged") {
			t.Fatalf("room for %d bytes: error %v", room, err)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(after, before) {
			t.Fatalf("room for %d bytes: the previous file changed, %v", room, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files stay, want 1", len(files))
	}
	if err := SaveFile(filepath.Join(dir, "none", "w"), allDTypes(), nil); err == nil {
		t.Error("a folder that is not there gave no error")
	}
	if _, err := os.Stat("/dev/full"); err == nil { // the operating system's own full disk
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := WriteSafetensors(f, allDTypes(), nil); err == nil {
			t.Error("writing to a full disk gave no error")
		}
	}
}

// FuzzReadSafetensors: no input makes the reader fail in another way than with an error, and what it reads is written and read
// again to the same.
func FuzzReadSafetensors(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.safetensors")
	if err != nil || len(seeds) < 3 {
		f.Fatalf("%d seeds, %v", len(seeds), err)
	}
	for _, s := range seeds {
		b, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ts, meta, err := ReadSafetensors(bytes.NewReader(data))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteSafetensors(&b, ts, meta); err != nil {
			t.Fatal(err)
		}
		again, _, err := ReadSafetensors(&b)
		if err != nil || len(again) != len(ts) {
			t.Fatalf("%d tensors became %d: %v", len(ts), len(again), err)
		}
	})
}
