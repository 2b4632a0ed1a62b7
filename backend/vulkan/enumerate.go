//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/spirv"
)

// theDriver is the driver that init registers.
var theDriver = &driver{}

type driver struct {
	mu   sync.Mutex
	list []candidate // of the last enumeration
}

// candidate is a device that may be opened.
type candidate struct {
	handle  vk.PhysicalDevice
	phys    C.agpu_phys
	info    backend.Info
	layered bool // the driver translates to another API
}

// Devices lists the devices: GPUs first, discrete before integrated, software devices last, otherwise in the order of the
// loader.
func (d *driver) Devices() ([]backend.Info, error) {
	list, err := enumerate()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = list
	if err != nil {
		return nil, err
	}
	infos := make([]backend.Info, len(list))
	for i := range list {
		infos[i] = list[i].info
		infos[i].Notes = slices.Clone(infos[i].Notes)
	}
	return infos, nil
}

func enumerate() ([]candidate, error) {
	inst, err := getInstance()
	if err != nil {
		return nil, err
	}
	handles, err := inst.physicalDevices()
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, installHint())
	}
	if len(handles) == 0 {
		return nil, errors.New("the Vulkan loader works, but its drivers have no devices; " + installHint())
	}
	var list []candidate
	for _, h := range handles {
		list = append(list, inst.describe(h))
	}
	return arrange(list), nil
}

// Open opens a device of the last enumeration.
func (d *driver) Open(index int) (backend.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.list == nil {
		list, err := enumerate()
		if err != nil {
			return nil, err
		}
		d.list = list
	}
	if index < 0 || index >= len(d.list) {
		return nil, fmt.Errorf("vulkan:%d: %w; there are %d Vulkan devices", index, backend.ErrUnknownDevice, len(d.list))
	}
	c := d.list[index]
	if c.info.Problem != "" {
		return nil, fmt.Errorf("%s (%s): %s", c.info, c.info.Name, c.info.Problem)
	}
	inst, err := getInstance()
	if err != nil {
		return nil, err
	}
	return openDevice(inst, c)
}

// arrange sorts candidates, drops the worse ones of a GPU that two drivers offer, and numbers the rest.
func arrange(list []candidate) []candidate {
	rank := func(t backend.DeviceType) int {
		return slices.Index([]backend.DeviceType{backend.DiscreteGPU, backend.IntegratedGPU, backend.VirtualGPU,
			backend.Accelerator, backend.OtherDevice, backend.CPUDevice}, t)
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return rank(a.info.Type) - rank(b.info.Type) })
	var out []candidate
	for _, c := range list {
		at := slices.IndexFunc(out, func(o candidate) bool { return sameGPU(o, c) })
		if at < 0 {
			out = append(out, c)
			continue
		}
		best, other := out[at], c
		if better(c, best) {
			best, other = c, out[at]
		}
		note := fmt.Sprintf("the driver %s %s offers this GPU, too; it is not used", other.info.Driver, other.info.DriverVersion)
		best.info.Notes = append(slices.Clip(best.info.Notes), append(other.info.Notes, note)...)
		out[at] = best
	}
	for i := range out {
		out[i].info.Index = i
	}
	return out
}

// sameGPU reports whether a and b are one GPU behind two drivers. Software devices have no identity but their driver's,
// and two drivers of one CPU are two devices.
func sameGPU(a, b candidate) bool {
	return a.info.Type != backend.CPUDevice && b.info.Type != backend.CPUDevice &&
		a.info.UUID != [16]byte{} && a.info.UUID == b.info.UUID && a.info.Driver != b.info.Driver
}

// better reports whether a is to be used rather than b: it works, it is no translation layer, it can do more, it is of the
// newer API; the first of equals.
func better(a, b candidate) bool {
	score := func(c candidate) []int {
		bit := func(b bool) int {
			if b {
				return 1
			}
			return 0
		}
		caps := c.info.Caps
		return []int{bit(c.info.Problem == ""), bit(!c.layered),
			bit(caps.F16Arith) + bit(caps.F16Storage) + bit(caps.U8Storage) + bit(caps.I64) + bit(caps.F64), int(c.phys.api_version)}
	}
	return slices.Compare(score(a), score(b)) > 0
}

// describe finds out about a device. It never fails: what is wrong is Info.Problem.
func (i *instance) describe(h vk.PhysicalDevice) candidate {
	c := candidate{handle: h}
	r := vk.Result(C.agpu_phys_query(i.gipa, i.c(), convert[C.VkPhysicalDevice](h), &c.phys))
	c.fill()
	switch {
	case r < 0:
		c.info.Problem = "its driver fails to describe it: " + resultName(r)
	case c.phys.api_version < apiVersion1_1:
		c.info.Problem = fmt.Sprintf("it has Vulkan %s, and 1.1 is needed: update its driver", vk.Version(c.phys.api_version))
	case c.phys.queue_family < 0:
		c.info.Problem = "it has no queue for compute work"
	default:
		if _, err := chooseMemory(c.memory(), c.info.Type == backend.DiscreteGPU); err != nil {
			c.info.Problem = err.Error()
		}
	}
	return c
}

const driverLLVMpipe = 13 // VK_DRIVER_ID_MESA_LLVMPIPE

// maxBindings bounds the buffers of one kernel where a device allows very many: larger descriptor sets gain nothing.
const maxBindings = 64

func (c *candidate) fill() {
	p, lim := &c.phys, &c.phys.limits
	c.info = backend.Info{
		API:           "vulkan",
		Name:          cString(p.name[:]),
		Vendor:        vendorName(uint32(p.vendor_id)),
		Driver:        cString(p.driver_name[:]),
		DriverVersion: cString(p.driver_info[:]),
		APIVersion:    vk.Version(p.api_version).String(),
		Type:          deviceType(vk.PhysicalDeviceType(p._type)),
		Memory:        mainHeap(c.memory()).size,
		Limits: backend.Limits{
			MaxAllocBytes:     clampInt64(uint64(p.max_alloc_bytes)),
			MaxAllocs:         clampInt(uint32(lim.maxMemoryAllocationCount)),
			BufferOffsetAlign: max(4, clampInt64(uint64(lim.minStorageBufferOffsetAlignment))),
		},
	}
	if c.info.Driver == "" {
		c.info.Driver = c.info.Vendor
	}
	if c.info.DriverVersion == "" {
		c.info.DriverVersion = driverVersion(uint32(p.vendor_id), uint32(p.driver_version))
	}
	for i := range c.info.UUID {
		c.info.UUID[i] = byte(p.device_uuid[i])
	}
	switch p.driver_id {
	case 14, 16, 22, 23: // MoltenVK, Juice, Venus, Dozen
		c.layered = true
	}
	if c.info.Limits.MaxAllocs >= 1<<30 {
		c.info.Limits.MaxAllocs = 0 // no limit
	}
	if c.info.Limits.MaxAllocBytes == 0 {
		c.info.Limits.MaxAllocBytes = 1 << 30 // the least that Vulkan 1.1 allows
	}
	bindings := min(uint32(lim.maxPerStageDescriptorStorageBuffers), uint32(lim.maxDescriptorSetStorageBuffers), uint32(lim.maxPerStageResources))
	c.info.Caps = ir.Caps{
		F16Arith:       p.f16_arith != 0,
		F16Storage:     p.f16_storage != 0,
		U8Storage:      p.u8_storage != 0,
		I64:            p.i64 != 0,
		F64:            p.f64 != 0,
		MaxLanes:       4,
		NativeMath:     ir.VulkanMath(),
		NativeMath64:   ir.VulkanMath(),
		MaxInvocations: clampInt(uint32(lim.maxComputeWorkGroupInvocations)),
		SharedBytes:    clampInt(uint32(lim.maxComputeSharedMemorySize)),
		MaxBuffers:     int(min(bindings, maxBindings)),
		MaxBufferBytes: min(int64(lim.maxStorageBufferRange), c.info.Limits.MaxAllocBytes),
		SubgroupSize:   int(p.subgroup_size),
		MaxSubgroups:   clampInt(uint32(p.max_subgroups)),
	}
	for i := range 3 {
		c.info.Caps.MaxLocal[i] = clampInt(uint32(lim.maxComputeWorkGroupSize[i]))
		c.info.Caps.MaxGroups[i] = clampInt(uint32(lim.maxComputeWorkGroupCount[i]))
	}
	if p.driver_id == driverLLVMpipe {
		// llvmpipe leaves loops silently when an invocation has gone round 65,535 times, all loops together (seen with
		// Mesa 22.3.6; LP_MAX_TGSI_LOOP_ITERATIONS in its source).
		c.info.Caps.MaxLoopTrips = 65535
		c.info.Limits.BufferOffsetAlign = max(c.info.Limits.BufferOffsetAlign, clampInt64(uint64(lim.minTexelBufferOffsetAlignment)))
		c.info.Notes = append(c.info.Notes, "its driver ends loops silently: an invocation has at most 65535 iterations, all loops together")
	}
	backend.Disable(&c.info)
}

// clampInt and clampInt64 keep a limit, which may be all ones, in the range of Go's integers.
func clampInt(v uint32) int     { return int(min(v, 1<<31-1)) }
func clampInt64(v uint64) int64 { return int64(min(v, 1<<62)) }

func cString(s []C.char) string {
	b := make([]byte, 0, len(s))
	for _, c := range s {
		b = append(b, byte(c))
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(bytes.ToValidUTF8(b, nil))
}

func deviceType(t vk.PhysicalDeviceType) backend.DeviceType {
	switch t {
	case vk.PhysicalDeviceTypeIntegratedGpu:
		return backend.IntegratedGPU
	case vk.PhysicalDeviceTypeDiscreteGpu:
		return backend.DiscreteGPU
	case vk.PhysicalDeviceTypeVirtualGpu:
		return backend.VirtualGPU
	case vk.PhysicalDeviceTypeCpu:
		return backend.CPUDevice
	}
	return backend.OtherDevice
}

var vendors = map[uint32]string{
	0x1002: "AMD", 0x1010: "Imagination", 0x106b: "Apple", 0x10de: "NVIDIA", 0x13b5: "ARM", 0x14e4: "Broadcom", 0x1ae0: "Google",
	0x5143: "Qualcomm", 0x8086: "Intel", 0x144d: "Samsung", 0x19e5: "Huawei", 0x1414: "Microsoft",
	0x10001: "VeriSilicon", 0x10003: "Kazan", 0x10004: "Codeplay", 0x10005: "Mesa", 0x10006: "PoCL",
}

func vendorName(id uint32) string {
	if s, ok := vendors[id]; ok {
		return s
	}
	return fmt.Sprintf("vendor 0x%04x", id)
}

// driverVersion decodes a driver's version number, whose form is the vendor's own.
func driverVersion(vendor, v uint32) string {
	if vendor == 0x10de {
		return fmt.Sprintf("%d.%d.%d", v>>22, v>>14&0xff, v>>6&0xff)
	}
	return vk.Version(v).String()
}

// emitOptions returns what the device promises of floating-point arithmetic, and how it reads buffers best.
func (c *candidate) emitOptions() spirv.Options {
	p := &c.phys
	width := func(flags [3]C.uint8_t) spirv.Widths {
		var w spirv.Widths
		for i, f := range flags {
			if f != 0 {
				w |= spirv.Width16 << i
			}
		}
		return w
	}
	used := spirv.Width32
	if p.f16_arith != 0 || p.f16_storage != 0 {
		used |= spirv.Width16
	}
	if p.f64 != 0 {
		used |= spirv.Width64
	}
	return spirv.Options{
		SignedZeroInfNanPreserve: width(p.preserve_nan),
		RoundingModeRTE:          independent(width(p.rte), used, int(p.rounding_independence)),
		// Subnormals matter to f16, most of whose gradients are there; f32 keeps the device's way, which may be faster.
		DenormPreserve: independent(width(p.denorm_preserve)&spirv.Width16, used, int(p.denorm_independence)),
		Texels:         c.texels(),
	}
}

// independent reduces the widths that a mode is declared for to a set that the device allows: where it has one mode
// for several widths, it is declared for all of those that kernels may use, or for none.
func independent(w, used spirv.Widths, independence int) spirv.Widths {
	tie := func(group spirv.Widths) {
		if w&group != used&group {
			w &^= group
		}
	}
	switch independence {
	case 0: // VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY
		tie(spirv.Width16 | spirv.Width64)
	case 1: // ..._ALL
	default:
		tie(spirv.Width16 | spirv.Width32 | spirv.Width64)
	}
	return w
}
