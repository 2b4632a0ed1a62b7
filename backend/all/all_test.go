package all_test

import (
	"bytes"
	"errors"
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

// What is available can be opened, is shared, keeps what is written to it, and closes with its last user.
func TestAvailableDevicesWork(t *testing.T) {
	for _, i := range backend.List() {
		if i.Problem != "" {
			continue
		}
		t.Run(i.String(), func(t *testing.T) {
			dev, err := backend.Open(i.String())
			if err != nil {
				t.Fatal(err)
			}
			same, err := backend.Open(i.String())
			if err != nil || same != dev {
				t.Fatalf("the second Open gave another device (%v)", err)
			}
			if err := same.Close(); err != nil {
				t.Error(err)
			}
			memory := backend.NewAllocator(dev, backend.AllocatorConfig{})
			var blocks []*backend.Block
			for k := range 3 {
				b, err := memory.Alloc(1000)
				if err != nil {
					t.Fatal(err)
				}
				r := b.Region()
				if err := r.Buffer.Write(r.Offset, bytes.Repeat([]byte{byte(k + 1)}, 1000)); err != nil {
					t.Fatal(err)
				}
				blocks = append(blocks, b)
			}
			got := make([]byte, 1000)
			for k, b := range blocks {
				r := b.Region()
				if err := r.Buffer.Read(r.Offset, got); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{byte(k + 1)}, 1000)) {
					t.Errorf("block %d does not hold what was written (%v)", k, err)
				}
				b.Free()
			}
			if s := memory.Stats(); s.Segments.Current != 1 || s.AllocatedBytes.Current != 0 {
				t.Errorf("memory statistics %+v", s.PoolStats)
			}
			if err := errors.Join(memory.Close(), dev.Close()); err != nil {
				t.Error(err)
			}
			if _, err := dev.Alloc(4); !errors.Is(err, backend.ErrClosed) {
				t.Errorf("Alloc after the last Close: %v", err)
			}
		})
	}
}
