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

	program *cl.Program
	kernel  *cl.Kernel
	handle  clload.Handle
	used    uint64
	freed   bool
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
	text, err := clc.Emit(k, clc.Options{SplitFma: d.config&fpFMA == 0, Lanewise: lanewise(d.info)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.info, err)
	}
	p := &program{device: d, name: k.Name, local: k.Local, buffers: len(k.Globals()), params: len(k.Params)}
	if err := p.build(text, clc.EntryPoint(k)); err != nil {
		p.releaseObjects()
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		p.releaseObjects()
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

// options returns the build options. Division and square root are rounded correctly where the device can do so.
func (d *device) options() string {
	s := "-cl-std=CL1.2"
	if d.config&fpCorrectlyRoundedDivide != 0 {
		s += " -cl-fp32-correctly-rounded-divide-sqrt"
	}
	return s
}

// build compiles the text. The device's lock is free: compilers take their time.
func (p *program) build(text, entry string) error {
	d := p.device
	fail := func(during string, code clload.Code) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Errorf("kernel %s: %w", p.name, d.fail(during, code))
	}
	var err error
	if p.program, err = d.context.CreateProgramWithSource([]string{text}); err != nil {
		return fail("compilation", clload.CodeOf(err))
	}
	log, code := clload.Build(clload.HandleOf(p.program), clload.HandleOf(d.id), d.options())
	if code = d.check("compilation", code); code != 0 {
		if isLost(code) {
			return fail("compilation", code)
		}
		return &BuildError{Device: d.info.String(), Kernel: p.name, Log: log, Source: text, Err: code}
	}
	if p.kernel, err = p.program.CreateKernel(entry); err != nil {
		return fail("compilation", clload.CodeOf(err))
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
	p.releaseObjects()
}

func (p *program) releaseObjects() {
	if p.kernel != nil {
		p.kernel.Release()
	}
	if p.program != nil {
		p.program.Release()
	}
}
