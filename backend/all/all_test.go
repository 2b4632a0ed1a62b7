package all_test

import (
	"slices"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
)

// Every driver is there, and whatever the machine has, listing works and the CPU can be opened.
func TestEveryDriver(t *testing.T) {
	if got, want := backend.Drivers(), []string{"cpu", "opencl", "vulkan"}; !slices.Equal(got, want) {
		t.Errorf("drivers %v, want %v", got, want)
	}
	found := map[string]int{}
	for _, i := range backend.List() {
		found[i.API]++
		t.Logf("%s: %s, %s %s, %s; %s", i, i.Name, i.Driver, i.DriverVersion, i.Type, backend.Why(i))
		if i.Problem == "" != backend.IsAvailable(i.String()) {
			t.Errorf("IsAvailable(%s) contradicts the problem %q", i, i.Problem)
		}
		if i.Name == "" && i.Problem == "" {
			t.Errorf("%s has no name", i)
		}
	}
	diagnosis := backend.Diagnose()
	for _, api := range backend.Drivers() {
		said := slices.ContainsFunc(diagnosis, func(l string) bool { return len(l) > len(api) && l[:len(api)+1] == api+":" })
		if found[api] == 0 && !said {
			t.Errorf("%s has no device and does not say why", api)
		}
	}
	dev, err := backend.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if backend.DefaultName() == "" {
		t.Error("there is no default device")
	}
}
