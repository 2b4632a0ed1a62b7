//go:build cgo

package clload

/*
#include <stdlib.h>
#include "queue.h"
*/
import "C"

import "unsafe"

// Handle is an OpenCL object: a pointer that belongs to the OpenCL library.
type Handle = unsafe.Pointer

// HandleOf returns the OpenCL object of one of the binding's objects, whose first field it is (a test checks that).
func HandleOf[T any](object *T) Handle { return *(*Handle)(unsafe.Pointer(object)) }

// Code is an OpenCL error code; 0 is success.
type Code int32

// Batch is a sequence of launches that is enqueued by one call into C. It may be reset and used again.
type Batch struct {
	launches []C.clload_launch
	buffers  []Handle
	offsets  []uint64
	params   []uint32
}

// Reset empties the batch.
func (b *Batch) Reset() {
	clear(b.buffers) // handles of buffers that are freed meanwhile are not to be kept
	b.launches, b.buffers, b.offsets, b.params = b.launches[:0], b.buffers[:0], b.offsets[:0], b.params[:0]
}

// Len returns the number of launches.
func (b *Batch) Len() int { return len(b.launches) }

// Launch appends a launch; its buffers follow by [Batch.Buffer].
func (b *Batch) Launch(kernel Handle, groups, local [3]int, params []uint32) {
	l := C.clload_launch{kernel: kernel, nparams: C.uint32_t(len(params))}
	for i := range 3 {
		l.local[i] = C.size_t(local[i])
		l.global[i] = C.size_t(groups[i]) * C.size_t(local[i])
	}
	b.launches = append(b.launches, l)
	b.params = append(b.params, params...)
}

// Buffer appends a buffer argument to the last launch.
func (b *Batch) Buffer(mem Handle, offset int64) {
	b.launches[len(b.launches)-1].nbuffers++
	b.buffers = append(b.buffers, mem)
	b.offsets = append(b.offsets, uint64(offset))
}

// Submit enqueues the batch, which must not be empty, and flushes the queue. The event, nil if nothing was enqueued, is
// that of the last launch enqueued and is to be released by the caller. If code is not 0, failed is the number of
// the launch that failed; those before it run.
func (b *Batch) Submit(queue Handle) (event Handle, failed int, code Code) {
	var f C.uint32_t
	c := C.clload_submit(queue, &b.launches[0], C.uint32_t(len(b.launches)), unsafe.SliceData(b.buffers),
		(*C.uint64_t)(unsafe.SliceData(b.offsets)), (*C.uint32_t)(unsafe.SliceData(b.params)), &event, &f)
	return event, int(f), Code(c)
}

// Read enqueues a transfer to data, which must stay pinned until the event is complete.
func Read(queue, mem Handle, offset int64, data []byte) (event Handle, code Code) {
	c := C.clload_read(queue, mem, C.size_t(offset), C.size_t(len(data)), unsafe.Pointer(unsafe.SliceData(data)), &event)
	return event, Code(c)
}

// Write enqueues a transfer from data, which must stay pinned and unchanged until the event is complete.
func Write(queue, mem Handle, offset int64, data []byte) (event Handle, code Code) {
	var copied Handle
	c := C.clload_write(queue, mem, C.size_t(offset), C.size_t(len(data)), unsafe.Pointer(unsafe.SliceData(data)), 0, &copied, &event)
	return event, Code(c)
}

// WriteCopy enqueues a transfer from a copy of data, which the caller passes to [FreeCopy] once the event is complete.
func WriteCopy(queue, mem Handle, offset int64, data []byte) (copied, event Handle, code Code) {
	c := C.clload_write(queue, mem, C.size_t(offset), C.size_t(len(data)), unsafe.Pointer(unsafe.SliceData(data)), 1, &copied, &event)
	return copied, event, Code(c)
}

// FreeCopy frees what [WriteCopy] copied.
func FreeCopy(copied Handle) { C.free(copied) }

// Touch enqueues a write of the first four bytes of a buffer, so that a driver that allocates at first use says now
// whether there is memory.
func Touch(queue, mem Handle) Code { return Code(C.clload_touch(queue, mem)) }

// Finish waits until the queue is empty.
func Finish(queue Handle) Code { return Code(C.clload_finish(queue)) }

// EventStatus returns a command's status: 0 complete, positive while it waits or runs, negative (an error code) if it
// failed. code is the error of the query itself.
func EventStatus(event Handle) (status int32, code Code) {
	var err C.int
	s := C.clload_event_status(event, &err)
	return int32(s), Code(err)
}

// EventTimes returns when a complete command was enqueued, began and ended, in nanoseconds of the device's clock. Its queue must have
// been made for profiling.
func EventTimes(event Handle) (queued, start, end uint64, code Code) {
	var q, s, e C.uint64_t
	c := C.clload_event_times(event, &q, &s, &e)
	return uint64(q), uint64(s), uint64(e), Code(c)
}

// Wait waits until the command is complete.
func Wait(event Handle) Code { return Code(C.clload_event_wait(event)) }

// Retain and Release count the references to an event.
func Retain(event Handle)  { C.clload_event_retain(event) }
func Release(event Handle) { C.clload_event_release(event) }
