package examples

import (
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// cases are the programs with settings that make them short, and what they must say.
var cases = map[string]struct {
	args []string
	want string
}{
	"device":         {nil, `cpu is .*\nsum: 20\n`}, // (1+2)/2 and (3+4)/2, twice each, and 1+2+3+4
	"training":       {[]string{"-epochs", "1", "-batch", "500"}, `epoch 0: test accuracy 0\.[5-9]`},
	"plot":           {[]string{"-steps", "20", "-o", "fit.png"}, `drawn to fit.png`},
	"mixedprecision": {[]string{"-epochs", "1", "-batch", "500"}, `test accuracy 0\.[5-9]\d*, scale 65536, 0 steps skipped`},
	"gradients":      {nil, `float16 +\d\d\.\d % zero.*\nfloat16, loss times 65536 +[0-4]\.\d % zero(.*\n)+drawn to gradients.png`},
	"pytorch":        {[]string{"-steps", "20", "-weights", "xor.safetensors", "-o", "out.safetensors"}, `PyTorch's weights give \[0.001 0.999 0.999 0.001\]\nafter more training \[0.000 (0.999|1.000) (0.999|1.000) 0.000\]`},
	"tabular":        {[]string{"-epochs", "20"}, `600 rows; the mean error of price in the test rows is [\d.e+]+, (\d|1\d)\.\d % of`},
	"images":         {[]string{"-epochs", "5"}, `classes \[cross disc\]: 96 images to train, test accuracy (0\.[89]|1\.00)`},
	"text":           {[]string{"-data", "tiny.txt", "-width", "16", "-epochs", "1", "-sample", "20"}, `(?s)^a.{20}\n$`},
}

// TestExamples builds and runs every program of the folder, on the CPU.
func TestExamples(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	weights, err := os.ReadFile("pytorch/xor.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"xor.safetensors": string(weights), "tiny.txt": strings.Repeat("abcd efgh ", 60)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folders, err := filepath.Glob("*/main.go")
	if err != nil || len(folders) != len(cases) {
		t.Errorf("%d programs, %d of them are tested, %v", len(folders), len(cases), err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		name := filepath.Dir(f)
		t.Run(name, func(t *testing.T) {
			c, ok := cases[name]
			if !ok {
				t.Fatal("there is no case for it")
			}
			cmd := exec.Command(filepath.Join(dir, name), append([]string{"-device", "cpu"}, c.args...)...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(c.want).Match(out) {
				t.Errorf("%v, want %s in\n%s", err, c.want, out)
			}
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			title := strings.ToUpper(name[:1]) + name[1:]
			if text := string(source); !strings.HasPrefix(text, "// "+title+" ") || !strings.Contains(text, "Usage: go run ./docs/examples/"+name) {
				t.Error("its header comment does not say what it is and how it is run")
			}
			if !regexp.MustCompile(`(?m)^//\t` + name + ` `).Match(doc) {
				t.Error("doc.go does not list it")
			}
		})
	}
	for _, name := range []string{"fit.png", "out.safetensors"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 100 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if runs, _ := filepath.Glob(filepath.Join(dir, "text-run", "*")); len(runs) != 4 {
		t.Errorf("%v, want a checkpoint of three files and an event file", runs)
	}
	back(t, filepath.Join(dir, "out.safetensors"))
	samePicture(t, "../gradients.png", filepath.Join(dir, "gradients.png"))
}

// samePicture holds a picture of the documents against the one that its program draws now: other processors round other bits, so a few
// pixels may differ.
func samePicture(t *testing.T, kept, drawn string) {
	var pictures [2]image.Image
	for i, file := range []string{kept, drawn} {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if pictures[i], err = png.Decode(f); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	size := pictures[0].Bounds()
	if size != pictures[1].Bounds() {
		t.Fatalf("%s is of size %v, drawn anew %v", kept, size, pictures[1].Bounds())
	}
	differ := 0
	for y := range size.Dy() {
		for x := range size.Dx() {
			if pictures[0].At(x, y) != pictures[1].At(x, y) {
				differ++
			}
		}
	}
	if most := size.Dx() * size.Dy() / 100; differ > most {
		t.Errorf("%d pixels of %s differ from what its program draws, at most %d may: draw it again", differ, kept, most)
	}
}

// back loads what the example pytorch wrote in PyTorch, where that is installed.
func back(t *testing.T, path string) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Log("PyTorch (Debian package python3-torch) is not installed")
		return
	}
	out, err := exec.Command(python, "pytorch/xor.py", "--check", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var high []bool
	for _, f := range strings.Fields(string(out)) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			t.Fatalf("%s", out)
		}
		high = append(high, v > 0.5)
	}
	if !slices.Equal(high, []bool{false, true, true, false}) {
		t.Errorf("in PyTorch the weights give %s", out)
	}
}
