//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/spirv"
)

func TestChooseMemory(t *testing.T) {
	const gib = 1 << 30
	const all = deviceLocal | hostVisible | hostCoherent | hostCached
	const window = hostVisible | hostCoherent
	for _, c := range []struct {
		name                      string
		m                         memoryMap
		discrete                  bool
		buffers, upload, readback []int
		problem                   bool
	}{
		{
			name:    "software device",
			m:       memoryMap{heaps: []memoryHeap{{2 * gib, true}}, types: []memoryType{{all, 0}}},
			buffers: []int{0}, upload: []int{0}, readback: []int{0},
		},
		{
			name: "discrete GPU with a window of 256 MiB",
			m: memoryMap{
				heaps: []memoryHeap{{8 * gib, true}, {16 * gib, false}, {gib / 4, true}},
				types: []memoryType{{0, 1}, {deviceLocal, 0}, {window, 1}, {window | hostCached, 1}, {deviceLocal | window, 2}},
			},
			discrete: true,
			buffers:  []int{1}, upload: []int{2, 3, 4}, readback: []int{3, 2, 4},
		},
		{
			name: "discrete GPU with resizable BAR",
			m: memoryMap{
				heaps: []memoryHeap{{16 * gib, false}, {24 * gib, true}},
				types: []memoryType{{deviceLocal, 1}, {deviceLocal | window, 1}, {window, 0}, {window | hostCached, 0}},
			},
			discrete: true,
			buffers:  []int{1, 0}, upload: []int{2, 3, 1}, readback: []int{3, 2, 1},
		},
		{
			name: "AMD's device-coherent and protected types are left out",
			m: memoryMap{
				heaps: []memoryHeap{{8 * gib, true}, {16 * gib, false}},
				types: []memoryType{{deviceLocal | 0x40, 0}, {deviceLocal | 0x20, 0}, {deviceLocal, 0}, {window | 0x40, 1}, {window, 1}},
			},
			discrete: true,
			buffers:  []int{2}, upload: []int{4}, readback: []int{4},
		},
		{
			name: "APU with a small heap of its own",
			m: memoryMap{
				heaps: []memoryHeap{{gib / 2, true}, {16 * gib, false}},
				types: []memoryType{{deviceLocal, 0}, {window, 1}, {window | hostCached, 1}},
			},
			buffers: []int{0, 1, 2}, upload: []int{1, 2}, readback: []int{2, 1},
		},
		{name: "nothing for the host", m: memoryMap{heaps: []memoryHeap{{gib, true}}, types: []memoryType{{deviceLocal, 0}}}, problem: true},
		{name: "no memory", problem: true},
		{name: "a heap that is not there", m: memoryMap{types: []memoryType{{all, 3}}}, problem: true},
	} {
		got, err := chooseMemory(c.m, c.discrete)
		if (err != nil) != c.problem {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && (!slices.Equal(got.buffers, c.buffers) || !slices.Equal(got.upload, c.upload) || !slices.Equal(got.readback, c.readback)) {
			t.Errorf("%s: got %v, %v, %v, want %v, %v, %v", c.name, got.buffers, got.upload, got.readback, c.buffers, c.upload, c.readback)
		}
	}
}

func TestArrange(t *testing.T) {
	gpu := func(driver string, uuid byte, change func(*candidate)) candidate {
		c := candidate{info: backend.Info{API: "vulkan", Name: driver, Driver: driver, DriverVersion: "1", Type: backend.DiscreteGPU, Caps: ir.Caps{F16Arith: true}}}
		c.info.UUID[3] = uuid
		if change != nil {
			change(&c)
		}
		return c
	}
	kind := func(k backend.DeviceType) func(*candidate) { return func(c *candidate) { c.info.Type = k } }
	for _, c := range []struct {
		name  string
		list  []candidate
		want  []string
		notes string // part of the first device's
	}{
		{"order", []candidate{gpu("cpu1", 1, kind(backend.CPUDevice)), gpu("igpu", 2, kind(backend.IntegratedGPU)), gpu("cpu2", 1, kind(backend.CPUDevice)), gpu("dgpu", 3, nil)},
			[]string{"dgpu", "igpu", "cpu1", "cpu2"}, ""},
		{"two drivers, the first is as good", []candidate{gpu("radv", 1, nil), gpu("amdvlk", 1, nil)}, []string{"radv"}, "the driver amdvlk 1 offers this GPU, too"},
		{"two drivers, the second can do more", []candidate{gpu("old", 1, nil), gpu("new", 1, func(c *candidate) { c.info.Caps.I64 = true })}, []string{"new"}, "the driver old 1 offers"},
		{"a layer", []candidate{gpu("dozen", 1, func(c *candidate) { c.layered, c.info.Caps.I64 = true, true }), gpu("native", 1, nil)}, []string{"native"}, "dozen"},
		{"a broken driver", []candidate{gpu("broken", 1, func(c *candidate) { c.info.Problem = "x" }), gpu("layer", 1, func(c *candidate) { c.layered = true })}, []string{"layer"}, "broken"},
		{"two GPUs of one driver with one UUID", []candidate{gpu("d", 1, nil), gpu("d", 1, nil)}, []string{"d", "d"}, ""},
		{"no UUID", []candidate{gpu("a", 0, nil), gpu("b", 0, nil)}, []string{"a", "b"}, ""},
	} {
		var got []string
		out := arrange(c.list)
		for i, o := range out {
			got = append(got, o.info.Name)
			if o.info.Index != i {
				t.Errorf("%s: device %d has index %d", c.name, i, o.info.Index)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if notes := strings.Join(out[0].info.Notes, "\n"); !strings.Contains(notes, c.notes) || c.notes == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.notes)
		}
	}
}

func TestIndependentFloatControls(t *testing.T) {
	const w16, w32, w64 = spirv.Width16, spirv.Width32, spirv.Width64
	for _, c := range []struct {
		w, used      spirv.Widths
		independence int
		want         spirv.Widths
	}{
		{w32, w16 | w32 | w64, 1, w32},             // all independent
		{w32, w16 | w32 | w64, 2, 0},               // one mode for all
		{w32, w32, 2, w32},                         // of all that there is
		{w16 | w32 | w64, w16 | w32 | w64, 2, 7},   // the same mode
		{w16 | w32, w16 | w32 | w64, 0, w32},       // 16 and 64 go together
		{w16 | w32, w16 | w32, 0, w16 | w32},       // and there is no 64
		{w16 | w64, w16 | w32 | w64, 0, w16 | w64}, // both
	} {
		if got := independent(c.w, c.used, c.independence); got != c.want {
			t.Errorf("independent(%b, %b, %d) = %b, want %b", c.w, c.used, c.independence, got, c.want)
		}
	}
}

func TestUploadRing(t *testing.T) {
	const size = 1024
	var r uploadRing
	want := func(n uint64, at int64, ok bool) {
		t.Helper()
		if got, good := r.take(n, size); got != at || good != ok {
			t.Fatalf("take(%d) = %d, %v; want %d, %v", n, got, good, at, ok)
		}
	}
	want(100, 0, true)
	want(500, 128, true)
	mark := r.head
	want(500, 0, false) // no room before the end, and none at the start
	want(300, 640, true)
	r.tail = mark
	want(640, 0, false) // one byte range is still in use
	want(600, 0, true)  // skips the end
	want(1, 0, false)
	r.tail = r.head
	want(size/2, 0, true) // half of the ring always fits when nothing is under way
}

func TestConflict(t *testing.T) {
	a, b := &buffer{}, &buffer{}
	for _, c := range []struct {
		name string
		then []touch
		want bool
	}{
		{"another buffer", []touch{{b, 0, 64, true}}, false},
		{"read after read", []touch{{a, 0, 64, false}}, false},
		{"write after read", []touch{{a, 60, 64, true}}, true},
		{"read after write", []touch{{a, 100, 104, false}}, true},
		{"write after write", []touch{{a, 0, 1000, true}}, true},
		{"between", []touch{{a, 64, 100, true}}, false},
		{"second of two", []touch{{b, 0, 64, true}, {a, 199, 203, false}}, true},
		{"itself", []touch{{b, 0, 64, true}, {b, 0, 64, false}}, false},
	} {
		var w workQueue
		if w.conflict(touch{a, 0, 64, false}, touch{a, 100, 200, true}) {
			t.Fatal("the first command has nothing to wait for")
		}
		if got := w.conflict(c.then...); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
		if c.want && len(w.touched) != len(c.then) {
			t.Errorf("%s: a barrier does not forget what was before", c.name)
		}
	}
}

func TestCacheFile(t *testing.T) {
	uuid := []byte("0123456789abcdef")
	head := cacheHead(0x10de, 0x1234, uuid)
	if len(head) != cacheHeader {
		t.Fatalf("the header has %d bytes", len(head))
	}
	data := append(slices.Clone(head), "compiled pipelines"...)
	path := filepath.Join(t.TempDir(), "sub", "cache.bin")
	if got := loadCache(path, head); got != nil {
		t.Error("a file that is not there has data")
	}
	for range 2 { // also over an old file
		if err := storeCache(path, data); err != nil {
			t.Fatal(err)
		}
		if got := loadCache(path, head); !bytes.Equal(got, data) {
			t.Fatalf("got %q", got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
	if got := loadCache(path, cacheHead(0x10de, 0x1235, uuid)); got != nil {
		t.Error("another device's data was taken")
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good { // any damage to a byte, any truncation
		bad := slices.Clone(good)
		bad[i] ^= 0x20
		for _, file := range [][]byte{bad, good[:i]} {
			if err := os.WriteFile(path, file, 0o644); err != nil {
				t.Fatal(err)
			}
			if got := loadCache(path, head); got != nil {
				t.Fatalf("damage at byte %d was not noticed", i)
			}
		}
	}
	if err := storeCache(filepath.Join(path, "below a file"), data); err == nil {
		t.Error("storing below a file gave no error")
	}
}

// A device opens whatever the cache folder holds, and uses a good file.
func TestCacheOnDevice(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ANYGPU_CACHE_DIR", dir)
	eachDevice(t, func(t *testing.T, d *device) {
		if filepath.Dir(d.cache.path) != dir {
			t.Fatalf("the cache file is %s", d.cache.path)
		}
		// The file is recognised by what this driver's data begins with.
		if data := d.cache.data(d); !bytes.HasPrefix(data, d.cache.head) {
			t.Errorf("the driver's data begins with %x, expected %x", data[:min(len(data), cacheHeader)], d.cache.head)
		}
		// Data with the right header that the driver must reject by itself or take.
		if err := storeCache(d.cache.path, append(slices.Clone(d.cache.head), make([]byte, 100)...)); err != nil {
			t.Fatal(err)
		}
		again, err := theDriver.Open(d.info.Index)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		const n = 64
		e := again.(*device)
		b := alloc(t, e, 4*n)
		write(t, b, iota(n))
		submit(t, e, launch(compile(t, e, affine(t)), n, []uint32{n, 2, 1}, b))
		if got := read(t, b); got[5] != 11 {
			t.Errorf("got %v", got[:8])
		}
	})
}

func TestPortableInstance(t *testing.T) {
	inst, err := getInstance()
	if err != nil {
		t.Skip(err)
	}
	i := &instance{gipa: inst.gipa}
	if r := i.createPortable(apiVersion1_1); r < 0 {
		t.Skip("the loader has no portability enumeration: ", resultName(r))
	}
	if h, err := i.physicalDevices(); err != nil || len(h) == 0 {
		t.Errorf("%d devices, %v", len(h), err)
	}
}
