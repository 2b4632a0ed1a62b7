package interp_test

import (
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/interp/kerneltest"
	"github.com/anygpu/anygpu/shaders/ir"
)

// configs are the kinds of random kernels on which both executors must agree bit for bit.
var configs = map[string]kerneltest.Config{
	"arithmetic": {},
	"math":       {Math: true, Kinds: []ir.Kind{ir.Bool, ir.F16, ir.F32, ir.F64, ir.I32}},
	"control":    {Control: true, Math: true, Steps: 30},
	"shared":     {Control: true, Shared: true},
	"exact":      {Control: true, Shared: true, Exact: true},
	"subgroups":  {Subgroup: 4, Lanes: []int{4}, Kinds: []ir.Kind{ir.Bool, ir.U32, ir.I32, ir.F32}, Control: true},
	"narrow":     {Lanes: []int{4}, Kinds: []ir.Kind{ir.Bool, ir.U32, ir.F32}, Control: true, Steps: 60},
}

func TestExecutorsAgree(t *testing.T) {
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				agree(t, seed, cfg)
			}
		})
	}
}

func agree(t *testing.T, seed uint64, cfg kerneltest.Config) {
	t.Helper()
	c, err := kerneltest.New(seed, cfg)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	want, got := c.Data(), c.Data()
	if err := interp.Check(c.Kernel, c.Groups, want, c.Params, interp.CheckOptions{Uninit: c.Written}); err != nil {
		t.Fatalf("seed %d: the kernel has faults: %v", seed, err)
	}
	p, err := interp.Compile(c.Kernel)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for run := range 2 { // the second reuses the state of the first
		if err := p.Run(c.Groups, got, c.Params, nil); err != nil {
			t.Fatalf("seed %d, run %d: %v", seed, run, err)
		}
		if err := c.Compare(want, got); err != nil {
			t.Fatalf("seed %d, run %d: %v\n%s", seed, run, err, c.Kernel)
		}
	}
}
