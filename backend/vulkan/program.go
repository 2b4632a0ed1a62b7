//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/spirv"
)

// program is a compiled kernel.
type program struct {
	d      *device
	c      C.agpu_program
	name   string
	access []ir.Access // of each buffer
	texels []spirv.Texel
	params int // 4-byte words

	// Guarded by d.mu.
	freed   bool
	lastUse uint64
}

// shader is what makes a program.
type shader struct {
	name     string
	words    []uint32
	access   []ir.Access
	texels   []spirv.Texel
	params   int
	subgroup int // the size it needs; 0 if any
}

// Compile lowers the kernel to the device, emits SPIR-V and makes a pipeline.
func (d *device) Compile(k *ir.Kernel) (backend.Program, error) {
	if k == nil {
		return nil, fmt.Errorf("%s: compile: the kernel is nil", d.info)
	}
	low, err := ir.Lower(k, d.info.Caps)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", d.info, backend.ErrUnsupported, err)
	}
	if err := d.fits(low); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	words, err := spirv.Emit(low, d.opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.info, err)
	}
	sh := shader{name: k.Name, words: words, texels: spirv.Texels(low, d.opts), params: len(low.Params), subgroup: low.Subgroup}
	for _, m := range low.Globals() {
		sh.access = append(sh.access, m.Access)
	}
	for i, m := range k.Globals() { // lowering may need more than the kernel says, never less
		if i < len(sh.access) {
			sh.access[i] |= m.Access
		}
	}
	return d.compile(sh)
}

// fits holds a kernel against the device's limits.
func (d *device) fits(k *ir.Kernel) error {
	c := &d.info.Caps
	type limit struct {
		name          string
		want, allowed int
	}
	limits := []limit{
		{"maxPerStageDescriptorStorageBuffers", len(k.Globals()), c.MaxBuffers},
		{"maxPushConstantsSize", 4 * len(k.Params), clampInt(uint32(d.limits.maxPushConstantsSize))},
		{"maxComputeSharedMemorySize", k.SharedBytes(), c.SharedBytes},
		{"maxComputeWorkGroupInvocations", k.Invocations(), c.MaxInvocations},
	}
	if k.Subgroup > 0 {
		limits = append(limits, limit{"maxComputeWorkgroupSubgroups", k.Local[0] / k.Subgroup, c.MaxSubgroups})
	}
	for i, n := range k.Local {
		limits = append(limits, limit{fmt.Sprintf("maxComputeWorkGroupSize[%d]", i), n, c.MaxLocal[i]})
	}
	for _, l := range limits {
		if l.want > l.allowed {
			return &backend.LimitError{Device: d.info.String(), Limit: l.name, Requested: int64(l.want), Allowed: int64(l.allowed)}
		}
	}
	return nil
}

func (d *device) compile(sh shader) (*program, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	p := &program{d: d, name: sh.name, access: sh.access, texels: sh.texels, params: sh.params}
	var out C.agpu_program
	var stage *C.char // nil, or the one of several calls that failed
	err := d.do("vkCreateComputePipelines", func() vk.Result {
		return vk.Result(C.agpu_program_create(d.c, convert[C.VkPipelineCache](d.cache.handle), (*C.uint32_t)(unsafe.SliceData(sh.words)),
			C.size_t(len(sh.words)), C.uint32_t(len(sh.access)), C.uint32_t(len(sh.texels)), C.uint32_t(4*sh.params), C.uint32_t(sh.subgroup), &out, &stage))
	})
	if err != nil {
		if api, ok := err.(*apiError); ok && stage != nil {
			api.Call = C.GoString(stage)
		}
		return nil, fmt.Errorf("%s: kernel %s: %w", d.info, sh.name, err)
	}
	p.c = out
	d.mu.Lock()
	d.programs[p] = true
	d.mu.Unlock()
	return p, nil
}

// Free destroys the program once no submission uses it.
func (p *program) Free() {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.freed || d.closed {
		return
	}
	p.freed = true
	d.after(p.lastUse, func() {
		C.agpu_program_destroy(d.c, &p.c)
		delete(d.programs, p)
	})
}
