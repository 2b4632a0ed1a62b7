package conformance_test

import (
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
)

type device = backend.Device

// eachDevice runs f as a subtest on every device of the machine that can be opened, except those that are known to be
// wrong: rusticl is held against the suite by hand, and its failures are listed in docs/drivers.md.
func eachDevice(t *testing.T, name string, f func(t *testing.T, dev device)) {
	t.Helper()
	n := 0
	for _, info := range backend.List() {
		if info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		n++
		t.Run(name+"/"+info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			t.Logf("%s, %s %s", info.Name, info.Driver, info.DriverVersion)
			f(t, dev)
		})
	}
	if n == 0 {
		t.Fatal("no device, not even the CPU")
	}
}
