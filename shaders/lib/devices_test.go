package lib_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/shaders/lib"
)

// real runs cases on a device of this machine.
type real struct {
	backend.Device
	programs map[string]backend.Program
	asGPU    bool // build the kernels that a GPU is given
}

func (d real) target() lib.Target {
	t := d.Info().Target()
	t.GPU = t.GPU || d.asGPU
	return t
}

func (d real) run(steps []step, data [][]byte, _ []int, _ map[int]bool) error {
	steps, data, _ = staged(d.target(), steps, data, nil, nil)
	bufs := make([]backend.Buffer, len(data))
	for i, bytes := range data {
		var err error
		if bufs[i], err = d.Alloc(int64(len(bytes))); err != nil {
			return err
		}
		defer bufs[i].Free()
		if err := bufs[i].Write(0, bytes); err != nil {
			return err
		}
	}
	var batch []backend.Launch
	for _, s := range steps {
		p := d.programs[s.gen.Key()]
		if p == nil {
			k, err := s.gen.Build(d.target())
			if err != nil {
				return err
			}
			if p, err = d.Compile(k); err != nil {
				return err
			}
			d.programs[s.gen.Key()] = p
		}
		groups, params, err := s.gen.Launch(d.target())
		if err != nil {
			return err
		}
		l := backend.Launch{Program: p, Groups: groups, Params: params, Cost: s.gen.Cost()}
		for _, i := range s.bufs {
			l.Buffers = append(l.Buffers, backend.Region{Buffer: bufs[i], Size: int64(len(data[i]))})
		}
		batch = append(batch, l)
	}
	fence, err := d.Submit(batch)
	if err != nil {
		return err
	}
	if err := fence.Wait(context.Background()); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	for i, b := range bufs {
		if err := b.Read(0, data[i]); err != nil {
			return err
		}
	}
	return nil
}

// prime is a stride through the cases that is coprime to their number.
const prime = 10007

// programLimit bounds the programs that a device compiles in the test, because some compilers take half a second for
// each. Cases are taken from all over the list, always the same ones. With ANYGPU_TEST_ALL=1 there is no limit.
func programLimit(api string) int {
	switch {
	case os.Getenv("ANYGPU_TEST_ALL") != "":
		return 1 << 30
	case api == "opencl":
		return 20
	}
	return 80
}

// TestDevices runs cases on every device of the machine, with the kernels that it is given, and on devices that are no GPU also with
// those for GPUs. ANYGPU_TEST_DEVICE chooses one device.
func TestDevices(t *testing.T) {
	for _, info := range backend.List() {
		name := info.String()
		if only := os.Getenv("ANYGPU_TEST_DEVICE"); only != "" && only != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if info.Problem != "" {
				t.Skipf("%s (%s): %s", name, info.Name, info.Problem)
			}
			dev, err := backend.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			for _, asGPU := range []bool{false, true} {
				if asGPU && info.Target().GPU {
					continue
				}
				d := real{Device: dev, programs: map[string]backend.Program{}, asGPU: asGPU}
				runCases(t, d, programLimit(info.API))
				for _, p := range d.programs {
					p.Free()
				}
			}
		})
	}
}

// runCases runs what it can of the cases with at most limit programs.
func runCases(t *testing.T, d real, limit int) {
	t.Helper()
	all, ran := allCases(), 0
	for i := range all {
		c := all[i*prime%len(all)]
		known := true
		steps, _, _ := staged(d.target(), c.steps(d.target()), nil, nil, nil)
		for _, s := range steps {
			known = known && d.programs[s.gen.Key()] != nil
		}
		if supports(d.target(), c) && (known || len(d.programs) < limit) {
			runCase(t, d, c)
			ran++
		}
	}
	t.Logf("%s, kernels for a GPU %v: %d of %d cases, %d programs", d.Info().Name, d.target().GPU, ran, len(all), len(d.programs))
}
