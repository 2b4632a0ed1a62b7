package data_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/train/data"
)

func TestImageManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.png", "sub/b.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), picture(t, 4, 2), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "list.csv")
	if err := os.WriteFile(file, []byte("split,label,path\ntrain,zebra,a.png\ntrain,\"apple, red\",sub/b.png\ntest,zebra,absent.png\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := data.ImageManifest(file, data.ImageOptions{})
	if err != nil || set.Len() != 3 || !slices.Equal(set.Classes, []string{"apple, red", "zebra"}) {
		t.Fatalf("%d images of classes %q, %v", set.Len(), set.Classes, err)
	}
	for i, want := range []int64{1, 0} {
		if e, err := set.At(i); err != nil || e.Y != want || !slices.Equal(e.Shape, []int{3, 2, 4}) {
			t.Errorf("image %d: class %d of shape %v, %v", i, e.Y, e.Shape, err)
		}
	}
	if _, err := set.At(2); err == nil || !strings.Contains(err.Error(), "absent.png") {
		t.Errorf("error %v", err)
	}
	for in, want := range map[string]string{
		"":                                 "no header: unexpected EOF",
		"path,class\na,b\n":                "must have the columns path and label",
		"path,label\n../a.png,b\n":         `line 2: the path "../a.png" is not within`,
		"path,label\na,b\n/etc/passwd,b\n": `line 3: the path "/etc/passwd" is not within`,
		"path,label\na,\n":                 "line 2: a has no label",
		"path,label\na\n":                  "wrong number of fields",
		"path,label\n":                     "it names no images",
	} {
		if _, _, err := data.ReadManifest(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
}

// FuzzReadManifest: what is read stays within the list's folder.
func FuzzReadManifest(f *testing.F) {
	f.Add("path,label\na.png,cat\nb/c.png,dog\n")
	f.Add("label,path,more\n\"x\ny\", ./a ,\n")
	f.Fuzz(func(t *testing.T, in string) {
		paths, labels, err := data.ReadManifest(strings.NewReader(in))
		if err != nil {
			return
		}
		if len(paths) != len(labels) || len(paths) == 0 {
			t.Errorf("%d paths, %d labels", len(paths), len(labels))
		}
		for i, p := range paths {
			if at, err := filepath.Rel("/base", filepath.Join("/base", p)); err != nil || at == ".." || strings.HasPrefix(at, "../") || labels[i] == "" {
				t.Errorf("path %q leads to %q", p, at)
			}
		}
	})
}
