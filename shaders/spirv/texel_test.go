package spirv

import (
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

// TestTexels: buffers that are only read have a texel buffer for each width of access, as many as the device allows; their storage
// variables are there only for accesses that go on by them.
func TestTexels(t *testing.T) {
	b := ir.NewBuilder("texels", 64, 1, 1)
	x, y, z := b.Buffer("x", ir.F32, ir.Read), b.Buffer("y", ir.I32, ir.ReadWrite), b.Buffer("z", ir.U8, ir.Read)
	half, out := b.Buffer("half", ir.F16, ir.Read), b.Buffer("out", ir.F32, ir.Write)
	i := b.Mul(b.LinearID(), b.U32(4))
	v := b.Add(b.Load(x, i, 4), b.Splat(b.Load(x, b.U32(3), 1), 4))
	v = b.Add(v, b.Convert(b.Load(y, i, 4), ir.F32))
	v = b.Add(v, b.Splat(b.Convert(b.Load(z, i, 1), ir.F32), 4))
	v = b.Add(v, b.Convert(b.Load(half, i, 4), ir.F32))
	b.Store(out, i, v)
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	all := []Texel{{0, ir.F32, 1}, {0, ir.F32, 4}, {2, ir.U8, 1}}
	for n := range 5 {
		if got := Texels(k, Options{Texels: n}); !slices.Equal(got, all[:min(n, 3)]) {
			t.Errorf("at most %d: got %v", n, got)
		}
	}
	low, err := ir.Lower(k, ir.Caps{MaxLanes: 4, F16Storage: true, U8Storage: true, NativeMath: ir.VulkanMath(), MaxInvocations: 64, MaxLocal: [3]int{64, 1, 1},
		MaxGroups: [3]int{1, 1, 1}, MaxBuffers: 8, MaxBufferBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	text := Text(mustEmit(t, low, Options{Texels: 2}))
	for s, want := range map[string]int{"OpImageFetch": 2, "OpTypeImage": 1, "Binding 5": 1, "Binding 6": 1, "Binding 7": 0, "Binding 0": 0, "Binding 1\n": 1,
		"Binding 2": 1, "OpCapability SampledBuffer": 1} {
		if got := strings.Count(text, s); got != want {
			t.Errorf("%q stands %d times in the module, want %d\n%s", s, got, want, text)
		}
	}
}
