package data_test

import (
	"archive/zip"
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
)

func TestReadCSV(t *testing.T) {
	table, err := data.ReadCSVFile("testdata/table.csv", data.CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(table.Columns, []string{"width", "height", "class"}) || table.Rows() != 3 {
		t.Fatalf("%d rows of %v", table.Rows(), table.Columns)
	}
	ds, err := table.Dataset("class", 2)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := ds.At(1); err != nil || !slices.Equal(e.X, []float32{-3, 4e2}) || e.Y != 1 {
		t.Errorf("sample 1 is %v %v", e, err)
	}
	x, y, err := table.Tensors("height", "width")
	if err != nil {
		t.Fatal(err)
	}
	xs, _ := x.Float32s()
	ys, err := y.Float32s()
	if err != nil || !slices.Equal(xs, []float32{0, 1, 0}) || !slices.Equal(ys, []float32{2, 1.5, 400, -3, 6, 5}) {
		t.Errorf("x %v, y %v, %v", xs, ys, err)
	}
	if table, err = data.ReadCSV(strings.NewReader("1;2\n3;4\n"), data.CSVOptions{Comma: ';', NoHeader: true}); err != nil || table.Rows() != 2 || table.Columns[1] != "1" {
		t.Errorf("%+v %v", table, err)
	}
	for in, want := range map[string]string{
		"":             "there are no rows",
		"a,b\n":        "there are no rows",
		"a,a\n1,2\n":   `the column "a" appears twice`,
		"a,b\n1\n":     "wrong number of fields",
		"a,b\n1,x\n":   `line 2, column "b": "x" is not a finite number`,
		"a\nNaN\n":     `"NaN" is not a finite number`,
		"a\n1e99\n":    `"1e99" is not a finite number`,
		"a\n\"1\n":     "line 2",
		"a\n1\n2\n3\n": "more than 2 rows",
	} {
		if _, err := data.ReadCSV(strings.NewReader(in), data.CSVOptions{MaxRows: 2}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
	if _, err := table.Dataset("0", 9); err != nil {
		t.Error(err)
	}
	if _, err := table.Dataset("none", 9); err == nil || !strings.Contains(err.Error(), `target column "none" is not there`) {
		t.Errorf("error %v", err)
	}
	half, _ := data.ReadCSV(strings.NewReader("a,b\n1,0.5\n"), data.CSVOptions{})
	if _, err := half.Dataset("b", 2); err == nil || !strings.Contains(err.Error(), "label of row 0 is 0.5") {
		t.Errorf("error %v", err)
	}
}

func FuzzReadCSV(f *testing.F) {
	seed, err := os.ReadFile("testdata/table.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, in []byte) {
		table, err := data.ReadCSV(bytes.NewReader(in), data.CSVOptions{})
		if err == nil && table.Rows()*len(table.Columns) != len(table.Values) {
			t.Errorf("%d rows of %d columns with %d values", table.Rows(), len(table.Columns), len(table.Values))
		}
	})
}

// npz makes an archive of .npy members.
func npz(t testing.TB, members map[string]*tensor.Tensor, extra ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, x := range members {
		w, err := z.Create(name)
		if err == nil {
			err = x.WriteNPY(w)
		}
		if err == nil && len(extra) > 0 {
			_, err = w.Write([]byte(extra[0]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadNPZ(t *testing.T) {
	arrays, err := data.ReadNPZFile("testdata/arrays.npz")
	if err != nil {
		t.Fatal(err)
	}
	x, err := arrays["x"].Float32s()
	if err != nil || !slices.Equal(x, []float32{1, 2, 3, 4}) || !slices.Equal(arrays["x"].Shape(), []int{2, 2}) {
		t.Errorf("x is %v %v", arrays["x"], err)
	}
	if y, err := arrays["y"].Int64s(); err != nil || !slices.Equal(y, []int64{7}) {
		t.Errorf("y is %v %v", y, err)
	}
	one := map[string]*tensor.Tensor{"x.npy": tensor.Scalar(1)}
	good := npz(t, one)
	for want, in := range map[string][]byte{
		"not a valid zip file":      []byte("PK"),
		"data after the array":      npz(t, one, "more"),
		"x.txt is not an .npy file": npz(t, map[string]*tensor.Tensor{"x.txt": tensor.Scalar(1)}),
		"checksum error":            bytes.Replace(good, []byte{0, 0, 0x80, 0x3f}, []byte{0, 0, 0x80, 0x40}, 1),
	} {
		if want == "checksum error" && bytes.Equal(in, good) {
			continue // the member was compressed: the bytes are not there
		}
		if _, err := data.ReadNPZ(bytes.NewReader(in), int64(len(in))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func FuzzReadNPZ(f *testing.F) {
	seed, err := os.ReadFile("testdata/arrays.npz")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(npz(f, map[string]*tensor.Tensor{"a.npy": tensor.FromBools([]bool{true, false}, 2)}))
	var npy bytes.Buffer
	if err := tensor.FromFloat32s([]float32{1, 2, 3}, 3).WriteNPY(&npy); err != nil {
		f.Fatal(err)
	}
	f.Add(npy.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		// The input is an archive, and also a member of one whose checksums are right: chance finds few of those.
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.Create("x.npy")
		if err == nil {
			_, err = w.Write(in)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range [][]byte{in, b.Bytes()} {
			arrays, err := data.ReadNPZ(bytes.NewReader(file), int64(len(file)))
			if err != nil {
				continue
			}
			for name, a := range arrays {
				if err := a.Err(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				a.Free()
			}
		}
	})
}

// picture is red on the left, and blue at the bottom right.
func picture(t testing.TB, w, h int) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{A: 255}
			if x < w/2 {
				c.R = 255
			} else if y >= h/2 {
				c.B = 51
			}
			img.SetNRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImageFolder(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"cat/b.png": picture(t, 4, 2), "cat/a.PNG": picture(t, 8, 8), "dog/c.png": picture(t, 4, 2), "dog/broken.png": picture(t, 4, 2)[:40],
		"dog/notes.txt": []byte("no image"), "top.png": picture(t, 1, 1),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ds, err := data.ImageFolder(dir, data.ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ds.Classes, []string{"cat", "dog"}) || ds.Len() != 4 || filepath.Base(ds.Path(0)) != "a.PNG" {
		t.Fatalf("classes %v, %d images, the first is %s", ds.Classes, ds.Len(), ds.Path(0))
	}
	e, err := ds.At(1)
	want := []float32{1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.2, 0.2}
	if err != nil || !slices.Equal(e.X, want) || !slices.Equal(e.Shape, []int{3, 2, 4}) || e.Y != 0 {
		t.Errorf("sample 1 is %v %v", e, err)
	}
	if _, err := ds.At(2); err == nil || !strings.Contains(err.Error(), "broken.png") {
		t.Errorf("error %v", err)
	}
	if e, err := ds.At(3); err != nil || e.Y != 1 {
		t.Errorf("sample 3 is %v %v", e, err)
	}
	grey, err := data.DecodeImage(picture(t, 8, 4), data.ImageOptions{Grey: true, Height: 2, Width: 4})
	if err != nil || !slices.Equal(grey.Shape, []int{1, 2, 4}) || math.Abs(float64(grey.X[0])-0.299) > 1e-6 || grey.X[7] <= grey.X[3] || grey.X[7] > 0.114*0.2+1e-3 { // the filter blurs the edges
		t.Errorf("grey %v %v", grey, err)
	}
	if _, err := data.DecodeImage(picture(t, 8, 4), data.ImageOptions{MaxPixels: 31}); err == nil || !strings.Contains(err.Error(), "at most 31 pixels") {
		t.Errorf("error %v", err)
	}
	if _, err := data.ImageFolder(t.TempDir(), data.ImageOptions{}); err == nil {
		t.Error("an empty folder gave no error")
	}
}

func FuzzDecodeImage(f *testing.F) {
	f.Add(picture(f, 3, 2))
	seed, err := os.ReadFile("testdata/dot.gif")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := data.DecodeImage(in, data.ImageOptions{MaxPixels: 1 << 16})
		if err == nil && len(e.X) != e.Shape[0]*e.Shape[1]*e.Shape[2] {
			t.Errorf("%d values of shape %v", len(e.X), e.Shape)
		}
	})
}

func TestText(t *testing.T) {
	text, err := data.ReadText(strings.NewReader("abä ba"), 100)
	if err != nil {
		t.Fatal(err)
	}
	v := data.NewVocabulary(text)
	tokens, err := v.Encode(text)
	if err != nil || v.Len() != 4 || !slices.Equal(tokens, []int64{1, 2, 3, 0, 2, 1}) || v.Decode(tokens) != text || v.Decode([]int64{9, -1}) != "\ufffd\ufffd" {
		t.Errorf("%d characters, %v %v, %q", v.Len(), tokens, err, v.Decode(tokens))
	}
	if _, err := v.Encode("abc"); err == nil || !strings.Contains(err.Error(), `'c' at byte 2`) {
		t.Errorf("error %v", err)
	}
	w, err := data.NewWindows(tokens, 2, 0)
	if err != nil || w.Len() != 2 {
		t.Fatalf("%d windows, %v", w.Len(), err)
	}
	if s, err := w.At(1); err != nil || !slices.Equal(s.X, []int64{3, 0}) || !slices.Equal(s.Y, []int64{0, 2}) {
		t.Errorf("window 1 is %v %v", s, err)
	}
	dense, err := data.NewWindows(tokens, 2, 1)
	if err != nil || dense.Len() != 4 {
		t.Errorf("%d windows, %v; want 4", dense.Len(), err)
	}
	for b, err := range data.NewLoaderOf(w, data.LoaderConfig{BatchSize: 2}, data.CollateSequences).Epoch(0) {
		if err != nil || !slices.Equal(b.X.Shape(), []int{2, 2}) || b.Len() != 2 {
			t.Errorf("batch %v %v", b.X, err)
		}
	}
	for in, want := range map[string]string{"ab\xff": "not UTF-8 at byte 2", strings.Repeat("x", 11): "more than 10 bytes"} {
		if _, err := data.ReadText(strings.NewReader(in), 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := data.NewWindows(tokens, 6, 0); err == nil {
		t.Error("a stream that is too short was accepted")
	}
}

func FuzzReadText(f *testing.F) {
	f.Add([]byte("abä\n"))
	seed, err := os.ReadFile("testdata/text.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, in []byte) {
		text, err := data.ReadText(bytes.NewReader(in), 1000)
		if err != nil {
			return
		}
		v := data.NewVocabulary(text)
		tokens, err := v.Encode(text)
		if err != nil || v.Decode(tokens) != text {
			t.Errorf("%q became %q, %v", text, v.Decode(tokens), err)
		}
	})
}
