//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/spirv"
)

// device is an opened device.
type device struct {
	info   backend.Info
	limits C.VkPhysicalDeviceLimits
	family uint32
	ticks  uint // valid bits of the queue's timestamps; 0: it has none
	opts   spirv.Options
	choice memoryChoice
	// readsMapped: buffers may be in memory that the host reads directly.
	readsMapped bool

	dev   vk.Device
	queue vk.Queue
	c     *C.agpu_device
	cache pipelineCache

	lost atomic.Pointer[backend.LostError]
	// hook, in tests, stands in for calls: they are made only where it returns vk.Success.
	hook atomic.Pointer[func(call string) vk.Result]

	mu     sync.Mutex
	idle   sync.Cond // of mu: busy or a slot's waiters became fewer
	closed bool
	busy   int // calls that use the device without holding mu

	buffers  map[*buffer]bool  // alive, also those whose destruction is deferred
	programs map[*program]bool // likewise
	allocs   int               // allocations alive
	bytes    int64             // of them

	clock clock
	work  workQueue
	up    uploadRing
	readM sync.Mutex // held during a staged read, before mu
	down  *buffer    // staging memory of reads; nil until the first
}

// openDevice opens a candidate.
func openDevice(inst *instance, cand candidate) (*device, error) {
	d := &device{
		info:     cand.info,
		limits:   cand.phys.limits,
		family:   uint32(cand.phys.queue_family),
		ticks:    uint(cand.phys.timestamp_bits),
		opts:     cand.emitOptions(),
		buffers:  map[*buffer]bool{},
		programs: map[*program]bool{},
	}
	d.idle.L = &d.mu
	d.work.next = 1
	var err error
	if d.choice, err = chooseMemory(cand.memory(), cand.info.Type == backend.DiscreteGPU); err != nil {
		return nil, fmt.Errorf("%s: %w", d.info, err)
	}
	for _, t := range d.choice.buffers {
		d.readsMapped = d.readsMapped || directRead(d.choice.flags[t])
	}
	var handle C.VkDevice
	r := vk.Result(C.agpu_device_create(inst.gipa, inst.c(), convert[C.VkPhysicalDevice](cand.handle), &cand.phys, &handle))
	if r < 0 {
		return nil, fmt.Errorf("%s (%s): %w", d.info, d.info.Name, &apiError{"vkCreateDevice", r})
	}
	d.dev = convert[vk.Device](handle)
	var queue vk.Queue
	vk.GetDeviceQueue(d.dev, d.family, 0, &queue)
	d.queue = queue
	if d.c = C.agpu_device_load(inst.gipa, inst.c(), handle, convert[C.VkQueue](queue)); d.c == nil {
		vk.DestroyDevice(d.dev, nil)
		return nil, fmt.Errorf("%s (%s): its driver lacks functions of Vulkan 1.1", d.info, d.info.Name)
	}
	d.cache.open(d, &cand)
	return d, nil
}

// Info returns what was found out about the device.
func (d *device) Info() backend.Info { return d.info }

// Restrict takes capabilities out of the description before kernels are compiled for it; see [backend.Restricter].
func (d *device) Restrict(change func(*backend.Info)) { change(&d.info) }

// Lost reports whether the device was lost.
func (d *device) Lost() bool { return d.lost.Load() != nil }

// do makes a call of the API and turns its result into an error. It remembers the loss of the device.
func (d *device) do(call string, f func() vk.Result) error {
	_, err := d.result(call, f)
	return err
}

// result is do for calls whose success has several results.
func (d *device) result(call string, f func() vk.Result) (vk.Result, error) {
	r := vk.Success
	if h := d.hook.Load(); h != nil {
		r = (*h)(call)
	}
	if r == vk.Success {
		r = f()
	}
	if r >= 0 {
		return r, nil
	}
	err := &apiError{call, r}
	if r == vk.ErrorDeviceLost {
		d.lost.CompareAndSwap(nil, &backend.LostError{Device: d.info.String(), During: call, Err: err})
		return r, d.lost.Load()
	}
	return r, err
}

// usable returns why the device can no longer be used. d.mu is held.
func (d *device) usable() error {
	if d.closed {
		return fmt.Errorf("%s: %w", d.info, backend.ErrClosed)
	}
	if l := d.lost.Load(); l != nil {
		return l
	}
	return nil
}

// enter begins a call that uses the device without holding mu; leave ends it. Close waits for it.
func (d *device) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.busy++
	return nil
}

func (d *device) leave() {
	d.mu.Lock()
	d.busy--
	d.idle.Broadcast()
	d.mu.Unlock()
}

// Synchronize waits for all work, including writes that are only staged.
func (d *device) Synchronize(ctx context.Context) error {
	f, err := d.Submit(nil)
	if err != nil {
		return err
	}
	return f.Wait(ctx)
}

// Close waits for the work under way, gives everything back and is quiet about a lost device. Buffers and programs that
// were not freed go with the device. A second call does nothing.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	for d.busy > 0 {
		d.idle.Wait()
	}
	// Work that was submitted ends, or the driver gives the device up; either way nothing is in use afterwards. Staged
	// writes that no submission needed are dropped. The result is of no use here: a device that was lost says so.
	d.waitIdle()
	for d.work.waiters > 0 {
		d.idle.Wait()
	}
	if d.lost.Load() == nil {
		d.work.done = d.work.next - 1
		d.cache.save(d)
	}
	d.destroyAll()
	d.idle.Broadcast()
	return nil
}

// destroyAll gives back everything that is left.
func (d *device) destroyAll() {
	for _, s := range append(d.work.inflight, d.work.free...) {
		d.destroySlot(s)
	}
	for b := range d.buffers {
		b.memory.destroy(d)
	}
	for p := range d.programs {
		C.agpu_program_destroy(d.c, &p.c)
	}
	next, done := d.work.next, d.work.done
	d.work = workQueue{next: next, done: done}
	d.buffers, d.programs, d.down, d.up.buf = nil, nil, nil, nil
	d.allocs, d.bytes = 0, 0
	d.cache.close(d)
	C.agpu_device_unload(d.c)
	d.c = nil
	vk.DestroyDevice(d.dev, nil)
}

// waitIdle waits for the queue, with the mutex released so that waiters of fences can go.
func (d *device) waitIdle() {
	d.mu.Unlock()
	vk.DeviceWaitIdle(d.dev)
	d.mu.Lock()
}
