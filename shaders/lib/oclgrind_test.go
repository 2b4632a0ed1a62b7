package lib_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOclgrind runs TestDevices under the checking simulator: accesses out of bounds and races of any kernel are on its log,
// which must be empty.
func TestOclgrind(t *testing.T) {
	const child = "ANYGPU_TEST_OCLGRIND"
	if os.Getenv(child) != "" || testing.Short() {
		t.Skip("not in a child, and not in short mode")
	}
	oclgrind, err := exec.LookPath("oclgrind")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("oclgrind is not installed (Debian package oclgrind), and CI is set")
		}
		t.Skip("oclgrind is not installed (Debian package oclgrind)")
	}
	log := filepath.Join(t.TempDir(), "log")
	// Its compiler must not optimize: Oclgrind 21.10 keeps a lane of a vector comparison as 255, which then is neither 1
	// nor, negated, 0.
	cmd := exec.Command(oclgrind, "--build-options", "-cl-opt-disable", "--check-api", "--data-races", "--uniform-writes", "--log", log,
		os.Args[0], "-test.v", "-test.run=^TestDevices$")
	cmd.Env = append(os.Environ(), child+"=1", "ANYGPU_TEST_DEVICE=opencl:0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "Oclgrind Simulator") {
		t.Errorf("the kernels did not run on Oclgrind:\n%s", out)
	}
	messages, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if len(messages) > 0 {
		t.Errorf("messages:\n%s", messages)
	}
}
