package checkpoint_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
)

const (
	fixtures = "testdata/pytorch"
	script   = fixtures + "/exchange.py"
	// exchangeBound is of an output's element, absolute and relative.
	exchangeBound = 1e-5
)

// python returns an interpreter that has PyTorch, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import torch, numpy").Run() == nil {
			return name
		}
	}
	t.Skip("PyTorch (Debian package python3-torch) is not installed; the files in testdata/pytorch stand in for it in the other tests")
	return ""
}

func runScript(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(python(t), append([]string{script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", script, args, err, out)
	}
	return string(out)
}

// allDevices calls f with every device that is not rusticl's, which other tests cover where it is asked for.
func allDevices(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	t.Helper()
	for _, info := range backend.List() {
		if info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		t.Run(info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			f(t, dev)
		})
	}
}

func load(t *testing.T, path string) named {
	t.Helper()
	tensors, _, err := checkpoint.LoadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return tensors
}

// outputs loads a state dict of PyTorch into a model, and returns what it computes on a device.
func outputs(t *testing.T, c exchangeCase, m model, state, io named, dev backend.Device) named {
	t.Helper()
	base, ok := m.(interface {
		To(backend.Device) error
		LoadStateDict(map[string]*tensor.Tensor) error
		Eval()
	})
	if !ok {
		t.Fatalf("%s: %T is not a model", c.name, m)
	}
	if err := base.LoadStateDict(state); err != nil {
		t.Fatal(err)
	}
	if err := base.To(dev); err != nil {
		t.Fatal(err)
	}
	base.Eval()
	s := tensor.NewScope(dev)
	in, out := named{}, named{}
	for name, v := range io {
		if name, ok := strings.CutPrefix(name, "in."); ok {
			in[name] = s.To(v)
		}
	}
	for name, v := range c.call(m, in) {
		// A copy: the call may have returned a buffer of the model.
		out["out."+name] = v.Detach().CPU().Clone().Keep()
		if err := out["out."+name].Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// compare holds outputs against PyTorch's and returns the largest difference.
func compare(t *testing.T, c exchangeCase, got, io named) float64 {
	t.Helper()
	worst, compared := 0.0, 0
	for name, want := range io {
		if !strings.HasPrefix(name, "out.") {
			continue
		}
		compared++
		if got[name] == nil || fmt.Sprint(got[name].Shape()) != fmt.Sprint(want.Shape()) {
			t.Errorf("%s: %s is %v, PyTorch's %v", c.name, name, got[name], want)
			continue
		}
		a, err := got[name].Cast(tensor.Float64).Float64s()
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.Cast(tensor.Float64).Float64s()
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			d := math.Abs(a[i]-b[i]) / (1 + math.Abs(b[i]))
			if worst = max(worst, d); !(d <= exchangeBound) {
				t.Errorf("%s: %s[%d] is %v, PyTorch's %v", c.name, name, i, a[i], b[i])
				break
			}
		}
	}
	if compared == 0 || compared != len(got) {
		t.Errorf("%s: %d outputs, PyTorch has %d", c.name, len(got), compared)
	}
	return worst
}

// onGPUs are the cases that run on other devices than the CPU, too: together they have every kind of weight.
var onGPUs = map[string]bool{"mlp": true, "cnn": true, "gpt": true, "batch_norm": true, "conv_transpose": true}

// TestFromPyTorch loads the files that exchange.py wrote, on every device.
func TestFromPyTorch(t *testing.T) {
	allDevices(t, func(t *testing.T, dev backend.Device) {
		for _, c := range exchangeCases() {
			if dev.Info().API != "cpu" && !onGPUs[c.name] {
				continue
			}
			state, io := load(t, filepath.Join(fixtures, c.name+".safetensors")), load(t, filepath.Join(fixtures, c.name+".io.safetensors"))
			m := c.narrow()
			worst := compare(t, c, outputs(t, c, m, state, io, dev), io)
			t.Logf("%s: largest difference %.2g", c.name, worst)
			m.(interface{ Free() }).Free()
		}
	})
}

// TestFixturesCurrent: the files in testdata are what exchange.py writes now. Outputs may differ by rounding between versions of PyTorch.
func TestFixturesCurrent(t *testing.T) {
	dir := t.TempDir()
	runScript(t, "write", dir)
	now, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(fixtures, "*.safetensors"))
	if err != nil || len(now) != len(kept) || len(now) != 2*len(exchangeCases()) {
		t.Fatalf("%d files of %d cases, in testdata %d: run exchange.py write again", len(now), len(exchangeCases()), len(kept))
	}
	for _, c := range exchangeCases() {
		a, err := os.ReadFile(filepath.Join(dir, c.name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(fixtures, c.name+".safetensors"))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s.safetensors is not what exchange.py writes (%v): run it again", c.name, err)
		}
		compare(t, c, pick(load(t, filepath.Join(dir, c.name+".io.safetensors")), "out."), load(t, filepath.Join(fixtures, c.name+".io.safetensors")))
	}
}

func pick(tensors named, prefix string) named {
	out := named{}
	for name, v := range tensors {
		if strings.HasPrefix(name, prefix) {
			out[name] = v
		}
	}
	return out
}

// TestPyTorchFull goes both ways with the models in full size: PyTorch's weights give PyTorch's outputs here, and weights from
// here give our outputs there, loaded with strict=True.
func TestPyTorchFull(t *testing.T) {
	theirs, ours := t.TempDir(), t.TempDir()
	runScript(t, "write", theirs, "--full")
	for _, c := range exchangeCases() {
		state, io := load(t, filepath.Join(theirs, c.name+".safetensors")), load(t, filepath.Join(theirs, c.name+".io.safetensors"))
		t.Logf("%s: largest difference %.2g", c.name, compare(t, c, outputs(t, c, c.full(), state, io, tensor.CPU()), io))

		tensor.ManualSeed(11)
		m := c.full() // with initial values of this library
		disturb(t, m)
		if err := checkpoint.SaveFile(filepath.Join(ours, c.name+".safetensors"), m.StateDict(), map[string]string{"format": "pt"}); err != nil {
			t.Fatal(err)
		}
		out := outputs(t, c, m, m.StateDict(), io, tensor.CPU())
		for name, v := range pick(io, "in.") {
			out[name] = v
		}
		if err := checkpoint.SaveFile(filepath.Join(ours, c.name+".io.safetensors"), out, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("in PyTorch:\n%s", runScript(t, "check", ours, "--full"))
}

// disturb gives the layers' vectors values that are not ones and zeros, so that none can stand for another.
func disturb(t *testing.T, m model) {
	t.Helper()
	for name, p := range m.StateDict() {
		if p.DType() != tensor.Float32 || p.Dim() != 1 {
			continue
		}
		noise := tensor.Uniform(tensor.CPU(), tensor.DefaultGenerator(), tensor.Float32, 0, 0.5, p.Shape()...)
		if err := p.CopyFrom(p.Detach().Add(noise)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// TestConverter takes a state dict through torch.save's format and back.
func TestConverter(t *testing.T) {
	py, dir := python(t), t.TempDir()
	tensors := named{
		"f16": tensor.FromFloat32s([]float32{1.5, -2}, 2).Cast(tensor.Float16), "bf16": tensor.FromFloat32s([]float32{0.25}, 1, 1).Cast(tensor.BFloat16),
		"i64": tensor.FromInt64s([]int64{-1 << 40}), "bool": tensor.FromBools([]bool{true, false, true}, 3), "u8": tensor.FromUint8s([]uint8{255}, 1),
		"none": tensor.Zeros(tensor.CPU(), tensor.Float32, 0, 3), "f64": tensor.FromFloat64s([]float64{math.Pi, math.Inf(-1)}, 2), "ünï\"": tensor.FromInt32s([]int32{7}, 1),
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := checkpoint.SaveFile(file("a.safetensors"), tensors, nil); err != nil {
		t.Fatal(err)
	}
	convert := func(args ...string) (string, error) {
		out, err := exec.Command(py, append([]string{"-B", "../../scripts/pytorch_safetensors.py"}, args...)...).CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{file("a.safetensors"), file("a.pt")}, {file("a.pt"), file("b.safetensors")}} {
		if out, err := convert(args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	back := load(t, file("b.safetensors"))
	if len(back) != len(tensors) {
		t.Errorf("%d tensors came back, want %d", len(back), len(tensors))
	}
	for name, want := range tensors {
		got := back[name]
		if got == nil || got.DType() != want.DType() || fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) {
			t.Errorf("%s: %v, want %v", name, got, want)
			continue
		}
		a, err := got.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := want.Bytes(); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: % x, want % x (%v)", name, a, b, err)
		}
	}
	if err := os.WriteFile(file("bad.safetensors"), []byte("nothing of the kind"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"is not a safetensors file": {file("bad.safetensors"), file("c.pt")},
		"Usage: ":                   {file("a.pt"), file("c.pt")},
		"No such file":              {file("absent.pt"), file("c.safetensors")},
	} {
		if out, err := convert(args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: %v, want %q in\n%s", args, err, want, out)
		}
	}
}
