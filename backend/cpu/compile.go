package cpu

import (
	"errors"
	"maps"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/jit"
)

// runner runs a kernel.
type runner func(groups [3]int, buffers [][]byte, params []uint32) error

// machineCode reports whether kernels are compiled to machine code, and a note for the device's description.
func machineCode() (bool, string) {
	if backend.Disabled("jit") {
		return false, "kernels are interpreted: machine code was switched off by " + backend.EnvDisable
	}
	if err := jit.Available(); err != nil {
		return false, "kernels are interpreted: " + err.Error()
	}
	return true, "kernels are compiled to " + jit.Name
}

// Interpreted returns the kernels compiled so far that the block executor runs although the device has machine code, by name, with why. There
// are none if machine code is switched off or not to be had.
func (d *Device) Interpreted() map[string]error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.interpreted)
}

// compile returns machine code for a kernel, or what the block executor makes of it.
func (d *Device) compile(k *ir.Kernel) (runner, error) { return d.compileOn(k, d.pool) }

// compileOn is compile for the workers of a pool: a native program may be one of many workers itself.
func (d *Device) compileOn(k *ir.Kernel, pool *interp.Pool) (runner, error) {
	if !d.code {
		return d.interpreter(k, pool)
	}
	p, err := jit.Compile(k)
	if errors.Is(err, jit.ErrUnsupported) {
		d.mu.Lock()
		d.interpreted[k.Name] = err
		d.mu.Unlock()
		return d.interpreter(k, pool)
	}
	if err != nil {
		return nil, err
	}
	fallback := sync.OnceValues(func() (runner, error) { return d.interpreter(k, pool) })
	return func(groups [3]int, buffers [][]byte, params []uint32) error {
		if p.Fits(buffers) {
			return p.Run(groups, buffers, params, pool)
		}
		run, err := fallback()
		if err != nil {
			return err
		}
		return run(groups, buffers, params)
	}, nil
}

func (d *Device) interpreter(k *ir.Kernel, pool *interp.Pool) (runner, error) {
	p, err := d.program(k)
	if err != nil {
		return nil, err
	}
	return func(groups [3]int, buffers [][]byte, params []uint32) error {
		return p.Run(groups, buffers, params, pool)
	}, nil
}

// program compiles a kernel for the block executor. Where the device has machine code, functions of F64 are those that machine code uses, so that
// a kernel gives the same bits whichever runs it.
func (d *Device) program(k *ir.Kernel) (*interp.Program, error) {
	c := ir.InterpCaps()
	c.NativeMath64 = jit.NativeMath64()
	other := false
	k.Walk(func(in *ir.Instr) {
		other = other || in.Op.IsMath() && in.Type.Kind == ir.F64 && !c.NativeMath64.Has(in.Op)
	})
	if d.code && other {
		var err error
		if k, err = ir.Lower(k, c); err != nil {
			return nil, err
		}
	}
	return interp.Compile(k)
}
