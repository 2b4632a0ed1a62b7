//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"
)

// instance is the process's one Vulkan instance. It is made at the first use and kept: the binding has one table of
// functions for all.
type instance struct {
	gipa    unsafe.Pointer // vkGetInstanceProcAddr
	handle  vk.Instance
	version uint32
}

// attempt is one try to open the loader.
type attempt struct {
	name string
	err  string // empty: it was opened
}

var loader struct {
	mu       sync.Mutex
	gipa     unsafe.Pointer
	attempts []attempt // of the last search
	inst     *instance
}

// loaderEnv names the loader library to use in place of the usual ones.
const loaderEnv = "ANYGPU_VULKAN_LOADER"

// loaderNames returns the names to try, in order.
func loaderNames() []string {
	if name := os.Getenv(loaderEnv); name != "" {
		return []string{name}
	}
	switch runtime.GOOS {
	case "windows":
		return []string{"vulkan-1.dll"}
	case "darwin":
		return []string{"libvulkan.1.dylib", "/opt/homebrew/lib/libvulkan.1.dylib", "/usr/local/lib/libvulkan.1.dylib",
			"libMoltenVK.dylib", "/opt/homebrew/lib/libMoltenVK.dylib", "/usr/local/lib/libMoltenVK.dylib"}
	}
	return []string{"libvulkan.so.1", "libvulkan.so"} // the second is Android's, and the development package's
}

// getInstance returns the instance. A failure is not kept, so that a later call finds a driver installed since.
func getInstance() (*instance, error) {
	loader.mu.Lock()
	defer loader.mu.Unlock()
	if loader.inst != nil {
		return loader.inst, nil
	}
	if err := openLoader(); err != nil {
		return nil, err
	}
	i := &instance{gipa: loader.gipa}
	i.version = uint32(C.agpu_instance_version(i.gipa))
	if i.version < apiVersion1_1 {
		return nil, fmt.Errorf("the Vulkan loader is of version %s, and 1.1 is needed: install a newer libvulkan1 or graphics driver", vk.Version(i.version))
	}
	if err := i.create(); err != nil {
		return nil, err
	}
	if err := vk.InitInstance(i.handle); err != nil {
		return nil, err
	}
	loader.inst = i
	return i, nil
}

func openLoader() error {
	if loader.gipa != nil {
		return nil
	}
	loader.attempts = nil
	for _, name := range loaderNames() {
		sym, err := openLibrary(name)
		loader.attempts = append(loader.attempts, attempt{name, err})
		if sym == nil {
			continue
		}
		vk.SetGetInstanceProcAddr(sym)
		if err := vk.Init(); err != nil {
			return err
		}
		loader.gipa = sym
		return nil
	}
	var tried []string
	for _, a := range loader.attempts {
		tried = append(tried, fmt.Sprintf("%s (%s)", a.name, a.err))
	}
	return errors.New("no Vulkan loader was found; tried " + strings.Join(tried, ", ") + "; " + installHint())
}

// openLibrary returns the library's vkGetInstanceProcAddr, or why there is none.
func openLibrary(name string) (unsafe.Pointer, string) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var buf [512]C.char
	sym := C.agpu_loader_open(cname, &buf[0], C.size_t(len(buf)))
	return sym, C.GoString(&buf[0])
}

const (
	apiVersion1_1 = 1<<22 | 1<<12
	apiVersion1_2 = 1<<22 | 2<<12
	apiVersion1_3 = 1<<22 | 3<<12
)

// create makes the instance. It asks for the newest version whose core the shim knows, as far as the loader has it.
func (i *instance) create() error {
	want := min(i.version, apiVersion1_3)
	r := vk.ErrorExtensionNotPresent
	if runtime.GOOS == "darwin" {
		r = i.createPortable(want)
	}
	if r == vk.ErrorExtensionNotPresent {
		app := vk.ApplicationInfo{SType: vk.StructureTypeApplicationInfo, PApplicationName: "anygpu\x00", ApiVersion: want}
		info := vk.InstanceCreateInfo{SType: vk.StructureTypeInstanceCreateInfo, PApplicationInfo: &app}
		var handle vk.Instance
		r = vk.CreateInstance(&info, nil, &handle)
		info.Free()
		i.handle = handle
	}
	if r < 0 {
		err := &apiError{"vkCreateInstance", r}
		if r == vk.ErrorIncompatibleDriver {
			return fmt.Errorf("%w; %s", err, installHint())
		}
		return err
	}
	return nil
}

// createPortable makes an instance that also lists devices of less than full conformance, as MoltenVK's.
func (i *instance) createPortable(version uint32) vk.Result {
	var handle C.VkInstance
	r := vk.Result(C.agpu_instance_create(i.gipa, C.uint32_t(version), &handle))
	i.handle = convert[vk.Instance](handle)
	return r
}

// physicalDevices returns the handles of all devices of all drivers.
func (i *instance) physicalDevices() ([]vk.PhysicalDevice, error) {
	for {
		var n uint32
		if r := vk.EnumeratePhysicalDevices(i.handle, &n, nil); r < 0 {
			return nil, &apiError{"vkEnumeratePhysicalDevices", r}
		}
		if n == 0 {
			return nil, nil
		}
		list := make([]vk.PhysicalDevice, n)
		r := vk.EnumeratePhysicalDevices(i.handle, &n, list)
		if r == vk.Incomplete { // a device came between
			continue
		}
		if r < 0 {
			return nil, &apiError{"vkEnumeratePhysicalDevices", r}
		}
		return list[:n], nil
	}
}

func (i *instance) c() C.VkInstance { return convert[C.VkInstance](i.handle) }

// convert reinterprets a handle as the same handle's type in another package. It does so without a conversion to
// unsafe.Pointer of the handle itself, which may be any number.
func convert[To, From any](h From) To { return *(*To)(unsafe.Pointer(&h)) }
