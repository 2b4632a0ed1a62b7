package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/interp/kerneltest"
	"github.com/anygpu/anygpu/shaders/ir"
)

// randomSeeds is how many random kernels run on each device.
const randomSeeds = 14

// TestRandomKernels runs random kernels with exact results on every device that is there; they must give what the checking
// executor gives, bit for bit.
func TestRandomKernels(t *testing.T) {
	for _, info := range backend.List() {
		if info.Problem != "" || info.API == "null" {
			continue
		}
		t.Run(fmt.Sprintf("%s %s", info, info.Name), func(t *testing.T) {
			d, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			for seed := range uint64(randomSeeds) {
				c, err := kerneltest.New(seed, randomConfig(seed, info.Caps))
				if err != nil {
					t.Fatal(err)
				}
				if c.Kernel.Invocations() > info.Caps.MaxInvocations {
					continue
				}
				want := c.Data()
				if err := interp.Check(c.Kernel, c.Groups, want, c.Params, interp.CheckOptions{Uninit: c.Written}); err != nil {
					t.Fatal(err)
				}
				got, err := runCase(t, d, c)
				if err == nil {
					err = c.Compare(want, got)
				}
				if err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, c.Kernel)
				}
			}
		})
	}
}

// randomConfig takes few kinds at a time, because devices bound the number of buffers.
func randomConfig(seed uint64, caps ir.Caps) kerneltest.Config {
	r := rand.New(rand.NewPCG(seed, 1))
	more := []ir.Kind{ir.U8, ir.U16, ir.I32, ir.I64, ir.F16, ir.BF16}
	if caps.F64 {
		more = append(more, ir.F64)
	}
	r.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	return kerneltest.Config{Exact: true, Control: seed%2 == 0, Shared: seed%3 == 0, Steps: 16,
		Kinds: append([]ir.Kind{ir.Bool, ir.U32, ir.F32}, more[:2]...)}
}

func runCase(t *testing.T, d backend.Device, c *kerneltest.Case) ([][]byte, error) {
	p, err := d.Compile(c.Kernel)
	if err != nil {
		return nil, err
	}
	defer p.Free()
	data := c.Data()
	var regions []backend.Region
	for _, bytes := range data {
		b, err := d.Alloc(int64(len(bytes)))
		if err != nil {
			return nil, err
		}
		defer b.Free()
		if err := b.Write(0, bytes); err != nil {
			return nil, err
		}
		regions = append(regions, backend.Region{Buffer: b, Size: b.Size()})
	}
	f, err := d.Submit([]backend.Launch{{Program: p, Groups: c.Groups, Buffers: regions, Params: c.Params}})
	if err != nil {
		return nil, err
	}
	if err := f.Wait(t.Context()); err != nil {
		return nil, err
	}
	for _, i := range c.Written {
		if err := regions[i].Buffer.Read(0, data[i]); err != nil {
			return nil, err
		}
	}
	return data, nil
}
