//go:build !cgo || !(linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

func TestUnavailable(t *testing.T) {
	infos, err := theDriver.Devices()
	if len(infos) > 0 || err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=1") {
		t.Errorf("got %v, %v; want an error that says how to build", infos, err)
	}
	if _, err := theDriver.Open(0); err == nil {
		t.Error("Open gave no error")
	}
	if backend.IsAvailable("vulkan") {
		t.Error("vulkan is called available")
	}
	if d := theDriver.Diagnose(); len(d) != 1 || d[0] != why() {
		t.Errorf("the diagnosis is %q", d)
	}
}
