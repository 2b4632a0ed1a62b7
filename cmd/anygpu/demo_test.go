package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tinyText writes a text of which the gpt learns something in few steps, and returns its path.
func tinyText(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("abcd efgh ", 120)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDemoUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	short, binary, taken := file("short.txt", "abc"), file("binary.txt", strings.Repeat("\xff\xfe", 1000)), file("taken.json", "{}")
	for _, c := range []struct {
		want   string
		status int
		args   []string
	}{
		{`unknown model "rnn": cnn, mlp, gpt are accepted`, 2, []string{"--model", "rnn"}},
		{"--sample: mlp writes no text", 2, []string{"--sample", "5"}},
		{"--sample -1: must be from 0 to 100000", 2, []string{"--model", "gpt", "--sample", "-1"}},
		{"--epochs 0", 2, []string{"--epochs", "0"}},
		{"--batch 0", 2, []string{"--model", "gpt", "--batch", "0"}},
		{"short.txt has 3 characters; the model needs a text of at least 650", 1, []string{"--model", "gpt", "--data", short}},
		{"the text is not UTF-8 at byte 0", 1, []string{"--model", "gpt", "--data", binary}},
		{"absent.txt", 1, []string{"--model", "gpt", "--data", filepath.Join(dir, "absent.txt")}},
		{"--batch 100000 is larger than the training data", 1, []string{"--model", "gpt", "--batch", "100000"}},
		{"--save and --resume are for one device and one precision, these are 2", 2, []string{"--save", filepath.Join(dir, "x")}},
		{"taken.json exists already", 1, []string{"--precision", "fp32", "--save", taken}},
		{"there is no folder", 1, []string{"--plot", filepath.Join(dir, "no", "p.png")}},
		{"--resume", 1, []string{"--precision", "fp32", "--resume", filepath.Join(dir, "none")}},
		{"--resume", 1, []string{"--precision", "fp32", "--resume", taken}},
	} {
		out, status := runCommand(t, append([]string{"demo", "--device", "cpu"}, c.args...)...)
		if status != c.status || !strings.Contains(out, c.want) {
			t.Errorf("%v: status %d, want %d with %q:\n%s", c.args, status, c.status, c.want, out)
		}
	}
}

// TestDemoText trains the gpt in one go, and in two with a checkpoint between: weights and text must be the same.
func TestDemoText(t *testing.T) {
	text, dir := tinyText(t), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	gpt := func(args ...string) (string, demoRow) {
		t.Helper()
		os.Remove(file("r.json"))
		args = append([]string{"demo", "--device", "cpu", "--precision", "fp32", "--model", "gpt", "--batch", "8", "--sample", "40", "--data", text, "--json", file("r.json")}, args...)
		out, status := runCommand(t, args...)
		if status != 0 {
			t.Fatalf("%v: status %d:\n%s", args, status, out)
		}
		var result struct{ Rows []demoRow }
		if b, err := os.ReadFile(file("r.json")); err != nil || json.Unmarshal(b, &result) != nil || len(result.Rows) != 1 {
			t.Fatalf("no row in %s: %v", b, err)
		}
		return out, result.Rows[0]
	}
	out, whole := gpt("--epochs", "2", "--save", file("whole"), "--plot", file("p.png"))
	for _, want := range []string{"tiny.txt: 1080 characters to train, 120 to test, 9 different", "test loss", "tokens/s", "sample of cpu, fp32:\n" + whole.Sample} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if len(whole.Sample) != 40 || strings.Trim(whole.Sample, "abcdefgh ") != "" || whole.TestLoss == nil || whole.TokensPerSecond == nil || whole.TestAccuracy != nil {
		t.Errorf("row %+v", whole)
	}
	if b, err := os.ReadFile(file("p.png")); err != nil {
		t.Error(err)
	} else if img, err := png.Decode(bytes.NewReader(b)); err != nil || img.Bounds().Dx() < 100 {
		t.Errorf("the plot: %v", err)
	}
	gpt("--epochs", "1", "--save", file("half.json"))
	_, resumed := gpt("--epochs", "2", "--resume", file("half"), "--save", file("resumed"))
	if resumed.Sample != whole.Sample || *resumed.TestLoss != *whole.TestLoss || resumed.Steps*2 != whole.Steps {
		t.Errorf("resumed: loss %v, sample %q; in one go %v, %q", *resumed.TestLoss, resumed.Sample, *whole.TestLoss, whole.Sample)
	}
	a, err := os.ReadFile(file("whole.safetensors"))
	if b, err2 := os.ReadFile(file("resumed.safetensors")); err != nil || err2 != nil || !bytes.Equal(a, b) {
		t.Errorf("the weights differ from those of an uninterrupted run: %v, %v", err, err2)
	}
	for want, args := range map[string][]string{
		"choose --epochs 2 or more":                   {"--resume", file("half"), "--epochs", "1", "--batch", "8"},
		"made with --batch 8, this run has 4":         {"--resume", file("half"), "--epochs", "2", "--batch", "4"},
		"made with --seed 0, this run has 1":          {"--resume", file("half"), "--epochs", "2", "--batch", "8", "--seed", "1"},
		"the checkpoint has none":                     {"--resume", file("half"), "--epochs", "2", "--batch", "8", "--precision", "amp"},
		"missing key(s): 1.bias, 1.weight, 3.bias, 3": {"--resume", file("half"), "--model", "mlp"},
	} {
		command := []string{"demo", "--device", "cpu"}
		if !slices.Contains(args, "amp") {
			command = append(command, "--precision", "fp32")
		}
		if !strings.Contains(want, "missing") {
			command = append(command, "--model", "gpt", "--data", text)
		}
		if out, status := runCommand(t, append(command, args...)...); status != 1 || !strings.Contains(out, want) {
			t.Errorf("%v: status %d, want 1 with %q:\n%s", args, status, want, out)
		}
	}
}

// TestDemoImages has a step of AMP and a folder of no images.
func TestDemoImages(t *testing.T) {
	out, status := runCommand(t, "demo", "--device", "cpu", "--precision", "fp32,amp", "--epochs", "1", "--batch", "3000")
	if status != 0 || !strings.Contains(out, "test accuracy") || !strings.Contains(out, "images/s") || !strings.Contains(out, "\namp on cpu: bfloat16, ") || strings.Contains(out, "sample") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if out, status := runCommand(t, "demo", "--device", "cpu", "--data", t.TempDir()); status != 1 {
		t.Errorf("an empty folder: status %d:\n%s", status, out)
	}
}

func TestDrawToken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	counts := make([]int, 3)
	for range 4000 {
		counts[drawToken(r, []float64{0, temperature, -1e9})]++
	}
	if ratio := float64(counts[1]) / float64(counts[0]); counts[2] != 0 || ratio < 2.4 || ratio > 3.1 { // e
		t.Errorf("counts %v, want 1 : e : 0", counts)
	}
}

func TestCheckpointBase(t *testing.T) {
	for _, name := range []string{"a/b", "a/b.json", "a/b.safetensors", "a/b.state.safetensors"} {
		if got := checkpointBase(name); got != "a/b" {
			t.Errorf("%s: %s, want a/b", name, got)
		}
	}
}

// TestDemoInterrupted cancels a run that is to be saved: it saves, and says how to go on.
func TestDemoInterrupted(t *testing.T) {
	base := filepath.Join(t.TempDir(), "run")
	cfg := demoConfig{devices: "cpu", model: "gpt", precisions: []string{precisionAMP}, epochs: 1, batch: 8, lr: 1e-3, data: tinyText(t), save: base}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := runDemo(ctx, cfg, io.Discard, io.Discard)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted after 0 steps: context canceled; saved: go on with --resume "+base) {
		t.Errorf("error %v", err)
	}
	cfg.save = ""
	if err := runDemo(ctx, cfg, io.Discard, io.Discard); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was saved, because there is no --save") {
		t.Errorf("without --save: error %v", err)
	}
	cfg.resume = base
	if err := runDemo(context.Background(), cfg, io.Discard, io.Discard); err != nil {
		t.Errorf("resumed: %v", err)
	}
}
