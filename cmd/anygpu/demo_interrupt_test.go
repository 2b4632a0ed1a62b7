//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const argsEnv = "ANYGPU_TEST_ARGS"

// TestCtrlC interrupts a process that trains, as a terminal does: it saves, says how to go on and fails; and the run goes on from there.
func TestCtrlC(t *testing.T) {
	if raw := os.Getenv(argsEnv); raw != "" {
		os.Args = append([]string{"anygpu"}, strings.Split(raw, "\n")...)
		main()
		os.Exit(0)
	}
	dir := t.TempDir()
	base := filepath.Join(dir, "run")
	args := []string{"demo", "--device", "cpu", "--precision", "fp32", "--model", "gpt", "--batch", "8", "--epochs", "1000000", "--data", tinyText(t)}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCtrlC$")
	cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(append(args, "--save", base), "\n"))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewReader(out)
	if first, err := lines.ReadString('\n'); err != nil || !strings.Contains(first, "tiny.txt") { // the data are read: training begins
		t.Fatalf("%q, %v", first, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit status %d, %v", cmd.ProcessState.ExitCode(), err)
	}
	if want := "saved: go on with --resume " + base; !strings.Contains(said.String(), want) {
		t.Fatalf("no %q in\n%s", want, said.String())
	}
	var saved struct{ Position struct{ Epoch int } }
	if text, err := os.ReadFile(base + ".json"); err != nil || json.Unmarshal(text, &saved) != nil {
		t.Fatalf("the checkpoint: %v", err)
	}
	args[slices.Index(args, "--epochs")+1] = strconv.Itoa(saved.Position.Epoch + 1)
	if text, status := runCommand(t, append(args, "--resume", base)...); status != 0 || !strings.Contains(text, "test loss") {
		t.Errorf("resumed: status %d:\n%s", status, text)
	}
}
