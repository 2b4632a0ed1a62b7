package spirv_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/vulkan"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/interp/kerneltest"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/spirv"
)

// randomCase makes a random kernel over a few kinds; F64 and exchanges in subgroups are left out where the device lacks them.
func randomCase(t *testing.T, seed uint64, caps ir.Caps) *kerneltest.Case {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	more := []ir.Kind{ir.U8, ir.U16, ir.I32, ir.I64, ir.F16, ir.BF16}
	if caps.F64 {
		more = append(more, ir.F64)
	}
	rng.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	c, err := kerneltest.New(seed, kerneltest.Config{Exact: true, Control: seed%2 == 0, Shared: seed%3 == 0, Steps: 16, Subgroup: caps.Subgroup(64),
		Kinds: append([]ir.Kind{ir.Bool, ir.U32, ir.F32}, more[:2]...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRandomValid has spirv-val check random kernels, lowered for a device with everything and for one with nothing.
func TestRandomValid(t *testing.T) {
	val, err := exec.LookPath("spirv-val")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("spirv-val is not installed (Debian package spirv-tools), and CI is set")
		}
		t.Skip("spirv-val is not installed (Debian package spirv-tools)")
	}
	rich := ir.InterpCaps()
	rich.MaxLanes, rich.NativeMath, rich.NativeMath64, rich.SubgroupSize = 4, ir.VulkanMath(), ir.VulkanMath(), 32
	plain := rich
	plain.F16Arith, plain.F16Storage, plain.U8Storage, plain.I64, plain.F64, plain.MaxSubgroups = false, false, false, false, false, 0
	storage := plain
	storage.F16Storage, storage.U8Storage = true, true
	for name, caps := range map[string]ir.Caps{"rich": rich, "plain": plain, "16-bit storage": storage} {
		for seed := range uint64(40) {
			c := randomCase(t, seed, caps)
			low, err := ir.Lower(c.Kernel, caps)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			words, err := spirv.Emit(low, spirv.Options{RoundingModeRTE: spirv.Width32})
			if err != nil {
				t.Errorf("%s, seed %d: %v", name, seed, err)
				continue
			}
			var code []byte
			for _, w := range words {
				code = binary.LittleEndian.AppendUint32(code, w)
			}
			file := filepath.Join(t.TempDir(), "k.spv")
			if err := os.WriteFile(file, code, 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(val, "--target-env", "vulkan1.1", file).CombinedOutput(); err != nil {
				t.Errorf("%s, seed %d: %v\n%s\n%s", name, seed, err, out, low)
			}
		}
	}
}

// TestRandomDevices compares random kernels on every Vulkan device with the checking executor, bit by bit.
func TestRandomDevices(t *testing.T) {
	ran := 0
	defer func() {
		switch {
		case ran == 0 && os.Getenv("CI") != "":
			t.Errorf("no Vulkan device, and CI is set: %v", backend.Diagnose())
		case ran == 0:
			t.Skipf("no Vulkan device: %v", backend.Diagnose())
		}
	}()
	for _, info := range backend.List() {
		if info.API != "vulkan" || info.Problem != "" {
			continue
		}
		ran++
		t.Run(info.Driver, func(t *testing.T) {
			d, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			exchanges := 0
			defer func() {
				if exchanges == 0 && info.Caps.Subgroup(64) > 0 {
					t.Error("no kernel exchanged values within subgroups")
				}
			}()
			for seed := range uint64(40) {
				c := randomCase(t, seed, info.Caps)
				exchanges += c.Kernel.Subgroup
				if c.Kernel.Invocations() > info.Caps.MaxInvocations {
					continue
				}
				want, got := c.Data(), c.Data()
				if err := interp.Check(c.Kernel, c.Groups, want, c.Params, interp.CheckOptions{Uninit: c.Written}); err != nil {
					t.Fatal(err)
				}
				if err := runOn(d, c, got); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if err := c.Compare(want, got); err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, c.Kernel)
				}
			}
		})
	}
}

// runOn runs a case on a device, in place.
func runOn(d backend.Device, c *kerneltest.Case, data [][]byte) error {
	p, err := d.Compile(c.Kernel)
	if err != nil {
		return err
	}
	defer p.Free()
	var regions []backend.Region
	for _, bytes := range data {
		b, err := d.Alloc(int64(len(bytes)))
		if err != nil {
			return err
		}
		defer b.Free()
		if err := b.Write(0, bytes); err != nil {
			return err
		}
		regions = append(regions, backend.Region{Buffer: b, Size: b.Size()})
	}
	fence, err := d.Submit([]backend.Launch{{Program: p, Groups: c.Groups, Buffers: regions, Params: c.Params}})
	if err != nil {
		return err
	}
	if err := fence.Wait(context.Background()); err != nil {
		return err
	}
	for i := range data {
		if err := regions[i].Buffer.Read(0, data[i]); err != nil {
			return err
		}
	}
	return nil
}
