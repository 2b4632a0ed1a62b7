package backend

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Results of self-tests are kept in files, because OpenCL's compilers take a second for them: one for each device, version of its
// driver, set of capabilities and version of the tests. A file that cannot be read or written only costs the time.

// selfTestFile returns the name of a device's file; empty if there is no folder for caches.
func selfTestFile(i Info) string {
	dir := os.Getenv("ANYGPU_CACHE_DIR")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(user, "anygpu")
	}
	key := fmt.Sprintf("%d %q %q %q %q %q %q %x %+v", pathVersion, i.API, i.Name, i.Vendor, i.Driver, i.DriverVersion, i.APIVersion, i.UUID, i.Caps)
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(dir, fmt.Sprintf("selftest-%x.json", sum[:8]))
}

// selfTestResult is the content of a file. Device is for people.
type selfTestResult struct {
	Device   string        `json:"device"`
	Failures []pathFailure `json:"failures"`
}

func knownFailures(i Info) (failures []pathFailure, known bool) {
	name := selfTestFile(i)
	if name == "" {
		return nil, false
	}
	b, err := os.ReadFile(name)
	var r selfTestResult
	if err != nil || json.Unmarshal(b, &r) != nil || r.Failures == nil {
		return nil, false
	}
	return r.Failures, true
}

func rememberFailures(i Info, failures []pathFailure) {
	name := selfTestFile(i)
	if name == "" || os.MkdirAll(filepath.Dir(name), 0o755) != nil {
		return
	}
	b, err := json.Marshal(selfTestResult{fmt.Sprintf("%s, %s %s", i.Name, i.Driver, i.DriverVersion), append([]pathFailure{}, failures...)})
	if err != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".selftest-*")
	if err != nil {
		return
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(b, '\n'))
	if cerr := tmp.Close(); err == nil && cerr == nil {
		_ = os.Rename(tmp.Name(), name) // without the file the tests run again
	}
}
