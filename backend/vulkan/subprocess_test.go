//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// again runs tests of this program in a process of its own with a changed environment.
func again(t *testing.T, run string, env ...string) (string, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run="+run, "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), append(env, subprocessEnv+"=1")...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const subprocessEnv = "ANYGPU_TEST_SUBPROCESS"

// TestNoDevices runs in the subprocesses of TestWithoutDriver.
func TestNoDevices(t *testing.T) {
	want := os.Getenv("ANYGPU_TEST_NO_DEVICES")
	if want == "" {
		t.Skip("runs as a subprocess of TestWithoutDriver")
	}
	for range 2 { // a failure is no crash the second time, either
		infos, err := theDriver.Devices()
		if err == nil || len(infos) > 0 {
			t.Fatalf("%d devices, error %v", len(infos), err)
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "install") {
			t.Errorf("got %q, want %q and what to install", err, want)
		}
	}
	if _, err := theDriver.Open(0); err == nil {
		t.Error("a device was opened")
	}
	if backend.IsAvailable("vulkan") {
		t.Error("vulkan is called available")
	}
	lines := strings.Join(theDriver.Diagnose(), "\n")
	t.Log(lines)
	if !strings.Contains(lines, os.Getenv("ANYGPU_TEST_DIAGNOSIS")) {
		t.Errorf("the diagnosis lacks %q", os.Getenv("ANYGPU_TEST_DIAGNOSIS"))
	}
}

func TestWithoutDriver(t *testing.T) {
	if os.Getenv(subprocessEnv) != "" {
		t.Skip("no subprocesses of subprocesses")
	}
	empty := t.TempDir()
	broken := filepath.Join(empty, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"file_format_version":"1.0.0","ICD":{"library_path":"/nowhere/libvulkan_broken.so","api_version":"1.1.0"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	none := t.TempDir()
	for _, c := range []struct {
		name, want, diagnosis string
		env                   []string
	}{
		{"no loader", "no Vulkan loader was found; tried /nowhere/libvulkan.so.1", "loader /nowhere/libvulkan.so.1: ", []string{loaderEnv + "=/nowhere/libvulkan.so.1"}},
		{"not a loader", "no Vulkan loader was found", broken, []string{loaderEnv + "=" + broken}},
		{"empty ICD folder", "VK_ERROR_INCOMPATIBLE_DRIVER", "ICD folder " + none + ": no json file", []string{"VK_DRIVER_FILES=" + none, "VK_ICD_FILENAMES=" + none}},
		{"broken ICD", "VK_ERROR_INCOMPATIBLE_DRIVER", "ICD " + broken + ": found", []string{"VK_DRIVER_FILES=" + broken, "VK_ICD_FILENAMES=" + broken}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := theDriver.Devices(); err != nil && !strings.HasPrefix(c.env[0], loaderEnv) {
				t.Skipf("no loader: %v", err)
			}
			env := append(c.env, "ANYGPU_TEST_NO_DEVICES="+c.want, "ANYGPU_TEST_DIAGNOSIS="+c.diagnosis)
			out, err := again(t, "^TestNoDevices$", env...)
			if err != nil || !strings.Contains(out, "PASS: TestNoDevices") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

var layerName = "VK_LAYER_KHRONOS_validation"

// hasLayer reports whether the validation layer is installed.
func hasLayer() bool {
	found := false
	for _, dir := range icdFolders() {
		_ = filepath.WalkDir(filepath.Join(filepath.Dir(dir), "explicit_layer.d"), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return fs.SkipDir
			}
			data, _ := os.ReadFile(path)
			found = found || strings.Contains(string(data), layerName)
			return nil
		})
	}
	return found
}

// The tests of this package again under the validation layer, with its checks of synchronization: no message at all.
func TestValidationLayer(t *testing.T) {
	if os.Getenv(subprocessEnv) != "" {
		t.Skip("no subprocesses of subprocesses")
	}
	if !hasLayer() {
		if os.Getenv("CI") != "" {
			t.Fatal("the validation layer is not installed (vulkan-validationlayers)")
		}
		t.Skip("the validation layer is not installed (vulkan-validationlayers)")
	}
	out, err := again(t, ".", "VK_INSTANCE_LAYERS="+layerName,
		"VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT")
	if err != nil {
		t.Errorf("under the validation layer: %v\n%s", err, out)
	}
	message := regexp.MustCompile(`(?m)^.*(VUID|UNASSIGNED-|SYNC-HAZARD|Validation (Error|Warning|Performance)).*$`)
	if found := message.FindAllString(out, 10); found != nil {
		t.Errorf("messages of the validation layer:\n%s", strings.Join(found, "\n"))
	}
	if !strings.Contains(out, "--- PASS: TestOrder") {
		t.Errorf("the tests did not run:\n%s", out)
	}
	if infos, err := theDriver.Devices(); err != nil || len(infos) == 0 {
		t.Error(errors.Join(errors.New("no device"), err))
	}
}

// The layer is really there in the subprocess: a planted mistake is reported.
func TestValidationLayerReports(t *testing.T) {
	if os.Getenv("ANYGPU_TEST_PLANT") != "" {
		eachDevice(t, func(t *testing.T, d *device) {
			b := alloc(t, d, 64)
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.buffers, b) // Close forgets to destroy it
		})
		return
	}
	if os.Getenv(subprocessEnv) != "" || !hasLayer() {
		t.Skip("needs the validation layer, in a process of its own")
	}
	out, _ := again(t, "^TestValidationLayerReports$", "VK_INSTANCE_LAYERS="+layerName, "ANYGPU_TEST_PLANT=1")
	if !strings.Contains(out, "VUID-vkDestroyDevice") {
		t.Errorf("the planted mistake was not reported:\n%s", out)
	}
}
