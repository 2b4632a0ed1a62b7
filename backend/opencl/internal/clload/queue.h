#ifndef ANYGPU_CLLOAD_QUEUE_H
#define ANYGPU_CLLOAD_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#if !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif

// One launch of a batch. Its buffers and parameters are the next nbuffers and nparams entries of the batch's arrays.
typedef struct {
	void *kernel;
	uint32_t nbuffers, nparams;
	size_t global[3], local[3];
} clload_launch;

// clload_submit sets the arguments of each launch, enqueues it, and flushes the queue. *event is the event of the last
// launch enqueued, to be released by the caller, or NULL. If a call fails, *failed is the number of the launch and the rest
// of the batch is not enqueued.
int clload_submit(void *queue, const clload_launch *launches, uint32_t n, void *const *buffers, const uint64_t *offsets,
	const uint32_t *params, void **event, uint32_t *failed);

int clload_read(void *queue, void *buffer, size_t offset, size_t size, void *data, void **event);

// clload_write enqueues a transfer from data. With staging set it transfers from a copy, *copy, which the caller frees when
// the event is complete; else data must not change until then.
int clload_write(void *queue, void *buffer, size_t offset, size_t size, const void *data, int staging, void **copy, void **event);

int clload_touch(void *queue, void *buffer);
int clload_finish(void *queue);

// clload_event_status returns the execution status of an event: 0 complete, positive while it waits or runs, an error
// code if the command failed. *err is the error of the query itself.
int clload_event_status(void *event, int *err);
// clload_event_times returns when a command was enqueued, began and ended, in nanoseconds of the device's clock. The queue must have been
// made for profiling.
int clload_event_times(void *event, uint64_t *queued, uint64_t *start, uint64_t *end);
int clload_event_wait(void *event);
void clload_event_retain(void *event);
void clload_event_release(void *event);

int clload_device_info(void *device, uint32_t param, size_t size, void *value, size_t *actual);
int clload_platform_info(void *platform, uint32_t param, size_t size, void *value, size_t *actual);
int clload_queue_info(void *queue, uint32_t param, size_t size, void *value);
int clload_build(void *program, void *device, const char *options);
int clload_build_log(void *program, void *device, size_t size, char *log, size_t *actual);

#if !defined(_WIN32)
#pragma GCC visibility pop
#endif
#endif
