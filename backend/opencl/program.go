//go:build cgo

package opencl

import (
	"errors"
	"fmt"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
	"github.com/anygpu/anygpu/shaders/clc"
	"github.com/anygpu/anygpu/shaders/ir"
)

// program is a compiled kernel. Its fields below params are guarded by the device's lock, which also keeps two goroutines
// from setting its arguments at once.
type program struct {
	device  *device
	name    string
	local   [3]int
	buffers int
	params  int

	module *module
	kernel *cl.Kernel
	handle clload.Handle
	used   uint64
	freed  bool
}

// Compile lowers the kernel to the device's capabilities, prints it as OpenCL C and builds it.
func (d *device) Compile(k *ir.Kernel) (backend.Program, error) {
	d.mu.Lock()
	err := d.usable()
	if err == nil {
		d.busy.Add(1)
		defer d.busy.Done()
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if k == nil {
		return nil, fmt.Errorf("%s: cannot compile a nil kernel", d.info)
	}
	if k, err = d.lower(k); err != nil {
		return nil, err
	}
	text, err := d.emit(k, "")
	if err != nil {
		return nil, err
	}
	p := &program{device: d, name: k.Name, local: k.Local, buffers: len(k.Globals()), params: len(k.Params)}
	err = p.make(text, clc.EntryPoint(k))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		err = d.usable()
	}
	if err != nil {
		p.release()
		return nil, err
	}
	d.programs[p] = struct{}{}
	return p, nil
}

// lower rewrites a kernel to the device's capabilities, and makes the backend's errors of those of the IR.
func (d *device) lower(k *ir.Kernel) (*ir.Kernel, error) {
	low, err := ir.Lower(k, d.info.Caps)
	var limit *ir.LimitError
	switch {
	case err == nil:
		return low, nil
	case errors.As(err, &limit):
		return nil, fmt.Errorf("kernel %s: %w", k.Name, &backend.LimitError{
			Device: d.info.String(), Limit: limit.Limit, Requested: limit.Wanted, Allowed: limit.Allowed,
		})
	case errors.Is(err, ir.ErrUnsupported):
		return nil, fmt.Errorf("%s: %w: %w", d.info, backend.ErrUnsupported, err)
	}
	return nil, fmt.Errorf("%s: %w", d.info, err)
}

// emit prints a lowered kernel; an empty entry gives the function its usual name.
func (d *device) emit(k *ir.Kernel, entry string) (string, error) {
	text, err := clc.Emit(k, clc.Options{SplitFma: d.config&fpFMA == 0, Lanewise: lanewise(d.info), Entry: entry})
	if err != nil {
		return "", fmt.Errorf("%s: %w", d.info, err)
	}
	return text, nil
}

// options returns the build options. Division and square root are rounded correctly where the device can do so.
func (d *device) options() string {
	s := "-cl-std=CL1.2"
	if d.config&fpCorrectlyRoundedDivide != 0 {
		s += " -cl-fp32-correctly-rounded-divide-sqrt"
	}
	return s
}

// make gets the kernel of a text. The device's lock is free.
func (p *program) make(text, entry string) error {
	d := p.device
	m, err := d.moduleFor(p.name, text, entry)
	if err != nil {
		return err
	}
	p.module = m.module
	if p.kernel, err = m.program.CreateKernel(m.entry); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Errorf("kernel %s: %w", p.name, d.fail("compilation", clload.CodeOf(err)))
	}
	p.handle = clload.HandleOf(p.kernel)
	// The registers that a kernel needs may allow fewer invocations than the device has at most. Old rusticl reports 32 for
	// every kernel.
	invocations := p.local[0] * p.local[1] * p.local[2]
	if n, err := p.kernel.WorkGroupSize(d.id); err == nil && n > 0 && n < invocations && !suspect(d.info) {
		return fmt.Errorf("kernel %s: %w", p.name, &backend.LimitError{
			Device: d.info.String(), Limit: "CL_KERNEL_WORK_GROUP_SIZE of this kernel", Requested: int64(invocations), Allowed: int64(n),
		})
	}
	return nil
}

// Free gives the program back after the work submitted so far.
func (p *program) Free() {
	d := p.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.freed || d.closed {
		return
	}
	p.freed = true
	delete(d.programs, p)
	d.retire(p.used, p.release)
}

// release gives the program back now. The lock is held.
func (p *program) release() {
	p.freed = true
	p.handle = nil
	if p.kernel != nil {
		p.kernel.Release()
	}
	p.device.drop(p.module)
}
