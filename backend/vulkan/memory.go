//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"
)

// Property flags of memory types.
const (
	deviceLocal  = uint32(vk.MemoryPropertyDeviceLocalBit)
	hostVisible  = uint32(vk.MemoryPropertyHostVisibleBit)
	hostCoherent = uint32(vk.MemoryPropertyHostCoherentBit)
	hostCached   = uint32(vk.MemoryPropertyHostCachedBit)

	// usableFlags are the flags a type may have. Types with others (lazily allocated, protected, AMD's device-coherent)
	// are for other purposes or need a feature.
	usableFlags = deviceLocal | hostVisible | hostCoherent | hostCached
)

type memoryHeap struct {
	size  int64
	local bool
}

type memoryType struct {
	flags uint32
	heap  int
}

// memoryMap is a device's memory.
type memoryMap struct {
	heaps []memoryHeap
	types []memoryType
}

func (c *candidate) memory() memoryMap {
	var m memoryMap
	for _, h := range c.phys.memory.memoryHeaps[:min(int(c.phys.memory.memoryHeapCount), len(c.phys.memory.memoryHeaps))] {
		m.heaps = append(m.heaps, memoryHeap{clampInt64(uint64(h.size)), uint32(h.flags)&uint32(vk.MemoryHeapDeviceLocalBit) != 0})
	}
	for _, t := range c.phys.memory.memoryTypes[:min(int(c.phys.memory.memoryTypeCount), len(c.phys.memory.memoryTypes))] {
		m.types = append(m.types, memoryType{uint32(t.propertyFlags), int(t.heapIndex)})
	}
	return m
}

// mainHeap returns the largest heap on the device, or the largest of all if none is called local.
func mainHeap(m memoryMap) memoryHeap {
	var best memoryHeap
	for _, h := range m.heaps {
		if h.local && !best.local || h.local == best.local && h.size > best.size {
			best = h
		}
	}
	return best
}

// memoryChoice has memory types in order of preference, by purpose.
type memoryChoice struct {
	buffers  []int // of buffers that kernels use
	upload   []int // staging memory that the host writes
	readback []int // staging memory that the host reads
	flags    []uint32
}

// chooseMemory orders the memory types. Only coherent memory is mapped, so that nothing needs flushing. Mapped memory of
// the device is taken for buffers only where it is all of the main heap: the 256 MiB window of a GPU without resizable
// BAR is too small to hold tensors. A discrete GPU's tensors do not spill into the host's memory, where they would be
// slower by an order of magnitude and nobody would know.
func chooseMemory(m memoryMap, discrete bool) (memoryChoice, error) {
	var c memoryChoice
	main := mainHeap(m)
	pick := func(want func(t memoryType) bool) (out []int) {
		for i, t := range m.types {
			if t.flags&^usableFlags == 0 && t.heap < len(m.heaps) && want(t) {
				out = append(out, i)
			}
		}
		return out
	}
	has := func(t memoryType, flags uint32) bool { return t.flags&flags == flags }
	onMain := func(t memoryType) bool { return m.heaps[t.heap] == main }
	add := func(dst *[]int, more []int) {
		for _, i := range more {
			seen := false
			for _, j := range *dst {
				seen = seen || i == j
			}
			if !seen {
				*dst = append(*dst, i)
			}
		}
	}
	add(&c.buffers, pick(func(t memoryType) bool { return onMain(t) && has(t, deviceLocal|hostVisible|hostCoherent|hostCached) }))
	add(&c.buffers, pick(func(t memoryType) bool { return onMain(t) && has(t, deviceLocal|hostVisible|hostCoherent) }))
	add(&c.buffers, pick(func(t memoryType) bool { return onMain(t) }))
	add(&c.buffers, pick(func(t memoryType) bool { return has(t, deviceLocal) && !has(t, hostVisible) }))
	if !discrete || len(c.buffers) == 0 {
		add(&c.buffers, pick(func(t memoryType) bool { return true }))
	}

	// Memory of the host first: device memory in a mapped window is scarce, and slow to read.
	window := hostVisible | hostCoherent
	add(&c.upload, pick(func(t memoryType) bool { return has(t, window) && !has(t, deviceLocal) && !has(t, hostCached) }))
	add(&c.upload, pick(func(t memoryType) bool { return has(t, window) && !has(t, deviceLocal) }))
	add(&c.upload, pick(func(t memoryType) bool { return has(t, window) }))
	add(&c.readback, pick(func(t memoryType) bool { return has(t, window|hostCached) && !has(t, deviceLocal) }))
	add(&c.readback, pick(func(t memoryType) bool { return has(t, window|hostCached) }))
	add(&c.readback, pick(func(t memoryType) bool { return has(t, window) && !has(t, deviceLocal) }))
	add(&c.readback, pick(func(t memoryType) bool { return has(t, window) }))
	if len(c.buffers) == 0 || len(c.upload) == 0 {
		return c, errors.New("it has no memory that the host can write and the device can read")
	}
	for _, t := range m.types {
		c.flags = append(c.flags, t.flags)
	}
	return c, nil
}

// memory is a Vulkan buffer with memory of its own.
type memory struct {
	buffer   vk.Buffer
	mem      vk.DeviceMemory
	size     int64
	flags    uint32
	ptr      unsafe.Pointer // where it is mapped; nil if it is not
	views    map[viewKey]C.VkBufferView
	oldViews []map[viewKey]C.VkBufferView // that submissions may use
}

// mapped reports whether memory of these flags is mapped, and directRead whether reading it so is fast.
func mapped(flags uint32) bool     { return flags&(hostVisible|hostCoherent) == hostVisible|hostCoherent }
func directRead(flags uint32) bool { return mapped(flags) && flags&hostCached != 0 }

// bytes returns mapped memory as a slice.
func (m *memory) bytes(offset, n int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(m.ptr, offset)), n)
}

// newMemory makes a buffer of size bytes in the first type of order that the buffer may use and that has room, and maps
// it if its type allows.
func (d *device) newMemory(size int64, order []int) (*memory, error) {
	info := vk.BufferCreateInfo{
		SType: vk.StructureTypeBufferCreateInfo,
		Size:  vk.DeviceSize(size),
		Usage: vk.BufferUsageFlags(vk.BufferUsageStorageBufferBit | vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit),
	}
	if d.opts.Texels > 0 {
		info.Size = vk.DeviceSize(texelRoom(size, d.info.Limits.MaxAllocBytes))
		info.Usage |= vk.BufferUsageFlags(vk.BufferUsageUniformTexelBufferBit)
	}
	defer info.Free()
	var buffer vk.Buffer
	if err := d.do("vkCreateBuffer", func() vk.Result { return vk.CreateBuffer(d.dev, &info, nil, &buffer) }); err != nil {
		return nil, err
	}
	m := &memory{buffer: buffer, size: size}
	if err := d.bindMemory(m, order); err != nil {
		vk.DestroyBuffer(d.dev, buffer, nil)
		return nil, err
	}
	return m, nil
}

func (d *device) bindMemory(m *memory, order []int) error {
	var req vk.MemoryRequirements
	vk.GetBufferMemoryRequirements(d.dev, m.buffer, &req)
	req.Deref()
	need, bits := req.Size, req.MemoryTypeBits
	req.Free()

	err := error(&apiError{"vkAllocateMemory", vk.ErrorOutOfDeviceMemory})
	found := false
	for _, i := range order {
		if bits&(1<<i) == 0 {
			continue
		}
		m.mem, err = d.allocate(need, i)
		if err == nil {
			m.flags = d.choice.flags[i]
			found = true
			break
		}
		if !outOfMemory(err) {
			return err
		}
	}
	if !found {
		return err
	}
	if err := d.do("vkBindBufferMemory", func() vk.Result { return vk.BindBufferMemory(d.dev, m.buffer, m.mem, 0) }); err != nil {
		vk.FreeMemory(d.dev, m.mem, nil)
		return err
	}
	if mapped(m.flags) {
		var ptr unsafe.Pointer
		if err := d.do("vkMapMemory", func() vk.Result { return vk.MapMemory(d.dev, m.mem, 0, vk.DeviceSize(vk.WholeSize), 0, &ptr) }); err != nil {
			vk.FreeMemory(d.dev, m.mem, nil)
			return err
		}
		m.ptr = ptr
	}
	return nil
}

func (d *device) allocate(size vk.DeviceSize, typ int) (vk.DeviceMemory, error) {
	info := vk.MemoryAllocateInfo{SType: vk.StructureTypeMemoryAllocateInfo, AllocationSize: size, MemoryTypeIndex: uint32(typ)}
	defer info.Free()
	var mem vk.DeviceMemory
	err := d.do("vkAllocateMemory", func() vk.Result { return vk.AllocateMemory(d.dev, &info, nil, &mem) })
	return mem, err
}

// destroy gives the memory back; unmapping is implied.
func (m *memory) destroy(d *device) {
	d.dropViews(m.views)
	for _, v := range m.oldViews {
		d.dropViews(v)
	}
	vk.DestroyBuffer(d.dev, m.buffer, nil)
	vk.FreeMemory(d.dev, m.mem, nil)
}
