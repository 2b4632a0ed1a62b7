//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
)

const (
	maxInflight = 32 // submissions under way
	maxCopies   = 256
	maxTouched  = 256 // ranges remembered since the last barrier
)

// workQueue is the state of the device's queue. Serial numbers count submissions from 1.
type workQueue struct {
	next     uint64  // serial of the next submission
	done     uint64  // every submission up to it is done
	inflight []*slot // submitted, the oldest first: serials done+1 to next-1
	free     []*slot
	waiters  int // goroutines in a wait for any slot

	copies  []copyOp // staged writes, which the next submission begins with
	garbage []func() // to run when the next submission is done

	// touched are the ranges that commands since the last barrier read or wrote, those of earlier submissions included.
	touched []touch

	// Arrays of the submission being recorded, kept for the next one.
	ops     []C.agpu_op
	regions []C.VkDescriptorBufferInfo
	views   []C.VkBufferView // of the texel buffers; made when the launches are checked
	params  []C.uint32_t
	timings []*backend.Timing // of the timed commands
	touches []touch           // of one command
}

// slot is what one submission needs; it is used again after its fence.
type slot struct {
	serial  uint64
	pool    vk.CommandPool
	cmd     vk.CommandBuffer
	fence   vk.Fence
	sets    C.VkDescriptorPool
	maxSets int
	maxBufs int
	maxTexs int
	waiters int      // goroutines waiting for the fence: it must not be reset
	ringEnd uint64   // the upload ring is free up to here afterwards
	garbage []func() // destructions that waited for it
	timed   timedSlot
}

// copyOp is a copy between buffers.
type copyOp struct {
	src, dst       *buffer
	srcOff, dstOff int64
	size           int64
}

// touch is an access to a range of a buffer.
type touch struct {
	buf    *buffer
	lo, hi int64
	write  bool
}

// conflict reports whether a command with these accesses must wait for those before it, and remembers them.
func (w *workQueue) conflict(ts ...touch) bool {
	hit := len(w.touched)+len(ts) > maxTouched
	for _, t := range ts {
		for i := 0; i < len(w.touched) && !hit; i++ {
			o := &w.touched[i]
			hit = o.buf == t.buf && (o.write || t.write) && o.lo < t.hi && t.lo < o.hi
		}
	}
	if hit {
		clear(w.touched)
		w.touched = w.touched[:0]
	}
	w.touched = append(w.touched, ts...)
	return hit
}

// newSlot makes a slot. d.mu is held.
func (d *device) newSlot() (*slot, error) {
	s := &slot{}
	pi := vk.CommandPoolCreateInfo{
		SType:            vk.StructureTypeCommandPoolCreateInfo,
		Flags:            vk.CommandPoolCreateFlags(vk.CommandPoolCreateTransientBit),
		QueueFamilyIndex: d.family,
	}
	defer pi.Free()
	var pool vk.CommandPool
	if err := d.do("vkCreateCommandPool", func() vk.Result { return vk.CreateCommandPool(d.dev, &pi, nil, &pool) }); err != nil {
		return nil, err
	}
	s.pool = pool
	ai := vk.CommandBufferAllocateInfo{
		SType:              vk.StructureTypeCommandBufferAllocateInfo,
		CommandPool:        pool,
		Level:              vk.CommandBufferLevelPrimary,
		CommandBufferCount: 1,
	}
	defer ai.Free()
	cmds := make([]vk.CommandBuffer, 1)
	if err := d.do("vkAllocateCommandBuffers", func() vk.Result { return vk.AllocateCommandBuffers(d.dev, &ai, cmds) }); err != nil {
		d.destroySlot(s)
		return nil, err
	}
	s.cmd = cmds[0]
	fi := vk.FenceCreateInfo{SType: vk.StructureTypeFenceCreateInfo}
	defer fi.Free()
	var fence vk.Fence
	if err := d.do("vkCreateFence", func() vk.Result { return vk.CreateFence(d.dev, &fi, nil, &fence) }); err != nil {
		d.destroySlot(s)
		return nil, err
	}
	s.fence = fence
	return s, nil
}

func (d *device) destroySlot(s *slot) {
	d.destroyQueries(s)
	vk.DestroyFence(d.dev, s.fence, nil)
	vk.DestroyCommandPool(d.dev, s.pool, nil)
	if s.sets != 0 {
		vk.DestroyDescriptorPool(d.dev, convert[vk.DescriptorPool](s.sets), nil)
	}
}

// takeSlot returns a slot to record into. It may release and take d.mu again.
func (d *device) takeSlot() (*slot, error) {
	for {
		if err := d.usable(); err != nil {
			return nil, err
		}
		if err := d.poll(); err != nil {
			return nil, err
		}
		w := &d.work
		if n := len(w.free); n > 0 {
			s := w.free[n-1]
			w.free = w.free[:n-1]
			return s, nil
		}
		if len(w.inflight) < maxInflight {
			return d.newSlot()
		}
		if err := d.waitSlot(context.Background(), w.inflight[0]); err != nil {
			return nil, err
		}
	}
}

// begin starts a submission's arrays with the staged writes.
func (w *workQueue) begin() {
	w.ops, w.regions, w.params, w.timings = w.ops[:0], w.regions[:0], w.params[:0], w.timings[:0]
	for _, c := range w.copies {
		w.copy(c)
	}
}

// copy appends a copy between buffers.
func (w *workQueue) copy(c copyOp) {
	op := C.agpu_op{
		kind:       C.AGPU_COPY,
		src:        c.src.c(),
		dst:        c.dst.c(),
		src_offset: C.uint64_t(c.srcOff),
		dst_offset: C.uint64_t(c.dstOff),
		size:       C.uint64_t(c.size),
	}
	if w.conflict(touch{c.src, c.srcOff, c.srcOff + c.size, false}, touch{c.dst, c.dstOff, c.dstOff + c.size, true}) {
		op.barrier = 1
	}
	w.ops = append(w.ops, op)
}

// commit records and submits the arrays and returns the serial. On failure the staged writes are kept, and the slot is
// free again. d.mu is held.
func (d *device) commit(s *slot, hostRead bool) (uint64, error) {
	w := &d.work
	if err := d.record(s, hostRead || d.readsMapped); err != nil {
		w.free = append(w.free, s)
		// What was not submitted is remembered as touched; that costs a barrier at most. But barriers that were not
		// submitted are missing: the next command waits for everything.
		w.touched = append(w.touched[:0], make([]touch, maxTouched)...)
		return 0, err
	}
	s.serial = w.next
	s.ringEnd = d.up.head
	s.garbage, w.garbage = w.garbage, s.garbage[:0]
	clear(w.copies)
	w.copies = w.copies[:0]
	w.inflight = append(w.inflight, s)
	w.next++
	return s.serial, nil
}

func (d *device) record(s *slot, hostRead bool) error {
	w := &d.work
	if err := d.do("vkResetCommandPool", func() vk.Result { return vk.ResetCommandPool(d.dev, s.pool, 0) }); err != nil {
		return err
	}
	if err := d.do("vkResetFences", func() vk.Result { return vk.ResetFences(d.dev, 1, []vk.Fence{s.fence}) }); err != nil {
		return err
	}
	if err := d.reserveSets(s); err != nil {
		return err
	}
	if err := d.reserveQueries(s); err != nil {
		return err
	}
	var host C.uint32_t
	if hostRead {
		host = 1
	}
	cmd := convert[C.VkCommandBuffer](s.cmd)
	err := d.do("recording of commands", func() vk.Result {
		return vk.Result(C.agpu_record(d.c, cmd, s.sets, unsafe.SliceData(w.ops), C.uint32_t(len(w.ops)), unsafe.SliceData(w.regions), unsafe.SliceData(w.views),
			unsafe.SliceData(w.params), host, convert[C.VkQueryPool](s.timed.queries), C.uint32_t(2*len(s.timed.timings))))
	})
	if err != nil {
		return err
	}
	return d.do("vkQueueSubmit", func() vk.Result {
		return vk.Result(C.agpu_submit(d.c, cmd, convert[C.VkFence](s.fence)))
	})
}

// reserveSets makes the slot's descriptor pool empty and large enough.
func (d *device) reserveSets(s *slot) error {
	sets, bufs, texs := 0, len(d.work.regions), 0
	for i := range d.work.ops {
		if d.work.ops[i].regions > 0 {
			sets++
			texs += int(d.work.ops[i].texels)
		}
	}
	if sets == 0 {
		return nil
	}
	if sets <= s.maxSets && bufs <= s.maxBufs && texs <= s.maxTexs {
		return d.do("vkResetDescriptorPool", func() vk.Result { return vk.ResetDescriptorPool(d.dev, convert[vk.DescriptorPool](s.sets), 0) })
	}
	if s.sets != 0 {
		vk.DestroyDescriptorPool(d.dev, convert[vk.DescriptorPool](s.sets), nil)
	}
	s.sets, s.maxSets, s.maxBufs, s.maxTexs = 0, max(64, 2*sets), max(256, 2*bufs), 2*texs
	var pool C.VkDescriptorPool
	err := d.do("vkCreateDescriptorPool", func() vk.Result {
		return vk.Result(C.agpu_pool_create(d.c, C.uint32_t(s.maxSets), C.uint32_t(s.maxBufs), C.uint32_t(s.maxTexs), &pool))
	})
	if err != nil {
		s.maxSets, s.maxBufs, s.maxTexs = 0, 0, 0
		return err
	}
	s.sets = pool
	return nil
}

// flush submits the staged writes, if there are any or force is set. It may release and take d.mu again.
func (d *device) flush(force bool) error {
	if len(d.work.copies) == 0 && !force {
		return nil
	}
	s, err := d.takeSlot()
	if err != nil {
		return err
	}
	d.work.begin()
	_, err = d.commit(s, false)
	return err
}

// poll retires the submissions that are done. d.mu is held.
func (d *device) poll() error {
	for len(d.work.inflight) > 0 {
		s := d.work.inflight[0]
		r, err := d.result("vkGetFenceStatus", func() vk.Result { return vk.GetFenceStatus(d.dev, s.fence) })
		if err != nil {
			return err
		}
		if r != vk.Success {
			return nil
		}
		d.retire(s)
	}
	return nil
}

// retire ends the oldest submission.
func (d *device) retire(s *slot) {
	w := &d.work
	w.inflight[0] = nil
	w.inflight = w.inflight[1:]
	w.done = s.serial
	d.up.tail = s.ringEnd
	d.readTimes(s)
	for i, f := range s.garbage {
		f()
		s.garbage[i] = nil
	}
	s.garbage = s.garbage[:0]
	if s.waiters == 0 {
		w.free = append(w.free, s)
	} // else the last waiter does it
}

// after runs f when the submission of the given serial is done, now if it is. d.mu is held.
func (d *device) after(serial uint64, f func()) {
	w := &d.work
	switch {
	case serial <= w.done:
		f()
	case serial >= w.next:
		w.garbage = append(w.garbage, f)
	default:
		s := w.inflight[serial-w.done-1]
		s.garbage = append(s.garbage, f)
	}
}

// waitSlot waits until the slot's submission is done, the device is lost or ctx ends. It releases d.mu meanwhile.
func (d *device) waitSlot(ctx context.Context, s *slot) error {
	serial := s.serial
	// Short at first, so that short work is noticed soon; then longer, up to the delay with which ctx is noticed.
	timeout, longest := 200*time.Microsecond, 20*time.Millisecond
	if ctx.Done() == nil {
		longest = time.Second
	}
	s.waiters++
	d.work.waiters++
	defer func() {
		s.waiters--
		d.work.waiters--
		d.idle.Broadcast()
		if s.waiters == 0 && d.work.done >= serial && s.serial == serial {
			d.work.free = append(d.work.free, s)
		}
	}()
	for d.work.done < serial {
		if l := d.lost.Load(); l != nil {
			return l
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		d.mu.Unlock()
		r, err := d.result("vkWaitForFences", func() vk.Result {
			return vk.WaitForFences(d.dev, 1, []vk.Fence{s.fence}, vk.True, uint64(timeout))
		})
		d.mu.Lock()
		if err != nil {
			return err
		}
		if r == vk.Success {
			if err := d.poll(); err != nil {
				return err
			}
			if d.work.done < serial { // the fence of an earlier submission is a moment behind
				d.mu.Unlock()
				time.Sleep(20 * time.Microsecond)
				d.mu.Lock()
			}
		}
		timeout = min(2*timeout, longest)
	}
	return nil
}

// waitFor waits for a submission. d.mu is held, and released while waiting.
func (d *device) waitFor(ctx context.Context, serial uint64) error {
	for d.work.done < serial {
		if err := d.poll(); err != nil {
			return err
		}
		if d.work.done >= serial {
			break
		}
		if err := d.waitSlot(ctx, d.work.inflight[serial-d.work.done-1]); err != nil {
			return err
		}
	}
	return nil
}

// fence is a submission's completion.
type fence struct {
	d      *device
	serial uint64
}

var _ backend.Fence = fence{}

// Wait waits for the submission and those before it.
func (f fence) Wait(ctx context.Context) error {
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work.done >= f.serial {
		return nil
	}
	if l := d.lost.Load(); l != nil {
		return l
	}
	if d.c == nil {
		return d.usable()
	}
	return d.waitFor(ctx, f.serial)
}

// Done reports whether the submission has ended, or failed with the device.
func (f fence) Done() bool {
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work.done >= f.serial || d.lost.Load() != nil || d.closed {
		return true
	}
	return d.poll() != nil || d.work.done >= f.serial
}
