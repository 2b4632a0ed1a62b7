//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"slices"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/spirv"
)

const (
	maxTexels = 32   // of one kernel
	maxViews  = 4096 // of one buffer
)

// texels returns how many uniform texel buffers a kernel of the device may have to read its buffers through. llvmpipe loads an element of
// a storage buffer in a loop over the invocations of a vector, with a branch on the buffer's size in it, and a texel with instructions that
// gather: two to three times as fast (seen with Mesa 22.3.6). No other driver is known to gain.
func (c *candidate) texels() int {
	lim := &c.phys.limits
	if c.phys.driver_id != driverLLVMpipe || int64(lim.maxTexelBufferElements) < c.info.Caps.MaxBufferBytes {
		return 0
	}
	room := int64(lim.maxPerStageResources) - int64(c.info.Caps.MaxBuffers)
	return int(max(0, min(maxTexels, room, int64(lim.maxPerStageDescriptorSampledImages), int64(lim.maxDescriptorSetSampledImages))))
}

// texelFormats are the formats of texels by the size of an element and the lanes: VK_FORMAT_R8_UINT and so on.
var texelFormats = map[[2]int]C.VkFormat{
	{1, 1}: 13, {1, 2}: 20, {1, 4}: 41,
	{2, 1}: 74, {2, 2}: 81, {2, 4}: 95,
	{4, 1}: 98, {4, 2}: 101, {4, 4}: 107,
}

// maxTexelBytes is the size of the largest texel.
const maxTexelBytes = 16

// texelRoom returns the size of a buffer for size bytes of data whose texels may be read: the last one is whole. It is no power of two as
// long as most allows, because llvmpipe compiles a kernel anew for each combination of its texel buffers' being one.
func texelRoom(size, most int64) int64 {
	room := (size + maxTexelBytes - 1) &^ (maxTexelBytes - 1)
	if room&(room-1) == 0 && room+maxTexelBytes <= most {
		room += maxTexelBytes
	}
	return room
}

// viewKey identifies a view within a buffer.
type viewKey struct {
	offset, size int64
	format       C.VkFormat
}

// view returns the view of a checked region as a texel buffer. d.mu is held.
func (d *device) view(r backend.Region, t spirv.Texel) (C.VkBufferView, error) {
	m := r.Buffer.(*buffer).memory
	bytes := t.Kind.Size() * t.Lanes
	key := viewKey{r.Offset, r.Size, texelFormats[[2]int{t.Kind.Size(), t.Lanes}]}
	if v, ok := m.views[key]; ok {
		return v, nil
	}
	whole := (r.Size + int64(bytes) - 1) / int64(bytes) * int64(bytes)
	var v C.VkBufferView
	err := d.do("vkCreateBufferView", func() vk.Result {
		return vk.Result(C.agpu_view_create(d.c, convert[C.VkBuffer](m.buffer), key.format, C.VkDeviceSize(r.Offset), C.VkDeviceSize(whole), &v))
	})
	if err != nil {
		return 0, err
	}
	if len(m.views) >= maxViews { // layouts change all the time: begin anew
		old := m.views
		m.views, m.oldViews = nil, append(m.oldViews, old)
		d.after(d.work.next, func() {
			d.dropViews(old)
			m.oldViews = slices.DeleteFunc(m.oldViews, func(v map[viewKey]C.VkBufferView) bool { return len(v) == 0 })
		})
	}
	if m.views == nil {
		m.views = map[viewKey]C.VkBufferView{}
	}
	m.views[key] = v
	return v, nil
}

// dropViews destroys views and empties the map, so that it does so once.
func (d *device) dropViews(views map[viewKey]C.VkBufferView) {
	for _, v := range views {
		C.agpu_view_destroy(d.c, v)
	}
	clear(views)
}
