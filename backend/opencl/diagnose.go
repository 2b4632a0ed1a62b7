//go:build cgo

package opencl

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
)

// installHint says how to get a device.
var installHint = map[string]string{
	"linux":   "install your GPU vendor's OpenCL driver, or PoCL for the CPU (Debian, Ubuntu: apt-get install pocl-opencl-icd ocl-icd-libopencl1)",
	"windows": "install your GPU vendor's driver, which brings OpenCL.dll",
	"darwin":  "OpenCL is part of macOS; it may have been removed from this version",
}[runtime.GOOS]

// Diagnose says what the driver looked for and found: the library, the vendors' files that OpenCL's loader reads, and each
// platform. It looks for devices if that has not happened yet. What to install is in the error of Devices.
func (d *driver) Diagnose() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.scanned {
		d.scan()
	}
	var out []string
	if library, err := clload.Library(); err != nil {
		out = append(out, "library: not found")
	} else {
		out = append(out, "library: "+library)
	}
	if runtime.GOOS == "linux" {
		out = append(out, vendorFiles(os.Getenv)...)
	}
	return append(out, d.notes...)
}

// vendorFiles lists the .icd files that the loader reads, with the library that each names, and the environment
// variables that change where it looks.
func vendorFiles(getenv func(string) string) []string {
	var out []string
	folder := "/etc/OpenCL/vendors"
	for _, name := range []string{"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES"} {
		v := getenv(name)
		if v == "" {
			continue
		}
		out = append(out, name+"="+v)
		if name != "OCL_ICD_FILENAMES" {
			folder = v
		}
	}
	if st, err := os.Stat(folder); err == nil && !st.IsDir() {
		return append(out, vendorFile(folder))
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.icd"))
	if len(files) == 0 {
		return append(out, folder+": no .icd files: no OpenCL driver is installed there")
	}
	for _, f := range files {
		out = append(out, vendorFile(f))
	}
	return out
}

func vendorFile(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("%s: %v", path, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	const longest = 200 // a path; anything longer is no .icd file
	if len(line) > longest {
		line = line[:longest] + "..."
	}
	return fmt.Sprintf("%s: %s", path, strings.TrimSpace(line))
}
