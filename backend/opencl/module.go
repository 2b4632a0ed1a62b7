//go:build cgo

package opencl

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
	"github.com/anygpu/anygpu/shaders/clc"
	"github.com/anygpu/anygpu/shaders/ir"
)

// module is a program of the driver, with one kernel or several. The device's lock guards it.
type module struct {
	program *cl.Program
	texts   []textKey // of the kernels that the device knows it by
	users   int       // programs that have a kernel of it, and the device where Prepare made it
}

// textKey identifies a kernel's text.
type textKey [sha256.Size]byte

func keyOf(text string) textKey { return sha256.Sum256([]byte(text)) }

// moduleKernel is a kernel of a module.
type moduleKernel struct {
	*module
	entry string
}

// moduleFor returns the module with a kernel, which kernels of equal text share, and makes the caller a user of it. Kernel
// generators' keys are finer than their texts.
func (d *device) moduleFor(name, text, entry string) (moduleKernel, error) {
	key := keyOf(text)
	d.mu.Lock()
	m, ok := d.modules[key]
	if ok {
		m.users++
	}
	d.mu.Unlock()
	if ok {
		return m, nil
	}
	program, err := d.build(name, text)
	if err != nil {
		return moduleKernel{}, err
	}
	m = moduleKernel{&module{program: program, users: 1}, entry}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.know(key, m)
	return m, nil
}

// know makes a module the one for a text, unless there is another already. The lock is held.
func (d *device) know(key textKey, m moduleKernel) {
	if _, ok := d.modules[key]; !ok {
		d.modules[key] = m
		m.texts = append(m.texts, key)
	}
}

// drop ends a use of a module. The lock is held.
func (d *device) drop(m *module) {
	if m == nil {
		return
	}
	if m.users--; m.users > 0 {
		return
	}
	for _, key := range m.texts {
		delete(d.modules, key)
	}
	m.program.Release()
}

// build compiles a text. The device's lock is free: compilers take their time.
func (d *device) build(name, text string) (*cl.Program, error) {
	fail := func(code clload.Code) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Errorf("kernel %s: %w", name, d.fail("compilation", code))
	}
	program, err := d.context.CreateProgramWithSource([]string{text})
	if err != nil {
		return nil, fail(clload.CodeOf(err))
	}
	log, code := clload.Build(clload.HandleOf(program), clload.HandleOf(d.id), d.options())
	if code = d.check("compilation", code); code == 0 {
		return program, nil
	}
	program.Release()
	if isLost(code) {
		return nil, fail(code)
	}
	return nil, &BuildError{Device: d.info.String(), Kernel: name, Log: log, Source: text, Err: code}
}

// Prepare compiles kernels as one program. A compiler reads the declarations of OpenCL C's built-in functions anew for each
// program: on PoCL that takes as long as compiling a kernel.
func (d *device) Prepare(kernels []*ir.Kernel) {
	d.mu.Lock()
	if d.usable() != nil {
		d.mu.Unlock()
		return
	}
	d.busy.Add(1)
	defer d.busy.Done()
	d.mu.Unlock()

	type part struct {
		key   textKey
		entry string
	}
	var parts []part
	var sources []string
	seen := map[textKey]bool{}
	for _, k := range kernels {
		if k == nil {
			continue
		}
		k, err := d.lower(k)
		if err != nil {
			continue // Compile will say so
		}
		entry := fmt.Sprintf("%s_%d", clc.EntryPoint(k), len(parts))
		text, err := d.emit(k, "")
		source, err2 := d.emit(k, entry)
		if err != nil || err2 != nil {
			continue
		}
		key := keyOf(text)
		d.mu.Lock()
		_, known := d.modules[key]
		d.mu.Unlock()
		if known || seen[key] {
			continue
		}
		seen[key] = true
		parts, sources = append(parts, part{key, entry}), append(sources, source)
	}
	if len(parts) < 2 {
		return
	}
	program, err := d.build("several", strings.Join(sources, "\n"))
	if err != nil {
		return // which kernel is at fault comes out when they are compiled one by one
	}
	m := &module{program: program, users: 1}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range parts {
		d.know(p.key, moduleKernel{m, p.entry})
	}
	d.prepared = append(d.prepared, m)
}
