package lib_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// The tests of this package are cases: launches on some buffers, and what the buffers must hold afterwards, by an
// independent reference in float64. The same cases run on the checking executor, lowered to several devices' capabilities
// (TestChecked), and on every device of the machine (TestDevices).

// array is a buffer of a case.
type array struct {
	kind ir.Kind
	data []float64 // initial contents; for outputs only the length counts
	want []float64 // expected contents; nil if it is an input or a temporary
	// tolerances of want: |got-want| <= abs + rel*|want|
	rel, abs float64
}

// step is a launch.
type step struct {
	gen  lib.Generator
	bufs []int // indices into the case's arrays
}

// kcase is a case.
type kcase struct {
	name   string
	bufs   []array
	steps  func(t lib.Target) []step
	math64 bool // needs functions such as exp in double precision
}

func one(gen lib.Generator, n int) func(lib.Target) []step {
	bufs := make([]int, n)
	for i := range bufs {
		bufs[i] = i
	}
	return func(lib.Target) []step { return []step{{gen, bufs}} }
}

// device is something that runs the launches of a case.
type device interface {
	target() lib.Target
	// run performs the launches in order. data are the buffers, read and written; uninit are those that nothing has
	// written.
	run(steps []step, data [][]byte, elems []int, uninit map[int]bool) error
}

const sentinels = 16 // elements after each buffer that must stay as they are

// runCase runs c on d and compares.
func runCase(t *testing.T, d device, c kcase) {
	t.Helper()
	data := make([][]byte, len(c.bufs))
	elems := make([]int, len(c.bufs))
	uninit := map[int]bool{}
	for i, a := range c.bufs {
		n := len(a.data)
		elems[i] = n
		all := append(append([]float64{}, a.data...), make([]float64, sentinels)...)
		for j := n; j < len(all); j++ {
			all[j] = 77
		}
		data[i] = encode(a.kind, all)
		uninit[i] = a.data != nil && a.want != nil && allZero(a.data)
	}
	if err := d.run(c.steps(d.target()), data, elems, uninit); err != nil {
		t.Errorf("%s: %v", c.name, err)
		return
	}
	for i, a := range c.bufs {
		got := decode(a.kind, data[i])
		for j := elems[i]; j < elems[i]+sentinels; j++ {
			if got[j] != 77 {
				t.Errorf("%s: buffer %d: element %d beyond its end was overwritten with %v", c.name, i, j, got[j])
				break
			}
		}
		bad := 0
		for j, w := range a.want {
			g := got[j]
			if same(g, w) || math.Abs(g-w) <= a.abs+a.rel*math.Abs(w) {
				continue
			}
			if bad++; bad <= 3 {
				t.Errorf("%s: buffer %d (%s): element %d is %v, want %v", c.name, i, a.kind, j, g, w)
			}
		}
		if bad > 3 {
			t.Errorf("%s: buffer %d: %d of %d elements are wrong", c.name, i, bad, len(a.want))
		}
	}
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func allZero(x []float64) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// encode writes values as kind, padded to 4 bytes.
func encode(k ir.Kind, vals []float64) []byte {
	out := make([]byte, (len(vals)*k.Size()+3)/4*4)
	for i, v := range vals {
		bits := ir.ConstBits(k, v)
		p := out[i*k.Size():]
		switch k.Size() {
		case 1:
			p[0] = byte(bits)
		case 2:
			binary.NativeEndian.PutUint16(p, uint16(bits))
		case 4:
			binary.NativeEndian.PutUint32(p, uint32(bits))
		case 8:
			binary.NativeEndian.PutUint64(p, bits)
		}
	}
	return out
}

func decode(k ir.Kind, data []byte) []float64 {
	out := make([]float64, len(data)/k.Size())
	for i := range out {
		p := data[i*k.Size():]
		var bits uint64
		switch k.Size() {
		case 1:
			bits = uint64(p[0])
		case 2:
			bits = uint64(binary.NativeEndian.Uint16(p))
		case 4:
			bits = uint64(binary.NativeEndian.Uint32(p))
		case 8:
			bits = binary.NativeEndian.Uint64(p)
		}
		out[i] = ir.ConstFloat(k, bits)
	}
	return out
}

// round returns v as it is kept in memory of kind k.
func round(k ir.Kind, v float64) float64 { return ir.ConstFloat(k, ir.ConstBits(k, v)) }

// staged replaces the steps by the kernels that they are on a target, with scratch memory appended to the buffers; without
// elements given, its length is in bytes.
func staged(t lib.Target, steps []step, data [][]byte, elems []int, uninit map[int]bool) ([]step, [][]byte, []int) {
	var out []step
	for _, s := range steps {
		stages, scratch := lib.Stages(s.gen, t, len(s.bufs))
		first := len(data)
		for _, n := range scratch {
			if uninit != nil {
				uninit[len(data)] = true
			}
			data, elems = append(data, make([]byte, n)), append(elems, 0)
		}
		for _, g := range stages {
			bufs := make([]int, len(g.Buffers))
			for i, j := range g.Buffers {
				if j < 0 {
					bufs[i] = first + ^j
				} else {
					bufs[i] = s.bufs[j]
				}
			}
			out = append(out, step{g.Gen, bufs})
		}
	}
	return out, data, elems
}

// checked runs cases on the checking executor, lowered to a target's capabilities.
type checked struct {
	name string
	t    lib.Target
}

func (c checked) target() lib.Target { return c.t }

func (c checked) run(steps []step, data [][]byte, elems []int, uninit map[int]bool) error {
	steps, data, elems = staged(c.t, steps, data, elems, uninit)
	for _, s := range steps {
		k, err := s.gen.Build(c.t)
		if err != nil {
			return err
		}
		if n := k.Invocations(); n > 256 && c.t.API != "cpu" || c.t.Caps.MaxInvocations > 0 && n > c.t.Caps.MaxInvocations {
			return fmt.Errorf("workgroup of %d invocations", n)
		}
		groups, params, err := s.gen.Launch(c.t)
		if err != nil {
			return err
		}
		low, err := ir.Lower(k, c.t.Caps)
		if err != nil {
			return err
		}
		opt := interp.CheckOptions{Elems: make([]int, len(s.bufs))}
		buffers := make([][]byte, len(s.bufs))
		for i, j := range s.bufs {
			buffers[i] = data[j]
			if low.Globals()[i].Kind == k.Globals()[i].Kind {
				opt.Elems[i] = elems[j]
				// An empty buffer cannot be declared so: Elems 0 is unknown. The sentinels catch stores to it.
			}
			// Packed words are read before they are written, by atomics.
			if uninit[j] && k.Globals()[i].Access == ir.ReadWrite && low.Globals()[i].Kind == k.Globals()[i].Kind {
				opt.Uninit = append(opt.Uninit, i)
			}
			delete(uninit, j)
		}
		if err := interp.Check(low, groups, buffers, params, opt); err != nil {
			return err
		}
	}
	return nil
}

// targets are the devices whose shapes of kernels the tests build: the CPU device, software devices, and GPUs.
func targets() []checked {
	math32 := ir.AllMath().Without(ir.OpErf, ir.OpTanh, ir.OpAtan, ir.OpAtan2, ir.OpPow, ir.OpExpm1, ir.OpLog1p, ir.OpLog10)
	vulkan := ir.Caps{F16Arith: true, F16Storage: true, U8Storage: true, I64: true, F64: true, MaxLanes: 4, NativeMath: math32, NativeMath64: ir.VulkanMath(),
		MaxInvocations: 1024, MaxLocal: [3]int{1024, 1024, 1024}, MaxGroups: [3]int{65535, 65535, 65535}, SharedBytes: 32 << 10,
		MaxBuffers: 32, MaxBufferBytes: 128 << 20, SubgroupSize: 8}
	vulkan.MaxLoopTrips = 65535
	plain := vulkan
	plain.MaxLoopTrips = 0
	plain.F16Arith, plain.F16Storage, plain.U8Storage, plain.I64, plain.F64 = false, false, false, false, false
	plain.MaxInvocations, plain.MaxLocal, plain.MaxBufferBytes = 256, [3]int{256, 256, 64}, 1<<30
	ocl := vulkan
	ocl.MaxLoopTrips = 0
	ocl.MaxLanes, ocl.F16Arith, ocl.NativeMath, ocl.NativeMath64 = 16, false, ir.AllMath(), ir.AllMath()
	ocl.MaxBufferBytes, ocl.MaxInvocations, ocl.MaxLocal = 1<<32, 4096, [3]int{4096, 4096, 4096}
	small := plain
	small.MaxInvocations, small.MaxLocal, small.MaxGroups = 64, [3]int{64, 64, 64}, [3]int{3, 65535, 1}
	unbounded := vulkan
	unbounded.MaxLoopTrips = 0
	subgroups := func(size int) ir.Caps {
		c := unbounded
		c.SubgroupSize, c.MaxSubgroups = size, 1024/size
		return c
	}
	return []checked{
		{"cpu", lib.Target{API: "cpu", Caps: ir.InterpCaps()}},
		{"lavapipe", lib.Target{API: "vulkan", Caps: vulkan}},
		{"swiftshader", lib.Target{API: "vulkan", Caps: plain}},
		{"pocl", lib.Target{API: "opencl", Caps: ocl}},
		{"vulkan-gpu", lib.Target{API: "vulkan", GPU: true, Caps: unbounded}},
		{"opencl-gpu", lib.Target{API: "opencl", GPU: true, Caps: ocl}},
		{"gpu-subgroups-4", lib.Target{API: "vulkan", GPU: true, Caps: subgroups(4)}},
		{"gpu-subgroups-32", lib.Target{API: "vulkan", GPU: true, Caps: subgroups(32)}},
		{"gpu-subgroups-64", lib.Target{API: "vulkan", GPU: true, Caps: subgroups(64)}},
		{"small-gpu", lib.Target{API: "vulkan", GPU: true, Caps: small}},
	}
}

// supports reports whether a target can run a case: double precision is the only thing that is not made up for, and
// Vulkan has no functions of it.
func supports(t lib.Target, c kcase) bool {
	for _, a := range c.bufs {
		if a.kind == ir.F64 && (!t.Caps.F64 || t.API == "vulkan" && c.math64) {
			return false
		}
	}
	return true
}

func TestChecked(t *testing.T) {
	cases := allCases()
	for _, d := range targets() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases {
				if supports(d.t, c) {
					runCase(t, d, c)
				}
			}
		})
	}
}

// allCases makes the cases once; nothing changes them.
var allCases = sync.OnceValue(func() []kcase {
	var all []kcase
	for _, f := range []func() []kcase{elementwiseCases, reduceCases, reductionsCases, softmaxCases, randomCases, multiCases, matMulCases, windowCases, convCases} {
		all = append(all, f()...)
	}
	return all
})

// noise returns n reproducible values in [-1, 1), different for each seed, of kind k.
func noise(k ir.Kind, n int, seed uint64) []float64 {
	out := make([]float64, n)
	for i := range out {
		w := lib.Philox(seed, uint64(i/4))[i%4]
		switch {
		case k.IsFloat():
			out[i] = round(k, float64(int32(w))/(1<<31))
		case k == ir.U8:
			out[i] = float64(w % 200)
		case k == ir.U32:
			out[i] = float64(w % 1000)
		default:
			out[i] = float64(w%2001) - 1000
		}
	}
	return out
}
