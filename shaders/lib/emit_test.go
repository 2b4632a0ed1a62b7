package lib_test

import (
	"encoding/binary"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/clc"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
	"github.com/anygpu/anygpu/shaders/spirv"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// kernels returns the kernels of all cases for a target, lowered, each once.
func kernels(t *testing.T, d checked) []*ir.Kernel {
	t.Helper()
	var out []*ir.Kernel
	seen := map[string]bool{}
	for _, c := range allCases() {
		if !supports(d.t, c) {
			continue
		}
		for _, s := range c.steps(d.t) {
			if seen[s.gen.Key()] {
				continue
			}
			seen[s.gen.Key()] = true
			k, err := s.gen.Build(d.t)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if k, err = ir.Lower(k, d.t.Caps); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			out = append(out, k)
		}
	}
	return out
}

// TestSPIRV has spirv-val check every kernel for every Vulkan target.
func TestSPIRV(t *testing.T) {
	val, err := exec.LookPath("spirv-val")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("spirv-val is not installed (Debian package spirv-tools), and CI is set")
		}
		t.Skip("spirv-val is not installed (Debian package spirv-tools)")
	}
	for _, d := range targets() {
		if d.t.API != "vulkan" || d.name == "gpu-subgroups-4" || d.name == "gpu-subgroups-64" { // they differ in numbers
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, k := range kernels(t, d) {
				words, err := spirv.Emit(k, spirv.Options{SignedZeroInfNanPreserve: spirv.Width32})
				if err != nil {
					t.Errorf("%s: %v", k.Name, err)
					continue
				}
				code := make([]byte, 0, 4*len(words))
				for _, w := range words {
					code = binary.LittleEndian.AppendUint32(code, w)
				}
				file := filepath.Join(dir, "k.spv")
				if err := os.WriteFile(file, code, 0o644); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command(val, "--target-env", "vulkan1.1", file).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s\n%s", k.Name, err, out, k)
				}
			}
		})
	}
}

// TestOpenCLC has the emitter take every kernel for every OpenCL target. The drivers' compilers see them in TestDevices.
func TestOpenCLC(t *testing.T) {
	for _, d := range targets() {
		if d.t.API != "opencl" {
			continue
		}
		for _, k := range kernels(t, d) {
			if _, err := clc.Emit(k, clc.Options{}); err != nil {
				t.Errorf("%s: %s: %v", d.name, k.Name, err)
			}
		}
	}
}

// TestKeys checks that kernels with one key are one kernel, and that different kernels have different keys.
func TestKeys(t *testing.T) {
	for _, d := range targets() {
		byKey, byText := map[string]string{}, map[string]string{}
		for _, c := range allCases() {
			if !supports(d.t, c) {
				continue
			}
			for _, s := range c.steps(d.t) {
				k, err := s.gen.Build(d.t)
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				// The name is for people: a key may have several.
				_, text, _ := strings.Cut(k.String(), "\n")
				key := s.gen.Key()
				if byKey[key] == "" {
					byKey[key] = text
				} else if byKey[key] != text {
					t.Errorf("%s: key %q stands for two kernels, the second from %s:\n%s\nand\n%s", d.name, key, c.name, byKey[key], text)
				}
				byText[text] = key
			}
		}
		if len(byKey) < 60 {
			t.Errorf("%s: only %d keys", d.name, len(byKey))
		}
	}
}

// TestGolden compares representative kernels, before lowering, with the text under testdata.
func TestGolden(t *testing.T) {
	sum := &lib.Reduce{Name: "sum", Op: lib.ReduceSum, Outer: 128, N: 784, Inner: 1, In: []lib.Operand{of(ir.F32)}, Out: of(ir.F32)}
	bias := *sum
	bias.Name, bias.Outer, bias.N, bias.Inner = "sum_columns", 1, 128, 512
	argmax := *sum
	argmax.Name, argmax.Op, argmax.N, argmax.Out = "argmax", lib.ReduceArgMax, 10, of(ir.I64)
	gens := map[string]lib.Generator{
		"add": &lib.Elementwise{Name: "add", BodyKey: "add", Shape: []int{100}, In: []lib.Operand{of(ir.F32), of(ir.F32)}, Out: []lib.Operand{of(ir.F32)}, Body: add},
		"add_bias": &lib.Elementwise{Name: "add_bias", BodyKey: "add", Shape: []int{128, 512},
			In: []lib.Operand{of(ir.F16), strided(ir.F16, 0, 0, 1)}, Out: []lib.Operand{of(ir.F16)}, Body: add},
		"add_transposed": &lib.Elementwise{Name: "add_transposed", BodyKey: "add", Shape: []int{30, 7, 20},
			In: []lib.Operand{of(ir.F32), strided(ir.F32, 0, 1, 600, 30)}, Out: []lib.Operand{of(ir.F32)}, Body: add},
		"sum": sum, "sum_columns": &bias, "argmax": &argmax,
		"softmax":     &lib.Softmax{Outer: 128, N: 1000, Inner: 1, In: ir.F32, Out: ir.F32},
		"normal":      &lib.Random{Dist: lib.RandomNormal, N: 1002, Out: ir.F32},
		"multitensor": momentum([]int{784, 10}),
	}
	for _, d := range targets() {
		if d.name != "cpu" && d.name != "lavapipe" && d.name != "vulkan-gpu" && d.name != "gpu-subgroups-32" {
			continue
		}
		for name, g := range gens {
			if d.t.Caps.MaxSubgroups > 0 && d.t.GPU && name != "softmax" && name != "sum" {
				continue // the kernels of other GPUs
			}
			k, err := g.Build(d.t)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+"."+d.name+".ir")
			if *update {
				if err := os.WriteFile(file, []byte(k.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; make it with -update", err)
			}
			if string(want) != k.String() {
				t.Errorf("%s differs from the kernel now built; if that is meant, run with -update and review the difference", file)
			}
		}
	}
}
