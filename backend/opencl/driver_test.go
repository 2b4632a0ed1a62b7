//go:build cgo

package opencl

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// child runs one test of this program again with a changed environment, in which child returns true. The parent gets its output.
func child(t *testing.T, name string, env ...string) (out string, isChild bool) {
	t.Helper()
	if os.Getenv("OPENCL_TEST_CHILD") != "" {
		return "", true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(append(os.Environ(), "OPENCL_TEST_CHILD=1"), env...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text), false
}

// TestNotLinked checks that this program, as any that imports the driver, starts without the OpenCL library.
func TestNotLinked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads an ELF file")
	}
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(libs, func(s string) bool { return strings.Contains(s, "OpenCL") }) {
		t.Errorf("the program needs %q", libs)
	}
}

func TestNoLibrary(t *testing.T) {
	const missing = "libOpenCL-that-is-not-there.so"
	if _, isChild := child(t, "TestNoLibrary"); !isChild {
		return
	}
	clload.Use(missing)
	d := Driver()
	infos, err := d.Devices()
	if len(infos) != 0 || err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), installHint) {
		t.Errorf("Devices: %v %v, want an error that names %s and says what to install", infos, err, missing)
	}
	if _, err := d.Open(0); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("Open: %v, want the same error", err)
	}
	text := strings.Join(d.(backend.Diagnoser).Diagnose(), "\n")
	if !strings.Contains(text, "library: not found") {
		t.Errorf("Diagnose:\n%s", text)
	}
}

func TestNoPlatform(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("OCL_ICD_VENDORS is read on Linux only")
	}
	if _, isChild := child(t, "TestNoPlatform", "OCL_ICD_VENDORS="+t.TempDir(), "OPENCL_VENDOR_PATH="); !isChild {
		return
	}
	if _, err := clload.Library(); err != nil {
		t.Skip(err)
	}
	d := Driver()
	infos, err := d.Devices()
	if len(infos) != 0 || err == nil || !strings.Contains(err.Error(), "found no platform") || !strings.Contains(err.Error(), installHint) {
		t.Errorf("Devices: %v %v, want an error that says that there is no platform", infos, err)
	}
	text := strings.Join(d.(backend.Diagnoser).Diagnose(), "\n")
	for _, want := range []string{"library: libOpenCL", "OCL_ICD_VENDORS=" + os.Getenv("OCL_ICD_VENDORS"), "no .icd files"} {
		if !strings.Contains(text, want) {
			t.Errorf("Diagnose has no %q:\n%s", want, text)
		}
	}
}

func TestVendorFiles(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"one.icd": "libone.so.1\n", "long.icd": strings.Repeat("x", 5000), "other.txt": "ignored"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) string { return map[string]string{"OCL_ICD_VENDORS": dir}[name] }
	got := vendorFiles(env)
	want := []string{"OCL_ICD_VENDORS=" + dir, filepath.Join(dir, "long.icd") + ": " + strings.Repeat("x", 200) + "...", filepath.Join(dir, "one.icd") + ": libone.so.1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	env = func(name string) string {
		return map[string]string{"OCL_ICD_VENDORS": filepath.Join(dir, "one.icd")}[name]
	}
	if got := vendorFiles(env); len(got) != 2 || !strings.HasSuffix(got[1], "libone.so.1") {
		t.Errorf("a single file: %q", got)
	}
	env = func(name string) string {
		return map[string]string{"OPENCL_VENDOR_PATH": filepath.Join(dir, "none")}[name]
	}
	if got := vendorFiles(env); len(got) != 2 || !strings.Contains(got[1], "no .icd files") {
		t.Errorf("a missing folder: %q", got)
	}
}

func TestDiagnose(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		text := strings.Join(Driver().(backend.Diagnoser).Diagnose(), "\n")
		if !strings.Contains(text, "library: ") || !strings.Contains(text, "platform "+d.info.Driver+": ") {
			t.Errorf("no library or platform:\n%s", text)
		}
	})
}

func TestOpenErrors(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		drv := Driver()
		for _, i := range []int{-1, 1000} {
			if _, err := drv.Open(i); !errors.Is(err, backend.ErrUnknownDevice) {
				t.Errorf("Open(%d): %v, want an unknown device", i, err)
			}
		}
	})
	broken := &driver{scanned: true, found: []candidate{{info: backend.Info{API: "opencl", Name: "old", Problem: "too old"}}}}
	if _, err := broken.Open(0); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "too old") {
		t.Errorf("a device with a problem: %v", err)
	}
}

func TestOrder(t *testing.T) {
	list := []candidate{
		{info: backend.Info{Name: "rusticl cpu", Type: backend.CPUDevice, Driver: "rusticl", DriverVersion: "22.3.6"}},
		{info: backend.Info{Name: "cpu", Type: backend.CPUDevice}},
		{info: backend.Info{Name: "broken gpu", Type: backend.DiscreteGPU, Problem: "no compiler"}},
		{info: backend.Info{Name: "accelerator", Type: backend.Accelerator}},
		{info: backend.Info{Name: "igpu", Type: backend.IntegratedGPU}},
		{info: backend.Info{Name: "rusticl gpu", Type: backend.DiscreteGPU, Driver: "rusticl", DriverVersion: "23.0.1"}},
		{info: backend.Info{Name: "gpu 1", Type: backend.DiscreteGPU}},
		{info: backend.Info{Name: "gpu 2", Type: backend.DiscreteGPU, Driver: "rusticl", DriverVersion: "25.0.0"}},
	}
	sortCandidates(list)
	var got []string
	for _, c := range list {
		got = append(got, c.info.Name)
	}
	want := []string{"gpu 1", "gpu 2", "rusticl gpu", "igpu", "accelerator", "cpu", "rusticl cpu", "broken gpu"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOldMesa(t *testing.T) {
	for version, want := range map[string]bool{"22.3.6": true, "23.0.4": true, "23.1.0": false, "23.1.0-devel": false, "24.2.8": false, "": true, "git": true} {
		if got := oldMesa(version); got != want {
			t.Errorf("oldMesa(%q) = %v", version, got)
		}
	}
}

// TestHandles checks the assumption that the first field of the binding's objects is the OpenCL object, on an object whose
// handle can be compared with what the API says.
func TestHandles(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const queueDevice, queueContext = 0x1091, 0x1090
		if got, code := clload.QueueValue(d.qh, queueContext); code != 0 || got != clload.HandleOf(d.context) {
			t.Errorf("the queue's context is %v (%v), want %v", got, code, clload.HandleOf(d.context))
		}
		if got, code := clload.QueueValue(d.qh, queueDevice); code != 0 || got != clload.HandleOf(d.id) {
			t.Errorf("the queue's device is %v (%v), want %v", got, code, clload.HandleOf(d.id))
		}
	})
}

// TestOclgrind runs the kernel tests, and those of launches, under the checking simulator: wrong use of the API, accesses out of bounds and
// races are reported on its log, which must be empty.
func TestOclgrind(t *testing.T) {
	oclgrind, err := exec.LookPath("oclgrind")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("oclgrind is not installed (Debian package oclgrind), and CI is set")
		}
		t.Skip("oclgrind is not installed (Debian package oclgrind)")
	}
	if os.Getenv("OPENCL_TEST_CHILD") != "" {
		t.Skip("not in a child")
	}
	log := filepath.Join(t.TempDir(), "log")
	// Its compiler must not optimize: Oclgrind 21.10 keeps a lane of a vector comparison as 255, which then is neither 1 nor, negated, 0.
	cmd := exec.Command(oclgrind, "--build-options", "-cl-opt-disable", "--check-api", "--data-races", "--uniform-writes", "--log", log, os.Args[0], "-test.short", "-test.v",
		"-test.run=^(TestInfo|TestTransfer|TestAllocErrors|TestLaunch|TestLaunchErrors|TestKernel.*)$")
	cmd.Env = append(os.Environ(), "OPENCL_TEST_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "Oclgrind Simulator") {
		t.Errorf("the tests did not run on Oclgrind:\n%s", out)
	}
	messages, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if len(messages) > 0 {
		t.Errorf("messages:\n%s", messages)
	}
}
