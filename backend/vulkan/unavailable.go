//go:build !cgo || !(linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/anygpu/anygpu/backend"
)

// theDriver is the driver of a build that cannot have Vulkan.
var theDriver = &driver{}

type driver struct{}

func why() string {
	if runtime.GOOS == "darwin" {
		return "this program was built without MoltenVK: install it (brew install molten-vk vulkan-loader) and build with CGO_ENABLED=1 and -tags moltenvk"
	}
	return fmt.Sprintf("this program was built for %s/%s without cgo, which the Vulkan driver needs: install a C compiler and build with CGO_ENABLED=1", runtime.GOOS, runtime.GOARCH)
}

// Devices returns the error that says what to do.
func (*driver) Devices() ([]backend.Info, error) { return nil, errors.New(why()) }

// Open fails like Devices.
func (*driver) Open(int) (backend.Device, error) { return nil, errors.New(why()) }

// Diagnose returns the reason as the only finding.
func (*driver) Diagnose() []string { return []string{why()} }
