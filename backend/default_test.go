package backend

import (
	"errors"
	"strings"
	"testing"
)

func TestDefaultOrder(t *testing.T) {
	uuid := func(b byte) (u [16]byte) { u[3] = b; return }
	with := func(i Info, u [16]byte) Info { i.UUID = u; return i }
	rtx, igpu, virt := gpu("RTX", DiscreteGPU, 8), gpu("Iris", IntegratedGPU, 32), gpu("Virtio", VirtualGPU, 64)
	llvm := gpu("llvmpipe (LLVM 19, 256 bits)", CPUDevice, 128)
	for _, c := range []struct {
		name   string
		vk, cl []Info
		want   string // the GPUs, best first
		def    string
	}{
		{"none", nil, nil, "", "cpu"},
		{"software only", []Info{llvm}, []Info{gpu("PoCL", CPUDevice, 64)}, "", "cpu"},
		{"software that says it is a gpu", []Info{gpu("SwiftShader Device", IntegratedGPU, 4), gpu("Virtio-GPU Venus (llvmpipe)", VirtualGPU, 4)}, nil, "", "cpu"},
		{"accelerator and other", nil, []Info{gpu("FPGA", Accelerator, 64), gpu("?", OtherDevice, 64)}, "", "cpu"},
		{"types", []Info{llvm, virt, igpu, rtx}, nil, "vulkan:3 vulkan:2 vulkan:1", "vulkan:3"},
		{"memory", []Info{gpu("A", DiscreteGPU, 8), gpu("B", DiscreteGPU, 24), gpu("C", DiscreteGPU, 16)}, nil, "vulkan:1 vulkan:2 vulkan:0", "vulkan:1"},
		{"ties in order", []Info{gpu("A", DiscreteGPU, 8), gpu("B", DiscreteGPU, 8)}, nil, "vulkan:0 vulkan:1", "vulkan:0"},
		{"opencl only", nil, []Info{gpu("PoCL", CPUDevice, 64), rtx}, "opencl:1", "opencl:1"},
		{"type beats api", []Info{igpu}, []Info{rtx}, "opencl:0 vulkan:0", "opencl:0"},
		{"same name", []Info{gpu("RTX", DiscreteGPU, 8)}, []Info{gpu("RTX", DiscreteGPU, 9)}, "vulkan:0", "vulkan:0"},
		{"names with additions", []Info{gpu("Intel(R) Arc(tm) A770 Graphics (DG2)", DiscreteGPU, 15)}, []Info{gpu("Intel(R) Arc(TM) A770 Graphics", DiscreteGPU, 16)}, "vulkan:0", "vulkan:0"},
		{"same uuid", []Info{with(gpu("Radeon (RADV NAVI21)", DiscreteGPU, 15), uuid(1))}, []Info{with(gpu("gfx1030", DiscreteGPU, 16), uuid(1))}, "vulkan:0", "vulkan:0"},
		{"same name, other uuid", []Info{with(rtx, uuid(1))}, []Info{with(rtx, uuid(2))}, "vulkan:0 opencl:0", "vulkan:0"},
		{"two cards of a kind", []Info{rtx, rtx}, []Info{rtx, rtx}, "vulkan:0 vulkan:1", "vulkan:0"},
		{"problem", []Info{{Name: "RTX", Type: DiscreteGPU, Problem: "too old"}}, []Info{rtx}, "opencl:0", "opencl:0"},
	} {
		r := newRegistry("", map[string]Driver{"cpu": cpuDriver, "vulkan": &fakeDriver{infos: c.vk}, "opencl": &fakeDriver{infos: c.cl}})
		var got []string
		for _, g := range r.gpus() {
			got = append(got, g.String())
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: GPUs %q, want %q", c.name, g, c.want)
		}
		d, err := r.defaultDevice()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s := d.Info(); s.Name != must(r.find(c.def)).Name {
			t.Errorf("%s: default %v, want %s", c.name, s, c.def)
		}
		if i, err := r.defaultInfo(); err != nil || i.String() != c.def {
			t.Errorf("%s: default info %v, %v, want %s", c.name, i, err, c.def)
		}
		d.Close()
	}
}

func must(i Info, err error) Info {
	if err != nil {
		panic(err)
	}
	return i
}

func TestGPUByRank(t *testing.T) {
	r := newRegistry("", map[string]Driver{"cpu": cpuDriver, "vulkan": &fakeDriver{infos: []Info{gpu("A", IntegratedGPU, 8), gpu("B", DiscreteGPU, 8)}}})
	for name, want := range map[string]string{"gpu": "vulkan:1", "gpu:0": "vulkan:1", "gpu:1": "vulkan:0"} {
		d, err := r.open(name)
		if err != nil {
			t.Fatal(err)
		}
		same, err := r.open(want)
		if err != nil || same != d {
			t.Errorf("%s and %s are not the same device (%v)", name, want, err)
		}
		d.Close()
		same.Close()
	}
}

func TestDefaultFromEnvironment(t *testing.T) {
	drivers := func() map[string]Driver {
		return map[string]Driver{"cpu": cpuDriver, "vulkan": &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8), gpu("llvmpipe", CPUDevice, 8), {Name: "Old", Problem: "too old"}}}}
	}
	r := newRegistry("vulkan:1", drivers())
	d, err := r.defaultDevice()
	if err != nil || d.Info().Name != "llvmpipe" {
		t.Fatalf("default %v, %v, want llvmpipe", d, err)
	}
	d.Close()
	for env, want := range map[string]string{
		"vulkan:9":  "ANYGPU_DEVICE=vulkan:9: unknown device vulkan:9: there is only vulkan:0 (RTX), vulkan:1 (llvmpipe), vulkan:2 (Old)",
		"vulkan:2":  "ANYGPU_DEVICE=vulkan:2: vulkan:2 (Old) cannot be opened: too old",
		"vulkan:01": `ANYGPU_DEVICE=vulkan:01: Invalid device string: 'vulkan:01'; expected a form like "cpu", "gpu" or "vulkan:1"`,
	} {
		r := newRegistry(env, drivers())
		if _, err := r.defaultDevice(); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", env, err, want)
		}
		if _, err := r.defaultInfo(); err == nil {
			t.Errorf("%s: there is a default info", env)
		}
	}
}

func TestDefaultPassesOverWhatFails(t *testing.T) {
	vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}, openErr: map[int]error{0: errors.New("busy")}}
	cl := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}}
	r := newRegistry("", map[string]Driver{"cpu": cpuDriver, "vulkan": vk, "opencl": cl})
	d, err := r.defaultDevice()
	if err != nil || len(cl.opened) != 1 {
		t.Fatalf("default %v, %v: not the same GPU by OpenCL", d, err)
	}
	d.Close()
	if why := r.why(r.list()[2]); why != "cannot be opened: busy" {
		t.Errorf("why %q", why)
	}
	cl.openErr = map[int]error{0: errors.New("busy, too")}
	if d, err = r.defaultDevice(); err != nil || d.Info().Type != CPUDevice {
		t.Fatalf("default %v, %v, want the CPU", d, err)
	}
	d.Close()
	r = newRegistry("", nil)
	if _, err := r.defaultDevice(); !errors.Is(err, ErrUnknownDevice) {
		t.Errorf("without drivers: %v", err)
	}
}

func TestWhy(t *testing.T) {
	vk := []Info{gpu("RTX", DiscreteGPU, 8), gpu("llvmpipe", CPUDevice, 8), gpu("Iris", IntegratedGPU, 64), gpu("GTX", DiscreteGPU, 4),
		{Name: "Old", Problem: "too old"}, gpu("RTX", DiscreteGPU, 8), gpu("FPGA", Accelerator, 8)}
	cl := []Info{gpu("RTX", DiscreteGPU, 8)}
	type want map[string]string
	for _, c := range []struct {
		name, env string
		vk        []Info
		want      want
	}{
		{"best", "", vk, want{
			"vulkan:0": "default: the best GPU",
			"cpu":      "a GPU is preferred: vulkan:0",
			"vulkan:1": "runs on the CPU: used only by name",
			"vulkan:2": "vulkan:0 is preferred: discrete gpu before integrated gpu",
			"vulkan:3": "vulkan:0 is preferred: it has more memory",
			"vulkan:4": "cannot be opened: too old",
			"vulkan:5": "vulkan:0 is preferred: it comes first",
			"vulkan:6": "no GPU: used only by name",
			"opencl:0": "the same GPU as vulkan:0, which is preferred",
		}},
		{"environment", "vulkan:2", vk, want{
			"vulkan:2": "default: ANYGPU_DEVICE=vulkan:2",
			"vulkan:0": "ANYGPU_DEVICE=vulkan:2 chooses vulkan:2",
			"cpu":      "ANYGPU_DEVICE=vulkan:2 chooses vulkan:2",
			"vulkan:4": "cannot be opened: too old",
		}},
		{"bad environment", "vulkan:4", vk, want{
			"vulkan:0": "there is no default: ANYGPU_DEVICE=vulkan:4: vulkan:4 (Old) cannot be opened: too old",
		}},
		{"cpu", "", vk[1:2], want{"cpu": "a GPU is preferred: opencl:0", "opencl:0": "default: the best GPU"}},
	} {
		r := newRegistry(c.env, map[string]Driver{"cpu": cpuDriver, "vulkan": &fakeDriver{infos: c.vk}, "opencl": &fakeDriver{infos: cl}})
		for dev, want := range c.want {
			if got := r.why(must(r.find(dev))); got != want {
				t.Errorf("%s: why(%s) = %q, want %q", c.name, dev, got, want)
			}
		}
	}
	r := newRegistry("", map[string]Driver{"cpu": cpuDriver})
	if got := r.why(r.list()[0]); got != "default: no GPU is available" {
		t.Errorf("why(cpu) = %q", got)
	}
	old := std
	std = r
	defer func() { std = old }()
	if DefaultName() != "cpu" {
		t.Errorf("DefaultName() = %q", DefaultName())
	}
	std = newRegistry("vulkan", nil)
	if DefaultName() != "" {
		t.Errorf("DefaultName() = %q without a default", DefaultName())
	}
}
