package backend

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

var cpuDriver = &fakeDriver{infos: []Info{{Name: "Some CPU", Type: CPUDevice}}}

func TestRegisterPanics(t *testing.T) {
	r := newRegistry("", map[string]Driver{"cpu": cpuDriver})
	for _, c := range []struct {
		name string
		d    Driver
		want string
	}{
		{"", cpuDriver, "backend: Register with an empty driver name"},
		{"a:b", cpuDriver, `backend: Register with an invalid driver name "a:b": only letters and underscores fit in a device string`},
		{"gpu", cpuDriver, `backend: Register with the reserved driver name "gpu"`},
		{"metal", nil, "backend: Register driver metal is nil"},
		{"cpu", cpuDriver, "backend: Register called twice for driver cpu"},
	} {
		func() {
			defer func() {
				if p := recover(); p != c.want {
					t.Errorf("Register(%q): panic %v, want %q", c.name, p, c.want)
				}
			}()
			r.register(c.name, c.d)
		}()
	}
}

func TestListIsCachedAndCopied(t *testing.T) {
	vk := &fakeDriver{infos: []Info{{API: "wrong", Index: 7, Name: "A", Notes: []string{"note"}}, {Name: "B", Problem: "too old"}}}
	r := newRegistry("", map[string]Driver{"vulkan": vk, "cpu": cpuDriver, "opencl": &fakeDriver{err: errors.New("no platform")}})
	if got, want := r.drivers(), []string{"cpu", "opencl", "vulkan"}; !slices.Equal(got, want) {
		t.Errorf("drivers %v, want %v", got, want)
	}
	var names []string
	for _, i := range r.list() {
		names = append(names, i.String()+" "+i.Name+" "+i.Problem)
	}
	if want := []string{"cpu Some CPU ", "vulkan:0 A ", "vulkan:1 B too old"}; !slices.Equal(names, want) {
		t.Errorf("list %q, want %q", names, want)
	}
	r.list()[1].Notes[0] = "changed"
	r.list()[1].Name = "changed"
	if got := r.list()[1]; got.Name != "A" || got.Notes[0] != "note" {
		t.Errorf("the cache was changed through a result: %+v", got)
	}
	if n := vk.enumerations.Load(); n != 1 {
		t.Errorf("%d enumerations, want 1", n)
	}
	r.rescan()
	r.list()
	if n := vk.enumerations.Load(); n != 2 {
		t.Errorf("%d enumerations after Rescan, want 2", n)
	}
	// The names of opened devices stay valid.
	d, err := r.open("vulkan:0")
	if err != nil {
		t.Fatal(err)
	}
	r.rescan()
	r.list()
	if n := vk.enumerations.Load(); n != 2 {
		t.Errorf("Rescan enumerated a driver with an opened device")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestPanickingDriver(t *testing.T) {
	r := newRegistry("", map[string]Driver{"cpu": cpuDriver, "vulkan": diagnosingDriver{&fakeDriver{panicking: true}}})
	list := r.list()
	const want = "the driver panicked while it looked for devices: no such function: vkEnumerate"
	if len(list) != 2 || list[1].Problem != want || list[1].String() != "vulkan:0" {
		t.Errorf("list %+v, want a second entry with the problem %q", list, want)
	}
	if _, err := r.open("vulkan"); err == nil || err.Error() != "vulkan:0 cannot be opened: "+want || !errors.Is(err, ErrUnavailable) {
		t.Errorf("open: %v", err)
	}
	wantLines := []string{"vulkan: the driver panicked while it was asked for a diagnosis: again", "vulkan: " + want}
	if got := r.diagnose(); !slices.Equal(got, wantLines) {
		t.Errorf("diagnose %q, want %q", got, wantLines)
	}
}

func TestDiagnose(t *testing.T) {
	r := newRegistry("", map[string]Driver{
		"cpu":    cpuDriver,
		"opencl": &fakeDriver{err: errors.New("libOpenCL.so.1 was not found")},
		"vulkan": diagnosingDriver{&fakeDriver{err: errors.New("no ICD"), lines: []string{"loader: libvulkan.so.1", "vulkan: no ICD in /etc"}}},
	})
	want := []string{"opencl: libOpenCL.so.1 was not found", "vulkan: loader: libvulkan.so.1", "vulkan: no ICD in /etc"}
	if got := r.diagnose(); !slices.Equal(got, want) {
		t.Errorf("diagnose %q, want %q", got, want)
	}
}

func TestOpenErrors(t *testing.T) {
	hw := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8), gpu("Arc", IntegratedGPU, 4), {Name: "Old", Problem: "Vulkan 1.0 is too old"}},
		openErr: map[int]error{1: ErrOutOfMemory}}
	full := newRegistry("", map[string]Driver{"cpu": cpuDriver, "vulkan": hw, "opencl": &fakeDriver{err: errors.New("no ICD files in /etc/OpenCL/vendors")}})
	bare := newRegistry("", map[string]Driver{"cpu": cpuDriver})
	soft := newRegistry("", map[string]Driver{"cpu": cpuDriver, "opencl": &fakeDriver{},
		"vulkan": &fakeDriver{infos: []Info{gpu("llvmpipe", CPUDevice, 8), {Name: "Old", Type: DiscreteGPU, Problem: "too old"}}}})
	const all = `import _ "github.com/anygpu/anygpu/backend/all"`
	for _, c := range []struct {
		r    *registry
		name string
		is   error
		want string
	}{
		{full, "vulkan:01", ErrUnknownDevice, `Invalid device string: 'vulkan:01'; expected a form like "cpu", "gpu" or "vulkan:1"`},
		{full, "vulkan:3", ErrUnknownDevice, "unknown device vulkan:3: there is only vulkan:0 (RTX), vulkan:1 (Arc), vulkan:2 (Old)"},
		{full, "vulkan:1", ErrOutOfMemory, "vulkan:1 (Arc) cannot be opened: out of device memory"},
		{full, "vulkan:1", ErrUnavailable, "vulkan:1 (Arc) cannot be opened: out of device memory"},
		{full, "vulkan:2", ErrUnavailable, "vulkan:2 (Old) cannot be opened: Vulkan 1.0 is too old"},
		{full, "opencl", ErrUnknownDevice, "unknown device opencl: opencl has no devices: no ICD files in /etc/OpenCL/vendors; run `anygpu devices` to see what was looked for"},
		{full, "gpu:2", ErrUnknownDevice, "unknown device gpu:2: there is only gpu:0 (vulkan:0, RTX); vulkan:1 cannot be opened: out of device memory; " +
			"vulkan:2 cannot be opened: Vulkan 1.0 is too old; run `anygpu devices` to see what was looked for"},
		{full, "Vulkan:0", ErrUnknownDevice, `Expected one of cpu, opencl, vulkan device type at start of device string: Vulkan:0; device strings are in lower case: "vulkan"`},
		{full, "metal", ErrUnknownDevice, "Expected one of cpu, opencl, vulkan device type at start of device string: metal; " +
			"forgotten import of the driver's package? the drivers of this module come with " + all},
		{bare, "vulkan:1", ErrUnknownDevice, `Expected one of cpu device type at start of device string: vulkan:1; ` +
			`forgotten import? import _ "github.com/anygpu/anygpu/backend/vulkan" or ` + all},
		{bare, "null", ErrUnknownDevice, `Expected one of cpu device type at start of device string: null; forgotten import? import _ "github.com/anygpu/anygpu/backend/null"`},
		{bare, "cuda", ErrUnknownDevice, `Expected one of cpu device type at start of device string: cuda; such a GPU is reached as "gpu", "vulkan" or "opencl", with ` + all},
		{bare, "gpu", ErrUnknownDevice, "unknown device gpu: no GPU was found (registered drivers: cpu); more drivers come with " + all + "; run `anygpu devices` to see what was looked for"},
		{soft, "gpu", ErrUnknownDevice, "unknown device gpu: no GPU was found (registered drivers: cpu, opencl, vulkan); vulkan:1 cannot be opened: too old; run `anygpu devices` to see what was looked for"},
		{newRegistry("", nil), "vulkan", ErrUnknownDevice, `unknown device vulkan: no driver is registered; forgotten import? import _ "github.com/anygpu/anygpu/backend/vulkan" or ` + all},
	} {
		d, err := c.r.open(c.name)
		if d != nil || err == nil {
			t.Errorf("open(%q) = %v, %v", c.name, d, err)
			continue
		}
		if err.Error() != c.want || !errors.Is(err, c.is) {
			t.Errorf("open(%q):\n got %v\nwant %s (matching %v)", c.name, err, c.want, c.is)
		}
	}
}

func TestIsAvailable(t *testing.T) {
	r := newRegistry("", map[string]Driver{"cpu": cpuDriver,
		"vulkan": &fakeDriver{infos: []Info{{Problem: "broken"}, gpu("RTX", DiscreteGPU, 8)}},
		"opencl": &fakeDriver{panicking: true}, "metal": &fakeDriver{err: errors.New("none"), openErr: map[int]error{}}})
	old := std
	std = r
	defer func() { std = old }()
	for name, want := range map[string]bool{"cpu": true, "cpu:1": false, "vulkan:0": false, "vulkan:1": true, "vulkan": true, "gpu": true, "gpu:1": false,
		"opencl": false, "opencl:0": false, "metal": false, "": false, "x:y": false, "nothing": false, "vulkan:99999999999": false} {
		if got := IsAvailable(name); got != want {
			t.Errorf("IsAvailable(%q) = %v, want %v", name, got, want)
		}
	}
	// "vulkan" is the first that works.
	if i, err := Find("vulkan"); err != nil || i.Index != 1 {
		t.Errorf("Find(vulkan) = %v, %v, want vulkan:1", i, err)
	}
}

func TestFailedOpenShowsAsProblem(t *testing.T) {
	vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}, openErr: map[int]error{0: errors.New("busy")}}
	r := newRegistry("", map[string]Driver{"vulkan": vk})
	if _, err := r.open("vulkan"); err == nil || err.Error() != "vulkan:0 (RTX) cannot be opened: busy" {
		t.Errorf("open: %v", err)
	}
	if p := r.list()[0].Problem; p != "busy" {
		t.Errorf("problem %q, want busy", p)
	}
	// It is tried again, and then there is no problem.
	vk.openErr = nil
	d, err := r.open("vulkan:0")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if p := r.list()[0].Problem; p != "" {
		t.Errorf("problem %q after the device was opened", p)
	}
}

func TestDriverOpenPanicsOrReturnsNothing(t *testing.T) {
	for _, d := range []struct {
		driver Driver
		want   string
	}{
		{openFunc(func() (Device, error) { panic("boom") }), "odd:0 (odd) cannot be opened: the driver panicked: boom"},
		{openFunc(func() (Device, error) { return nil, nil }), "odd:0 (odd) cannot be opened: the driver returned no device"},
	} {
		r := newRegistry("", map[string]Driver{"odd": d.driver})
		if _, err := r.open("odd"); err == nil || err.Error() != d.want {
			t.Errorf("open: %v, want %s", err, d.want)
		}
	}
}

type openFunc func() (Device, error)

func (openFunc) Devices() ([]Info, error)   { return []Info{{Name: "odd"}}, nil }
func (f openFunc) Open(int) (Device, error) { return f() }

func TestErrorTexts(t *testing.T) {
	cause := errors.New("VK_ERROR")
	for _, c := range []struct {
		err  error
		is   error
		want string
	}{
		{&OutOfMemoryError{Device: "vulkan:0", Requested: 8, Allocated: 2, Reserved: 4, Total: 16, Summary: "table", Err: cause}, ErrOutOfMemory,
			"vulkan:0: out of memory: tried to allocate 8 bytes; 2 bytes are in use by tensors, 4 bytes are reserved, the device has 16 bytes (VK_ERROR)\ntable"},
		{&OutOfMemoryError{Device: "cpu"}, ErrOutOfMemory, "cpu: out of memory: tried to allocate 0 bytes; 0 bytes are in use by tensors, 0 bytes are reserved"},
		{&LimitError{Device: "vulkan:0", Limit: "maxStorageBufferRange", Requested: 8, Allowed: 4}, ErrLimit, "vulkan:0: maxStorageBufferRange is 4, but 8 was requested"},
		{&LostError{Device: "vulkan:0", During: "submit", Err: cause}, ErrDeviceLost,
			"vulkan:0: device lost during submit: VK_ERROR; close it and open it again, its contents are gone"},
		{&UnavailableError{Device: "vulkan:0"}, ErrUnavailable, "vulkan:0 cannot be opened"},
	} {
		wrapped := fmt.Errorf("op: %w", c.err)
		if c.err.Error() != c.want || !errors.Is(wrapped, c.is) || errors.Is(wrapped, ErrClosed) {
			t.Errorf("got %q, want %q matching %v", c.err, c.want, c.is)
		}
		if u := errors.Unwrap(c.err); u != nil && !reflect.DeepEqual(u, cause) {
			t.Errorf("%q unwraps to %v", c.err, u)
		}
	}
}

func TestFromIR(t *testing.T) {
	limit := &ir.LimitError{Kernel: "k", Limit: "global buffers", Wanted: 2, Allowed: 1}
	lacks := &ir.UnsupportedError{Kernel: "k", What: "double precision"}
	for _, err := range []error{limit, lacks} {
		got := FromIR(fmt.Errorf("vulkan:0: %w", err))
		if errors.Is(got, ErrLimit) != (err == error(limit)) || errors.Is(got, ErrUnsupported) != (err == error(lacks)) ||
			errors.Is(got, ir.ErrLimit) != (err == error(limit)) || got.Error() != "vulkan:0: "+err.Error() {
			t.Errorf("FromIR(%v) = %v", err, got)
		}
		if FromIR(got) != got {
			t.Error("FromIR wraps twice")
		}
	}
	if FromIR(nil) != nil || FromIR(errLost) != error(errLost) {
		t.Error("FromIR changes other errors")
	}
	vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}}
	d, err := newRegistry("", map[string]Driver{"vulkan": vk}).open("vulkan")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	vk.opened[0].compile = func(*ir.Kernel) (Program, error) { return nil, limit }
	if _, err := d.Compile(nil); !errors.Is(err, ErrLimit) {
		t.Errorf("Compile: %v does not match ErrLimit", err)
	}
}
