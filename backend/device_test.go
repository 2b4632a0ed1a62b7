package backend

import "testing"

func TestDeviceType(t *testing.T) {
	for typ, want := range map[DeviceType]struct {
		name string
		gpu  bool
	}{
		OtherDevice: {"other", false}, CPUDevice: {"cpu", false}, IntegratedGPU: {"integrated gpu", true}, DiscreteGPU: {"discrete gpu", true},
		VirtualGPU: {"virtual gpu", true}, Accelerator: {"accelerator", false}, 99: {"other", false}, -1: {"other", false},
	} {
		if typ.String() != want.name || typ.IsGPU() != want.gpu {
			t.Errorf("%d: %q, GPU %v; want %q, %v", int(typ), typ, typ.IsGPU(), want.name, want.gpu)
		}
	}
}

func TestInfoTarget(t *testing.T) {
	i := Info{API: "vulkan", Vendor: "AMD", Type: DiscreteGPU}
	i.Caps.MaxLanes = 4
	if got := i.Target(); got.API != "vulkan" || !got.GPU || got.Vendor != "AMD" || got.Caps.MaxLanes != 4 {
		t.Errorf("target %+v", got)
	}
	i.Type = CPUDevice
	if i.Target().GPU {
		t.Error("a CPU device counts as a GPU for kernels")
	}
}
