//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// installHint says how to get a driver.
func installHint() string {
	switch runtime.GOOS {
	case "windows":
		return "install the graphics driver of the GPU's vendor"
	case "darwin":
		return "install MoltenVK (brew install molten-vk vulkan-loader)"
	}
	return "install the GPU's driver, or a software device: on Debian and Ubuntu apt-get install libvulkan1 mesa-vulkan-drivers, on Fedora dnf install vulkan-loader mesa-vulkan-drivers"
}

// Diagnose says which loaders were tried, which ICD files (a driver's entry for the loader) there are, and what came of it.
func (d *driver) Diagnose() []string {
	list, err := enumerate() // and the numbers of the devices stay
	loader.mu.Lock()
	attempts := slices.Clone(loader.attempts)
	loader.mu.Unlock()
	var out []string
	for _, a := range attempts {
		if a.err == "" {
			out = append(out, fmt.Sprintf("loader %s: opened", a.name))
		} else {
			out = append(out, fmt.Sprintf("loader %s: %s", a.name, a.err))
		}
	}
	if runtime.GOOS != "windows" {
		out = append(out, icdFindings()...)
	}
	for _, l := range []string{"VK_INSTANCE_LAYERS", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"} {
		if v := os.Getenv(l); v != "" {
			out = append(out, l+" is "+v)
		}
	}
	for _, c := range list {
		i := c.info
		line := fmt.Sprintf("device %d: %s, driver %s %s", i.Index, i.Name, i.Driver, i.DriverVersion)
		if i.Problem != "" {
			line += ": cannot be used: " + i.Problem
		}
		out = append(out, line)
	}
	if err != nil {
		out = append(out, err.Error())
	}
	if runtime.GOOS == "linux" && !slices.ContainsFunc(list, func(c candidate) bool { return c.info.Type.IsGPU() }) {
		out = append(out, containerHints()...)
	}
	return out
}

// icdFindings lists the ICD files that the loader would read.
func icdFindings() []string {
	for _, env := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		v, set := os.LookupEnv(env)
		if !set || v == "" {
			continue
		}
		out := []string{fmt.Sprintf("%s is %s; other ICD files are ignored", env, v)}
		for _, p := range filepath.SplitList(v) {
			if st, err := os.Stat(p); err != nil {
				out = append(out, fmt.Sprintf("ICD %s: %v", p, err))
			} else if st.IsDir() {
				out = append(out, icdsIn(p))
			} else {
				out = append(out, fmt.Sprintf("ICD %s: found", p))
			}
		}
		return out
	}
	var out []string
	for _, dir := range icdFolders() {
		out = append(out, icdsIn(dir))
	}
	return out
}

func icdsIn(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) == 0 {
		return fmt.Sprintf("ICD folder %s: no json file", dir)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return fmt.Sprintf("ICD folder %s: %s", dir, strings.Join(files, ", "))
}

// icdFolders returns the loader's standard folders.
func icdFolders() []string {
	var roots []string
	add := func(list, standard string) {
		if list == "" {
			list = standard
		}
		roots = append(roots, filepath.SplitList(list)...)
	}
	home, _ := os.UserHomeDir()
	add(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	add(os.Getenv("XDG_CONFIG_DIRS"), "/etc/xdg")
	roots = append(roots, "/usr/local/etc", "/etc")
	add(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local/share"))
	add(os.Getenv("XDG_DATA_DIRS"), "/usr/local/share:/usr/share")
	if runtime.GOOS == "darwin" {
		roots = append(roots, "/opt/homebrew/share")
	}
	var out []string
	for _, r := range roots {
		if dir := filepath.Join(r, "vulkan/icd.d"); !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// containerHints says what keeps a GPU that the kernel has from being a Vulkan device.
func containerHints() []string {
	var out []string
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	if exists("/dev/nvidiactl") && !slices.ContainsFunc(icdFolders(), func(dir string) bool { return exists(filepath.Join(dir, "nvidia_icd.json")) }) {
		out = append(out, "an NVIDIA GPU is here, but not its Vulkan driver (nvidia_icd.json): in a container set NVIDIA_DRIVER_CAPABILITIES=all, or at least compute,graphics,utility")
	}
	nodes, _ := filepath.Glob("/dev/dri/renderD*")
	for _, n := range nodes {
		f, err := os.OpenFile(n, os.O_RDWR, 0)
		if err != nil {
			out = append(out, fmt.Sprintf("GPU node %s: %v; add the user to the group render, or in a container pass --device /dev/dri", n, err))
			continue
		}
		f.Close()
		out = append(out, fmt.Sprintf("GPU node %s: can be opened", n))
	}
	if len(nodes) == 0 && !exists("/dev/nvidiactl") {
		out = append(out, "no GPU node in /dev/dri: the machine has no GPU, its kernel driver is missing, or a container hides it")
	}
	return out
}
