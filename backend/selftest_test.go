package backend

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// brokenDevice runs kernels on the host, and flips a bit in the results of those that take a broken path.
type brokenDevice struct {
	*fakeDevice
	broken   string // a feature
	compiled int
}

func (d *brokenDevice) Restrict(change func(*Info)) { change(&d.info) }

func (d *brokenDevice) Compile(k *ir.Kernel) (Program, error) {
	d.compiled++
	p, err := interp.Compile(k)
	return &hostProgram{d, p, k}, err
}

func (d *brokenDevice) Alloc(size int64) (Buffer, error) {
	return &hostBuffer{data: make([]byte, size)}, nil
}

func (d *brokenDevice) Submit(batch []Launch) (Fence, error) {
	for _, l := range batch {
		p := l.Program.(*hostProgram)
		var bufs [][]byte
		for _, r := range l.Buffers {
			bufs = append(bufs, r.Buffer.(*hostBuffer).data)
		}
		if err := p.p.Run(l.Groups, bufs, l.Params, interp.DefaultPool()); err != nil {
			return nil, err
		}
		if p.takes(d.broken) {
			bufs[1][9] ^= 1
		}
	}
	return doneFence{}, nil
}

type hostProgram struct {
	d *brokenDevice
	p *interp.Program
	k *ir.Kernel
}

func (p *hostProgram) Free() {}

// takes reports whether the kernel takes a path of the device.
func (p *hostProgram) takes(feature string) bool {
	c := p.d.info.Caps
	uses := func(kinds ...ir.Kind) bool {
		found := false
		p.k.Walk(func(i *ir.Instr) { found = found || slices.Contains(kinds, i.Type.Kind) })
		return found
	}
	switch feature {
	case "f16arith":
		return c.F16Arith && uses(ir.F16) && !strings.HasSuffix(p.k.Name, "_f16")
	case "f16":
		return c.F16Storage && strings.HasSuffix(p.k.Name, "_f16")
	case "u8":
		return c.U8Storage && uses(ir.U8)
	case "i64":
		return c.I64 && uses(ir.I64)
	case "f64":
		return c.F64 && uses(ir.F64)
	case "subgroup":
		return c.MaxSubgroups > 0 && p.k.Subgroup > 0
	}
	return false
}

type hostBuffer struct{ data []byte }

func (b *hostBuffer) Size() int64                           { return int64(len(b.data)) }
func (b *hostBuffer) Write(offset int64, data []byte) error { copy(b.data[offset:], data); return nil }
func (b *hostBuffer) Read(offset int64, data []byte) error  { copy(data, b.data[offset:]); return nil }
func (b *hostBuffer) Free()                                 {}

// brokenDriver opens one device.
type brokenDriver struct {
	fakeDriver
	broken string
	last   *brokenDevice
}

func (d *brokenDriver) Open(i int) (Device, error) {
	d.last = &brokenDevice{fakeDevice: &fakeDevice{info: d.infos[i]}, broken: d.broken}
	return d.last, nil
}

// TestSelfTest plants a fault in each optional path, and expects that Open switches off just that path, says so, and remembers it.
func TestSelfTest(t *testing.T) {
	for _, broken := range []string{"", "f16arith", "f16", "u8", "i64", "f64", "subgroup"} {
		t.Run("broken "+broken, func(t *testing.T) {
			t.Setenv("ANYGPU_CACHE_DIR", t.TempDir())
			info := gpu("card", DiscreteGPU, 8)
			info.DriverVersion = "1.0"
			info.Caps = ir.InterpCaps()
			info.Caps.SubgroupSize = 32
			d := &brokenDriver{fakeDriver: fakeDriver{infos: []Info{info}}, broken: broken}
			r := newRegistry("", map[string]Driver{"fake": d})
			open := func() Info {
				t.Helper()
				dev, err := r.open("fake:0")
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				return dev.Info()
			}
			want := info.Caps
			for _, f := range features {
				if f.name == broken {
					i := Info{Caps: want}
					f.off(&i)
					want = i.Caps
				}
			}
			got := open()
			if got.Caps != want {
				t.Errorf("capabilities %+v, want %+v", got.Caps, want)
			}
			if noted := strings.Contains(strings.Join(got.Notes, "\n"), broken+" was switched off: the driver fails the self-test of it (byte 9"); noted != (broken != "") {
				t.Errorf("notes %q", got.Notes)
			}
			if listed := r.list()[0]; listed.Caps != want || !slices.Equal(listed.Notes, got.Notes) {
				t.Errorf("the list shows %+v, %q", listed.Caps, listed.Notes)
			}
			first := d.last.compiled
			r = newRegistry("", map[string]Driver{"fake": d}) // another process
			if again := open(); again.Caps != want || d.last.compiled != 0 || first != len(pathTests(want)) {
				t.Errorf("the second time %d kernels, %+v; the first %d", d.last.compiled, again.Caps, first)
			}
			d.infos[0].DriverVersion, d.broken = "1.1", ""
			r = newRegistry("", map[string]Driver{"fake": d})
			if fixed := open(); fixed.Caps != info.Caps || d.last.compiled != first {
				t.Errorf("a new driver: %+v, %d kernels", fixed.Caps, d.last.compiled)
			}
		})
	}
}

// TestSelfTestCache: a damaged file is not believed.
func TestSelfTestCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ANYGPU_CACHE_DIR", dir)
	info := gpu("card", DiscreteGPU, 8)
	if _, known := knownFailures(info); known {
		t.Error("known before the first test")
	}
	rememberFailures(info, nil)
	if f, known := knownFailures(info); !known || len(f) != 0 {
		t.Errorf("%v, %t", f, known)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	for _, content := range []string{"", "{", "{}", "null"} {
		if err := os.WriteFile(files[0], []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, known := knownFailures(info); known {
			t.Errorf("%q is believed", content)
		}
	}
}
