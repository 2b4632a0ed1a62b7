//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"
)

// pipelineCache is what the driver keeps of compiled pipelines, with its file. Whatever is wrong with the file, pipelines
// are compiled anew, and nobody is told.
type pipelineCache struct {
	handle vk.PipelineCache
	path   string            // empty: no file
	head   []byte            // what the data of this device and driver begins with
	saved  [sha256.Size]byte // of the data that the file has
}

const (
	cacheMagic    = "anygpu pipeline cache 1\n"
	cacheHeader   = 32 // of VkPipelineCacheHeaderVersionOne
	maxCacheBytes = 256 << 20
)

// cacheFolder returns the folder of cache files; empty if there is none.
func cacheFolder() string {
	if dir := os.Getenv("ANYGPU_CACHE_DIR"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "anygpu")
}

// cacheHead returns the header that the driver's data must begin with (Vulkan 1.3, section 10.7.3).
func cacheHead(vendor, device uint32, uuid []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, cacheHeader)
	b = binary.LittleEndian.AppendUint32(b, 1) // VK_PIPELINE_CACHE_HEADER_VERSION_ONE
	b = binary.LittleEndian.AppendUint32(b, vendor)
	b = binary.LittleEndian.AppendUint32(b, device)
	return append(b, uuid...)
}

// open makes the cache, from the file if it is good.
func (c *pipelineCache) open(d *device, cand *candidate) {
	p := &cand.phys
	c.head = cacheHead(uint32(p.vendor_id), uint32(p.device_id), unsafe.Slice((*byte)(unsafe.Pointer(&p.cache_uuid[0])), len(p.cache_uuid)))
	if dir := cacheFolder(); dir != "" {
		c.path = filepath.Join(dir, fmt.Sprintf("vulkan-%04x-%04x-%08x-%x.bin", uint32(p.vendor_id), uint32(p.device_id), uint32(p.driver_version), c.head[16:]))
	}
	data := loadCache(c.path, c.head)
	if c.create(d, data) != nil {
		data = nil
		if c.create(d, nil) != nil {
			return // without a cache
		}
	}
	if data != nil {
		c.saved = sha256.Sum256(data)
	}
}

func (c *pipelineCache) create(d *device, data []byte) error {
	info := vk.PipelineCacheCreateInfo{SType: vk.StructureTypePipelineCacheCreateInfo}
	if len(data) > 0 {
		mem := C.CBytes(data) // the binding puts the pointer into C memory, where no Go pointer may be
		defer C.free(mem)
		info.InitialDataSize, info.PInitialData = uint(len(data)), mem
	}
	defer info.Free()
	var handle vk.PipelineCache
	if err := d.do("vkCreatePipelineCache", func() vk.Result { return vk.CreatePipelineCache(d.dev, &info, nil, &handle) }); err != nil {
		return err
	}
	c.handle = handle
	return nil
}

// save writes the file if the cache has something new.
func (c *pipelineCache) save(d *device) {
	if c.path == "" || c.handle == vk.PipelineCache(vk.NullPipelineCache) {
		return
	}
	data := c.data(d)
	if len(data) <= cacheHeader || len(data) > maxCacheBytes {
		return // some drivers keep nothing here
	}
	if sum := sha256.Sum256(data); sum != c.saved && storeCache(c.path, data) == nil {
		c.saved = sum
	}
}

// data returns what the driver keeps; nil if it does not say.
func (c *pipelineCache) data(d *device) []byte {
	var size uint
	if r := vk.GetPipelineCacheData(d.dev, c.handle, &size, nil); r < 0 || size == 0 || size > maxCacheBytes {
		return nil
	}
	data := make([]byte, size)
	if r := vk.GetPipelineCacheData(d.dev, c.handle, &size, unsafe.Pointer(&data[0])); r != vk.Success || size > uint(len(data)) {
		return nil
	}
	return data[:size]
}

func (c *pipelineCache) close(d *device) {
	vk.DestroyPipelineCache(d.dev, c.handle, nil)
	c.handle = vk.NullPipelineCache
}

// loadCache returns the data of a cache file; nil if there is none, or if it is damaged or another device's.
func loadCache(path string, head []byte) []byte {
	if path == "" {
		return nil
	}
	if st, err := os.Stat(path); err != nil || st.Size() > maxCacheBytes+1024 {
		return nil
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	rest, ok := bytes.CutPrefix(file, []byte(cacheMagic))
	if !ok || len(rest) < sha256.Size {
		return nil
	}
	data := rest[sha256.Size:]
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], rest[:sha256.Size]) || len(data) <= cacheHeader || !bytes.HasPrefix(data, head) {
		return nil
	}
	return data
}

// storeCache writes a cache file. Other processes see the old file or the new one, never a part.
func storeCache(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	_, err = f.Write(bytes.Join([][]byte{[]byte(cacheMagic), sum[:], data}, nil))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
